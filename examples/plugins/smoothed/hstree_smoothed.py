"""Softmax over all labels, trained with label smoothing: an output layer without a tree."""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from scipy.special import log_softmax

from hstree import Vocabulary
from hstree.layers import Gradients, OutputLayer, ParameterGradient


class SmoothedSoftmax(OutputLayer):
    """Softmax over all labels, trained with label smoothing (Szegedy et al. 2016).

    Parameters
    ----------
    smoothing : float
        Fraction of the probability that training spreads evenly over all labels.
    """

    is_likelihood = False  # `loss` has smoothed targets

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        *,
        counts: Any = None,
        dtype: Any = np.float32,
        smoothing: Annotated[float, Meta(ge=0, le=1)] = 0.1,
    ) -> None:
        super().__init__(len(vocabulary), dim)
        counts = np.maximum(vocabulary.counts if counts is None else counts, 0.5)
        self.smoothing = smoothing
        self.weight = np.zeros((self.n_labels, dim), dtype)
        self.bias = np.log(counts / counts.sum()).astype(dtype)

    def parameters(self) -> dict[str, Any]:
        """Return the trained arrays."""
        return {"weight": self.weight, "bias": self.bias}

    def log_prob(self, hidden: Any) -> Any:
        """Return the log-probabilities of all labels (B, V)."""
        logits = hidden @ self.weight.T + self.bias
        return log_softmax(logits.astype(np.float64), axis=1)

    def loss(self, hidden: Any, targets: Any, rng: np.random.Generator) -> Any:
        """Return the cross entropies with the smoothed targets, and their gradients."""
        log_prob = self.log_prob(hidden)
        # (B, V) probabilities of the smoothed targets
        target_prob = np.full(log_prob.shape, self.smoothing / self.n_labels)
        target_prob[np.arange(len(targets)), targets] += 1 - self.smoothing
        # (B, V) gradient with respect to the logits
        error = (np.exp(log_prob) - target_prob).astype(hidden.dtype)
        rows = slice(0, self.n_labels)
        parameters = [
            ParameterGradient("weight", rows, error.T @ hidden),
            ParameterGradient("bias", rows, error.sum(axis=0)),
        ]
        return -(target_prob * log_prob).sum(axis=1), Gradients(error @ self.weight, parameters)

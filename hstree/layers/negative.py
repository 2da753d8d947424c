"""Negative sampling as in word2vec, as an output layer with normalised probabilities."""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from hstree._arrays import Array, Bool, Float64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.layers import noise


class NegativeSampling(noise.NoiseLayer):
    """Negative sampling as in word2vec: distinguish each target from k noise labels.

    The loss is ``-log sigmoid(z_t) - sum_j log sigmoid(-z_j)`` over the samples j other than the
    target. The logits of the language model are ``s_w = z_w + log(k Q(w))`` with
    ``z_w = v_w h + c_w``; they are normalised for scoring. Except for samples that are the target,
    this is noise-contrastive estimation (Dyer 2014). Without these, s_w approaches
    ``log(p_w / (1 - p_w))`` instead of ``log p_w``, so that words with a high probability p_w are
    overestimated. The layer keeps the biases ``c_w + log(k Q(w))`` of s, initially the log unigram.
    word2vec has no c_w.

    Training costs k + 1 scores per target, testing V; V (d + 1) parameters.

    Parameters
    ----------
    samples : int
        Number of labels drawn, k.
    shared : bool
        Whether all targets of a batch share the drawn labels; word2vec draws for each target.
    alpha : float
        Exponent of the counts in the distribution Q of drawn labels: 1 for unigram, 0 for uniform.

    References
    ----------
    T. Mikolov, I. Sutskever, K. Chen, G. Corrado & J. Dean, "Distributed representations of words
    and phrases and their compositionality", NIPS 2013; C. Dyer, "Notes on noise contrastive
    estimation and negative sampling", arXiv:1410.8251, 2014.
    """

    centre = 0.0

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        samples: noise.Count = 5,
        shared: bool = False,
        alpha: Annotated[float, Meta(ge=0, le=1)] = 0.75,
    ) -> None:
        super().__init__(
            vocabulary,
            dim,
            samples,
            counts=counts,
            dtype=dtype,
            shared=shared,
            unique=False,
            alpha=alpha,
        )

    def objective(self, target: Array, samples: Array, hits: Bool) -> noise.Objective:
        """Return the losses of distinguishing targets from other samples, and derivatives."""
        samples[hits] = -np.inf
        return noise.binary_objective(target, samples)

    def row_curvature(self, fraction: Float64, expected: Float64) -> Float64:
        """Return the mean curvature of the loss along each label's row (V,)."""
        return noise.binary_curvature(fraction, expected)

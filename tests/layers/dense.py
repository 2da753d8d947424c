"""A flat softmax as one dense product: an output layer without a tree, as a newcomer writes it."""

import numpy as np
from scipy.special import log_softmax, logsumexp

from hstree.data.vocabulary import Vocabulary
from hstree.layers.base import Gradients, OutputLayer, ParameterGradient


class DenseSoftmax(OutputLayer):
    """Softmax over all labels.

    Parameters
    ----------
    scale : float
        Factor of the logits.
    """

    def __init__(
        self, vocabulary: Vocabulary, dim, *, counts=None, dtype=np.float32, scale: float = 1.0
    ):
        super().__init__(len(vocabulary), dim)
        mass = np.maximum(vocabulary.counts if counts is None else counts, 0.5)
        self.scale = scale
        self.weight = np.zeros((len(vocabulary), dim), dtype)
        self.bias = (np.log(mass / mass.sum()) / scale).astype(dtype)

    def parameters(self):
        return {"weight": self.weight, "bias": self.bias}

    def log_prob(self, hidden):
        logits = self.scale * (hidden @ self.weight.T + self.bias)
        return log_softmax(logits.astype(np.float64), axis=1)

    def loss(self, hidden, targets, rng):
        log_prob, items = self.log_prob(hidden), np.arange(len(targets))
        error = np.exp(log_prob)
        error[items, targets] -= 1
        error = (self.scale * error).astype(hidden.dtype)
        rows = slice(0, self.n_labels)
        parameters = [
            ParameterGradient("weight", rows, error.T @ hidden),
            ParameterGradient("bias", rows, error.sum(axis=0)),
        ]
        return -log_prob[items, targets], Gradients(error @ self.weight, parameters)


class SelfNormalised(DenseSoftmax):
    """The same softmax, whose Z is reported: its biases start as the log unigram."""

    def log_normaliser(self, hidden):
        return logsumexp(self.scale * (hidden @ self.weight.T + self.bias), axis=1)

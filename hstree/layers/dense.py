"""Output layers with a weight vector and a bias per label, whose softmax is the distribution.

`DenseLayer` is the base of every layer that approximates the softmax in training alone: they share
parameters, exact log-probabilities and top-k labels, and differ in their losses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hstree._typing import Array, Float64, Int64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.layers.base import OutputLayer, check_k

#: Elements of the (B, V) array of logits that are computed at a time.
TABLE_LIMIT = 1 << 24


class DenseLayer(OutputLayer):
    """Softmax of ``s = W h + b``; a subclass defines `loss`.

    Parameters
    ----------
    vocabulary : Vocabulary
    dim : int
        d, the length of hidden vectors.
    counts : int array (V,), optional
        Training counts for the starting biases; those of the vocabulary by default.
    dtype : float dtype, default float32

    Attributes
    ----------
    weight : float array (V, d)
        Output vectors, zero at the start.
    bias : float array (V,)
        Log of the unigram probabilities at the start, so that Z is 1.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__(len(vocabulary), dim)
        self.weight: Array = np.zeros((self.n_labels, dim), dtype)
        self.bias: Array = log_unigram(vocabulary.counts if counts is None else counts)
        self.bias = self.bias.astype(dtype)

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them."""
        return {"weight": self.weight, "bias": self.bias}

    def logits(self, hidden: Array) -> Array:
        """Return ``W h + b`` of all labels, a float array (B, V)."""
        logits: Array = hidden @ self.weight.T
        logits += self.bias
        return logits

    def log_prob(self, hidden: Array) -> Float64:
        """Return the normalised log-probabilities of all labels, a float64 array (B, V)."""
        result = np.empty((len(hidden), self.n_labels))
        for some in self._blocks(len(hidden)):
            result[some] = self.logits(hidden[some])
        result -= log_sum_exp(result)[:, None]
        return result

    def nll(self, hidden: Array, targets: Integer) -> Float64:
        """Return the negative log-likelihoods of targets (B,) in nats, a float64 array (B,)."""
        nll = np.empty(len(targets))
        for some in self._blocks(len(targets)):
            logits = self.logits(hidden[some])
            target_logit = logits[np.arange(len(logits)), targets[some]]
            nll[some] = log_sum_exp(logits) - target_logit
        return nll

    def log_z(self, hidden: Array) -> Float64:
        """Return ln Z, the log of the sum of exp(s) over all labels, a float64 array (B,)."""
        blocks = (self.logits(hidden[some]) for some in self._blocks(len(hidden)))
        return np.concatenate([np.empty(0), *map(log_sum_exp, blocks)])

    def top_k(self, hidden: Array, k: int) -> tuple[Int64, Float64]:
        """Return the k most probable labels and their log-probabilities; ties by label id."""
        check_k(k)
        k = min(k, self.n_labels)
        labels = np.empty((len(hidden), k), np.int64)
        log_prob = np.empty((len(hidden), k))
        for some in self._blocks(len(hidden)):
            logits = self.logits(hidden[some])
            labels[some], value = first_columns(logits, k)
            log_prob[some] = value - log_sum_exp(logits)[:, None]
        return labels, log_prob

    def _blocks(self, n_items: int) -> Iterator[slice]:
        """Yield slices of a batch whose logits fit into `TABLE_LIMIT`."""
        step = max(1, TABLE_LIMIT // self.n_labels)
        for first in range(0, n_items, step):
            yield slice(first, min(first + step, n_items))


def log_unigram(counts: Integer) -> Float64:
    """Return the log-probabilities of labels by their counts (V,); a count of 0 is read as 1/2."""
    mass = np.maximum(counts, 0.5)
    log_prob: Float64 = np.log(mass / mass.sum())
    return log_prob


def log_sum_exp(logits: Array) -> Float64:
    """Return the log of the sum of exponentials over the last axis of (B, V), a float64 (B,)."""
    largest = logits.max(axis=1, keepdims=True)
    total = np.exp(logits - largest).sum(axis=1, dtype=np.float64)
    result: Float64 = np.log(total) + largest[:, 0]
    return result


def first_columns(values: Array, k: int) -> tuple[Int64, Array]:
    """Return the columns (B, k) of the k largest values of each row, descending, and the values.

    Ties by column; `k` is at most the number of columns.
    """
    # (B, 1) the k-th largest value; columns above it, and of those equal to it the first
    least = np.partition(values, values.shape[1] - k, axis=1)[:, [values.shape[1] - k]]
    equal = values == least
    missing = k - (values > least).sum(axis=1, keepdims=True)
    chosen = (values > least) | (equal & (np.cumsum(equal, axis=1) <= missing))
    columns = np.nonzero(chosen)[1].reshape(len(values), k)
    value = np.take_along_axis(values, columns, axis=1)
    order = np.argsort(-value, axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(value, order, axis=1)

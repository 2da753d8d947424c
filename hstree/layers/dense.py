"""Output layers with a weight vector and a bias per label, whose softmax is the distribution.

`DenseLayer` is the base of every layer that approximates the softmax in training alone: they share
parameters, exact log-probabilities and top-k labels, and differ in their losses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hstree._typing import Array, Float64, Int64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.layers import kernels
from hstree.layers.base import Gradients, OutputLayer, ParameterGradient, check_k
from hstree.layers.node_groups import Scratch

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
        self._scratch = Scratch()

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

    def log_z_gradients(
        self, hidden: Array, slope: Callable[[Float64], Float64]
    ) -> tuple[Float64, Array, Array, Array]:
        """Return ln Z, and the gradients of a loss that is a function of it, in one full pass.

        The exponentials of all logits are kept as they are: what they are divided by, and the
        slope, scale the (B, d) sides of the matrix products instead. O(B V d), three products.

        Parameters
        ----------
        hidden : float array (B, d)
        slope : function
            Returns the derivatives (b,) of the losses with respect to ln Z, from ln Z (b,).

        Returns
        -------
        log_z : float64 array (B,)
        grad_hidden : float array (B, d)
        grad_weight : float array (V, d)
        grad_bias : float array (V,)
        """
        log_z = np.empty(len(hidden))
        grad_hidden = np.empty_like(hidden)
        grad_weight, grad_bias = np.empty_like(self.weight), np.empty_like(self.bias)
        for some in self._blocks(len(hidden)):
            h = hidden[some]
            # (b, V) logits, then their exponentials
            power = self._scratch.empty("logits", (len(h), self.n_labels), h.dtype)
            np.matmul(h, self.weight.T, out=power)
            power += self.bias
            largest = power.max(axis=1, keepdims=True)
            power -= largest
            np.exp(power, out=power)
            total = power.sum(axis=1)
            log_z[some] = np.log(total, dtype=np.float64) + largest[:, 0]
            # (b,) derivative of the loss with respect to each exponential
            scale = (slope(log_z[some]) / total).astype(h.dtype)
            grad_hidden[some] = (power @ self.weight) * scale[:, None]
            scaled = h * scale[:, None]
            if some.start == 0:
                np.matmul(power.T, scaled, out=grad_weight)
                np.matmul(scale, power, out=grad_bias)
            else:
                grad_weight += power.T @ scaled
                grad_bias += scale @ power
        return log_z, grad_hidden, grad_weight, grad_bias

    def target_logits(
        self,
        hidden: Array,
        targets: Integer,
        grad_hidden: Array,
        grad_weight: Array,
        grad_bias: Array,
    ) -> Array:
        """Return the targets' logits (B,); add the gradients of minus their sum to the arrays."""
        item, target = np.arange(len(targets) + 1), targets.astype(np.int64)
        minus_one = np.full(len(targets), -1, self.weight.dtype)
        by_hidden, rows, by_weight, by_bias = kernels.gather_dot_backward(
            self.weight, hidden, item, target, minus_one
        )
        grad_hidden += by_hidden
        grad_weight[rows] += by_weight
        grad_bias[rows] += by_bias
        return kernels.gather_dot(self.weight, self.bias, hidden, item[:-1], target)

    def all_rows(self, grad_hidden: Array, grad_weight: Array, grad_bias: Array) -> Gradients:
        """Return gradients with respect to all rows."""
        rows = slice(0, self.n_labels)
        parameters = [
            ParameterGradient("weight", rows, grad_weight),
            ParameterGradient("bias", rows, grad_bias),
        ]
        return Gradients(grad_hidden, parameters)

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

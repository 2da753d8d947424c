"""Base classes of output layers that are one softmax over all labels.

`SoftmaxLayer` computes exact log-probabilities and top-k labels. `DenseLayer`, with a weight vector
and a bias per label, is the base class of layers that approximate this softmax only in training.
They differ in their losses.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hstree._arrays import Array, Float64, Int64, Integer
from hstree._options import checked_count
from hstree.data.vocabulary import Vocabulary
from hstree.layers import arithmetic
from hstree.layers.base import Gradients, OutputLayer, ParameterGradient, first_columns

#: Maximum number of elements of the logits (B, V) that are computed at a time.
TABLE_LIMIT = 1 << 24
#: Maximum number of exponentials that are kept at a time for the backward pass.
KEPT_SCORES = 1 << 25
#: Number of logits that `log_sum_exp` processes at a time, so that they stay in cache.
CHUNK = 1 << 18


class SoftmaxLayer(OutputLayer):
    """Softmax over logits; a subclass defines `logits`."""

    @abstractmethod
    def logits(self, hidden: Array) -> Array:
        """Return the logits of all labels, a float array (B, V)."""

    def log_prob(self, hidden: Array) -> Float64:
        """Return the normalised log-probabilities of all labels, a float64 array (B, V)."""
        result = np.empty((len(hidden), self.n_labels))
        for block in batch_blocks(len(hidden), self.n_labels):
            result[block] = self.logits(hidden[block])
        result -= log_sum_exp(result)[:, None]
        return result

    def nll(self, hidden: Array, targets: Integer) -> Float64:
        """Return the negative log-likelihoods of targets (B,) in nats, a float64 array (B,)."""
        nll = np.empty(len(targets))
        for block in batch_blocks(len(hidden), self.n_labels):
            logits = self.logits(hidden[block])
            nll[block] = log_sum_exp(logits) - logits[np.arange(len(logits)), targets[block]]
        return nll

    def top_k(self, hidden: Array, k: int) -> tuple[Int64, Float64]:
        """Return the k most probable labels and their log-probabilities; ties by label id."""
        k = min(checked_count("k", k), self.n_labels)
        labels = np.empty((len(hidden), k), np.int64)
        log_prob = np.empty((len(hidden), k))
        for block in batch_blocks(len(hidden), self.n_labels):
            logits = self.logits(hidden[block])
            labels[block], value = first_columns(logits, k)
            log_prob[block] = value - log_sum_exp(logits)[:, None]
        return labels, log_prob


class DenseLayer(SoftmaxLayer):
    """Softmax of ``s = W h + b``; a subclass defines `loss`.

    Attributes
    ----------
    weight : float array (V, d)
        Output vectors, initially zero.
    bias : float array (V,)
        Initially the log of the unigram probabilities, so that Z is 1.
    centre : float or None
        Value near which training keeps ln Z; it is subtracted from unnormalised scores. None if
        training does not control ln Z.
    """

    centre: float | None = None

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
        log_frequency = log_unigram(vocabulary.counts if counts is None else counts)
        self.bias: Array = log_frequency.astype(dtype)

    def parameters(self) -> dict[str, Array]:
        """Return the trained arrays, by the names that a saved model gives them."""
        return {"weight": self.weight, "bias": self.bias}

    def logits(self, hidden: Array) -> Array:
        """Return the logits of all labels, a float array (B, V)."""
        logits: Array = hidden @ self.weight.T
        logits += self.bias
        return logits

    def log_normaliser(self, hidden: Array) -> Float64 | None:
        """Return ln Z minus `centre` for each hidden vector, a float64 array (B,), or None."""
        if self.centre is None:
            return None
        log_z = np.empty(len(hidden))
        for block in batch_blocks(len(hidden), self.n_labels):
            log_z[block] = log_sum_exp(self.logits(hidden[block]))
        return log_z - self.centre

    def unnormalised_nll(self, hidden: Array, targets: Integer) -> Float64 | None:
        """Return `centre` minus the logits of targets, a float64 array (B,), or None; O(B d)."""
        if self.centre is None:
            return None
        return self.centre - self.target_logits(hidden, targets).astype(np.float64)

    def target_logits(self, hidden: Array, targets: Integer) -> Array:
        """Return the logits (B,) of targets."""
        item = np.arange(len(targets))
        return arithmetic.gather_dot(self.weight, self.bias, hidden, item, targets.astype(np.int64))


def batch_blocks(n_items: int, n_labels: int, *, keep: bool = False) -> list[slice]:
    """Divide a batch into slices of about the same size whose logits (b, V) fit into memory."""
    most = KEPT_SCORES if keep else TABLE_LIMIT
    n_blocks = -(-n_items // max(1, most // n_labels))
    stops = [n_items * i // n_blocks for i in range(1, n_blocks + 1)]
    return list(map(slice, [0, *stops], stops))


def row_gradients(
    rows: Int64 | slice, grad_hidden: Array, grad_weight: Array, grad_bias: Array
) -> Gradients:
    """Return the gradients of a `DenseLayer` with respect to some rows."""
    weight = ParameterGradient("weight", rows, grad_weight)
    bias = ParameterGradient("bias", rows, grad_bias)
    return Gradients(grad_hidden, [weight, bias])


def log_unigram(counts: Integer) -> Float64:
    """Return the log of the unigram probabilities for counts (V,); a count of 0 is read as 1/2."""
    mass = np.maximum(counts, 0.5)
    log_prob: Float64 = np.log(mass / mass.sum())
    return log_prob


class SoftmaxGradients(NamedTuple):
    """Gradients of a loss with respect to the arrays of a softmax."""

    inputs: Array  # (B, w)
    weight: Array  # (k, w)
    bias: Array  # (k,)


def softmax_loss(
    inputs: Array,
    weight: Array,
    bias: Array,
    target: Integer,
    slope: Callable[[Float64], Float64] = np.ones_like,
) -> tuple[Float64, Float64, SoftmaxGradients]:
    """Return ln Z and the logits of targets, float64 arrays (B,), and the gradients of a loss.

    The logits are ``inputs @ weight.T + bias``, for inputs (B, w) and weights (k, w). The loss is
    the sum over items of a function of ln Z, with the derivative `slope`, minus the logit of the
    target. By default, it is the negative log-likelihood, ``ln Z - logit``.
    """
    log_z = np.empty(len(target))
    target_logit = np.empty(len(target))
    gradients = SoftmaxGradients(np.empty_like(inputs), np.zeros_like(weight), np.zeros_like(bias))
    for block in batch_blocks(len(target), len(weight), keep=True):
        # (b, k) logits, then probabilities
        item = np.arange(block.stop - block.start)
        logits = inputs[block] @ weight.T
        logits += bias
        target_logit[block] = logits[item, target[block]]
        log_z[block] = arithmetic.softmax(logits)

        # d loss / d logits = slope * probability - [target]
        error = logits
        error *= slope(log_z[block]).astype(logits.dtype)[:, None]
        error[item, target[block]] -= 1
        gradients.inputs[block] = error @ weight
        gradients.weight[:] += error.T @ inputs[block]
        gradients.bias[:] += error.sum(axis=0)
    return log_z, target_logit, gradients


def log_sum_exp(logits: Array) -> Float64:
    """Return the log of the sum of exponentials of each row of (B, V), a float64 array (B,)."""
    result = np.empty(len(logits))
    step = max(1, CHUNK // logits.shape[1])  # rows at a time that stay in cache
    for a in range(0, len(logits), step):
        block = logits[a : a + step]
        largest = block.max(axis=1, keepdims=True)
        power = block - largest
        total = np.exp(power, out=power).sum(axis=1, dtype=np.float64)
        result[a : a + step] = np.log(total) + largest[:, 0]
    return result

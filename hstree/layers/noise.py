"""Base class of layers whose loss compares each target with labels drawn at random.

`NoiseLayer` draws the labels and computes logits and gradients; a subclass defines
`NoiseLayer.objective`, a function of logits. Several subclasses use `softmax_objective` or
`binary_objective`. If the whole batch shares the labels, the logits are a few matrix products.
"""

from abc import abstractmethod
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta

from hstree._arrays import Array, Bool, Float64, Int64, Integer
from hstree._text import plural
from hstree.data.vocabulary import Vocabulary
from hstree.errors import OptionError
from hstree.layers import arithmetic
from hstree.layers.base import Gradients
from hstree.layers.dense import DenseLayer, row_gradients

#: Default number of samples; of a smaller vocabulary, all labels are samples.
SAMPLES = 100
#: Minimum distance between a probability and 1, so that log(1 - p) is finite.
EPSILON = float(np.finfo(np.float64).eps)
Rng = np.random.Generator
# Type and range of an option in several layers.
Count = Annotated[int, Meta(ge=1, le=1 << 24)]
#: Losses (B,), and their derivatives with respect to the logits of targets and samples.
Objective = tuple[Float64, Array, Array]


class Samples(NamedTuple):
    """Labels drawn for a batch, and their log-probabilities.

    Both have the shape (k,) if all items of the batch share the labels, else (B, k).
    """

    labels: Int64
    log_prob: Float64


class Unigram:
    """Distribution proportional to counts to the power alpha: ``c(w)^alpha / sum_v c(v)^alpha``.

    A sample is a binary search in the cumulative distribution: O(log V). Drawing many distinct
    labels (`sample_unique`) takes O(V) in total.

    Parameters
    ----------
    counts : int array (V,)
        A count of 0 is read as 1/2.
    alpha : float, default 1
        1 for the unigram distribution, 0 for the uniform distribution.
    """

    def __init__(self, counts: Integer, alpha: float = 1.0) -> None:
        mass = np.maximum(counts, 0.5) ** alpha
        #: (V,) log-probability of each label
        self.log_prob: Float64 = np.log(mass / mass.sum())
        self._cumulative: Float64 = np.cumsum(mass) / mass.sum()
        # Expected number of distinct labels among V / 8 draws
        miss = np.log1p(-np.minimum(np.exp(self.log_prob), 1 - EPSILON))
        self.different = float(-np.expm1(len(miss) / 8 * miss).sum())

    def sample(self, shape: int | tuple[int, int], rng: Rng) -> Samples:
        """Draw an array of labels with replacement."""
        labels: Int64 = np.searchsorted(self._cumulative, rng.random(shape), "right")
        labels = np.minimum(labels, len(self._cumulative) - 1)
        return Samples(labels, self.log_prob[labels])

    def sample_unique(self, k: int, rng: Rng) -> tuple[Samples, float]:
        """Draw until k labels are distinct; return them in the order of their first draws.

        Also returns the number of draws. If there are no more than k labels, all V labels are
        returned, and the number of draws is infinite.
        """
        if k >= len(self.log_prob):
            return Samples(np.arange(len(self.log_prob)), self.log_prob), np.inf
        if k > self.different:
            # Simulate draws from Q as arrivals: label w is a Poisson process with the rate Q(w).
            # The first k labels are those with the k earliest first arrivals. The number of their
            # later arrivals before the last of these has a Poisson distribution. O(V)
            arrival = rng.standard_exponential(len(self.log_prob)) / np.exp(self.log_prob)
            labels = np.argpartition(arrival, k - 1)[:k]
            labels = labels[np.argsort(arrival[labels])]
            since = arrival[labels[-1]] - arrival[labels]
            again = rng.poisson(np.exp(self.log_prob[labels]) @ since)
            return Samples(labels, self.log_prob[labels]), float(k + again)
        # Double the number of draws until k of them are distinct
        drawn = self.sample(2 * k, rng).labels
        while len(first := np.unique(drawn, return_index=True)[1]) < k:
            drawn = np.concatenate([drawn, self.sample(len(drawn), rng).labels])
        first = np.sort(first)[:k]
        labels = drawn[first]
        return Samples(labels, self.log_prob[labels]), float(first[-1] + 1)


class NoiseLayer(DenseLayer):
    """Softmax whose loss compares each target with labels drawn from a distribution by count.

    Training costs O(B k d) per batch of B targets, and changes k + B rows of the parameters.
    Testing costs V scores, as in the softmax.

    Parameters
    ----------
    samples : int
        Number of labels drawn, k.
    shared : bool, default True
        Whether all targets of a batch share the labels.
    unique : bool, default True
        Whether labels are drawn until k are distinct; only for shared labels. The expected number
        of times that a label is drawn, E(w), is then ``1 - (1 - Q(w))^n`` for n draws, otherwise
        ``k Q(w)``.
    alpha : float, default 1
        Exponent of the counts in the distribution Q.
    """

    is_likelihood = False  # losses depend on samples

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        samples: int,
        *,
        counts: Integer | None,
        dtype: Any,
        shared: bool = True,
        unique: bool = True,
        alpha: float = 1.0,
    ) -> None:
        super().__init__(vocabulary, dim, counts=counts, dtype=dtype)
        # The default is legal for any number of labels; if there are fewer, all are samples
        if unique and samples > self.n_labels and samples != SAMPLES:
            labels = plural(self.n_labels, "label")
            reason = f"is {samples}, but there are {labels} to draw from; draw fewer"
            raise OptionError.about("samples", reason)
        self.n_samples = samples
        self.shared = shared
        self.unique = unique
        self.noise = Unigram(vocabulary.counts if counts is None else counts, alpha)

    @abstractmethod
    def objective(self, target: Array, samples: Array, hits: Bool) -> Objective:
        """Return the losses and their derivatives with respect to ``z = s - log(expected count)``.

        `target` (B,) and `samples` (B, k) hold z. Samples with z = -inf are left out; `samples` may
        be changed. `hits` (B, k) marks the samples that are the target.
        """

    def log_expected(self, log_prob: Float64, tries: float) -> Float64:
        """Return the log of the expected counts of labels among n draws, given log Q.

        ``log(1 - (1 - Q)^n)`` for distinct labels, and ``log(n Q)`` if labels may repeat.
        """
        if self.unique:
            return log_expected_unique(log_prob, tries)
        expected: Float64 = np.log(tries) + log_prob
        return expected

    def loss(self, hidden: Array, targets: Integer, rng: Rng) -> tuple[Float64, Gradients]:
        """Return the losses (B,) against noise, and the gradients of their sum."""
        tries: float = self.n_samples
        if self.unique:
            (labels, log_prob), tries = self.noise.sample_unique(self.n_samples, rng)
        else:
            shape = self.n_samples if self.shared else (len(targets), self.n_samples)
            labels, log_prob = self.noise.sample(shape, rng)

        # Logits minus log expected counts, for the targets (B,) and the samples (B, k)
        expected = self.log_expected(log_prob, tries)
        expected_target = self.log_expected(self.noise.log_prob[targets], tries)
        logits = CandidateLogits(self.weight, self.bias, hidden, targets, labels)
        target = logits.target - expected_target.astype(hidden.dtype)
        samples = logits.samples - expected.astype(hidden.dtype)
        hits = labels == targets[:, None]
        losses, grad_target, grad_samples = self.objective(target, samples, hits)
        return losses, logits.backward(grad_target, grad_samples)

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Estimate the mean curvature of the loss along each row, per parameter.

        If the batch shares its samples, it is the mean over the batches that contain the label.
        """
        fraction = counts / counts.sum()
        # (V,) expected count of each label among the labels drawn for an item
        expected = np.exp(self.log_expected(self.noise.log_prob, self.n_samples))
        rows = self.row_curvature(fraction, expected)
        if self.shared:
            rows = np.minimum(rows / np.minimum(expected, 1), 0.25)
        return {"weight": rows, "bias": rows}

    def row_curvature(self, fraction: Float64, expected: Float64) -> Float64:
        """Return the mean curvature of the loss along each label's row (V,).

        `fraction` (V,) is the label's fraction of the targets, and `expected` (V,) is the expected
        number of times that it is drawn. The default is p (1 - p), as in the softmax.
        """
        return fraction * (1 - fraction)


def log_expected_unique(log_prob: Float64, tries: float) -> Float64:
    """Return ``log(1 - (1 - Q)^n)`` given log Q: the log-probability of a label in n draws."""
    with np.errstate(divide="ignore"):  # Q is 1 if there is one label
        miss = np.log1p(-np.exp(np.minimum(log_prob, 0)))
        expected: Float64 = np.log(-np.expm1(tries * miss))
    return expected


class CandidateLogits:
    """Logits of each item's target (B,) and samples (B, k), and their gradients.

    The items share the labels of the samples (k,), so that logits are matrix products, or each item
    has its own labels (B, k).
    """

    def __init__(
        self, weight: Array, bias: Array, hidden: Array, targets: Integer, labels: Integer
    ) -> None:
        self._weight = weight
        self._hidden = hidden
        targets = targets.astype(np.int64, copy=False)  # NumPy joins uint64 and int64 to float64
        self._is_shared = labels.ndim == 1
        if self._is_shared:
            # (B + k,) rows of the targets, then rows of the samples
            self._rows = np.concatenate([targets, labels])
            vectors = weight.take(self._rows, axis=0)
            self._target_vectors, self._sample_vectors = np.split(vectors, [len(targets)])
            self.target: Array = np.vecdot(hidden, self._target_vectors) + bias[targets]
            self.samples: Array = hidden @ self._sample_vectors.T
            self.samples += bias[labels]
        else:
            # (B, 1 + k) rows of each item: its target, then its samples
            self._rows = np.column_stack([targets, labels])
            item = np.repeat(np.arange(len(targets)), self._rows.shape[1])
            logits = arithmetic.gather_dot(weight, bias, hidden, item, self._rows.ravel())
            logits = logits.reshape(self._rows.shape)
            self.target = logits[:, 0]
            self.samples = logits[:, 1:]

    def backward(self, grad_target: Array, grad_samples: Array) -> Gradients:
        """Return the gradients, given those with respect to the logits (B,) and (B, k)."""
        hidden = self._hidden
        if self._is_shared:
            grad_hidden = grad_samples @ self._sample_vectors
            grad_hidden += grad_target[:, None] * self._target_vectors
            rows, slot = arithmetic.touched_rows(self._rows, len(self._weight))
            # (B + k, d) inputs of the rows; inputs of the same row are summed
            inputs = np.concatenate([hidden, grad_samples.T @ hidden])
            scale = np.concatenate([grad_target, np.ones(len(inputs) - len(hidden), hidden.dtype)])
            grad_weight = arithmetic.slot_sums(inputs, slot, len(rows), scale)
            grad_logits = np.concatenate([grad_target, grad_samples.sum(axis=0)])
            grad_bias = np.bincount(slot, grad_logits, len(rows)).astype(hidden.dtype)
        else:
            error = np.column_stack([grad_target, grad_samples])
            item = np.repeat(np.arange(len(error)), error.shape[1])
            grad_hidden, rows, grad_weight, grad_bias = arithmetic.gather_dot_backward(
                self._weight, hidden, item, self._rows.ravel(), error.ravel()
            )
        return row_gradients(rows, grad_hidden, grad_weight, grad_bias)


def softmax_objective(target: Array, samples: Array) -> Objective:
    """Return the cross entropy of the target among itself and the samples, and its derivatives.

    Logits are (B,) for targets and (B, k) for samples; samples with the logit -inf are left out.
    """
    # -log(exp(z_t) / (exp(z_t) + sum_j exp(z_j)))
    largest = np.maximum(target, samples.max(axis=1))
    grad_target = np.exp(target - largest)
    grad_samples = np.exp(samples - largest[:, None])
    total = grad_target + grad_samples.sum(axis=1)
    losses = (np.log(total) + largest - target).astype(np.float64)
    grad_target /= total
    grad_samples /= total[:, None]
    return losses, grad_target - 1, grad_samples


def binary_objective(target: Array, samples: Array) -> Objective:
    """Return the logistic losses of targets (positive) and samples (negative), and derivatives.

    Logits are (B,) for targets and (B, k) for samples.
    """
    # -log sigmoid(z_t) - sum_j log sigmoid(-z_j)
    log_prob, grad_target = arithmetic.binary_decision(target, np.ones(1, bool))
    samples_log_prob, grad_samples = arithmetic.binary_decision(samples, np.zeros(1, bool))
    losses = -log_prob - samples_log_prob.sum(axis=1, dtype=np.float64)
    return losses, grad_target, grad_samples


def binary_curvature(fraction: Float64, expected: Float64) -> Float64:
    """Return the mean curvature (V,) of logistic losses along the rows of an untrained layer.

    It is ``(p + kQ) sigmoid (1 - sigmoid)`` with ``sigmoid = p / (p + kQ)``, for a label that is
    the target with probability p and is drawn kQ times. Training can only lower it.
    """
    return fraction * expected / (fraction + expected)

"""Base of the layers whose loss compares each target with labels drawn at random.

`NoiseLayer` draws the labels, computes their logits and passes the gradients on; a subclass defines
`NoiseLayer.objective`, a function of logits. `softmax_objective` and `binary_objective` are the two
that siblings share. Labels that the whole batch shares take a few matrix products.
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

#: Number of samples by default; a smaller vocabulary is drawn whole.
SAMPLES = 100
#: Distance of a probability from 1 that its logarithm needs.
EPSILON = float(np.finfo(np.float64).eps)
Rng = np.random.Generator
# Type and range of an option that several layers have.
Count = Annotated[int, Meta(ge=1, le=1 << 24)]
#: Losses (B,), and their derivatives with respect to the logits of targets and samples.
Objective = tuple[Float64, Array, Array]


class Samples(NamedTuple):
    """Labels drawn for a batch, and their log-probabilities, of one shape.

    The shape is (k,) where all items of the batch share the labels, else (B, k).
    """

    labels: Int64
    log_prob: Float64


class Unigram:
    """Counts to the power alpha: ``Q(w) = c(w)^alpha / sum_v c(v)^alpha``.

    Draws by binary search in the cumulative distribution: O(log V) per sample. Many different
    labels (`sample_unique`) take O(V) in all.

    Parameters
    ----------
    counts : int array (V,)
        A count of 0 is read as 1/2.
    alpha : float, default 1
        1 for the unigram distribution, 0 for the uniform one.
    """

    def __init__(self, counts: Integer, alpha: float = 1.0) -> None:
        mass = np.maximum(counts, 0.5) ** alpha
        #: (V,) log-probability of each label
        self.log_prob: Float64 = np.log(mass / mass.sum())
        self._cumulative: Float64 = np.cumsum(mass) / mass.sum()
        # expected number of different labels among V / 8 drawn ones
        miss = np.log1p(-np.minimum(np.exp(self.log_prob), 1 - EPSILON))
        self.different = float(-np.expm1(len(miss) / 8 * miss).sum())

    def sample(self, shape: int | tuple[int, int], rng: Rng) -> Samples:
        """Draw labels of some shape, with replacement."""
        labels: Int64 = np.searchsorted(self._cumulative, rng.random(shape), "right")
        labels = np.minimum(labels, len(self._cumulative) - 1)
        return Samples(labels, self.log_prob[labels])

    def sample_unique(self, k: int, rng: Rng) -> tuple[Samples, float]:
        """Draw until there are k different labels, in the order in which they were first drawn.

        Also returns the number of labels that were drawn for them. Where there are no more than k,
        all V labels are sampled, and the number is infinite.
        """
        if k >= len(self.log_prob):
            return Samples(np.arange(len(self.log_prob)), self.log_prob), np.inf
        if k > self.different:
            # Labels arrive in Poisson processes of the rates Q(w), which is one of rate 1 whose
            # arrivals are draws from Q. The first k labels are those of the k earliest first
            # arrivals; how often they came again before the last of them is Poisson. O(V).
            arrival = rng.standard_exponential(len(self.log_prob)) / np.exp(self.log_prob)
            labels = np.argpartition(arrival, k - 1)[:k]
            labels = labels[np.argsort(arrival[labels])]
            since = arrival[labels[-1]] - arrival[labels]
            again = rng.poisson(np.exp(self.log_prob[labels]) @ since)
            return Samples(labels, self.log_prob[labels]), float(k + again)
        # Twice as many draws, again and again, until k of them are different
        drawn = self.sample(2 * k, rng).labels
        while len(first := np.unique(drawn, return_index=True)[1]) < k:
            drawn = np.concatenate([drawn, self.sample(len(drawn), rng).labels])
        first = np.sort(first)[:k]
        labels = drawn[first]
        return Samples(labels, self.log_prob[labels]), float(first[-1] + 1)


class NoiseLayer(DenseLayer):
    """Softmax whose loss compares each target with labels drawn by their counts.

    Training costs O(B k d) per batch of B targets, and k + B rows of the parameters change; testing
    is that of the softmax, V scores.

    Parameters
    ----------
    samples : int
        k, the number of labels drawn.
    shared : bool, default True
        Whether the batch shares them.
    unique : bool, default True
        Whether labels are drawn until k are different; of shared ones alone. E(w), the expected
        number of times that a label is drawn, is ``1 - (1 - Q(w))^n`` for n draws then, else
        ``k Q(w)``.
    alpha : float, default 1
        Power of the counts in the distribution Q.
    """

    is_likelihood = False  # losses are of samples

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
        # The default number is legal for fewer labels, which are then drawn whole.
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

        They are those of the z of targets (B,) and of samples (B, k), which are -inf for those to
        leave out and may be changed; `hits` (B, k) are the samples that are the target.
        """

    def log_expected(self, log_prob: Float64, tries: float) -> Float64:
        """Return from log Q how often labels are expected among n draws, as its logarithm.

        ``log(1 - (1 - Q)^n)`` for different labels, and ``log(n Q)`` for those that may repeat.
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

        # Logits less the logs of expected counts, of the targets (B,) and the samples (B, k)
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

        Where the batch shares its samples, that is the mean over the batches that hold the label.
        """
        fraction = counts / counts.sum()
        # (V,) how often each label is expected among the labels drawn for an item
        expected = np.exp(self.log_expected(self.noise.log_prob, self.n_samples))
        rows = self.row_curvature(fraction, expected)
        if self.shared:
            rows = np.minimum(rows / np.minimum(expected, 1), 0.25)
        return {"weight": rows, "bias": rows}

    def row_curvature(self, fraction: Float64, expected: Float64) -> Float64:
        """Return the mean curvature along each label's row (V,).

        `fraction` (V,) are the labels' fractions of the targets, and `expected` (V,) the expected
        numbers of times that they are drawn. By default p (1 - p), which is that of the softmax.
        """
        return fraction * (1 - fraction)


def log_expected_unique(log_prob: Float64, tries: float) -> Float64:
    """Return ``log(1 - (1 - Q)^n)`` from log Q: how often labels are drawn at all in n draws."""
    with np.errstate(divide="ignore"):  # Q is 1 where there is one label
        miss = np.log1p(-np.exp(np.minimum(log_prob, 0)))
        expected: Float64 = np.log(-np.expm1(tries * miss))
    return expected


class CandidateLogits:
    """Logits of each item's target (B,) and samples (B, k), and the gradients through them.

    The items share the labels of the samples (k,), which takes matrix products, or each has its own
    (B, k).
    """

    def __init__(
        self, weight: Array, bias: Array, hidden: Array, targets: Integer, labels: Integer
    ) -> None:
        self._weight = weight
        self._hidden = hidden
        targets = targets.astype(np.int64, copy=False)  # NumPy joins uint64 and int64 as floats
        self._is_shared = labels.ndim == 1
        if self._is_shared:
            # (B + k,) rows of the targets, then of the samples
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
        """Return the gradients, from those with respect to the logits (B,) and (B, k)."""
        hidden = self._hidden
        if self._is_shared:
            grad_hidden = grad_samples @ self._sample_vectors
            grad_hidden += grad_target[:, None] * self._target_vectors
            rows, slot = arithmetic.touched_rows(self._rows, len(self._weight))
            # (B + k, d) inputs of the rows, of which those of a row are summed
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
    """Return the cross entropy of choosing the target among itself and the samples.

    Targets have the logits (B,), samples (B, k); a sample with the logit -inf is left out.
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
    """Return the logistic losses of telling targets, which are true, from samples, which are not.

    Targets have the logits (B,), samples (B, k).
    """
    # -log sigmoid(z_t) - sum_j log sigmoid(-z_j)
    log_prob, grad_target = arithmetic.binary_decision(target, np.ones(1, bool))
    samples_log_prob, grad_samples = arithmetic.binary_decision(samples, np.zeros(1, bool))
    losses = -log_prob - samples_log_prob.sum(axis=1, dtype=np.float64)
    return losses, grad_target, grad_samples


def binary_curvature(fraction: Float64, expected: Float64) -> Float64:
    """Return the mean curvature (V,) of logistic losses along the rows of an untrained layer.

    ``(p + kQ) sigmoid (1 - sigmoid)`` with ``sigmoid = p / (p + kQ)``, for labels that are the
    target with probability p and are drawn kQ times. Whatever training learns, it can only fall.
    """
    return fraction * expected / (fraction + expected)

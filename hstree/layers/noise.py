"""Base of the layers whose loss compares each target with labels drawn from a proposal.

`NoiseLayer` draws the labels, computes their logits and passes the gradients on; a subclass defines
`NoiseLayer.objective`, a function of logits. `softmax_objective` and `binary_objective` are the two
that siblings share. Labels that the whole batch shares take a few matrix products.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse

from hstree._options import Range
from hstree._text import plural
from hstree._typing import Array, Bool, Float64, Int64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.data.windows import Windows
from hstree.errors import OptionError
from hstree.layers import kernels
from hstree.layers.base import Gradients
from hstree.layers.dense import DenseLayer, row_gradients
from hstree.layers.hooks import TrainingHooks
from hstree.layers.proposals import Ids, Rng, Unigram, proposal_of

#: Number of samples by default; a smaller vocabulary is drawn whole.
SAMPLES = 100
#: Smallest share of a label among the samples, for curvatures.
TINY = 1e-12
# Types and ranges of options that several layers have.
Count = Annotated[int, Range(1, 1 << 24)]
Power = Annotated[float, Range(0, 1, exclude_min=True)]
#: Losses (B,), and their derivatives with respect to the logits of targets and samples.
Objective = tuple[Float64, Array, Array]


class Noise(NamedTuple):
    """Labels drawn for a batch, and how often each was to be expected among them.

    `labels` and `log_expected` are (k,) where the items of the batch share the labels, else (B, k):
    infinite for labels to leave out, which were drawn before for the item.
    """

    labels: Int64
    log_expected: Float64
    log_expected_target: Float64  # (B,)


@dataclass(frozen=True)
class Sampling:
    """How the labels are drawn that a layer compares its targets with; see its options.

    E(w), the expected number of times that a label is drawn, is ``k Q(w)``, and among different
    labels ``1 - (1 - Q(w))^n`` for n draws.
    """

    samples: int = SAMPLES  # k, the number of labels drawn
    shared: bool = True  # by the batch; proposals that depend on the context draw for each item
    unique: bool = True  # shared ones until k are different, others k draws without repeats
    proposal: str = "unigram"
    alpha: float = 1.0  # power of the counts in the unigram distribution


class NoiseLayer(DenseLayer, TrainingHooks):
    """Softmax whose loss compares each target with labels drawn from a proposal.

    Training costs O(B k d) a batch of B targets, and k + B rows of the parameters change; testing
    is that of the softmax, V scores.
    """

    is_likelihood = False  # losses are of samples

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        sampling: Sampling,
        *,
        counts: Integer | None,
        dtype: Any,
    ) -> None:
        super().__init__(vocabulary, dim, counts=counts, dtype=dtype)
        self.sampling = sampling
        self.proposal = proposal_of(
            sampling.proposal, vocabulary, counts, alpha=sampling.alpha, dim=dim, dtype=dtype
        )
        self.needs_contexts = self.proposal.needs_contexts

    @abstractmethod
    def objective(self, target: Array, samples: Array, hits: Bool) -> Objective:
        """Return the losses and their derivatives with respect to ``z = s - log(expected count)``.

        They are those of the z of targets (B,) and of samples (B, k), which are -inf for those to
        leave out and may be changed; `hits` (B, k) are the samples that are the target.
        """

    def draw(self, hidden: Array, targets: Integer, contexts: Ids, rng: Rng) -> Noise:
        """Draw labels, and compute how often they and the targets are expected."""
        k, unique, shared = self.sampling.samples, self.sampling.unique, self.sampling.shared
        of_target = self.proposal.log_prob(targets, hidden, contexts)
        if unique and shared and isinstance(self.proposal, Unigram):
            (labels, log_prob), tries = self.proposal.sample_unique(k, rng)
        else:
            labels, log_prob = self.proposal.sample(k, rng, hidden, contexts, shared=shared)
            tries = k
        expected = self.log_expected(log_prob, tries)
        if unique and labels.ndim == 2:  # left out where the same label comes before in the row
            order = np.argsort(labels, axis=1, kind="stable")
            in_order = np.take_along_axis(labels, order, axis=1)
            item, again = np.nonzero(in_order[:, 1:] == in_order[:, :-1])
            expected[item, order[item, again + 1]] = np.inf
        return Noise(labels, expected, self.log_expected(of_target, tries))

    def log_expected(self, log_prob: Float64, tries: float) -> Float64:
        """Return from log Q how often labels are expected among n draws, as its logarithm.

        ``log(1 - (1 - Q)^n)`` for different labels, and ``log(n Q)`` for those that may repeat.
        """
        expected: Float64 = np.log(tries) + log_prob
        if self.sampling.unique:
            with np.errstate(divide="ignore"):  # Q is 1 where there is one label
                miss = np.log1p(-np.exp(np.minimum(log_prob, 0)))
                expected = np.log(-np.expm1(tries * miss))
        return expected

    def loss(
        self, hidden: Array, targets: Integer, rng: Rng, contexts: Ids = None
    ) -> tuple[Float64, Gradients]:
        """Return the losses (B,) against noise in contexts (B, n), and the sum's gradients."""
        noise = self.draw(hidden, targets, contexts, rng)
        logits = CandidateLogits(self.weight, self.bias, hidden, targets, noise.labels)
        target = logits.target - noise.log_expected_target.astype(hidden.dtype)
        samples = logits.samples - noise.log_expected.astype(hidden.dtype)
        hits = noise.labels == targets[:, None]
        losses, grad_target, grad_samples = self.objective(target, samples, hits)
        gradients = logits.backward(grad_target, grad_samples)
        of_proposal = self.proposal.gradients(hidden, targets)
        return losses, Gradients(gradients.hidden, [*gradients.parameters, *of_proposal])

    def loss_in_context(
        self, hidden: Array, targets: Integer, contexts: Integer, rng: Rng
    ) -> tuple[Float64, Gradients]:
        """Return what `loss` does in contexts."""
        return self.loss(hidden, targets, rng, contexts)

    def training_parameters(self) -> dict[str, Array]:
        """Return the trained arrays, and those of the proposal."""
        return {**self.parameters(), **self.proposal.parameters()}

    def curvature(self, counts: Array) -> dict[str, Float64]:
        """Estimate the mean curvature of the loss along each row, per parameter.

        Where the batch shares its samples, that is the mean over the batches that hold the label.
        """
        share = counts / counts.sum()
        # (V,) log Q; of a proposal that depends on the context, near its mean over targets
        log_prob = np.log(np.maximum(share, TINY))
        if not self.proposal.is_conditional:
            log_prob = self.proposal.log_prob(np.arange(self.n_labels), self.weight)
        # (V,) how often each label is expected among the labels drawn for an item
        expected = np.exp(self.log_expected(log_prob, self.sampling.samples))
        rows = self.row_curvature(share, expected)
        if self.sampling.shared and not self.proposal.is_conditional:
            rows = np.minimum(rows / np.minimum(expected, 1), 0.25)
        return {"weight": rows, "bias": rows, **self.proposal.curvature(counts)}

    def row_curvature(self, share: Float64, expected: Float64) -> Float64:
        """Return the mean curvature along each label's row (V,).

        From the labels' shares of the targets, and the expected number of times that each is drawn.
        By default p (1 - p), which is that of the softmax.
        """
        return share * (1 - share)

    def check(self) -> None:
        """Refuse a proposal whose file cannot be used, and more different samples than labels.

        The default number is legal for fewer labels, which are then drawn whole.
        """
        k = self.sampling.samples
        if self.sampling.unique and k > self.n_labels and k != SAMPLES:
            labels = plural(self.n_labels, "label")
            reason = f"is {k}, but there are {labels} to draw from; draw fewer"
            raise OptionError.about("samples", reason)
        self.proposal.check()

    def prepare(self, train: Windows) -> None:
        """Let the proposal read the training text."""
        self.proposal.prepare(train)


class CandidateLogits:
    """Logits of each item's target (B,) and samples (B, k), and the gradients through them.

    The labels of the samples are shared by the items (k,), which takes matrix products, or of each
    item (B, k).
    """

    def __init__(
        self, weight: Array, bias: Array, hidden: Array, targets: Integer, labels: Integer
    ) -> None:
        self._weight, self._hidden = weight, hidden
        self._is_shared = labels.ndim == 1
        if self._is_shared:
            # (B + k,) rows of the targets, then of the samples
            self._rows = np.concatenate([targets, labels])
            vectors = weight.take(self._rows, axis=0)
            self._of_targets, self._of_samples = np.split(vectors, [len(targets)])
            self.target: Array = np.vecdot(hidden, self._of_targets) + bias[targets]
            self.samples: Array = hidden @ self._of_samples.T
            self.samples += bias[labels]
        else:
            # (B, 1 + k) rows of each item: its target, then its samples
            self._rows = np.column_stack([targets, labels])
            item = np.repeat(np.arange(len(targets)), self._rows.shape[1])
            logits = kernels.gather_dot(weight, bias, hidden, item, self._rows.ravel())
            logits = logits.reshape(self._rows.shape)
            self.target, self.samples = logits[:, 0], logits[:, 1:]

    def backward(self, grad_target: Array, grad_samples: Array) -> Gradients:
        """Return the gradients, from those with respect to the logits (B,) and (B, k)."""
        hidden = self._hidden
        if self._is_shared:
            grad_hidden = grad_samples @ self._of_samples
            grad_hidden += grad_target[:, None] * self._of_targets
            rows, slot = kernels.touched_rows(self._rows, len(self._weight))
            # (B + k, d) inputs of the rows; the product below sums those of a row
            inputs = np.concatenate([hidden, grad_samples.T @ hidden])
            scale = np.concatenate([grad_target, np.ones(len(inputs) - len(hidden), hidden.dtype)])
            start = np.arange(len(slot) + 1, dtype=np.int32)
            S = scipy.sparse.csc_array((scale, slot, start), shape=(len(rows), len(slot)))
            grad_weight = S @ inputs
            of_logits = np.concatenate([grad_target, grad_samples.sum(axis=0)])
            grad_bias = np.bincount(slot, of_logits, len(rows)).astype(hidden.dtype)
        else:
            error = np.column_stack([grad_target, grad_samples])
            start = np.arange(len(error) + 1) * error.shape[1]
            grad_hidden, rows, grad_weight, grad_bias = kernels.gather_dot_backward(
                self._weight, hidden, start, self._rows.ravel(), error.ravel()
            )
        return row_gradients(rows, grad_hidden, grad_weight, grad_bias)


def softmax_objective(target: Array, samples: Array) -> Objective:
    """Cross entropy of choosing the target, by its logits (B,), among itself and the samples.

    A sample with the logit (B, k) -inf is left out.
    """
    largest = np.maximum(target, samples.max(axis=1))
    grad_target = np.exp(target - largest)
    grad_samples = np.exp(samples - largest[:, None])
    total = grad_target + grad_samples.sum(axis=1)
    losses = (np.log(total) + largest - target).astype(np.float64)
    grad_target /= total
    grad_samples /= total[:, None]
    return losses, grad_target - 1, grad_samples


def binary_objective(target: Array, samples: Array) -> Objective:
    """Logistic losses of telling targets, which are true, from samples, which are not.

    ``-log sigmoid(target) - sum log sigmoid(-samples)`` of logits (B,) and (B, k).
    """
    log_prob, grad_target = kernels.binary_decision(target, np.ones(1, bool))
    log_prob_of_samples, grad_samples = kernels.binary_decision(samples, np.zeros(1, bool))
    losses = -log_prob - log_prob_of_samples.sum(axis=1, dtype=np.float64)
    return losses, grad_target, grad_samples


def binary_curvature(share: Float64, expected: Float64) -> Float64:
    """Return the mean curvature (V,) of logistic losses along the rows of an untrained layer.

    ``(p + kQ) sigmoid (1 - sigmoid)`` with ``sigmoid = p / (p + kQ)``, for labels that are the
    target with probability p and are drawn kQ times. Whatever training learns, it can only fall.
    """
    return share * expected / (share + expected)

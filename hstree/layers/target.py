"""Target sampling: a softmax over the targets in a partition of the training text."""

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from hstree._arrays import Array, Bool, Float64, Int64, Integer
from hstree.data.vocabulary import Vocabulary
from hstree.data.windows import Batch, ContextBatches
from hstree.layers.base import Gradients
from hstree.layers.dense import DenseLayer, row_gradients, softmax_loss


class TargetSampling(DenseLayer):
    """Softmax that is trained only over the targets in a partition of the training text.

    The text is divided into partitions. While the model trains on a partition, the softmax has only
    its candidates C, the distinct targets in the partition: ``-s_w + ln sum_{v in C} exp s_v`` with
    ``s = W h + b``. This is importance sampling with a proposal that is uniform over C and
    therefore cancels out. In testing, it is the softmax over all V words.

    In the paper, a partition is a contiguous part of the text. Here, training reads the text in
    random order, and a partition is a run of consecutive batches that contains `candidates`
    distinct targets; every epoch has new partitions. The probability that a word is a candidate is
    therefore known: ``q_v = 1 - (1 - n / T)^c_v`` for a word that occurs c_v times in a text of T
    tokens, in a partition of n tokens. The loss uses ``s_v - ln q_v`` in place of s_v, as in
    sampled softmax, so that the exact softmax minimises the expected loss. Without this correction,
    as in the paper, a rare word is compared with other words only when it is a target, and its
    probability becomes too high.

    A target costs ``|C|`` scores in training and V in testing; V (d + 1) parameters. In a direct
    call of `loss`, without `arrange`, all words are candidates.

    Parameters
    ----------
    candidates : int
        Number of distinct targets that completes a partition; V or more means all words.

    References
    ----------
    S. Jean, K. Cho, R. Memisevic & Y. Bengio, "On using very large target vocabulary for neural
    machine translation", ACL 2015, section 3.
    """

    is_likelihood = False  # losses depend on the candidates

    def __init__(
        self,
        vocabulary: Vocabulary,
        dim: int,
        *,
        counts: Integer | None = None,
        dtype: Any = np.float32,
        candidates: Annotated[int, Meta(ge=1)] = 1000,
    ) -> None:
        super().__init__(vocabulary, dim, counts=counts, dtype=dtype)
        self.candidates = candidates
        # (V,) expected count of each word as a target in an epoch
        self._targets = np.maximum(vocabulary.counts if counts is None else counts, 0.5)
        self._select_all()

    def prepare(self, train: ContextBatches) -> None:
        """Count the targets of the training text."""
        self._targets = np.maximum(train.training_counts, 0.5)

    def arrange(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield the batches in order, and select the candidates of their partition."""
        if self.candidates >= self.n_labels:
            yield from batches
            return
        partition: list[Batch] = []
        is_candidate = np.zeros(self.n_labels, np.bool_)
        try:
            for batch in batches:
                # A partition ends when it has enough distinct targets
                partition.append(batch)
                is_candidate[batch[1]] = True
                if np.count_nonzero(is_candidate) >= self.candidates:
                    self._select(is_candidate, sum(len(targets) for _, targets, _ in partition))
                    yield from partition
                    partition = []
                    is_candidate[:] = False
            if partition:
                self._select(is_candidate, sum(len(targets) for _, targets, _ in partition))
                yield from partition
        finally:
            # Outside training, the softmax has all labels
            self._select_all()

    def loss(
        self, hidden: Array, targets: Integer, rng: np.random.Generator
    ) -> tuple[Float64, Gradients]:
        """Return the losses of the softmax over the candidates, and their gradients."""
        rows = self._rows
        # (B,) index of each target among the candidates
        candidate = self._slot[targets]
        bias = self.bias[rows] - self._log_q
        log_z, target_logit, gradients = softmax_loss(hidden, self.weight[rows], bias, candidate)
        return log_z - target_logit, row_gradients(rows, *gradients)

    def _select(self, is_candidate: Bool, n_tokens: int) -> None:
        """Select the candidates (V,) of a partition with `n_tokens` tokens."""
        self._rows: Int64 | slice = np.flatnonzero(is_candidate)
        # (V,) index of each word among the candidates; meaningless for other words
        self._slot = np.cumsum(is_candidate) - 1
        fraction = min(1.0, n_tokens / self._targets.sum())
        with np.errstate(divide="ignore"):
            q = -np.expm1(self._targets[self._rows] * np.log1p(-fraction))
        self._log_q: Array = np.log(q).astype(self.bias.dtype)

    def _select_all(self) -> None:
        """Select all words as candidates."""
        self._rows = slice(0, self.n_labels)
        self._slot = np.arange(self.n_labels)
        self._log_q = np.zeros(1, self.bias.dtype)

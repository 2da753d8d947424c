"""Softmax over the targets of a partition of the training text (target sampling)."""

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
    """Softmax over the targets of a partition of the training text, in training.

    The text is divided into partitions. While one is trained on, the softmax is taken over its
    candidates C alone, the different words that are targets in it: ``-s_w + ln sum_{v in C} exp
    s_v`` with ``s = W h + b``. That is importance sampling whose proposal is uniform over C, so
    that the proposal cancels out. In testing it is the softmax over all V words.

    Partitions of the paper are stretches of the text in its order, each of one set of sentences.
    Here training reads the text in random order, and a partition is a run of consecutive batches
    of that order, as many as hold `candidates` different targets; every epoch has new ones. Then
    the probability of being a candidate is known: ``q_v = 1 - (1 - n / T)^c_v`` for a word that
    occurs c_v times in a text of T tokens, in a partition of n. ``s_v - ln q_v`` takes the place of
    s_v, as in sampled softmax, so that the exact softmax has the least expected loss. Without that,
    as in the paper, a rare word is compared with the others only where it is a target, and becomes
    too probable.

    One target costs ``|C|`` scores in training and V in testing; V (d + 1) parameters. Batches
    that training did not arrange, as in a direct call of `loss`, have all words as candidates.

    Parameters
    ----------
    candidates : int
        Number of different targets at which a partition is complete; V or more means all words.

    References
    ----------
    S. Jean, K. Cho, R. Memisevic & Y. Bengio, "On using very large target vocabulary for neural
    machine translation", ACL 2015, section 3.
    """

    is_likelihood = False  # losses are over the candidates

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
        # (V,) expected number of times that each word is a target in an epoch
        self._targets = np.maximum(vocabulary.counts if counts is None else counts, 0.5)
        self._select_all()

    def prepare(self, train: ContextBatches) -> None:
        """Count the targets of the training text."""
        self._targets = np.maximum(train.training_counts, 0.5)

    def arrange(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield the batches in their order, with the candidates of their partition selected."""
        if self.candidates >= self.n_labels:
            yield from batches
            return
        partition: list[Batch] = []
        is_candidate = np.zeros(self.n_labels, np.bool_)
        try:
            for batch in batches:
                # A partition ends when enough distinct labels are targets in it
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
            # Scores outside training are over all labels
            self._select_all()

    def loss(
        self, hidden: Array, targets: Integer, rng: np.random.Generator
    ) -> tuple[Float64, Gradients]:
        """Return the losses of the softmax over the candidates, and their gradients."""
        rows = self._rows
        # index of each target among the candidates
        candidate = self._slot[targets]
        bias = self.bias[rows] - self._log_q
        log_z, target_logit, gradients = softmax_loss(hidden, self.weight[rows], bias, candidate)
        return log_z - target_logit, row_gradients(rows, *gradients)

    def _select(self, is_candidate: Bool, n_tokens: int) -> None:
        """Make these words (V,) the candidates of a partition of `n_tokens`."""
        self._rows: Int64 | slice = np.flatnonzero(is_candidate)
        # (V,) index of each word among the candidates, if it is one
        self._slot = np.cumsum(is_candidate) - 1
        fraction = min(1.0, n_tokens / self._targets.sum())
        with np.errstate(divide="ignore"):
            q = -np.expm1(self._targets[self._rows] * np.log1p(-fraction))
        self._log_q: Array = np.log(q).astype(self.bias.dtype)

    def _select_all(self) -> None:
        """Make all words candidates."""
        self._rows = slice(0, self.n_labels)
        self._slot = np.arange(self.n_labels)
        self._log_q = np.zeros(1, self.bias.dtype)

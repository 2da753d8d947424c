"""The loop over epochs that every training shares: what is said, what is kept, when it stops.

The best weights by validation perplexity are kept; without a validation text, the last ones.
Ctrl-C keeps the best so far. How a batch moves the weights, at which rate, and whether a stalled
validation changes anything, is for each trainer to say (`models.lbl_training`,
`models.word2vec_training`).
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from hstree import progress
from hstree._typing import Array, Integer
from hstree.data.text_score import perplexity
from hstree.data.windows import Batch, Windows
from hstree.errors import TrainingError
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.training.context_model import ContextModel
from hstree.training.scoring import score

M = TypeVar("M", bound=ContextModel)


@dataclass(frozen=True)
class Epoch:
    """What one epoch did.

    Attributes
    ----------
    epoch : int
        From 1.
    train : float
        The running perplexity while it trained, with dropout.
    valid : float or None
        The validation perplexity after it.
    seconds : float
        Wall-clock time of the training pass, without the validation.
    tokens_per_second : float
    learning_rate : float
    """

    epoch: int
    train: float
    valid: float | None
    seconds: float
    tokens_per_second: float
    learning_rate: float


@dataclass
class History:
    """The epochs of a training, and how it ended.

    Attributes
    ----------
    epochs : list of Epoch
    interrupted : bool
        By Ctrl-C.
    converged : bool
        Whether it ended because the validation perplexity fell no more, not at its limit of epochs.
    """

    epochs: list[Epoch] = field(default_factory=list)
    interrupted: bool = False
    converged: bool = False


class Trainer(ABC, Generic[M]):
    """Trains a context model and an output layer together, in place.

    Parameters
    ----------
    model : ContextModel
    layer : HierarchicalSoftmax
    epochs : int
        At the most.
    """

    def __init__(self, model: M, layer: HierarchicalSoftmax, epochs: int) -> None:
        self.model, self.layer, self.epochs = model, layer, epochs

    @abstractmethod
    def batches(self, train: Windows) -> Iterator[Batch]:
        """Yield the batches of one epoch, in random order."""

    @abstractmethod
    def step(self, contexts: Integer, targets: Integer, learning_rate: float) -> float:
        """Train on one batch; return its summed loss in nats."""

    @abstractmethod
    def learning_rate(self, done: float) -> float:
        """Return the rate after `done` epochs, a fraction in the middle of one."""

    def on_validation(self, valid: float, best: float) -> bool:
        """Look at a validation perplexity; say whether to stop."""
        return False

    def expected(self, train: Windows) -> float:
        """Return about how many targets an epoch has."""
        return len(train)

    def fit(self, train: Windows, valid: Windows | None = None) -> History:
        """Train, and leave the best weights in place.

        Without `valid` the last weights are kept.

        Raises
        ------
        TrainingError
            When an epoch ends with a perplexity that is no finite number, or had no token.
        """
        history = History()
        best, best_weights = math.inf, self._copy() if valid else []
        try:
            for number in range(1, self.epochs + 1):
                # What overflows shows in the perplexity, which is looked at next.
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    epoch = self._epoch(number, train, valid)
                _check_finite(epoch)
                history.epochs.append(epoch)
                if epoch.valid is None:
                    continue
                history.converged = self.on_validation(epoch.valid, best)
                if epoch.valid < best:
                    best, best_weights = epoch.valid, self._copy()
                if history.converged:
                    break
        except KeyboardInterrupt:
            history.interrupted = True
        if best < math.inf:
            self._restore(best_weights)
        return history

    def _epoch(self, number: int, train: Windows, valid: Windows | None) -> Epoch:
        nll, tokens, expected = 0.0, 0, self.expected(train)
        started_at = self.learning_rate(number - 1)
        start = time.perf_counter()
        with progress.task(f"epoch {number}/{self.epochs}", expected, "tokens") as task:
            for contexts, targets, _ in self.batches(train):
                rate = self.learning_rate(number - 1 + min(1.0, tokens / expected))
                nll += self.step(contexts, targets, rate)
                tokens += len(targets)
                task.advance(len(targets))
                task.note(f"perplexity {perplexity(nll, tokens):.1f}")
        if tokens == 0:
            raise TrainingError(
                f"sub-sampling left none of the {len(train):,} tokens of {train.corpus.name} to "
                "train on; give more text, or sample 0, which keeps every word"
            )
        seconds = time.perf_counter() - start
        after = None if valid is None else score(self.model, self.layer, valid).perplexity
        return Epoch(
            number, perplexity(nll, tokens), after, seconds, len(train) / seconds, started_at
        )

    def _copy(self) -> list[Array]:
        return [p.copy() for p in self._parameters()]

    def _restore(self, weights: list[Array]) -> None:
        for parameter, kept in zip(self._parameters(), weights, strict=True):
            parameter[...] = kept

    def _parameters(self) -> tuple[Array, ...]:
        return *self.model.tensors().values(), self.layer.weight, self.layer.bias


def _check_finite(epoch: Epoch) -> None:
    for part, found in (("training", epoch.train), ("validation", epoch.valid)):
        if found is not None and not math.isfinite(found):
            raise TrainingError(
                f"the training diverged: the {part} perplexity of epoch {epoch.epoch} is {found}; "
                f"lower the learning rate, which is {epoch.learning_rate:g}"
            )

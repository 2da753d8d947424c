"""Loop over epochs that all trainings share.

The weights with the best validation perplexity are kept, the last ones without a validation text.
Ctrl-C keeps the best so far. Subclasses of `Trainer` define batches, steps and learning rates.
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
from hstree._typing import Integer
from hstree.data.text_score import perplexity
from hstree.data.windows import Batch, Windows
from hstree.errors import TrainingError
from hstree.layers.base import OutputLayer
from hstree.training.scoring import ContextModel, score

M = TypeVar("M", bound=ContextModel)


@dataclass(frozen=True)
class Epoch:
    """Figures of one epoch, counted from 1.

    Attributes
    ----------
    train : float
        Running perplexity of the training text, with dropout.
    valid : float or None
        Validation perplexity after the epoch.
    seconds : float
        Wall-clock time without the validation.
    learning_rate : float
        At the start of the epoch.
    """

    epoch: int
    train: float
    valid: float | None
    seconds: float
    tokens_per_second: float
    learning_rate: float


@dataclass
class History:
    """Epochs of a training, and how it ended.

    Attributes
    ----------
    interrupted : bool
        Whether Ctrl-C ended it.
    converged : bool
        Whether it ended before the limit of epochs: the validation perplexity stopped falling.
    """

    epochs: list[Epoch] = field(default_factory=list)
    interrupted: bool = False
    converged: bool = False


class Trainer(ABC, Generic[M]):
    """Trains a context model and an output layer together, in place.

    Parameters
    ----------
    model : ContextModel
    layer : OutputLayer
    epochs : int
        Maximum number of epochs.
    """

    def __init__(self, model: M, layer: OutputLayer, epochs: int) -> None:
        self.model, self.layer, self.epochs = model, layer, epochs

    @abstractmethod
    def batches(self, train: Windows) -> Iterator[Batch]:
        """Yield the batches of one epoch, in random order."""

    @abstractmethod
    def step(self, contexts: Integer, targets: Integer, learning_rate: float) -> float:
        """Train on one batch; return its summed loss in nats."""

    @abstractmethod
    def learning_rate(self, done: float) -> float:
        """Return the learning rate after `done` epochs, a fraction in the middle of one."""

    def on_validation(self, valid: float, best: float) -> bool:
        """Update the schedule after a validation; return True to stop.

        `valid` is the validation perplexity, `best` the lowest one before it, infinity at first.
        """
        return False

    def epoch_batches(self, train: Windows) -> Iterator[Batch]:
        """Yield the batches of one epoch in the order that the output layer wants."""
        return self.layer.arrange(self.batches(train))

    def expected(self, train: Windows) -> float:
        """Return the expected number of targets in an epoch."""
        return len(train)

    def fit(self, train: Windows, valid: Windows | None = None) -> History:
        """Train, and leave the best weights in place; the last ones without `valid`.

        Raises
        ------
        TrainingError
            When an epoch ends with a perplexity that is not finite, or had no token.
        """
        history = History()
        parameters = [*self.model.parameters().values(), *self.layer.parameters().values()]
        best, best_weights = math.inf, parameters  # as they are, until a validation
        try:
            for number in range(1, self.epochs + 1):
                # Overflows show in the perplexity, which is checked next.
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    epoch = self._epoch(number, train, valid)
                _check_finite(epoch)
                history.epochs.append(epoch)
                if epoch.valid is None:
                    continue
                history.converged = self.on_validation(epoch.valid, best)
                if epoch.valid < best:
                    best, best_weights = epoch.valid, [p.copy() for p in parameters]
                if history.converged:
                    break
        except KeyboardInterrupt:
            history.interrupted = True
        for parameter, kept in zip(parameters, best_weights, strict=True):
            parameter[...] = kept
        return history

    def _epoch(self, number: int, train: Windows, valid: Windows | None) -> Epoch:
        nll, tokens, expected = 0.0, 0, self.expected(train)
        rate_at_start = self.learning_rate(number - 1)
        start = time.perf_counter()
        with progress.task(f"epoch {number}/{self.epochs}", expected, "tokens") as task:
            for contexts, targets, _ in self.epoch_batches(train):
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
            number, perplexity(nll, tokens), after, seconds, len(train) / seconds, rate_at_start
        )


def _check_finite(epoch: Epoch) -> None:
    for part, value in (("training", epoch.train), ("validation", epoch.valid)):
        if value is not None and not math.isfinite(value):
            raise TrainingError(
                f"the training diverged: the {part} perplexity of epoch {epoch.epoch} is {value}; "
                f"lower the learning rate, which is {epoch.learning_rate:g}"
            )

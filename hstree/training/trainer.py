"""Loop over epochs that all trainings share.

The weights with the best validation perplexity are kept, the last ones without a validation text.
Ctrl-C keeps the best so far. Subclasses of `Trainer` define batches, steps and learning rates.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from hstree import progress
from hstree._typing import Integer
from hstree.data.text_score import perplexity
from hstree.data.windows import Batch, Windows
from hstree.errors import TrainingError
from hstree.layers.base import OutputLayer
from hstree.training.ahead import ahead
from hstree.training.scoring import ContextModel, score

M = TypeVar("M", bound=ContextModel)


@dataclass(frozen=True)
class Epoch:
    """Figures of one epoch, counted from 1.

    Attributes
    ----------
    train : float or None
        Running perplexity of the training text, with dropout; None where losses are not negative
        log-likelihoods (`OutputLayer.is_likelihood`).
    valid : float or None
        Validation perplexity after the epoch.
    seconds : float
        Wall-clock time without the validation.
    learning_rate : float
        At the start of the epoch.
    share : float
        Share of the epoch's targets that were trained on; below 1 in the last epoch of a training
        whose budget of seconds ended inside it.
    """

    epoch: int
    train: float | None
    valid: float | None
    seconds: float
    tokens_per_second: float
    learning_rate: float
    share: float = 1.0


@dataclass
class History:
    """Epochs of a training, and how it ended.

    Attributes
    ----------
    interrupted : bool
        Whether Ctrl-C ended it.
    converged : bool
        Whether it ended before its limits: the validation perplexity stopped falling.
    out_of_time : bool
        Whether its budget of seconds ended it; then it is neither interrupted nor converged.
    preparation : float
        Seconds that the output layer took before the first batch: to count n-grams, say.
    kernels : str
        "numpy" where compiled kernels were switched off or missing; else numba and its version.
    """

    epochs: list[Epoch] = field(default_factory=list)
    interrupted: bool = False
    converged: bool = False
    out_of_time: bool = False
    preparation: float = 0.0
    kernels: str = ""


class Trainer(ABC, Generic[M]):
    """Trains a context model and an output layer together, in place.

    Parameters
    ----------
    model : ContextModel
    layer : OutputLayer
    epochs : int
        Maximum number of epochs.
    seconds : float, optional
        Budget of training in seconds of wall-clock time, validations not counted; no limit by
        default. The batch in which it runs out is the last, also inside an epoch; a validation
        follows as after every epoch. Schedules that fall until the last epoch (`learning_rate`)
        fall until the budget's end instead if that comes first; those that change after an epoch
        (`on_validation`) do not change inside one.
    """

    def __init__(
        self, model: M, layer: OutputLayer, epochs: int, seconds: float | None = None
    ) -> None:
        self.model, self.layer, self.epochs, self.seconds = model, layer, epochs, seconds
        #: the targets of batches that come next, and what was prepared for these
        self._ready: deque[tuple[Integer, Any]] = deque()

    @abstractmethod
    def batches(self, train: Windows) -> Iterator[Batch]:
        """Yield the batches of one epoch, in random order."""

    @abstractmethod
    def step(self, contexts: Integer, targets: Integer, learning_rate: float) -> float:
        """Train on one batch; return its summed loss in nats."""

    @abstractmethod
    def learning_rate(self, done: float) -> float:
        """Return the learning rate after `done` epochs, a fraction in the middle of one.

        Under a budget of seconds, `done` is at least the spent share of it times all epochs.
        """

    def on_validation(self, valid: float, best: float) -> bool:
        """Update the schedule after a validation; return True to stop.

        `valid` is the validation perplexity, `best` the lowest one before it, infinity at first.
        """
        return False

    def epoch_batches(self, train: Windows) -> Iterator[Batch]:
        """Yield the batches of one epoch, with what steps on them need prepared."""
        self._ready.clear()
        return self.layer.arrange(ahead(self._announced(self.batches(train))))

    def prepare(self, contexts: Integer, targets: Integer) -> Any:
        """Return what a step needs of a batch beside parameters: what it draws, how it is laid out.

        It is called in the order of the batches, maybe in another thread and ahead of `step`.
        """
        return None

    def prepared(self, contexts: Integer, targets: Integer) -> Any:
        """Return what was prepared for a batch, or prepare it now."""
        if self._ready and self._ready[0][0] is targets:
            return self._ready.popleft()[1]
        return self.prepare(contexts, targets)

    def _announced(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        for batch in batches:
            contexts, targets, _ = batch
            self._ready.append((targets, self.prepare(contexts, targets)))
            yield batch

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
        spent = 0.0  # seconds of the epochs so far
        try:
            for number in range(1, self.epochs + 1):
                # Overflows show in the perplexity, which is checked next.
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    epoch = self._epoch(number, train, valid, spent)
                history.epochs.append(epoch)
                spent += epoch.seconds
                history.out_of_time = self.seconds is not None and spent >= self.seconds
                if epoch.valid is not None:
                    if not history.out_of_time:
                        history.converged = self.on_validation(epoch.valid, best)
                    if epoch.valid < best:
                        best, best_weights = epoch.valid, [p.copy() for p in parameters]
                if history.converged or history.out_of_time:
                    break
        except KeyboardInterrupt:
            history.interrupted = True
        for parameter, kept in zip(parameters, best_weights, strict=True):
            parameter[...] = kept
        return history

    def _epoch(self, number: int, train: Windows, valid: Windows | None, spent: float) -> Epoch:
        """Train for one epoch, or until the budget ends, of which `spent` seconds are over."""
        nll, tokens, expected, share = 0.0, 0, self.expected(train), 1.0
        limit = math.inf if self.seconds is None else self.seconds
        is_likelihood = self.layer.is_likelihood
        rate_at_start = self.learning_rate(self._done(number - 1, spent))
        title = f"epoch {number}/{self.epochs}"
        if self.seconds is not None:
            title = f"epoch {number}, from {spent:.0f} of {limit:g} s on"
        start = time.perf_counter()
        with progress.task(title, expected, "tokens") as task:
            for contexts, targets, _ in self.epoch_batches(train):
                done = number - 1 + min(1.0, tokens / expected)
                elapsed = spent + time.perf_counter() - start
                nll += self.step(contexts, targets, self.learning_rate(self._done(done, elapsed)))
                tokens += len(targets)
                task.advance(len(targets))
                running = perplexity(nll, tokens)
                task.note(f"{'perplexity' if is_likelihood else 'exp(loss)'} {running:.1f}")
                if spent + time.perf_counter() - start >= limit:
                    share = min(1.0, tokens / expected)
                    break
        if tokens == 0:
            raise TrainingError(
                f"sub-sampling left none of the {len(train):,} tokens of {train.corpus.name} to "
                "train on; give more text, or sample 0, which keeps every word"
            )
        seconds = time.perf_counter() - start
        after = None if valid is None else score(self.model, self.layer, valid).perplexity
        speed = share * len(train) / seconds
        running = perplexity(nll, tokens)
        _check_finite(number, {"training": running, "validation": after}, rate_at_start)
        train_perplexity = running if is_likelihood else None
        return Epoch(number, train_perplexity, after, seconds, speed, rate_at_start, share)

    def _done(self, epochs: float, seconds: float) -> float:
        """Return the epochs that the schedule counts as done, by epochs and by seconds."""
        by_time = 0.0 if self.seconds is None else min(1.0, seconds / self.seconds)
        return max(epochs, self.epochs * by_time)


def _check_finite(epoch: int, perplexities: Mapping[str, float | None], rate: float) -> None:
    for part, value in perplexities.items():
        if value is not None and not math.isfinite(value):
            raise TrainingError(
                f"the training diverged: the {part} perplexity of epoch {epoch} is {value}; "
                f"lower the learning rate, which is {rate:g}"
            )

"""The trainer: minibatches, Adagrad on touched rows, the same schedule for every tree.

The learning rate is halved when the validation perplexity stalls, training stops when it has not
fallen for some epochs, and the best weights are kept; Ctrl-C keeps the best so far. Two trees
over the same words get the same batches and the same dropout, for these depend on the seed and
the text alone.
"""

from __future__ import annotations

import math
import numbers
import time
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hstree import progress
from hstree.errors import OptionError, TrainingError
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.models.lbl import LogBilinear
from hstree.optimiser import RowAdagrad
from hstree.scoring import perplexity, score
from hstree.windows import Windows

Array = NDArray[Any]

#: A validation perplexity that falls by less than this share has stalled.
STALL = 0.002
#: Epochs without a new best after which training stops.
PATIENCE = 3


@dataclass(frozen=True)
class TrainingOptions:
    """How to train; the same for every tree that is compared.

    Attributes
    ----------
    epochs : int
        At the most; 0 leaves the model untrained.
    batch_size : int
        Positions in a minibatch.
    learning_rate : float
        Adagrad's, at the start.
    dropout : float
        The probability that an element of a context's hidden vector is left out, in [0, 1).
    weight_decay : float
        The L2 penalty on word and node vectors, for each token trained on; 0 or more. On the
        scale of PyTorch's, whose losses are means over tokens.
    random_state : int
        Seeds the batches and the dropout.
    """

    epochs: int = 20
    batch_size: int = 256
    learning_rate: float = 0.1
    dropout: float = 0.35
    weight_decay: float = 1.5e-5
    random_state: int = 0

    def __post_init__(self) -> None:
        for field_ in fields(self):
            value = getattr(self, field_.name)
            kind = numbers.Integral if field_.type == "int" else numbers.Real
            if isinstance(value, bool) or not isinstance(value, kind):
                what = "whole number" if kind is numbers.Integral else "number"
                raise OptionError(f"{field_.name} is {value!r}; it must be a {what}")
        for name, legal, expected in (
            ("epochs", self.epochs >= 0, "0 or more"),
            ("batch_size", self.batch_size >= 1, "1 or more"),
            ("learning_rate", 0 < self.learning_rate < math.inf, "above 0"),
            ("dropout", 0 <= self.dropout < 1, "at least 0 and below 1"),
            ("weight_decay", 0 <= self.weight_decay < math.inf, "0 or more"),
            ("random_state", self.random_state >= 0, "0 or more"),
        ):
            if not legal:
                raise OptionError(f"{name} is {getattr(self, name)}; it must be {expected}")


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
    """The epochs of a training, and whether it was interrupted."""

    epochs: list[Epoch] = field(default_factory=list)
    interrupted: bool = False


class Trainer:
    """Trains a context model and an output layer together, in place."""

    def __init__(
        self, model: LogBilinear, layer: HierarchicalSoftmax, options: TrainingOptions
    ) -> None:
        self.model, self.layer, self.options = model, layer, options
        self.embedding = RowAdagrad(model.embedding, options.weight_decay)
        self.position = RowAdagrad(model.position)
        self.weight = RowAdagrad(layer.weight, options.weight_decay)
        self.bias = RowAdagrad(layer.bias)
        self._tokens = 0
        self._rng = np.random.default_rng([options.random_state, 1])

    def fit(self, train: Windows, valid: Windows | None = None) -> History:
        """Train, and leave the best weights in place.

        Without `valid` the learning rate stays as it is and the last weights are kept.

        Raises
        ------
        TrainingError
            When an epoch ends with a perplexity that is no finite number.
        """
        history = History()
        learning_rate = self.options.learning_rate
        best, best_weights, since_best = math.inf, self._copy(), 0
        try:
            for number in range(1, self.options.epochs + 1):
                title = f"epoch {number}/{self.options.epochs}"
                # What overflows shows in the perplexity, which is looked at next.
                with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                    epoch = self._epoch(number, title, train, valid, learning_rate)
                _check_finite(epoch)
                history.epochs.append(epoch)
                if epoch.valid is None:
                    continue
                if epoch.valid > best * (1 - STALL):
                    learning_rate /= 2
                since_best += 1
                if epoch.valid < best:
                    best, best_weights, since_best = epoch.valid, self._copy(), 0
                if since_best == PATIENCE:
                    break
        except KeyboardInterrupt:
            history.interrupted = True
        if best < math.inf:
            self._restore(best_weights)
        return history

    def _epoch(
        self,
        number: int,
        title: str,
        train: Windows,
        valid: Windows | None,
        learning_rate: float,
    ) -> Epoch:
        nll, tokens = 0.0, 0
        start = time.perf_counter()
        with progress.task(title, len(train), "tokens") as task:
            for contexts, targets, _ in train.batches(self.options.batch_size, self._rng):
                nll += self.step(contexts, targets, learning_rate)
                tokens += len(targets)
                task.advance(len(targets))
                task.note(f"perplexity {perplexity(nll, tokens):.1f}")
        seconds = time.perf_counter() - start
        after = None if valid is None else score(self.model, self.layer, valid).perplexity
        return Epoch(
            number, perplexity(nll, tokens), after, seconds, tokens / seconds, learning_rate
        )

    def step(
        self, contexts: NDArray[np.integer], targets: NDArray[np.integer], learning_rate: float
    ) -> float:
        """Train on one batch; return its summed loss in nats."""
        self._tokens += len(targets)
        hidden, given = self.model.forward(contexts)
        keep = self._dropout(hidden.shape)
        losses, gradients = self.layer.loss(hidden * keep, targets)
        by_hidden = gradients.hidden * keep
        by_embedding, by_position = self.model.backward(contexts, given, by_hidden)
        self.embedding.step(by_embedding.rows, by_embedding.weight, learning_rate, self._tokens)
        self.position.step(slice(None), by_position, learning_rate)
        for of_rows in gradients.rows:
            self.weight.step(of_rows.rows, of_rows.weight, learning_rate, self._tokens)
            self.bias.step(of_rows.rows, of_rows.bias, learning_rate)
        return float(losses.sum())

    def _dropout(self, shape: tuple[int, ...]) -> Array | np.float32:
        """Return the scale of every element, 0 where it is left out."""
        rate = np.float32(self.options.dropout)
        if rate == 0:
            return np.float32(1)
        return (self._rng.random(shape, np.float32) >= rate) * (1 / (1 - rate))

    def _copy(self) -> list[Array]:
        return [p.copy() for p in self._parameters()]

    def _restore(self, weights: list[Array]) -> None:
        for parameter, kept in zip(self._parameters(), weights, strict=True):
            parameter[...] = kept

    def _parameters(self) -> tuple[Array, ...]:
        return self.model.embedding, self.model.position, self.layer.weight, self.layer.bias


def _check_finite(epoch: Epoch) -> None:
    for part, found in (("training", epoch.train), ("validation", epoch.valid)):
        if found is not None and not math.isfinite(found):
            raise TrainingError(
                f"the training diverged: the {part} perplexity of epoch {epoch.epoch} is {found}; "
                f"lower the learning rate, which is {epoch.learning_rate:g}"
            )

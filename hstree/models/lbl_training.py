"""The log-bilinear model's trainer: minibatches, Adagrad on touched rows, the same for every tree.

The learning rate is halved when the validation perplexity stalls, and training stops when it has
not fallen for some epochs. Two trees over the same words get the same batches and the same
dropout, for these depend on the seed and the text alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from hstree._options import RandomState, Range, check_fields
from hstree._typing import Array, Integer
from hstree.data.windows import Batch, Windows
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.models.lbl import LogBilinear
from hstree.training.adagrad import RowAdagrad
from hstree.training.loop import Trainer

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
        Seeds the batches and the dropout. The same seed gives the same weights, byte for byte, on
        the same number of BLAS threads; with another number, trees with wide nodes and full
        matrices differ in the last digits.
    """

    epochs: Annotated[int, Range(0)] = 20
    batch_size: Annotated[int, Range(1)] = 256
    learning_rate: Annotated[float, Range(0, exclude_min=True)] = 0.1
    dropout: Annotated[float, Range(0, 1, exclude_max=True)] = 0.35
    weight_decay: Annotated[float, Range(0)] = 1.5e-5
    random_state: RandomState = 0

    def __post_init__(self) -> None:
        check_fields(self)


class LogBilinearTrainer(Trainer[LogBilinear]):
    """Trains a log-bilinear model and an output layer together, in place."""

    def __init__(
        self, model: LogBilinear, layer: HierarchicalSoftmax, options: TrainingOptions
    ) -> None:
        super().__init__(model, layer, options.epochs)
        self.options = options
        self.embedding = RowAdagrad(model.embedding, options.weight_decay)
        self.position = RowAdagrad(model.position)
        self.weight = RowAdagrad(layer.weight, options.weight_decay)
        self.bias = RowAdagrad(layer.bias)
        self._tokens = 0
        self._rng = np.random.default_rng([options.random_state, 1])
        self._rate, self._since_best = options.learning_rate, 0

    def batches(self, train: Windows) -> Iterator[Batch]:
        """Yield the batches of one epoch, in random order."""
        return train.batches(self.options.batch_size, self._rng)

    def learning_rate(self, done: float) -> float:
        """Return the rate, the same all through an epoch."""
        return self._rate

    def on_validation(self, valid: float, best: float) -> bool:
        """Halve the rate where the validation perplexity stalls; stop after some epochs of it."""
        if valid > best * (1 - STALL):
            self._rate /= 2
        self._since_best = 0 if valid < best else self._since_best + 1
        return self._since_best == PATIENCE

    def step(self, contexts: Integer, targets: Integer, learning_rate: float) -> float:
        """Train on one batch; return its summed loss in nats."""
        self._tokens += len(targets)
        hidden, given = self.model.forward(contexts)
        keep = self._dropout(hidden.shape)
        losses, gradients = self.layer.loss(hidden * keep, targets)
        grad_hidden = gradients.hidden * keep
        grad_embedding, grad_position = self.model.backward(contexts, given, grad_hidden)
        self.embedding.step(grad_embedding.rows, grad_embedding.weight, learning_rate, self._tokens)
        self.position.step(slice(None), grad_position, learning_rate)
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

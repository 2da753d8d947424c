"""Training as in word2vec: gradient descent at a rate that falls linearly, in minibatches.

The rate goes from `learning_rate` down to a ten-thousandth of it by the share of the training
that is done. What a batch does to rows that it touches often is in `training.sgd`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from hstree._options import RandomState, Range, check_fields
from hstree._typing import Integer
from hstree.data.windows import Batch, Windows
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.models.cbow import Cbow, Loss
from hstree.training.loop import Trainer
from hstree.training.sgd import DampedSGD
from hstree.tree.weight_rows import row_curvature

#: The rate does not fall below this share of what it was at the start.
LOWEST = 1e-4


@dataclass(frozen=True)
class Word2VecOptions:
    """How to train.

    Attributes
    ----------
    epochs : int
        0 leaves the model untrained.
    batch_size : int
        Positions in a minibatch.
    learning_rate : float
        At the start.
    sample : float
        Sub-sampling of frequent words; see `hstree.data.symmetric_windows.SymmetricWindows`.
    random_state : int
        Seeds the batches, the sub-sampling and the reach of windows. The same seed gives the same
        weights, byte for byte, on the same number of BLAS threads; with another number, trees
        with wide nodes differ in the last digits.
    """

    epochs: Annotated[int, Range(0)]
    batch_size: Annotated[int, Range(1)]
    learning_rate: Annotated[float, Range(0, exclude_min=True)]
    sample: Annotated[float, Range(0)]
    random_state: RandomState

    def __post_init__(self) -> None:
        check_fields(self)


class Word2VecTrainer(Trainer[Cbow]):
    """Trains CBOW or skip-gram and an output layer together, in place.

    Parameters
    ----------
    model : Cbow
    layer : HierarchicalSoftmax
    options : Word2VecOptions
    train : Windows
        What it is trained on: its counts say which rows a batch touches how often.
    """

    def __init__(
        self,
        model: Cbow,
        layer: HierarchicalSoftmax,
        options: Word2VecOptions,
        train: Windows,
    ) -> None:
        super().__init__(model, layer, options.epochs)
        self.options = options
        counts = train.training_counts()
        self._tokens = float(counts.sum())
        rows = row_curvature(layer.tree, counts)
        self.embedding = DampedSGD(model.embedding, counts / self._tokens)
        self.weight = DampedSGD(layer.weight, rows)
        self.bias = DampedSGD(layer.bias, rows)
        self._rng = np.random.default_rng([options.random_state, 1])

    def batches(self, train: Windows) -> Iterator[Batch]:
        """Yield the batches of one epoch, in random order."""
        return train.training_batches(self.options.batch_size, self._rng)

    def expected(self, train: Windows) -> float:
        """Return how many targets sub-sampling leaves, on average."""
        return self._tokens

    def learning_rate(self, done: float) -> float:
        """Return the rate after `done` epochs."""
        left = 1 - done / max(1, self.epochs)
        return self.options.learning_rate * max(left, LOWEST)

    def step(self, contexts: Integer, targets: Integer, learning_rate: float) -> float:
        """Train on one batch; return its summed loss in nats."""
        loss = self.model.loss(self.layer, contexts, targets)
        words = loss.grad_embedding
        scale = loss.shares * self._mean_curvature(loss)
        self.embedding.step(words.rows, words.weight, learning_rate, scale)
        for of_rows in loss.by_rows:
            self.weight.step(of_rows.rows, of_rows.weight, learning_rate, loss.squares)
            self.bias.step(of_rows.rows, of_rows.bias, learning_rate, loss.items)
        return float(loss.nll.sum())

    def _mean_curvature(self, loss: Loss) -> float:
        """Return the curvature of a prediction along its hidden vector, over the touched rows."""
        total = 0.0
        for of_rows in loss.by_rows:
            weight = self.layer.weight[of_rows.rows]
            total += float(self.weight.curvature[of_rows.rows] @ np.vecdot(weight, weight))
        return total

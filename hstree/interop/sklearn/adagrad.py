"""Training of the linear model by Adagrad, in minibatches."""

from typing import Any

import numpy as np

from hstree._arrays import Array, Float64, Integer
from hstree.interop.sklearn.features import Samples, lengthened
from hstree.interop.sklearn.linear import Gradient, LinearTree
from hstree.training.adagrad import TINY, adagrad_rows
from hstree.tree.weight_rows import row_curvature


class Adagrad:
    """Adagrad over minibatches, with one learning rate per weight (Duchi, Hazan & Singer 2011).

    Trains `model` in place. A batch changes only the weights of its features and nodes. It then
    also applies the penalty for the batches since the last change of each weight. Rare features
    are therefore regularised as much as frequent ones.

    Parameters
    ----------
    model : LinearTree
    seen : float array (n_features + 1,), optional
        Weighted sum of squares of each feature over the samples of an earlier `fit`, then the sum
        of the sample weights. Step sizes start as after one epoch over these samples: the summed
        squares start at the expected squared gradients of the untrained model.
    """

    def __init__(self, model: LinearTree, seen: Float64 | None = None) -> None:
        model.make_dense()
        self.model = model
        self._row_penalty = model.row_penalty()
        self._squares = np.zeros(model.table.shape, model.table.dtype)
        self._bias_squares = np.zeros(len(model.bias))
        if seen is not None:
            curvature = row_curvature(model.tree, model.counts)
            occurring = np.flatnonzero(seen[:-1])
            if model.sparse:
                self._squares[occurring] = np.multiply.outer(seen[occurring], curvature)
            else:
                self._squares[:, occurring] = np.multiply.outer(curvature, seen[occurring])
            self._bias_squares += seen[-1] * curvature
        # Last step whose penalty has been applied to each weight
        self._paid = np.zeros(model.table.shape, np.int32)
        self._steps = 0

    def widen(self, n_features: int) -> None:
        """Add features up to this number, as `LinearTree.widen` does."""
        self._squares = lengthened(self._squares, n_features)
        self._paid = lengthened(self._paid, n_features)

    def epoch(
        self,
        X: Samples,
        targets: Integer,
        sample_weight: Array,
        *,
        learning_rate: float,
        penalty: float,
        batch_size: int,
        rng: np.random.Generator,
    ) -> float:
        """Train for one epoch in random order; targets and sample weights are (n,).

        The loss of each sample includes `penalty` times half the squared norm of the root's
        weights; the penalty of other nodes is smaller, as in `solvers.solve`. Returns the weighted
        mean negative log-likelihood, computed for each batch before its step.
        """
        order = rng.permutation(len(targets))
        total = 0.0
        for a in range(0, len(order), batch_size):
            batch = order[a : a + batch_size]
            weight = sample_weight[batch]
            batch_X = self.model.converted(X[batch])
            nll, gradients = self.model.loss(batch_X, targets[batch], weight)
            self._steps += 1
            for gradient in gradients:
                self._move(gradient, learning_rate, penalty * len(batch))
            total += float(weight @ nll)
        return total / max(float(sample_weight.sum()), TINY)

    def _move(self, gradient: Gradient, learning_rate: float, penalty: float) -> None:
        """Update the weights that a gradient covers; `penalty` is that of the root per step."""
        model = self.model
        row_penalty = (penalty * self._row_penalty).astype(model.table.dtype)
        arrays = [model.table, self._squares, self._paid]
        index: Any = gradient.index
        if not model.sparse:
            # (r, n_features) rows of the table
            weight_penalty = row_penalty[index][:, None]
        elif isinstance(index[1], slice):
            # (f, k) features of the rows of one node
            index, rows = index
            arrays = [array[:, rows] for array in arrays]
            weight_penalty = row_penalty[rows]
        else:
            # (P,) pairs of a feature and a row, as elements of the flat table
            features, rows = index
            index = features * len(model.bias) + rows
            arrays = [array.reshape(-1) for array in arrays]
            weight_penalty = row_penalty[rows]
        table, squares, paid = arrays

        # Add the gradient of the penalty for all steps since the last change
        total = (self._steps - paid[index]).astype(table.dtype)
        total *= weight_penalty
        total *= table[index]
        total += gradient.weight
        paid[index] = self._steps
        adagrad_rows(table, squares, index, total, learning_rate)

        if model.fit_intercept:
            sums = self._bias_squares
            adagrad_rows(model.bias, sums, gradient.rows, gradient.bias, learning_rate)

"""Minibatches and Adagrad (Duchi, Hazan & Singer 2011), one rate for each weight.

Only the weights that a batch touches are moved. The penalty that a weight owes for the batches
that passed it by is paid when it is touched next, so that rare features are held as tightly as
frequent ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hstree._typing import Array, Float64, Integer
from hstree.interop.linear import Gradient, LinearTree, Rows
from hstree.layers.kernels import TINY, adagrad_rows


class Adagrad:
    """Trains one model, in place.

    Parameters
    ----------
    model : LinearTree
    """

    def __init__(self, model: LinearTree) -> None:
        self.model = model
        self._squares = np.zeros(model.table.shape, model.table.dtype)
        self._bias_squares = np.zeros(len(model.bias))
        self._paid = np.zeros(model.table.shape, np.int32)
        self._steps = 0

    def epoch(
        self,
        X: Rows,
        labels: Integer,
        sample_weight: Array,
        *,
        learning_rate: float,
        penalty: float,
        batch_size: int,
        rng: np.random.Generator,
    ) -> float:
        """Pass over all samples once, in a random order.

        Parameters
        ----------
        X : float array or CSR array (n, features)
        labels : int array (n,)
            Label ids.
        sample_weight : float array (n,)
        learning_rate : float
        penalty : float
            Weight of half the squared norm of the weights in each sample's loss.
        batch_size : int
        rng : numpy.random.Generator

        Returns
        -------
        float
            The weighted mean of the negative log-likelihoods, each before its batch's step.
        """
        order = rng.permutation(len(labels))
        total = 0.0
        for a in range(0, len(order), batch_size):
            batch = order[a : a + batch_size]
            weight = sample_weight[batch]
            rows = self.model.suited(X[batch])
            nll = self._step(rows, labels[batch], weight, learning_rate, penalty)
            total += float(weight @ nll)
        return total / max(float(sample_weight.sum()), TINY)

    def _step(
        self,
        X: Rows,
        labels: Integer,
        sample_weight: Array,
        learning_rate: float,
        penalty: float,
    ) -> Float64:
        nll, gradients = self.model.loss(X, labels, sample_weight)
        self._steps += 1
        penalty *= len(labels)  # of a step
        table, bias = self.model.table, self.model.bias
        for gradient in gradients:
            self._move(gradient, table.dtype.type(learning_rate), table.dtype.type(penalty))
            adagrad_rows(bias, self._bias_squares, gradient.rows, gradient.bias, learning_rate)
        return nll

    def _move(self, gradient: Gradient, learning_rate: Any, penalty: Any) -> None:
        """Move the weights of one gradient, with few copies: memory is what bounds wide nodes."""
        table, index = self.model.table, gradient.index
        weight = table[index]
        step = (self._steps - self._paid[index]).astype(table.dtype)
        step *= penalty
        step *= weight
        step += gradient.weight
        self._paid[index] = self._steps
        squares = self._squares[index]
        squares += step * step
        self._squares[index] = squares
        # Not in place: of a slice, `squares` is a view.
        step /= np.sqrt(squares + table.dtype.type(TINY))
        step *= learning_rate
        weight -= step
        table[index] = weight

"""Row-wise Adagrad on touched rows only (Duchi, Hazan & Singer 2011; one rate a row).

Each row of a parameter keeps the sum of its mean squared gradients; a step divides by its root.
A row that a batch does not touch costs nothing. Weight decay is lazy: a row shrinks by what it owes
since it was last touched, so that rare rows are regularised as much as frequent ones. It is
decoupled (Loshchilov & Hutter 2019): a factor on the row, never part of the gradient or of its sum
of squares. There is no momentum.
"""

from __future__ import annotations

import numpy as np

from hstree._typing import Array, Int64
from hstree.layers.kernels import adagrad_rows


class RowAdagrad:
    """Adagrad for one parameter whose first axis is rows.

    Parameters
    ----------
    parameter : float array (R,) or (R, ...)
        Changed in place by `step`.
    weight_decay : float, default 0
        The L2 penalty for each token trained on. A row that was last touched n tokens ago is
        multiplied by ``exp(-rate * weight_decay * n)``, with its own Adagrad rate: it shrinks
        towards zero and never past it.
    """

    def __init__(self, parameter: Array, weight_decay: float = 0.0) -> None:
        self.parameter = parameter
        self.weight_decay = weight_decay
        self.squares = np.zeros(len(parameter), np.float32)
        self._paid = np.zeros(len(parameter) if weight_decay else 0, np.int64)

    def step(
        self, rows: Int64 | slice, gradient: Array, learning_rate: float, tokens: int = 0
    ) -> None:
        """Move the given rows against their gradients.

        Parameters
        ----------
        rows : int64 array (r,) without repeats, or slice
        gradient : float array (r, ...)
            Of the summed loss of a batch.
        learning_rate : float
        tokens : int
            Tokens trained on so far, this batch's included; the clock of the weight decay.
        """
        owed = None
        if self.weight_decay:
            owed = (self.weight_decay * (tokens - self._paid[rows])).astype(np.float32)
            self._paid[rows] = tokens
        adagrad_rows(self.parameter, self.squares, rows, gradient, learning_rate, owed)

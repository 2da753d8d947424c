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

#: Keeps a step finite where a row's first gradient is zero.
TINY = 1e-10
#: Numbers moved at a time: few enough for all that is computed of them to stay in cache.
CHUNK = 1 << 16


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
        n = max(1, CHUNK // max(1, self.parameter[:1].size))
        for a in range(0, len(gradient), n):
            some = slice(a, a + n)
            if isinstance(rows, slice):
                start, stop, _ = rows.indices(len(self.parameter))
                here: Int64 | slice = slice(start + a, min(start + a + n, stop))
            else:
                here = rows[some]
            self._step(here, gradient[some], learning_rate, tokens)

    def _step(
        self, rows: Int64 | slice, gradient: Array, learning_rate: float, tokens: int
    ) -> None:
        """Move some rows."""
        tail = (-1, *[1] * (gradient.ndim - 1))
        flat = gradient.reshape(len(gradient), -1)
        total = self.squares[rows] + np.vecdot(flat, flat) / flat.shape[1]
        self.squares[rows] = total
        rate = learning_rate / np.sqrt(total + TINY)
        values = self.parameter[rows]
        if self.weight_decay:
            owed = (self.weight_decay * (tokens - self._paid[rows])).astype(np.float32)
            self._paid[rows] = tokens
            values = values * np.exp(-rate * owed).reshape(tail)
        self.parameter[rows] = values - gradient * rate.reshape(tail)

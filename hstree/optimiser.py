"""Row-wise Adagrad on touched rows only (Duchi, Hazan & Singer 2011; one rate a row).

Each row of a parameter keeps the sum of its mean squared gradients; a step divides by its root.
A row that a batch does not touch costs nothing. There is no momentum and no weight decay.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Int64 = NDArray[np.int64]

#: Keeps a step finite where a row's first gradient is zero.
TINY = 1e-10


class RowAdagrad:
    """Adagrad for one parameter whose first axis is rows.

    Parameters
    ----------
    parameter : float array (R,) or (R, ...)
        Changed in place by `step`.
    """

    def __init__(self, parameter: Array) -> None:
        self.parameter = parameter
        self.squares = np.zeros(len(parameter), np.float32)

    def step(self, rows: Int64 | slice, gradient: Array, learning_rate: float) -> None:
        """Move the given rows against their gradients.

        Parameters
        ----------
        rows : int64 array (r,) without repeats, or slice
        gradient : float array (r, ...)
        learning_rate : float
        """
        flat = gradient.reshape(len(gradient), -1)
        total = self.squares[rows] + np.vecdot(flat, flat) / flat.shape[1]
        self.squares[rows] = total
        rate = learning_rate / np.sqrt(total + TINY)
        self.parameter[rows] -= gradient * rate.reshape(-1, *[1] * (gradient.ndim - 1))

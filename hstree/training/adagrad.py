"""Adagrad that changes only touched rows (Duchi, Hazan & Singer 2011).

A parameter has one sum per row (of mean squared gradients) or one per element (of squared
gradients); a step divides by the root of the sum. Weight decay is decoupled (Loshchilov & Hutter
2019): it multiplies the row, and is not a term of the gradient. Weight decay is also lazy: when a
row is touched, it decays for all tokens since its last step, so that rare rows are regularised as
much as frequent rows. There is no momentum.
"""

import numpy as np

from hstree._arrays import Array, Int64

#: Number of elements that `adagrad_rows` updates at a time; intermediate results stay in cache.
MOVED = 1 << 16
#: Constant that keeps a step finite if the first gradient is zero.
TINY = 1e-10


class RowAdagrad:
    """Adagrad for one parameter, by rows of its first axis.

    Parameters
    ----------
    parameter : float array (R,) or (R, ...)
        Changed in place by `step`.
    weight_decay : float, default 0
        L2 penalty per training token. A row that was last touched n tokens ago is multiplied by
        ``exp(-rate * weight_decay * n)``, with its current rate. It never changes its sign.
    rate : float, default 1
        Factor that multiplies the learning rate of each step.
    initial_accumulator : float, default 0
        Initial value of the sum of each row.
    """

    def __init__(
        self,
        parameter: Array,
        weight_decay: float = 0.0,
        rate: float = 1.0,
        initial_accumulator: float = 0.0,
    ) -> None:
        self.parameter = parameter
        self.weight_decay = weight_decay
        self.rate = rate
        self.squares = np.full(len(parameter), initial_accumulator, np.float32)
        # (R,) number of tokens up to which the weight decay of each row is applied
        self.decayed = np.zeros(len(parameter) if weight_decay else 0, np.int64)
        #: arrays other than the parameter that steps change
        self.arrays: dict[str, Array] = {"squares": self.squares, "decayed": self.decayed}

    def step(
        self, rows: Int64 | slice, gradient: Array, learning_rate: float, tokens: int = 0
    ) -> None:
        """Update some rows by a step against their gradients.

        Parameters
        ----------
        rows : int64 array (r,) without repeats, or slice
        gradient : float array (r, ...)
            Gradient of the summed loss of a batch.
        learning_rate : float
        tokens : int
            Number of tokens trained on so far, including this batch.
        """
        # (r,) weight decay for the tokens since the last step of each row
        decay = None
        if self.weight_decay:
            decay = (self.weight_decay * (tokens - self.decayed[rows])).astype(np.float32)
            self.decayed[rows] = tokens
        rate = self.rate * learning_rate
        adagrad_rows(self.parameter, self.squares, rows, gradient, rate, decay)


def adagrad_rows(
    parameter: Array,
    squares: Array,
    rows: Int64 | slice,
    gradient: Array,
    learning_rate: float,
    decay: Array | None = None,
) -> None:
    """Update some rows of a parameter by a step of Adagrad, in place.

    Parameters
    ----------
    parameter : float array (R,) or (R, ...)
    squares : float array (R,) or of the shape of the parameter
        Sums of squared gradients so far. With one sum per row, the mean over the row is added, and
        the row has one learning rate. With one sum per element, each element has its own rate.
    rows : int64 array (r,) without repeats, or slice
    gradient : float array (r, ...)
    learning_rate : float
    decay : float array (r,), optional
        Weight decay since the last step; only with one learning rate per row. Rows are multiplied
        by ``exp(-rate * decay)`` before the step, with the rate of the step.
    """
    has_row_rates = squares.shape != parameter.shape
    step = max(1, MOVED // max(1, parameter[:1].size))
    per_row = (-1, *[1] * (gradient.ndim - 1))  # shape of a value per row
    first = rows.indices(len(parameter))[0] if isinstance(rows, slice) else 0
    for a in range(0, len(gradient), step):
        part = gradient[a : a + step]
        if isinstance(rows, slice):
            touched: Int64 | slice = slice(first + a, first + a + len(part))
        else:
            touched = rows[a : a + step]

        # Add the squared gradients of elements, or their mean over each row
        if has_row_rates:
            flat = part.reshape(len(part), -1)
            total = squares[touched] + np.vecdot(flat, flat) / flat.shape[1]
        else:
            total = squares[touched] + part * part
        squares[touched] = total

        # Decay the rows, then make the step
        rate = learning_rate / np.sqrt(total + TINY)
        values = parameter[touched]
        if decay is not None:
            values = values * np.exp(-rate * decay[a : a + step]).reshape(per_row)
        if has_row_rates:
            rate = rate.reshape(per_row)
        parameter[touched] = values - part * rate

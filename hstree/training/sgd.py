"""Stochastic gradient descent on the summed gradients of a batch, as if its items came in turn.

word2vec moves the weights after every word. A batch of a thousand words moves the root's vector a
thousand times at once, all by gradients of the same weights, and at word2vec's rates that
overshoots without bound. In turn, each move would have shrunk the next ones: under a curvature k
of every item's loss, c moves at the rate r go as far as one of the rate
``r (1 - exp(-s)) / s`` with ``s = c r k``. So each row moves at that rate. A row that a batch
touches once moves as in word2vec; one that it touches all the time moves as far as a minimum
allows, and no rate makes it diverge.
"""

from __future__ import annotations

import numpy as np

from hstree._typing import Array, Float64, Int64

#: Rows moved at a time: few enough for all that is computed of them to stay in cache.
CHUNK = 512


class DampedSGD:
    """Gradient descent for one parameter whose first axis is rows.

    Parameters
    ----------
    parameter : float array (R,) or (R, d)
        Changed in place by `step`.
    curvature : float array (R,)
        How much of a row's curvature an item of a batch brings, on average over items, where
        every item's input has length one.
    """

    def __init__(self, parameter: Array, curvature: Float64) -> None:
        self.parameter = parameter
        self.curvature = curvature

    def step(
        self, rows: Int64 | slice, gradient: Array, learning_rate: float, scale: float
    ) -> None:
        """Move the given rows against their gradients.

        Parameters
        ----------
        rows : int64 array (r,) without repeats, or slice
        gradient : float array (r,) or (r, d)
            Of the summed loss of a batch.
        learning_rate : float
        scale : float
            The number of items in the batch times the mean squared length of their inputs.
        """
        rate = (learning_rate * damping(learning_rate * scale * self.curvature[rows])).astype(
            np.float32
        )
        if gradient.ndim == 1:
            self.parameter[rows] -= rate * gradient
            return
        if isinstance(rows, slice):
            self.parameter[rows] -= rate[:, None] * gradient
            return
        for a in range(0, len(rows), CHUNK):
            some = slice(a, a + CHUNK)
            self.parameter[rows[some]] -= rate[some, None] * gradient[some]


def damping(s: Float64) -> Float64:
    """Return ``(1 - exp(-s)) / s``, elementwise, and 1 where s = 0."""
    result = np.ones_like(s)
    np.divide(-np.expm1(-s), s, out=result, where=s > 0)
    return result

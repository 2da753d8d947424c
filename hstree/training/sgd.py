"""Stochastic gradient descent on summed gradients, damped as if the items of a batch came in turn.

word2vec moves the weights after every word. A batch of a thousand words moves the root's vector a
thousand times at once, all by gradients at the same weights; at the rates of word2vec that
overshoots without bound. In turn, each move would have shrunk the next: where the loss of an item
has curvature k along a row, c moves at rate r reach as far as one move at the rate
``r (1 - exp(-s)) / s`` with ``s = c r k``. Each row moves at that rate: as in word2vec where a
batch touches it once, and at most to the minimum where it touches it all the time.
"""

from dataclasses import dataclass

import numpy as np

from hstree._arrays import Array, Float64, Int64

#: Rows moved at a time: all that is computed from them stays in cache.
CHUNK = 512


@dataclass(eq=False)
class DampedSGD:
    """Gradient descent for one parameter whose first axis is rows.

    Parameters
    ----------
    parameter : float array (R,) or (R, d)
        Changed in place by `step`.
    curvature : float array (R,)
        Mean curvature of an item's loss along each row, for inputs of length one.
    """

    parameter: Array
    curvature: Float64

    def step(
        self, rows: Int64 | slice, gradient: Array, learning_rate: float, scale: float
    ) -> None:
        """Move some rows, without repeats, against their gradients (r,) or (r, d).

        The gradient is that of the summed loss of a batch. `scale` is the number of items in the
        batch times the mean squared length of their inputs.
        """
        damped = learning_rate * damping(learning_rate * scale * self.curvature[rows])
        rate = damped.astype(np.float32)
        if gradient.ndim > 1:
            rate = rate[:, None]
        if isinstance(rows, slice):
            self.parameter[rows] -= rate * gradient
            return
        for a in range(0, len(rows), CHUNK):
            chunk = slice(a, a + CHUNK)
            self.parameter[rows[chunk]] -= rate[chunk] * gradient[chunk]


def damping(s: Float64) -> Float64:
    """Return ``(1 - exp(-s)) / s``, elementwise, and 1 where s = 0."""
    result = np.ones_like(s)
    np.divide(-np.expm1(-s), s, out=result, where=s > 0)
    return result

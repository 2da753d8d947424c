"""Stochastic gradient descent on summed gradients, damped to imitate one step per item.

word2vec updates the weights after every word. A batch of a thousand words updates the root's vector
with a thousand gradients at once, all computed at the same weights. With the learning rates of
word2vec, such updates overshoot without bound. In sequence, each step would reduce the next one: if
the loss of an item has curvature k along a row, c steps with rate r have the effect of one step
with rate ``r (1 - exp(-s)) / s``, where ``s = c r k``. Each row uses this rate. It equals the rate
of word2vec if a batch touches the row once, and moves the row at most to the minimum if a batch
touches it often.
"""

from dataclasses import dataclass

import numpy as np

from hstree._arrays import Array, Float64, Int64

#: Number of rows that are updated at a time; intermediate results stay in cache.
CHUNK = 512


@dataclass(eq=False)
class DampedSGD:
    """Gradient descent for one parameter, by rows of its first axis.

    Parameters
    ----------
    parameter : float array (R,) or (R, d)
        Changed in place by `step`.
    curvature : float array (R,)
        Mean curvature of the loss of an item along each row, for inputs of length one.
    """

    parameter: Array
    curvature: Float64

    def step(
        self, rows: Int64 | slice, gradient: Array, learning_rate: float, scale: float
    ) -> None:
        """Update some distinct rows by a step against their gradients (r,) or (r, d).

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

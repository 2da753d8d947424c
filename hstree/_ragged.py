"""Runs of a flat array: the arithmetic of offsets that CSR layouts need."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]


def offsets(length: NDArray[np.integer]) -> Int64:
    """Return where each of several runs of these lengths starts, and where the last one ends.

    Examples
    --------
    >>> offsets(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    start = np.zeros(len(length) + 1, np.int64)
    np.cumsum(length, out=start[1:])
    return start


def ranges(first: Int64, start: Int64) -> Int64:
    """Concatenate runs of consecutive integers: run i begins at ``first[i]``.

    Parameters
    ----------
    first : int64 array (S,)
    start : int64 array (S + 1,)
        Offsets of the runs in the result, as `offsets` returns them.

    Examples
    --------
    >>> ranges(np.array([10, 0, 7]), np.array([0, 2, 2, 5])).tolist()
    [10, 11, 7, 8, 9]
    """
    return np.arange(start[-1]) + np.repeat(first - start[:-1], np.diff(start))

"""Helpers for ragged (CSR) arrays: segments laid end to end, and their offsets."""

from collections.abc import Iterator

import numpy as np

from hstree._typing import Int64, Integer


def offsets(length: Integer) -> Int64:
    """Return the offsets (S + 1,) of segments of these lengths (S,)."""
    start = np.zeros(len(length) + 1, np.int64)
    np.cumsum(length, out=start[1:])
    return start


def ranges(first: Int64, start: Int64) -> Int64:
    """Concatenate S ranges of integers from `first` (S,); `start` (S + 1,) are their offsets."""
    return np.arange(start[-1]) + np.repeat(first - start[:-1], np.diff(start))


def batches(start: Int64, size: int) -> Iterator[tuple[int, int]]:
    """Group segments, in order, into runs of up to `size` elements, or of one larger segment."""
    first = 0
    while first < len(start) - 1:
        last = max(int(np.searchsorted(start, start[first] + size, "right")) - 1, first + 1)
        yield first, last
        first = last


def segment_ids(start: Int64) -> Int64:
    """Return the segment of each element, for offsets (S + 1,): [0, 2, 2, 5] is [0, 0, 2, 2, 2]."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))

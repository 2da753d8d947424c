"""Types of arrays, and helpers for ragged (CSR) arrays: segments laid end to end, and offsets."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hstree.errors import InputError

Array = NDArray[Any]
Bool = NDArray[np.bool_]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
Floating = NDArray[np.floating]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Integer = NDArray[np.integer]
UInt8 = NDArray[np.uint8]

#: Maximum number of children of a node whose scores are computed one by one, not as a matrix
#: product.
NARROW = 32


def canonical_csr(matrix: Any, *, keep_zeros: bool = False) -> Any:
    """Return a sparse or dense matrix as a CSR array with ascending indices in each row.

    Entries that are stored twice are summed; stored zeros are removed unless `keep_zeros`. `matrix`
    is never changed, but the result may share its arrays, so that nothing may change the result in
    place. Numbers are of native byte order and at least of 32 bits where they are floats, indices
    are int32 where they fit.
    """
    from scipy.sparse import csr_array, issparse  # reading a tree does not need it

    matrix = matrix if issparse(matrix) else np.asarray(matrix)
    dtype = matrix.dtype.newbyteorder("=")
    if dtype == np.float16:  # SciPy does not compute with it
        dtype = np.dtype(np.float32)
    rows = csr_array(matrix.astype(dtype, copy=False))
    # Only the arrays: flags of the matrix may be wrong
    rows = csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    has_zeros = not keep_zeros and not rows.data.all()
    if rows.has_canonical_format and not has_zeros:
        return rows
    rows = rows.copy()
    rows.sum_duplicates()
    if not keep_zeros:
        rows.eliminate_zeros()
    return rows


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


def refuse_masked(values: object, what: str) -> None:
    """Refuse an array with masked entries, which `numpy.asarray` would read as numbers."""
    if np.ma.is_masked(values):
        raise InputError(f"{what} with masked entries; fill them, or leave their words out")

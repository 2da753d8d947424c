"""Array types, and helpers for ragged (CSR) arrays: concatenated segments with offsets."""

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

#: Maximum number of children of a node whose scores are computed one by one instead of by a matrix
#: product.
NARROW = 32


def canonical_csr(matrix: Any, *, keep_zeros: bool = False) -> Any:
    """Convert a sparse or dense matrix to a CSR array with ascending indices in each row.

    Duplicate entries are summed, and stored zeros are removed unless `keep_zeros`. `matrix` is not
    changed, but the result may share its arrays and must not be changed in place. Numbers have the
    native byte order, floats have at least 32 bits, and indices are int32 if they fit.
    """
    from scipy.sparse import csr_array, issparse  # not needed for reading a tree

    matrix = matrix if issparse(matrix) else np.asarray(matrix)
    dtype = matrix.dtype.newbyteorder("=")
    if dtype == np.float16:  # not supported by SciPy
        dtype = np.dtype(np.float32)
    rows = csr_array(matrix.astype(dtype, copy=False))
    # Use only the arrays, because flags of the matrix may be wrong
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
    """Return the offsets (S + 1,) of segments with the given lengths (S,)."""
    start = np.zeros(len(length) + 1, np.int64)
    np.cumsum(length, out=start[1:])
    return start


def ranges(first: Int64, start: Int64) -> Int64:
    """Concatenate S ranges of integers that begin at `first` (S,), with offsets `start`."""
    return np.arange(start[-1]) + np.repeat(first - start[:-1], np.diff(start))


def batches(start: Int64, size: int) -> Iterator[tuple[int, int]]:
    """Group segments in order into batches of up to `size` elements, or of one larger segment."""
    first = 0
    while first < len(start) - 1:
        last = max(int(np.searchsorted(start, start[first] + size, "right")) - 1, first + 1)
        yield first, last
        first = last


def segment_ids(start: Int64) -> Int64:
    """Return the segment of each element from offsets (S + 1,): [0, 2, 5] gives [0, 0, 1, 1, 1]."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def refuse_masked(values: object, what: str) -> None:
    """Refuse an array with masked entries, which `numpy.asarray` would convert to numbers."""
    if np.ma.is_masked(values):
        raise InputError(f"{what} with masked entries; fill them, or remove their words")

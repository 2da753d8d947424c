"""Arithmetic for compiled kernels: exponentials, sums over rows of a matrix, grouping, checks.

Sums are in the order of the batch, so that results do not depend on the number of threads.
"""

import numpy as np

from hstree._arrays import Array, Int32, Int64, Integer
from hstree.kernels.jit import inline, jit

ZERO = np.float32(0)
ONE = np.float32(1)
_TWO = np.float32(2)
#: The exp of smaller numbers is returned as zero.
_LEAST = np.float32(-87)
_LOG2_E = np.float32(np.log2(np.e))
#: ln 2 as a sum of two parts. The first part has few digits, so that its multiples are exact.
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(np.log(2) - 0.693359375)


# Functions of one number, without branches and calls, so that loops over them can be vectorised.


@inline
def exp(x):
    """Return exp(x) for x up to 88, with an error below 1e-7; 0 below -87.

    Computed as ``2**n exp(r)`` with r from ``-ln 2 / 2`` to ``ln 2 / 2``: the power from its
    exponent bits, and the other factor from its series.
    """
    is_zero = x < _LEAST
    x = max(x, _LEAST)
    n = np.float32(np.floor(x * _LOG2_E + np.float32(0.5)))
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = np.float32(1 / 5040)
    p = p * r + np.float32(1 / 720)
    p = p * r + np.float32(1 / 120)
    p = p * r + np.float32(1 / 24)
    p = p * r + np.float32(1 / 6)
    p = p * r + np.float32(1 / 2)
    p = p * r * r + r + ONE
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return ZERO if is_zero else p * power


@inline
def log1p(x):
    """Return log(1 + x) for x from 0 to 1: ``2 artanh(t)`` with ``t = x / (2 + x)``, by series."""
    t = x / (_TWO + x)
    u = t * t
    p = np.float32(2 / 15)
    p = p * u + np.float32(2 / 13)
    p = p * u + np.float32(2 / 11)
    p = p * u + np.float32(2 / 9)
    p = p * u + np.float32(2 / 7)
    p = p * u + np.float32(2 / 5)
    p = p * u + np.float32(2 / 3)
    return t * (p * u + _TWO)


@inline
def flipped(bits):
    """Map the bits of a float32 to an int32 with the same order; applied twice, return the bits.

    Loops that compute a maximum are vectorised for integers, but not for floats.
    """
    return np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(2**31 - 1)))


def group(ids: Int32, n_values: int) -> tuple[Int64, Int64, Int32]:
    """Group the positions of ids (P,) by their values, from 0 to `n_values` - 1.

    Returns the distinct values (G,) in the order of their first positions, the offsets of the
    groups (G + 1,), and the positions (P,), ascending within a group. O(P), without a sort.
    """
    values = np.empty(len(ids), np.int64)
    start = np.zeros(len(ids) + 1, np.int64)
    slot = np.empty(len(ids), np.int32)
    position = np.empty(len(ids), np.int32)
    value_slot = np.empty(n_values, np.int32)  # only elements for occurring values are used
    n = _group(ids, value_slot, values, start, slot, position)
    return values[:n], start[: n + 1], position


@jit
def _group(ids, value_slot, values, start, slot, position):
    for value in ids:
        value_slot[value] = -1
    n = 0
    for p in range(len(ids)):
        value = ids[p]
        if value_slot[value] < 0:
            value_slot[value] = n
            values[n] = value
            n += 1
        slot[p] = value_slot[value]
        start[slot[p] + 1] += 1
    for g in range(n):
        start[g + 1] += start[g]
    # Write the positions; the offset of a group advances with each of its positions
    for p in range(len(ids)):
        position[start[slot[p]]] = p
        start[slot[p]] += 1
    for g in range(n, 0, -1):
        start[g] = start[g - 1]
    start[0] = 0
    return n


# Sums over rows of a matrix, four rows at a time: each element of the vector is read once for four.


@inline
def dot(matrix, row, vector):
    """Return ``matrix[row] @ vector``."""
    total = ZERO
    for j in range(len(vector)):
        total += matrix[row, j] * vector[j]
    return total


@inline
def clear(vector):
    """Set all elements of a vector to zero; a loop, since numba compiles slices slowly."""
    for j in range(len(vector)):
        vector[j] = 0


@inline
def dot_rows(matrix, bias, row, first, stop, vector, out):
    """Write ``matrix[row] @ vector + bias[row]`` for the rows from `first` to `stop`."""
    last_four = stop - (stop - first) % 4
    for p in range(first, last_four, 4):
        a, b = np.uint64(row[p]), np.uint64(row[p + 1])
        c, d = np.uint64(row[p + 2]), np.uint64(row[p + 3])
        dot_a = dot_b = dot_c = dot_d = ZERO
        for j in range(len(vector)):
            x = vector[j]
            dot_a += matrix[a, j] * x
            dot_b += matrix[b, j] * x
            dot_c += matrix[c, j] * x
            dot_d += matrix[d, j] * x
        out[p] = dot_a + bias[a]
        out[p + 1] = dot_b + bias[b]
        out[p + 2] = dot_c + bias[c]
        out[p + 3] = dot_d + bias[d]
    for p in range(last_four, stop):
        a = np.uint64(row[p])
        out[p] = dot(matrix, a, vector) + bias[a]


@inline
def add_rows(matrix, row, scale, first, stop, total):
    """Add ``scale @ matrix[row]`` to `total` (d,), for the rows from `first` to `stop`."""
    last_four = stop - (stop - first) % 4
    for p in range(first, last_four, 4):
        a, b = np.uint64(row[p]), np.uint64(row[p + 1])
        c, d = np.uint64(row[p + 2]), np.uint64(row[p + 3])
        scale_a, scale_b, scale_c, scale_d = scale[p], scale[p + 1], scale[p + 2], scale[p + 3]
        for j in range(len(total)):
            total[j] += (
                scale_a * matrix[a, j]
                + scale_b * matrix[b, j]
                + scale_c * matrix[c, j]
                + scale_d * matrix[d, j]
            )
    for p in range(last_four, stop):
        a = np.uint64(row[p])
        for j in range(len(total)):
            total[j] += scale[p] * matrix[a, j]


# Compiled code does not check bounds as NumPy does, so arguments are checked before.


def checked_ids(ids: Integer, n: int, least: int = 0) -> Int32:
    """Return ids as int32. Raises IndexError unless they are integers from `least` to n - 1."""
    ids = np.asarray(ids)
    if ids.dtype.kind not in "iu":
        raise IndexError(f"ids must be integers, not {ids.dtype}")
    if ids.size and not least <= ids.min() <= ids.max() < n:
        raise IndexError(f"ids must be from {least} to {n - 1}, not {ids.min()} to {ids.max()}")
    return np.ascontiguousarray(ids, np.int32)


def check_shape(name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Raise ValueError unless an array has the expected shape."""
    if shape != expected:
        raise ValueError(f"{name} must have the shape {expected}, not {shape}")


def is_supported(*arrays: Array) -> bool:
    """Return whether arrays are C-contiguous float32 in native byte order."""
    return all(array.dtype == np.float32 and array.flags.c_contiguous for array in arrays)

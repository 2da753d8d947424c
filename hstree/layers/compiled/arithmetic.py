"""Arithmetic of compiled kernels: exponentials, sums over rows of a matrix, grouping, checks.

Sums run in the order of the batch, so that results do not depend on the number of threads.
"""

import threading
from typing import Any

import numpy as np

from hstree._compiled import inlined, jit, takes
from hstree._typing import Array, Float64, Int32, Int64, Integer

ZERO, ONE, _TWO = np.float32(0), np.float32(1), np.float32(2)
#: exp below the first is zero in float32; it is computed up to the second, where a sum is too large
_LEAST, _MOST = np.float32(-87), np.float32(88)
_LOG2_E = np.float32(np.log2(np.e))
#: ln 2 in two parts: the first has few digits, so that its multiples are exact
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(np.log(2) - 0.693359375)


# Functions of one number, without branches and calls, so that loops over them are vectorised.


@inlined
def exp(x):
    """Return exp(x) for x of at most 88, within 1e-7 of it; 0 below -87.

    ``2**n exp(r)`` with r from ``-ln 2 / 2`` to ``ln 2 / 2``: the power by its exponent bits, the
    rest by its series.
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


@inlined
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


@inlined
def flipped(bits):
    """Return an int32 that orders as the float32 of these bits does; of that, the bits again.

    Loops over the largest integer are vectorised, and those over the largest float are not.
    """
    return np.int32(bits ^ ((bits >> np.int32(31)) & np.int32(2**31 - 1)))


def group(ids: Int32, n_values: int) -> tuple[Int64, Int64, Int32]:
    """Group the places of ids (P,) by their values, from 0 to `n_values` - 1.

    Returns the values (G,), each once, in the order of their first places; the offsets of each
    (G + 1,); and its places (P,), ascending. O(P), without a sort.
    """
    values, start = np.empty(len(ids), np.int64), np.zeros(len(ids) + 1, np.int64)
    slot, place = np.empty((2, len(ids)), np.int32)
    n = _group(ids, SLOTS.of(n_values), values, start, slot, place)
    return values[:n], start[: n + 1], place


@jit
def _group(ids, slot_of, values, start, slot, place):
    n = 0
    for p in range(len(ids)):
        value = ids[p]
        if slot_of[value] < 0:
            slot_of[value] = n
            values[n] = value
            n += 1
        slot[p] = slot_of[value]
        start[slot[p] + 1] += 1
    for g in range(n):
        slot_of[values[g]] = -1
        start[g + 1] += start[g]
    # each group's offset moves on with its places, from where the one before it ends
    for p in range(len(ids)):
        place[start[slot[p]]] = p
        start[slot[p]] += 1
    for g in range(n, 0, -1):
        start[g] = start[g - 1]
    start[0] = 0
    return n


# Sums over rows of a matrix, four at a time: each number of the vector is read once for the four.


@inlined
def dot(matrix, row, vector):
    """Return ``matrix[row] @ vector``."""
    total = ZERO
    for j in range(len(vector)):
        total += matrix[row, j] * vector[j]
    return total


@inlined
def clear(vector):
    """Make all numbers of a vector zero; a loop, since slices take numba long to compile."""
    for j in range(len(vector)):
        vector[j] = 0


@inlined
def dot_rows(matrix, bias, row, first, stop, vector, out):
    """Write ``matrix[row] @ vector + bias[row]`` for the rows from `first` to `stop`."""
    of_four = stop - (stop - first) % 4
    for p in range(first, of_four, 4):
        a, b = np.uint64(row[p]), np.uint64(row[p + 1])
        c, d = np.uint64(row[p + 2]), np.uint64(row[p + 3])
        of_a = of_b = of_c = of_d = ZERO
        for j in range(len(vector)):
            x = vector[j]
            of_a += matrix[a, j] * x
            of_b += matrix[b, j] * x
            of_c += matrix[c, j] * x
            of_d += matrix[d, j] * x
        out[p], out[p + 1] = of_a + bias[a], of_b + bias[b]
        out[p + 2], out[p + 3] = of_c + bias[c], of_d + bias[d]
    for p in range(of_four, stop):
        a = np.uint64(row[p])
        out[p] = dot(matrix, a, vector) + bias[a]


@inlined
def add_rows(matrix, row, scale, first, stop, total):
    """Add ``scale @ matrix[row]`` to `total` (d,), for the rows from `first` to `stop`."""
    of_four = stop - (stop - first) % 4
    for p in range(first, of_four, 4):
        a, b = np.uint64(row[p]), np.uint64(row[p + 1])
        c, d = np.uint64(row[p + 2]), np.uint64(row[p + 3])
        of_a, of_b, of_c, of_d = scale[p], scale[p + 1], scale[p + 2], scale[p + 3]
        for j in range(len(total)):
            total[j] += (
                of_a * matrix[a, j]
                + of_b * matrix[b, j]
                + of_c * matrix[c, j]
                + of_d * matrix[d, j]
            )
    for p in range(of_four, stop):
        a, of_a = np.uint64(row[p]), scale[p]
        for j in range(len(total)):
            total[j] += of_a * matrix[a, j]


# The softmax of many labels.


#: Exponentials that are summed in float32; what is summed of these is in float64.
SUMMED = 32


@jit
def _exponentials(logits, bias, shift, total):
    n, of_some = len(total), np.empty_like(shift)
    for first in range(0, len(bias), SUMMED):
        some, of_rows = logits[first : first + SUMMED], bias[first : first + SUMMED]
        flat = some.reshape(some.size)  # long loops, for few items too
        if n == 1:
            of_one = ZERO
            for j in range(len(flat)):
                flat[j] = exp(min(flat[j] + (of_rows[j] - shift[0]), _MOST))
                of_one += flat[j]
            total[0] += of_one
            continue
        for j in range(len(some)):
            for b in range(n):
                some[j, b] += of_rows[j] - shift[b]
        for i in range(len(flat)):
            flat[i] = exp(min(flat[i], _MOST))
        of_some[:] = ZERO
        for j in range(len(some)):
            for b in range(n):
                of_some[b] += some[j, b]
        for b in range(n):
            total[b] += of_some[b]


def exponentials(logits: Array, bias: Array, shift: Array, total: Float64) -> Any:
    """Twin of `dense.exponentials`."""
    if not takes(logits, bias, shift):
        return NotImplemented
    check_shape("logits", logits.shape, (len(bias), len(total)))
    check_shape("shifts", shift.shape, total.shape)
    _exponentials(logits, bias, shift, total)
    return None


# Where NumPy raises, compiled code would read beside an array: arguments are checked before.


def checked_ids(ids: Integer, n: int, least: int = 0) -> Int32:
    """Return ids as int32; IndexError unless they are integers from `least` to n - 1."""
    ids = np.asarray(ids)
    if ids.dtype.kind not in "iu":
        raise IndexError(f"ids must be integers, and are {ids.dtype}")
    if ids.size and not least <= ids.min() <= ids.max() < n:
        raise IndexError(f"ids must be from {least} to {n - 1}, and are {ids.min()} to {ids.max()}")
    return np.ascontiguousarray(ids, np.int32)


def check_shape(what: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Raise ValueError unless an array has the shape that is wanted."""
    if shape != wanted:
        raise ValueError(f"{what} must have the shape {wanted}, and have {shape}")


class _Slots(threading.local):
    """Table of -1 of each thread, in which `group` numbers the values that it meets."""

    _table: Int32 = np.empty(0, np.int32)

    def of(self, length: int) -> Int32:
        """Return a table (length,) of this thread, to be left as it was."""
        if len(self._table) < length:
            self._table = np.full(length, -1, np.int32)
        return self._table[:length]


SLOTS = _Slots()

"""Compiled numbering of the keys of n-grams: a radix sort in all threads."""

import numpy as np

from hstree._compiled import in_parts, jit
from hstree._ragged import offsets
from hstree._typing import Int64

#: Bits of a key that a pass of the sort orders by.
DIGIT = 11
#: Keys that one thread counts and moves at a time.
CHUNK = 1 << 18


@jit
def _count(first, stop, keys, shift, count):
    """Count the digits of the keys of each chunk: `count` (chunks, digits)."""
    for chunk in range(first, stop):
        of_digit = count[chunk]
        of_digit[:] = 0
        for i in range(chunk * CHUNK, min(len(keys), (chunk + 1) * CHUNK)):
            of_digit[(keys[i] >> shift) & (len(of_digit) - 1)] += 1


@jit
def _move(first, stop, keys, origin, shift, offset, new_keys, new_origin):
    """Move the keys of each chunk, and where they came from, to the places of their digits."""
    for chunk in range(first, stop):
        of_digit = offset[chunk]
        for i in range(chunk * CHUNK, min(len(keys), (chunk + 1) * CHUNK)):
            digit = (keys[i] >> shift) & (len(of_digit) - 1)
            new_keys[of_digit[digit]] = keys[i]
            new_origin[of_digit[digit]] = origin[i]
            of_digit[digit] += 1


@jit
def _count_different(first, stop, keys, n):
    """Count the sorted keys of each chunk that differ from the one before: `n` (chunks,)."""
    for chunk in range(first, stop):
        n[chunk] = 0
        for i in range(chunk * CHUNK, min(len(keys), (chunk + 1) * CHUNK)):
            n[chunk] += i == 0 or keys[i] != keys[i - 1]


@jit
def _number(first, stop, keys, origin, before, different, number):
    """Number the sorted keys of each chunk; `before` (chunks,) differ before it."""
    for chunk in range(first, stop):
        last = before[chunk] - 1
        for i in range(chunk * CHUNK, min(len(keys), (chunk + 1) * CHUNK)):
            if i == 0 or keys[i] != keys[i - 1]:
                last += 1
                different[last] = keys[i]
            number[origin[i]] = last


def numbered(keys: Int64) -> tuple[Int64, Int64]:
    """Return the different keys, sorted, and the number (T,) of each key among them.

    Keys (T,) are not negative. O(T) time, for each of the digits of the largest key.
    """
    n_chunks = -(-len(keys) // CHUNK)
    n_bits = int(keys.max(initial=0)).bit_length()
    origin = np.arange(len(keys), dtype=np.int32 if len(keys) < 2**31 else np.int64)
    buffers = [(np.empty_like(keys), np.empty_like(origin)) for _ in range(1 + (n_bits > DIGIT))]
    count = np.empty((n_chunks, 1 << DIGIT), np.int64)
    for n_pass, shift in enumerate(range(0, n_bits, DIGIT)):
        free = buffers[n_pass % 2]
        in_parts(n_chunks, _count, keys, shift, count, step=1)
        # (chunks, digits) the place of the first key of each chunk and digit
        place = offsets(count.T.ravel())[:-1].reshape(count.T.shape).T.copy()
        in_parts(n_chunks, _move, keys, origin, shift, place, *free, step=1)
        keys, origin = free
    n = np.empty(n_chunks, np.int64)
    in_parts(n_chunks, _count_different, keys, n, step=1)
    different, number = np.empty(n.sum(), np.int64), np.empty(len(keys), np.int64)
    in_parts(n_chunks, _number, keys, origin, np.cumsum(n) - n, different, number, step=1)
    return different, number

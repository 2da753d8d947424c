"""Compiled numbering of the words of large texts."""

import numpy as np

from hstree._compiled import jit
from hstree._typing import Array, Int32, Int64

#: The hash of Fowler, Noll and Vo (FNV-1a) in 64 bits: its start, and what each byte multiplies by.
_HASH, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
#: What the keys of words of more than `_SHORT` bytes begin with, a byte that UTF-8 never has.
_LONG, _SHORT = np.uint64(0xFF << 56), 8
#: Spreads keys over the slots: 2**64 over the golden ratio.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_NEWLINE, _SPACE, _FIRST_WHITE, _LAST_WHITE = 10, 32, 9, 13


@jit
def _long_key(data, first, stop):
    """Return the key of a word of more than `_SHORT` bytes; that of others is their bytes."""
    key = _HASH
    for i in range(first, stop):
        key = (key ^ np.uint64(data[i])) * _PRIME
    return key | _LONG


@jit
def _slot(keys, key):
    """Return the first slot that a key may be in; their number is a power of two."""
    return np.uint64((key * _SPREAD) >> np.uint64(32)) & np.uint64(len(keys) - 1)


@jit
def _refill(slots, keys, old_slots, old_keys):
    """Put the types of some slots into others, which are empty."""
    for old in range(len(old_slots)):
        if old_slots[old] >= 0:
            slot = _slot(keys, old_keys[old])
            while slots[slot] >= 0:
                slot = (slot + np.uint64(1)) & np.uint64(len(keys) - 1)
            slots[slot], keys[slot] = old_slots[old], old_keys[old]


@jit
def _is_same(data, first, stop, number, start, letters):
    same = start[number + 1] - start[number] == stop - first
    i = 0
    while same and i < stop - first:
        same = letters[start[number] + i] == data[first + i]
        i += 1
    return same


@jit
def _numbers(data, first, tables, n_types, ids, ends):
    """Number words from ``data[first]`` on, until half of the slots are full or the data ends.

    Writes ids, and the offsets behind those of each line. Returns where it stopped, the number of
    types, of ids and of lines.
    """
    slots, keys, start, letters = tables
    n_ids = n_lines = 0
    begin, key = first, np.uint64(0)
    for i in range(first, len(data)):
        letter = data[i]
        if letter != _SPACE and (letter < _FIRST_WHITE or letter > _LAST_WHITE):
            key = (key << np.uint64(8)) | np.uint64(letter)
            continue
        if i > begin:
            is_long = i - begin > _SHORT
            if is_long:
                key = _long_key(data, begin, i)
            slot = _slot(keys, key)
            while slots[slot] >= 0 and not (
                keys[slot] == key
                and (not is_long or _is_same(data, begin, i, slots[slot], start, letters))
            ):
                slot = (slot + np.uint64(1)) & np.uint64(len(keys) - 1)
            if slots[slot] < 0:
                slots[slot], keys[slot] = n_types, key
                start[n_types + 1] = start[n_types] + i - begin
                for j in range(i - begin):
                    letters[start[n_types] + j] = data[begin + j]
                n_types += 1
            ids[n_ids] = slots[slot]
            n_ids += 1
        begin, key = i + 1, np.uint64(0)
        if letter == _NEWLINE:
            ids[n_ids] = 0
            n_ids += 1
            ends[n_lines] = n_ids
            n_lines += 1
        if 2 * n_types == len(slots):
            break
    return begin, n_types, n_ids, n_lines


class WordNumbers:
    """Numbers of words in the order of their first occurrences; the line end is 0.

    Parameters
    ----------
    words : bytes
        Those that have a number already, the line end first, with spaces between them.
    """

    def __init__(self, words: bytes) -> None:
        self._n_types = 0
        self._tables = self._of_size(1 << 16, 1 << 20)
        self.ids(words + b" ")

    def ids(self, data: bytes) -> tuple[Int32, Int64]:
        """Return the ids of the words of `data`, and the offsets behind the ends of its lines.

        `data` ends with white space, which words are separated by.
        """
        letters = np.frombuffer(data, np.uint8)
        ids, ends = np.empty(len(data), np.int32), np.empty(data.count(b"\n"), np.int64)
        at = n_ids = n_lines = 0
        while at < len(data):
            self._reserve(len(data))
            at, self._n_types, more_ids, more_lines = _numbers(
                letters, at, self._tables, self._n_types, ids[n_ids:], ends[n_lines:]
            )
            ends[n_lines : n_lines + more_lines] += n_ids
            n_ids, n_lines = n_ids + more_ids, n_lines + more_lines
        return ids[:n_ids], ends

    def words(self) -> bytes:
        """Return all words so far, by number, with spaces between them."""
        start, letters = self._tables[2][: self._n_types + 1], self._tables[3]
        is_letter = np.ones(start[-1] + self._n_types - 1, np.bool_)
        is_letter[start[1:-1] + np.arange(self._n_types - 1)] = False
        text = np.full(len(is_letter), _SPACE, np.uint8)
        text[is_letter] = letters[: start[-1]]
        return text.tobytes()

    def _reserve(self, more: int) -> None:
        """Make room for another type, and for some more letters."""
        slots, keys, start, letters = self._tables
        n_letters = int(start[self._n_types])
        if n_letters + more > len(letters):
            letters = np.empty(2 * len(letters) + more, np.uint8)
            letters[:n_letters] = self._tables[3][:n_letters]
        if 2 * self._n_types == len(slots):
            slots, keys, start, _ = self._of_size(len(slots), 0)
            start[: self._n_types + 1] = self._tables[2]
            _refill(slots, keys, *self._tables[:2])
        self._tables = slots, keys, start, letters

    def _of_size(self, n_types: int, n_letters: int) -> tuple[Int32, Array, Int64, Array]:
        """Return empty tables: the type and the key of slots, offsets of words, their letters."""
        return (
            np.full(2 * n_types, -1, np.int32),
            np.empty(2 * n_types, np.uint64),
            np.zeros(n_types + 1, np.int64),
            np.empty(n_letters, np.uint8),
        )

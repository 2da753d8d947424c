"""N-gram features of contexts: which contexts have some, found by binary search."""

from typing import NamedTuple

import numpy as np

from hstree._arrays import Array, Int32, Int64, Integer
from hstree.kernels.arithmetic import check_shape
from hstree.kernels.jit import inline, jit


class Features(NamedTuple):
    """Features of the contexts of some items, and of all contexts."""

    number: Int64  # (B, n) contexts of each item by length, as numbers; -1 where there is none
    context_start: Int64  # (C + 1,) offsets of each context among the features
    row: Int32  # (F,) weight row of each feature, ascending for each context
    weight: Array  # (F,)


def checked_features(features: Features, n_items: int) -> Features:
    """Return the features; raises ValueError or IndexError where they are not those of the items.

    Compiled code would otherwise read outside an array.
    """
    number = features.number
    n_contexts = len(features.context_start) - 1
    check_shape("numbers of contexts", number.shape, (n_items, number.shape[1]))
    if number.size and not -1 <= number.min() <= number.max() < n_contexts:
        raise IndexError(f"numbers of contexts must be from -1 to {n_contexts - 1}")
    return features


def no_features(n_items: int) -> Features:
    """Return the features of items that have none."""
    return Features(
        np.empty((n_items, 0), np.int64),
        np.zeros(1, np.int64),
        np.empty(0, np.int32),
        np.empty(0, np.float32),
    )


@inline
def first_at_least(values, begin, end, least):
    """Return the first place from `begin` to `end` whose value is `least` or more, else `end`."""
    while begin < end:
        middle = (begin + end) // 2
        if values[middle] < least:
            begin = middle + 1
        else:
            end = middle
    return begin


def context_numbers(
    contexts: Integer, words: Int32, longer_start: Int64, n_single: int, n_lengths: int
) -> Int64:
    """Return the numbers (B, n_lengths) of the last 1 to n words of contexts; -1 where none.

    Parameters
    ----------
    contexts : int array (B, n)
        Label ids, the farthest first.
    words : int32 array (C,)
        Farthest word of each known context; those of one word are the first `n_single`.
    longer_start : int64 array (C + 1,)
        Offsets of the contexts that have one word more than each.
    """
    number = np.full((len(contexts), n_lengths), -1)
    ids = np.ascontiguousarray(contexts, np.int32)
    _fill_numbers(ids, words, longer_start, n_single, number)
    return number


@jit
def _fill_numbers(contexts, words, longer_start, n_single, number):
    n_words = contexts.shape[1]
    for b in range(len(contexts)):
        first = 0
        stop = n_single
        for i in range(min(n_words, number.shape[1])):
            word = contexts[b, n_words - 1 - i]
            context = first_at_least(words, first, stop, word)
            if context == stop or words[context] != word:
                break
            number[b, i] = context
            first = longer_start[context]
            stop = longer_start[context + 1]

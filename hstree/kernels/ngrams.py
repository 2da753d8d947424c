"""N-gram features of the contexts of a batch."""

from typing import NamedTuple

import numpy as np

from hstree._arrays import Array, Int32, Int64, Integer
from hstree.kernels.arithmetic import check_shape
from hstree.kernels.jit import inline, jit


class Features(NamedTuple):
    """Features of the contexts of some items, and of all contexts."""

    number: Int64  # (B, n) number of each item's context, by length; -1 if it is unknown
    context_start: Int64  # (C + 1,) offsets of the contexts in the features
    row: Int32  # (F,) weight row of each feature, ascending within a context
    weight: Array  # (F,)


def context_numbers(contexts: Integer, keys: Int64, start: Int64, n_labels: int) -> Int64:
    """Return the context numbers (B, n) of the last 1 to n words; -1 for unknown contexts.

    `keys` (C,) and the offsets by length, `start` (n + 1,), are those of `NgramFeatures`.
    """
    number = np.full((len(contexts), len(start) - 1), -1)
    _write_numbers(np.ascontiguousarray(contexts, np.int32), keys, start, n_labels, number)
    return number


@jit
def _write_numbers(contexts, keys, start, n_labels, number):
    """Write the numbers (B, n), up to the longest known context."""
    n_words = contexts.shape[1]
    for b in range(len(contexts)):
        shorter = 0
        for i in range(min(n_words, number.shape[1])):
            key = shorter * n_labels + contexts[b, n_words - 1 - i]
            context = first_at_least(keys, start[i], start[i + 1], key)
            if context == start[i + 1] or keys[context] != key:
                break
            number[b, i] = context
            shorter = context


def checked_features(features: Features, n_items: int) -> Features:
    """Return the features. Raises ValueError or IndexError if they do not fit the items.

    Otherwise, compiled code would read outside an array.
    """
    number = features.number
    n_contexts = len(features.context_start) - 1
    check_shape("numbers of contexts", number.shape, (n_items, number.shape[1]))
    if number.size and not -1 <= number.min() <= number.max() < n_contexts:
        raise IndexError(f"numbers of contexts must be from -1 to {n_contexts - 1}")
    return features


def no_features(n_items: int) -> Features:
    """Return an empty set of features for some items."""
    return Features(
        np.empty((n_items, 0), np.int64),
        np.zeros(1, np.int64),
        np.empty(0, np.int32),
        np.empty(0, np.float32),
    )


@inline
def first_at_least(values, begin, end, least):
    """Return the first index from `begin` to `end` with a value of `least` or more, else `end`."""
    while begin < end:
        middle = (begin + end) // 2
        if values[middle] < least:
            begin = middle + 1
        else:
            end = middle
    return begin

"""Loops of builders: exchange of words between classes, and k-means."""

from functools import partial
from typing import NamedTuple

import numpy as np

from hstree._arrays import Array, Bool, Float64, Int64, Integer
from hstree.kernels.jit import jit

#: Rows that are summed in float32; sums of such pieces are float64.
PIECE = 256

exact_jit = partial(jit, exact=True)


# Exchange of words between classes.


class WordPairs(NamedTuple):
    """Counts of the contexts of each word, those that occur more than once."""

    start: Integer  # (V + 1,) offsets of the words
    context: Int64  # (P,)
    context_count: Int64  # (P,)
    x_log_x: Float64  # x log x for x from 0


class ClassCounts(NamedTuple):
    """Counts by class, which moves update."""

    pairs: Integer  # (contexts, C) N(v, c)
    class_total: Float64  # (C,) N(c)
    word_total: Float64  # (V,) N(w)
    word_class: Int64  # (V,)


@exact_jit
def _x_log_x(x):
    return x * np.log(x) if x > 1 else 0.0


def move_words(
    words: Int64, pairs: WordPairs, counts: ClassCounts, min_gain: float, rows: int
) -> tuple[float, int]:
    """Move words to their best classes, one after the other; return the gain, and how many moved.

    Gains are summed over `rows` contexts at a time, in the order of NumPy.
    """
    gain, n_moved = _move_words(words, pairs, counts, min_gain, rows)
    return float(gain), int(n_moved)


@exact_jit
def _move_words(words, pairs, counts, min_gain, rows):
    start, context, count, x_log_x = pairs
    table, class_total, word_total, word_class = counts
    n_classes = len(class_total)
    gain = np.empty(n_classes)
    part = np.empty(n_classes)
    total = 0.0
    moves = 0
    for word in words:
        present = word_class[word]
        n = word_total[word]

        # Take the word out of its class
        for p in range(start[word], start[word + 1]):
            table[context[p], present] -= count[p]
        class_total[present] -= n

        # (C,) gain from the totals of the classes, then from the counts of the word's contexts
        for c in range(n_classes):
            gain[c] = _x_log_x(class_total[c]) - _x_log_x(class_total[c] + n)
        for first in range(start[word], start[word + 1], rows):
            part[:] = 0
            for p in range(first, min(first + rows, start[word + 1])):
                row = table[context[p]]
                more = count[p]
                # Growth of x log x; most counts are 0, where it is the same for all classes
                alone = x_log_x[more]
                for c in range(n_classes):
                    before = row[c]
                    if before == 0:
                        part[c] += alone
                    else:
                        part[c] += x_log_x[before + more] - x_log_x[before]
            for c in range(n_classes):
                gain[c] += part[c]

        # The class of the largest gain, the first of equals; the old one unless the gain suffices
        best = 0
        for c in range(1, n_classes):
            if gain[c] > gain[best]:
                best = c
        gained = gain[best] - gain[present]
        if gained > min_gain:
            total += gained
            moves += 1
        else:
            best = present

        # Put the word into it
        for p in range(start[word], start[word + 1]):
            table[context[p], best] += count[p]
        class_total[best] += n
        word_class[word] = best
    return total, moves


# k-means.


@jit
def _dot(X, i, vector):
    total = np.float32(0)
    for j in range(len(vector)):
        total += X[i, j] * vector[j]
    return np.float64(total)


@jit
def _add(X, i, weight, total):
    for j in range(len(total)):
        total[j] += weight * X[i, j]


@jit
def _flush(piece, total):
    """Add the sum of a piece to the total, and start the next piece."""
    for j in range(len(total)):
        total[j] += piece[j]
        piece[j] = 0


def clusters(start: Int64, X: Array, centres: Array, iterations: int, stop: Bool) -> Int64:
    """Return the cluster (n,) of each row by k-means within each node.

    `start` (S + 1,) are the offsets of the nodes among the rows (n, d), float32; `centres`
    (k, S, d) are changed. Without a result that has a meaning once the flag `stop` (1,) is set.
    """
    branch: Int64 = _clusters(start, X, centres, iterations, stop)
    return branch


@jit
def _clusters(start, X, centres, iterations, stop):
    """Return the cluster (n,) of each row; `centres` (k, S, d), without rows, stay."""
    n, d = X.shape
    k = len(centres)
    branch = np.full(n, -1)
    square = np.empty(k)
    pieces = np.zeros((k, d), np.float32)
    totals = np.empty((k, d))
    size = np.empty(k, np.int64)
    for s in range(len(start) - 1):
        moved = True
        iteration = 0
        while moved and iteration < iterations:
            # (k,) squared lengths of the centres
            for j in range(k):
                square[j] = _dot(centres[j], s, centres[j, s])

            # Put each row into the cluster of the nearest centre: |c|^2 - 2 x.c is the squared
            # distance without |x|^2, which is the same for all centres
            moved = False
            size[:] = 0
            totals[:] = 0
            for i in range(start[s], start[s + 1]):
                if stop[0]:
                    return branch
                best = 0
                lowest = np.inf
                for j in range(k):
                    distance = square[j] - 2 * _dot(X, i, centres[j, s])
                    if distance < lowest:
                        best = j
                        lowest = distance
                moved |= branch[i] != best
                branch[i] = best

                # Sum up the clusters, by pieces in float32
                size[best] += 1
                _add(X, i, np.float32(1), pieces[best])
                if size[best] % PIECE == 0:
                    _flush(pieces[best], totals[best])

            # Move the centres to the means of their rows
            for j in range(k):
                _flush(pieces[j], totals[j])
                if size[j] > 0:
                    for i in range(d):
                        centres[j, s, i] = totals[j, i] / size[j]
            iteration += 1
    return branch

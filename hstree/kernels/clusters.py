"""Loops of builders: exchange of words between classes, and k-means."""

from functools import partial
from typing import NamedTuple

import numpy as np

from hstree._arrays import Array, Bool, Float64, Int64, Integer
from hstree.kernels.jit import jit

#: Number of rows that are summed in float32; sums of such pieces are added in float64.
PIECE = 256

exact_jit = partial(jit, exact=True)


# Exchange of words between classes.


class WordPairs(NamedTuple):
    """Bigram counts of each word, for contexts that occur more than once."""

    start: Integer  # (V + 1,) offsets of the words
    context: Int64  # (P,)
    context_count: Int64  # (P,)
    x_log_x: Float64  # table of x log x for x = 0, 1, ...


class ClassCounts(NamedTuple):
    """Counts by class, which are updated when a word moves."""

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
    """Move words to their best classes, one after the other; return the gain, and number of moves.

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

        # Remove the word from its class
        for p in range(start[word], start[word + 1]):
            table[context[p], present] -= count[p]
        class_total[present] -= n

        # (C,) gain from the class totals, then from the counts of the word's contexts
        for c in range(n_classes):
            gain[c] = _x_log_x(class_total[c]) - _x_log_x(class_total[c] + n)
        for first in range(start[word], start[word + 1], rows):
            part[:] = 0
            for p in range(first, min(first + rows, start[word + 1])):
                row = table[context[p]]
                # Growth of x log x. Unsigned numbers, since numba tests others for being negative
                more = np.uint64(count[p])
                for c in range(n_classes):
                    before = np.uint64(row[c])
                    part[c] += x_log_x[before + more] - x_log_x[before]
            for c in range(n_classes):
                gain[c] += part[c]

        # The first class with the largest gain, or the old class if the gain is too small
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

        # Add the word to that class
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

    `start` (S + 1,) has the offsets of the nodes in the rows (n, d), float32. `centres` (k, S, d)
    are changed. The result has no meaning once the flag `stop` (1,) is set.
    """
    branch: Int64 = _clusters(start, X, centres, iterations, stop)
    return branch


@jit
def _clusters(start, X, centres, iterations, stop):
    """Return the cluster (n,) of each row; `centres` (k, S, d) of empty clusters stay."""
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

            # Assign each row to the nearest centre: |c|^2 - 2 x.c is the squared distance without
            # |x|^2, which is the same for all centres
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

                # Add the row to the sum of its cluster, in float32 pieces
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

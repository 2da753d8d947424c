"""Compiled loops of builders: exchange of words between classes, and k-means."""

from typing import Any

import numpy as np

from hstree._compiled import jit, jit_exact, stop_flag, takes
from hstree._typing import Array, Int64
from hstree.builders.shared.nodes import Nodes

#: Rows that are summed in float32; sums of such pieces are float64.
PIECE = 256


@jit_exact
def _x_log_x(x):
    return x * np.log(x) if x > 1 else 0.0


def move_words(counts: Any, words: Int64, rows: int) -> tuple[float, int]:
    """Twin of `bigrams.move_words`: sums are added in its order."""
    pairs = counts.start, counts.context, counts.count, counts.x_log_x
    classes = counts.table, counts.of_class, counts.of_word, counts.class_of
    moved: tuple[float, int] = _move_words(words, pairs, classes, counts.least_gain, rows)
    return moved


@jit_exact
def _move_words(words, pairs, classes, least, rows):
    """Move words; return the gain, and how many moved."""
    start, context, count, x_log_x = pairs
    table, of_class, of_word, class_of = classes
    n_classes = len(of_class)
    gain, part = np.empty(n_classes), np.empty(n_classes)
    total, moves = 0.0, 0
    for word in words:
        present, n = class_of[word], of_word[word]
        for p in range(start[word], start[word + 1]):
            table[context[p], present] -= count[p]
        of_class[present] -= n
        for c in range(n_classes):
            gain[c] = _x_log_x(of_class[c]) - _x_log_x(of_class[c] + n)
        for first in range(start[word], start[word + 1], rows):
            part[:] = 0
            for p in range(first, min(first + rows, start[word + 1])):
                of_context, more = table[context[p]], count[p]
                alone = x_log_x[more]
                for c in range(n_classes):
                    before = of_context[c]
                    if before == 0:
                        part[c] += alone
                    else:
                        part[c] += x_log_x[before + more] - x_log_x[before]
            for c in range(n_classes):
                gain[c] += part[c]
        best = 0
        for c in range(1, n_classes):
            if gain[c] > gain[best]:
                best = c
        gained = gain[best] - gain[present]
        if gained > least:
            total += gained
            moves += 1
        else:
            best = present
        for p in range(start[word], start[word + 1]):
            table[context[p], best] += count[p]
        of_class[best] += n
        class_of[word] = best
    return total, moves


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
    """Add the sum of a piece to the total, and begin the next piece."""
    for j in range(len(total)):
        total[j] += piece[j]
        piece[j] = 0


def clusters(nodes: Nodes, X: Array, centres: list[Array], balanced: bool, iterations: int) -> Any:
    """Twin of `kmeans.clusters`; ends, without a result, when it is to stop."""
    if balanced or not takes(X):
        return NotImplemented
    return _clusters(nodes.start, X, np.stack(centres), iterations, stop_flag.get())


@jit
def _clusters(start, X, centres, iterations, stop):
    """Return the cluster (n,) of each row; `centres` (k, S, d), without rows, stay."""
    (n, d), k = X.shape, len(centres)
    branch, square = np.full(n, -1), np.empty(k)
    pieces, totals, size = np.zeros((k, d), np.float32), np.empty((k, d)), np.empty(k, np.int64)
    for s in range(len(start) - 1):
        moved, round = True, 0
        while moved and round < iterations:
            for j in range(k):
                square[j] = _dot(centres[j], s, centres[j, s])
            moved = False
            size[:] = 0
            totals[:] = 0
            for i in range(start[s], start[s + 1]):
                if stop[0]:
                    return branch
                best, least = 0, np.inf
                for j in range(k):
                    distance = square[j] - 2 * _dot(X, i, centres[j, s])
                    if distance < least:
                        best, least = j, distance
                moved |= branch[i] != best
                branch[i] = best
                size[best] += 1
                _add(X, i, np.float32(1), pieces[best])
                if size[best] % PIECE == 0:
                    _flush(pieces[best], totals[best])
            for j in range(k):
                _flush(pieces[j], totals[j])
                if size[j] > 0:
                    for i in range(d):
                        centres[j, s, i] = totals[j, i] / size[j]
            round += 1
    return branch

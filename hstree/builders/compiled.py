"""Compiled loops of builders: exchange of words between classes, mixtures of Gaussians, k-means."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hstree._compiled import in_parts, jit, jit_exact, stop_flag, takes
from hstree._typing import Array, Bool, Float64, Int64
from hstree.builders.gmm import LEAST_SHARE, LEAST_VARIANCE, VARIANCE_FLOOR
from hstree.builders.shared.nodes import Nodes

#: Rows that are summed in float32; sums of such pieces are float64.
PIECE = 256
#: Rows of a node above which threads share them, and those that a thread gets at a time.
MANY, PART = 1 << 17, 1 << 14


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


# Mixtures of two Gaussians: one pass over the rows does the E-step and the sums of the next M-step.
# Then k-means.


@jit
def _expit(x):
    small = math.exp(-abs(x))
    return (1.0 if x >= 0 else small) / (1.0 + small)


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


@jit
def _sums(X, rows, square, odds, sign, piece, total):
    """Return the mass and the spread of the component of `sign`; write its sum of rows."""
    first, stop = rows
    light = light_spread = 0.0
    total[:] = 0
    for i in range(first, stop):
        share = _expit(sign * odds[i])
        light += share
        light_spread += share * square[i]
        if share > 0:
            _add(X, i, np.float32(share), piece)
        if (i - first) % PIECE == PIECE - 1 or i == stop - 1:
            _flush(piece, total)
    return light, light_spread


@jit
def _spread(X, rows, square, second):
    """Return the spread of rows, and the number of those of the second component."""
    spread = of_second = 0.0
    for i in range(rows[0], rows[1]):
        square[i] = _dot(X, i, X[i])
        spread += square[i]
        of_second += second[i]
    return spread, of_second


@jit
def _maximise(light, light_spread, total, mass, spread, mean):
    """M-step: write the mean of the lighter component, return the terms of the log-odds of a row.

    These are a constant, and the factors of its square and of its dot product with the mean.
    """
    d = len(mean)
    least = max(VARIANCE_FLOOR * spread / (mass * d), LEAST_VARIANCE)
    light = max(light, LEAST_SHARE * mass)
    heavy = mass - light
    ratio = light / heavy
    mean_square = 0.0
    for j in range(d):
        mean[j] = np.float32(total[j] / light)
        mean_square += np.float64(mean[j]) * np.float64(mean[j])
    light_variance = max(light_spread / light - mean_square, 0.0) / d
    heavy_variance = max((spread - light_spread) / heavy - ratio**2 * mean_square, 0.0) / d
    light_precision = 1 / (light_variance + least)
    heavy_precision = 1 / (heavy_variance + least)
    constant = math.log(ratio) + d / 2 * math.log(light_precision / heavy_precision)
    constant += mean_square / 2 * (ratio**2 * heavy_precision - light_precision)
    quadratic = (heavy_precision - light_precision) / 2
    return constant, quadratic, light_precision + ratio * heavy_precision


@jit
def _expect(X, rows, square, terms, mean, sign, is_last, odds, piece, total):
    """E-step: write the odds of rows; unless last, return and write what `_sums` does of them."""
    first, stop = rows
    constant, quadratic, linear = terms
    light = light_spread = 0.0
    total[:] = 0
    for i in range(first, stop):
        of_row = constant + quadratic * square[i] + linear * _dot(X, i, mean)
        odds[i] = sign * of_row
        if is_last:
            continue
        share = _expit(of_row)
        light += share
        light_spread += share * square[i]
        if share > 0:
            _add(X, i, np.float32(share), piece)
        if (i - first) % PIECE == PIECE - 1 or i == stop - 1:
            _flush(piece, total)
    return light, light_spread


def log_odds(nodes: Nodes, X: Array, second: Bool, iterations: int) -> Any:
    """Twin of `gmm.log_odds`; ends, without a result, when it is to stop.

    The rows of one large node are shared by threads, in parts that do not depend on their number.
    """
    if not takes(X):
        return NotImplemented
    if len(nodes.size) == 1 and len(X) >= MANY:
        return _log_odds_of_large(X, second, iterations)
    return _log_odds(nodes.start, X, second, iterations, stop_flag.get())


@jit
def _log_odds(start, X, second, iterations, stop):
    n, d = X.shape
    odds, square = np.where(second, np.inf, -np.inf), np.empty(n)
    # sums over the rows of the lighter component: of the present piece, and of all before it
    piece, total = np.zeros(d, np.float32), np.empty(d)
    mean = np.empty(d, np.float32)
    for s in range(len(start) - 1):
        rows = (start[s], start[s + 1])
        mass = float(start[s + 1] - start[s])
        spread, of_second = _spread(X, rows, square, second)
        sign = 1.0 if of_second <= mass / 2 else -1.0
        light, light_spread = _sums(X, rows, square, odds, sign, piece, total)
        for round in range(iterations + 1):
            if stop[0]:
                return odds
            terms = _maximise(light, light_spread, total, mass, spread, mean)
            is_last = round == iterations
            light, light_spread = _expect(
                X, rows, square, terms, mean, sign, is_last, odds, piece, total
            )
            if light > mass / 2:
                # the other component has become the lighter one
                sign = -sign
                light, light_spread = _sums(X, rows, square, odds, sign, piece, total)
    return odds


def _log_odds_of_large(X: Array, second: Bool, iterations: int) -> Float64:
    """Return what `_log_odds` does for one node; every pass over its rows is in threads."""
    n, d = X.shape
    starts = range(0, n, PART)
    odds, square = np.where(second, np.inf, -np.inf), np.empty(n)
    spreads, lights, totals = (np.empty((len(starts), size)) for size in (2, 2, d))
    mean, stop = np.empty(d, np.float32), stop_flag.get()

    def of_parts(function: Callable[..., Any], out: Float64, *args: Any, sums: bool = True) -> Any:
        def some(first: int, behind: int) -> None:
            piece = np.zeros(d, np.float32)
            for part in range(first, behind):
                rows = (starts[part], min(starts[part] + PART, n))
                last = (piece, totals[part]) if sums else ()
                out[part] = function(X, rows, square, *args, *last)

        in_parts(len(starts), some, step=1)
        return out.sum(axis=0)

    mass, (spread, of_second) = float(n), of_parts(_spread, spreads, second, sums=False)
    sign = 1.0 if of_second <= mass / 2 else -1.0
    light, light_spread = of_parts(_sums, lights, odds, sign)
    for round in range(iterations + 1):
        if stop[0]:
            return odds
        total = totals.sum(axis=0)
        terms = _maximise(light, light_spread, total, mass, spread, mean)
        is_last = round == iterations
        light, light_spread = of_parts(_expect, lights, terms, mean, sign, is_last, odds)
        if light > mass / 2:
            sign = -sign
            light, light_spread = of_parts(_sums, lights, odds, sign)
    return odds


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

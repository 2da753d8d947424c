"""Compiled loops of builders: the words that an exchange moves from class to class."""

from __future__ import annotations

import numpy as np

from hstree._compiled import jit_exact


@jit_exact
def _x_log_x(x):
    return x * np.log(x) if x > 1 else 0.0


@jit_exact
def move_words(
    words, start, context, count, x_log_x, table, of_class, of_word, class_of, least, rows
):
    """Move words to their best classes, one after the other, as `bigrams._Counts.move` does.

    Sums are added in its order: `rows` contexts at a time. Returns the gain of log-likelihood and
    the number of moves.
    """
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

"""Predictive exchange: classes that say most about the next word, by moving one word at a time.

It raises ``sum over pairs v w of log P(class(w) | v) P(w | class(w))``, the factorisation of a
two-level class tree, with the word before as the context. The sweep over words is sequential by
nature; what a word would gain in each class is one computation over arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from hstree import progress
from hstree._typing import Float64, Int64, Integer
from hstree.builders.word_classes.bigrams import bigram_perplexity, x_log_x

#: Entries of the gathered counts that are worked on at once, so that they stay in cache.
_BLOCK_ENTRIES = 1 << 16
#: Words between two signs of progress.
_BLOCK_WORDS = 256


@dataclass(frozen=True)
class Exchanged:
    """Classes that no single move improves.

    Attributes
    ----------
    class_of : int64 array (words,)
    perplexities : tuple of float
        Of the class bigram model, as `bigram_perplexity`: at the start and after each sweep but
        the last, which moved nothing. Empty where there is no pair.
    moves : int
    """

    class_of: Int64
    perplexities: tuple[float, ...]
    moves: int


def exchange(bigrams: csc_array, n_classes: int) -> Exchanged:
    """Move words between classes until no move helps.

    Parameters
    ----------
    bigrams : csc_array (contexts, words) of int
        Entry (v, w): how often w follows v. A word may have none.
    n_classes : int
        From 1 to the number of words.

    Returns
    -------
    Exchanged
        No class is empty where it was not so at the start: a word alone gains nothing by
        joining others.

    Notes
    -----
    At the start the words, the most frequent first (ties in their order), are dealt to the
    classes in turn. Each sweep takes them in that order, each to the class where the
    log-likelihood gains most: of equal classes its own, then the first one. A move must gain
    more than 1e-12 N ln N for the N pairs, which is what rounding could feign. The classes are
    a local optimum; there is no randomness in them.

    With N(v, c) the pairs of v and a word of class c, the log-likelihood is
    ``sum_vc N(v, c) ln N(v, c) - sum_c N(c) ln N(c)`` and a constant, so that a move of w
    changes only the rows N(v, .) of its predecessors v [1]_, [2]_. A context that is seen once
    adds 1 ln 1 = 0 wherever w goes, and is left out. O(pairs that differ x classes) a sweep,
    and 4 bytes for each context and class.

    References
    ----------
    .. [1] R. Kneser and H. Ney, "Improved clustering techniques for class-based statistical
       language modelling", Eurospeech 1993.
    .. [2] J. Uszkoreit and T. Brants, "Distributed Word Clustering for Large Scale Class-Based
       Language Modeling in Machine Translation", ACL 2008.
    """
    of_word = bigrams.sum(axis=0)
    order = np.argsort(-of_word, kind="stable")
    class_of = np.empty(len(of_word), np.int64)
    class_of[order] = np.arange(len(order)) % n_classes
    n_pairs = int(of_word.sum())
    first = bigram_perplexity(bigrams, class_of)
    if first is None or n_classes == 1:
        return Exchanged(class_of, () if first is None else (first,), 0)

    perplexities, moves = [first], 0
    state = _Counts(bigrams, class_of, n_classes, least_gain=1e-12 * n_pairs * np.log(n_pairs))
    with progress.task("exchanging words", unit="words") as task:
        while True:
            before = moves
            perplexity = perplexities[-1]
            for start in range(0, len(order), _BLOCK_WORDS):
                block = order[start : start + _BLOCK_WORDS]
                gain = 0.0
                for word in block.tolist():
                    gained = state.move(word)
                    gain += gained
                    moves += gained > 0
                perplexity *= float(np.exp(-gain / n_pairs))
                task.advance(len(block))
                task.note(f"sweep {len(perplexities)}, {moves:,} moves, {perplexity:.2f}")
            if moves == before:
                break
            perplexities.append(perplexity)
    exact = bigram_perplexity(bigrams, class_of)
    if exact is not None:
        perplexities[-1] = exact
    return Exchanged(class_of, tuple(perplexities), moves)


class _Counts:
    """The counts N(v, c) and N(c), kept up to date while words move."""

    def __init__(
        self, bigrams: csc_array, class_of: Int64, n_classes: int, least_gain: float
    ) -> None:
        of_context = bigrams.sum(axis=1)
        self.of_word = bigrams.sum(axis=0)
        self.class_of = class_of
        self.least_gain = least_gain
        repeated = csc_array(bigrams[of_context > 1])
        self.start = repeated.indptr.tolist()
        self.context = repeated.indices.astype(np.intp)
        self.count = repeated.data.astype(np.int64)
        largest = int(of_context.max())
        self.x_log_x = x_log_x(np.arange(largest + 1))
        self.of_class = np.bincount(class_of, weights=self.of_word, minlength=n_classes)
        dtype = np.int32 if largest <= np.iinfo(np.int32).max else np.int64
        self.table: Integer = np.zeros((repeated.shape[0], n_classes), dtype)
        for word in range(len(class_of)):
            here = slice(self.start[word], self.start[word + 1])
            self.table[self.context[here], class_of[word]] += self.count[here]

    def move(self, word: int) -> float:
        """Put a word where it gains most; return what that gains, 0 where it stays."""
        here = slice(self.start[word], self.start[word + 1])
        context, count, own = self.context[here], self.count[here], self.class_of[word]
        # Taken out, it finds its own class and every other one on the same footing.
        self.table[context, own] -= count
        self.of_class[own] -= self.of_word[word]
        gain = self._gains(context, count, self.of_word[word])
        best = int(np.argmax(gain))
        gained = float(gain[best] - gain[own])
        if gained <= self.least_gain:
            best, gained = own, 0.0
        self.table[context, best] += count
        self.of_class[best] += self.of_word[word]
        self.class_of[word] = best
        return gained

    def _gains(self, context: NDArray[np.intp], count: Int64, n: int) -> Float64:
        """Return what a word adds to the log-likelihood in each class (C,), but for a constant."""
        gain = x_log_x(self.of_class) - x_log_x(self.of_class + n)
        rows = max(1, _BLOCK_ENTRIES // len(gain))
        for start in range(0, len(context), rows):
            block = self.table.take(context[start : start + rows], axis=0).astype(np.intp)
            without = self.x_log_x.take(block)
            block += count[start : start + rows, None]
            gain += (self.x_log_x.take(block) - without).sum(axis=0)
        return gain

"""Word classes by predictive exchange."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from hstree import progress
from hstree._arrays import Float64, Int64, Integer, batches, offsets
from hstree.builders.classes.bigrams import bigram_perplexity, class_sums, x_log_x
from hstree.kernels import compiled

#: Number of table entries that are compared at once; they fit into the cache.
BLOCK_ENTRIES = 1 << 16
#: Number of table entries that are compared between two progress reports.
ENTRIES_PER_REPORT = 1 << 25


@dataclass(frozen=True)
class Exchanged:
    """Result of an exchange."""

    word_class: Int64  #: (words,)
    perplexities: tuple[float, ...]  #: initially, and after each sweep that moved a word
    moves: int


def exchange(
    bigrams: csc_array,
    n_classes: int,
    tolerance: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Exchanged:
    """Cluster words by predictive exchange: move one word at a time while the likelihood rises.

    Entry (v, w) of the bigrams (contexts, words) is the number of times that w follows v; a word
    may have no bigrams. There may be as many classes as words. No class becomes empty, since a word
    that is alone in its class gains nothing in another class.

    Notes
    -----
    The log-likelihood is the one of `bigram_perplexity`: that of a two-level class tree whose
    context is the previous word. Initially, the words are dealt to the classes in turn, the most
    frequent first (ties in their order), or in an order drawn by `rng`. Each sweep visits the words
    in order of frequency and moves each to the class that increases the likelihood most. Ties are
    broken in favour of the present class, then of the first. A move must gain more than
    1e-12 N ln N for the N pairs, the size of rounding errors. The last sweep is the first that
    lowers the perplexity by less than the fraction `tolerance`, or that moves no word. With a
    tolerance of 0, no move of a single word improves the result.

    If N(v, c) is the number of pairs of v and a word in class c, the log-likelihood is
    ``sum_vc N(v, c) ln N(v, c) - sum_c N(c) ln N(c)`` plus a constant. A move of w therefore
    changes only the rows N(v, .) of its predecessors v [1]_, [2]_. A context that occurs once
    adds 1 ln 1 = 0 in every class, and is left out. O(distinct pairs x classes) per sweep, and
    4 bytes per context and class.

    References
    ----------
    .. [1] R. Kneser and H. Ney, "Improved clustering techniques for class-based statistical
       language modelling", Eurospeech 1993.
    .. [2] J. Uszkoreit and T. Brants, "Distributed Word Clustering for Large Scale Class-Based
       Language Modeling in Machine Translation", ACL 2008.
    """
    # Deal the words to the classes
    word_total = bigrams.sum(axis=0)
    order = np.argsort(-word_total, kind="stable")
    dealt = order if rng is None else rng.permutation(len(order))
    word_class = np.empty(len(word_total), np.int64)
    word_class[dealt] = np.arange(len(order)) % n_classes
    n_pairs = int(word_total.sum())
    first_perplexity = bigram_perplexity(bigrams, word_class)
    if first_perplexity is None:
        return Exchanged(word_class, (), 0)
    if n_classes == 1:
        return Exchanged(word_class, (first_perplexity,), 0)

    # Blocks of words with about the same number of table entries to compare
    entries = offsets((np.diff(bigrams.indptr)[order] + 1) * n_classes)
    blocks = list(batches(entries, ENTRIES_PER_REPORT))
    counts = ExchangeCounts(bigrams, word_class, n_classes, 1e-12 * n_pairs * np.log(n_pairs))
    perplexities = [first_perplexity]
    n_moves = 0
    shown = 0.0
    with progress.task("classes by exchange", total=1) as task:
        while len(perplexities) == 1 or perplexities[-1] <= (1 - tolerance) * perplexities[-2]:
            sweep = len(perplexities)
            sweep_moves = 0
            sweep_gain = 0.0
            for start, stop in blocks:
                gain, block_moves = move_words(counts, order[start:stop], counts.rows_at_once)
                sweep_moves += block_moves
                sweep_gain += gain
                perplexity = perplexities[-1] * float(np.exp(-sweep_gain / n_pairs))

                # The number of sweeps is unknown, so progress at the start of sweep n is 1 - 1/n
                done = 1 - 1 / sweep + entries[stop] / entries[-1] / (sweep * (sweep + 1))
                task.advance(done - shown)
                shown = done
                moves_so_far = n_moves + sweep_moves
                task.note(f"sweep {sweep}, {moves_so_far:,} moves, perplexity {perplexity:.2f}")
            if not sweep_moves:
                break
            perplexities.append(perplexity)
            n_moves += sweep_moves
    # Compute the last perplexity exactly, since the sums above have rounding errors
    perplexities[-1] = bigram_perplexity(bigrams, word_class) or first_perplexity
    return Exchanged(word_class, tuple(perplexities), n_moves)


class ExchangeCounts:
    """The counts N(v, c) and N(c), updated as words move."""

    def __init__(
        self, bigrams: csc_array, word_class: Int64, n_classes: int, least_gain: float
    ) -> None:
        self.word_class = word_class
        self.least_gain = least_gain
        self.rows_at_once = max(1, BLOCK_ENTRIES // n_classes)

        # Bigrams whose context occurs more than once, by word
        context_total = bigrams.sum(axis=1)
        repeated = csc_array(bigrams[context_total > 1])
        self.start = repeated.indptr
        self.context = repeated.indices.astype(np.intp)
        self.count = repeated.data.astype(np.int64)
        largest = int(context_total.max())
        self.x_log_x = x_log_x(np.arange(largest + 1))

        # N(w), N(c) and N(v, c)
        self.word_total = bigrams.sum(axis=0)
        self.class_total = np.bincount(word_class, weights=self.word_total, minlength=n_classes)
        dtype = np.int32 if largest <= np.iinfo(np.int32).max else np.int64
        sums = class_sums(repeated, word_class, n_classes)
        self.table: Integer = sums.astype(dtype).toarray()

    def move(self, word: int) -> float:
        """Move a word to its best class; return the gain, which is 0 if the word stays."""
        entries = slice(self.start[word], self.start[word + 1])
        context = self.context[entries]
        count = self.count[entries]
        present = self.word_class[word]

        # Remove the word from its class, so that all classes are compared in the same way
        self.table[context, present] -= count
        self.class_total[present] -= self.word_total[word]
        gains = self._gains(context, count, self.word_total[word])
        best = int(np.argmax(gains))
        gain = float(gains[best] - gains[present])
        if gain <= self.least_gain:
            best = present
            gain = 0.0

        # Add the word to the best class, or to its old class
        self.table[context, best] += count
        self.class_total[best] += self.word_total[word]
        self.word_class[word] = best
        return gain

    def _gains(self, context: NDArray[np.intp], count: Int64, total: int) -> Float64:
        """Return the gain in log-likelihood from a word in each class (C,), up to a constant."""
        # First the terms of the class totals, then those of the context counts, in blocks
        gains = x_log_x(self.class_total) - x_log_x(self.class_total + total)
        for start in range(0, len(context), self.rows_at_once):
            rows = slice(start, start + self.rows_at_once)
            block = self.table.take(context[rows], axis=0).astype(np.intp)
            without = self.x_log_x.take(block)
            block += count[rows, None]
            gains += (self.x_log_x.take(block) - without).sum(axis=0)
        return gains


def move_words(counts: ExchangeCounts, words: Int64, rows: int) -> tuple[float, int]:
    """Move words one after the other; return the gain, and the number of words that moved.

    Compiled code sums gains over `rows` rows of the table at a time, in the order of NumPy.
    """
    if (fast := compiled()) is not None:
        pairs = fast.WordPairs(counts.start, counts.context, counts.count, counts.x_log_x)
        classes = fast.ClassCounts(
            counts.table, counts.class_total, counts.word_total, counts.word_class
        )
        gain, n_moved = fast.move_words(words, pairs, classes, counts.least_gain, rows)
        return gain, n_moved
    gains = [counts.move(word) for word in words.tolist()]
    return sum(gains), sum(gain > 0 for gain in gains)

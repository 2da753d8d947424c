"""Bigram counts, and classes of words by them: predictive exchange and Brown's merging."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array

from hstree import progress
from hstree._arrays import Float64, Int64, Integer, batches, offsets
from hstree.data.corpus import Corpus
from hstree.data.vocabulary import EOS, UNK
from hstree.kernels import compiled

#: Tokens counted at once.
_BLOCK_TOKENS = 1 << 22
#: Entries of the exchange's table worked on at once, so that they stay in cache.
_BLOCK_ENTRIES = 1 << 16
#: Entries of the exchange's table that are compared between two reports of progress.
_ENTRIES_AT_ONCE = 1 << 25


def bigram_counts(corpus: Corpus) -> csc_array:
    """Count the pairs of neighbours in a corpus, across line ends too: int64 (V, V).

    Entry (v, w) is how often w follows v. ``<eos>`` is taken to precede the first word. Tokens out
    of the vocabulary count as ``<unk>`` where the vocabulary holds it; elsewhere their pairs are
    left out, and otherwise the columns sum to ``corpus.counts``. The rows of a column are in order.
    O(tokens log tokens) time, block by block; memory for the distinct pairs.
    """
    words = corpus.vocabulary
    oov = words.index(UNK) if words.unk is not None else -1
    before = words.index(EOS) if words.eos is not None else -1
    total = csc_array((len(words), len(words)), dtype=np.int64)
    with progress.task("counting pairs", total=len(corpus), unit="tokens") as task:
        for first in range(0, len(corpus), _BLOCK_TOKENS):
            ids = corpus.ids(slice(first, first + _BLOCK_TOKENS))
            ids[ids < 0] = oov
            previous = np.concatenate([[before], ids[:-1]]).astype(ids.dtype)
            known = (previous >= 0) & (ids >= 0)
            ones = np.ones(np.count_nonzero(known), np.int64)
            pairs = coo_array((ones, (previous[known], ids[known])), shape=total.shape)
            total = total + pairs.tocsc()
            before = int(ids[-1])
            task.advance(len(ids))
    total.sort_indices()
    return total


def class_sums(bigrams: csc_array, class_of: Int64, n_classes: int) -> csr_array:
    """Sum the columns of the words of each class: (contexts, classes), entry (v, c) = N(v, c)."""
    words = np.arange(len(class_of))
    ones = np.ones(len(class_of), np.int64)
    member = csr_array((ones, (words, class_of)), shape=(len(class_of), n_classes))
    return csr_array(bigrams.tocsr() @ member)


def bigram_perplexity(bigrams: csc_array, class_of: Int64) -> float | None:
    """Return the training perplexity of the class bigram model, or None where there is no pair.

    It is that of ``P(w | v) = P(class(w) | v) P(w | class(w))``, both by relative frequencies in
    the pairs (contexts, words) [1]_. Classes (words,) are numbered from 0.

    References
    ----------
    .. [1] J. Uszkoreit and T. Brants, "Distributed Word Clustering for Large Scale Class-Based
       Language Modeling in Machine Translation", ACL 2008, section 3 (predictive class bigrams).
    """
    n_pairs = bigrams.sum()
    if n_pairs == 0:
        return None
    n_classes = int(class_of.max()) + 1
    of_word = bigrams.sum(axis=0)
    of_class = np.bincount(class_of, weights=of_word, minlength=n_classes)
    sums = class_sums(bigrams, class_of, n_classes)
    log_likelihood = (
        x_log_x(sums.data).sum()
        - x_log_x(bigrams.sum(axis=1)).sum()
        + x_log_x(of_word).sum()
        - x_log_x(of_class).sum()
    )
    return float(np.exp(-log_likelihood / n_pairs))


def x_log_x(x: NDArray[np.generic]) -> Float64:
    """Return x ln x for each count, 0 for 0."""
    value = np.asarray(x).astype(np.float64)
    product: Float64 = value * np.log(np.maximum(value, 1))
    return product


@dataclass(frozen=True)
class Exchanged:
    """Classes (words,) by exchange, perplexities at the start and after each sweep that moved."""

    class_of: Int64
    perplexities: tuple[float, ...]
    moves: int


def exchange(
    bigrams: csc_array,
    n_classes: int,
    tolerance: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Exchanged:
    """Cluster words by predictive exchange: move one word at a time while the likelihood rises.

    Entry (v, w) of the bigrams (contexts, words) is how often w follows v; a word may have none.
    There may be as many classes as words. No class becomes empty, since a word alone in its class
    gains nothing by joining others.

    Notes
    -----
    The log-likelihood is that of `bigram_perplexity`, the factorisation of a two-level class tree
    with the previous word as the context. The start deals the words to the classes in turn, the
    most frequent first (ties in their order), or in an order that `rng` draws. Each sweep takes
    the words by frequency and moves each to the class where the likelihood gains most: of equal
    classes its present one, then the first. A move must gain more than 1e-12 N ln N for the N
    pairs, the size of rounding errors. The last sweep is the first that lowers the perplexity by
    less than the share `tolerance` of it, or that moves nothing; with a tolerance of 0, no move of
    a single word improves the result.

    With N(v, c) the pairs of v and a word of class c, the log-likelihood is
    ``sum_vc N(v, c) ln N(v, c) - sum_c N(c) ln N(c)`` and a constant, so that a move of w
    changes only the rows N(v, .) of its predecessors v [1]_, [2]_. A context that occurs once
    adds 1 ln 1 = 0 wherever w goes, and is left out. O(distinct pairs x classes) per sweep,
    and 4 bytes per context and class.

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
    dealt = order if rng is None else rng.permutation(len(order))
    class_of[dealt] = np.arange(len(order)) % n_classes
    n_pairs = int(of_word.sum())
    first = bigram_perplexity(bigrams, class_of)
    if first is None or n_classes == 1:
        return Exchanged(class_of, () if first is None else (first,), 0)

    # words in blocks, by the table entries that they are compared with
    entries = offsets((np.diff(bigrams.indptr)[order] + 1) * n_classes)
    blocks = list(batches(entries, _ENTRIES_AT_ONCE))
    counts = _Counts(bigrams, class_of, n_classes, 1e-12 * n_pairs * np.log(n_pairs))
    perplexities = [first]  # before and after each sweep
    moves, shown = 0, 0.0
    with progress.task("classes by exchange", total=1) as task:
        while len(perplexities) == 1 or perplexities[-1] <= (1 - tolerance) * perplexities[-2]:
            sweep, moved, gained = len(perplexities), 0, 0.0
            for start, stop in blocks:
                gain, n_moved = move_words(counts, order[start:stop], counts.rows_at_once)
                moved, gained = moved + n_moved, gained + gain
                # How many sweeps follow is not known: one more, so that the n-th begins at 1 - 1/n.
                done = 1 - 1 / sweep + entries[stop] / entries[-1] / (sweep * (sweep + 1))
                task.advance(done - shown)
                shown = done
                perplexity = perplexities[-1] * float(np.exp(-gained / n_pairs))
                task.note(f"sweep {sweep}, {moves + moved:,} moves, perplexity {perplexity:.2f}")
            if not moved:
                break
            perplexities.append(perplexity)
            moves += moved
    perplexities[-1] = bigram_perplexity(bigrams, class_of) or first  # without rounding
    return Exchanged(class_of, tuple(perplexities), moves)


class _Counts:
    """Counts N(v, c) and N(c), updated as words move."""

    def __init__(
        self, bigrams: csc_array, class_of: Int64, n_classes: int, least_gain: float
    ) -> None:
        of_context, self.of_word = bigrams.sum(axis=1), bigrams.sum(axis=0)
        self.class_of, self.least_gain = class_of, least_gain
        self.rows_at_once = max(1, _BLOCK_ENTRIES // n_classes)
        repeated = csc_array(bigrams[of_context > 1])
        self.start = repeated.indptr
        self.context = repeated.indices.astype(np.intp)
        self.count = repeated.data.astype(np.int64)
        largest = int(of_context.max())
        self.x_log_x = x_log_x(np.arange(largest + 1))
        self.of_class = np.bincount(class_of, weights=self.of_word, minlength=n_classes)
        dtype = np.int32 if largest <= np.iinfo(np.int32).max else np.int64
        # N(v, c)
        self.table: Integer = class_sums(repeated, class_of, n_classes).astype(dtype).toarray()

    def move(self, word: int) -> float:
        """Move a word to its best class; return the gain, 0 if it stays."""
        here = slice(self.start[word], self.start[word + 1])
        context, count, present = self.context[here], self.count[here], self.class_of[word]
        # Take the word out, so that all classes compare alike.
        self.table[context, present] -= count
        self.of_class[present] -= self.of_word[word]
        gain = self._gains(context, count, self.of_word[word])
        best = int(np.argmax(gain))
        gained = float(gain[best] - gain[present])
        if gained <= self.least_gain:
            best, gained = present, 0.0
        self.table[context, best] += count
        self.of_class[best] += self.of_word[word]
        self.class_of[word] = best
        return gained

    def _gains(self, context: NDArray[np.intp], count: Int64, n: int) -> Float64:
        """Return what a word adds to the log-likelihood in each class (C,), up to a constant."""
        gain = x_log_x(self.of_class) - x_log_x(self.of_class + n)
        for start in range(0, len(context), self.rows_at_once):
            some = slice(start, start + self.rows_at_once)
            block = self.table.take(context[some], axis=0).astype(np.intp)
            without = self.x_log_x.take(block)
            block += count[some, None]
            gain += (self.x_log_x.take(block) - without).sum(axis=0)
        return gain


def move_words(counts: _Counts, words: Int64, rows: int) -> tuple[float, int]:
    """Move words one after the other, by the gains of some rows of the table at a time.

    Returns the gain, and how many words moved.
    """
    if (fast := compiled()) is not None:
        pairs = fast.WordPairs(counts.start, counts.context, counts.count, counts.x_log_x)
        classes = fast.ClassCounts(counts.table, counts.of_class, counts.of_word, counts.class_of)
        gain, n_moved = fast.move_words(words, pairs, classes, counts.least_gain, rows)
        return gain, n_moved
    gains = [counts.move(word) for word in words.tolist()]
    return sum(gains), sum(gain > 0 for gain in gains)


def merge_by_information(pairs: Integer) -> Int64:
    """Merge classes two by two, each time with the least loss of average mutual information.

    Entry (a, b) of `pairs` (C, C) is how often a word of class b follows one of class a. Row i of
    the result (C - 1, 2) is the i-th merge, the smaller number first: an item below C is a class,
    ``C + i`` is merge i. The last merge is the root.

    Notes
    -----
    The average mutual information of neighbouring classes [1]_, times the number of pairs, is
    ``sum_ab f(N(a, b)) - sum_a f(N(a, .)) - sum_b f(N(., b))`` and a constant, f(x) = x ln x.
    The losses of each two classes in the rows and in the columns are kept and updated after each
    merge, O(C^2). O(C^3) in all: 3 seconds for 300 classes, under two minutes for 1,000.
    Ties are broken in favour of the smaller class numbers; classes are numbered in the order of
    their first members.

    References
    ----------
    .. [1] P. F. Brown et al., "Class-based n-gram models of natural language", Computational
       Linguistics 18(4), 1992, section 3.
    """
    N = np.array(pairs, np.float64)
    n = len(N)
    item = np.arange(n)
    merges = np.empty((max(n - 1, 0), 2), np.int64)
    with progress.task("comparing classes", total=2 * n, unit="classes") as task:
        in_rows, in_columns = _joint_loss(N, task), _joint_loss(N.T, task)
    # a merge of m classes takes m^2 operations
    with progress.task("merging classes", total=float((np.arange(2.0, n + 1) ** 2).sum())) as task:
        for made in range(n - 1):
            task.advance(len(N) ** 2)
            a, b = _cheapest(N, in_rows, in_columns)
            merges[made] = sorted((item[a], item[b]))
            item[a] = n + made
            N, in_rows, in_columns = _merged(N, in_rows, in_columns, a, b)
            item = np.delete(item, b)
    return merges


def _lost(x: Float64, y: Float64) -> Float64:
    """Return f(x) + f(y) - f(x + y), which is never above zero."""
    return x_log_x(x) + x_log_x(y) - x_log_x(x + y)


def _joint_loss(N: Float64, task: progress.Task) -> Float64:
    """Return the loss (C, C) of joining rows i and j, summed over the columns."""
    loss = np.empty_like(N)
    for i in range(len(N)):
        loss[i] = _lost(N[i], N).sum(axis=1)
        task.advance()
    return loss


def _cheapest(N: Float64, in_rows: Float64, in_columns: Float64) -> tuple[int, int]:
    """Return the two classes to merge, the smaller number first."""
    diagonal, left, right = np.diagonal(N), N.sum(axis=1), N.sum(axis=0)
    f_diagonal, f_left, f_right = x_log_x(diagonal), x_log_x(left), x_log_x(right)
    # Rows and columns both joined the four entries that the classes share: take f of those sums
    # back, and add f of the sum of the four.
    of_row, of_column = x_log_x(diagonal[:, None] + N), x_log_x(diagonal[:, None] + N.T)
    f_N = x_log_x(N)
    shared = (
        (of_row + of_row.T + of_column + of_column.T)
        - (f_N + f_N.T + f_diagonal[:, None] + f_diagonal)
        - x_log_x(diagonal[:, None] + diagonal + N + N.T)
    )
    left_margins = f_left[:, None] + f_left - x_log_x(left[:, None] + left)
    right_margins = f_right[:, None] + f_right - x_log_x(right[:, None] + right)
    loss = in_rows + in_columns + shared - (left_margins + right_margins)
    loss[np.tri(len(N), dtype=bool)] = np.inf
    a, b = np.unravel_index(np.argmin(loss), loss.shape)
    return int(a), int(b)


def _merged(
    N: Float64, in_rows: Float64, in_columns: Float64, a: int, b: int
) -> tuple[Float64, Float64, Float64]:
    """Merge class b into class a, and update the losses."""
    by_rows = in_rows - _across(N[:, a]) - _across(N[:, b]) + _across(N[:, a] + N[:, b])
    by_columns = in_columns - _across(N[a]) - _across(N[b]) + _across(N[a] + N[b])
    N = N.copy()
    N[a] += N[b]
    N[:, a] += N[:, b]
    keep = np.arange(len(N)) != b
    N = N[np.ix_(keep, keep)]
    by_rows, by_columns = by_rows[np.ix_(keep, keep)], by_columns[np.ix_(keep, keep)]
    by_rows[a] = by_rows[:, a] = _lost(N[a], N).sum(axis=1)
    by_columns[a] = by_columns[:, a] = _lost(N[:, a], N.T).sum(axis=1)
    return N, by_rows, by_columns


def _across(x: Float64) -> Float64:
    """Return the loss (C, C) of joining rows i and j in one column x (C,)."""
    return _lost(x[:, None], x)

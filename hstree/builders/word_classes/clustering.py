"""Partitions of words into classes: by exchange, equal mass or k-means, in levels.

The clusters of the adaptive softmax are here too. Classes by bigrams are in `bigrams`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from threadpoolctl import threadpool_limits

from hstree import progress
from hstree._typing import Float64, Floating, Int64, Integer
from hstree.builders.shared.join import vector_rows
from hstree.builders.word_classes.bigrams import exchange
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors

#: Maximum number of rounds of k-means.
ITERATIONS = 100
#: Rows whose distances to all centres are computed at once.
_ROWS = 1024
#: Cost of one more cluster of the adaptive softmax per target, in scores: one for the cluster's
#: child of the root, and the start of another matrix product, about 2,000 scores, over a batch of
#: 256.
CLUSTER_COST = 9.0
#: Every rank up to this may be a boundary of clusters; further ones are 1% apart.
EVERY_RANK = 1000

#: What a tree's random numbers come from.
Seed = int | np.random.SeedSequence
#: Partition of words (numbers, the most frequent first) into at most n classes: class from 0 of
#: each word.
Partition = Callable[[Int64, int], Int64]


@dataclass(frozen=True)
class ClusteredText:
    """A corpus, what classes are made of, and what was noted while making them."""

    corpus: Corpus
    counts: Int64  # (V,) of the words
    bigrams: csc_array  # (V, V), by `bigram_counts`
    by_frequency: Int64  # words to cluster, the most frequent first
    notes: dict[str, Any] = field(default_factory=dict)  # entries for the tree's meta["classes"]


def by_exchange(text: ClusteredText, tolerance: float, seed: Seed, price: float) -> Partition:
    """Return the partition by predictive exchange; it notes moves and perplexities.

    It starts from classes drawn by the seed if that is one of several trees, a `SeedSequence`.
    """
    rng = None if isinstance(seed, int) else np.random.default_rng(seed)

    def partition(words: Int64, n: int) -> Int64:
        # Columns of a CSC matrix keep the order asked for: the most frequent word first.
        exchanged = exchange(text.bigrams[:, words], n, tolerance, rng, price)
        text.notes["moves"] = text.notes.get("moves", 0) + exchanged.moves
        perplexities = [round(perplexity, 4) for perplexity in exchanged.perplexities]
        text.notes.setdefault("perplexity_by_sweep", perplexities)  # of the classes at the root
        return exchanged.class_of

    return partition


def by_mass(mass: NDArray[np.generic]) -> Partition:
    """Return the partition into bins of equal mass (V,)."""
    return lambda words, n: equal_mass_bins(mass[words], n)


def by_vectors(text: ClusteredText, path: Path, seed: Seed) -> Partition:
    """Return the partition by k-means; words without a vector get bins of equal mass."""
    vectors = WordVectors.read(path)
    row = vector_rows(text.corpus.vocabulary, vectors)  # (V,)
    text.notes["words_without_vector"] = int(np.count_nonzero(row < 0))

    def partition(words: Int64, n: int) -> Int64:
        has_vector = row[words] >= 0
        n_with = int(has_vector.sum())
        n_without = len(words) - n_with
        # As many classes for words without a vector as is their share of the words.
        n_bins = max(round(n * n_without / len(words)), int(n_without > 0))
        n_bins = min(n_bins, n - int(n_with > 0))
        class_of = np.zeros(len(words), np.int64)
        if n_bins > 0:
            class_of[~has_vector] = equal_mass_bins(text.counts[words[~has_vector]], n_bins)
        if n_with > 0 and n > 1:
            rows = vectors.vectors[row[words[has_vector]]]
            clusters = kmeans_clusters(rows, min(n - n_bins, n_with), seed)
            class_of[has_vector] = clusters + n_bins
        return class_of

    return partition


def nested_classes(
    by_frequency: Int64, partition: Partition, levels: int, n_classes: int | None = None
) -> list[Int64]:
    """Partition words, then the words of each class, until `levels` decisions lead to a word.

    The first partition has `n_classes` classes. By default, and further down, m words get the d-th
    root of m classes where d levels are left: sqrt(m) where two are. Returns the classes of the
    `levels` - 1 partitions, from coarse to fine, each numbered by `number_classes`: arrays with an
    entry for every word up to the largest in `by_frequency`.
    """
    n_words = int(by_frequency.max()) + 1
    nested = [np.zeros(n_words, np.int64)]
    total = (levels - 1) * len(by_frequency)
    with progress.task("classes", total=total, unit="words") as task:
        for left in range(levels, 1, -1):
            fine = np.zeros(n_words, np.int64)
            n_before = 0
            for words in class_members(nested[-1], by_frequency):
                n = n_classes or max(1, round(len(words) ** (1 / left)))
                fine[words] = partition(words, n) + n_before
                n_before += n
                task.advance(len(words))
            nested.append(number_classes(fine, by_frequency))
            n_classes = None
    return nested[1:]


def number_classes(class_of: Int64, by_frequency: Int64) -> Int64:
    """Number classes from 0 in the order of their most frequent words, skipping empty ones.

    Words that are not in `by_frequency` have class 0.
    """
    _, first, which = np.unique(class_of[by_frequency], return_index=True, return_inverse=True)
    number = np.zeros(len(class_of), np.int64)
    number[by_frequency] = np.argsort(np.argsort(first))[which]
    return number


def class_members(class_of: Int64, order: Int64) -> list[Int64]:
    """Return the words of each class, from class 0, each in this order of the words."""
    of_word = class_of[order]
    by_class = order[np.argsort(of_word, kind="stable")]
    return np.split(by_class, np.cumsum(np.bincount(of_word))[:-1])


def equal_mass_bins(mass: NDArray[np.generic], n_bins: int) -> Int64:
    """Return the bins (m,) of a sequence, of about the same mass, as RNNLM makes its classes.

    The masses (m,) are in the order in which bins are filled; where all are zero, each counts as
    one. An item with which the cumulated mass exceeds the bin's share closes the bin. Each item
    closes at most one, so that an item heavier than a bin leaves no empty ones (T. Mikolov et al.,
    "Extensions of recurrent neural network language model", ICASSP 2011, section 4).
    """
    weight = mass.astype(np.float64)
    if not weight.any():
        weight = np.ones(len(mass))
    cumulated = np.cumsum(weight)
    # (m,) bin that the cumulated mass falls into
    due = np.ceil(cumulated * n_bins / cumulated[-1]).astype(np.int64) - 1
    due = np.clip(due, 0, n_bins - 1)
    # bins[i + 1] = min(bins[i] + 1, due[i]) from bins[0] = 0, as one running minimum
    item = np.arange(len(mass))
    bins = np.zeros(len(mass), np.int64)
    bins[1:] = (np.minimum.accumulate(due - item) + item)[:-1]
    return np.minimum(bins, item)


def adaptive_boundaries(counts: Integer) -> Int64:
    """Choose the head and the tail clusters of the adaptive softmax at the least cost.

    Counts (V,) are largest first; where all are zero, each counts as one. The head is the ranks
    below the first boundary, cluster j those from boundary j to j + 1; the last boundary is V.

    The cost of a target is the size of the head, and for each cluster its size times its share
    of the tokens, and `CLUSTER_COST`: the root scores all its children, a cluster all its words
    when the target is among them. (Grave et al., "Efficient softmax approximation for GPUs", ICML
    2017, section 4, count the time of matrix products, and project the tail to fewer dimensions,
    which a tree does not do.) Of equal costs, the smaller head and the smaller clusters win.

    Dynamic programming over the boundaries: every rank up to `EVERY_RANK`, and then ranks about
    1% apart; over these the minimum is exact. O(B^2) for B boundaries: 1,500 of them for 100,000
    words.
    """
    n = len(counts)
    # ranks at which a cluster may begin or end: 0, ..., V
    steps = max(0, int(np.ceil(np.log(n / EVERY_RANK) / np.log(1.01))))
    later = EVERY_RANK * 1.01 ** np.arange(1, steps + 1)
    every = np.arange(min(n, EVERY_RANK) + 1)
    ranks = np.unique(np.concatenate([every, np.minimum(later, n).astype(np.int64)]))
    mass = np.concatenate([[0], np.cumsum(counts, dtype=np.float64)])
    share = (mass / mass[-1] if mass[-1] else np.arange(n + 1) / n)[ranks]
    last = len(ranks) - 1
    # Least cost of the words from each boundary on, and the end of the first cluster there.
    cost = np.zeros(last + 1)
    end = np.full(last + 1, last)
    for at in range(last - 1, -1, -1):
        clusters = (ranks[at + 1 :] - ranks[at]) * (share[at + 1 :] - share[at]) + CLUSTER_COST
        through = clusters + cost[at + 1 :]
        end[at] = at + 1 + int(np.argmin(through))
        cost[at] = through.min()
    chosen = [int(np.argmin(ranks + cost))]
    while chosen[-1] < last:
        chosen.append(int(end[chosen[-1]]))
    return ranks[chosen]


def kmeans_clusters(vectors: Floating, n_clusters: int, seed: Seed) -> Int64:
    """Return the clusters (n,) of vectors (n, d) by k-means, Lloyd's algorithm from k-means++.

    Those of equal vectors are equal, so that a cluster may be empty; a centre without vectors
    stays; of equally near centres the first is taken. O(n n_clusters d) per round, on one thread,
    so that sums do not depend on their number. The builder `kmeans` splits many small nodes at
    once; this is for hundreds of centres over one set of vectors, with matrix products.
    """
    X = vectors.astype(np.float64)
    X /= np.abs(X).max(initial=0) or 1.0
    X -= X.mean(axis=0)
    centres = _first_centres(X, n_clusters, np.random.default_rng(seed))
    starts = range(0, len(X), _ROWS)
    nearest = np.full(len(X), -1)  # (n,) centre of each row
    with threadpool_limits(1), progress.task("classes by k-means", total=ITERATIONS) as task:
        for _ in range(ITERATIONS):
            of_centre, before = np.vecdot(centres, centres) / 2, nearest
            blocks = (of_centre - X[start : start + _ROWS] @ centres.T for start in starts)
            nearest = np.concatenate([np.argmin(distance, axis=1) for distance in blocks])
            if np.array_equal(nearest, before):
                break
            size = np.bincount(nearest, minlength=n_clusters)
            member = csr_array(
                (np.ones(len(X)), (nearest, np.arange(len(X)))), (n_clusters, len(X))
            )
            mean = (member @ X) / np.maximum(size, 1)[:, None]
            centres = np.where(size[:, None] > 0, mean, centres)
            task.advance()
    return nearest


def _first_centres(X: Float64, k: int, rng: np.random.Generator) -> Float64:
    """Draw k rows, with chances as their squared distances to the rows drawn before."""
    chosen = [int(rng.integers(len(X)))]
    distance = np.full(len(X), np.inf)
    with progress.task("first centres", total=k) as task:
        while len(chosen) < k:
            difference = X - X[chosen[-1]]
            distance = np.minimum(distance, np.vecdot(difference, difference))
            cumulated = np.cumsum(distance)
            drawn = int(np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right"))
            chosen.append(min(drawn, len(X) - 1))
            task.advance()
    return X[chosen]

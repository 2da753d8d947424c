"""Classes of words by equal mass, or by k-means on their vectors."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from hstree import progress
from hstree._arrays import Float64, Floating, Int64

#: Maximum number of rounds of k-means.
ITERATIONS = 100
#: Number of rows whose distances to all centres are computed at once.
BLOCK_ROWS = 1024

#: Random seed of one tree.
Seed = int | np.random.SeedSequence


def vector_classes(
    vectors: Floating, row: Int64, counts: Int64, n_classes: int, seed: Seed
) -> Int64:
    """Return the classes (m,) of words by k-means, given the row (m,) of each word's vector.

    Words without a vector have the row -1. They are divided into bins of equal mass. Their fraction
    of the classes equals their fraction of the words.
    """
    has_vector = row >= 0
    n_with = int(has_vector.sum())
    n_without = len(row) - n_with
    # At least one bin if a word has no vector, and at least one cluster if a word has one
    n_bins = max(round(n_classes * n_without / len(row)), int(n_without > 0))
    n_bins = min(n_bins, n_classes - int(n_with > 0))

    # Classes are the bins, then the clusters
    word_class = np.zeros(len(row), np.int64)
    if n_bins > 0:
        word_class[~has_vector] = equal_mass_bins(counts[~has_vector], n_bins)
    if n_with > 0 and n_classes > 1:
        clusters = kmeans_clusters(vectors[row[has_vector]], min(n_classes - n_bins, n_with), seed)
        word_class[has_vector] = clusters + n_bins
    return word_class


def class_members(word_class: Int64, order: Int64) -> list[Int64]:
    """Return the words of each class, starting with class 0; `order` gives the order of words."""
    ordered_class = word_class[order]
    by_class = order[np.argsort(ordered_class, kind="stable")]
    return np.split(by_class, np.cumsum(np.bincount(ordered_class))[:-1])


def equal_mass_bins(mass: NDArray[np.generic], n_bins: int) -> Int64:
    """Divide a sequence into bins of about equal mass, as RNNLM does; return the bins (m,).

    The masses (m,) are in the order in which bins are filled. If all are zero, each counts as one.
    An item closes a bin if the cumulated mass then exceeds the mass of the bins so far. Each item
    closes at most one bin, so that no bin is empty (T. Mikolov et al., "Extensions of recurrent
    neural network language model", ICASSP 2011, section 4).
    """
    weight = mass.astype(np.float64)
    if not weight.any():
        weight = np.ones(len(mass))
    cumulated = np.cumsum(weight)
    # (m,) bin that contains the cumulated mass
    mass_bin = np.ceil(cumulated * n_bins / cumulated[-1]).astype(np.int64) - 1
    mass_bin = np.clip(mass_bin, 0, n_bins - 1)
    # bins[i + 1] = min(bins[i] + 1, mass_bin[i]), starting at 0, computed as a running minimum
    item = np.arange(len(mass))
    bins = np.zeros(len(mass), np.int64)
    bins[1:] = (np.minimum.accumulate(mass_bin - item) + item)[:-1]
    return np.minimum(bins, item)


def kmeans_clusters(vectors: Floating, n_clusters: int, seed: Seed) -> Int64:
    """Return the clusters (n,) of vectors (n, d) by k-means: Lloyd's algorithm from k-means++.

    Equal vectors are in the same cluster. A cluster may therefore be empty; its centre then stays.
    A row that is equally near to several centres belongs to the first. O(n n_clusters d) per round,
    on one thread, so that sums do not depend on the number of threads. This function uses matrix
    products, for hundreds of centres and one set of vectors; the builder `kmeans` splits many small
    nodes at once.
    """
    X = vectors.astype(np.float64)
    X /= np.abs(X).max(initial=0) or 1.0
    X -= X.mean(axis=0)
    centres = _draw_centres(X, n_clusters, np.random.default_rng(seed))
    starts = range(0, len(X), BLOCK_ROWS)
    nearest = np.full(len(X), -1)  # (n,) centre of each row
    with threadpool_limits(1), progress.task("classes by k-means", total=ITERATIONS) as task:
        for _ in range(ITERATIONS):
            # The nearest centre c of a row x has the smallest |c|^2 / 2 - x . c
            half_square = np.vecdot(centres, centres) / 2
            blocks = (half_square - X[start : start + BLOCK_ROWS] @ centres.T for start in starts)
            before = nearest
            nearest = np.concatenate([np.argmin(distance, axis=1) for distance in blocks])
            if np.array_equal(nearest, before):
                break

            # Move the centres to the means of their rows
            size = np.bincount(nearest, minlength=n_clusters)
            member = csr_array(
                (np.ones(len(X)), (nearest, np.arange(len(X)))), (n_clusters, len(X))
            )
            mean = (member @ X) / np.maximum(size, 1)[:, None]
            centres = np.where(size[:, None] > 0, mean, centres)
            task.advance()
    return nearest


def _draw_centres(X: Float64, k: int, rng: np.random.Generator) -> Float64:
    """Draw k rows by k-means++: probabilities are proportional to squared nearest distances."""
    chosen = [int(rng.integers(len(X)))]
    # Squared distance of each row to the nearest row drawn so far
    distance = np.full(len(X), np.inf)
    with progress.task("first centres", total=k) as task:
        while len(chosen) < k:
            difference = X - X[chosen[-1]]
            distance = np.minimum(distance, np.vecdot(difference, difference))
            cumulated = np.cumsum(distance)
            drawn = int(np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right"))
            # If all distances are zero (fewer than k distinct rows), take the last row
            chosen.append(min(drawn, len(X) - 1))
            task.advance()
    return X[chosen]

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

#: Source of the random numbers of a tree.
Seed = int | np.random.SeedSequence


def vector_classes(
    vectors: Floating, row: Int64, counts: Int64, n_classes: int, seed: Seed
) -> Int64:
    """Return the classes (m,) of words by k-means on the rows (m,) of their vectors.

    Words without a vector, whose row is -1, get bins of equal mass. Their fraction of the classes
    is their fraction of the words.
    """
    has_vector = row >= 0
    n_with = int(has_vector.sum())
    n_without = len(row) - n_with
    # At least one bin where a word lacks a vector, and one cluster where a word has one
    n_bins = max(round(n_classes * n_without / len(row)), int(n_without > 0))
    n_bins = min(n_bins, n_classes - int(n_with > 0))

    # The bins are the first classes, then come the clusters
    word_class = np.zeros(len(row), np.int64)
    if n_bins > 0:
        word_class[~has_vector] = equal_mass_bins(counts[~has_vector], n_bins)
    if n_with > 0 and n_classes > 1:
        clusters = kmeans_clusters(vectors[row[has_vector]], min(n_classes - n_bins, n_with), seed)
        word_class[has_vector] = clusters + n_bins
    return word_class


def class_members(word_class: Int64, order: Int64) -> list[Int64]:
    """Return the words of each class, from class 0, each in this order of the words."""
    ordered_class = word_class[order]
    by_class = order[np.argsort(ordered_class, kind="stable")]
    return np.split(by_class, np.cumsum(np.bincount(ordered_class))[:-1])


def equal_mass_bins(mass: NDArray[np.generic], n_bins: int) -> Int64:
    """Return the bins (m,) of a sequence, of about the same mass, as the classes of RNNLM.

    The masses (m,) are in the order in which bins are filled; where all are zero, each counts as
    one. An item closes a bin if the cumulated mass then exceeds the mass of the bins so far. Each
    item closes at most one bin, so that no bin is empty (T. Mikolov et al., "Extensions of
    recurrent neural network language model", ICASSP 2011, section 4).
    """
    weight = mass.astype(np.float64)
    if not weight.any():
        weight = np.ones(len(mass))
    cumulated = np.cumsum(weight)
    # (m,) bin in which the cumulated mass lies
    mass_bin = np.ceil(cumulated * n_bins / cumulated[-1]).astype(np.int64) - 1
    mass_bin = np.clip(mass_bin, 0, n_bins - 1)
    # bins[i + 1] = min(bins[i] + 1, mass_bin[i]) from bins[0] = 0, as one running minimum
    item = np.arange(len(mass))
    bins = np.zeros(len(mass), np.int64)
    bins[1:] = (np.minimum.accumulate(mass_bin - item) + item)[:-1]
    return np.minimum(bins, item)


def kmeans_clusters(vectors: Floating, n_clusters: int, seed: Seed) -> Int64:
    """Return the clusters (n,) of vectors (n, d) by k-means: Lloyd's algorithm from k-means++.

    Equal vectors are in the same cluster, so that a cluster may be empty; its centre then stays. Of
    equally near centres the first is taken. O(n n_clusters d) per round, on one thread, so that
    sums do not depend on the number of threads. This is for hundreds of centres over one set of
    vectors, by matrix products; the builder `kmeans` splits many small nodes at once.
    """
    X = vectors.astype(np.float64)
    X /= np.abs(X).max(initial=0) or 1.0
    X -= X.mean(axis=0)
    centres = _draw_centres(X, n_clusters, np.random.default_rng(seed))
    starts = range(0, len(X), BLOCK_ROWS)
    nearest = np.full(len(X), -1)  # (n,) centre of each row
    with threadpool_limits(1), progress.task("classes by k-means", total=ITERATIONS) as task:
        for _ in range(ITERATIONS):
            # The nearest centre has the smallest half square minus product.
            half_square = np.vecdot(centres, centres) / 2
            blocks = (half_square - X[start : start + BLOCK_ROWS] @ centres.T for start in starts)
            before = nearest
            nearest = np.concatenate([np.argmin(distance, axis=1) for distance in blocks])
            if np.array_equal(nearest, before):
                break

            # Centres move to the means of their rows.
            size = np.bincount(nearest, minlength=n_clusters)
            member = csr_array(
                (np.ones(len(X)), (nearest, np.arange(len(X)))), (n_clusters, len(X))
            )
            mean = (member @ X) / np.maximum(size, 1)[:, None]
            centres = np.where(size[:, None] > 0, mean, centres)
            task.advance()
    return nearest


def _draw_centres(X: Float64, k: int, rng: np.random.Generator) -> Float64:
    """Draw k rows, with probabilities proportional to squared distances to the rows before."""
    chosen = [int(rng.integers(len(X)))]
    # Squared distance of each row to the nearest of the rows that are drawn so far
    distance = np.full(len(X), np.inf)
    with progress.task("first centres", total=k) as task:
        while len(chosen) < k:
            difference = X - X[chosen[-1]]
            distance = np.minimum(distance, np.vecdot(difference, difference))
            cumulated = np.cumsum(distance)
            drawn = int(np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right"))
            # If all distances are zero, as where fewer than k rows differ, it is the last row
            chosen.append(min(drawn, len(X) - 1))
            task.advance()
    return X[chosen]

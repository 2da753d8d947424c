"""Classes by k-means: words with near vectors, in one step and not by repeated cuts."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from hstree._typing import Float64, Floating, Int64

ITERATIONS = 100
_BLOCK_ROWS = 1 << 13


def around_centres(vectors: Floating, n_classes: int, random_state: int) -> Int64:
    """Give each vector the number of its centre, by Lloyd's algorithm.

    Parameters
    ----------
    vectors : float array (n, d)
        Distances are Euclidean.
    n_classes : int
        From 1 to n.
    random_state : int
        Seed of the first centres, drawn by k-means++ [1]_.

    Returns
    -------
    int64 array (n,)
        A centre that loses all its vectors stays where it is, so that a class may be empty; of
        equally near centres the first one has the vector.

    Notes
    -----
    O(n n_classes d) a round, until nothing moves or for `ITERATIONS` rounds.

    References
    ----------
    .. [1] D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", 2007.
    """
    X = vectors.astype(np.float64)
    X /= np.abs(X).max(initial=0) or 1.0
    X -= X.mean(axis=0)
    centres = _first_centres(X, n_classes, np.random.default_rng(random_state))
    class_of = _nearest(X, centres)
    for _ in range(ITERATIONS):
        size = np.bincount(class_of, minlength=n_classes)
        member = csr_array((np.ones(len(X)), class_of, np.arange(len(X) + 1)), (len(X), n_classes))
        means = (member.T @ X) / np.maximum(size, 1)[:, None]
        centres = np.where(size[:, None] > 0, means, centres)
        nearest = _nearest(X, centres)
        if np.array_equal(nearest, class_of):
            break
        class_of = nearest
    return class_of


def _first_centres(X: Float64, k: int, rng: np.random.Generator) -> Float64:
    """Draw k rows, with chances as their squared distances to those drawn before."""
    chosen = [int(rng.integers(len(X)))]
    distance = np.full(len(X), np.inf)
    while len(chosen) < k:
        difference = X - X[chosen[-1]]
        distance = np.minimum(distance, np.vecdot(difference, difference))
        so_far = np.cumsum(distance)
        drawn = int(np.searchsorted(so_far, rng.random() * so_far[-1], side="right"))
        chosen.append(min(drawn, len(X) - 1))
    return X[chosen]


def _nearest(X: Float64, centres: Float64) -> Int64:
    """Return the number of the centre that is nearest to each row."""
    half_square = np.vecdot(centres, centres) / 2
    blocks = [
        np.argmin(half_square - X[start : start + _BLOCK_ROWS] @ centres.T, axis=1)
        for start in range(0, len(X), _BLOCK_ROWS)
    ]
    return np.concatenate(blocks)

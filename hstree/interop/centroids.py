"""What a builder needs to know of classes: their centroids as vectors, their weights as counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd

from hstree.interop.linear import Rows, is_sparse
from hstree.vectors import WordVectors

Float64 = NDArray[np.float64]

#: Numbers in a class's vector at the most; centroids of more features are projected.
MOST_DIMENSIONS = 100
#: What weights that are no whole numbers are made to sum to, before they are rounded to counts.
COUNTS_OF_WEIGHTS = 1_000_000


def class_vectors(
    X: Rows,
    y: NDArray[np.int64],
    sample_weight: Float64,
    labels: Sequence[str],
    *,
    random_state: int = 0,
) -> WordVectors:
    """Describe classes by the samples that they have.

    Parameters
    ----------
    X : float array or CSR array (n, features)
    y : int64 array (n,)
        Class numbers, the places of their labels in `labels`.
    sample_weight : float64 array (n,)
    labels : sequence of str, length V
    random_state : int
        Of the randomised projection.

    Returns
    -------
    WordVectors
        The centroids; of more than `MOST_DIMENSIONS` features, their coordinates along the first
        singular vectors of the table of centroids, which keeps their distances where V is not
        larger than that. A class without a sample has the mean of the others. The counts are the
        classes' weights, in millionths of their sum where one of them is no whole number.
    """
    total = np.bincount(y, sample_weight, minlength=len(labels))
    share = sample_weight / np.where(total > 0, total, 1)[y]
    shape = (len(labels), X.shape[0])
    centroids: Any = scipy.sparse.csr_array((share, (y, np.arange(len(y)))), shape=shape) @ X
    if X.shape[1] > MOST_DIMENSIONS:
        n_components = min(MOST_DIMENSIONS, len(labels))
        U, S, _ = randomized_svd(centroids, n_components, random_state=random_state)
        centroids = U * S
    elif is_sparse(centroids):
        centroids = centroids.toarray()
    centroids = centroids / max(float(np.abs(centroids).max(initial=0)), np.finfo(float).tiny)
    if (total > 0).any():
        centroids[total == 0] = centroids[total > 0].mean(axis=0)
    if not (total == np.rint(total)).all():
        total *= COUNTS_OF_WEIGHTS / total.sum()
    counts = np.rint(total).astype(np.int64)
    return WordVectors(labels, centroids, counts=counts, source={"kind": "class centroids"})

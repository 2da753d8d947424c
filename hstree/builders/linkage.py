"""Agglomerative clusterings as trees: a matrix of merges, and scipy's way to one.

A merge is a node and the last merge is the root. scikit-learn's clusterings come in through
`Tree.from_linkage` too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster import hierarchy

from hstree import progress
from hstree._options import checked_options
from hstree._typing import Int64
from hstree.data.vectors import WordVectors
from hstree.errors import InputError, OptionError
from hstree.tree import Tree

#: Labels whose V (V - 1) / 2 distances are still held in memory: 1.6 GB of float64, and a copy.
MAX_LABELS = 20_000
#: Criteria that are defined by Euclidean distances alone.
EUCLIDEAN_ONLY = ("centroid", "median", "ward")


@checked_options
def linkage(
    vectors: WordVectors,
    *,
    criterion: Literal[
        "ward", "average", "complete", "single", "weighted", "centroid", "median"
    ] = "ward",
    metric: Literal[
        "euclidean", "cosine", "cityblock", "chebyshev", "correlation", "sqeuclidean"
    ] = "euclidean",
) -> Tree:
    """Join the two nearest clusters of words, again and again.

    Parameters
    ----------
    vectors : WordVectors
        At most 20,000 words, since all distances between them are held.
    criterion : {"ward", "average", "complete", "single", "weighted", "centroid", "median"}
        What "nearest" means for clusters: the `method` of ``scipy.cluster.hierarchy.linkage``.
    metric : {"euclidean", "cosine", "cityblock", "chebyshev", "correlation", "sqeuclidean"}
        The distance of two words. Ward, centroid and median want Euclidean.

    Returns
    -------
    Tree
        Binary, with one code a label; it is not balanced, and may be deep ("single").

    Raises
    ------
    OptionError
        When criterion and metric do not go together.
    InputError
        When there are too many words, or the metric is not defined for their vectors.

    Notes
    -----
    O(V^2 d) time, O(V^2) memory. Ties are broken as scipy breaks them.

    References
    ----------
    .. [1] D. Muellner, "Modern hierarchical, agglomerative clustering algorithms", 2011.
    """
    n_words = len(vectors.labels)
    if criterion in EUCLIDEAN_ONLY and metric != "euclidean":
        raise OptionError.about(
            "criterion",
            f"{criterion!r} needs the metric 'euclidean', not {metric!r}; take criterion "
            "'average' or 'complete' with this metric",
        )
    if n_words > MAX_LABELS:
        raise InputError(
            f"linkage holds all distances between words, {n_words * (n_words - 1) * 4 / 1e9:.0f} "
            f"GB for these {n_words}; the limit is {MAX_LABELS} words: take gmm or kmeans, "
            "or fewer words"
        )
    if n_words == 1:
        return tree_from_linkage(np.empty((0, 2)), vectors.labels, vectors.counts)
    with progress.task("joining clusters"):
        try:
            merges = hierarchy.linkage(vectors.vectors.astype(np.float64), criterion, metric)
        except ValueError as error:
            raise InputError(
                f"the {metric} distances of these vectors cannot be clustered ({error}); "
                "with zero vectors, or constant ones, take metric 'euclidean'"
            ) from error
    return tree_from_linkage(merges, vectors.labels, vectors.counts)


def tree_from_linkage(
    merges: ArrayLike, labels: Sequence[str], counts: ArrayLike | None = None
) -> Tree:
    """Make the tree of a sequence of merges.

    Parameters
    ----------
    merges : array_like (V - 1, 2 or more)
        Row i joins two clusters into cluster V + i; a cluster below V is a label. The first two
        columns count: scipy's linkage matrix, or scikit-learn's `children_`.
    labels : sequence of str, length V
    counts : array_like of int, shape (V,), optional

    Returns
    -------
    Tree
        The last merge is the root and the others follow level by level, those of a level from
        the last to the first; the first column's cluster is the first child.

    Raises
    ------
    InputError
        When the rows are not V - 1 merges that leave one cluster.

    Examples
    --------
    >>> tree = tree_from_linkage([[0, 2], [3, 1]], ["cat", "the", "dog"])
    >>> tree.child.tolist()
    [1, -2, -1, -3]
    """
    n_labels, n_merges = len(labels), len(labels) - 1
    pair = _checked_merges(merges, n_labels)[::-1]
    # Numbered from the last merge back, a child already comes after its parent ...
    child = np.where(pair < n_labels, ~pair, n_labels + n_merges - 1 - pair)
    start = 2 * np.arange(n_merges + 1)
    # ... and level by level, nodes that are read together lie together.
    order = np.argsort(Tree(labels, start, child.ravel()).depth, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(n_merges)
    child = child[order]
    inner = child >= 0
    child[inner] = number[child[inner]]
    return Tree(labels, start, child.ravel(), counts=counts)


def _checked_merges(merges: ArrayLike, n_labels: int) -> Int64:
    """Return the two clusters of every merge, int64 (V - 1, 2), refusing what is not a tree."""
    given = np.asarray(merges)
    if given.ndim != 2 or given.shape[1] < 2 or given.dtype.kind not in "fiu":
        raise InputError(
            f"a linkage is a matrix of numbers with two clusters a row, "
            f"not {given.dtype} of shape {given.shape}"
        )
    if len(given) != n_labels - 1:
        raise InputError(
            f"{len(given)} merges for {n_labels} labels; {n_labels} labels need {n_labels - 1}, "
            "a full clustering down from one root"
        )
    with np.errstate(invalid="ignore"):  # NaN is found on the next line
        pair = given[:, :2].astype(np.int64)
    row = np.arange(n_labels - 1)[:, None]
    unknown = (pair != given[:, :2]) | (pair < 0) | (pair >= n_labels + row)
    if unknown.any():
        at, column = (int(i) for i in np.argwhere(unknown)[0])
        raise InputError(
            f"row {at} of the linkage joins the cluster {given[at, column]}, which is not there; "
            f"up to that row there are 0 to {n_labels + at - 1}"
        )
    uses = np.bincount(pair.ravel(), minlength=2 * n_labels - 2)
    if uses.max(initial=1) > 1:
        twice = int(np.argmax(uses))
        rows = np.flatnonzero((pair == twice).any(axis=1))
        where = f"row {rows[0]}" + (f" and row {rows[1]}" if len(rows) > 1 else "")
        raise InputError(f"the linkage joins cluster {twice} twice, in {where}; once is possible")
    return pair

"""Agglomerative clusterings as trees: each merge is a node, and the last merge is the root."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster import hierarchy
from scipy.spatial.distance import pdist

from hstree import progress
from hstree._arrays import Float64, Int64, refuse_masked
from hstree._options import checked_options
from hstree._parallel import parallel
from hstree._text import duration
from hstree.builders.huffman import merged_tree
from hstree.data.vectors import WordVectors
from hstree.errors import InputError
from hstree.tree import Tree
from hstree.tree.order import reorder

#: Maximum number of labels: V^2 distances in float64 take 3.2 GB.
MAX_LABELS = 20_000
#: Seconds per pair of words: 23 seconds for 20,000 words.
SECONDS_PER_PAIR = 23 / 20_000**2
#: Number of words above which another process clusters, since Ctrl-C does not interrupt SciPy.
WORTH_PROCESS = 3_000

Criterion = Literal["ward", "average", "complete", "single", "weighted", "centroid", "median"]


@checked_options
def linkage(vectors: WordVectors, *, criterion: Criterion = "ward") -> Tree:
    """Merge the two nearest clusters of words until one cluster remains.

    Parameters
    ----------
    vectors : WordVectors
        At most 20,000 words, since all Euclidean distances between them are held in memory. To
        compare directions, scale the vectors to length one.
    criterion : {"ward", "average", "complete", "single", "weighted", "centroid", "median"}
        Distance between two clusters: the `method` of ``scipy.cluster.hierarchy.linkage``.

    Returns
    -------
    Tree
        Binary, with one code per label. It is not balanced, and may be deep (criterion "single").

    Raises
    ------
    InputError
        When there are too many words.

    Notes
    -----
    The merges are those of ``scipy.cluster.hierarchy.linkage``, including ties. O(V^2 d) time and
    8 V^2 bytes; O(V^3) time for centroid and median in the worst case.

    References
    ----------
    .. [1] D. Muellner, "Modern hierarchical, agglomerative clustering algorithms", 2011: the
       nearest-neighbour chain, the minimum spanning tree and the generic algorithm.
    """
    n_words = len(vectors.labels)
    if n_words > MAX_LABELS:
        gigabytes = n_words**2 * 8 / 1e9
        time = duration(SECONDS_PER_PAIR * n_words**2)
        raise InputError(
            f"linkage of {n_words:,} words takes {gigabytes:,.0f} GB for their distances, and "
            f"{time} or more; the limit is {MAX_LABELS:,} words: use kmeans or gmm, or fewer words"
        )
    # Cluster many words in another process, which Ctrl-C can end; SciPy cannot be interrupted
    cluster = partial(linkage_matrix, criterion)
    n_jobs = 2 if n_words > WORTH_PROCESS else 1
    with progress.task("linkage"):
        [(_, merges)] = parallel(cluster, [vectors.vectors.astype(np.float64)], n_jobs)
    return tree_from_linkage(merges, vectors.labels, vectors.counts)


def tree_from_linkage(
    merges: ArrayLike, labels: Sequence[str], counts: ArrayLike | None = None
) -> Tree:
    """Return the tree of a sequence of merges.

    Parameters
    ----------
    merges : array_like (V - 1, 2 or more)
        Row i merges two clusters into cluster V + i; a cluster below V is a label. Only the first
        two columns are read. SciPy's linkage matrix and scikit-learn's `children_` have this form.
    labels : sequence of str, length V
    counts : array_like of int, shape (V,), optional

    Returns
    -------
    Tree
        The last merge is the root. The other merges follow level by level, and within a level from
        the last to the first. The cluster in the first column is the first child.

    Raises
    ------
    InputError
        When the rows are not V - 1 merges into one cluster.

    Examples
    --------
    >>> tree = tree_from_linkage([[0, 2], [3, 1]], ["cat", "the", "dog"])
    >>> tree.child.tolist()
    [1, -2, -1, -3]
    """
    n_labels = len(labels)
    tree = merged_tree(labels, _checked_merges(merges, n_labels))
    by_level = np.argsort(tree.depth, kind="stable")
    start, child, _ = reorder(tree.child_start, tree.child, by_level)
    return Tree(labels, start, child, counts=counts)


def _checked_merges(merges: ArrayLike, n_labels: int) -> Int64:
    """Return the clusters of each merge, int64 (V - 1, 2). Raises InputError if it is no tree."""
    refuse_masked(merges, "merges")
    matrix = np.asarray(merges)
    if matrix.ndim != 2 or matrix.shape[1] < 2 or matrix.dtype.kind not in "fiu":
        raise InputError(
            "a linkage is a matrix of numbers with two clusters per row, "
            f"not {matrix.dtype} of shape {matrix.shape}"
        )
    if len(matrix) != n_labels - 1:
        raise InputError(
            f"the linkage has {len(matrix)} merges for {n_labels} labels; give {n_labels - 1} "
            "merges, so that one cluster remains"
        )

    # A merge may use labels, and clusters of earlier rows
    with np.errstate(invalid="ignore"):  # NaN differs from its integer below
        pair = matrix[:, :2].astype(np.int64)
    first_unknown = n_labels + np.arange(n_labels - 1)[:, None]
    is_unknown = (pair != matrix[:, :2]) | (pair < 0) | (pair >= first_unknown)
    if is_unknown.any():
        row, column = (int(i) for i in np.argwhere(is_unknown)[0])
        raise InputError(
            f"row {row} of the linkage merges the cluster {matrix[row, column]}, which does not "
            f"exist; this row can merge the clusters 0 to {n_labels + row - 1}"
        )

    # Each cluster is merged once
    if len(np.unique(pair)) < pair.size:
        repeated = int(np.argmax(np.bincount(pair.ravel())))
        raise InputError(f"the linkage merges cluster {repeated} twice; merge each once")
    return pair


def linkage_matrix(criterion: Criterion, X: Float64) -> Float64:
    """Return the linkage matrix (n - 1, 4) of rows (n, d) for a criterion."""
    return hierarchy.linkage(pdist(X), criterion) if len(X) > 1 else np.empty((0, 4))

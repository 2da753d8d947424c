"""Agglomerative clusterings as trees: each merge is a node, the last one the root.

The algorithms, and the order among equal distances, are those of `scipy.cluster.hierarchy`, whose
`linkage` computes for minutes without a pause; here, progress shows and Ctrl-C is answered. The
tests hold both to each other.
"""

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import DisjointSet
from scipy.spatial.distance import cdist

from hstree import progress
from hstree._options import checked_options
from hstree._text import duration
from hstree._typing import Float64, Int64, refuse_masked
from hstree.data.vectors import WordVectors
from hstree.errors import InputError, OptionError
from hstree.tree import Tree
from hstree.tree.order import reorder

#: Maximum number of labels: V^2 distances are 3.2 GB of float64.
MAX_LABELS = 20_000
#: Seconds for each pair of words: 18 for 20,000 words.
SECONDS = 18 / 20_000**2
#: Distances that are computed at once.
_AT_ONCE = 1 << 18

Criterion = Literal["ward", "average", "complete", "single", "weighted", "centroid", "median"]
Metric = Literal["euclidean", "cosine", "cityblock", "chebyshev", "correlation", "sqeuclidean"]

#: Distances of a merged cluster to all clusters, from: those of its halves x and y (n,), the
#: distance of x and y, the sizes of x and y, and of all clusters (n,).
Update = Callable[[Float64, Float64, float, int, int, Int64], Float64]


@checked_options
def linkage(
    vectors: WordVectors, *, criterion: Criterion = "ward", metric: Metric = "euclidean"
) -> Tree:
    """Merge the two nearest clusters of words, again and again.

    Parameters
    ----------
    vectors : WordVectors
        At most 20,000 words, since all their distances are held in memory.
    criterion : {"ward", "average", "complete", "single", "weighted", "centroid", "median"}
        Distance of two clusters: the `method` of ``scipy.cluster.hierarchy.linkage``.
    metric : {"euclidean", "cosine", "cityblock", "chebyshev", "correlation", "sqeuclidean"}
        Distance of two words. Ward, centroid and median need Euclidean.

    Returns
    -------
    Tree
        Binary, with one code per label; not balanced, and possibly deep ("single").

    Raises
    ------
    OptionError
        When criterion and metric do not go together.
    InputError
        When there are too many words, or the metric is undefined for their vectors.

    Notes
    -----
    The merges are those of ``scipy.cluster.hierarchy.linkage``, ties too; of equal distances,
    centroid and median take that of the first words. O(V^2 d) time, 8 V^2 bytes; centroid and
    median O(V^3) at worst.

    References
    ----------
    .. [1] D. Muellner, "Modern hierarchical, agglomerative clustering algorithms", 2011: the
       nearest-neighbour chain, the minimum spanning tree and the generic algorithm.
    """
    n_words = len(vectors.labels)
    if criterion in ("centroid", "median", "ward") and metric != "euclidean":
        raise OptionError.about(
            "criterion",
            f"{criterion!r} needs the metric 'euclidean', not {metric!r}; take criterion "
            "'average' or 'complete' with this metric",
        )
    if n_words > MAX_LABELS:
        raise InputError(
            f"linkage holds all distances between words, {n_words**2 * 8 / 1e9:,.0f} GB for these "
            f"{n_words:,}, and would take {duration(SECONDS * n_words**2)} or more; the limit is "
            f"{MAX_LABELS:,} words: take kmeans or gmm, which need neither, or fewer words"
        )
    try:
        merges = merges_of(vectors.vectors.astype(np.float64), criterion, metric)
    except ValueError as error:
        raise InputError(
            f"the {metric} distances of these vectors cannot be clustered ({error}); "
            "with zero vectors, or constant ones, take metric 'euclidean'"
        ) from error
    return tree_from_linkage(merges, vectors.labels, vectors.counts)


def tree_from_linkage(
    merges: ArrayLike, labels: Sequence[str], counts: ArrayLike | None = None
) -> Tree:
    """Return the tree of a sequence of merges.

    Parameters
    ----------
    merges : array_like (V - 1, 2 or more)
        Row i merges two clusters into cluster V + i; a cluster below V is a label. Only the first
        two columns are read: scipy's linkage matrix, or scikit-learn's `children_`.
    labels : sequence of str, length V
    counts : array_like of int, shape (V,), optional

    Returns
    -------
    Tree
        The last merge is the root; the others follow level by level, those of a level from the
        last to the first. The cluster in the first column is the first child.

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
    pair = _checked_merges(merges, n_labels)[::-1]
    # (V - 1, 2) numbered from the last merge back, children come after their parents
    child = np.where(pair < n_labels, ~pair, 2 * n_labels - 2 - pair).ravel()
    start = 2 * np.arange(n_labels)
    by_level = np.argsort(Tree(labels, start, child).depth, kind="stable")
    start, child, _ = reorder(start, child, by_level)
    return Tree(labels, start, child, counts=counts)


def _checked_merges(merges: ArrayLike, n_labels: int) -> Int64:
    """Return the two clusters of each merge, int64 (V - 1, 2), refusing what is not a tree."""
    refuse_masked(merges, "merges")
    matrix = np.asarray(merges)
    if matrix.ndim != 2 or matrix.shape[1] < 2 or matrix.dtype.kind not in "fiu":
        raise InputError(
            f"a linkage is a matrix of numbers with two clusters per row, "
            f"not {matrix.dtype} of shape {matrix.shape}"
        )
    if len(matrix) != n_labels - 1:
        raise InputError(
            f"{len(matrix)} merges for {n_labels} labels; {n_labels} labels need {n_labels - 1}, "
            "a full clustering down from one root"
        )
    with np.errstate(invalid="ignore"):  # NaN differs from its integer below
        pair = matrix[:, :2].astype(np.int64)
    row = np.arange(n_labels - 1)[:, None]
    unknown = (pair != matrix[:, :2]) | (pair < 0) | (pair >= n_labels + row)
    if unknown.any():
        at, column = (int(i) for i in np.argwhere(unknown)[0])
        raise InputError(
            f"row {at} of the linkage merges the cluster {matrix[at, column]}, which does not "
            f"exist; up to that row there are clusters 0 to {n_labels + at - 1}"
        )
    uses = np.bincount(pair.ravel(), minlength=2 * n_labels - 2)
    if uses.max(initial=1) > 1:
        twice = int(np.argmax(uses))
        rows = np.flatnonzero((pair == twice).any(axis=1))
        where = f"row {rows[0]}" + (f" and row {rows[1]}" if len(rows) > 1 else "")
        raise InputError(f"the linkage merges cluster {twice} twice, in {where}; merge each once")
    return pair


def _ward(of_x: Float64, of_y: Float64, between: float, n_x: int, n_y: int, size: Int64) -> Float64:
    share = 1.0 / (n_x + n_y + size)
    squares = (size + n_x) * share * of_x * of_x + (size + n_y) * share * of_y * of_y
    return np.sqrt(squares - size * share * between * between)


def _centroid(
    of_x: Float64, of_y: Float64, between: float, n_x: int, n_y: int, size: Int64
) -> Float64:
    squares = n_x * of_x * of_x + n_y * of_y * of_y
    return np.sqrt((squares - n_x * n_y * between * between / (n_x + n_y)) / (n_x + n_y))


#: Distances after a merge, by criterion; "single" needs none.
UPDATES: dict[str, Update] = {
    "ward": _ward,
    "centroid": _centroid,
    "average": lambda x, y, _, n_x, n_y, size: (n_x * x + n_y * y) / (n_x + n_y),
    "complete": lambda x, y, _, n_x, n_y, size: np.maximum(x, y),
    "weighted": lambda x, y, _, n_x, n_y, size: 0.5 * (x + y),
    "median": lambda x, y, d, n_x, n_y, size: np.sqrt(0.5 * (x * x + y * y) - 0.25 * d * d),
}


def merges_of(X: Float64, criterion: Criterion, metric: Metric) -> Int64:
    """Return the merges (n - 1, 2) of rows (n, d): row i merges two clusters into cluster n + i.

    The smaller number comes first; a cluster below n is a row. Raises ValueError where a distance
    is not finite. O(n^2 d) time, 8 n^2 bytes; centroid and median O(n^3) at worst.
    """
    distance = _distances(X, metric)
    with progress.task("linkage: merging", total=len(X) - 1, unit="merges") as task:
        if criterion in ("centroid", "median"):
            return _by_closest_pair(distance, UPDATES[criterion], task)
        if criterion == "single":
            joined = list(_by_spanning_tree(distance, task))
        else:
            joined = list(_by_chain(distance, UPDATES[criterion], task))
    # merges of rows, sorted by distance, as merges of clusters
    n = len(X)
    number, sets = np.arange(n), DisjointSet(range(n))  # of the cluster of each set's first row
    merges = np.empty((n - 1, 2), np.int64)
    for made, (x, y, _) in enumerate(sorted(joined, key=itemgetter(2))):
        merges[made] = sorted((number[sets[x]], number[sets[y]]))
        sets.merge(x, y)
        number[sets[x]] = n + made
    return merges


def _distances(X: Float64, metric: Metric) -> Float64:
    """Return the distances (n, n) between rows; infinite on the diagonal."""
    n = len(X)
    distance = np.empty((n, n))
    with progress.task("linkage: distances", total=n * n) as task:
        first = 0
        while first < n:
            last = min(n, first + max(1, _AT_ONCE // (n - first)))
            block = cdist(X[first:last], X[first:], metric)
            if n > 1 and not np.isfinite(block).all():
                raise ValueError("a distance is not a finite number")
            distance[first:last, first:] = block
            distance[first:, first:last] = block.T
            task.advance((n - first) ** 2 - (n - last) ** 2)
            first = last
    np.fill_diagonal(distance, np.inf)
    return distance


def _by_chain(
    distance: Float64, update: Update, task: progress.Task
) -> Iterator[tuple[int, int, float]]:
    """Yield merges by following nearest neighbours until two are each other's."""
    n = len(distance)
    size, absent = np.ones(n, np.int64), np.zeros(n)  # `absent` is infinite for merged rows
    chain: list[int] = []
    for _ in range(n - 1):
        if not chain:
            chain.append(int(np.argmax(size > 0)))
        while True:
            x = chain[-1]
            to_others = distance[x] + absent
            nearest = int(np.argmin(to_others))
            before = chain[-2] if len(chain) > 1 else nearest
            if len(chain) > 1 and not to_others[nearest] < to_others[before]:
                break
            chain.append(nearest)
        x, y = sorted(chain[-2:])
        del chain[-2:]
        yield x, y, _merge(distance, update, size, x, y)
        absent[x] = np.inf
        task.advance()


def _merge(distance: Float64, update: Update, size: Int64, x: int, y: int) -> float:
    """Merge row x into row y, in place; return their distance."""
    between = float(distance[x, y])
    n_x, n_y = int(size[x]), int(size[y])
    size[x], size[y] = 0, n_x + n_y
    others = np.flatnonzero(size)
    others = others[others != y]
    of_x, of_y = distance[x, others], distance[y, others]
    merged = update(of_x, of_y, between, n_x, n_y, size[others])
    distance[y, others] = distance[others, y] = merged
    return between


def _by_spanning_tree(distance: Float64, task: progress.Task) -> Iterator[tuple[int, int, float]]:
    """Yield the edges by which Prim's algorithm adds rows, between rows in the order added."""
    nearest, absent = np.full(len(distance), np.inf), np.zeros(len(distance))
    x = 0
    for _ in range(len(distance) - 1):
        absent[x] = np.inf
        np.minimum(nearest, distance[x], out=nearest)
        y = int(np.argmin(nearest + absent))
        yield x, y, float(nearest[y])
        x = y
        task.advance()


def _by_closest_pair(distance: Float64, update: Update, task: progress.Task) -> Int64:
    """Return the merges of the closest two clusters each time, whose distances may fall."""
    n = len(distance)
    size, number = np.ones(n, np.int64), np.arange(n)
    merges = np.empty((n - 1, 2), np.int64)
    # nearest later row of each row, or one that was, and a lower bound of its distance
    nearest, bound = np.zeros(n, np.int64), np.full(n, np.inf)

    def search(row: int) -> None:
        later = np.where(size[row + 1 :] > 0, distance[row, row + 1 :], np.inf)
        if later.size:
            nearest[row] = row + 1 + np.argmin(later)
            bound[row] = later.min()

    for row in range(n - 1):
        search(row)
    for made in range(n - 1):
        while bound[x := int(np.argmin(bound))] != distance[x, nearest[x]] or not size[nearest[x]]:
            search(x)
        y = int(nearest[x])
        merges[made] = sorted((number[x], number[y]))
        number[y] = n + made
        _merge(distance, update, size, x, y)
        bound[x] = np.inf
        earlier = np.arange(n) < y
        nearest[(nearest == x) & (np.arange(n) < x)] = y
        closer = earlier & (size > 0) & (distance[:, y] < bound)
        nearest[closer], bound[closer] = y, distance[closer, y]
        search(y)
        task.advance()
    return merges

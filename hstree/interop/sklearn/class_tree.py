"""Tree over the classes of a classifier, built from their centroids or frequencies.

The label of a class is its name (`hstree.tree.names`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_random_state
from sklearn.utils.extmath import randomized_svd

from hstree._arrays import Array, Float64, Int64, canonical_csr
from hstree._options import RANDOM_STATE, effective
from hstree.builders import build
from hstree.builders.registry import builder as builder_named
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError
from hstree.interop.sklearn.features import Samples, is_sparse, without_empty_columns
from hstree.kernels import numpy_only
from hstree.tree import Tree

#: Options of kmeans for many classes: upper nodes are narrow, since all samples pass them.
NARROW_ABOVE = {"arity": 10, "max_leaves": 100}
#: Maximum number of classes for which NumPy builds the tree: loading compiled kernels is slower.
MAX_BY_NUMPY = 10_000
#: Maximum dimension of a class vector; centroids with more features are projected.
MAX_DIMENSIONS = 100
#: Sum to which fractional weights are scaled before they are rounded to counts.
ROUNDED_TOTAL = 1_000_000
#: Maximum sum of whole weights for which float64 and int64 are exact.
MAX_EXACT_COUNT = 1 << 53


def draw_seed(random_state: Any) -> int:
    """Return `random_state`, checked, if it is an integer, otherwise a seed drawn from it."""
    if isinstance(random_state, int | np.integer):
        return int(RANDOM_STATE.checked(random_state))
    return int(check_random_state(random_state).randint(2**31))


def build_tree(
    method: str,
    options: Mapping[str, Any],
    labels: Sequence[str],
    random_state: int,
    counts: Int64,
    vectors: Callable[[], Array],
    kind: str,
) -> Tree:
    """Build a tree over labels from counts (V,) or vectors (V, d), whichever the builder takes.

    A `random_state` in the `options` of the builder takes precedence. The tree records the `kind`
    of the vectors. Raises InputError if the builder takes running text.
    """
    builder = builder_named(method)
    if builder.takes is Corpus:
        raise InputError(
            f"{method} takes a corpus, which classes are not; choose a builder that takes vectors "
            "or counts, such as gmm or huffman, or pass a tree"
        )
    if any(option.name == "random_state" for option in builder.options):
        options = {"random_state": random_state, **options}
    frequencies: dict[str, object] = {"kind": "class frequencies"}
    if builder.takes is Vocabulary:
        source: Any = Vocabulary(labels, counts, source=frequencies)
    elif method == "kmeans" and _is_flat(effective(builder.options, options, method), len(labels)):
        zeros = np.zeros((len(labels), 1))  # the tree is the same for any vectors
        source = WordVectors(labels, zeros, counts=counts, source=frequencies)
    else:
        source = WordVectors(labels, vectors(), counts=counts, source={"kind": kind})
    with numpy_only(len(labels) <= MAX_BY_NUMPY):
        return build(method, source, **options)


def _is_flat(options: Mapping[str, Any], n_labels: int) -> bool:
    """Return whether k-means with these options puts all labels under the root."""
    return options["from"] is None and n_labels <= max(options["arity"], options["max_leaves"] or 0)


def label_classes(tree: Tree, names: Sequence[str]) -> Int64:
    """Return the class (V,) of each label; raise InputError if the tree lacks a class."""
    class_number = {name: number for number, name in enumerate(names)}
    if len(class_number) < len(names):
        raise InputError("two classes have the same name as text; name them apart")
    if missing := [name for name in names if name not in tree]:
        raise InputError(
            f"the tree has no label {missing[0]!r} ({len(missing)} of the {len(names)} classes "
            "are missing); its labels name the classes, whole numbers by their digits"
        )
    return np.array([class_number[label] for label in tree.labels])


def in_class_order(tree: Tree, label_class: Int64) -> Tree:
    """Return a tree whose label v is class v; nodes and weight rows are as in `tree`."""
    labels = [tree.labels[label] for label in np.argsort(label_class)]
    child = tree.child.copy()
    is_leaf = child < 0
    child[is_leaf] = ~label_class[~child[is_leaf]]
    return Tree(labels, tree.child_start, child)


def class_centroids(
    X: Samples, y: Int64, sample_weight: Float64, n_classes: int, random_state: int
) -> Array:
    """Return the centroids (V, d) of the classes, scaled to a maximum magnitude of 1.

    `y` (n,) is the class of each row of X (n, features). With more than `MAX_DIMENSIONS` features,
    the vectors are coordinates along the first singular vectors of the (V, features) table. All
    distances are kept if V is not larger than that. A class without samples has the mean of the
    others.
    """
    # (V,) weight of each class, (n,) weight of each sample in the mean of its class
    total = np.bincount(y, sample_weight, minlength=n_classes)
    fraction = sample_weight / np.where(total > 0, total, 1)[y]
    content = fraction, (y, np.arange(len(y)))
    means = scipy.sparse.csr_array(content, shape=(n_classes, X.shape[0]))
    centroids = project(means @ X, random_state)
    centroids = centroids / max(float(np.abs(centroids).max(initial=0)), np.finfo(float).tiny)
    if (total > 0).any():
        centroids[total == 0] = centroids[total > 0].mean(axis=0)
    return centroids


def project(table: Any, random_state: int) -> Array:
    """Return a dense or sparse table as a dense array of at most `MAX_DIMENSIONS` columns."""
    if is_sparse(table):
        table, _ = without_empty_columns(canonical_csr(table))
    if table.shape[1] > MAX_DIMENSIONS:
        n_components = min(MAX_DIMENSIONS, table.shape[0])
        U, S, _ = randomized_svd(table, n_components, random_state=random_state)
        return np.asarray(U * S)
    return table.toarray() if is_sparse(table) else np.asarray(table)


def class_counts(y: Int64, sample_weight: Float64, n_classes: int) -> Int64:
    """Return the total weights (V,) of the classes as integer counts.

    If a total is fractional or the sum is above `MAX_EXACT_COUNT`, they are scaled to a sum of
    about `ROUNDED_TOTAL`.
    """
    total = np.bincount(y, sample_weight, minlength=n_classes)
    if not (total == np.rint(total)).all() or total.sum() > MAX_EXACT_COUNT:
        total *= ROUNDED_TOTAL / total.sum()
    return np.rint(total).astype(np.int64)

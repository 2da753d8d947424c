"""Tree over the classes of a classifier, built from their centroids or frequencies.

The label of a class is its name (`hstree.tree.names`).
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils import check_random_state
from sklearn.utils.extmath import randomized_svd

from hstree._arrays import Array, Float64, Int64, canonical_csr
from hstree._options import RANDOM_STATE, effective
from hstree._text import brief
from hstree.builders import build
from hstree.builders.prune import keep_labels
from hstree.builders.registry import builder as builder_named
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError, OptionError
from hstree.interop.sklearn.features import Samples, is_sparse, without_empty_columns
from hstree.kernels import numpy_only
from hstree.tree import Tree

#: Name of the default builder of classes.
AUTO = "auto"
#: Largest number of classes that the default builder leaves under the root.
MOST_FLAT = 256
#: Options of kmeans for more classes: upper nodes are narrow, since all samples pass them.
NARROW_ABOVE = {"arity": 10, "max_leaves": 100}
#: Classes up to which a tree is built by NumPy alone, since loading compiled kernels takes longer.
MAX_BY_NUMPY = 10_000
#: Largest dimension of a class vector; centroids of more features are projected.
MAX_DIMENSIONS = 100
#: Sum to which fractional weights are scaled before they are rounded to counts.
ROUNDED_TOTAL = 1_000_000
#: Sum of whole weights up to which float64 and int64 are exact.
MAX_EXACT_COUNT = 1 << 53


def check_builder_options(options: object) -> None:
    """Raise OptionError unless the parameter `builder_options` is a mapping or None."""
    if not isinstance(options, Mapping | None):
        raise OptionError.about(
            "builder_options", f"is {brief(options)}; it must be a mapping of options, or None"
        )


def draw_seed(random_state: Any) -> int:
    """Return an integer `random_state`, checked, or a seed drawn from another one."""
    if isinstance(random_state, int | np.integer):
        return int(RANDOM_STATE.checked(random_state))
    return int(check_random_state(random_state).randint(2**31))


def build_class_tree(
    method: str,
    options: Mapping[str, Any],
    X: Samples,
    y: Int64,
    sample_weight: Float64,
    labels: Sequence[str],
    random_state: int,
) -> Tree:
    """Build a tree over classes, by a builder that takes `class_vectors` or a vocabulary.

    "auto" is a flat tree for up to `MOST_FLAT` classes, else balanced k-means. `random_state`
    is used unless the builder's `options` have one. Raises InputError when the builder takes
    running text, OptionError for options of "auto".
    """
    if method == AUTO:
        if options:
            raise OptionError("builder_options are those of a builder; name one, such as kmeans")
        method = "flat" if len(labels) <= MOST_FLAT else "kmeans"
        options = {} if method == "flat" else NARROW_ABOVE | {"balanced": True}
    return build_tree(
        method,
        options,
        labels,
        random_state,
        lambda: class_counts(y, sample_weight, len(labels)),
        lambda: class_vectors(X, y, sample_weight, labels, random_state),
    )


def build_tree(
    method: str,
    options: Mapping[str, Any],
    labels: Sequence[str],
    random_state: int,
    counts: Callable[[], Int64],
    vectors: Callable[[], WordVectors],
) -> Tree:
    """Build a tree over labels from their counts or vectors, whichever the builder takes."""
    builder = builder_named(method)
    if method == "classes" and options.get("cluster_by", "vectors") == "vectors":
        return _cluster_labels(options, labels, random_state, counts(), vectors())
    if builder.takes is Corpus:
        raise InputError(
            f"{method} takes a corpus, which classes are not; choose a builder that takes vectors "
            "or counts, such as gmm or huffman, classes with cluster_by='vectors', or pass a tree"
        )
    if any(option.name == "random_state" for option in builder.options):
        options = {"random_state": random_state, **options}
    if builder.takes is Vocabulary:
        source: Any = Vocabulary(labels, counts(), source={"kind": "class frequencies"})
    elif method == "kmeans" and _is_flat(effective(builder.options, options, method), len(labels)):
        zeros = np.zeros((len(labels), 1))  # the tree is the same for any vectors
        source = WordVectors(labels, zeros, counts=counts(), source={"kind": "class frequencies"})
    else:
        source = vectors()
    with numpy_only(len(labels) <= MAX_BY_NUMPY):
        return build(method, source, **options)


def _is_flat(options: Mapping[str, Any], n_labels: int) -> bool:
    """Return whether k-means with these options puts all labels under the root."""
    return options["from"] is None and n_labels <= max(options["arity"], options["max_leaves"] or 0)


def label_ids(tree: Tree, names: Sequence[str]) -> Int64:
    """Return the label id (V,) of each class in a tree; raises InputError for a missing one."""
    if len(set(names)) < len(names):
        raise InputError("two classes have the same name as text; name them apart")
    number = {label: i for i, label in enumerate(tree.labels)}
    if missing := [name for name in names if name not in number]:
        raise InputError(
            f"the tree has no label {missing[0]!r} ({len(missing)} of the {len(names)} classes "
            "are missing); its labels name the classes, whole numbers by their digits"
        )
    return np.array([number[name] for name in names], np.int64)


def _cluster_labels(
    options: Mapping[str, Any],
    labels: Sequence[str],
    random_state: int,
    counts: Int64,
    vectors: WordVectors,
) -> Tree:
    """Cluster labels by their vectors, with a corpus that has each label `counts` times."""
    corpus = Corpus.from_ids(np.repeat(np.arange(len(labels)), counts), labels=labels)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "labels.npy"
        vectors.save(file)
        options = {"random_state": random_state, **options, "cluster_by": "vectors"}
        tree = build("classes", corpus, vectors_file=file, **options)
    return keep_labels(tree, labels)  # without the end of lines


def class_vectors(
    X: Samples, y: Int64, sample_weight: Float64, labels: Sequence[str], random_state: int
) -> WordVectors:
    """Return the centroids of classes as word vectors, with their counts (`class_counts`).

    `y` (n,) is the class of each row of X (n, features), as an index into `labels`. With more than
    `MAX_DIMENSIONS` features, the vectors are coordinates along the first singular vectors of the
    (V, features) table, which keeps all distances where V is not larger than that. A class without
    samples has the mean of the others.
    """
    # (V,) weight of each class, (n,) weight of each sample in the mean of its class
    total = np.bincount(y, sample_weight, minlength=len(labels))
    fraction = sample_weight / np.where(total > 0, total, 1)[y]
    means = scipy.sparse.csr_array(
        (fraction, (y, np.arange(len(y)))), shape=(len(labels), X.shape[0])
    )
    centroids: Any = means @ X
    # Numbers of at most one, in few dimensions
    centroids = project(centroids, random_state)
    centroids = centroids / max(float(np.abs(centroids).max(initial=0)), np.finfo(float).tiny)
    if (total > 0).any():
        centroids[total == 0] = centroids[total > 0].mean(axis=0)
    counts = class_counts(y, sample_weight, len(labels))
    return WordVectors(labels, centroids, counts=counts, source={"kind": "class centroids"})


def project(table: Any, random_state: int) -> Array:
    """Return rows, dense or sparse, as at most `MAX_DIMENSIONS` numbers each, dense."""
    if is_sparse(table):
        table, _ = without_empty_columns(canonical_csr(table))
    if table.shape[1] > MAX_DIMENSIONS:
        n_components = min(MAX_DIMENSIONS, table.shape[0])
        U, S, _ = randomized_svd(table, n_components, random_state=random_state)
        return np.asarray(U * S)
    return table.toarray() if is_sparse(table) else np.asarray(table)


def class_counts(y: Int64, sample_weight: Float64, n_classes: int) -> Int64:
    """Return the weights (V,) of classes as counts.

    They are millionths of the sum where a weight is fractional or the sum is above
    `MAX_EXACT_COUNT`.
    """
    total = np.bincount(y, sample_weight, minlength=n_classes)
    if not (total == np.rint(total)).all() or total.sum() > MAX_EXACT_COUNT:
        total *= ROUNDED_TOTAL / total.sum()
    return np.rint(total).astype(np.int64)

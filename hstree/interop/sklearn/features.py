"""Samples of the linear models: checks, columns that occur, and products of sparse matrices."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse

from hstree._arrays import Array, Float64, Int32, Int64, Integer, canonical_csr, offsets
from hstree._text import brief
from hstree.errors import InputError
from hstree.layers.arithmetic import touched_rows

#: Samples: a dense array or a CSR array (n, n_features).
Samples = Any

#: Arguments of scikit-learn's check of X.
ACCEPTED = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "order": "C"}
#: Largest magnitude of a feature whose products do not overflow in float32.
LARGEST = 2.0**62
#: Maximum number of weights of a model that includes features absent from a sparse X.
SMALL_TABLE = 1 << 20
#: Maximum number of elements of the tables of logits and edges in a prediction.
TABLE_LIMIT = 1 << 22
#: Minimum columns per stored number for which a product first drops the empty columns.
COLUMNS_PER_NUMBER = 64
#: Maximum weights per stored number of X for which a product first sorts them by feature.
WEIGHTS_PER_NUMBER = 64


# Checks.


def is_sparse(X: Any) -> bool:
    """Return whether X is one of scipy's sparse arrays or matrices."""
    return bool(scipy.sparse.issparse(X))


def largest_magnitude(X: Samples) -> float:
    """Return the largest absolute value of X."""
    values = X.data if is_sparse(X) else X
    return max(float(values.max(initial=0)), -float(values.min(initial=0)))


def check_not_too_large(X: Samples) -> None:
    """Raise InputError if sums of products of X with weights may overflow in float32."""
    if (largest := largest_magnitude(X)) > LARGEST:
        raise InputError(
            f"X has a value of magnitude {largest:.3g}; up to {LARGEST:.1g} is accepted: scale the "
            "features, in training and prediction, so that most values are between -1 and 1"
        )


def checked_weights(sample_weight: Any, n_samples: int) -> Float64:
    """Return the weights of samples as numbers; raise InputError if they are not."""
    try:
        weight = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError):
        weight = np.empty(0)
    is_weight = np.isfinite(weight) & (weight >= 0)
    if weight.shape != (n_samples,) or not (is_weight.all() and weight.any()):
        raise InputError(
            f"sample_weight is {brief(sample_weight)}; give a finite number, 0 or more, for each "
            f"of the {n_samples:,} samples, and one above 0"
        )
    return weight


# Columns of sparse arrays.


def without_empty_columns(X: Any) -> tuple[Any, Int32]:
    """Return a CSR array without its empty columns, and the indices of the other columns.

    One column remains if all are empty. Indices are int32, as liblinear requires.
    """
    columns, indices = touched_rows(X.indices, X.shape[1])
    if not len(columns):
        columns = np.zeros(1, np.int64)
    content = X.data, indices, X.indptr.astype(np.int32)
    occurring = scipy.sparse.csr_array(content, shape=(X.shape[0], len(columns)))
    return occurring, columns.astype(np.int32)


def spread_columns(X: Any, features: Integer, n_features: int) -> Any:
    """Move the columns of a CSR array (n, K) to the columns `features` of `n_features`."""
    content = X.data, features[X.indices], X.indptr
    return scipy.sparse.csr_array(content, shape=(X.shape[0], n_features))


def lengthened(array: Array, length: int) -> Array:
    """Return an array with zeros appended to its first axis."""
    result = np.zeros((length, *array.shape[1:]), array.dtype)
    result[: len(array)] = array
    return result


class FeatureColumns:
    """Columns of a model for the features that occur in a wide CSR array X.

    Features get columns in the order in which they first occur, so that weights keep their columns
    when more features occur.

    Attributes
    ----------
    column : int32 array (n_features,)
        Column of each feature, -1 for those that have not occurred.
    n_used : int
        Number of features that have occurred.
    width : int
        Number of columns; those from `n_used` on are free.
    """

    def __init__(self, X: Any) -> None:
        features = without_empty_columns(X)[1]
        self.n_used = len(features)
        self.width = self.n_used
        self.column = np.full(X.shape[1], -1, np.int32)
        self.column[features] = np.arange(self.n_used)

    @classmethod
    def create_if_wide(cls, X: Samples, n_classes: int) -> Self | None:
        """Return the columns for a training X; None if it is dense, small or at least half full."""
        if not is_sparse(X) or X.shape[1] * n_classes <= SMALL_TABLE:
            return None
        columns = cls(X)
        return columns if 2 * columns.width < X.shape[1] else None

    def add(self, X: Any) -> None:
        """Add columns for the features of X that have none.

        The width doubles when it is too small, so that it rarely changes.
        """
        new = np.unique(X.indices[self.column[X.indices] < 0])
        self.column[new] = np.arange(self.n_used, self.n_used + len(new))
        self.n_used += len(new)
        if self.n_used > self.width:
            self.width = min(max(self.n_used, 2 * self.width), len(self.column))

    def select(self, X: Samples) -> Any:
        """Return X (n, n_features) as a CSR array of the columns (n, width)."""
        X = canonical_csr(X)
        column = self.column[X.indices]
        has_column = column >= 0
        start = offsets(has_column)[X.indptr]
        content = X.data[has_column], column[has_column], start
        return scipy.sparse.csr_array(content, shape=(X.shape[0], self.width))

    def spread(self, weight: Any) -> Any:
        """Return weights (R, width) as a CSR array (R, n_features)."""
        feature = np.zeros(self.width, np.int32)
        used = np.flatnonzero(self.column >= 0)
        feature[self.column[used]] = used
        rows = scipy.sparse.csr_array(weight)
        return canonical_csr(spread_columns(rows, feature, len(self.column)))


# Products.


def products(X: Any, weight: Any, step: int) -> Iterator[tuple[slice, Array]]:
    """Yield slices of at most `step` samples, and their products (samples, k) with weights.

    `X` is a CSR array (n, n_features), `weight` a CSR array (k, n_features).
    """
    if X.shape[1] > COLUMNS_PER_NUMBER * (X.nnz + weight.nnz):
        # Drop the columns that are empty in both
        columns, index = touched_rows(np.r_[X.indices, weight.indices], X.shape[1])
        X_index, weight_index = np.split(index, [X.nnz])
        content = X.data, X_index, X.indptr
        X = scipy.sparse.csr_array(content, shape=(X.shape[0], len(columns)))
        content = weight.data, weight_index, weight.indptr
        weight = scipy.sparse.csr_array(content, shape=(weight.shape[0], len(columns)))

    # (n_features, k) weights feature by feature, unless that takes longer than the products
    table = None
    if weight.shape[1] < X.nnz and weight.shape[0] * weight.shape[1] <= TABLE_LIMIT:
        table = weight.T.toarray(order="C")
    elif weight.nnz <= WEIGHTS_PER_NUMBER * X.nnz:
        table = weight.T.tocsr()
    for a in range(0, X.shape[0], step):
        part = slice(a, a + step)
        product = (weight @ X[part].T).T if table is None else X[part] @ table
        yield part, product.toarray() if is_sparse(product) else product


def sparse_product(X: Any, weight: Any) -> Array:
    """Return the products (n, k) of sparse samples (n, n_features) and weights (k, n_features)."""
    return next(products(X, weight, X.shape[0]))[1]


def node_logits(
    X: Any, weight: Any, bias: Array, row_start: Int64, item: Int64, node: Int64
) -> Float64:
    """Return the logits at all rows of nodes, for pairs (n,) of a sparse sample and a node.

    In the sparse weights (R, n_features), the rows of node n start at ``row_start[n]``. Logits are
    in the order of the pairs; those of a pair are adjacent.
    """
    start = offsets(np.diff(row_start)[node])
    logits = np.empty(start[-1])
    # One product for each node
    order = np.argsort(node, kind="stable")
    first = np.flatnonzero(np.diff(node[order], prepend=-1))
    for here in np.split(order, first)[1:]:
        rows = slice(*row_start[node[here[0]] :][:2].tolist())
        products = sparse_product(X[item[here]], weight[rows]) + bias[rows]
        logits[start[here, None] + np.arange(products.shape[1])] = products
    return logits

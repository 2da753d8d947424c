"""Samples of the linear models: checks, columns that occur, and products of sparse matrices."""

from typing import Any, Self

import numpy as np
import scipy.sparse

from hstree._arrays import Array, Int32, Int64, Integer, canonical_csr, offsets
from hstree.errors import InputError
from hstree.layers.arithmetic import touched_rows

#: Samples: a dense array or a CSR array (n, n_features).
Samples = Any

#: Arguments of scikit-learn's check of X, after which `canonical_samples` takes it.
ACCEPTED = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "order": "C"}
#: Largest magnitude of a feature whose products do not overflow in float32.
LARGEST = 2.0**62
#: Smallest magnitude of the largest feature whose products do not vanish.
SMALLEST = 2.0**-62
#: Weights up to which features that do not occur in a sparse X have weights, too.
SMALL_TABLE = 1 << 20
#: Elements of the tables of logits and edges that a prediction holds at a time.
TABLE_LIMIT = 1 << 22
#: Columns per stored number from which on a product first drops the empty columns.
COLUMNS_PER_NUMBER = 64


# Checks.


def is_sparse(X: Any) -> bool:
    """Return whether X is one of scipy's sparse arrays or matrices."""
    return bool(scipy.sparse.issparse(X))


def canonical_samples(X: Any) -> Samples:
    """Return X as the models take it: a dense C-contiguous array or a canonical CSR array."""
    return canonical_csr(X) if is_sparse(X) else X


def largest_magnitude(X: Samples) -> float:
    """Return the largest absolute value of X."""
    values = X.data if is_sparse(X) else X
    return max(float(values.max(initial=0)), -float(values.min(initial=0)))


def check_not_too_large(X: Samples) -> None:
    """Refuse X where sums of its products with weights may overflow in float32."""
    if (largest := largest_magnitude(X)) > LARGEST:
        raise InputError(
            f"X has a value of magnitude {largest:.3g}; up to {LARGEST:.1g} is accepted: scale the "
            "features, in training and prediction, so that most values are between -1 and 1"
        )


def check_not_too_small(X: Samples) -> None:
    """Refuse X where all values are so small that the penalty keeps all weights at zero."""
    if 0 < (largest := largest_magnitude(X)) < SMALLEST:
        raise InputError(
            f"the largest magnitude in X is {largest:.3g}; {SMALLEST:.1g} or more is accepted: "
            "scale the features, in training and prediction, so that some values are near 1"
        )


# Columns of sparse arrays.


def without_empty_columns(X: Any) -> tuple[Any, Int32]:
    """Return a CSR array without its empty columns, and the numbers of the other columns.

    One column remains where all are empty. Indices are int32, as liblinear takes them.
    """
    columns, indices = touched_rows(X.indices, X.shape[1])
    if not len(columns):
        columns = np.zeros(1, np.int64)
    content = X.data, indices, X.indptr.astype(np.int32)
    occurring = scipy.sparse.csr_array(content, shape=(X.shape[0], len(columns)))
    return occurring, columns.astype(np.int32)


def select_columns(X: Any, features: Int64) -> Any:
    """Return the columns `features` (K,), ascending, of a CSR array."""
    column = np.minimum(np.searchsorted(features, X.indices), len(features) - 1)
    is_selected = features[column] == X.indices
    start = offsets(is_selected)[X.indptr].astype(X.indptr.dtype)
    content = X.data[is_selected], column[is_selected].astype(X.indices.dtype), start
    return scipy.sparse.csr_array(content, shape=(X.shape[0], len(features)))


def spread_columns(X: Any, features: Integer, n_features: int) -> Any:
    """Return a CSR array (n, K) with its columns as the columns `features` of `n_features`."""
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
    features, column : int64 arrays (K,)
        Features that have occurred, ascending, and the column of each.
    width : int
        Number of columns; those from K on are free.
    """

    def __init__(self, X: Any) -> None:
        self.n_features = X.shape[1]
        self.features = without_empty_columns(X)[1].astype(np.int64)
        self.column = np.arange(len(self.features))
        self.width = len(self.features)

    @classmethod
    def create_if_wide(cls, X: Samples, n_classes: int) -> Self | None:
        """Return the columns for a training X; None if it is dense or small, or half full."""
        if not is_sparse(X) or X.shape[1] * n_classes <= SMALL_TABLE:
            return None
        columns = cls(X)
        return columns if 2 * columns.width < X.shape[1] else None

    def add(self, X: Samples) -> None:
        """Give columns to the features that occur in X and have none.

        The width is doubled when it is too small, so that it seldom changes.
        """
        new = np.setdiff1d(canonical_csr(X).indices, self.features)
        position = np.searchsorted(self.features, new)
        n_columns = len(self.features) + len(new)
        self.column = np.insert(self.column, position, np.arange(len(self.features), n_columns))
        self.features = np.insert(self.features, position, new)
        if n_columns > self.width:
            self.width = min(max(n_columns, 2 * self.width), self.n_features)

    def select(self, X: Samples) -> Any:
        """Return X (n, n_features) as a CSR array of the columns (n, width)."""
        X = select_columns(canonical_csr(X), self.features)
        content = X.data, self.column[X.indices], X.indptr
        return scipy.sparse.csr_array(content, shape=(X.shape[0], self.width))

    def spread(self, weight: Any) -> Any:
        """Return weights (R, width) as a CSR array (R, n_features)."""
        feature = np.zeros(self.width, np.int64)
        feature[self.column] = self.features
        rows = scipy.sparse.csr_array(weight)
        return canonical_csr(spread_columns(rows, feature, self.n_features))


# Products.


def sparse_product(X: Any, weight: Any) -> Array:
    """Return the products (n, k) of sparse samples (n, features) and weights (k, features)."""
    if X.shape[1] > COLUMNS_PER_NUMBER * (X.nnz + weight.nnz):
        # Drop the columns that are empty in both
        columns, index = touched_rows(np.r_[X.indices, weight.indices], X.shape[1])
        X_index, weight_index = np.split(index, [X.nnz])
        content = X.data, X_index, X.indptr
        X = scipy.sparse.csr_array(content, shape=(X.shape[0], len(columns)))
        content = weight.data, weight_index, weight.indptr
        weight = scipy.sparse.csr_array(content, shape=(weight.shape[0], len(columns)))
    if weight.shape[1] < X.nnz and weight.shape[0] * weight.shape[1] <= TABLE_LIMIT:
        return np.asarray(X @ weight.T.toarray(order="C"))
    return np.asarray((weight @ X.T).toarray().T)

"""Linear model over a tree: logits ``W x + b`` of dense or sparse samples, and their gradients.

Beside the output layer, samples have weights, a sparse X stays sparse in logits and gradients, and
there is no gradient with respect to X. Nodes of up to `NARROW` children are computed as pairs of a
sample and a weight row; a wider node is one matrix product over its samples.
"""

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse

from hstree._arrays import (
    Array,
    Float64,
    Int32,
    Int64,
    Integer,
    canonical_csr,
    offsets,
    ranges,
    segment_ids,
)
from hstree.errors import InputError
from hstree.kernels import NARROW
from hstree.layers import arithmetic
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.layers.top_k import BatchTopK, PairLogits, children_of_rows, top_k_of_batch
from hstree.tree import Codes, Tree
from hstree.tree.codes import Expansion
from hstree.tree.paths import Decisions, path_decisions
from hstree.tree.weight_rows import edge_mass

#: Samples: a dense array or a CSR array (n, n_features).
Rows = Any

#: Arguments of scikit-learn's check of X, after which `canonical_rows` takes it.
ACCEPTED = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "order": "C"}
#: Weights up to which features that do not occur in a sparse X have some, too.
SMALL_TABLE = 1 << 20
#: Largest absolute value of a feature whose products do not overflow in float32, and the smallest
#: largest one whose products do not vanish.
LARGEST, SMALLEST = 2.0**62, 2.0**-62

#: Products of a sparse X with weights that are laid out at a time.
PRODUCTS = 1 << 20
#: Pairs of samples and weight rows of a node from which on they are one sparse product.
BLOCK = 64
#: Elements of the tables of logits and edges that a prediction holds at a time.
TABLE_LIMIT = 1 << 22
#: Samples of a prediction that are searched together.
SEARCHED_TOGETHER = 2048
#: A search ends without an answer when it has scored this share of the edges ...
PATIENCE = 1 / 8
#: ... or this one, where each logit is a sparse product of its own, ...
SPARSE_PATIENCE = 1 / 64
#: ... and this many more.
LEAST_PATIENCE = 64
#: Edges of the smallest tree that is searched; for smaller ones all log-probabilities are cheaper.
LEAST_EDGES = 1024


class Gradient(NamedTuple):
    """Gradient of a loss with respect to some of the weights."""

    index: Any  # elements of `LinearTree.table` that `weight` belongs to, without repeats
    weight: Array
    rows: Int64 | slice  # (r,) biases that `bias` belongs to, without repeats
    bias: Array  # (r,)


class LinearTree:
    """Weights of a linear model over a tree with one code a label, for a sparse X or a dense one.

    `table` is (n_features, R) for a sparse X, so that the weights of a feature are adjacent, else
    (R, n_features); zero at the start. `bias` (R,) makes the untrained model the distribution of
    `counts` (V,), by default `tree.counts`; without `fit_intercept` it is zero and stays so. Counts
    of all targets (V + N,) include those of samples that stop at the nodes.
    Where most weights are zero, `kept` has the others, a CSR array (R, n_features), and no table is
    in memory until it is asked for.
    """

    def __init__(
        self,
        tree: Tree,
        n_features: int,
        *,
        counts: Integer | None = None,
        sparse: bool,
        dtype: Any,
        fit_intercept: bool = True,
    ) -> None:
        self.tree, self.sparse, self.fit_intercept = tree, sparse, fit_intercept
        self.target_counts: Array = np.ones(tree.n_labels, np.int64)
        if (known_counts := tree.counts if counts is None else counts) is not None:
            self.target_counts = known_counts
        label_counts = None if counts is None else self.counts
        self.layer = HierarchicalSoftmax(tree, 0, counts=label_counts, dtype=dtype)
        self.bias = self.layer.bias
        if not fit_intercept:
            self.bias[:] = 0
        self.shape, self.dtype = (len(self.bias), n_features), np.dtype(dtype)
        self.kept: Any = None
        self._table: Array | None = None

    @property
    def counts(self) -> Array:
        """Counts of the labels (V,)."""
        return self.target_counts[: self.tree.n_labels]

    @property
    def table(self) -> Array:
        """The weights, all of them."""
        if self._table is None:
            shape = self.shape[::-1] if self.sparse else self.shape
            self._table = np.zeros(shape, self.dtype)
            if self.kept is not None:
                kept = self.kept.tocoo()
                at = (kept.col, kept.row) if self.sparse else (kept.row, kept.col)
                self._table[at] = kept.data
                self.kept = None
        return self._table

    @table.setter
    def table(self, table: Array | None) -> None:
        self._table = table

    @property
    def weight(self) -> Any:
        """The weights (R, n_features), a view of `table` or a CSR array."""
        return self.dense_weight if self.kept is None else self.kept

    @property
    def dense_weight(self) -> Array:
        """The weights (R, n_features), a view of `table`."""
        return self.table.T if self.sparse else self.table

    def rows(self, node: int) -> slice:
        """Return the weight rows of a node."""
        return slice(*self.tree.row_start[node : node + 2].tolist())

    def started(self, rows: slice) -> Array | None:
        """Return weights as a start (n_features, rows), None where they are zero."""
        weight = None if self._table is None else self.dense_weight[rows].T
        return weight if weight is not None and weight.any() else None

    def node_penalty(self) -> Float64:
        """Return the strength of the penalty of each node (N,), 1 at the root.

        It is the square root of the fraction of the samples that reach the node. Samples that stop
        at a node reach it; those that stop at the root, which train nothing, are left out.
        """
        tree = self.tree
        mass = edge_mass(tree, self.counts)
        stopping = self.target_counts[tree.n_labels :]
        if stopping.any():
            # Add the samples that stop at each node to the edges of the path to it
            nodes = np.flatnonzero(stopping)
            paths = self.expand(tree.n_labels + nodes)
            node = nodes[segment_ids(paths.decision_start)]  # a target has one code
            mass += np.bincount(paths.edge, stopping[node], len(mass))
        # (N,) samples that reach each node
        node_mass = mass[tree.node_edge]
        node_mass[0] = mass[: tree.child_start[1]].sum()
        return np.asarray(np.sqrt(node_mass / node_mass[0]))

    def row_penalty(self) -> Float64:
        """Return the strength of the penalty of each weight row (R,), that of its node."""
        if self.tree.n_nodes == 0:
            return np.empty(0)
        return self.node_penalty()[segment_ids(self.tree.row_start)]

    def converted(self, X: Rows) -> Rows:
        """Return X as it is trained on: CSR where `table` is made for it, else dense."""
        if self.sparse:
            return scipy.sparse.csr_array(X)
        return X.toarray() if is_sparse(X) else X

    def widen(self, n_features: int) -> None:
        """Add features up to this number, with weights of zero; the model is for a sparse X."""
        self.shape = len(self.bias), n_features
        if self._table is not None:
            self._table = lengthened(self._table, n_features)
        if self.kept is not None:
            content = self.kept.data, self.kept.indices, self.kept.indptr
            self.kept = scipy.sparse.csr_array(content, shape=self.shape)

    def log_prob(self, X: Rows) -> Iterator[tuple[slice, Float64]]:
        """Yield slices of the samples, and the log-probabilities (samples, V) of all labels."""
        for samples, logits in self._all_logits(X):
            yield samples, self.layer.log_prob_of_logits(logits.T)

    def top_k(self, X: Rows, k: int) -> BatchTopK:
        """Search the k most probable labels of each sample.

        Sparse samples are first searched with few logits each; those that need more then get the
        logits of all nodes by one sparse product. Samples whose search is long or not certain have
        no answer, nor has any in small trees. 1 <= k <= V.
        """
        n, n_edges = X.shape[0], len(self.tree.child)
        result = BatchTopK.empty(n, k)
        if n_edges < LEAST_EDGES or self.tree.fan_out[0] > LEAST_PATIENCE + PATIENCE * n_edges:
            return result

        def search(samples: Int64, logits: PairLogits, patience: float) -> None:
            answers = top_k_of_batch(
                self.tree,
                children_of_rows(self.tree, logits),
                len(samples),
                k,
                # Far above the rounding of logits, in whatever order products are summed.
                margin=float(np.sqrt(np.finfo(self.weight.dtype).eps)),
                patience=LEAST_PATIENCE + patience * n_edges,
            )
            for array, values in zip(result, answers, strict=True):
                array[samples] = values

        for a in range(0, n, SEARCHED_TOGETHER):
            samples = np.arange(a, min(a + SEARCHED_TOGETHER, n))
            logits = partial(self.pair_logits, self.converted(X[samples]))
            search(samples, logits, SPARSE_PATIENCE if self.sparse else PATIENCE)
        others = np.flatnonzero(~result.certain)
        if self.sparse and others.size:
            for some, table in self._all_logits(X[others]):
                search(others[some], lambda *pairs, table=table: table[pairs], PATIENCE)
        return result

    def _all_logits(self, X: Rows) -> Iterator[tuple[slice, Array]]:
        """Yield slices of the samples, and the logits of all weight rows (samples, R)."""
        step = max(1, TABLE_LIMIT // max(1, len(self.tree.child)))
        if self.kept is not None:
            for a in range(0, X.shape[0], step):
                logits = product(scipy.sparse.csr_array(X[a : a + step]), self.kept)
                yield slice(a, a + step), logits + self.bias
            return
        weight = np.asarray(self.weight.T, order="C" if is_sparse(X) else None)
        for a in range(0, X.shape[0], step):
            yield slice(a, a + step), X[a : a + step] @ weight + self.bias

    def loss(
        self, X: Rows, labels: Integer, sample_weight: Array
    ) -> tuple[Float64, list[Gradient]]:
        """Return the negative log-likelihoods (B,) and the gradients of their weighted sum.

        `X` is as `converted` returns it; `labels` (B,) are targets as of `expand`.
        """
        if self.tree.n_nodes == 0:
            return np.zeros(len(labels)), []
        decisions, _ = path_decisions(self._codes(labels), labels)
        # A node that is wide, or that many samples visit, is one product
        n_visits = np.bincount(decisions.row)[decisions.row]
        is_binary = decisions.width == 2
        is_product = ~is_binary & ((decisions.width > NARROW) | (n_visits >= BLOCK))
        log_prob = np.empty(len(decisions.item))
        gradients: list[Gradient] = []
        for condition, decide in (
            (is_binary, self._decide_binary),
            (~is_binary & ~is_product, self._decide_narrow),
            (is_product, self._decide_wide),
        ):
            position, chosen = decisions.where(condition)
            if len(position):
                # a label has one code, whose decisions have the weight of the sample
                weight = sample_weight[chosen.item]
                log_prob[position], of_kind = decide(X, chosen, weight)
                gradients += of_kind
        nll: Float64 = np.negative(np.bincount(decisions.item, log_prob, minlength=len(labels)))
        return nll, gradients

    def expand(self, targets: Integer) -> Expansion:
        """Return the paths to targets (B,): label ids, or ``V + n`` for node n."""
        return self._codes(targets).expand(targets)

    def _codes(self, targets: Integer) -> Codes:
        has_nodes = targets.max(initial=0) >= self.tree.n_labels
        return self._codes_with_nodes if has_nodes else self.layer.codes

    @cached_property
    def _codes_with_nodes(self) -> Codes:
        return Codes(self.tree, nodes=True)

    def _decide_binary(
        self, X: Rows, decisions: Decisions, weight: Array
    ) -> tuple[Array, list[Gradient]]:
        """Return log-probabilities (D,) at nodes with two children, and gradients."""
        item, row = decisions.item, decisions.row
        logits = self.pair_logits(X, item, row)
        log_prob, error = arithmetic.binary_decision(logits, decisions.branch == 0)
        return log_prob, [self._pair_gradient(X, item, row, error * weight)]

    def _decide_narrow(
        self, X: Rows, decisions: Decisions, weight: Array
    ) -> tuple[Array, list[Gradient]]:
        """Return log-probabilities (D,) at nodes with 3 to `NARROW` children, and gradients."""
        start = offsets(decisions.width)
        item = np.repeat(decisions.item, decisions.width)
        row = ranges(decisions.row, start)
        log_prob = arithmetic.segment_log_softmax(self.pair_logits(X, item, row), start)
        chosen = start[:-1] + decisions.branch
        error: Array = np.exp(log_prob)
        error[chosen] -= 1
        error *= np.repeat(weight, decisions.width)
        return log_prob[chosen], [self._pair_gradient(X, item, row, error)]

    def _decide_wide(
        self, X: Rows, decisions: Decisions, weight: Array
    ) -> tuple[Array, list[Gradient]]:
        """Return log-probabilities (D,) at nodes with many children, and gradients.

        Each node is one dense softmax over its samples.
        """
        gradients = []
        log_prob = np.empty(len(decisions.item))
        order = np.argsort(decisions.row, kind="stable")
        for here in np.split(order, np.flatnonzero(np.diff(decisions.row[order])) + 1):
            row = int(decisions.row[here[0]])
            rows = slice(row, row + int(decisions.width[here[0]]))
            samples = X[decisions.item[here]]  # (n, features)
            index: Any = rows
            if self.sparse:
                samples, features = without_empty_columns(samples)
                index = (features.astype(np.int64), rows)
            node_weight = self.table[index]
            logits = samples @ (node_weight if self.sparse else node_weight.T) + self.bias[rows]
            # (n,) logits of the branches taken, then (n, k) errors
            position = np.arange(len(here))
            branch = decisions.branch[here]
            chosen = logits[position, branch]
            log_prob[here] = chosen - arithmetic.softmax(logits)
            error = logits
            error[position, branch] -= 1
            error *= weight[here, None]
            grad = samples.T @ error if self.sparse else error.T @ samples
            gradients.append(Gradient(index, grad, rows, error.sum(axis=0)))
        return log_prob, gradients

    def pair_logits(self, X: Rows, item: Int64, row: Int64) -> Array:
        """Return the logits (P,) of pairs of a sample and a weight row."""
        if self.kept is not None:
            start = self.tree.row_start
            X = scipy.sparse.csr_array(X)
            return self.bias[row] + _pair_products(X, self.kept, start, item, row)
        if not self.sparse:
            return arithmetic.gather_dot(self.table, self.bias, X, item, row)
        logits: Array = self.bias[row]
        add_products(logits, X, self.table, item, row)
        return logits

    def _pair_gradient(self, X: Rows, item: Int64, row: Int64, error: Array) -> Gradient:
        """Return the gradient from the errors (P,) of pairs, whose items ascend."""
        rows, slot = arithmetic.touched_rows(row, len(self.bias))
        start = offsets(np.bincount(item, minlength=X.shape[0])).astype(np.int32)
        error = error.astype(self.table.dtype, copy=False)
        # (B, r) errors of each sample at the touched rows
        G = scipy.sparse.csr_array((error, slot, start), shape=(X.shape[0], len(rows)))
        grad_bias = np.bincount(slot, error, minlength=len(rows))
        if not self.sparse:
            return Gradient(rows, G.T @ X, rows, grad_bias)
        # (f, r) by features, as the table is
        X, features = without_empty_columns(X)
        grad = X.T.tocsr() @ G
        feature = features.astype(np.int64)[segment_ids(grad.indptr)]
        return Gradient((feature, rows[grad.indices]), grad.data, rows, grad_bias)


def _pair_products(X: Any, weight: Any, row_start: Int64, item: Int64, row: Int64) -> Float64:
    """Return the products (P,) of pairs of a sparse sample and a sparse weight row.

    A sample has pairs with all rows of a node, whose first is in `row_start` (N + 1,). Nodes of
    many pairs are one product each.
    """
    result = np.empty(len(item))
    node = np.searchsorted(row_start, row, side="right")
    order = np.argsort(node, kind="stable")
    head = np.flatnonzero(np.diff(node[order], prepend=-1))
    size = np.diff(head, append=len(order))
    for a, n in zip(head[size >= BLOCK], size[size >= BLOCK], strict=True):
        here = order[a : a + n]
        first, last = row[here].min(), row[here].max()
        samples, slot = np.unique(item[here], return_inverse=True)
        result[here] = product(X[samples], weight[first : last + 1])[slot, row[here] - first]
    others = order[np.repeat(size < BLOCK, size)]
    stored = offsets(np.diff(X.indptr)[item[others]] + np.diff(weight.indptr)[row[others]])
    # Pairs of about so many stored numbers at a time
    for some in np.split(others, np.flatnonzero(np.diff(stored[1:] // PRODUCTS)) + 1):
        result[some] = X[item[some]].multiply(weight[row[some]]).sum(axis=1)
    return result


def add_products(logits: Array, X: Rows, table: Array, item: Int64, row: Int64) -> None:
    """Add the products (P,) of pairs of a sparse sample and a column of `table`."""
    stored = np.diff(X.indptr)[item]
    step = max(1, PRODUCTS // max(1, int(stored.max(initial=1))))
    for a in range(0, len(item), step):
        some = slice(a, a + step)
        # (products,) index of each stored number of X, its pair, its weight in the table
        start = offsets(stored[some])
        at = ranges(X.indptr[item[some]].astype(np.int64), start)
        pair = segment_ids(start)
        weight = X.indices[at] * np.int64(table.shape[1]) + row[some][pair]
        products = X.data[at] * table.ravel().take(weight)
        logits[some] += np.bincount(pair, products, minlength=len(start) - 1)


def product(X: Any, weight: Any) -> Array:
    """Return the products (n, k) of sparse samples (n, features) and weights (k, features)."""
    if X.shape[1] > X.nnz + weight.nnz:  # most columns are empty in both
        features, index = arithmetic.touched_rows(np.r_[X.indices, weight.indices], X.shape[1])
        in_X, in_weight = np.split(index, [X.nnz])
        X = scipy.sparse.csr_array((X.data, in_X, X.indptr), (X.shape[0], len(features)))
        content = weight.data, in_weight, weight.indptr
        weight = scipy.sparse.csr_array(content, (weight.shape[0], len(features)))
    if weight.shape[1] < X.nnz and weight.shape[0] * weight.shape[1] <= TABLE_LIMIT:
        return np.asarray(X @ weight.T.toarray(order="C"))
    return np.asarray((weight @ X.T).toarray().T)


def is_sparse(X: Any) -> bool:
    """Whether X is one of scipy's sparse arrays or matrices."""
    return bool(scipy.sparse.issparse(X))


def canonical_rows(X: Any) -> Rows:
    """Return X, dense or sparse, as the models take it: C-contiguous or a canonical CSR array."""
    return canonical_csr(X) if is_sparse(X) else X


def largest_feature(X: Rows) -> float:
    """Return the largest absolute value of X."""
    values = X.data if is_sparse(X) else X
    return max(float(values.max(initial=0)), -float(values.min(initial=0)))


def check_not_too_large(X: Rows) -> None:
    """Refuse X where sums of its products with weights may overflow in float32."""
    if (largest := largest_feature(X)) > LARGEST:
        raise InputError(
            f"X has a value of magnitude {largest:.3g}; up to {LARGEST:.1g} is accepted: scale the "
            "features, in training and prediction, so that most values are between -1 and 1"
        )


def check_not_too_small(X: Rows) -> None:
    """Refuse X where all values are so small that the penalty keeps all weights at zero."""
    if 0 < (largest := largest_feature(X)) < SMALLEST:
        raise InputError(
            f"the largest magnitude in X is {largest:.3g}; {SMALLEST:.1g} or more is accepted: "
            "scale the features, in training and prediction, so that some values are near 1"
        )


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

    Features get columns in the order in which they occur, so that weights stay where they are when
    more features occur.

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
    def create_if_wide(cls, X: Rows, n_classes: int) -> Self | None:
        """Return the columns for a training X; None if it is dense or small, or half full."""
        if not is_sparse(X) or X.shape[1] * n_classes <= SMALL_TABLE:
            return None
        columns = cls(X)
        return columns if 2 * columns.width < X.shape[1] else None

    def add(self, X: Rows) -> None:
        """Give columns to the features that occur in X and have none.

        The width is doubled when it is too small, so that it seldom changes.
        """
        new = np.setdiff1d(canonical_csr(X).indices, self.features)
        at = np.searchsorted(self.features, new)
        n_columns = len(self.features) + len(new)
        self.column = np.insert(self.column, at, np.arange(len(self.features), n_columns))
        self.features = np.insert(self.features, at, new)
        if n_columns > self.width:
            self.width = min(max(n_columns, 2 * self.width), self.n_features)

    def select(self, X: Rows) -> Any:
        """Return X (n, n_features) as a CSR array of the columns (n, width)."""
        X = select_columns(canonical_csr(X), self.features)
        content = X.data, self.column[X.indices], X.indptr
        return scipy.sparse.csr_array(content, shape=(X.shape[0], self.width))

    def spread(self, weight: Any) -> Any:
        """Return weights (R, width) as a CSR array (R, n_features)."""
        feature = np.zeros(self.width, np.int64)
        feature[self.column] = self.features
        return canonical_csr(
            spread_columns(scipy.sparse.csr_array(weight), feature, self.n_features)
        )


def without_empty_columns(X: Any) -> tuple[Any, Int32]:
    """Return a CSR array without its empty columns, and the numbers of the other columns.

    One column remains where all are empty. Indices are int32, as liblinear takes them.
    """
    columns, indices = arithmetic.touched_rows(X.indices, X.shape[1])
    columns = columns if len(columns) else np.zeros(1, np.int64)
    content = X.data, indices, X.indptr.astype(np.int32)
    few = scipy.sparse.csr_array(content, shape=(X.shape[0], len(columns)))
    return few, columns.astype(np.int32)

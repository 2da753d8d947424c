"""Linear model over a tree: logits ``W x + b`` of dense or sparse samples, and their gradients.

Unlike the output layer, samples have weights, a sparse X stays sparse in logits and gradients, and
there is no gradient with respect to X. Nodes with few children and few samples are computed as
pairs of a sample and a weight row; every other node is one matrix product over its samples.
"""

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from hstree._arrays import Array, Float64, Int64, Integer, offsets, ranges, segment_ids
from hstree.interop.sklearn.features import (
    TABLE_LIMIT,
    Samples,
    is_sparse,
    lengthened,
    sparse_product,
    without_empty_columns,
)
from hstree.kernels import NARROW
from hstree.layers import arithmetic
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.layers.top_k import BatchTopK, PairLogits, children_of_rows, top_k_of_batch
from hstree.tree import Codes, Tree
from hstree.tree.codes import Expansion
from hstree.tree.paths import Decisions, path_decisions
from hstree.tree.weight_rows import edge_mass

#: Products of a sparse X with weights that are laid out at a time.
PRODUCTS = 1 << 20
#: Samples, or pairs of samples and weight rows, of a node from which on they are one product.
BLOCK = 64
#: Samples of a prediction that are searched together.
SEARCHED_TOGETHER = 2048
#: A search ends without an answer when it has scored this fraction of the edges ...
PATIENCE = 1 / 8
#: ... or this one, where each logit is a sparse product of its own, ...
SPARSE_PATIENCE = 1 / 64
#: ... and this many more.
LEAST_PATIENCE = 64
#: Edges of the smallest tree that is searched; in smaller ones scoring all labels is faster.
LEAST_EDGES = 1024


class Gradient(NamedTuple):
    """Gradient of a loss with respect to some of the weights."""

    index: Any  # elements of `LinearTree.table` that `weight` belongs to, without repeats
    weight: Array
    rows: Int64 | slice  # (r,) biases that `bias` belongs to, without repeats
    bias: Array  # (r,)


class LinearTree:
    """Weights of a linear model over a tree with one code per label.

    Parameters
    ----------
    tree : Tree
    n_features : int
    counts : int array (V,) or (V + N,), optional
        Counts of the labels, and of the samples that stop at the nodes, by default `tree.counts`.
        The untrained model is the distribution of the labels' counts.
    sparse : bool
        Whether X is sparse.
    dtype : dtype
    fit_intercept : bool
        Without it, biases are zero and stay so.

    Attributes
    ----------
    bias : float array (R,)
    kept : CSR array (R, n_features) or None
        The weights, where most of them are zero, as at the start; `make_dense` makes a table of
        them.
    table : array or None
        The weights of a dense model, where `kept` is None. The table is (n_features, R) for a
        sparse X, so that the weights of a feature are adjacent, else (R, n_features).
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
        self.tree = tree
        self.sparse = sparse
        self.fit_intercept = fit_intercept
        self.target_counts: Array = np.ones(tree.n_labels, np.int64)
        if (known_counts := tree.counts if counts is None else counts) is not None:
            self.target_counts = known_counts
        label_counts = None if counts is None else self.counts
        self.layer = HierarchicalSoftmax(tree, 0, counts=label_counts, dtype=dtype)
        self.bias = self.layer.bias
        if not fit_intercept:
            self.bias[:] = 0
        self.shape = len(self.bias), n_features
        self.dtype = np.dtype(dtype)
        self.kept: Any = None
        self.table: Any = None
        self.clear()

    # Weights.

    @property
    def counts(self) -> Array:
        """Counts of the labels (V,)."""
        return self.target_counts[: self.tree.n_labels]

    @property
    def weight(self) -> Any:
        """The weights (R, n_features), a view of `table` or a CSR array."""
        return self.dense_weight if self.kept is None else self.kept

    @property
    def dense_weight(self) -> Array:
        """The weights (R, n_features) of a dense model, a view of `table`."""
        weight: Array = self.table.T if self.sparse else self.table
        return weight

    def make_dense(self) -> None:
        """Move the weights from `kept` to `table`."""
        if self.kept is None:
            return
        kept = self.kept.tocoo()
        self.kept = None
        self.table = np.zeros(self.shape[::-1] if self.sparse else self.shape, self.dtype)
        self.dense_weight[kept.row, kept.col] = kept.data

    def make_sparse(self, weight: Any) -> None:
        """Take over weights, a CSR array (R, n_features), in place of the table."""
        self.kept = weight
        self.table = None

    def clear(self) -> None:
        """Make all weights zero."""
        self.make_sparse(scipy.sparse.csr_array(self.shape, dtype=self.dtype))

    def rows(self, node: int) -> slice:
        """Return the weight rows of a node."""
        return slice(*self.tree.row_start[node : node + 2].tolist())

    def initial_weight(self, rows: slice) -> Array | None:
        """Return weights (n_features, rows) to start from, None where they are zero."""
        if self.table is None:
            return None
        weight = self.dense_weight[rows].T
        return weight if weight.any() else None

    def widen(self, n_features: int) -> None:
        """Add features up to this number, with weights of zero; the model is for a sparse X."""
        self.shape = len(self.bias), n_features
        if self.table is not None:
            self.table = lengthened(self.table, n_features)
        if self.kept is not None:
            content = self.kept.data, self.kept.indices, self.kept.indptr
            self.kept = scipy.sparse.csr_array(content, shape=self.shape)

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

    # Prediction.

    def log_prob(self, X: Samples) -> Iterator[tuple[slice, Float64]]:
        """Yield slices of the samples, and the log-probabilities (samples, V) of all labels."""
        for samples, logits in self._all_logits(X):
            yield samples, self.layer.log_prob_of_logits(logits.T)

    def top_k(self, X: Samples, k: int) -> BatchTopK:
        """Search the k most probable labels of each sample; k is from 1 to V.

        Sparse samples are first searched with few logits each. Those that need more then get the
        logits of all nodes by one sparse product. Samples whose search is long or not certain have
        no answer, nor does any sample in small trees.
        """
        n = X.shape[0]
        n_edges = len(self.tree.child)
        result = BatchTopK.empty(n, k)
        if n_edges < LEAST_EDGES or self.tree.fan_out[0] > LEAST_PATIENCE + PATIENCE * n_edges:
            return result

        def search(samples: Int64, logits: PairLogits, patience: float) -> None:
            answers = top_k_of_batch(
                self.tree,
                children_of_rows(self.tree, logits),
                len(samples),
                k,
                # Far above the rounding of logits, in whatever order products are summed
                margin=float(np.sqrt(np.finfo(self.dtype).eps)),
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
            for part, table in self._all_logits(X[others]):
                search(others[part], lambda *pairs, table=table: table[pairs], PATIENCE)
        return result

    def _all_logits(self, X: Samples) -> Iterator[tuple[slice, Array]]:
        """Yield slices of the samples, and the logits of all weight rows (samples, R)."""
        step = max(1, TABLE_LIMIT // max(1, len(self.tree.child)))
        parts = (slice(a, a + step) for a in range(0, X.shape[0], step))
        if self.kept is not None:
            for part in parts:
                yield part, sparse_product(scipy.sparse.csr_array(X[part]), self.kept) + self.bias
            return
        weight = np.asarray(self.weight.T, order="C" if is_sparse(X) else None)
        for part in parts:
            yield part, X[part] @ weight + self.bias

    # Losses of targets.

    def converted(self, X: Samples) -> Samples:
        """Return X as it is trained on: CSR where `table` is made for it, else dense."""
        if self.sparse:
            return scipy.sparse.csr_array(X)
        return X.toarray() if is_sparse(X) else X

    def expand(self, targets: Integer) -> Expansion:
        """Return the paths to targets (B,): label ids, or ``V + n`` for node n."""
        return self._codes(targets).expand(targets)

    def _codes(self, targets: Integer) -> Codes:
        has_nodes = targets.max(initial=0) >= self.tree.n_labels
        return self._codes_with_nodes if has_nodes else self.layer.codes

    @cached_property
    def _codes_with_nodes(self) -> Codes:
        return Codes(self.tree, nodes=True)

    def loss(
        self, X: Samples, targets: Integer, sample_weight: Array
    ) -> tuple[Float64, list[Gradient]]:
        """Return the negative log-likelihoods (B,) and the gradients of their weighted sum.

        `X` is as `converted` returns it; `targets` (B,) are as for `expand`.
        """
        if self.tree.n_nodes == 0:
            return np.zeros(len(targets)), []
        decisions, _ = path_decisions(self._codes(targets), targets)
        is_binary = decisions.width == 2
        n_samples = np.bincount(decisions.row)[decisions.row]
        is_product = ~is_binary & ((decisions.width > NARROW) | (n_samples >= BLOCK))

        # log P(branch) of each decision (D,), by kind of node
        log_prob = np.empty(len(decisions.item))
        gradients: list[Gradient] = []
        for condition, decide in (
            (is_binary, self._decide_binary),
            (~is_binary & ~is_product, self._decide_narrow),
            (is_product, self._decide_product),
        ):
            position, chosen = decisions.where(condition)
            if len(position):
                # A label has one code, whose decisions have the weight of the sample
                weight = sample_weight[chosen.item]
                log_prob[position], node_gradients = decide(X, chosen, weight)
                gradients += node_gradients
        nll: Float64 = np.negative(np.bincount(decisions.item, log_prob, minlength=len(targets)))
        return nll, gradients

    def _decide_binary(
        self, X: Samples, decisions: Decisions, weight: Array
    ) -> tuple[Array, list[Gradient]]:
        """Return log-probabilities (D,) at nodes with two children, and gradients."""
        logits = self.pair_logits(X, decisions.item, decisions.row)
        log_prob, error = arithmetic.binary_decision(logits, decisions.branch == 0)
        error *= weight
        return log_prob, [self._pair_gradient(X, decisions.item, decisions.row, error)]

    def _decide_narrow(
        self, X: Samples, decisions: Decisions, weight: Array
    ) -> tuple[Array, list[Gradient]]:
        """Return log-probabilities (D,) at nodes with few children, and gradients."""
        # (P,) pairs of one decision after another
        start = offsets(decisions.width)
        item = np.repeat(decisions.item, decisions.width)
        row = ranges(decisions.row, start)
        log_prob = arithmetic.segment_log_softmax(self.pair_logits(X, item, row), start)
        chosen = start[:-1] + decisions.branch
        # d(-log P) / d logit = softmax - [child taken]
        error: Array = np.exp(log_prob)
        error[chosen] -= 1
        error *= np.repeat(weight, decisions.width)
        return log_prob[chosen], [self._pair_gradient(X, item, row, error)]

    def _decide_product(
        self, X: Samples, decisions: Decisions, weight: Array
    ) -> tuple[Array, list[Gradient]]:
        """Return log-probabilities (D,), and gradients, by one matrix product for each node."""
        gradients = []
        log_prob = np.empty(len(decisions.item))
        order = np.argsort(decisions.row, kind="stable")
        for here in np.split(order, np.flatnonzero(np.diff(decisions.row[order])) + 1):
            first = int(decisions.row[here[0]])
            rows = slice(first, first + int(decisions.width[here[0]]))
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

    def pair_logits(self, X: Samples, item: Int64, row: Int64) -> Array:
        """Return the logits (P,) of pairs of a sample and a weight row."""
        if self.kept is not None:
            X = scipy.sparse.csr_array(X)
            products = kept_pair_products(X, self.kept, self.tree.row_start, item, row)
            return self.bias[row] + products
        if not self.sparse:
            return arithmetic.gather_dot(self.table, self.bias, X, item, row)
        logits: Array = self.bias[row]
        logits += pair_products(X, self.table, item, row)
        return logits

    def _pair_gradient(self, X: Samples, item: Int64, row: Int64, error: Array) -> Gradient:
        """Return the gradient from the errors (P,) of pairs, whose items ascend."""
        rows, slot = arithmetic.touched_rows(row, len(self.bias))
        start = offsets(np.bincount(item, minlength=X.shape[0])).astype(np.int32)
        error = error.astype(self.table.dtype, copy=False)
        # (B, r) errors of each sample at the touched rows
        errors = scipy.sparse.csr_array((error, slot, start), shape=(X.shape[0], len(rows)))
        grad_bias = np.bincount(slot, error, minlength=len(rows))
        if not self.sparse:
            return Gradient(rows, errors.T @ X, rows, grad_bias)
        # (f, r) feature by feature, in the order of the table
        X, features = without_empty_columns(X)
        grad = X.T.tocsr() @ errors
        feature = features.astype(np.int64)[segment_ids(grad.indptr)]
        return Gradient((feature, rows[grad.indices]), grad.data, rows, grad_bias)


def kept_pair_products(X: Any, weight: Any, row_start: Int64, item: Int64, row: Int64) -> Float64:
    """Return the products (P,) of pairs of a sparse sample and a sparse weight row.

    A sample has pairs with all rows of a node, whose first is in `row_start` (N + 1,). Nodes with
    many pairs are one product each.
    """
    result = np.empty(len(item))
    node = np.searchsorted(row_start, row, side="right")
    order = np.argsort(node, kind="stable")
    head = np.flatnonzero(np.diff(node[order], prepend=-1))
    size = np.diff(head, append=len(order))
    is_block = size >= BLOCK
    for a, n in zip(head[is_block], size[is_block], strict=True):
        here = order[a : a + n]
        first = row[here].min()
        last = row[here].max()
        samples, slot = np.unique(item[here], return_inverse=True)
        products = sparse_product(X[samples], weight[first : last + 1])
        result[here] = products[slot, row[here] - first]

    # The other pairs one by one, as many at a time as have about `PRODUCTS` stored numbers
    others = order[np.repeat(~is_block, size)]
    stored = offsets(np.diff(X.indptr)[item[others]] + np.diff(weight.indptr)[row[others]])
    for part in np.split(others, np.flatnonzero(np.diff(stored[1:] // PRODUCTS)) + 1):
        result[part] = X[item[part]].multiply(weight[row[part]]).sum(axis=1)
    return result


def pair_products(X: Any, table: Array, item: Int64, row: Int64) -> Float64:
    """Return the products (P,) of pairs of a sparse sample and a column of `table`."""
    result = np.empty(len(item))
    stored = np.diff(X.indptr)[item]
    step = max(1, PRODUCTS // max(1, int(stored.max(initial=1))))
    for a in range(0, len(item), step):
        part = slice(a, a + step)
        # (products,) stored number of X, its pair, and its weight in the flat table
        start = offsets(stored[part])
        number = ranges(X.indptr[item[part]].astype(np.int64), start)
        pair = segment_ids(start)
        weight = X.indices[number] * np.int64(table.shape[1]) + row[part][pair]
        products = X.data[number] * table.ravel().take(weight)
        result[part] = np.bincount(pair, products, minlength=len(start) - 1)
    return result

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
    node_logits,
    sparse_product,
    without_empty_columns,
)
from hstree.kernels import NARROW
from hstree.layers import arithmetic
from hstree.layers.base import first_columns
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.layers.top_k import BatchTopK, children_of_rows, top_k_of_batch
from hstree.tree import Codes, Tree
from hstree.tree.paths import Decisions, path_decisions
from hstree.tree.weight_rows import edge_mass

#: Maximum number of products of a sparse X with weights in memory at a time.
PRODUCTS = 1 << 20
#: Minimum number of samples of a node whose decisions are one matrix product.
BLOCK = 64
#: Samples of a prediction that are searched together.
SEARCHED_TOGETHER = 2048
#: A search stops without a result after scoring this fraction of the edges plus `LEAST_PATIENCE`.
PATIENCE = 1 / 8
#: Number of edges that every search may score.
LEAST_PATIENCE = 64
#: Minimum number of edges of a tree that is searched; for fewer, scoring all labels is faster.
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
    target_counts : int array (V + N,)
        Counts of the labels, and of the samples that stop at the nodes. The untrained model is the
        distribution of the labels' counts.
    sparse : bool
        Whether X is sparse.
    dtype : dtype
    fit_intercept : bool
        If False, biases stay zero.

    Attributes
    ----------
    bias : float array (R,)
    weight : CSR array or float array (R, n_features)
        CSR if most weights are zero, as initially; `make_dense` converts it to an array. In this
        array, the weights of a feature are adjacent in memory for a sparse X.
    """

    def __init__(
        self,
        tree: Tree,
        n_features: int,
        target_counts: Integer,
        *,
        sparse: bool,
        dtype: Any,
        fit_intercept: bool = True,
    ) -> None:
        self.tree = tree
        self.target_counts = target_counts
        self.sparse = sparse
        self.fit_intercept = fit_intercept
        self.layer = HierarchicalSoftmax(tree, 0, counts=self.counts, dtype=dtype)
        self.bias = self.layer.bias
        if not fit_intercept:
            self.bias[:] = 0
        shape = len(self.bias), n_features
        self.weight: Any = scipy.sparse.csr_array(shape, dtype=dtype)

    # Weights.

    @property
    def counts(self) -> Array:
        """Counts of the labels (V,)."""
        return self.target_counts[: self.tree.n_labels]

    @property
    def table(self) -> Array:
        """The weights of a dense model, C-contiguous; (n_features, R) for a sparse X."""
        table: Array = self.weight.T if self.sparse else self.weight
        return table

    def make_dense(self) -> None:
        """Convert sparse weights to a dense array."""
        if is_sparse(self.weight):
            self.weight = self.weight.toarray(order="F" if self.sparse else "C")

    def rows(self, node: int) -> slice:
        """Return the weight rows of a node."""
        return slice(*self.tree.row_start[node : node + 2].tolist())

    def widen(self, n_features: int) -> None:
        """Add features up to this number, with zero weights, to a model for a sparse X."""
        if is_sparse(self.weight):
            self.weight.resize((len(self.bias), n_features))
        else:
            self.weight = lengthened(self.table, n_features).T

    def node_penalty(self) -> Float64:
        """Return the strength of the penalty of each node (N,), 1 at the root.

        It is the square root of the fraction of the samples that reach the node. Samples that stop
        at a node reach it; those that stop at the root train nothing and are not counted.
        """
        tree = self.tree
        mass = edge_mass(tree, self.counts)
        # Add the samples that stop at a node to the edges of the path to it
        stopping = self.target_counts[tree.n_labels :]
        nodes = np.flatnonzero(stopping)
        paths = self.codes.expand(tree.n_labels + nodes)
        node = nodes[segment_ids(paths.decision_start)]  # a target has one code
        mass += np.bincount(paths.edge, stopping[node], len(mass))
        # (N,) samples that reach each node
        node_mass = mass[tree.node_edge]
        node_mass[0] = mass[: tree.child_start[1]].sum()
        return np.asarray(np.sqrt(node_mass / node_mass[0]))

    def row_penalty(self) -> Float64:
        """Return the strength of the penalty of each weight row (R,), the same as for its node."""
        if self.tree.n_nodes == 0:
            return np.empty(0)
        return self.node_penalty()[segment_ids(self.tree.row_start)]

    # Prediction.

    def log_prob(self, X: Samples) -> Iterator[tuple[slice, Float64]]:
        """Yield slices of the samples, and the log-probabilities (samples, V) of all labels."""
        step = max(1, TABLE_LIMIT // max(1, len(self.tree.child)))
        is_kept = is_sparse(self.weight)
        if not is_kept:
            weight = np.asarray(self.weight.T, order="C" if is_sparse(X) else None)
        for a in range(0, X.shape[0], step):
            part = slice(a, a + step)
            if is_kept:
                logits = sparse_product(scipy.sparse.csr_array(X[part]), self.weight)
            else:
                logits = X[part] @ weight
            yield part, self.layer.log_prob_of_logits((logits + self.bias).T)

    def top_k(self, X: Samples, k: int) -> BatchTopK:
        """Return the k most probable labels of each sample; k is from 1 to V.

        Large trees are searched. If a search is long or not certain, and in small trees, all labels
        are sorted. Ties are in label order.
        """
        n = X.shape[0]
        n_edges = len(self.tree.child)
        result = BatchTopK.empty(n, k)
        starts = range(0, n, SEARCHED_TOGETHER) if n_edges >= LEAST_EDGES else ()
        for a in starts:
            samples = slice(a, a + SEARCHED_TOGETHER)
            answers = top_k_of_batch(
                self.tree,
                partial(self._child_log_prob, self.converted(X[samples])),
                len(result.certain[samples]),
                k,
                # Far above the rounding of logits in any order of summation
                margin=float(np.sqrt(np.finfo(self.bias.dtype).eps)),
                patience=LEAST_PATIENCE + PATIENCE * n_edges,
            )
            for array, values in zip(result, answers, strict=True):
                array[samples] = values

        others = np.flatnonzero(~result.certain)
        for part, log_prob in self.log_prob(X[others]) if others.size else ():
            best = log_prob.argmax(axis=1)[:, None] if k == 1 else first_columns(log_prob, k)[0]
            result.labels[others[part]] = best
            result.log_prob[others[part]] = np.take_along_axis(log_prob, best, axis=1)
        return result

    def _child_log_prob(self, X: Samples, item: Int64, node: Int64) -> Float64:
        """Return log P(child | node) of all children, for pairs (n,) of a sample and a node."""
        if not is_sparse(self.weight):
            return children_of_rows(self.tree, partial(self.pair_logits, X))(item, node)
        tree = self.tree
        X = scipy.sparse.csr_array(X)
        logits = node_logits(X, self.weight, self.bias, tree.row_start, item, node)
        row_start = offsets(np.diff(tree.row_start)[node])
        return arithmetic.branch_log_prob(logits, row_start, offsets(tree.fan_out[node]))

    # Losses of targets.

    def converted(self, X: Samples) -> Samples:
        """Return X as training needs it: CSR if the model is for a sparse X, otherwise dense."""
        if self.sparse:
            return scipy.sparse.csr_array(X)
        return X.toarray() if is_sparse(X) else X

    @cached_property
    def codes(self) -> Codes:
        """Paths to targets: label ids, or ``V + n`` for node n."""
        return Codes(self.tree, nodes=True)

    def loss(
        self, X: Samples, targets: Integer, sample_weight: Array
    ) -> tuple[Float64, list[Gradient]]:
        """Return the negative log-likelihoods (B,) and the gradients of their weighted sum.

        `X` is as `converted` returns it; `targets` (B,) are as for `codes`.
        """
        if self.tree.n_nodes == 0:
            return np.zeros(len(targets)), []
        decisions, _ = path_decisions(self.codes, targets)
        n_samples = np.bincount(decisions.row)[decisions.row]
        is_product = (decisions.width > NARROW) | ((decisions.width > 2) & (n_samples >= BLOCK))

        # log P(branch) of each decision (D,)
        log_prob = np.empty(len(decisions.item))
        gradients: list[Gradient] = []
        for condition, decide in (
            (~is_product, self._decide_pairs),
            (is_product, self._decide_products),
        ):
            position, chosen = decisions.where(condition)
            if len(position):
                # A label has one code, whose decisions have the weight of the sample
                weight = sample_weight[chosen.item]
                log_prob[position], node_gradients = decide(X, chosen, weight)
                gradients += node_gradients
        nll: Float64 = np.negative(np.bincount(decisions.item, log_prob, minlength=len(targets)))
        return nll, gradients

    def _decide_pairs(
        self, X: Samples, decisions: Decisions, weight: Array
    ) -> tuple[Array, list[Gradient]]:
        """Return log-probabilities (D,), and gradients, by pairs of a sample and a weight row."""
        # (P,) pairs of one decision after another; a node with two children has one row
        n_rows = np.where(decisions.width == 2, 1, decisions.width)
        row_start = offsets(n_rows)
        item = np.repeat(decisions.item, n_rows)
        row = ranges(decisions.row, row_start)
        branch_start = offsets(decisions.width)
        logits = self.pair_logits(X, item, row)
        log_prob = arithmetic.branch_log_prob(logits, row_start, branch_start)

        # d(-log P) / d logit = P(branch of the row) - [taken]
        chosen = branch_start[:-1] + decisions.branch
        error: Array = np.exp(log_prob)
        error[chosen] -= 1
        error = error[ranges(branch_start[:-1], row_start)]
        error *= np.repeat(weight, n_rows)
        return log_prob[chosen], [self._pair_gradient(X, item, row, error)]

    def _decide_products(
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

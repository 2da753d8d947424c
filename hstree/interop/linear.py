"""A linear model over a tree: node scores are ``W x + b`` of a row of X, dense or sparse.

This is the output layer seen from its weights: samples carry weights of their own, a sparse X
stays sparse in scores and gradients, and nothing flows back to X. Up to `NARROW` children a
node's scores are computed for the samples that meet it, pair by pair; a wider node is one matrix
product over those samples. How the weights are found is in `lbfgs` and `adagrad`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from hstree._ragged import offsets, ranges, segment_ids
from hstree._typing import Array, Float64, Int64, Integer
from hstree.layers import kernels
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.layers.node_groups import NARROW
from hstree.layers.top_k import BatchTopK, PairLogits, top_k_of_batch
from hstree.tree import Tree

#: A dense array, or a CSR array: (samples, features).
Rows = Any

#: Products of a sparse X with weights that are laid out at a time.
PRODUCTS = 1 << 20
#: Elements of the tables of scores and edges that a prediction holds at a time.
TABLE_LIMIT = 1 << 22
#: Samples of a prediction that are searched together.
SEARCHED_TOGETHER = 2048
#: A search ends without an answer when it has scored this share of the edges ...
PATIENCE = 1 / 8
#: ... or this one, where each score is a sparse product of its own, ...
SPARSE_PATIENCE = 1 / 256
#: ... and this many more.
LEAST_PATIENCE = 64
#: Edges of the smallest tree that is searched; on smaller ones all log-probabilities are cheaper.
LEAST_EDGES = 1024


@dataclass(frozen=True)
class Gradient:
    """The gradient of a loss by some of the weights.

    Attributes
    ----------
    index : index of `LinearTree.table`
        The elements that `weight` belongs to, none of them twice.
    weight : float array
    rows : int64 array (r,) or slice
        The biases that `bias` belongs to, none of them twice.
    bias : float array (r,)
    """

    index: Any
    weight: Array
    rows: Int64 | slice
    bias: Array


class LinearTree:
    """The weights of a linear model over a tree.

    Parameters
    ----------
    tree : Tree
    n_features : int
    counts : int array (V,), optional
        Frequencies of the labels for the starting biases; `tree.counts` by default.
    sparse : bool
        Whether it is trained on a sparse X. Then `table` is (n_features, R), so that the weights
        of a feature stand together; for a dense X it is (R, n_features).
    dtype : float dtype

    Attributes
    ----------
    table : float array, zero at the start
    bias : float array (R,)
        At the start such that the model is the distribution of `counts`.
    """

    def __init__(
        self,
        tree: Tree,
        n_features: int,
        *,
        counts: Integer | None = None,
        sparse: bool,
        dtype: Any,
    ) -> None:
        self.tree, self.sparse = tree, sparse
        self.layer = HierarchicalSoftmax(tree, 0, counts=counts, dtype=dtype)
        self.bias = self.layer.bias
        shape = (len(self.bias), n_features)
        self.table: Array = np.zeros(shape[::-1] if sparse else shape, dtype)

    @property
    def weight(self) -> Array:
        """The weights as (R, n_features), a view of `table`."""
        return self.table.T if self.sparse else self.table

    def suited(self, X: Rows) -> Rows:
        """Return X as it is trained on: CSR where `table` is made for it, else dense."""
        if self.sparse:
            return scipy.sparse.csr_array(X)
        return X.toarray() if is_sparse(X) else X

    def log_prob(self, X: Rows) -> Iterator[tuple[slice, Float64]]:
        """Yield slices of the samples, and all labels' log-probabilities (samples, V)."""
        for rows, score in self._all_scores(X):
            yield rows, self.layer.log_prob_of_scores(score.T)

    def top_k(self, X: Rows, k: int) -> BatchTopK:
        """Return the k most probable labels of each sample where a search finds them for certain.

        Sparse samples are first searched with few scores each; those that need more then get the
        scores of all nodes by one sparse product. Small trees, and those with several codes per
        label, are not searched.

        Parameters
        ----------
        X : float array or CSR array (n, n_features)
        k : int
            From 1 to V.
        """
        n, n_edges = X.shape[0], len(self.tree.child)
        found = BatchTopK.empty(n, k)
        most_patience = LEAST_PATIENCE + PATIENCE * n_edges
        if (
            not self.tree.has_single_codes
            or n_edges < LEAST_EDGES
            or self.tree.fan_out[0] > most_patience
        ):
            return found

        def search(samples: Int64, logits: PairLogits, patience: float) -> None:
            answer = top_k_of_batch(
                self.tree,
                logits,
                len(samples),
                k,
                # Beyond the rounding of scores by far, in whatever order products are summed.
                margin=float(np.sqrt(np.finfo(self.table.dtype).eps)),
                patience=LEAST_PATIENCE + patience * n_edges,
            )
            for whole, part in zip(found, answer, strict=True):
                whole[samples] = part

        for a in range(0, n, SEARCHED_TOGETHER):
            samples = np.arange(a, min(a + SEARCHED_TOGETHER, n))
            score = partial(self.pair_scores, self.suited(X[samples]))
            search(samples, score, SPARSE_PATIENCE if self.sparse else PATIENCE)
        others = np.flatnonzero(~found.certain)
        if self.sparse and others.size:
            for rows, all_scores in self._all_scores(X[others]):
                search(others[rows], partial(_looked_up, all_scores), PATIENCE)
        return found

    def _all_scores(self, X: Rows) -> Iterator[tuple[slice, Array]]:
        """Yield slices of the samples, and the scores of all weight rows (samples, R)."""
        step = max(1, TABLE_LIMIT // max(1, len(self.tree.child)))
        weight = np.asarray(self.weight.T, order="C" if is_sparse(X) else None)
        for a in range(0, X.shape[0], step):
            yield slice(a, a + step), X[a : a + step] @ weight + self.bias

    def loss(
        self, X: Rows, labels: Integer, sample_weight: Array
    ) -> tuple[Float64, list[Gradient]]:
        """Return the negative log-likelihoods (B,) and the gradients of their weighted sum.

        Parameters
        ----------
        X : float array or CSR array (B, n_features)
            As `suited` returns it.
        labels : int array (B,)
            Label ids.
        sample_weight : float array (B,)
        """
        if self.tree.n_nodes == 0:
            return np.zeros(len(labels)), []
        expansion = self.layer.codes.expand(labels)
        code, item_of_code = expansion.decision_code, expansion.code_item
        tree, edge, width = self.tree, expansion.edge, self.tree.edge_width[expansion.edge]
        log_prob = np.empty(len(edge))
        parts: list[tuple[Int64, _Part]] = []
        for kind, own in (
            (_Binary, width == 2),
            (_Narrow, (width > 2) & (width <= NARROW)),
            (_Wide, width > NARROW),
        ):
            mine = np.flatnonzero(own)
            if mine.size:
                of_edge = edge[mine]
                met = (item_of_code[code[mine]], tree.edge_row[of_edge], tree.edge_branch[of_edge])
                part = kind(self, X, *met, width[mine])
                log_prob[mine] = part.log_prob
                parts.append((mine, part))
        of_code = np.bincount(code, weights=log_prob, minlength=len(item_of_code))
        nll = -np.logaddexp.reduceat(of_code, expansion.code_start[:-1])
        # A decision counts by its code's share of the label's probability.
        share = sample_weight[item_of_code] * np.exp(of_code + nll[item_of_code])
        return nll, [g for mine, part in parts for g in part.gradients(share[code[mine]])]

    def pair_scores(self, X: Rows, item: Int64, row: Int64) -> Array:
        """Return the scores (P,) of pairs of a sample and a weight row."""
        if not self.sparse:
            return kernels.gather_dot(self.table, self.bias, X, item, row)
        result = self.bias[row]
        stored = np.diff(X.indptr)[item]
        per_chunk = max(1, PRODUCTS // max(1, int(stored.max(initial=1))))
        for a in range(0, len(item), per_chunk):
            few = stored[a : a + per_chunk]
            at = ranges(X.indptr[item[a : a + per_chunk]].astype(np.int64), offsets(few))
            pair = np.repeat(np.arange(len(few)), few)
            where = X.indices[at] * np.int64(self.table.shape[1]) + row[a : a + per_chunk][pair]
            products = X.data[at] * self.table.ravel().take(where)
            result[a : a + per_chunk] += np.bincount(pair, products, minlength=len(few))
        return result

    def pair_gradient(self, X: Rows, item: Int64, row: Int64, error: Array) -> Gradient:
        """Return the gradient from the errors (P,) of pairs, whose items ascend."""
        start = offsets(np.bincount(item, minlength=X.shape[0])).astype(np.int32)
        error = error.astype(self.table.dtype, copy=False)
        rows, slot = kernels.touched_rows(row, len(self.bias))
        G = scipy.sparse.csr_array((error, slot, start), shape=(X.shape[0], len(rows)))
        grad_bias = np.bincount(slot, error, minlength=len(rows))
        by_row = G.T.tocsr() @ X
        if not self.sparse:
            return Gradient(rows, by_row, rows, grad_bias)
        row_of = rows[segment_ids(by_row.indptr)]
        return Gradient((by_row.indices, row_of), by_row.data, rows, grad_bias)


class _Binary:
    """Decisions with two branches: one pair each."""

    def __init__(
        self, model: LinearTree, X: Rows, item: Int64, row: Int64, branch: Int64, width: Int64
    ) -> None:
        self._met = (X, item, row)
        self._model = model
        self.log_prob, self._error = kernels.binary_decision(
            model.pair_scores(X, item, row), branch == 0
        )

    def gradients(self, share: Array) -> Iterator[Gradient]:
        yield self._model.pair_gradient(*self._met, self._error * share)


class _Narrow:
    """Decisions with a few branches: a pair for each, a softmax over each run of pairs."""

    def __init__(
        self, model: LinearTree, X: Rows, item: Int64, row: Int64, branch: Int64, width: Int64
    ) -> None:
        start = offsets(width)
        self._met = (X, np.repeat(item, width), ranges(row, start))
        self._model, self._width = model, width
        log_softmax = kernels.segment_log_softmax(model.pair_scores(*self._met), start)
        chosen = start[:-1] + branch
        self.log_prob: Array = log_softmax[chosen]
        self._error = kernels.segment_softmax_error(log_softmax, chosen)

    def gradients(self, share: Array) -> Iterator[Gradient]:
        error = self._error * np.repeat(share, self._width)
        yield self._model.pair_gradient(*self._met, error)


class _Wide:
    """Decisions with many branches: one dense softmax a node over the samples that meet it."""

    def __init__(
        self, model: LinearTree, X: Rows, item: Int64, row: Int64, branch: Int64, width: Int64
    ) -> None:
        self._model = model
        self._blocks: list[tuple[Int64, slice, Rows, Any, Array]] = []
        self.log_prob = np.empty(len(item))
        order = np.argsort(row, kind="stable")
        for mine in np.split(order, np.flatnonzero(np.diff(row[order])) + 1):
            rows = slice(int(row[mine[0]]), int(row[mine[0]] + width[mine[0]]))
            few, index = _met_features(X[item[mine]], rows, model.sparse)
            block = model.table[index]
            error = few @ (block if model.sparse else block.T) + model.bias[rows]
            chosen = np.arange(len(mine)) * error.shape[1] + branch[mine]
            self.log_prob[mine] = kernels.block_softmax_error(error, chosen)
            self._blocks.append((mine, rows, few, index, error))

    def gradients(self, share: Array) -> Iterator[Gradient]:
        for mine, rows, few, index, error in self._blocks:
            error *= share[mine, None]
            by_weight = few.T @ error if self._model.sparse else error.T @ few
            yield Gradient(index, by_weight, rows, error.sum(axis=0))


_Part = _Binary | _Narrow | _Wide


def _looked_up(all_scores: Array, item: Int64, row: Int64) -> Array:
    scores: Array = all_scores[item, row]
    return scores


def _met_features(X: Rows, rows: slice, sparse: bool) -> tuple[Rows, Any]:
    """Leave out the features that no sample has; return X and the index of the weights."""
    if not sparse:
        return X, rows
    few, features = met_features(X)
    return few, (features, rows)


def is_sparse(X: Any) -> bool:
    """Tell whether X is one of scipy's sparse arrays or matrices."""
    return bool(scipy.sparse.issparse(X))


def met_features(X: Any) -> tuple[Any, Int64]:
    """Return a CSR array without its empty columns, and which columns the others were."""
    features, place = np.unique(X.indices, return_inverse=True)
    few = scipy.sparse.csr_array((X.data, place, X.indptr), shape=(X.shape[0], len(features)))
    return few, features.astype(np.int64)

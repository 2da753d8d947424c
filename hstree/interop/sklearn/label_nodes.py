"""Nodes of a probabilistic label tree: their training, their sparse weights, and the search.

Each edge of the tree has a logistic model of whether a sample has a label below the edge, given
that it has one below the node. The root has a model of whether a sample has any label. The
probability of a label is the product of the probabilities on its path. If it has more than one
path, the highest counts.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.svm import _liblinear as liblinear

from hstree import progress
from hstree._arrays import Array, Float64, Int32, Int64, Integer, offsets, segment_ids
from hstree._parallel import n_parallel, parallel
from hstree.interop.sklearn.features import (
    TABLE_LIMIT,
    Samples,
    node_logits,
    products,
    sparse_product,
    without_empty_columns,
)
from hstree.layers.arithmetic import log_sigmoid
from hstree.layers.top_k import BeamEntries, best_first_search, most_probable
from hstree.tree import Tree
from hstree.tree.codes import Codes

#: Solver number in liblinear: dual coordinate descent for logistic regression.
DUAL_LOGISTIC = 7
#: Maximum number of rounds of liblinear.
MAX_ROUNDS = 100
#: Value of the feature whose weight is the bias; with a value below 1, fewer rounds are needed.
BIAS_FEATURE = 0.3
#: Groups of nodes per job, so that all jobs end at about the same time.
GROUPS_PER_JOB = 8
#: Maximum number of edges of a tree whose nodes are all scored, instead of searched.
MAX_SCORED_EDGES = 1 << 15
#: With a threshold, which ends a search early, trees above this fraction of it are searched.
EARLIER_WITH_THRESHOLD = 1 / 32
#: Maximum number of labels per sample that are found one by one, each in a pass over all labels.
MAX_PASSES = 10
#: Samples of a prediction that are scored or searched together.
BATCH = 1024
#: Maximum number of scores computed together, so that their arrays stay in the cache.
SCORES = 1 << 18


class Objective(NamedTuple):
    """Options of the training of all nodes."""

    C: float
    tol: float
    threshold: float
    random_state: int


class LabelProblem(NamedTuple):
    """Samples of a node, and which of them have a label below each child."""

    samples: Int32  # (n,) ascending
    positives: list[Int32]  # samples of each child, ascending


# Training.


def fit_nodes(
    tree: Tree, X: Samples, Y: Any, objective: Objective, n_jobs: int | None
) -> "LabelNodes":
    """Train the models of all edges, in `n_jobs` processes.

    X is a CSR array (n, n_features), Y a CSR array (n, V) of the labels in the tree's order.
    """
    largest = abs(X).max(axis=0).toarray().ravel()
    n_groups = GROUPS_PER_JOB * n_parallel(n_jobs)
    group_size = 1 if n_parallel(n_jobs) == 1 else -(-(tree.n_nodes + 1) // n_groups)
    problems = node_problems(tree, Y)
    groups = iter(lambda: list(islice(problems, group_size)), [])
    solve_group = partial(_solve, X, largest, objective)
    solved: dict[int, list[tuple[Any, Float64]]] = {}
    with progress.task("fitting nodes", tree.n_nodes + 1, "nodes") as task:
        for number, group in parallel(solve_group, groups, n_jobs):
            solved[number] = group
            task.advance(len(group))

    # Sort by node, since jobs end in any order
    weights, biases = zip(
        *(node for number in sorted(solved) for node in solved[number]), strict=True
    )
    return LabelNodes(tree, scipy.sparse.vstack(weights, format="csr"), np.concatenate(biases))


def node_problems(tree: Tree, Y: Any) -> Iterator[LabelProblem]:
    """Yield the problem of each node, in order, then the problem of the root's own model."""
    # (V, E) the edges on the paths to each label
    codes = Codes(tree, cache_limit=0).expand(np.arange(tree.n_labels))
    label = codes.code_item[segment_ids(codes.decision_start)]
    content = np.ones(len(label), bool), (label, codes.edge)
    path = scipy.sparse.csr_array(content, shape=(tree.n_labels, len(tree.child)))

    # (n, E) whether a sample has a label below an edge, by edge; samples ascend
    is_below = (Y.astype(bool) @ path).tocsc()
    samples_below = np.split(is_below.indices, is_below.indptr[1:-1])

    with_label = np.flatnonzero(np.diff(Y.indptr)).astype(np.int32)
    for node in range(tree.n_nodes):
        samples = with_label if node == 0 else samples_below[tree.node_edge[node]]
        yield LabelProblem(samples, samples_below[slice(*tree.child_start[node : node + 2])])
    yield LabelProblem(np.arange(Y.shape[0], dtype=np.int32), [with_label])


def _solve(
    X: Samples, largest: Array, objective: Objective, group: list[LabelProblem]
) -> list[tuple[Any, Float64]]:
    """Train the children of some nodes: return weights (k, n_features), CSR, and biases (k,).

    Weights that change no logit by more than the threshold are dropped.
    """
    solved = []
    for samples, positives in group:
        # (n, features) samples of the node, without the features that none of them has
        node_X, features = without_empty_columns(X if len(samples) == X.shape[0] else X[samples])
        C = objective.C * np.sqrt(X.shape[0] / max(len(samples), 1))
        bias = np.empty(len(positives))
        kept_features = []
        kept_weights = []
        for i, positive in enumerate(positives):
            rows = np.searchsorted(samples, positive)
            weight, bias[i] = _logistic(node_X, rows, C, objective)
            is_kept = np.abs(weight) * largest[features] > objective.threshold
            kept_features.append(features[is_kept])
            kept_weights.append(weight[is_kept].astype(np.float32))
        start = offsets(np.array([len(weights) for weights in kept_weights]))
        content = np.concatenate(kept_weights), np.concatenate(kept_features), start
        solved.append((scipy.sparse.csr_array(content, shape=(len(bias), X.shape[1])), bias))
    return solved


def _logistic(X: Any, positive: Integer, C: float, objective: Objective) -> tuple[Float64, float]:
    """Return the weights and the bias of a logistic regression; `positive` are rows of X."""
    n = X.shape[0]
    if len(positive) in (0, n):
        return np.zeros(X.shape[1]), float(np.inf if n and len(positive) else -np.inf)
    y = np.zeros(n)
    y[positive] = 1
    weight, bias = dual_logistic(X, y, np.ones(n), C, objective.tol, objective.random_state)
    return weight[0], float(bias[0])


def dual_logistic(
    X: Any, y: Float64, weight: Float64, C: float, tol: float, seed: int, has_bias: bool = True
) -> tuple[Float64, Float64]:
    """Solve logistic regressions of each class against the others by dual coordinate descent.

    Parameters
    ----------
    X : CSR array (n, n_features)
        As `without_empty_columns` returns it.
    y : float64 array (n,)
        Classes, two or more.
    weight : float64 array (n,)
        Weights of the samples.

    Returns
    -------
    weights : float64 array (k, n_features)
        Weights of the classes, ascending; of two classes, only those of the second.
    biases : float64 array (k,)

    Notes
    -----
    `LogisticRegression(solver="liblinear")` calls the same function, with checks that take as long
    as training a small node: with it, fitting a label tree takes 1.8 times as long on Bibtex and
    3.2 times as long with 1,000 classes.
    """
    liblinear.set_verbosity_wrap(0)
    table, _ = liblinear.train_wrap(
        X,
        y,
        True,  # X is sparse
        DUAL_LOGISTIC,
        tol,
        BIAS_FEATURE if has_bias else -1.0,
        C,
        np.ones(len(np.unique(y))),  # weights of the classes
        MAX_ROUNDS,
        seed,
        0.1,  # epsilon of a support vector regression, unused
        weight,
    )
    if not has_bias:
        return table, np.zeros(len(table))
    return table[:, :-1], BIAS_FEATURE * table[:, -1]


# Prediction.


class LabelNodes(NamedTuple):
    """Tree with a sparse logistic model per edge; the last model is that of the root."""

    tree: Tree
    weight: Any  #: CSR array (E + 1, n_features)
    bias: Float64  #: (E + 1,)

    def log_prob(self, X: Samples) -> Iterator[tuple[slice, Array]]:
        """Yield slices of the samples, and the log-probabilities (samples, V) of all labels."""
        tree = self.tree
        codes = Codes(tree, cache_limit=0)
        # Rows of the models on the path to each node, from the root on, and to each code's leaf
        node_row = np.append(len(tree.child), tree.node_edge[1:])
        leaf_node = tree.edge_node[codes.leaf_edge]
        bias = self.bias.astype(self.weight.dtype)
        step = max(1, min(BATCH, SCORES // len(bias)))
        for samples, logits in products(X, self.weight, step):
            logits += bias
            log_prob = log_sigmoid(logits)
            # (samples, N) of the path to each node
            path = log_prob.take(node_row, axis=1)
            if tree.n_nodes == 0:
                yield samples, path
                continue
            for level in tree.levels[1:]:
                path[:, level.nodes] += path[:, tree.parent[level.nodes]]
            # (samples, codes), then (samples, V) of the most probable code of each label
            label_log_prob = log_prob.take(codes.leaf_edge, axis=1)
            label_log_prob += path.take(leaf_node, axis=1)
            if not tree.has_single_codes:
                start = codes.label_start[:-1]
                label_log_prob = np.maximum.reduceat(label_log_prob, start, axis=1)
            yield samples, label_log_prob

    def search(self, X: Samples, k: int, threshold: float = 0.0) -> Any:
        """Return the probabilities of the k most probable labels, if at least `threshold`.

        The result is exact, a CSR array (n, V) with the labels of each sample by descending
        probability. The first of equally probable labels are returned.
        """
        k = min(k, self.tree.n_labels)
        with np.errstate(divide="ignore"):
            least = float(np.log(threshold))
        limit = MAX_SCORED_EDGES * (EARLIER_WITH_THRESHOLD if threshold > 0 else 1)
        best = self._best_of_all if len(self.bias) <= limit else self._best_first
        sample, child, log_prob = map(np.concatenate, zip(*best(X, k, least), strict=True))
        start = offsets(np.bincount(sample, minlength=X.shape[0]))
        content = np.exp(log_prob, dtype=np.float64), ~child, start
        return scipy.sparse.csr_array(content, shape=(X.shape[0], self.tree.n_labels))

    def _best_of_all(self, X: Samples, k: int, least: float) -> Iterator[BeamEntries]:
        """Yield the labels of some samples at a time, after scoring all labels."""
        for samples, log_prob in self.log_prob(X):
            if k <= MAX_PASSES:
                labels, values = _largest_one_by_one(log_prob, k)
                item, rank = np.nonzero(values >= least)
                entries = BeamEntries(item, ~labels[item, rank], values[item, rank])
            else:
                kth = np.partition(log_prob, -k, axis=1)[:, -k]
                item, label = np.nonzero(log_prob >= np.maximum(kth, least)[:, None])
                entries = BeamEntries(item, ~label, log_prob[item, label])
                entries, _ = most_probable(entries, len(log_prob), k, 0.0, has_single_codes=True)
            yield entries._replace(item=entries.item + samples.start)

    def _best_first(self, X: Samples, k: int, least: float) -> Iterator[BeamEntries]:
        """Yield the labels of some samples at a time, by best-first search."""
        step = max(1, min(BATCH, TABLE_LIMIT // int(self.tree.fan_out.max())))
        for a in range(0, X.shape[0], step):
            batch = X[a : a + step]
            root_logits = sparse_product(batch, self.weight[-1:])[:, 0] + self.bias[-1]
            labels, _ = best_first_search(
                self.tree,
                partial(self._child_log_prob, batch),
                batch.shape[0],
                k,
                root_log_prob=log_sigmoid(root_logits),
                least=least,
            )
            yield labels._replace(item=labels.item + a)

    def _child_log_prob(self, X: Samples, item: Int64, node: Int64) -> Float64:
        """Return log P(child | node) of all children, for pairs (n,) of a sample and a node."""
        logits = node_logits(X, self.weight, self.bias, self.tree.child_start, item, node)
        return log_sigmoid(logits)


def _largest_one_by_one(values: Array, k: int) -> tuple[Int64, Array]:
    """Return the columns (n, k) of the k largest values of each row, descending, and the values.

    Ties are by column. `values` (n, V), 0 or less, are overwritten.
    """
    columns = np.empty((len(values), k), np.int64)
    largest = np.empty((len(values), k), values.dtype)
    # Values that have been taken must be smaller than all others
    np.maximum(values, np.finfo(values.dtype).min, out=values)
    for rank in range(k):
        column = values.argmax(axis=1)[:, None]
        columns[:, rank] = column[:, 0]
        largest[:, rank] = np.take_along_axis(values, column, axis=1)[:, 0]
        np.put_along_axis(values, column, -np.inf, axis=1)
    return columns, largest

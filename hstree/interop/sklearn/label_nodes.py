"""Nodes of a probabilistic label tree: their training, their sparse weights, and the search.

Each edge of the tree has a logistic model of whether a label below it holds, given that a label
below its node does; the root has one of whether any label holds. The probability of a label is the
product of the probabilities on its path, and the highest over its paths where it has several.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.svm import _liblinear as liblinear

from hstree import progress
from hstree._arrays import Array, Float64, Int64, offsets, ranges
from hstree._parallel import n_parallel, parallel
from hstree.interop.sklearn.features import (
    TABLE_LIMIT,
    Samples,
    sparse_product,
    without_empty_columns,
)
from hstree.layers.arithmetic import log_sigmoid
from hstree.layers.top_k import BeamEntries, best_first_search, most_probable
from hstree.tree import Tree
from hstree.tree.codes import Codes

#: Number that liblinear gives to logistic regression by dual coordinate descent.
DUAL_LOGISTIC = 7
#: Maximum number of rounds of liblinear.
MAX_ROUNDS = 100
#: Value of the feature whose weight is the bias; with a value below 1, fewer rounds are needed.
BIAS_FEATURE = 0.3
#: Groups of nodes per job, so that all jobs end at about the same time.
GROUPS_PER_JOB = 8
#: Largest number of edges of a tree whose nodes are all scored, instead of searched.
MAX_SCORED_EDGES = 1024
#: Samples of a prediction that are scored or searched together.
BATCH = 1024


class Objective(NamedTuple):
    """Options of the training of all nodes."""

    C: float
    tol: float
    threshold: float
    random_state: int


class NodeProblem(NamedTuple):
    """Samples of a node, and which of them have a label below each child."""

    samples: Int64  # (n,) ascending
    positives: list[Int64]  # samples of each child, ascending


class NodeWeights(NamedTuple):
    """Weights of a node's children that are not zero."""

    n_weights: Int64  # (k,) number of weights of each child
    feature: Array  # (K,) their features, one child after another
    weight: Array  # (K,)
    bias: Float64  # (k,)


# Training.


def fit_nodes(
    tree: Tree, X: Samples, Y: Any, objective: Objective, n_jobs: int | None
) -> "LabelNodes":
    """Train the models of all edges, in `n_jobs` processes.

    X is a CSR array (n, n_features), Y a CSC array (n, V) of the labels in the tree's order.
    """
    largest = abs(X).max(axis=0).toarray().ravel()
    n_groups = GROUPS_PER_JOB * n_parallel(n_jobs)
    group_size = 1 if n_parallel(n_jobs) == 1 else -(-(tree.n_nodes + 1) // n_groups)
    problems = node_problems(tree, Y)
    groups = iter(lambda: list(islice(problems, group_size)), [])
    solve_group = partial(_solve, X, largest, objective)
    solved: dict[int, list[NodeWeights]] = {}
    with progress.task("fitting nodes", tree.n_nodes + 1, "nodes") as task:
        for number, group in parallel(solve_group, groups, n_jobs):
            solved[number] = group
            task.advance(len(group))

    # In the order of nodes, whatever job ended first
    nodes = [node for number in sorted(solved) for node in solved.pop(number)]
    columns = [list(column) for column in zip(*nodes, strict=True)]
    del nodes
    # One array after another, so that little is in memory twice
    n_weights, feature, weight, bias = (np.concatenate(columns.pop(0)) for _ in range(4))
    content = weight, feature, offsets(n_weights)
    return LabelNodes(tree, scipy.sparse.csr_array(content, shape=(len(bias), X.shape[1])), bias)


def node_problems(tree: Tree, Y: Any) -> Iterator[NodeProblem]:
    """Yield the problem of each node, in order, and last that of the root's own model."""
    # (E,) number of the first leaf below each edge, leaves being numbered depth first
    n_leaves = tree.sum_up(np.ones(tree.n_labels, np.int64))
    before = offsets(n_leaves)[:-1]
    first = before - before[tree.child_start[tree.edge_node]]
    tree.sum_down(first)

    # (C,) label of each leaf
    is_leaf = tree.child < 0
    label = np.empty(int(is_leaf.sum()), np.int64)
    label[first[is_leaf]] = ~tree.child[is_leaf]

    # Samples of each leaf, so that those below an edge are adjacent
    start = offsets(np.diff(Y.indptr)[label])
    sample = Y.indices[ranges(Y.indptr[label].astype(np.int64), start)]

    def samples_below(edge: int) -> Int64:
        """Return the samples with a label below an edge, ascending."""
        return np.unique(sample[start[first[edge]] : start[first[edge] + n_leaves[edge]]])

    with_label = np.unique(Y.indices)
    for node in range(tree.n_nodes):
        edges = range(tree.child_start[node], tree.child_start[node + 1])
        samples = with_label if node == 0 else samples_below(tree.node_edge[node])
        yield NodeProblem(samples, [samples_below(edge) for edge in edges])
    yield NodeProblem(np.arange(Y.shape[0]), [with_label])


def _solve(
    X: Samples, largest: Array, objective: Objective, group: list[NodeProblem]
) -> list[NodeWeights]:
    """Train the models of some nodes' children; keep the weights that move some logit."""
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
        n_weights = np.array([len(weights) for weights in kept_weights])
        feature = np.concatenate(kept_features)
        solved.append(NodeWeights(n_weights, feature, np.concatenate(kept_weights), bias))
    return solved


def _logistic(X: Any, positive: Int64, C: float, objective: Objective) -> tuple[Float64, float]:
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
        Of the classes, ascending; of two classes those of the second alone.
    biases : float64 array (k,)

    Notes
    -----
    `LogisticRegression(solver="liblinear")` calls the same function, with checks that take as long
    as the training of a small node: with it, fitting a label tree takes 1.8 times as long on Bibtex
    and 3.2 times as long with 1,000 classes.
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
    """A tree with a sparse logistic model of each edge, and last one of the root."""

    tree: Tree
    weight: Any  #: CSR array (E + 1, n_features)
    bias: Float64  #: (E + 1,)

    def log_prob(self, X: Samples) -> Iterator[tuple[slice, Float64]]:
        """Yield slices of the samples, and the log-probabilities (samples, V) of all labels."""
        tree = self.tree
        codes = Codes(tree, cache_limit=0)
        step = max(1, min(BATCH, TABLE_LIMIT // len(self.bias)))
        for a in range(0, X.shape[0], step):
            logits = sparse_product(X[a : a + step], self.weight) + self.bias
            # (E + 1, samples) of each edge, then of the path from the root to its end
            log_prob = log_sigmoid(logits.T)
            tree.sum_down(log_prob[:-1])
            if tree.n_nodes == 0:
                label_log_prob = np.zeros((1, len(logits)))
            elif tree.has_single_codes:
                label_log_prob = log_prob[codes.leaf_edge]
            else:
                code_log_prob = log_prob[codes.leaf_edge]
                label_log_prob = np.maximum.reduceat(code_log_prob, codes.label_start[:-1])
            yield slice(a, a + step), (label_log_prob + log_prob[-1]).T

    def search(self, X: Samples, k: int, threshold: float = 0.0) -> Any:
        """Return the probabilities of the k most probable labels from a threshold on.

        Exactly, as a CSR array (n, V) in which the labels of a sample descend in probability. The
        first of equally probable labels are taken.
        """
        n_labels = self.tree.n_labels
        k = min(k, n_labels)
        with np.errstate(divide="ignore"):
            least = float(np.log(threshold))
        n_weighted = min(self.weight.shape[1], self.weight.nnz)  # features with a weight, at most
        is_small = len(self.bias) <= MAX_SCORED_EDGES and n_weighted * len(self.bias) <= TABLE_LIMIT
        if is_small or self.tree.n_nodes == 0:
            parts = list(self._best_of_all(X, k, least))
        else:
            parts = list(self._best_first(X, k, least))
        sample, child, log_prob = map(np.concatenate, zip(*parts, strict=True))
        start = offsets(np.bincount(sample, minlength=X.shape[0]))
        content = np.exp(log_prob), ~child, start
        return scipy.sparse.csr_array(content, shape=(X.shape[0], n_labels))

    def _best_of_all(self, X: Samples, k: int, least: float) -> Iterator[BeamEntries]:
        """Yield the labels of some samples at a time, after scoring all labels."""
        for samples, log_prob in self.log_prob(X):
            kth = np.partition(log_prob, -k, axis=1)[:, -k]
            sample, label = np.nonzero(log_prob >= np.maximum(kth, least)[:, None])
            entries = BeamEntries(sample, ~label, log_prob[sample, label])
            labels, _ = most_probable(entries, len(log_prob), k, 0.0, has_single_codes=True)
            yield labels._replace(item=labels.item + samples.start)

    def _best_first(self, X: Samples, k: int, least: float) -> Iterator[BeamEntries]:
        """Yield the labels of some samples at a time, by best-first search."""
        tree = self.tree
        step = max(1, min(BATCH, TABLE_LIMIT // int(tree.fan_out.max())))
        for a in range(0, X.shape[0], step):
            batch = X[a : a + step]
            root_logits = sparse_product(batch, self.weight[-1:])[:, 0] + self.bias[-1]
            labels, _ = best_first_search(
                tree,
                partial(self._child_log_prob, batch),
                batch.shape[0],
                k,
                root_log_prob=log_sigmoid(root_logits),
                least=least,
            )
            yield labels._replace(item=labels.item + a)

    def _child_log_prob(self, X: Samples, item: Int64, node: Int64) -> Float64:
        """Return log P(child | node) of all children, for pairs (n,) of a sample and a node."""
        tree = self.tree
        # Pairs in the order of their nodes: one product for each node
        order = np.argsort(node, kind="stable")
        sorted_node = node[order]
        sorted_start = offsets(tree.fan_out[sorted_node])
        head = np.flatnonzero(np.diff(sorted_node, prepend=-1)).tolist()
        logits = np.empty(sorted_start[-1])
        for a, b in pairwise([*head, len(order)]):
            first, stop = tree.child_start[sorted_node[a] : sorted_node[a] + 2]
            products = sparse_product(X[item[order[a:b]]], self.weight[first:stop])
            logits[sorted_start[a] : sorted_start[b]] = products.ravel()

        # Children in the order of the pairs
        start = offsets(tree.fan_out[node])
        position = np.empty(len(node), np.int64)
        position[order] = sorted_start[:-1]
        edge = ranges(tree.child_start[node], start)
        return log_sigmoid(logits[ranges(position, start)] + self.bias[edge])

"""Nodes of a probabilistic label tree: their training, their sparse weights, and the search.

Each edge of the tree has a logistic model of whether a label below it holds, given that one below
its node does; the root has one of whether any label holds. The probability of a label is the
product of those on its path, and the highest of its paths' where it has several.
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.svm import _liblinear as liblinear

from hstree import progress
from hstree._arrays import Array, Float64, Int64, offsets, ranges
from hstree._parallel import n_parallel, parallel
from hstree.interop.sklearn.linear import TABLE_LIMIT, Rows, product, without_empty_columns
from hstree.layers.arithmetic import log_sigmoid
from hstree.tree import Tree
from hstree.tree.codes import Codes

#: liblinear's number for logistic regression by dual coordinate descent, and its most rounds.
DUAL_LOGISTIC, MOST_ROUNDS = 7, 100
#: Value of the feature whose weight is the bias: below 1, since that is solved in fewer rounds.
BIAS_FEATURE = 0.3
#: Groups of nodes for each job at a time, so that all jobs end at about the same time.
GROUPS_EACH = 8
#: Edges of the largest tree that is not searched, and samples that are searched together.
MOST_EDGES, SEARCHED_TOGETHER = 1024, 1024

#: Samples (n,) that reach a node, ascending, and those of each child.
Problem = tuple[Int64, list[Int64]]
#: Numbers of weights (k,) of a node's children, their features and values, and the biases (k,).
Solved = tuple[Int64, Array, Array, Float64]


class Objective(NamedTuple):
    """What the models minimise, and where that ends."""

    C: float
    tol: float
    threshold: float
    random_state: int


def fit_nodes(
    tree: Tree, X: Rows, Y: Any, objective: Objective, n_jobs: int | None
) -> "LabelNodes":
    """Train the models of all edges, in `n_jobs` processes.

    X is a CSR array (n, n_features), Y a CSC array (n, V) of the labels in the tree's order.
    """
    largest = abs(X).max(axis=0).toarray().ravel()
    n = n_parallel(n_jobs)
    size = 1 if n == 1 else -(-(tree.n_nodes + 1) // (GROUPS_EACH * n))
    nodes = problems(tree, Y)
    groups = iter(lambda: list(islice(nodes, size)), [])
    solved: dict[int, list[Solved]] = {}
    with progress.task("fitting nodes", tree.n_nodes + 1, "nodes") as task:
        for number, group in parallel(partial(_solve, X, largest, objective), groups, n_jobs):
            solved[number] = group
            task.advance(len(group))
    # In the order of nodes, whatever job ended first
    parts = list(map(list, zip(*chain(*map(solved.pop, sorted(solved))), strict=True)))
    # One array after the other, so that little is in memory twice
    n_weights, feature, weight, bias = (np.concatenate(parts.pop(0)) for _ in range(4))
    content = weight, feature, offsets(n_weights)
    return LabelNodes(tree, scipy.sparse.csr_array(content, shape=(len(bias), X.shape[1])), bias)


def problems(tree: Tree, Y: Any) -> Iterator[Problem]:
    """Yield the problem of each node, in order, and last that of the root's own model."""
    n_leaves = tree.sum_up(np.ones(tree.n_labels, np.int64))
    # (E,) first leaf below each edge, depth first: after those below the siblings before it
    before = offsets(n_leaves)[:-1]
    first = before - before[tree.child_start[tree.edge_node]]
    tree.sum_down(first)
    is_leaf = tree.child < 0
    label = np.empty(int(is_leaf.sum()), np.int64)
    label[first[is_leaf]] = ~tree.child[is_leaf]
    # Samples of each leaf, those below an edge side by side
    start = offsets(np.diff(Y.indptr)[label])
    sample = Y.indices[ranges(Y.indptr[label].astype(np.int64), start)]

    def below(edge: int) -> Int64:
        """Return the samples with a label below an edge, ascending."""
        return np.unique(sample[start[first[edge]] : start[first[edge] + n_leaves[edge]]])

    some = np.unique(Y.indices)
    for node in range(tree.n_nodes):
        edges = range(tree.child_start[node], tree.child_start[node + 1])
        yield some if node == 0 else below(tree.node_edge[node]), list(map(below, edges))
    yield np.arange(Y.shape[0]), [some]


def _solve(X: Rows, largest: Array, objective: Objective, group: list[Problem]) -> list[Solved]:
    """Train the models of some nodes' children; keep the weights that move some logit."""
    solved: list[Any] = []
    for samples, positives in group:
        # (n, features) samples of the node, without the features that none of them has
        some, features = without_empty_columns(X if len(samples) == X.shape[0] else X[samples])
        C = objective.C * np.sqrt(X.shape[0] / max(len(samples), 1))
        kept, bias = [], np.empty(len(positives))
        for i, positive in enumerate(positives):
            weight, bias[i] = _logistic(some, np.searchsorted(samples, positive), C, objective)
            is_kept = np.abs(weight) * largest[features] > objective.threshold
            kept.append((features[is_kept], weight[is_kept].astype(np.float32)))
        n_weights = np.array([len(weight) for _, weight in kept])
        solved.append((n_weights, *map(np.concatenate, zip(*kept, strict=True)), bias))
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

    X is as `without_empty_columns` returns it; y (n,) has two classes or more, `weight` (n,) is
    that of the samples. Returns the weights (k, n_features) and the biases (k,) of the classes,
    ascending; of two classes those of the second.
    """
    liblinear.set_verbosity_wrap(0)
    n_classes = len(np.unique(y))
    table, _ = liblinear.train_wrap(
        *(X, y, True, DUAL_LOGISTIC, tol, BIAS_FEATURE if has_bias else -1.0, C),
        *(np.ones(n_classes), MOST_ROUNDS, seed, 0.1, weight),
    )
    if not has_bias:
        return table, np.zeros(len(table))
    return table[:, :-1], BIAS_FEATURE * table[:, -1]


class Pairs(NamedTuple):
    """Pairs of a sample and a node, or a label as its complement, and their log-probabilities."""

    sample: Int64
    node: Int64
    log_prob: Float64

    def where(self, some: Any) -> "Pairs":
        """Return some of them, by a mask, a slice or an order."""
        return Pairs(*(array[some] for array in self))

    def plus(self, others: "Pairs") -> "Pairs":
        """Return these and others."""
        both: Any = zip(self, others, strict=True)
        return Pairs(*map(np.concatenate, both))

    def likeliest(self, k: int) -> "Pairs":
        """Return the k likeliest labels of each sample, in order, ties by label.

        A label with several codes has several pairs for one sample; the likeliest is kept.
        """
        order = np.lexsort((-self.log_prob, self.node, self.sample))
        pairs = self.where(order)
        is_same = (np.diff(pairs.node) == 0) & (np.diff(pairs.sample) == 0)
        pairs = pairs.where(~np.r_[False, is_same]) if is_same.any() else pairs
        pairs = pairs.where(np.lexsort((-pairs.node, -pairs.log_prob, pairs.sample)))
        head = np.flatnonzero(np.diff(pairs.sample, prepend=-1))
        size = np.diff(head, append=len(pairs.sample))
        return pairs.where(np.arange(len(pairs.sample)) - np.repeat(head, size) < k)


class LabelNodes(NamedTuple):
    """A tree with a sparse logistic model of each edge, and last one of the root."""

    tree: Tree
    weight: Any  #: CSR array (E + 1, n_features)
    bias: Float64  #: (E + 1,)

    def log_prob(self, X: Rows) -> Iterator[tuple[slice, Float64]]:
        """Yield slices of the samples, and the log-probabilities (samples, V) of all labels."""
        codes = Codes(self.tree, cache_limit=0)
        step = max(1, min(SEARCHED_TOGETHER, TABLE_LIMIT // len(self.bias)))
        for a in range(0, X.shape[0], step):
            # (E + 1, samples) of each edge, then of the product of those before it and of itself
            log_prob = log_sigmoid(product(X[a : a + step], self.weight).T + self.bias[:, None])
            self.tree.sum_down(log_prob[:-1])
            of_code = log_prob[:-1][codes.leaf_edge]
            if not self.tree.has_single_codes:
                of_code = np.maximum.reduceat(of_code, codes.label_start[:-1])
            of_label = of_code if self.tree.n_nodes else np.zeros((1, X[a : a + step].shape[0]))
            yield slice(a, a + step), (of_label + log_prob[-1]).T

    def search(self, X: Rows, k: int, threshold: float = 0.0) -> Any:
        """Return the probabilities of the k likeliest labels of each sample from a threshold on.

        Exactly, as a CSR array (n, V). Of equally likely labels the first are taken.
        """
        k, n = min(k, self.tree.n_labels), X.shape[0]
        with np.errstate(divide="ignore"):
            least = float(np.log(threshold))
        parts = []
        n_features = min(self.weight.shape[1], self.weight.nnz)  # that have a weight, at most
        if len(self.bias) <= MOST_EDGES and n_features * len(self.bias) <= TABLE_LIMIT:
            for samples, log_prob in self.log_prob(X):
                kth = np.partition(log_prob, -k, axis=1)[:, -k]
                sample, label = np.nonzero(log_prob >= np.maximum(kth, least)[:, None])
                pairs = Pairs(sample, ~label, log_prob[sample, label]).likeliest(k)
                parts.append(pairs._replace(sample=pairs.sample + samples.start))
        else:
            widest = int(self.tree.fan_out.max(initial=1))
            step = max(1, min(SEARCHED_TOGETHER, TABLE_LIMIT // widest))
            for a in range(0, n, step):
                pairs = self._best_first(X[a : a + step], k, least)
                parts.append(pairs._replace(sample=pairs.sample + a))
        sample, node, log_prob = map(np.concatenate, zip(*parts, strict=True))
        start = offsets(np.bincount(sample, minlength=n))
        return scipy.sparse.csr_array(
            (np.exp(log_prob), ~node, start), shape=(n, self.tree.n_labels)
        )

    def _best_first(self, X: Rows, k: int, least: float) -> Pairs:
        """Return the k likeliest labels of each sample from a log-probability on.

        In each round a sample goes on from its open nodes that are at least half as likely as the
        best. Once it has k labels, nodes that are less likely than the last of these are left.
        """
        n, tree = X.shape[0], self.tree
        floor = np.full(n, least)
        log_prob = log_sigmoid(product(X, self.weight[-1:])[:, 0] + self.bias[-1])
        opened = Pairs(np.arange(n), np.zeros(n, np.int64), log_prob)
        labels = opened.where(slice(0))
        while True:
            opened = opened.where(opened.log_prob >= floor[opened.sample])
            is_label = opened.node < 0
            if is_label.any():
                labels = labels.plus(opened.where(is_label)).likeliest(k)
                count = np.bincount(labels.sample, minlength=n)
                last = np.cumsum(count)[count == k] - 1
                floor[count == k] = np.maximum(floor[count == k], labels.log_prob[last])
                opened = opened.where(~is_label & (opened.log_prob >= floor[opened.sample]))
            if not len(opened.sample):
                return labels
            best = np.full(n, -np.inf)
            np.maximum.at(best, opened.sample, opened.log_prob)
            likely = best - np.log(2) if k < tree.n_labels else floor
            is_next = opened.log_prob >= likely[opened.sample]
            opened = self._children(X, opened.where(is_next)).plus(opened.where(~is_next))

    def _children(self, X: Rows, pairs: Pairs) -> Pairs:
        """Return the children of nodes with their log-probabilities."""
        tree = self.tree
        pairs = pairs.where(np.argsort(pairs.node, kind="stable"))
        width = tree.fan_out[pairs.node]
        start = offsets(width)
        edge = ranges(tree.child_start[pairs.node], start)
        logits = np.empty(len(edge))
        head = np.flatnonzero(np.diff(pairs.node, prepend=-1))
        for a, b in pairwise([*head.tolist(), len(width)]):
            node = int(pairs.node[a])
            weight = self.weight[tree.child_start[node] : tree.child_start[node + 1]]
            logits[start[a] : start[b]] = product(X[pairs.sample[a:b]], weight).ravel()
        log_prob = np.repeat(pairs.log_prob, width) + log_sigmoid(logits + self.bias[edge])
        return Pairs(np.repeat(pairs.sample, width), tree.child[edge], log_prob)

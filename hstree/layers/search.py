"""Exact top-k labels by best-first search: the likelier child first.

A heap holds the frontier: the edges not yet followed, by the log-probability of the way to them.
No label below an edge is likelier than the edge, so where every label has one code the labels
come off the heap in order. Where labels have several, a label's whole probability is computed
when it is first met, and the search ends when no label that was not met can still be among the k
best: it can have no more than the met labels leave over, and no more than the highest number of
codes times the likeliest edge. A search that works on a large part of the tree gives way to
`log_prob`, so that it costs at most about twice as much.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort

import numpy as np

from hstree._typing import Array, Float64, Int64
from hstree.errors import OptionError
from hstree.layers import kernels
from hstree.layers.tree_probabilities import TreeProbabilities

#: A label's -log_prob and its number.
Scored = tuple[float, int]

#: The search gives way to one dense pass when it has scored this share of the edges (an edge
#: costs the search about 60 times what it costs the dense pass) ...
PATIENCE = 1 / 64
#: ... and this many more, which is what the dense pass costs on the smallest trees.
LEAST_PATIENCE = 96
#: Log-probabilities this close to the next one are equal, relative to themselves beyond -1: the
#: rounding of sums over codes and depths stays below it.
TIE = 1e-12
#: What rounding may hide of the mass that the met labels leave over.
MASS_MARGIN = 1e-9


class _OutOfPatienceError(Exception):
    """A dense pass is cheaper than going on."""


def top_k(layer: TreeProbabilities, hidden: Array, k: int) -> tuple[Int64, Float64]:
    """Return the k most probable labels of each hidden vector and their log-probabilities.

    Parameters
    ----------
    layer : TreeProbabilities
    hidden : float array (B, d)
    k : int
        At least 1; more than V means V.

    Returns
    -------
    labels : int64 array (B, min(k, V))
        Most probable first; ties by label id. Labels tie when, sorted by log-probability, each
        is within 1e-12 of the next (relative to it where it is below -1), so that the rounding
        of float64 sums does not order labels.
    log_prob : float64 array (B, min(k, V))

    Raises
    ------
    OptionError
        When `k` is below 1.
    """
    if k < 1:
        raise OptionError(f"k is {k}; ask for at least 1 label")
    k = min(k, layer.tree.n_labels)
    most_codes = int(layer.tree.codes_per_label.max())
    if most_codes == 0:  # one label and no node
        return np.zeros((len(hidden), 1), np.int64), np.zeros((len(hidden), 1))
    labels = np.empty((len(hidden), k), np.int64)
    log_prob = np.empty((len(hidden), k))
    for i in range(len(hidden)):
        try:
            labels[i], log_prob[i] = _search(layer, hidden[i], k, most_codes)
        except _OutOfPatienceError:
            labels[i], log_prob[i] = _full_sort(layer, hidden[i], k)
    return labels, log_prob


def _full_sort(layer: TreeProbabilities, hidden: Array, k: int) -> tuple[Int64, Float64]:
    cost = -layer.log_prob(hidden[None])[0]
    some = min(len(cost), 4 * k + 64)
    nearest = np.argpartition(cost, some - 1)[:some]
    labels, log_prob, whole = _head(cost[nearest], nearest, k)
    if not whole:  # ties of the k-th may go on among the others
        labels, log_prob, _ = _head(cost, np.arange(len(cost)), k)
    return labels, log_prob


def _search(
    layer: TreeProbabilities, hidden: Array, k: int, most_codes: int
) -> tuple[Int64, Float64]:
    ways = _Ways(layer, hidden)
    heap = [(0.0, 0)]  # (-log_prob of the way, child as in `tree.child`)
    best: list[Scored] = []
    met: set[int] = set()
    left_over = 1.0
    while heap and not (len(best) >= k and _settled(best, k, heap[0][0], most_codes, left_over)):
        cost, child = heapq.heappop(heap)
        if child >= 0:
            for entry in ways.below(child):
                heapq.heappush(heap, entry)
        elif child not in met:
            met.add(child)
            total = cost if most_codes == 1 else ways.to_label(~child)
            left_over -= math.exp(-total)
            insort(best, (total, ~child))
    costs, labels = zip(*best, strict=True)
    return _head(np.array(costs), np.array(labels), k)[:2]


def _settled(best: list[Scored], k: int, nearest: float, most_codes: int, left_over: float) -> bool:
    """Tell whether every label not met yet is less likely than the k-th best and its ties."""
    by_codes = nearest - math.log(most_codes)
    by_mass = -math.log(max(left_over, 0.0) + MASS_MARGIN)
    least = max(by_codes, by_mass)
    return _apart(best[k - 1][0], least) and _apart(best[_end_of_ties(best, k) - 1][0], least)


def _head(cost: Float64, label: Int64, k: int) -> tuple[Int64, Float64, bool]:
    """Sort labels by cost, ties by label id, and return the first k.

    Also tells whether a label that is less likely than the k-th was among them, so that no tie
    of it can be missing where these are the nearest labels.
    """
    ascending = np.argsort(cost)
    cost, label = cost[ascending], label[ascending]
    tie = np.zeros(len(cost), np.int64)
    np.cumsum(np.diff(cost) > TIE * np.maximum(1.0, cost[1:]), out=tie[1:])
    first = np.lexsort((label, tie))[:k]
    return label[first], -cost[first], bool(tie[-1] > tie[k - 1])


def _end_of_ties(ascending: list[Scored], k: int) -> int:
    """Return how many labels come before the first that is less likely than the k-th."""
    end = k
    while end < len(ascending) and not _apart(ascending[end - 1][0], ascending[end][0]):
        end += 1
    return end


def _apart(cost: float, higher: float) -> bool:
    return higher - cost > TIE * max(1.0, higher)


class _Ways:
    """The costs (-log_prob) of the ways from the root to a tree's edges, each computed once."""

    def __init__(self, layer: TreeProbabilities, hidden: Array) -> None:
        self._layer, self._hidden = layer, hidden
        self._patience = LEAST_PATIENCE + PATIENCE * len(layer.tree.child)
        self._below: dict[int, list[tuple[float, int]]] = {}

    def below(self, node: int) -> list[tuple[float, int]]:
        """Return the cost of the way to each child of a node, and the child as in `tree.child`."""
        known = self._below
        if node in known:
            return known[node]
        tree = self._layer.tree
        pending = [node]
        while node and (node := tree.parent.item(node)) not in known:
            pending.append(node)
        for node in reversed(pending):
            so_far = 0.0
            if node:
                branch = tree.edge_branch.item(tree.node_edge.item(node))
                so_far = known[tree.parent.item(node)][branch][0]
            known[node] = self._extend(node, so_far)
        return known[node]

    def to_label(self, label: int) -> float:
        """Return the cost of a label: the sum over its codes."""
        tree, codes = self._layer.tree, self._layer.codes
        edge = codes.leaf_edge[codes.label_start[label] : codes.label_start[label + 1]]
        self._spend(len(edge))
        node, branch = tree.edge_node[edge], tree.edge_branch[edge]
        cost: list[float] = [
            self.below(n)[b][0] for n, b in zip(node.tolist(), branch.tolist(), strict=True)
        ]
        least = min(cost)
        return least - math.log(math.fsum(math.exp(least - c) for c in cost))

    def _extend(self, node: int, so_far: float) -> list[tuple[float, int]]:
        """Score a node; `so_far` is the cost of the way to it."""
        layer, start = self._layer, self._layer.tree.child_start
        first, stop = start.item(node), start.item(node + 1)
        self._spend(stop - first)
        child = layer.tree.child[first:stop].tolist()
        row = layer.tree.row_start.item(node)
        if len(child) == 2:
            z = float(layer.weight[row] @ self._hidden + layer.bias[row])
            step = so_far + math.log1p(math.exp(-abs(z)))
            return [(step + max(-z, 0.0), child[0]), (step + max(z, 0.0), child[1])]
        rows = slice(row, row + len(child))
        score = (layer.weight[rows] @ self._hidden + layer.bias[rows]).astype(np.float64)
        cost = so_far - kernels.segment_log_softmax(score, np.array([0, len(child)]))
        return list(zip(cost.tolist(), child, strict=True))

    def _spend(self, edges: int) -> None:
        self._patience -= edges
        if self._patience < 0:
            raise _OutOfPatienceError

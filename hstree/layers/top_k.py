"""Exact most probable labels by best-first search: the likelier child first.

The frontier holds the edges not yet followed, by the cost (``-log_prob``) of the path to each. No
label below an edge is likelier than the edge. Without compiled kernels, trees with several codes
for a label are not searched: the log-probabilities of all labels are computed.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from hstree._arrays import Array, Bool, Float64, Int64, offsets, ranges
from hstree.kernels import compiled
from hstree.layers import arithmetic
from hstree.layers.ngram_features import ContextFeatures
from hstree.tree.arrays import TreeArrays
from hstree.tree.codes import Codes

#: Returns the logits (P,) of pairs, from their batch items (P,) and weight rows (P,).
PairLogits = Callable[[Int64, Int64], Array]

#: A search gives way to a dense pass when it has scored this share of the edges ...
PATIENCE = 1 / 8
#: ... or this share, where one vector is searched (an edge takes it about 60 times as long) ...
ONE_PATIENCE = 1 / 64
#: ... and this many more, which is what the dense pass costs on the smallest trees.
LEAST_PATIENCE = 96
#: Costs this close to the next one are equal, relative to themselves above 1: the rounding of sums
#: over codes and depths stays below it.
TIE = 1e-12
#: Edges that the vectors of a batch follow together in a round; the fewer vectors, the more edges
#: of each, ...
EDGES_PER_ROUND = 4096
#: ... up to this many.
MOST_EDGES = 32
#: So many vectors are searched one by one, with a heap.
FEW = 16
#: Costs of labels that are computed at a time where there is no search.
TABLE = 1 << 22


def top_k_of_all(log_prob: Float64, k: int) -> tuple[Int64, Float64]:
    """Return the k most probable labels (b, k) by the log-probabilities (b, V) of all."""
    n_items, n_labels = log_prob.shape
    labels, values = np.empty((n_items, k), np.int64), np.empty((n_items, k))
    n_nearest = min(n_labels, 4 * k + 64)
    for i, cost in enumerate(-log_prob):
        nearest = np.argpartition(cost, n_nearest - 1)[:n_nearest]
        for label in (nearest, np.arange(n_labels)):
            labels[i], values[i], has_all_ties = _first(cost[label], label, k)
            if has_all_ties:
                break
    return labels, values


def _first(cost: Float64, label: Int64, k: int) -> tuple[Int64, Float64, bool]:
    """Return the k labels of the lowest costs (n,), ties by label id, and their log-probabilities.

    Also tells whether a label follows that does not tie with the k-th, so that no tie is missing.
    """
    ascending = np.argsort(cost)
    cost, label = cost[ascending], label[ascending]
    # (n,) number of the group of ties that each label belongs to
    tie = np.zeros(len(label), np.int64)
    np.cumsum(np.diff(cost) > TIE * np.maximum(1.0, cost[1:]), out=tie[1:])
    first = np.lexsort((label, tie))[:k]
    return label[first], -cost[first], bool(tie[-1] > tie[k - 1])


class BatchTopK(NamedTuple):
    """The most probable labels of some items."""

    labels: Int64  # (n, k) most probable first
    log_prob: Float64  # (n, k)
    certain: Bool  # (n,) False where the item has no answer: its labels have no meaning

    @classmethod
    def empty(cls, n_items: int, k: int) -> BatchTopK:
        """Return a result in which no item is answered yet."""
        shape = (n_items, k)
        return cls(np.zeros(shape, np.int64), np.zeros(shape), np.zeros(n_items, bool))


def search_top_k(
    codes: Codes,
    weight: Array,
    bias: Array,
    hidden: Array,
    k: int,
    features: ContextFeatures | None,
    log_prob: Callable[[Int64], Float64],
) -> tuple[Int64, Float64]:
    """Return the k most probable labels of hidden vectors (B, d), and their log-probabilities.

    `log_prob` returns the log-probabilities (b, V) of all labels for some of the items, those whose
    search reached a large part of the tree, so that it takes at most about twice as long.
    """
    n_labels = codes.tree.n_labels
    result = BatchTopK.empty(len(hidden), k)
    if codes.tree.n_nodes > 1:  # not one label, nor one softmax
        result = search(codes, weight, bias, hidden, k, features)
    others = np.flatnonzero(~result.certain)
    step = max(1, TABLE // n_labels)
    for a in range(0, len(others), step):
        items = others[a : a + step]
        labels, values = top_k_of_all(log_prob(items), k)
        result.labels[items] = labels
        result.log_prob[items] = values
    return result.labels, result.log_prob


def search(
    codes: Codes,
    weight: Array,
    bias: Array,
    hidden: Array,
    k: int,
    features: ContextFeatures | None,
) -> BatchTopK:
    """Search the k most probable labels of hidden vectors (B, d).

    NumPy searches neither scores with features nor labels with several codes.
    """
    tree = codes.tree
    fast = compiled()
    if fast is not None and fast.is_supported(weight, bias, hidden):
        arrays = fast.SearchedTree(tree.child_start, tree.child, tree.row_start)
        several = None
        if not tree.has_single_codes:
            several = fast.SearchedCodes(
                codes.label_start, codes.leaf_edge, codes.parent_edge, tree.edge_node
            )
        table = None if features is None else fast.Features(*features.arrays())
        return BatchTopK(*fast.search(weight, bias, hidden, k, arrays, several, table))
    if features is not None or not tree.has_single_codes:
        return BatchTopK.empty(len(hidden), k)
    if len(hidden) <= FEW:
        result = BatchTopK.empty(len(hidden), k)
        for i in range(len(hidden)):
            best = _search_one(tree, weight, bias, hidden[i], k)
            if best is not None:
                costs, labels = map(np.array, zip(*best, strict=True))
                result.labels[i], result.log_prob[i], _ = _first(costs, labels, k)
                result.certain[i] = True
        return result
    logits = partial(arithmetic.gather_dot, weight, bias, hidden)
    patience = LEAST_PATIENCE + PATIENCE * len(tree.child)
    return top_k_of_batch(tree, logits, len(hidden), k, margin=10 * TIE, patience=patience)


def _search_one(
    tree: TreeArrays, weight: Array, bias: Array, hidden: Array, k: int
) -> list[tuple[float, int]] | None:
    """Return costs and labels of the k most probable labels of a vector (d,) and of their ties.

    Costs ascend. None where the search would take longer than a dense pass.
    """
    frontier, best = [(0.0, 0)], list[tuple[float, int]]()  # a heap of costs and children
    patience = LEAST_PATIENCE + ONE_PATIENCE * len(tree.child)
    while frontier:
        cost, child = heapq.heappop(frontier)
        if len(best) >= k and cost - best[-1][0] > TIE * max(1.0, cost):
            break
        if child < 0:
            best.append((cost, ~child))
            continue
        first, stop = tree.child_start.item(child), tree.child_start.item(child + 1)
        patience -= stop - first
        if patience < 0:
            return None
        row, below = tree.row_start.item(child), tree.child[first:stop].tolist()
        if len(below) == 2:
            z = float(weight[row] @ hidden + bias[row])
            likelier = cost + math.log1p(math.exp(-abs(z)))
            heapq.heappush(frontier, (likelier + max(-z, 0.0), below[0]))
            heapq.heappush(frontier, (likelier + max(z, 0.0), below[1]))
            continue
        rows = slice(row, row + len(below))
        logits = (weight[rows] @ hidden + bias[rows]).astype(np.float64)
        costs = cost - arithmetic.segment_log_softmax(logits, np.array([0, len(below)]))
        for entry in zip(costs.tolist(), below, strict=True):
            heapq.heappush(frontier, entry)
    return best


def top_k_of_batch(
    tree: TreeArrays, logits: PairLogits, n_items: int, k: int, *, margin: float, patience: float
) -> BatchTopK:
    """Search the k most probable labels of many items, in a tree with one code per label.

    Every node among the k likeliest edges of an item's frontier has to be scored; a round scores
    those of all items. An item gets no answer whose labels are so close that rounding could change
    their order, within `margin` (relative to themselves above 1), or whose search would score more
    than `patience` edges. The tree has at least one node; `k` is from 1 to V.
    """
    result = BatchTopK.empty(n_items, k)
    # a round follows fewer edges of a tree of wide nodes, so that it scores no more branches
    per_node = len(tree.child) / len(tree.fan_out) / 2
    item, spent = np.arange(n_items), np.zeros(n_items, np.int64)
    # (items, slots) frontier of each item: the cost of the path to each edge, infinite in a free
    # slot, and the child that the edge leads to; (items,) slots in use
    cost, child, used = np.full((n_items, k + 1), np.inf), np.full((n_items, k + 1), -1), spent + 1
    cost[:, 0], child[:, 0] = 0.0, 0
    while len(item):
        n_followed = max(k, int(min(EDGES_PER_ROUND // len(item), MOST_EDGES) / per_node))
        # (items, slots) the lowest costs, ascending, and which of them lead to nodes
        n = min(max(k + 1, n_followed), cost.shape[1])
        slot = np.argpartition(cost, n - 1, axis=1)[:, :n]
        order = np.argsort(np.take_along_axis(cost, slot, axis=1), axis=1)
        slot = np.take_along_axis(slot, order, axis=1)
        lowest = np.take_along_axis(cost, slot, axis=1)
        is_node = (np.take_along_axis(child, slot, axis=1) >= 0) & (lowest < np.inf)
        # An item is done when its k lowest are labels, and the next is not a node so close to the
        # k-th that a label below it could tie.
        has_k: Bool = np.logical_not(np.any(is_node[:, :k], axis=1))
        # (items, k) whether each of the first k is certainly below the next
        least = lowest[:, :k] + margin * np.maximum(1.0, lowest[:, :k])
        is_below: Bool = least < lowest[:, 1 : k + 1]
        done: Bool = has_k & ~(is_node[:, k] & ~is_below[:, k - 1])
        certain = is_below.all(axis=1)
        result.labels[item[done]] = ~np.take_along_axis(child[done], slot[done, :k], axis=1)
        result.log_prob[item[done]] = -lowest[done, :k]
        result.certain[item[done]] = (certain & (lowest[:, k - 1] < np.inf))[done]
        # (edges,) frontier row, slot and node of each edge to follow
        is_node[:, n_followed:] &= has_k[:, None]
        row, rank = np.nonzero(is_node & ~done[:, None])
        node = child[row, slot[row, rank]]
        spent += np.bincount(row, tree.fan_out[node], minlength=len(item)).astype(np.int64)
        goes_on = ~done & (spent <= patience)
        if not goes_on.all():
            kept = goes_on[row]
            row, rank, node = (np.cumsum(goes_on) - 1)[row[kept]], rank[kept], node[kept]
            item, spent, cost, child, used, slot = (
                array[goes_on] for array in (item, spent, cost, child, used, slot)
            )
        followed = slot[row, rank]
        # (branches,) costs of the children of all nodes, one node after another
        fan_out, n_rows = tree.fan_out[node], tree.row_start[node + 1] - tree.row_start[node]
        start, row_start = offsets(fan_out), offsets(n_rows)
        z = logits(np.repeat(item[row], n_rows), ranges(tree.row_start[node], row_start))
        below = np.repeat(cost[row, followed], fan_out)
        below -= arithmetic.branch_log_prob(z, row_start, start)
        # (branches,) slot of each: the first child takes that of its edge, the others free ones
        added = np.bincount(row, fan_out - 1, minlength=len(item)).astype(np.int64)
        is_first = np.zeros(len(below), bool)
        is_first[start[:-1]] = True
        target = np.empty(len(below), np.int64)
        target[is_first] = followed
        target[~is_first] = ranges(used, offsets(added))
        used = used + added
        if (more := int(used.max(initial=0)) - cost.shape[1]) > 0:
            width = ((0, 0), (0, max(more, cost.shape[1])))
            cost = np.pad(cost, width, constant_values=np.inf)
            child = np.pad(child, width, constant_values=-1)
        row = np.repeat(row, fan_out)
        cost[row, target] = below
        child[row, target] = tree.child[ranges(tree.child_start[node], start)]
    return result

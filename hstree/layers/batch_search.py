"""Exact top-k labels of many items at once, in a tree whose labels have one code each.

Each item has a frontier: the edges not yet followed and the log-probability of the path to each.
No label below an edge is likelier than the edge, so every node among an item's k likeliest edges
has to be scored; a round scores them for all items. An item whose search is long, or whose labels
are so close that rounding could change their order, gets no answer here. For a single item the
heap in `search` is several times faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hstree._ragged import offsets, ranges
from hstree._typing import Array, Bool, Float64, Int64
from hstree.layers import kernels
from hstree.tree import Tree

#: Returns the scores (P,) of pairs of an item (P,) and a weight row (P,).
Score = Callable[[Int64, Int64], Array]

#: Edges that all items together follow in a round; the fewer items, the more edges of each, ...
EDGES_PER_ROUND = 4096
#: ... up to this many.
MOST_EDGES = 32


class TopK(NamedTuple):
    """The most probable labels of some items.

    Attributes
    ----------
    labels : int64 array (n, k)
        Most probable first.
    log_prob : float64 array (n, k)
    certain : bool array (n,)
        False where the item has no answer; its labels and log-probabilities have no meaning.
    """

    labels: Int64
    log_prob: Float64
    certain: Bool


def best_first(
    tree: Tree,
    score: Score,
    n_items: int,
    k: int,
    *,
    margin: float,
    patience: float,
) -> TopK:
    """Search the k most probable labels of each item, the likeliest edges first.

    Parameters
    ----------
    tree : Tree
        With at least one node.
    score : callable
    n_items : int
    k : int
        From 1 to V.
    margin : float
        Log-probabilities are ordered when they are further apart (relative to themselves
        beyond -1).
    patience : float
        Edges whose scores the search of an item may need; one that needs more has no answer.
    """
    found = TopK(np.zeros((n_items, k), np.int64), np.zeros((n_items, k)), np.zeros(n_items, bool))
    item, spent = np.arange(n_items), np.zeros(n_items, np.int64)
    # Frontiers: the cost (-log_prob) of the path to each edge, infinite in a free slot, and what
    # the edge leads to, as in `tree.child`.
    cost, child, used = np.full((n_items, k + 1), np.inf), np.full((n_items, k + 1), -1), spent + 1
    cost[:, 0], child[:, 0] = 0.0, 0
    while len(item):
        n_followed = max(k, min(EDGES_PER_ROUND // len(item), MOST_EDGES))
        slot = _lowest(cost, max(k + 1, n_followed))
        lowest = np.take_along_axis(cost, slot, axis=1)
        is_node = (np.take_along_axis(child, slot, axis=1) >= 0) & (lowest < np.inf)
        # Where the k lowest are labels, a node just above the k-th may still hold a closer one.
        found_k: Bool = np.logical_not(np.any(is_node[:, :k], axis=1))
        above = slice(k, k + 1)
        open_above = is_node[:, above] & ~_apart(lowest[:, k - 1 : k], lowest[:, above], margin)
        done: Bool = np.logical_and(found_k, ~open_above[:, 0])
        if done.any():
            answer = slot[done, : k + 1]
            label = ~np.take_along_axis(child[done], answer, axis=1)
            _answer(found, item[done], lowest[done, : k + 1], label, margin)
        is_node[:, n_followed:] &= found_k[:, None]
        row, which = np.nonzero(is_node & ~done[:, None])
        node = child[row, slot[row, which]]
        spent += np.bincount(row, tree.fan_out[node], minlength=len(item)).astype(np.int64)
        open_ = ~done & (spent <= patience)
        if not open_.all():
            renumbered = np.cumsum(open_) - 1
            kept = open_[row]
            row, which, node = renumbered[row[kept]], which[kept], node[kept]
            item, spent, cost, child, used, slot = (
                array[open_] for array in (item, spent, cost, child, used, slot)
            )
        slot = slot[row, which]
        below, start = _branch_costs(tree, score, item[row], node)
        fan_out = np.diff(start)
        below += np.repeat(cost[row, slot], fan_out)
        # A node's first child takes the slot of its edge, the others free slots.
        added = np.bincount(row, fan_out - 1, minlength=len(item)).astype(np.int64)
        place = np.empty(len(below), np.int64)
        is_first = np.zeros(len(below), bool)
        is_first[start[:-1]] = True
        place[is_first] = slot
        place[~is_first] = ranges(used, offsets(added))
        used = used + added
        width = int(used.max(initial=0))
        cost, child = _widened(cost, width, np.inf), _widened(child, width, -1)
        row = np.repeat(row, fan_out)
        cost[row, place] = below
        child[row, place] = tree.child[ranges(tree.child_start[node], start)]
    return found


def _lowest(cost: Float64, n: int) -> Int64:
    """Return the slots of the n lowest costs of each row, ascending; all where n is more."""
    n = min(n, cost.shape[1])
    slot = np.argpartition(cost, n - 1, axis=1)[:, :n]
    order = np.argsort(np.take_along_axis(cost, slot, axis=1), axis=1)
    return np.take_along_axis(slot, order, axis=1)


def _apart(cost: Float64, higher: Float64, margin: float) -> Bool:
    apart: Bool = cost + margin * np.maximum(1.0, cost) < higher
    return apart


def _answer(found: TopK, item: Int64, cost: Float64, label: Int64, margin: float) -> None:
    """Enter labels by ascending cost, and whether each of the first k is certainly below the next.

    `cost` and `label` are (items, k + 1).
    """
    k = found.labels.shape[1]
    found.labels[item] = label[:, :k]
    found.log_prob[item] = -cost[:, :k]
    certain = _apart(cost[:, :-1], cost[:, 1:], margin).all(axis=1)
    found.certain[item] = certain & (cost[:, k - 1] < np.inf)


def _branch_costs(tree: Tree, score: Score, item: Int64, node: Int64) -> tuple[Float64, Int64]:
    """Return the costs of all branches of nodes, one node after another, and their offsets."""
    fan_out, first = tree.fan_out[node], tree.row_start[node]
    start = offsets(fan_out)
    cost = np.empty(start[-1])
    binary = np.flatnonzero(fan_out == 2)
    z = score(item[binary], first[binary]).astype(np.float64)
    cost[start[binary]] = -kernels.log_sigmoid(z)
    cost[start[binary] + 1] = -kernels.log_sigmoid(-z)
    wide = np.flatnonzero(fan_out > 2)
    if wide.size:
        of_wide = offsets(fan_out[wide])
        row = ranges(first[wide], of_wide)
        z = score(np.repeat(item[wide], fan_out[wide]), row).astype(np.float64)
        cost[ranges(start[wide], of_wide)] = -kernels.segment_log_softmax(z, of_wide)
    return cost, start


def _widened(table: Array, width: int, free: float) -> Array:
    """Return a table with at least this many columns, new ones filled with `free`."""
    more = width - table.shape[1]
    if more <= 0:
        return table
    more = max(more, table.shape[1])
    return np.pad(table, ((0, 0), (0, more)), constant_values=free)

"""Many labels drawn for each hidden vector from a hierarchical softmax, a level at a time.

The draws of an item stay together: at each node that some of them reach, their number is split over
its branches. So the first levels cost a few decisions for each item, however many draws there are.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_softmax

from hstree._typing import Array, Float64, Int64
from hstree.layers import kernels
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.tree.weight_rows import NARROW

#: Edges of a tree that some draws take: batch item, edge, number of draws and log-probability of
#: the path to its end, all (G,).
Taken = tuple[Int64, Int64, Int64, Float64]


def draw_labels(
    layer: HierarchicalSoftmax, hidden: Array, k: int, rng: np.random.Generator
) -> tuple[Int64, Float64]:
    """Draw k labels with replacement for each hidden vector.

    O(min(k, nodes of a level) d) a level for each item at binary nodes.

    Parameters
    ----------
    layer : HierarchicalSoftmax
    hidden : float array (B, d)
    k : int
    rng : numpy.random.Generator

    Returns
    -------
    labels : int64 array (B, k)
        In random order.
    log_prob : float64 array (B, k)
        Log-probabilities of the codes drawn: of the labels, where each has one code.
    """
    tree, n_items = layer.tree, len(hidden)
    if tree.n_nodes == 0 or n_items == 0:
        return np.zeros((n_items, k), np.int64), np.zeros((n_items, k))
    # (G,) batch item, current node, number of draws and log-probability of each group of draws
    item, node = np.arange(n_items), np.zeros(n_items, np.int64)
    times, log_prob = np.full(n_items, k), np.zeros(n_items)
    arrived: list[Taken] = []
    while item.size:
        fan_out = tree.fan_out[node]
        taken = [
            _branches(layer, hidden, item[g], node[g], times[g], log_prob[g], rng)
            for g in (np.flatnonzero(fan_out == f) for f in np.unique(fan_out))
        ]
        item, edge, times, log_prob = (np.concatenate(part) for part in zip(*taken, strict=True))
        child = tree.child[edge]
        leaf, inner = np.flatnonzero(child < 0), np.flatnonzero(child >= 0)
        arrived.append((item[leaf], ~child[leaf], times[leaf], log_prob[leaf]))
        item, node, times, log_prob = item[inner], child[inner], times[inner], log_prob[inner]
    item, label, times, log_prob = (np.concatenate(part) for part in zip(*arrived, strict=True))
    # (B, k) groups of each item, in random order
    order = np.argsort(item, kind="stable")
    group = rng.permuted(np.repeat(order, times[order]).reshape(n_items, k), axis=1)
    return label[group], log_prob[group]


def _branches(
    layer: HierarchicalSoftmax,
    hidden: Array,
    item: Int64,
    node: Int64,
    times: Int64,
    log_prob: Float64,
    rng: np.random.Generator,
) -> Taken:
    """Split groups of draws at nodes of one fan-out over their branches."""
    tree = layer.tree
    first, row, width = tree.child_start[node], tree.row_start[node], int(tree.fan_out[node[0]])
    if width == 2:
        z = kernels.gather_dot(layer.weight, layer.bias, hidden, item, row).astype(np.float64)
        left = rng.binomial(times, expit(z))
        # (2 G,) the first branches, then the second ones
        split = np.concatenate([left, times - left])
        branch_log_prob = np.concatenate([kernels.log_sigmoid(z), kernels.log_sigmoid(-z)])
        branch_log_prob += np.tile(log_prob, 2)
        group, edge = np.tile(np.arange(len(item)), 2), np.concatenate([first, first + 1])
        some = np.flatnonzero(split)
        return item[group[some]], edge[some], split[some], branch_log_prob[some]
    # (G, width) log-probabilities of the branches of each group's node
    log_p = log_softmax(_logits(layer, hidden, item, node, row, width), axis=1)
    cumulative = np.cumsum(np.exp(log_p), axis=1)
    cumulative /= cumulative[:, -1:]
    # (draws,) group of each draw, and the index of the branch that it takes among all groups'
    group = np.repeat(np.arange(len(item)), times)
    drawn = group + rng.random(len(group))
    each = (cumulative + np.arange(len(item))[:, None]).ravel()
    index = np.minimum(np.searchsorted(each, drawn, "right"), group * width + width - 1)
    chosen, split = np.unique(index, return_counts=True)
    group, branch = np.divmod(chosen, width)
    return item[group], first[group] + branch, split, log_prob[group] + log_p[group, branch]


def _logits(
    layer: HierarchicalSoftmax, hidden: Array, item: Int64, node: Int64, row: Int64, width: int
) -> Float64:
    """Return the logits of the branches (G, width): by pairs, or node by node for wide ones."""
    if width <= NARROW:
        rows = (row[:, None] + np.arange(width)).ravel()
        items = np.repeat(item, width)
        z = kernels.gather_dot(layer.weight, layer.bias, hidden, items, rows)
        return z.reshape(-1, width).astype(np.float64)
    logits = np.empty((len(item), width))
    order = np.argsort(node, kind="stable")
    starts = np.flatnonzero(np.diff(node[order], prepend=-1))
    for some in np.split(order, starts[1:]):
        node_rows = slice(int(row[some[0]]), int(row[some[0]]) + width)
        logits[some] = hidden[item[some]] @ layer.weight[node_rows].T + layer.bias[node_rows]
    return logits

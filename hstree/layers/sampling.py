"""Sampling: descend the tree from the root, all hidden vectors a level at a time.

Exact for labels with several codes too: a label is drawn with the sum of its codes' probabilities.
"""

from __future__ import annotations

import numpy as np

from hstree._typing import Array, Int64
from hstree.layers import kernels
from hstree.layers.tree_probabilities import TreeProbabilities


def sample(layer: TreeProbabilities, hidden: Array, rng: np.random.Generator) -> Int64:
    """Draw one label for each hidden vector; int64 array (B,).

    O(B d) a level for binary nodes; a node with k children costs its k rows.
    """
    tree = layer.tree
    label = np.zeros(len(hidden), np.int64)
    item = np.arange(len(hidden) if tree.n_nodes else 0)
    node = np.zeros(len(item), np.int64)
    while item.size:
        edge = tree.child_start[node] + _branches(layer, hidden, item, node, rng)
        below = tree.child[edge]
        arrived = below < 0
        label[item[arrived]] = ~below[arrived]
        item, node = item[~arrived], below[~arrived]
    return label


def _branches(
    layer: TreeProbabilities,
    hidden: Array,
    item: Int64,
    node: Int64,
    rng: np.random.Generator,
) -> Int64:
    """Choose a branch at each item's node; one uniform number an item."""
    uniform = rng.random(len(item))
    fan_out = layer.tree.fan_out[node]
    branch = np.zeros(len(item), np.int64)
    binary = np.flatnonzero(fan_out == 2)
    row = layer.tree.row_start[node[binary]]
    z = kernels.gather_dot(layer.weight, layer.bias, hidden, item[binary], row).astype(np.float64)
    branch[binary] = np.log(uniform[binary]) >= kernels.log_sigmoid(z)
    for one in np.flatnonzero(fan_out > 2):
        branch[one] = _wide_branch(layer, hidden[item[one]], int(node[one]), uniform[one])
    return branch


def _wide_branch(layer: TreeProbabilities, hidden: Array, node: int, uniform: float) -> int:
    rows = slice(int(layer.tree.row_start[node]), int(layer.tree.row_start[node + 1]))
    z = (layer.weight[rows] @ hidden + layer.bias[rows]).astype(np.float64)
    cumulative = np.cumsum(np.exp(z - z.max()))
    return min(int(np.searchsorted(cumulative, uniform * cumulative[-1], "right")), len(z) - 1)

"""Samples of a hierarchical softmax: descend the tree, all hidden vectors a level at a time."""

from __future__ import annotations

import numpy as np

from hstree._typing import Array, Int64
from hstree.layers import kernels
from hstree.tree.arrays import TreeArrays


def sample(
    tree: TreeArrays, weight: Array, bias: Array, hidden: Array, rng: np.random.Generator
) -> Int64:
    """Draw one label for each hidden vector; int64 array (B,).

    A label with several codes is drawn with the sum of their probabilities. O(B d) a level for
    binary nodes; O(k d) for an item at a node with k children.

    Parameters
    ----------
    tree : TreeArrays
    weight, bias : float arrays (R, d), (R,)
    hidden : float array (B, d)
    rng : numpy.random.Generator
    """
    label = np.zeros(len(hidden), np.int64)
    # (items,) batch item and current node of those that have not arrived at a label
    item = np.arange(len(hidden) if tree.n_nodes else 0)
    node = np.zeros(len(item), np.int64)
    while item.size:
        branch = np.zeros(len(item), np.int64)
        uniform = rng.random(len(item))
        row, fan_out = tree.row_start[node], tree.fan_out[node]
        binary = np.flatnonzero(fan_out == 2)
        z = kernels.gather_dot(weight, bias, hidden, item[binary], row[binary]).astype(np.float64)
        branch[binary] = np.log(uniform[binary]) >= kernels.log_sigmoid(z)
        for i in np.flatnonzero(fan_out > 2):
            rows = slice(int(row[i]), int(row[i] + fan_out[i]))
            z = (weight[rows] @ hidden[item[i]] + bias[rows]).astype(np.float64)
            cumulative = np.cumsum(np.exp(z - z.max()))
            drawn = np.searchsorted(cumulative, uniform[i] * cumulative[-1], "right")
            branch[i] = min(int(drawn), len(z) - 1)
        child = tree.child[tree.child_start[node] + branch]
        arrived = child < 0
        label[item[arrived]] = ~child[arrived]
        item, node = item[~arrived], child[~arrived]
    return label

"""Initial biases and curvatures of weight rows, computed from counts."""

import numpy as np

from hstree._arrays import Array, Float64, ranges
from hstree.errors import InputError
from hstree.tree.arrays import TreeArrays


def edge_mass(tree: TreeArrays, counts: Array | None) -> Float64:
    """Return the total count of the labels below each edge, a float64 array (E,).

    The count of a label (V,), at least 0.5, is split evenly over its codes. None means a count of 1
    for each label.
    """
    mass = np.ones(tree.n_labels) if counts is None else np.maximum(counts, 0.5)
    return tree.sum_up(mass / np.maximum(tree.codes_per_label, 1))


def unigram_bias(tree: TreeArrays, counts: Array | None) -> Float64:
    """Return the biases (rows,) that make an untrained layer the unigram distribution.

    They are log-odds of the two branches for binary nodes, and log-probabilities of the branches
    for wide nodes, with counts as in `edge_mass`. Raises InputError unless there is one count, zero
    or more, for each label.
    """
    counts = None if counts is None else np.asarray(counts)
    if counts is not None and (counts.shape != (tree.n_labels,) or not (counts >= 0).all()):
        raise InputError(
            f"counts of shape {np.shape(counts)}; the tree has {tree.n_labels} labels, and each "
            "needs one count, zero or more"
        )
    if tree.n_nodes == 0:
        return np.empty(0)
    log_mass = np.log(edge_mass(tree, counts))  # (E,)
    log_total = np.logaddexp.reduceat(log_mass, tree.child_start[:-1])  # (N,)
    edge = ranges(tree.child_start[:-1], tree.row_start)  # (rows,) edge of each row
    is_binary = tree.fan_out[tree.edge_node[edge]] == 2
    other = np.where(is_binary, log_mass[edge + is_binary], log_total[tree.edge_node[edge]])
    bias: Float64 = log_mass[edge] - other
    return bias


def row_curvature(tree: TreeArrays, counts: Array) -> Float64:
    """Return the mean second derivative of the loss with respect to the score of each row (rows,).

    The mean is over items drawn by `counts` (V,), before training. It is the probability of passing
    the node times p (1 - p), where p is the probability of the row's branch at the node. Training
    can only lower the mean of p (1 - p).
    """
    if tree.n_nodes == 0:
        return np.empty(0)
    mass = edge_mass(tree, counts)  # (E,)
    node_mass = np.add.reduceat(mass, tree.child_start[:-1])  # (N,)
    p = mass / node_mass[tree.edge_node]  # (E,) probability of each branch at its node
    edge_curvature: Float64 = mass * (1 - p) / node_mass[0]
    return edge_curvature[ranges(tree.child_start[:-1], tree.row_start)]

"""Counts as probabilities of a tree's branches, by weight row (`Tree.row_start`)."""

from __future__ import annotations

import numpy as np

from hstree._ragged import offsets, ranges
from hstree._typing import Array, Float64, Integer
from hstree.errors import InputError
from hstree.tree.arrays import TreeArrays


def edge_mass(tree: TreeArrays, counts: Array | None) -> Float64:
    """Return a float64 array (E,): the count that lies under each edge.

    A label's count, at least 0.5, is split evenly over its codes; None counts every label as one.
    """
    if counts is None:
        counts = np.ones(tree.n_labels, np.int64)
    return tree.sum_up(np.maximum(counts, 0.5) / np.maximum(tree.codes_per_label, 1))


def unigram_bias(tree: TreeArrays, counts: Integer | None) -> Float64:
    """Return the float64 biases (rows,) that make an untrained layer the unigram distribution.

    Log-odds of the mass under the two branches of a binary node; log-shares at a wide one.

    Raises
    ------
    InputError
        When there is not one count, zero or more, for each label.
    """
    if counts is not None and (np.shape(counts) != (tree.n_labels,) or np.min(counts) < 0):
        raise InputError(
            f"counts of shape {np.shape(counts)}; the tree has {tree.n_labels} labels, and each "
            "wants one count, zero or more"
        )
    log_mass = np.log(edge_mass(tree, counts))
    binary = tree.fan_out == 2
    rows = tree.row_start
    bias = np.empty(rows[-1])
    first = tree.child_start[:-1][binary]
    bias[rows[:-1][binary]] = log_mass[first] - log_mass[first + 1]
    wide = np.flatnonzero(tree.fan_out > 2)
    if wide.size:
        start = offsets(tree.fan_out[wide])
        of_wide = log_mass[ranges(tree.child_start[wide], start)]
        total = np.repeat(np.logaddexp.reduceat(of_wide, start[:-1]), tree.fan_out[wide])
        bias[ranges(rows[wide], start)] = of_wide - total
    return bias


def row_curvature(tree: TreeArrays, counts: Array) -> Float64:
    """Return a float64 array (rows,): the mean curvature of an item's loss along each row.

    By the score z, on average over items drawn by `counts` and before any node vector is known:
    the share of items that pass the node times p (1 - p), p being the share of them that takes
    the row's branch. Whatever the node vectors learn, the mean of p (1 - p) only falls.
    """
    mass = edge_mass(tree, counts)
    rows = tree.row_start
    result = np.empty(rows[-1])
    if not result.size:
        return result
    of_node = np.add.reduceat(mass, tree.child_start[:-1])
    p = mass / of_node[tree.edge_node]
    of_edge = mass * (1 - p) / of_node[0]
    binary = tree.fan_out == 2
    result[rows[:-1][binary]] = of_edge[tree.child_start[:-1][binary]]
    wide = np.flatnonzero(~binary)
    start = offsets(tree.fan_out[wide])
    result[ranges(rows[wide], start)] = of_edge[ranges(tree.child_start[wide], start)]
    return result

"""Classes of words cut from a tree: subtrees that stay whole where they are light enough."""

from __future__ import annotations

import numpy as np

from hstree._typing import Float64, Int64
from hstree.tree import Tree

#: Halvings of the interval that the limit is searched in.
HALVINGS = 40


def cut(tree: Tree, mass: Float64, n_classes: int) -> Int64:
    """Cut a tree of one code per label into at most `n_classes` classes of about the same mass.

    Returns the class (V,) of each label, from 0. A node whose words weigh no more than a limit
    stays whole. Where they weigh more, its children fill classes in their order, each up to the
    limit; the last of these goes on with the parent's other children. The limit is the smallest
    that gives so few classes. O(E) for each halving, and a Python loop over the nodes above it.

    Bottom-up cutting is that of S. Kundu and J. Misra, "A linear tree partitioning algorithm", SIAM
    Journal on Computing 6 (1), 1977, who cut the heaviest children off one by one.
    """
    low, high = 0.0, float(mass.sum())
    best = _cut(tree, mass, np.inf)  # one class, whatever the rounding of sums
    for _ in range(HALVINGS):
        limit = (low + high) / 2
        found = _cut(tree, mass, limit)
        if found.max(initial=0) < n_classes:
            best, high = found, limit
        else:
            low = limit
    return best


def _cut(tree: Tree, mass: Float64, limit: float) -> Int64:
    """Return the class (V,) of each label for one limit."""
    if tree.n_nodes == 0:
        return np.zeros(tree.n_labels, np.int64)
    # (E,) mass that goes on with the parent, and the class that an edge's words end in, or -1
    weight, ended = mass[~np.minimum(tree.child, -1)], np.full(len(tree.child), -1)
    n_classes = 1  # the first is that of what is left at the root
    for level in reversed(tree.levels):
        total = np.add.reduceat(weight[level.edge_index], level.edge_start[:-1])
        for node in level.nodes[total > limit].tolist():
            edges = np.arange(tree.child_start[node], tree.child_start[node + 1])
            groups = _filled(weight[edges], limit)
            last = groups[-1]
            ended[edges] = np.where(groups == last, -1, n_classes + groups)
            n_classes += int(last)
            total[np.searchsorted(level.nodes, node)] = weight[edges[groups == last]].sum()
        edge = tree.node_edge[level.nodes]
        weight[edge[edge >= 0]] = total[edge >= 0]
    for level in tree.levels:
        goes_on = level.edges[ended[level.edges] < 0]
        above = tree.parent_edge[goes_on]
        ended[goes_on] = np.where(above < 0, 0, ended[above])
    of_label = np.empty(tree.n_labels, np.int64)
    is_leaf = tree.child < 0
    of_label[~tree.child[is_leaf]] = ended[is_leaf]
    return of_label


def _filled(weight: Float64, limit: float) -> Int64:
    """Return the group (n,) of each of a sequence of weights: groups are filled up to the limit."""
    groups, group, filled = [], 0, 0.0
    for one in weight.tolist():
        if filled > 0 and filled + one > limit:
            group, filled = group + 1, 0.0
        filled += one
        groups.append(group)
    return np.array(groups)

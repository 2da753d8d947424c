"""Order of a tree's nodes: renumbering, parents before children, sums along paths to the root."""

from __future__ import annotations

import numpy as np

from hstree._ragged import offsets, ranges, segment_ids
from hstree._typing import Array, Int64


def reorder(child_start: Int64, child: Int64, order: Int64) -> tuple[Int64, Int64, Int64]:
    """Renumber nodes: node ``order[i]`` becomes node i, others are left out.

    The children of nodes kept must be among them. Returns the new `child_start` and `child`, and
    the new number (N,) of each node kept.
    """
    number = np.zeros(len(child_start) - 1, np.int64)
    number[order] = np.arange(len(order))
    start = offsets(np.diff(child_start)[order])
    child = child[ranges(child_start[order], start)]
    inner = child >= 0
    child[inner] = number[child[inner]]
    return start, child, number


def parents_first(child_start: Int64, child: Int64, root: int) -> Int64:
    """Return the nodes under `root`: as they are, if each follows its parent; else by level."""
    parent, is_node = segment_ids(child_start), child >= 0
    if np.all(parent[is_node] < child[is_node]):
        return np.arange(len(child_start) - 1)
    return by_level(child_start, child, root)


def by_level(child_start: Int64, child: Int64, root: int) -> Int64:
    """Return the nodes under `root` in breadth-first order."""
    # scipy takes a while to import, and reading a tree does not need it.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    is_node, n_nodes = child >= 0, len(child_start) - 1
    indptr = offsets(is_node.astype(np.int64))[child_start]
    edges = np.ones(indptr[-1], np.int8), child[is_node], indptr
    graph = csr_array(edges, shape=(n_nodes, n_nodes))
    return breadth_first_order(graph, root, return_predecessors=False).astype(np.int64)


def sum_to_root(value: Array, parent: Int64) -> Array:
    """Sum a value of the nodes (N,) over each node and all nodes above it; -1 is no parent.

    By pointer doubling: O(N log depth), so that a chain is no slower than a balanced tree.
    """
    # After k rounds, total is the sum over 2**k nodes up from each; jump is the node after them
    total, jump = np.array(value), np.array(parent)
    while (alive := np.flatnonzero(jump >= 0)).size:
        above = jump[alive]
        total[alive] += total[above]
        jump[alive] = jump[above]
    return total

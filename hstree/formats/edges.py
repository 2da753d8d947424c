"""Trees from lists of edges, for formats that name the parent and the child of each edge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from hstree._ragged import offsets, ranges
from hstree._typing import Bool, Int64
from hstree.errors import InputError


@dataclass(frozen=True)
class EdgeTree:
    """Children of nodes as in `Tree`, and the items that became nodes and labels."""

    child_start: Int64
    child: Int64
    nodes: Int64  #: (N,), item of each inner node
    leaves: Int64  #: (V,), item of each label, ascending


def from_edges(parent: Int64, child: Int64, n_items: int, name: Callable[[int], str]) -> EdgeTree:
    """Number the nodes and labels of a tree of edges from `parent` to `child` (E,) in O(E log E).

    These are items from 0 to `n_items` - 1, of which `name` gives the name for messages. An item
    without children is a label; it may have several parents. Children of an item are in the order
    of its edges. Inner nodes keep the order of their items if that puts each after its parent, else
    they are numbered level by level.

    Raises InputError when there is not exactly one root, an inner node has several parents or one
    child, or edges form a cycle.
    """
    is_node = np.zeros(n_items, bool)
    is_node[parent] = True
    leaves = np.flatnonzero(~is_node)
    n_parents = np.bincount(child, minlength=n_items)
    roots = np.flatnonzero(n_parents == 0)
    if len(roots) != 1:
        names = ", ".join(name(int(item)) for item in roots[:3])
        more = f" and {len(roots) - 3} more" if len(roots) > 3 else ""
        what = f"{names}{more} have no parent" if len(roots) else "every node has a parent"
        raise InputError(f"{what}; a tree has one root")
    if np.any(is_node & (n_parents > 1)):
        item = int(np.argmax(is_node & (n_parents > 1)))
        raise InputError(f"the node {name(item)} has {n_parents[item]} parents; it can have one")
    order = np.argsort(parent, kind="stable")  # edges grouped by parent
    n_children = np.bincount(parent, minlength=n_items)
    if np.any(n_children == 1):
        item = int(np.argmax(n_children == 1))
        raise InputError(
            f"the node {name(item)} has one child, which decides nothing; leave the node out"
        )
    nodes = _parents_first(parent[order], child[order], is_node, int(roots[0]))
    if len(nodes) < np.count_nonzero(is_node):
        is_lost = is_node.copy()
        is_lost[nodes] = False
        item = int(np.argmax(is_lost))
        raise InputError(f"the node {name(item)} is not under the root; its links form a cycle")

    # (n_items,) number of each item as in `Tree.child`
    number = np.empty(n_items, np.int64)
    number[nodes] = np.arange(len(nodes))
    number[leaves] = ~np.arange(len(leaves))
    start = offsets(n_children[nodes])
    first = offsets(n_children)[nodes]  # first edge of each node in `order`
    return EdgeTree(start, number[child[order][ranges(first, start)]], nodes, leaves)


def _parents_first(parent: Int64, child: Int64, is_node: Bool, root: int) -> Int64:
    """Return the inner nodes under the root, each after its parent; edges sorted by parent."""
    inner = is_node[child]
    if np.all(parent[inner] < child[inner]):
        return np.flatnonzero(is_node)
    n_items = len(is_node)
    indptr = offsets(np.bincount(parent[inner], minlength=n_items))
    graph = csr_array(
        (np.ones(indptr[-1], np.int8), child[inner], indptr), shape=(n_items, n_items)
    )
    return breadth_first_order(graph, root, return_predecessors=False).astype(np.int64)

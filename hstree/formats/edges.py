"""Trees from lists of edges, for formats that name the parent and the child of each edge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hstree._ragged import offsets
from hstree._typing import Int64
from hstree.errors import InputError
from hstree.tree.order import parents_first, reorder


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
    nodes, leaves = np.flatnonzero(is_node), np.flatnonzero(~is_node)
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
    n_children = np.bincount(parent, minlength=n_items)
    if np.any(n_children == 1):
        item = int(np.argmax(n_children == 1))
        raise InputError(
            f"the node {name(item)} has one child, which decides nothing; leave the node out"
        )
    # (n_items,) number of each item as in `Tree.child`
    number = np.empty(n_items, np.int64)
    number[nodes] = np.arange(len(nodes))
    number[leaves] = ~np.arange(len(leaves))
    start = offsets(n_children[nodes])
    child = number[child[np.argsort(parent, kind="stable")]]  # (E,) grouped by parent
    root = int(number[roots[0]])
    order = parents_first(start, child, root) if root >= 0 else nodes[:0]
    if len(order) < len(nodes):
        item = int(np.delete(nodes, order)[0])
        raise InputError(f"the node {name(item)} is not under the root; its links form a cycle")
    start, child, _ = reorder(start, child, order)
    return EdgeTree(start, child, nodes[order], leaves)

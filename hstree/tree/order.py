"""Order of nodes: trees from edges, parents before children, and sums along paths."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hstree._arrays import Array, Int64, Integer, offsets, ranges, segment_ids
from hstree.errors import InputError


def reorder(child_start: Int64, child: Int64, order: Int64) -> tuple[Int64, Int64, Int64]:
    """Renumber nodes: node ``order[i]`` becomes node i, and other nodes are left out.

    The child nodes of these nodes must be among them. Returns the new `child_start` and `child`,
    and the new number (N,) of each node.
    """
    number = np.zeros(len(child_start) - 1, np.int64)
    number[order] = np.arange(len(order))
    start = offsets(np.diff(child_start)[order])
    child = child[ranges(child_start[order], start)]
    inner = child >= 0
    child[inner] = number[child[inner]]
    return start, child, number


def by_level(child_start: Int64, child: Int64, root: int) -> Int64:
    """Return the nodes under `root` in breadth-first order."""
    # Importing SciPy is slow, and reading a tree does not need it
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    is_node = child >= 0
    n_nodes = len(child_start) - 1
    indptr = offsets(is_node.astype(np.int64))[child_start]
    edges = np.ones(indptr[-1], np.int8), child[is_node], indptr
    graph = csr_array(edges, shape=(n_nodes, n_nodes))
    return breadth_first_order(graph, root, return_predecessors=False).astype(np.int64)


class EdgeTree(NamedTuple):
    """Children of nodes, as in `Tree`, and the items that became nodes and labels."""

    child_start: Int64
    child: Int64
    nodes: Int64  #: (N,), item of each inner node
    leaves: Int64  #: (V,), item of each label, ascending


def from_edges(parent: Int64, child: Int64, n_items: int, name: Callable[[int], str]) -> EdgeTree:
    """Make a tree from edges that lead from `parent` to `child` (E,), in O(E log E).

    Parents and children are items from 0 to `n_items` - 1; `name` returns the name of an item for
    messages. An item without children is a label; it may have several parents. Children of an item
    are in the order of its edges. Inner nodes keep the order of their items if parents come first;
    otherwise, they are numbered level by level.

    Raises InputError when there is not exactly one root, when an inner node has several parents or
    only one child, or when edges form a cycle.
    """
    is_node = np.zeros(n_items, bool)
    is_node[parent] = True
    nodes = np.flatnonzero(is_node)
    leaves = np.flatnonzero(~is_node)

    # Check that there is one root, and that inner nodes have one parent and at least two children
    n_parents = np.bincount(child, minlength=n_items)
    roots = np.flatnonzero(n_parents == 0)
    if len(roots) != 1:
        names = ", ".join(name(int(item)) for item in roots[:3])
        more = f" and {len(roots) - 3} more" if len(roots) > 3 else ""
        what = f"{names}{more} have no parent" if len(roots) else "every node has a parent"
        raise InputError(f"{what}; a tree has one root, so give exactly one")
    if np.any(is_node & (n_parents > 1)):
        item = int(np.argmax(is_node & (n_parents > 1)))
        raise InputError(f"the node {name(item)} has {n_parents[item]} parents; give it only one")
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

    # Keep the order of nodes if parents come first, else go level by level, which misses cycles
    root = int(number[roots[0]])
    is_inner = child >= 0
    if root < 0:
        order = nodes[:0]
    elif np.all(segment_ids(start)[is_inner] < child[is_inner]):
        order = np.arange(len(nodes))
    else:
        order = by_level(start, child, root)
    if len(order) < len(nodes):
        item = int(np.delete(nodes, order)[0])
        raise InputError(f"the node {name(item)} is not under the root; its links form a cycle")
    start, child, _ = reorder(start, child, order)
    return EdgeTree(start, child, nodes[order], leaves)


def sum_to_root(value: Array, parent: Integer) -> Array:
    """Return the sum (N,) of a value over each node and all nodes above it; -1 means no parent.

    O(N log depth) by pointer doubling, so that a chain is almost as fast as a balanced tree.
    """
    total = np.array(value)
    # After k rounds, total is the sum over 2**k nodes upwards, and jump is the node above these
    jump = np.array(parent)
    while (alive := np.flatnonzero(jump >= 0)).size:
        above = jump[alive]
        total[alive] += total[above]
        jump[alive] = jump[above]
    return total

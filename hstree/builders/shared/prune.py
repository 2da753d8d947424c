"""Removal of labels and of nodes without a choice."""

from collections.abc import Iterable, Sequence

import numpy as np

from hstree._ragged import offsets
from hstree._typing import Int64
from hstree.tree import Tree
from hstree.tree.order import reorder

#: Child of an edge that is left out.
GONE = int(np.iinfo(np.int64).min)


def pruned(tree: Tree, labels: Sequence[str]) -> Tree:
    """Remove all labels but these, and the nodes that then have one child or none.

    Labels, nodes and children keep their order, and nodes their names; a label that would occur
    twice under a node remains once. A tree that would keep all labels or none is returned as it is.
    """
    wanted = set(labels)
    kept = np.array([label in wanted for label in tree.labels])
    if kept.all() or not kept.any():
        return tree
    removed = np.zeros(len(tree.child), bool)
    is_leaf = tree.child < 0
    removed[is_leaf] = ~kept[~tree.child[is_leaf]]
    levels = [level.edges for level in reversed(tree.levels)]
    child = collapse(tree.edge_node, np.where(removed, GONE, tree.child), levels)
    left = child != GONE
    fan_out = np.bincount(tree.edge_node[left], minlength=tree.n_nodes)
    nodes = np.flatnonzero(fan_out)
    start, child, _ = reorder(offsets(fan_out), child[left], nodes)
    label_number = np.cumsum(kept) - 1
    is_leaf = child < 0
    child[is_leaf] = ~label_number[~child[is_leaf]]
    labels = [label for label in tree.labels if label in wanted]
    counts = None if tree.counts is None else tree.counts[kept]
    names = None if tree.names is None else [tree.names[n] for n in nodes.tolist()]
    return Tree(labels, start, child, counts=counts, names=names, meta=tree.meta)


def collapse(node: Int64, child: Int64, levels: Iterable[Int64]) -> Int64:
    """Leave out nodes with one child or none, and return the new `child`, `GONE` for no child.

    Edges (E,) lead from `node` to `child`, a node, ``~label`` or `GONE`; `levels` are the edges
    that leave each level, the deepest first. A node with one child is replaced by that child; of
    equal children of a node the first remains.
    """
    child = child.copy()
    replacement = np.full(max(node.max(), child.max()) + 1, GONE)  # (N,) of each node
    for edges in levels:
        inner = edges[child[edges] >= 0]
        child[inner] = replacement[child[inner]]
        # (2, children) distinct children of each node, and their edges
        pairs, first = np.unique(np.stack([node[edges], child[edges]]), axis=1, return_index=True)
        left = pairs[1] != GONE
        pairs, first = pairs[:, left], first[left]
        head = np.flatnonzero(np.diff(pairs[0], prepend=-1))
        size = np.diff(head, append=pairs.shape[1])
        replacement[pairs[0, head]] = np.where(size > 1, pairs[0, head], pairs[1, head])
        dropped = np.ones(len(edges), bool)
        dropped[first[np.repeat(size > 1, size)]] = False
        child[edges[dropped]] = GONE
    return child

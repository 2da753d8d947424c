"""Removal of labels and of nodes without a choice."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from hstree._arrays import Bool, Int64, offsets
from hstree.tree import Tree
from hstree.tree.content import COLLAPSED
from hstree.tree.hierarchy import Hierarchy
from hstree.tree.order import reorder

#: Child of an edge that is left out.
GONE = int(np.iinfo(np.int64).min)


def pruned(tree: Tree, labels: Iterable[str]) -> Tree:
    """Remove all labels but these, and the nodes that then have one child or none.

    Labels, nodes and children keep their order, and nodes their names; a label that would occur
    twice under a node remains once. A tree that would keep all labels or none is returned as it is.
    A taxonomy's tree keeps the names of what is left out (`hstree.tree.hierarchy`).
    """
    wanted = set(labels)
    kept = np.array([label in wanted for label in tree.labels])
    if kept.all() or not kept.any():
        return tree
    left = remainder(tree, kept)
    child, label_number = left.child.copy(), np.cumsum(kept) - 1
    is_leaf = child < 0
    child[is_leaf] = ~label_number[~child[is_leaf]]
    counts = None if tree.counts is None else tree.counts[kept]
    names = None if tree.names is None else [tree.names[n] for n in left.nodes.tolist()]
    labels = [label for label in tree.labels if label in wanted]
    meta = tree.meta
    if COLLAPSED in meta:
        meta = meta | {COLLAPSED: _collapsed(tree, left.nodes, np.flatnonzero(kept))}
    return Tree(labels, left.child_start, child, counts=counts, names=names, meta=meta)


def _collapsed(tree: Tree, nodes: Int64, labels: Int64) -> list[list[Any]]:
    """List what `collapsed` holds when these nodes and labels of a taxonomy's tree are left."""
    levels = Hierarchy(tree)
    item = levels.last[np.r_[nodes, tree.n_nodes + labels]]
    code = np.r_[np.arange(len(nodes)), ~np.arange(len(labels))]
    is_left = np.zeros(len(levels.parent) + 1, bool)
    is_left[item] = is_left[-1] = True  # the last one stands for the parent of the root
    chains = []
    for at in np.flatnonzero(~is_left[levels.parent[item]]).tolist():
        above, chain = int(levels.parent[item[at]]), list[str | None]()
        while not is_left[above]:
            chain.append(levels.given_names[above])
            above = int(levels.parent[above])
        chains.append([int(code[at]), *reversed(chain)])
    return chains


class Remainder(NamedTuple):
    """What is left of a tree's nodes and edges without some labels."""

    child_start: Int64  #: as in `Tree`
    child: Int64  #: as in `Tree`, with the label ids of the whole tree
    nodes: Int64  #: (n,) number of each node in the whole tree, ascending
    edges: Int64  #: (e,) that of each edge, ascending


def remainder(tree: Tree, kept: Bool) -> Remainder:
    """Return what is left of a tree with the labels of a mask (V,); see `pruned`."""
    if kept.all():
        edges = np.arange(len(tree.child))
        return Remainder(tree.child_start, tree.child, np.arange(tree.n_nodes), edges)
    removed = np.zeros(len(tree.child), bool)
    is_leaf = tree.child < 0
    removed[is_leaf] = ~kept[~tree.child[is_leaf]]
    levels = [level.edges for level in reversed(tree.levels)]
    child = collapse(tree.edge_node, np.where(removed, GONE, tree.child), levels)
    edges = np.flatnonzero(child != GONE)
    fan_out = np.bincount(tree.edge_node[edges], minlength=tree.n_nodes)
    nodes = np.flatnonzero(fan_out)
    start, child, _ = reorder(offsets(fan_out), child[edges], nodes)
    return Remainder(start, child, nodes, edges)


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

"""Removal of labels from a tree, and of nodes that no longer have two children."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from hstree._arrays import Bool, Int64, offsets
from hstree._text import quoted
from hstree.data.arrays import as_words
from hstree.errors import InputError
from hstree.tree import Tree
from hstree.tree.content import COLLAPSED
from hstree.tree.hierarchy import Hierarchy
from hstree.tree.order import reorder

#: Child of a removed edge.
GONE = int(np.iinfo(np.int64).min)


def prune(tree: Tree, labels: Iterable[str]) -> Tree:
    """Return a tree with only these labels, without nodes that then have fewer than two children.

    The order of `labels`, which may be a set, has no effect. Labels, nodes and children keep their
    order, and nodes keep their names. If a label would be a child of the same node twice, one of
    the two remains. For the weight rows, see `carried_rows`. Raises InputError when a label is not
    in the tree, or when `labels` is empty.

    Examples
    --------
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
    >>> prune(tree, ["c", "a"]).child.tolist()
    [-1, -2]
    """
    labels = as_words(list(labels) if isinstance(labels, set | frozenset) else labels)
    if not labels:
        raise InputError("there are no labels to keep; give one label or more of the tree")
    if unknown := set(labels).difference(tree.labels):
        raise InputError(
            f"{quoted(min(unknown))} is not a label of the tree; give only labels of the tree"
        )
    return keep_labels(tree, labels)


def keep_labels(tree: Tree, labels: Iterable[str]) -> Tree:
    """Remove all labels except these, as `prune` does; ignore labels that are not in the tree.

    If all labels or none would stay, the tree is returned unchanged. A tree made from a taxonomy
    keeps the names of removed nodes (`hstree.tree.hierarchy`).
    """
    wanted = set(labels)
    is_kept = np.array([label in wanted for label in tree.labels])
    if is_kept.all() or not is_kept.any():
        return tree
    rest = remainder(tree, is_kept)

    # Renumber the labels
    child = rest.child.copy()
    label_number = np.cumsum(is_kept) - 1
    is_leaf = child < 0
    child[is_leaf] = ~label_number[~child[is_leaf]]

    meta = tree.meta
    if COLLAPSED in meta:
        collapsed = _collapsed_chains(tree, rest.nodes, np.flatnonzero(is_kept))
        meta = meta | {COLLAPSED: collapsed}
    return Tree(
        [label for label in tree.labels if label in wanted],
        rest.child_start,
        child,
        counts=None if tree.counts is None else tree.counts[is_kept],
        names=None if tree.names is None else [tree.names[n] for n in rest.nodes.tolist()],
        meta=meta,
    )


def _collapsed_chains(tree: Tree, nodes: Int64, labels: Int64) -> list[list[Any]]:
    """Return the meta entry `COLLAPSED` of a taxonomy's tree that keeps these nodes and labels.

    The entry lists chains of names that are no longer nodes. Each chain begins with the node or
    ``~label`` below the names; the names follow from the topmost downwards.
    """
    levels = Hierarchy(tree)
    item = levels.last[np.r_[nodes, tree.n_nodes + labels]]
    code = np.r_[np.arange(len(nodes)), ~np.arange(len(labels))]
    is_left = np.zeros(len(levels.parent) + 1, bool)
    is_left[item] = True
    is_left[-1] = True  # the parent of the root has number -1
    chains = []
    for i in np.flatnonzero(~is_left[levels.parent[item]]).tolist():
        chain = list[str | None]()
        above = int(levels.parent[item[i]])
        while not is_left[above]:
            chain.append(levels.given_names[above])
            above = int(levels.parent[above])
        chains.append([int(code[i]), *reversed(chain)])
    return chains


class Remainder(NamedTuple):
    """Nodes and edges that remain when some labels of a tree are removed."""

    child_start: Int64  #: as in `Tree`
    child: Int64  #: as in `Tree`, with the label ids of the original tree
    nodes: Int64  #: (n,) number of each node in the original tree, ascending
    edges: Int64  #: (e,) number of each edge in the original tree, ascending


def remainder(tree: Tree, is_kept: Bool) -> Remainder:
    """Return the nodes and edges that remain when a tree keeps the labels in a mask (V,)."""
    if is_kept.all():
        edges = np.arange(len(tree.child))
        return Remainder(tree.child_start, tree.child, np.arange(tree.n_nodes), edges)

    # Remove edges to labels that are not kept, then edges to nodes without a decision
    is_removed = np.zeros(len(tree.child), bool)
    is_leaf = tree.child < 0
    is_removed[is_leaf] = ~is_kept[~tree.child[is_leaf]]
    levels = [level.edges for level in reversed(tree.levels)]
    child = collapse(tree.edge_node, np.where(is_removed, GONE, tree.child), levels)

    # Number the remaining nodes, parents before children
    edges = np.flatnonzero(child != GONE)
    fan_out = np.bincount(tree.edge_node[edges], minlength=tree.n_nodes)
    nodes = np.flatnonzero(fan_out)
    start, child, _ = reorder(offsets(fan_out), child[edges], nodes)
    return Remainder(start, child, nodes, edges)


def collapse(node: Int64, child: Int64, levels: Iterable[Int64]) -> Int64:
    """Remove nodes with fewer than two children; return the new `child`, `GONE` for no child.

    Edges (E,) lead from `node` to `child`: a node, ``~label`` or `GONE`. `levels` holds the edges
    that leave each level, the deepest first. A node with one child is replaced by that child. If
    children of a node are equal, the first remains.
    """
    child = child.copy()
    replacement = np.full(max(node.max(), child.max()) + 1, GONE)  # (N,) replacement of each node
    for edges in levels:
        # The nodes below have already been replaced
        inner = edges[child[edges] >= 0]
        child[inner] = replacement[child[inner]]

        # (2, children) node and child of each distinct child, and (children,) their edges
        pairs, first = np.unique(np.stack([node[edges], child[edges]]), axis=1, return_index=True)
        is_left = pairs[1] != GONE
        pairs = pairs[:, is_left]
        first = first[is_left]

        # A node with several children remains; a node with one child is replaced by that child
        head = np.flatnonzero(np.diff(pairs[0], prepend=-1))
        size = np.diff(head, append=pairs.shape[1])
        replacement[pairs[0, head]] = np.where(size > 1, pairs[0, head], pairs[1, head])
        is_dropped = np.ones(len(edges), bool)
        is_dropped[first[np.repeat(size > 1, size)]] = False
        child[edges[is_dropped]] = GONE
    return child

"""Labels of a tree by name: their codes, and the labels that share nodes with them."""

from itertools import chain

import numpy as np

from hstree._ragged import offsets, ranges
from hstree.errors import InputError
from hstree.tree.arrays import TreeArrays


def codes_of(tree: TreeArrays, label: str) -> list[list[tuple[int, int]]]:
    """Return all codes of a label as lists of (node, branch) pairs, from the root down.

    Raises InputError when the tree has no such label.

    Examples
    --------
    >>> from hstree import Tree
    >>> tree = Tree.from_children(["a", "b"], [[~0, ~1]])
    >>> tree.codes("b")
    [[(0, 1)]]
    """
    node, branch = tree.edge_node, tree.edge_branch
    return [
        [(int(node[edge]), int(branch[edge])) for edge in reversed(_path(tree, int(leaf)))]
        for leaf in np.flatnonzero(tree.child == ~tree.label_id(label))
    ]


def code_of(tree: TreeArrays, label: str) -> list[tuple[int, int]]:
    """Return the code of a label: the nodes that decide on it, and the branch taken at each.

    Raises InputError when the tree has no such label, or the label has several codes.

    Examples
    --------
    >>> from hstree import Tree
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
    >>> tree.code("c")
    [(0, 1), (1, 1)]
    """
    codes = codes_of(tree, label)
    if len(codes) > 1:
        raise InputError(f"{label!r} has {len(codes)} codes; tree.codes({label!r}) lists them")
    return codes[0] if codes else []


def neighbours_of(tree: TreeArrays, label: str, k: int = 10) -> list[str]:
    """Return the k labels that share the deepest nodes with a label, nearest first.

    Labels that share a node of the same depth are ordered by the number of decisions below it,
    fewest first; ties are in the order of the children. Raises InputError when the tree has no such
    label.

    Examples
    --------
    >>> from hstree import Tree
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
    >>> tree.neighbours("c")
    ['b', 'a']
    """
    own = tree.label_id(label)
    paths = [_path(tree, int(leaf)) for leaf in np.flatnonzero(tree.child == ~own)]
    # The edges towards the label, those at the deepest nodes first
    edges = sorted(chain(*paths), key=lambda edge: -int(tree.depth[tree.edge_node[edge]]))
    near: dict[int, None] = {own: None}
    for edge in dict.fromkeys(edges):
        nodes = tree.edge_node[[edge]]
        while nodes.size and len(near) <= k:  # level by level below the node
            edges_below = ranges(tree.child_start[nodes], offsets(tree.fan_out[nodes]))
            below = tree.child[edges_below]
            near |= dict.fromkeys((~below[below < 0]).tolist())
            nodes = below[(below >= 0) & (below != tree.child[edge])]
        if len(near) > k:
            break
    return [tree.labels[i] for i in list(near)[1 : k + 1]]


def _path(tree: TreeArrays, edge: int) -> list[int]:
    """Return an edge and those before it, up to the root."""
    path = []
    while edge >= 0:
        path.append(edge)
        edge = int(tree.parent_edge[edge])
    return path

"""Joining trees: side by side under a new root, or in place of the leaves of a tree."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hstree._arrays import offsets
from hstree.tree import Tree
from hstree.tree.row_numbers import RowNumbers


def join_under_root(
    trees: Sequence[Tree], labels: Sequence[str], *, counts: ArrayLike | None = None
) -> Tree:
    """Join trees side by side under a new root.

    Parameters
    ----------
    trees : sequence of Tree
        At least one. A label may be in several of them; it then has codes in each.
    labels : sequence of str, length V
        Labels of the result: the union of the labels of the trees, in any order.
    counts : array_like of int, shape (V,), optional

    Returns
    -------
    Tree
        The children of its root are the roots of the trees, in order; a tree of one label is that
        label, which occurs once. With one child there is no new root. Nodes keep their order and
        names; meta is not kept. O(V + E).

    Raises
    ------
    TreeError
        When a label is in no tree.
    KeyError
        When a tree has a label that is not among `labels`.

    Examples
    --------
    >>> pair = Tree.from_children(["a", "b"], [[~0, ~1]])
    >>> join_under_root([pair, Tree(["c"], [0], [])], ["c", "b", "a"]).child.tolist()
    [1, -1, -3, -2]
    """
    # A tree without a node is its label, which occurs once.
    distinct = {tree.labels[0] if tree.n_nodes == 0 else i: tree for i, tree in enumerate(trees)}
    n = len(distinct)
    start = [0, n] if n > 1 else [0]
    top = Tree(RowNumbers(n), start, ~np.arange(n if n > 1 else 0))
    return graft(top, list(distinct.values()), labels, counts=counts)


def graft(
    top: Tree, trees: Sequence[Tree], labels: Sequence[str], *, counts: ArrayLike | None = None
) -> Tree:
    """Replace label i of a tree by tree i, or by its label where that has no node.

    The nodes are those of `top`, then those of each tree, with their names. Labels, counts and
    errors are those of `join_under_root`.
    """
    labels = labels if isinstance(labels, RowNumbers) else tuple(labels)
    number_by_label: dict[str, int] = {}
    names = list(top.names or [None] * top.n_nodes)
    root = np.empty(len(trees), np.int64)  # root of each tree, a node or a label
    fan_outs = [top.fan_out]
    children = []
    for i, tree in enumerate(trees):
        # (labels of the tree,) their numbers in the result
        if tree.labels == labels:
            label_number = np.arange(len(labels))
        else:
            number_by_label = number_by_label or {label: i for i, label in enumerate(labels)}
            label_number = np.array([number_by_label[label] for label in tree.labels], np.int64)
        first_node = len(names)
        root[i] = first_node if tree.n_nodes else ~label_number[0]
        leaf = ~label_number[~np.minimum(tree.child, -1)]  # (E,) of no meaning at inner nodes
        children.append(np.where(tree.child < 0, leaf, tree.child + first_node))
        fan_outs.append(tree.fan_out)
        names += tree.names or [None] * tree.n_nodes
    top_child = np.where(top.child < 0, root[~np.minimum(top.child, -1)], top.child)
    start = offsets(np.concatenate(fan_outs))
    return Tree(labels, start, np.concatenate([top_child, *children]), counts=counts, names=names)


def with_name(tree: Tree, name: str) -> Tree:
    """Return a tree whose root alone has a name; one without a node as it is."""
    names = [name] + [None] * (tree.n_nodes - 1) if tree.n_nodes else None
    return Tree(tree.labels, tree.child_start, tree.child, counts=tree.counts, names=names)

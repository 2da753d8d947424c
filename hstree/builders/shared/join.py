"""Functions that join trees: side by side under a new root, or in place of a tree's leaves."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hstree._arrays import Int64, offsets
from hstree.tree import Tree
from hstree.tree.row_numbers import RowNumbers


def join_under_root(
    trees: Sequence[Tree], labels: Sequence[str], *, counts: ArrayLike | None = None
) -> Tree:
    """Join trees side by side under a new root.

    Parameters
    ----------
    trees : sequence of Tree
        At least one tree. A label may occur in several trees; it then has codes in each of them.
    labels : sequence of str, length V
        Labels of the result: all labels of the trees, in any order.
    counts : array_like of int, shape (V,), optional

    Returns
    -------
    Tree
        The children of the root are the roots of the trees, in order. A tree with one label becomes
        a leaf, once per label. With one child, there is no new root. Nodes keep their order and
        names; meta is not kept. O(V + E).

    Raises
    ------
    TreeError
        When a label does not occur in any tree.
    KeyError
        When a tree has a label that is not among `labels`.

    Examples
    --------
    >>> pair = Tree.from_children(["a", "b"], [[~0, ~1]])
    >>> join_under_root([pair, Tree(["c"], [0], [])], ["c", "b", "a"]).child.tolist()
    [1, -1, -3, -2]
    """
    # Trees without a node are leaves, and each label has at most one such leaf
    distinct = {tree.labels[0] if tree.n_nodes == 0 else i: tree for i, tree in enumerate(trees)}
    n = len(distinct)
    start = [0, n] if n > 1 else [0]
    top = Tree(RowNumbers(n), start, ~np.arange(n if n > 1 else 0))
    return graft(top, list(distinct.values()), labels, counts=counts)


def graft(
    top: Tree, trees: Sequence[Tree], labels: Sequence[str], *, counts: ArrayLike | None = None
) -> Tree:
    """Replace label i of a tree by tree i, or by the label of tree i if that has no node.

    The result has the nodes of `top`, then the nodes of each tree, with their names. Labels, counts
    and errors are as in `join_under_root`.
    """
    labels = labels if isinstance(labels, RowNumbers) else tuple(labels)
    number_by_label: dict[str, int] = {}
    names = list(top.names or [None] * top.n_nodes)
    label_numbers = []  # for each tree, numbers of its labels in the result
    for tree in trees:
        if tree.labels == labels:
            label_numbers.append(np.arange(len(labels)))
        else:
            number_by_label = number_by_label or {label: i for i, label in enumerate(labels)}
            numbers = [number_by_label[label] for label in tree.labels]
            label_numbers.append(np.array(numbers, np.int64))
        names += tree.names or [None] * tree.n_nodes
    start, child = graft_nodes(top, trees, label_numbers)
    return Tree(labels, start, child, counts=counts, names=names)


def graft_nodes(top: Any, trees: Sequence[Any], labels: Sequence[Int64]) -> tuple[Int64, Int64]:
    """Replace label i of a tree by tree i; return `child_start` and `child` of the result.

    `top` and `trees` have these two arrays; `labels` holds, for each tree, the numbers of its
    labels in the result.
    """
    all_trees = [top, *trees]
    # Number of the first node of each tree in the result, after the nodes of `top`
    first_node = offsets(np.array([len(tree.child_start) - 1 for tree in all_trees]))[1:]
    # The root of each tree, or the only label of a tree without a node
    root = np.empty(len(trees), np.int64)
    # Children of each tree, with labels and nodes numbered as in the result
    children = []
    for i, (tree, number) in enumerate(zip(trees, labels, strict=True)):
        root[i] = first_node[i] if len(tree.child) else ~number[0]
        leaf = ~number[~np.minimum(tree.child, -1)]  # (E,) without meaning at inner nodes
        children.append(np.where(tree.child < 0, leaf, tree.child + first_node[i]))
    top_child = np.where(top.child < 0, root[~np.minimum(top.child, -1)], top.child)
    fan_out = np.concatenate([np.diff(tree.child_start) for tree in all_trees])
    return offsets(fan_out), np.concatenate([top_child, *children])


def with_name(tree: Tree, name: str) -> Tree:
    """Name the root of a tree, and remove all other names. A tree without a node has no names."""
    names = [name] + [None] * (tree.n_nodes - 1) if tree.n_nodes else None
    return Tree(tree.labels, tree.child_start, tree.child, counts=tree.counts, names=names)

"""From paths to labels back to a tree, whoever numbered its nodes; the inverse of `paths`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hstree._typing import Int64
from hstree.errors import InputError
from hstree.tree.tree import Tree


def tree_of_paths(
    labels: Sequence[str],
    start: ArrayLike,
    point: ArrayLike,
    code: ArrayLike,
    *,
    counts: ArrayLike | None = None,
) -> tuple[Tree, Int64]:
    """Make a tree of paths, whoever numbered its nodes.

    Parameters
    ----------
    labels : sequence of str, length V
    start : array_like of int (V + 1,)
        The decisions of label i are those from ``start[i]`` up to ``start[i + 1]``, root first.
    point : array_like of int (D,)
        The node that decides, by any numbers, zero or more.
    code : array_like of int (D,)
        0 for its first child, 1 for its second.
    counts : array_like of int, shape (V,), optional

    Returns
    -------
    tree : Tree
        Its nodes are in the order of `point` if that puts parents first, in the opposite order
        if that does, as in word2vec; else level by level.
    number : int64 array (N,)
        What each node is called in `point`.

    Raises
    ------
    InputError
        When the paths do not make one tree; the message names the label.
    """
    first, at, bit = (np.asarray(array, np.int64) for array in (start, point, code))
    if np.any((bit != 0) & (bit != 1)):
        raise InputError("a path has a bit that is neither 0 nor 1")
    if len(labels) == 1 and not len(at):
        return Tree(labels, [0], [], counts=counts), np.empty(0, np.int64)
    length = np.diff(first)
    if length.min() == 0:
        raise InputError(f"the label {labels[int(np.argmin(length))]!r} has an empty path")
    number, node = np.unique(at, return_inverse=True)
    follows = np.empty(len(at), np.int64)
    follows[:-1] = node[1:]
    follows[first[1:] - 1] = ~np.arange(len(labels))
    edge = 2 * node + bit
    nothing = -len(labels) - 1
    child = np.full((len(number), 2), nothing)
    child.ravel()[edge] = follows

    at_odds = child.ravel()[edge] != follows
    at_odds[first[:-1]] |= node[first[:-1]] != node[0]
    if at_odds.any():
        where = int(np.argmax(at_odds))
        label = labels[int(np.searchsorted(first, where, "right")) - 1]
        raise InputError(
            f"the path of the label {label!r} does not fit the others: at node {at[where]} it "
            "begins elsewhere, or the same bit leads elsewhere"
        )
    one_way = (child == nothing).any(axis=1)
    if one_way.any():
        where = int(number[np.argmax(one_way)])
        raise InputError(f"all paths go the same way at node {where}; a node has two children")
    parents = np.bincount(child[child >= 0], minlength=len(number))
    parents[node[0]] += 1  # where all paths begin
    if parents.max() > 1:
        where = int(number[np.argmax(parents)])
        raise InputError(f"two ways lead to node {where}; in a tree it is one")
    order = _parents_first(child, int(node[0]))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    child = child[order]
    child[child >= 0] = place[child[child >= 0]]
    tree = Tree(labels, 2 * np.arange(len(order) + 1), child.ravel(), counts=counts)
    return tree, number[order]


def _parents_first(child: Int64, root: int) -> Int64:
    """Return the nodes in an order that puts each after its parent."""
    n_nodes = len(child)
    node = np.repeat(np.arange(n_nodes), 2)[child.ravel() >= 0]
    below = child[child >= 0]
    if np.all(below > node):
        return np.arange(n_nodes)
    if np.all(below < node):
        return np.arange(n_nodes)[::-1]
    levels = [np.array([root])]
    while len(levels[-1]):
        under = child[levels[-1]].ravel()
        levels.append(under[under >= 0])
    return np.concatenate(levels)

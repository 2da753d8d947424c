"""Trees as shapes over numbered leaves: the common ones, and hanging several under another.

A shape has no labels and is checked by nobody; the `Tree` that is made of it is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hstree._ragged import offsets
from hstree._typing import Int64
from hstree.tree.code_lengths import merge_order


@dataclass(frozen=True)
class Shape:
    """Children of nodes as in `Tree`, a child below zero being ``~leaf``.

    Attributes
    ----------
    fan_out : int64 array (N,)
    child : int64 array (E,)
    names : tuple of str or None, length N
    leaves : int64 array (L,)
        What leaf i stands for: the number of a word. A shape without a node has one leaf.
    """

    fan_out: Int64
    child: Int64
    names: tuple[str | None, ...]
    leaves: Int64


def wide(n_leaves: int) -> Shape:
    """Return one node with all leaves under it."""
    if n_leaves == 1:
        return _shape(np.empty(0, np.int64), np.empty(0, np.int64), 1)
    return _shape(np.array([n_leaves]), ~np.arange(n_leaves), n_leaves)


def huffman_shape(weights: Int64) -> Shape:
    """Return the binary Huffman tree over weights, one for each leaf."""
    return merged_shape(merge_order(weights), len(weights))


def merged_shape(merges: Int64, n_leaves: int) -> Shape:
    """Return the tree of binary merges (n_leaves - 1, 2); item ``n_leaves + i`` is merge i."""
    item = merges[::-1].ravel()  # the last merge is the root
    child = np.where(item < n_leaves, ~item, len(merges) - 1 - (item - n_leaves))
    return _shape(np.full(len(merges), 2), child, n_leaves)


def prefix_shape(strings: Sequence[str]) -> Shape:
    """Return the binary tree of bit strings, none of which is the beginning of another.

    Parameters
    ----------
    strings : sequence of str
        In ascending order; leaf i is string i. A bit that all strings share from some point on
        makes no node: nothing is decided there.
    """
    children: list[list[int]] = []
    waiting = deque([(0, len(strings))] if len(strings) > 1 else [])
    n_seen = len(waiting)
    while waiting:
        first, last = waiting.popleft()
        length = _common_length(strings[first], strings[last - 1])
        middle = bisect_left(strings, strings[first][:length] + "1", first, last)
        of_node = []
        for a, b in ((first, middle), (middle, last)):
            if b - a == 1:
                of_node.append(~a)
            else:
                of_node.append(n_seen)
                n_seen += 1
                waiting.append((a, b))
        children.append(of_node)
    child = np.array(children, np.int64).ravel()
    return _shape(np.full(len(children), 2), child, len(strings))


def graft(top: Shape, below: Sequence[Shape], name: str | None = None) -> Shape:
    """Replace the leaves of a shape by shapes.

    Parameters
    ----------
    top : Shape
    below : sequence of Shape
        One for each leaf of `top`. One without a node is its leaf, in that place.
    name : str, optional
        For the root of the result.

    Returns
    -------
    Shape
        Its nodes are those of `top` and then those of each other shape, in order, so that children
        are numbered after their parents if they were before. Leaves are concatenated.

    Examples
    --------
    >>> grafted = graft(wide(2), [wide(1), wide(3)])
    >>> grafted.fan_out.tolist(), grafted.child.tolist()
    ([2, 3], [-1, 1, -2, -3, -4])
    """
    nodes_before = len(top.fan_out) + offsets(np.array([len(s.fan_out) for s in below]))
    leaves_before = offsets(np.array([len(shape.leaves) for shape in below]))
    has_node = np.array([len(shape.fan_out) > 0 for shape in below])
    place = np.where(has_node, nodes_before[:-1], ~leaves_before[:-1])
    in_top = top.child.copy()
    is_leaf = in_top < 0
    in_top[is_leaf] = place[~in_top[is_leaf]]
    moved = [
        np.where(shape.child < 0, shape.child - first_leaf, shape.child + first_node)
        for shape, first_node, first_leaf in zip(below, nodes_before, leaves_before, strict=False)
    ]
    names = [*top.names, *(node for shape in below for node in shape.names)]
    if name is not None and names:
        names[0] = name
    return Shape(
        np.concatenate([top.fan_out, *(shape.fan_out for shape in below)]),
        np.concatenate([in_top, *moved]),
        tuple(names),
        np.concatenate([shape.leaves for shape in below]),
    )


def _common_length(a: str, b: str) -> int:
    """Return how many characters two strings share, neither of which begins the other."""
    return next(i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)


def _shape(fan_out: Int64, child: Int64, n_leaves: int) -> Shape:
    return Shape(fan_out, child.astype(np.int64), (None,) * len(fan_out), np.arange(n_leaves))

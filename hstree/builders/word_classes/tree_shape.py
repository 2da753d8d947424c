"""Shapes: trees over numbered leaves, and the shapes of words in classes.

A shape has no labels and is not checked; the `Tree` made of it is.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, replace

import numpy as np

from hstree._ragged import offsets
from hstree._typing import Int64
from hstree.tree import Tree
from hstree.tree.huffman_code import merge_order


@dataclass(frozen=True)
class Shape:
    """Children of nodes as in `Tree`, a child below zero being ``~leaf``."""

    fan_out: Int64  # (N,)
    child: Int64  # (E,)
    names: tuple[str | None, ...]  # length N
    leaves: Int64  # (L,) number of the word at each leaf; a shape without a node has one

    def tree(self, words: Sequence[str], counts: Int64 | None, **meta: object) -> Tree:
        """Return the tree with these words at its leaves."""
        return Tree(
            words,
            offsets(self.fan_out),
            np.where(self.child < 0, ~self.leaves[~self.child], self.child),
            counts=counts,
            names=self.names if any(self.names) else None,
            meta=meta,
        )


def wide(items: Sized) -> Shape:
    """Return one node with a leaf for each item; of one item, the leaf alone."""
    if (n_leaves := len(items)) == 1:
        return _shape(np.empty(0, np.int64), np.empty(0, np.int64), 1)
    return _shape(np.array([n_leaves]), ~np.arange(n_leaves), n_leaves)


def huffman_shape(weights: Int64) -> Shape:
    """Return the binary Huffman tree over weights, one for each leaf."""
    return merged_shape(merge_order(weights)[0], len(weights))


def merged_shape(merges: Int64, n_leaves: int) -> Shape:
    """Return the tree of binary merges (n_leaves - 1, 2); item ``n_leaves + i`` is merge i."""
    item = merges[::-1].ravel()  # the last merge is the root
    child = np.where(item < n_leaves, ~item, len(merges) - 1 - (item - n_leaves))
    return _shape(np.full(len(merges), 2), child, n_leaves)


def prefix_shape(strings: Sequence[str]) -> Shape:
    """Return the binary tree of a prefix-free code, bit strings in ascending order.

    Leaf i is string i. A bit that is the same in all strings with the same bits before it makes no
    node, since it decides nothing.
    """
    children: list[list[int]] = []
    waiting = deque([(0, len(strings))] if len(strings) > 1 else [])
    n_nodes = len(waiting)
    while waiting:
        first, last = waiting.popleft()
        a, b = strings[first], strings[last - 1]
        length = next(i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
        middle = bisect_left(strings, a[:length] + "1", first, last)
        of_node = []
        for start, stop in ((first, middle), (middle, last)):
            if stop - start == 1:
                of_node.append(~start)
            else:
                of_node.append(n_nodes)
                n_nodes += 1
                waiting.append((start, stop))
        children.append(of_node)
    child = np.array(children, np.int64).ravel()
    return _shape(np.full(len(children), 2), child, len(strings))


def graft(top: Shape, below: Sequence[Shape]) -> Shape:
    """Replace the leaves of a shape by shapes; a shape without a node leaves a leaf.

    The nodes are those of `top`, then those of each shape below, so that children are numbered
    after their parents if they were before. Leaves are concatenated.
    """
    first_node = len(top.fan_out) + offsets(np.array([len(s.fan_out) for s in below]))
    first_leaf = offsets(np.array([len(shape.leaves) for shape in below]))
    has_node = np.array([len(shape.fan_out) > 0 for shape in below])
    root = np.where(has_node, first_node[:-1], ~first_leaf[:-1])  # of each shape below
    in_top = top.child.copy()
    is_leaf = in_top < 0
    in_top[is_leaf] = root[~in_top[is_leaf]]
    moved = [
        np.where(shape.child < 0, shape.child - leaf, shape.child + node)
        for shape, node, leaf in zip(below, first_node, first_leaf, strict=False)
    ]
    names = (*top.names, *(node for shape in below for node in shape.names))
    return Shape(
        np.concatenate([top.fan_out, *(shape.fan_out for shape in below)]),
        np.concatenate([in_top, *moved]),
        names,
        np.concatenate([shape.leaves for shape in below]),
    )


def class_shapes(
    classes: Sequence[Int64],
    counts: Int64,
    arrange: Callable[[Int64], Shape],
    names: Sequence[str],
) -> list[Shape]:
    """Return the shape over the words of each class, its root named.

    `arrange` makes it of their counts: `wide`, or a Huffman tree.
    """
    shapes = []
    for words, name in zip(classes, names, strict=False):
        shape = arrange(counts[words])
        shapes.append(
            replace(shape, leaves=words, names=(name, *shape.names[1:])[: len(shape.names)])
        )
    return shapes


def _shape(fan_out: Int64, child: Int64, n_leaves: int) -> Shape:
    return Shape(fan_out, child.astype(np.int64), (None,) * len(fan_out), np.arange(n_leaves))

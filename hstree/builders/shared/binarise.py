"""Binarisation: replace each wide node by a binary sub-tree, by Huffman or by two-means."""

from functools import partial

import numpy as np

from hstree import progress
from hstree._ragged import offsets
from hstree._typing import Floating, Int64
from hstree.builders.kmeans import Means
from hstree.builders.shared.divisive import divide
from hstree.builders.shared.nodes import normalised
from hstree.tree import Tree
from hstree.tree.huffman_code import merge_order
from hstree.tree.order import by_level, reorder


def binarise_huffman(tree: Tree, counts: Int64) -> Tree:
    """Replace each node of more than two children by a Huffman tree over them.

    The weights are the sums of the counts (V,) below each child; a label with several codes shares
    its count among them, rounded up. The result has the names of `tree` on the nodes that it had.
    Nodes of two children keep their order.
    """
    if tree.n_nodes == 0:
        return tree
    weight = tree.sum_up(-(-counts // tree.codes_per_label))  # (E,) counts below each edge
    first = offsets(tree.fan_out - 1)
    child = np.empty((first[-1], 2), np.int64)
    is_pair = tree.fan_out == 2
    child[first[:-1][is_pair]] = ~(tree.child_start[:-1][is_pair, None] + np.arange(2))
    with progress.task("splitting nodes", total=tree.n_nodes, unit="nodes") as task:
        for node in np.flatnonzero(~is_pair).tolist():
            start, stop = tree.child_start[node], tree.child_start[node + 1]
            n = stop - start
            item = merge_order(weight[start:stop])[0][::-1]  # the last merge is the root
            child[first[node] : first[node + 1]] = np.where(
                item < n, ~(start + item), first[node] + n - 2 - (item - n)
            )
            task.advance()
    return _assembled(tree, offsets(np.full(len(child), 2)), child.ravel(), first[:-1])


def binarise_two_means(
    tree: Tree, vectors: Floating, *, iterations: int = 10, random_state: int = 0
) -> Tree:
    """Split each node of more than two children by two-means, then each half, and so on.

    A child has the mean of the vectors (V, d) over the codes of the labels below it, normalised,
    since two-means would otherwise separate long vectors from short ones. Children with the same
    direction are split evenly. The k-means is that of the builder `kmeans`, all nodes at once. The
    result has the names of `tree` on the nodes that it had.
    """
    if tree.n_nodes == 0:
        return tree
    # (E, d) directions of the sums of the vectors below each edge
    rows = normalised(tree.sum_up(np.asarray(vectors, np.float64)))
    means = Means(centres=2, arity=2, balanced=False, iterations=iterations)
    split = means.split_of(rows, None)
    draw = partial(means.drawn, np.random.default_rng(random_state))
    with progress.task("splitting nodes", total=len(rows), unit="children") as task:
        divided = divide(len(rows), split, draw=draw, roots=tree.child_start, task=task)
    return _assembled(tree, divided.child_start, divided.child, np.arange(tree.n_nodes))


def _assembled(tree: Tree, child_start: Int64, child: Int64, top: Int64) -> Tree:
    """Replace the nodes of a tree by sub-trees with the roots `top` (N,).

    `child_start` and `child` hold all sub-trees; a child below zero is ``~e``, edge e of `tree`.
    """
    child = child.copy()
    at_edge = child < 0
    wide_child = tree.child[~child[at_edge]]
    child[at_edge] = np.where(wide_child >= 0, top[wide_child * (wide_child >= 0)], wide_child)

    order = by_level(child_start, child, int(top[0]))
    start, child, number = reorder(child_start, child, order)
    names = None
    if tree.names is not None:
        name_of = dict(zip(number[top].tolist(), tree.names, strict=True))
        names = [name_of.get(node) for node in range(len(order))]
    return Tree(tree.labels, start, child, counts=tree.counts, names=names)

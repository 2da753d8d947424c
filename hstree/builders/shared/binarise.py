"""Splitting wide nodes: a tree stays what it is, and each of its nodes becomes a binary sub-tree.

Two ways: Huffman over what the children count, and repeated two-means over vectors. What the wide
tree is and where vectors come from, is the business of others.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from hstree import progress
from hstree._ragged import offsets, ranges
from hstree._typing import Floating, Int64
from hstree.builders.kmeans import kmeans_cut
from hstree.builders.shared.recursion import grow
from hstree.tree import Tree
from hstree.tree.huffman_code import merge_order

_T = TypeVar("_T", bound=np.generic)


def binarise_huffman(tree: Tree, counts: Int64) -> Tree:
    """Make each node of more than two children a Huffman tree over them.

    Parameters
    ----------
    tree : Tree
    counts : int64 array (V,)
        Of the labels; one with several codes shares its count among them, rounded up. A node
        counts what is below it.

    Returns
    -------
    Tree
        Binary, with the same codes and with the names of `tree` on the nodes that it had.
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
            item = merge_order(weight[start:stop])[::-1]  # the last merge is the root
            child[first[node] : first[node + 1]] = np.where(
                item < n, ~(start + item), first[node] + n - 2 - (item - n)
            )
            task.advance()
    return _assembled(tree, offsets(np.full(len(child), 2)), child.ravel(), first[:-1])


def binarise_two_means(
    tree: Tree, vectors: Floating, *, iterations: int = 10, random_state: int = 0
) -> Tree:
    """Split each node of more than two children by two-means, then each part, and so on.

    Parameters
    ----------
    tree : Tree
    vectors : float array (V, d)
        One for each label. A node's is the mean over the labels below it, one with several
        codes below counted for each.
    iterations : int
        Rounds of Lloyd's algorithm for each split, at most.
    random_state : int
        Seed of the first centres.

    Returns
    -------
    Tree
        Binary, with the same codes and with the names of `tree` on the nodes that it had.

    Notes
    -----
    Two-means sees directions: every child's vector is brought to length one, since it would
    otherwise part the long vectors from the short ones, whatever they mean. Children with the same
    direction are cut evenly. The k-means is that of the builder `kmeans`, all nodes at once.
    """
    if tree.n_nodes == 0:
        return tree
    rows = tree.sum_up(np.asarray(vectors, np.float64))  # (E, d) sums of the vectors below
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = (rows / np.where(length > 0, length, 1)).astype(np.float32)
    rng = np.random.default_rng(random_state)
    with progress.task("splitting nodes", total=len(rows), unit="children") as task:
        grown = grow(
            len(rows),
            kmeans_cut(rows, iterations=iterations),
            rng,
            roots=tree.child_start,
            task=task,
        )
    return _assembled(tree, grown.child_start, grown.child, np.arange(tree.n_nodes))


def _assembled(tree: Tree, child_start: Int64, child: Int64, top: Int64) -> Tree:
    """Put the sub-trees in the place of the nodes.

    Parameters
    ----------
    tree : Tree
        The wide one.
    child_start, child : int64 arrays
        The sub-trees of all its nodes; below zero is ``~e``, edge e of the wide tree.
    top : int64 array (N,)
        The root of each node's sub-tree.
    """
    child = child.copy()
    at_edge = child < 0
    meant = tree.child[~child[at_edge]]
    child[at_edge] = np.where(meant >= 0, top[meant * (meant >= 0)], meant)

    n_nodes = len(child_start) - 1
    is_node = child >= 0
    indptr = offsets(is_node.astype(np.int64))[child_start]
    graph = csr_array(
        (np.ones(indptr[-1], np.int8), child[is_node], indptr), shape=(n_nodes, n_nodes)
    )
    order = breadth_first_order(graph, int(top[0]), return_predecessors=False).astype(np.int64)
    number = np.empty(n_nodes, np.int64)
    number[order] = np.arange(n_nodes)
    start = offsets(np.diff(child_start)[order])
    child = child[ranges(child_start[order], start)]
    names: list[str | None] | None = None
    if tree.names is not None:
        names = [None] * n_nodes
        for node, name in zip(number[top].tolist(), tree.names, strict=True):
            names[node] = name
    return Tree(
        tree.labels,
        start,
        np.where(child >= 0, number[child * (child >= 0)], child),
        counts=tree.counts,
        names=names,
    )

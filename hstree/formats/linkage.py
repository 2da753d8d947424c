"""Linkage matrices of ``scipy.cluster.hierarchy``, as ``.npy`` of shape (V - 1, 4).

The trees are binary, with one code per label. Labels and counts are in ``NAME.labels.tsv`` beside
the matrix. Distances are not read. The height of each node is written instead, so that SciPy can
draw the tree.
"""

from pathlib import Path

import numpy as np

from hstree._arrays import Float64
from hstree.builders.linkage import tree_from_linkage
from hstree.errors import naming
from hstree.formats.base import Format, read_labels_or_numbers, replacing_labelled
from hstree.tree import Tree
from hstree.tree.bit_paths import check_binary
from hstree.tree.npy import read_npy, write_array


def to_linkage(tree: Tree) -> Float64:
    """Return the linkage matrix of a binary tree; the inverse is `tree_from_linkage`.

    Parameters
    ----------
    tree : Tree
        Binary, with one code per label; other trees raise InputError.

    Returns
    -------
    float64 array (V - 1, 4)
        Row i merges two clusters, the first child first, into cluster V + i. Its height is the
        maximum number of decisions below it, and the last column is its number of labels. Node n is
        row N - 1 - n. O(E).

    Examples
    --------
    >>> to_linkage(Tree.from_children(["a", "b", "c"], [[~2, 1], [~0, ~1]])).tolist()
    [[0.0, 1.0, 1.0, 2.0], [2.0, 3.0, 2.0, 3.0]]
    """
    check_binary(tree, "a linkage")
    n_labels = tree.n_labels
    n_nodes = tree.n_nodes

    # (N,) maximum number of decisions and number of labels below each node, from the deepest up
    child = tree.child.reshape(-1, 2)
    height = np.zeros(n_nodes, np.int64)
    size = np.zeros(n_nodes, np.int64)
    for nodes, *_ in reversed(tree.levels):
        below = child[nodes]  # (n, 2) children of the nodes of this level
        is_node = below >= 0
        height[nodes] = 1 + np.where(is_node, height[below * is_node], 0).max(axis=1)
        size[nodes] = np.where(is_node, size[below * is_node], 1).sum(axis=1)

    # (N, 2) the cluster of a label is its number; the cluster of a node follows from its row
    cluster = np.where(child < 0, ~child, n_labels + n_nodes - 1 - child)
    return np.column_stack([cluster, height, size]).astype(np.float64)[::-1]


def _write(tree: Tree, path: Path) -> None:
    merges = np.ascontiguousarray(to_linkage(tree))
    with replacing_labelled(tree, path) as file:
        write_array(file, merges)


def _read(path: Path, labels: Path | None) -> Tree:
    merges = read_npy(str(path), "linkage")
    words, counts = read_labels_or_numbers(path, labels, len(np.atleast_1d(merges)) + 1)
    with naming(path):
        return tree_from_linkage(merges, words, counts)


FORMAT = Format("linkage", (".npy",), ("counts", "order"), _write, _read, takes_labels=True)

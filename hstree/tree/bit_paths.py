"""Bit paths, the `point` and `code` of gensim and word2vec: nodes, and the branch at each node.

Only binary trees with one code per label have bit paths.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hstree._arrays import Int64, UInt8
from hstree.errors import InputError
from hstree.tree.codes import Codes
from hstree.tree.order import from_edges
from hstree.tree.tree import Tree

#: Maximum number of decisions that `paths_of` returns: 1 GB of int64.
MOST_DECISIONS = 1 << 27


@dataclass(frozen=True)
class Paths:
    """Root-to-leaf paths of L labels, as flat arrays.

    Examples
    --------
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
    >>> paths = paths_of(tree)
    >>> [point.tolist() for point in paths.point], [code.tolist() for code in paths.code]
    ([[0], [0, 1], [0, 1]], [[0], [1, 0], [1, 1]])
    """

    start: Int64  #: (L + 1,), offsets of the labels in `node` and `bit`
    node: Int64  #: (D,), deciding nodes from the root down; they equal their weight rows
    bit: UInt8  #: (D,), 0 for a node's first child, 1 for its second, as in word2vec

    @property
    def point(self) -> list[NDArray[np.uint32]]:
        """Nodes on each label's path, from the root: `point` in gensim."""
        return np.split(self.node.astype(np.uint32), self.start[1:-1])

    @property
    def code(self) -> list[UInt8]:
        """Bits of each label, from the root, 0 for a first child: `code` in gensim."""
        return np.split(self.bit, self.start[1:-1])

    @property
    def strings(self) -> list[str]:
        """Bits of each label as a string, as in files of Brown clustering."""
        text = (self.bit + ord("0")).tobytes().decode("ascii")
        return [text[a:b] for a, b in pairwise(self.start.tolist())]


def paths_of(tree: Tree) -> Paths:
    """Return the paths of all labels of a tree in O(D) for D decisions.

    Raises InputError when the tree has a wide node or a label with several codes, or when the paths
    have more than 2**27 decisions. With V = 1, there is one path without a decision.
    """
    check_binary(tree, "a path of bits")
    codes = Codes(tree, cache_limit=0)
    if codes.n_decisions > MOST_DECISIONS:
        raise InputError(
            f"the codes have {codes.n_decisions:,} decisions, more than {MOST_DECISIONS:,}, the "
            "maximum for paths of bits; use graphml, newick, linkage or napkinxc"
        )
    paths = codes.expand(np.arange(tree.n_labels))
    # The edges of node n are 2n and 2n + 1
    bit = (paths.edge & 1).astype(np.uint8)
    return Paths(paths.decision_start[paths.code_start], paths.edge >> 1, bit)


def check_binary(tree: Tree, what: str) -> None:
    """Raise InputError for wide nodes and for several codes per label, which `what` cannot hold."""
    is_wide = tree.fan_out > 2
    if is_wide.any():
        node = int(np.argmax(is_wide))
        raise InputError(
            f"node {node} has {tree.fan_out[node]} children, and {what} holds only binary trees; "
            "build one with huffman or gmm, without short_list"
        )
    check_single_codes(tree, what)


def check_single_codes(tree: Tree, what: str, remedy: str = "build a tree with one code") -> None:
    """Raise InputError for several codes per label, which `what` cannot hold; name such a label."""
    if not tree.has_single_codes:
        label = int(np.argmax(tree.codes_per_label))
        raise InputError(
            f"the label {tree.labels[label]!r} has {tree.codes_per_label[label]} codes, and "
            f"{what} holds one per label; {remedy}"
        )


def tree_of_paths(
    labels: Sequence[str],
    start: ArrayLike,
    point: ArrayLike,
    code: ArrayLike,
    *,
    counts: ArrayLike | None = None,
) -> tuple[Tree, Int64]:
    """Make a tree from the paths of its labels; the inverse of `paths_of`.

    `start` (V + 1,), `point` and `code` (D,) correspond to `Paths.start`, `Paths.node` (with any
    numbers from zero) and `Paths.bit`. Returns the tree, and the number (N,) of each node in
    `point`. Nodes keep the order of `point`, or its reverse (as in word2vec), if that puts parents
    first; otherwise, they are numbered level by level. Raises InputError when the paths are not one
    tree.
    """
    first, points, bit = (np.asarray(array, np.int64) for array in (start, point, code))
    if np.any((bit != 0) & (bit != 1)):
        raise InputError("a path has a bit that is neither 0 nor 1; give only these two")
    if len(labels) == 1 and not len(points):
        return Tree(labels, [0], [], counts=counts), np.empty(0, np.int64)
    length = np.diff(first)
    if length.min() == 0:
        raise InputError(f"the label {labels[int(np.argmin(length))]!r} has an empty path")
    number, node = np.unique(points, return_inverse=True)  # (N,) ascending, and (D,) from 0 to N-1
    # (D,) whether a decision is the last of its path
    is_last = np.zeros(len(points), bool)
    is_last[first[1:] - 1] = True
    inner = np.flatnonzero(~is_last)
    if np.all(node[inner + 1] < node[inner]):
        # Children come before parents, as in word2vec
        number = number[::-1]
        node = len(number) - 1 - node
    # (D,) child after each decision: the next node on the path or, at its end, the label
    follows = np.empty(len(points), np.int64)
    follows[inner] = node[inner + 1]
    follows[is_last] = len(number) + np.arange(len(labels))
    # (2 N,) child of each edge on the last path through it; -1 if no path passes
    child = np.full(2 * len(number), -1)
    child[2 * node + bit] = follows
    differs = child[2 * node + bit] != follows
    differs[first[:-1]] |= node[first[:-1]] != node[0]
    if differs.any():
        at = int(np.argmax(differs))
        label = labels[int(np.searchsorted(first, at, "right")) - 1]
        raise InputError(
            f"the path of the label {label!r} does not fit the others: at node {points[at]} it "
            "begins elsewhere, or the same bit leads elsewhere; all paths must form one tree"
        )
    edge = np.flatnonzero(child >= 0)
    n_items = len(number) + len(labels)
    tree = from_edges(edge // 2, child[edge], n_items, lambda item: str(number[item]))
    return Tree(labels, tree.child_start, tree.child, counts=counts), number[tree.nodes]

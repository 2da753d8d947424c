"""The way to each label as other toolkits want it: which nodes decide, and which way at each.

Binary trees with one code a label: gensim's and word2vec's `code` and `point`, Paddle's
`path_table` and `path_code`. No other toolkit is imported; the way back is `from_paths`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hstree._ragged import offsets, segment_ids
from hstree._typing import Int64, UInt8
from hstree.errors import InputError
from hstree.tree.codes import Codes
from hstree.tree.tree import Tree

T = TypeVar("T", bound=np.generic)

#: Numbers in a padded table, and decisions laid out at once: 1 GB of int64.
LARGEST_TABLE = 1 << 27
_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Paths:
    """The ways from the root to some labels, laid out flat.

    Attributes
    ----------
    start : int64 array (L + 1,)
        The decisions of label i are ``node[start[i]:start[i + 1]]``, from the root down.
    node : int64 array (D,)
        The node that decides; its weights are row ``node`` (see ``docs/tree-format.md``).
    bit : uint8 array (D,)
        0 for its first child, 1 for its second, as in word2vec.
    num_classes : int
        Paddle's name for the number of inner nodes of a tree of one's own.

    Examples
    --------
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
    >>> paths = paths_of(tree)
    >>> [point.tolist() for point in paths.point], [code.tolist() for code in paths.code]
    ([[0], [0, 1], [0, 1]], [[0], [1, 0], [1, 1]])
    >>> paths.path_table.tolist(), paths.path_code.tolist()
    ([[0, -1], [1, 0], [1, 0]], [[1, -1], [1, 0], [0, 0]])
    """

    start: Int64
    node: Int64
    bit: UInt8
    num_classes: int

    @property
    def point(self) -> list[NDArray[np.uint32]]:
        """For each label the nodes on its way, root first: gensim's `point`."""
        return self._parts(self.node.astype(np.uint32))

    @property
    def code(self) -> list[UInt8]:
        """For each label its bits, root first, 0 for a first child: gensim's `code`."""
        return self._parts(self.bit)

    @property
    def strings(self) -> list[str]:
        """For each label its bits as a string, as Brown clustering writes them."""
        text = (self.bit + ord("0")).tobytes().decode("ascii")
        return [text[a:b] for a, b in pairwise(self.start.tolist())]

    @property
    def path_table(self) -> Int64:
        """int64 array (L, longest): the nodes from the leaf up to the root, then -1.

        For Paddle's ``hsigmoid_loss``, which wants one row for each sample: take those of its
        labels.

        Raises
        ------
        InputError
            When it would have more than 2**27 entries.
        """
        return self._padded(self.node)

    @property
    def path_code(self) -> Int64:
        """int64 array (L, longest): 1 for a first child, 0 for a second, in the same places.

        Paddle's loss is ``sum(log(1 + exp(z)) - code * z)`` over a path, so that a code of 1
        has probability ``sigmoid(z)``: it is the child that hstree calls first, and the weights of
        one are those of the other. Paddle adds log 2 for each place of padding.

        Raises
        ------
        InputError
            When it would have more than 2**27 entries.
        """
        return self._padded(1 - self.bit.astype(np.int64))

    def _parts(self, value: NDArray[T]) -> list[NDArray[T]]:
        """Return the numbers of each label; `np.split` makes one part of no labels."""
        return np.split(value, self.start[1:-1]) if len(self.start) > 1 else []

    def _padded(self, value: Int64) -> Int64:
        length = np.diff(self.start)
        shape = len(length), int(length.max(initial=0))
        if shape[0] * shape[1] > LARGEST_TABLE:
            raise InputError(
                f"a table of {shape[0]} labels by {shape[1]} decisions would be too large; "
                "take the paths of a batch of labels: to_paths(labels)"
            )
        table = np.full(shape, -1, np.int64)
        row = segment_ids(self.start)
        table[row, self.start[row + 1] - 1 - np.arange(len(value))] = value
        return table


def paths_of(tree: Tree, labels: ArrayLike | None = None) -> Paths:
    """Return the paths of a tree's labels.

    Parameters
    ----------
    tree : Tree
        Binary, with one code a label. V = 1 has one path, without a decision.
    labels : array_like of int (L,), optional
        Label ids, repeats are fine; all of them without.

    Raises
    ------
    InputError
        When the tree has a wide node or a label with several codes, a label is not one of its
        own, or the paths have more than 2**27 decisions.

    Notes
    -----
    O(D) for D decisions.
    """
    check_binary(tree, "a path of bits")
    wanted = _label_ids(tree, labels)
    codes = Codes(tree, cache_limit=0)
    n_decisions = int(_lengths(codes)[wanted].sum())
    if n_decisions > LARGEST_TABLE:
        raise InputError(
            f"the paths have {n_decisions:,} decisions, and {LARGEST_TABLE:,} can be laid out; "
            "take a batch of labels at a time, or a shallower tree"
        )
    return _laid_out(codes, wanted)


def path_batches(tree: Tree, what: str, limit: int) -> Iterator[Paths]:
    """Yield the paths of all labels, in order, a batch of labels at a time.

    Parameters
    ----------
    tree : Tree
    what : str
        What is made of them, for the message.
    limit : int
        Decisions of all labels together; a chain of 100,000 labels has five billion.

    Raises
    ------
    InputError
        When the tree is not binary with one code a label, or has more decisions.
    """
    check_binary(tree, what)
    codes = Codes(tree, cache_limit=0)
    before = offsets(_lengths(codes))
    if before[-1] > limit:
        raise InputError(
            f"the codes have {before[-1]:,} decisions, too many for {what}, which writes out each; "
            "graphml, newick, nested, linkage and napkinxc hold such trees"
        )
    first = 0
    while first < tree.n_labels:
        last = int(np.searchsorted(before, before[first] + _AT_ONCE, "right")) - 1
        last = max(last, first + 1)
        yield _laid_out(codes, np.arange(first, last))
        first = last


def check_binary(tree: Tree, what: str) -> None:
    """Refuse trees that paths of bits cannot hold.

    Raises
    ------
    InputError
        When a node is wide, or a label has several codes.
    """
    is_wide = tree.fan_out > 2
    if is_wide.any():
        node = int(np.argmax(is_wide))
        raise InputError(
            f"node {node} has {tree.fan_out[node]} children, and {what} holds binary trees alone; "
            "build one with a binary method, or --binary where the method has it"
        )
    check_single_codes(tree, what)


def check_single_codes(tree: Tree, what: str, remedy: str = "build a tree with one code") -> None:
    """Refuse trees in which a label has several codes.

    Parameters
    ----------
    tree : Tree
    what : str
        What holds one code per label, for the message.
    remedy : str, optional
        What to do next, for the message.

    Raises
    ------
    InputError
        Naming the label with the most codes.
    """
    if not tree.has_single_codes:
        label = int(np.argmax(tree.codes_per_label))
        raise InputError(
            f"the label {tree.labels[label]!r} has {tree.codes_per_label[label]} codes, and "
            f"{what} holds one per label; {remedy}"
        )


def _lengths(codes: Codes) -> Int64:
    """Return the decisions of each label, which has one code."""
    return codes.length if codes.tree.n_nodes else np.zeros(1, np.int64)


def _laid_out(codes: Codes, labels: Int64) -> Paths:
    found = codes.expand(labels)
    if codes.tree.n_nodes == 0:
        return Paths(
            np.zeros(len(labels) + 1, np.int64), found.edge, found.edge.astype(np.uint8), 0
        )
    # All nodes are binary: the edges of node n are 2n and 2n + 1.
    bit = (found.edge & 1).astype(np.uint8)
    return Paths(found.decision_start, found.edge >> 1, bit, codes.tree.n_nodes)


def _label_ids(tree: Tree, labels: ArrayLike | None) -> Int64:
    if labels is None:
        return np.arange(tree.n_labels)
    given = np.asarray(labels)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise InputError(f"labels is a vector of label ids, not {given.dtype} of {given.shape}")
    wanted = given.astype(np.int64)
    if wanted.size and (wanted.min() < 0 or wanted.max() >= tree.n_labels):
        raise InputError(f"labels holds an id that is not one of 0 to {tree.n_labels - 1}")
    return wanted

"""Huffman trees: the shortest mean code length of all trees with one code per word."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from msgspec import Meta

from hstree._arrays import Int64, offsets
from hstree._options import checked_options
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError
from hstree.tree import Tree
from hstree.tree.huffman_code import merge_order


@checked_options
def huffman(vocabulary: Vocabulary, *, arity: Annotated[int, Meta(ge=2)] = 2) -> Tree:
    """Build the Huffman tree from the counts: frequent words get short codes.

    Parameters
    ----------
    vocabulary : Vocabulary
        At least one count must be above zero, unless there is only one word.
    arity : int
        Number of children of each node.

    Returns
    -------
    Tree
        No tree of this arity has a shorter mean code length. If V does not fit the arity, the
        deepest node has fewer children. The lighter child comes first. Nodes are numbered from the
        heaviest to the lightest, so that the most frequently used rows of a layer are adjacent.

    Raises
    ------
    InputError
        When all counts are zero.

    Notes
    -----
    Of equal weights, words are merged before nodes, then in their order. The code lengths therefore
    depend only on the counts. With `arity` 2, the tree is the shallowest of all optimal trees.
    O(V log V).

    References
    ----------
    .. [1] D. A. Huffman, "A method for the construction of minimum-redundancy codes", 1952.

    Examples
    --------
    >>> tree = huffman(Vocabulary(["a", "b", "c"], [1, 5, 2]))
    >>> tree.child.tolist()  # a and c share a node, which is lighter than b
    [1, -2, -1, -3]
    """
    if len(vocabulary) > 1 and not vocabulary.counts.any():
        raise InputError(
            f"every count of the {len(vocabulary)} words is zero; huffman needs counts: give the "
            "number of times that each word occurs"
        )
    return huffman_tree(vocabulary.words, vocabulary.counts, arity)


def huffman_tree(labels: Sequence[str], counts: Int64, arity: int = 2) -> Tree:
    """Return the Huffman tree for any counts, as `huffman` does, even if all are zero."""
    return merged_tree(labels, merge_order(counts, arity)[0], counts)


def merged_tree(labels: Sequence[str], merges: Int64, counts: Int64 | None = None) -> Tree:
    """Return the tree of a sequence of merges (M, k); the last merge is the root, node 0.

    An entry below V is a label, ``V + i`` is merge i, and -1 is empty.
    """
    n_labels = len(labels)
    n_nodes = len(merges)
    node_items = merges[::-1]  # merge i is node n_nodes - 1 - i
    is_item = node_items >= 0
    child = node_items[is_item]
    # Entry i is label ~i, or node n_nodes - 1 - (i - n_labels); in place, since trees may be large
    np.subtract(np.where(child < n_labels, -1, n_nodes + n_labels - 1), child, out=child)
    child.setflags(write=False)
    return Tree(labels, offsets(is_item.sum(axis=1)), child, counts=counts)

"""Huffman's tree: the shortest mean code that any tree with one code a word can have.

It looks at counts alone. `hstree.tree.huffman_code` merges; here the result becomes a `Tree`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from hstree._options import Range, checked_options
from hstree._ragged import offsets
from hstree._typing import Int64
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError
from hstree.tree import Tree
from hstree.tree.huffman_code import merge_order


@checked_options
def huffman(vocabulary: Vocabulary, *, arity: Annotated[int, Range(2)] = 2) -> Tree:
    """Huffman tree over the counts: frequent words get short codes.

    Parameters
    ----------
    vocabulary : Vocabulary
        With at least one count above zero, unless it has only one word.
    arity : int
        Children of each node, 2 or more.

    Returns
    -------
    Tree
        Optimal: no tree of this arity has a shorter mean code length. Where V and the arity do
        not fit, the deepest node has fewer children. The lighter child comes first. The heaviest
        node is number 0, the next 1 and so on, so that the rows of a layer that are used most
        lie together.

    Raises
    ------
    OptionError
        When `arity` is below 2.
    InputError
        When every count is zero.

    Notes
    -----
    Of equal weights, words are taken before nodes, both in their order. So the code lengths
    depend on the counts alone, and they are the shallowest of all optimal ones for `arity` 2.
    O(V log V).

    References
    ----------
    .. [1] D. A. Huffman, "A method for the construction of minimum-redundancy codes", 1952.

    Examples
    --------
    >>> tree = huffman(Vocabulary(["a", "b", "c"], [1, 5, 2]))
    >>> tree.child.tolist()  # a and c share a node; it weighs 3 and stands before b
    [1, -2, -1, -3]
    """
    if len(vocabulary) > 1 and not vocabulary.counts.any():
        raise InputError(
            f"every count of the {len(vocabulary)} words is zero, so huffman has nothing to go by; "
            "give a vocabulary with counts, as `hstree vocab CORPUS -o vocab.tsv` writes it"
        )
    return huffman_tree(vocabulary.words, vocabulary.counts, arity)


def huffman_tree(labels: Sequence[str], counts: Int64, arity: int = 2) -> Tree:
    """Make a Huffman tree of any counts, all zero too; otherwise as `huffman`."""
    merged = merge_order(counts, arity)[::-1]  # the last merge is the root
    n_labels, n_nodes = len(labels), len(merged)
    there = merged >= 0
    item = merged[there]
    child = np.where(item < n_labels, ~item, n_nodes - 1 - (item - n_labels))
    return Tree(labels, offsets(there.sum(axis=1)), child, counts=counts)

"""A complete tree over the words in their order: what a tree costs that knows nothing of counts.

Words that stand side by side share most of their code. Counts give no shape; in `huffman` they do.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from hstree._options import Range, checked_options
from hstree.builders.shared.complete import complete_tree
from hstree.data.vocabulary import Vocabulary
from hstree.tree import Tree


@checked_options
def balanced(
    vocabulary: Vocabulary,
    *,
    order: Literal["frequency", "file"] = "frequency",
    arity: Annotated[int, Range(2)] = 2,
) -> Tree:
    """Complete tree over the words by frequency or as the file lists them.

    Parameters
    ----------
    vocabulary : Vocabulary
    order : {"frequency", "file"}
        Leaves from left to right: the most frequent word first, ties as the vocabulary lists
        them; or all as the vocabulary lists them.
    arity : int
        Children of each node, 2 or more.

    Returns
    -------
    Tree
        Code lengths differ by at most one; the words that come first have the shorter ones.
        Nodes are numbered level by level. O(V log V).

    Raises
    ------
    OptionError
        When `arity` is below 2.

    Examples
    --------
    >>> tree = balanced(Vocabulary(["a", "b", "c"], [1, 5, 2]))
    >>> tree.child.tolist()  # b first: its code is the short one
    [-2, 1, -3, -1]
    """
    start, child = complete_tree(len(vocabulary), arity)
    if order == "frequency":
        word = np.argsort(-vocabulary.counts, kind="stable")
        child = np.where(child < 0, ~word[~child], child)
    return Tree(vocabulary.words, start, child, counts=vocabulary.counts)

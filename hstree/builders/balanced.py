"""Complete trees over the words in order: the baseline for trees that use counts."""

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
    """Complete tree over the words, by frequency or in the order of the file.

    Parameters
    ----------
    vocabulary : Vocabulary
    order : {"frequency", "file"}
        Order of the leaves. frequency: the most frequent word first, ties in the order of the
        vocabulary. file: in the order of the vocabulary.
    arity : int
        Number of children of each node.

    Returns
    -------
    Tree
        Code lengths differ by at most one; the first words have the shorter ones.
        Nodes are numbered level by level. O(V log V).

    Examples
    --------
    >>> tree = balanced(Vocabulary(["a", "b", "c"], [1, 5, 2]))
    >>> tree.child.tolist()  # b comes first, with the short code
    [-2, 1, -3, -1]
    """
    if order == "file":
        return complete_tree(vocabulary, np.arange(len(vocabulary)), arity)
    return complete_tree(vocabulary, np.argsort(-vocabulary.counts, kind="stable"), arity)

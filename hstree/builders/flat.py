"""The flat softmax: the tree of depth one, and the baseline of every comparison."""

from __future__ import annotations

import numpy as np

from hstree.data.vocabulary import Vocabulary
from hstree.tree import Tree


def flat(vocabulary: Vocabulary) -> Tree:
    """One root with all words under it: the ordinary softmax.

    Parameters
    ----------
    vocabulary : Vocabulary

    Returns
    -------
    Tree
        With V = 2 the root is one logistic decision, with V = 1 there is no node.

    Examples
    --------
    >>> flat(Vocabulary(["a", "b", "c"], [1, 5, 2])).child.tolist()
    [-1, -2, -3]
    """
    n = len(vocabulary)
    if n == 1:
        return Tree(vocabulary.words, [0], [], counts=vocabulary.counts)
    return Tree(vocabulary.words, [0, n], ~np.arange(n), counts=vocabulary.counts)

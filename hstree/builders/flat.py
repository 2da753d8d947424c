"""The flat softmax as a tree of depth one."""

import numpy as np

from hstree.builders.balanced import complete_tree
from hstree.data.vocabulary import Vocabulary
from hstree.tree import Tree


def flat(vocabulary: Vocabulary) -> Tree:
    """Flat softmax: one root with all words under it.

    Parameters
    ----------
    vocabulary : Vocabulary

    Returns
    -------
    Tree
        With V = 2 the root is one logistic decision; with V = 1 there is no node.

    Examples
    --------
    >>> flat(Vocabulary(["a", "b", "c"], [1, 5, 2])).child.tolist()
    [-1, -2, -3]
    """
    n = len(vocabulary)
    return complete_tree(vocabulary, np.arange(n), max(n, 2))

"""The flat softmax as a tree of depth one."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from hstree.data.vocabulary import Vocabulary
from hstree.tree import Tree


def flat(vocabulary: Vocabulary) -> Tree:
    """Build the flat tree: all words are children of the root.

    Parameters
    ----------
    vocabulary : Vocabulary

    Returns
    -------
    Tree
        With V = 2, the root is one logistic decision. With V = 1, there is no node.

    Examples
    --------
    >>> flat(Vocabulary(["a", "b", "c"], [1, 5, 2])).child.tolist()
    [-1, -2, -3]
    """
    return flat_tree(vocabulary.words, vocabulary.counts)


def flat_tree(labels: Sequence[str], counts: ArrayLike | None = None) -> Tree:
    """Return the tree whose root has all labels as children; one label has a tree without nodes."""
    if (n := len(labels)) == 1:
        return Tree(labels, [0], [], counts=counts)
    return Tree(labels, [0, n], ~np.arange(n), counts=counts)

"""Random trees: a baseline for trees that use counts or vectors."""

from typing import Annotated

import numpy as np
from msgspec import Meta

from hstree._options import RandomState, checked_options
from hstree.builders.balanced import complete_tree
from hstree.data.vocabulary import Vocabulary
from hstree.tree import Tree


@checked_options
def random(
    vocabulary: Vocabulary, *, arity: Annotated[int, Meta(ge=2)] = 2, random_state: RandomState = 0
) -> Tree:
    """Build a complete tree over the words in random order.

    Parameters
    ----------
    vocabulary : Vocabulary
    arity : int
        Number of children of each node.
    random_state : int
        Random seed for the order.

    Returns
    -------
    Tree
        The order of the words is uniformly random, and code lengths differ by at most one. This is
        the RANDOM tree of Mnih and Hinton, from which their bootstrap starts [1]_. Nodes are
        numbered level by level. O(V).

    References
    ----------
    .. [1] A. Mnih and G. Hinton, "A Scalable Hierarchical Distributed Language Model", NIPS 2008,
       sections 4 and 5.

    Examples
    --------
    >>> random(Vocabulary(["a", "b", "c"], [1, 5, 2])).n_nodes
    2
    """
    order = np.random.default_rng(random_state).permutation(len(vocabulary))
    return complete_tree(vocabulary, order, arity)

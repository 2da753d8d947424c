"""Complete trees, a baseline: every level except the last is full."""

from typing import Annotated

import numpy as np
from msgspec import Meta

from hstree._arrays import Int64, offsets
from hstree._options import checked_options
from hstree.data.vocabulary import Vocabulary
from hstree.tree import Tree


@checked_options
def balanced(vocabulary: Vocabulary, *, arity: Annotated[int, Meta(ge=2)] = 2) -> Tree:
    """Build a complete tree over the words, the most frequent first.

    Parameters
    ----------
    vocabulary : Vocabulary
    arity : int
        Number of children of each node.

    Returns
    -------
    Tree
        Leaves are in descending order of count; ties keep the order of the vocabulary. Code lengths
        differ by at most one, and the first words have the shorter codes. Nodes are numbered level
        by level. O(V log V).

    Examples
    --------
    >>> tree = balanced(Vocabulary(["a", "b", "c"], [1, 5, 2]))
    >>> tree.child.tolist()  # b comes first, with the short code
    [-2, 1, -3, -1]
    """
    return complete_tree(vocabulary, np.argsort(-vocabulary.counts, kind="stable"), arity)


def complete_tree(vocabulary: Vocabulary, order: Int64, arity: int = 2) -> Tree:
    """Return the complete tree over the words in a given order.

    Parameters
    ----------
    vocabulary : Vocabulary
    order : int64 array (V,)
        Word ids in the order of the leaves, from left to right.
    arity : int, default 2
        Number of children of a node, at least 2. Values above V give the same tree as V.

    Returns
    -------
    Tree
        The ``ceil((V - 1) / (arity - 1))`` nodes are numbered level by level. Code lengths differ
        by at most one, and the first words have the shorter codes. If V does not fit the arity, the
        first node of the last level has fewer children. O(V).

    Examples
    --------
    >>> vocabulary = Vocabulary(["a", "b", "c"], [1, 5, 2])
    >>> complete_tree(vocabulary, np.array([1, 2, 0])).child.tolist()
    [-2, 1, -3, -1]
    """
    n_leaves = len(order)
    if n_leaves == 1:
        return Tree(vocabulary.words, [0], [], counts=vocabulary.counts)
    arity = min(arity, n_leaves)
    # The deepest full level has `width` positions. The levels above it have `n_above` nodes.
    width = 1
    n_above = 0
    while width * arity <= n_leaves:
        n_above += width
        width *= arity

    # The last `n_split` positions of that level are nodes. Leaves that do not fit are below them.
    n_split = -(-(n_leaves - width) // (arity - 1))
    n_shallow = width - n_split
    child = [
        np.arange(1, n_above),
        ~order[:n_shallow],
        np.arange(max(n_above, 1), n_above + n_split),  # node 0, the root, has no parent
        ~order[n_shallow:],
    ]
    fan_out = np.full(n_above + n_split, arity, np.int64)
    if n_split:
        fan_out[n_above] -= n_split * (arity - 1) - (n_leaves - width)
    return Tree(vocabulary.words, offsets(fan_out), np.concatenate(child), counts=vocabulary.counts)

"""Huffman's code lengths over meaning: no code is longer, and neighbours are similar words.

The counts fix how long each word's code is; Kraft's equality leaves open which words share a
node, and the vectors decide that. Words whose code lengths differ too much cannot be neighbours;
where the shape of the tree is to follow the vectors, counts or not, that is `gmm`.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from hstree import progress
from hstree._options import Range, checked_options
from hstree._typing import Array, Float64, Floating, Int64
from hstree.builders.huffman import huffman_tree
from hstree.builders.shared.cuts import centred_rows, scale_of
from hstree.builders.shared.mixture import Nodes
from hstree.builders.shared.recursion import grow
from hstree.data.vectors import WordVectors
from hstree.errors import InputError
from hstree.tree import Tree
from hstree.tree.codes import Codes

#: What a count of zero weighs, so that no mean is without weight.
LEAST_COUNT = 0.5
#: Rounds of power iteration; two-means goes on from there.
POWER_ROUNDS = 3


@checked_options
def semantic(vectors: WordVectors, *, iterations: Annotated[int, Range(1)] = 10) -> Tree:
    """Huffman's code lengths, with similar words under the same nodes.

    Parameters
    ----------
    vectors : WordVectors
        One vector a word, with counts; where all counts are zero, they are taken as equal.
    iterations : int
        Rounds of two-means for each node, at most; fewer where nothing moves.

    Returns
    -------
    Tree
        Binary, with one code a label, each as long as in the tree of `huffman`: the weighted code
        length is the least that any such tree has.

    Raises
    ------
    OptionError
        When `iterations` is below 1.
    InputError
        When the vectors have no counts.

    Notes
    -----
    A code of length l takes 2**-l of the code space, and Huffman's codes [1]_ fill it (Kraft).
    A node of depth k has 2**-k of it and is cut into two halves of just 2**-(k + 1), so that no
    length changes. Within that bound the halves are found by two-means [2]_: words are
    ordered by the difference of their distances to the two means, the first half is
    filled in that order, and a word that no longer fits is passed over. Since shares are powers of
    two, the words left always hold one that fits until the half is full. The first order is
    that along the node's principal axis, by a few rounds of power iteration; nothing is random.
    A word weighs the square root of its count in the means: on the Penn Treebank, weights of one
    cost one and a half per cent of perplexity, the counts themselves nothing that
    could be told from noise.

    O(V d) a level and round, and a sort: no node is visited on its own. A hundred thousand
    words of 100 numbers take a few seconds.

    References
    ----------
    .. [1] D. A. Huffman, "A method for the construction of minimum-redundancy codes", 1952.
    .. [2] P. S. Bradley, K. P. Bennett and A. Demiriz, "Constrained k-means clustering",
       Microsoft Research MSR-TR-2000-65; there a bound on the words of a cluster, here on
       their shares.

    Examples
    --------
    >>> rows = [[1.0], [-1.0], [1.1], [-1.1]]
    >>> tree = semantic(WordVectors(["a", "b", "c", "d"], rows, counts=[3, 3, 2, 2]))
    >>> sorted(tree.child[2:4].tolist()), sorted(tree.child[4:6].tolist())
    ([-4, -2], [-3, -1])
    """
    if vectors.counts is None:
        raise InputError(
            "semantic needs counts, and these vectors have none; add them to NAME.labels.tsv "
            "(word<TAB>count) beside NAME.npy, or name a vocabulary"
        )
    n_words = len(vectors.labels)
    length = Codes(huffman_tree(vectors.labels, vectors.counts), cache_limit=0).length
    scale = scale_of(vectors.vectors)
    weights = np.sqrt(np.maximum(vectors.counts, LEAST_COUNT))

    def cut(words: Int64, start: Int64, rng: np.random.Generator) -> Int64:
        nodes, weight, share = Nodes(start), weights[words], shares(length[words])
        X = centred_rows(vectors.vectors, words, nodes, weight, scale)
        branch = fill_half(nodes, along_principal_axis(nodes, X, weight), share)
        for _ in range(iterations):
            # With rows centred, the sum of one half points from the other half's mean to its own.
            apart = nodes.weighted_sum(weight * branch, X)
            before, branch = branch, fill_half(nodes, nodes.dot(X, apart), share)
            if np.array_equal(before, branch):
                break
        return branch

    with progress.task("building the tree", total=n_words, unit="words") as task:
        grown = grow(n_words, cut, np.random.default_rng(0), task=task)
    return Tree(vectors.labels, grown.child_start, grown.child, counts=vectors.counts)


def along_principal_axis(nodes: Nodes, X: Floating, weight: Float64) -> Float64:
    """Return where each centred row lies along its node's axis of largest variance, about.

    Power iteration from the widest coordinate, which is often near that axis already.
    """
    widest = np.argmax(nodes.weighted_sum(weight, X * X), axis=1)
    value: Float64 = X[np.arange(len(X)), widest[nodes.node]].astype(np.float64)
    for _ in range(POWER_ROUNDS):
        axis = nodes.weighted_sum(weight * value, X)
        axis /= np.maximum(np.abs(axis).max(axis=1, keepdims=True), np.finfo(axis.dtype).tiny)
        value = nodes.dot(X, axis)
    return value


def shares(length: Int64) -> Array:
    """Return 2**-length in units of the smallest; Python integers where int64 holds no sum.

    Examples
    --------
    >>> shares(np.array([1, 2, 3, 3])).tolist()
    [4, 2, 1, 1]
    """
    exponent = length.max() - length
    fit = (2.0**exponent).sum() < 2.0**62
    exact: Array = 2 ** (exponent if fit else exponent.astype(object))
    return exact


def fill_half(nodes: Nodes, value: Float64, share: Array) -> Int64:
    """Fill half of each node with its rows in order of a figure; the rest is the other half.

    Parameters
    ----------
    nodes : Nodes
    value : float64 array (n,)
        Ties are in the order of the rows.
    share : array (n,)
        Powers of two; over a node they sum to one too.

    Returns
    -------
    int64 array (n,)
        0 in the half that is filled, 1 in the other. Both have half of the node's share.

    Notes
    -----
    Each pass over the rows takes what fits before the first that does not. The room then left is
    smaller than that row's power of two, so there are at most as many passes as
    there are lengths of codes.

    Examples
    --------
    >>> fill_half(Nodes(np.array([0, 4])), np.array([0.1, 0.2, 0.3, 0.4]), np.array([1, 4, 2, 1]))
    array([0, 1, 0, 0])
    """
    order = np.lexsort((value, nodes.node))
    branch = np.ones(len(order), np.int64)
    room = np.add.reduceat(share, nodes.start[:-1]) // 2
    while True:
        node = nodes.node[order]
        fits = share[order] <= room[node]
        order, node = order[fits], node[fits]
        if not order.size:
            return branch
        size = share[order]
        head = np.flatnonzero(np.diff(node, prepend=-1))
        filled = np.cumsum(size)
        filled -= np.repeat(filled[head] - size[head], np.diff(head, append=len(node)))
        taken = filled <= room[node]
        branch[order[taken]] = 0
        room[node[head]] -= np.add.reduceat(np.where(taken, size, 0), head)
        order = order[~taken]

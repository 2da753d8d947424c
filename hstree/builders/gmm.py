"""The trees of Mnih & Hinton (2008): mixtures of two Gaussians, fitted to ever fewer words.

Words with similar vectors end up under the same nodes. The vectors are whatever they were given
as; a model's mean predicted vectors, which the paper takes, come from `hstree bootstrap`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from hstree import progress
from hstree._options import RandomState, Range, checked_options
from hstree._typing import Bool, Float64, Int64
from hstree.builders.shared.cuts import all_in_one, centred_rows, cut_in_order, free_stuck, scale_of
from hstree.builders.shared.join import join_under_root
from hstree.builders.shared.mixture import Nodes, log_odds
from hstree.builders.shared.recursion import Cut, grow
from hstree.data.vectors import WordVectors
from hstree.errors import InputError, OptionError
from hstree.tree import Tree

#: What a count of zero weighs, so that no node is without weight.
LEAST_COUNT = 0.5


@checked_options
def gmm(
    vectors: WordVectors,
    *,
    split: Literal["adaptive", "balanced"] = "adaptive",
    epsilon: Annotated[float, Range(0, 0.5)] = 0.0,
    trees: Annotated[int, Range(1, 65536)] = 1,
    iterations: Annotated[int, Range(1)] = 10,
    shared_variance: bool = False,
    weighted: bool = False,
    max_codes: Annotated[int, Range(1)] = 64,
    random_state: RandomState = 0,
) -> Tree:
    """Cut the words in two by a mixture of two spherical Gaussians, again and again.

    Parameters
    ----------
    vectors : WordVectors
        One vector a word, and counts where `weighted` wants them.
    split : {"adaptive", "balanced"}
        How words go to the two children: to the component of higher responsibility, or ordered
        by the log-odds of the components and cut in the middle.
    epsilon : float
        Words whose responsibilities are within this of 0.5 go to both children, and so have
        several codes: 0.4 is responsibilities from 0.1 to 0.9. From 0 to 0.5; adaptive only. At
        0.5 all words go to both children, until they have `max_codes` codes.
    trees : int
        Trees from as many random starts, side by side under one root; up to 65,536.
    iterations : int
        Rounds of EM for each node.
    shared_variance : bool
        One variance for both components of a node.
    weighted : bool
        Count each word as often in the mixtures as it occurs in the training text.
    max_codes : int
        The codes that a word may have in each tree; further cuts do not double it.
    random_state : int
        Seed of the random even halves that EM starts from.

    Returns
    -------
    Tree
        Binary, but for the root where `trees` is 3 or more. ``meta["max_codes_reached"]`` says
        how many words would have had more codes but for `max_codes`.

    Raises
    ------
    OptionError
        When an option is out of its range.
    InputError
        When `weighted` has no counts to weigh with.

    Notes
    -----
    Each node's mixture starts from a random even half of its words. Its variances are kept
    above 1e-6 of the node's own (`mixture.VARIANCE_FLOOR`). A node in which either child would
    keep all words gives up its doubled words first; if one child still keeps all, the words are
    cut at the median of the node's widest axis, and in their order where that ties. So every
    child is smaller than its parent, and two words always part. With an epsilon of 0.5 either
    child would keep all words at every node: there, the surest word of each child alone is not
    doubled.

    Tree t of several is grown from child t of ``SeedSequence(random_state)``: the first of them
    is the tree that ``trees=1`` gives. O(V d) a level and round: a million words of 100 numbers
    in half a minute, and hardly more memory than the vectors take twice.

    References
    ----------
    .. [1] A. Mnih and G. Hinton, "A Scalable Hierarchical Distributed Language Model",
       NIPS 2008, section 4: RANDOM, BALANCED, ADAPTIVE(epsilon).
    """
    if epsilon > 0 and split == "balanced":
        raise OptionError.about(
            "epsilon", "needs split 'adaptive'; a balanced split doubles no word"
        )
    cut = _cut(vectors, split, epsilon, iterations, shared_variance, weighted)
    n_words = len(vectors.labels)
    seeds = np.random.SeedSequence(random_state).spawn(trees)
    with progress.task("building trees", total=trees * n_words, unit="words") as task:
        grown = [
            grow(n_words, cut, np.random.default_rng(seed), max_codes=max_codes, task=task)
            for seed in seeds
        ]
    meta: dict[str, int] = {}
    if epsilon > 0:
        bounded = np.logical_or.reduce([tree.bounded for tree in grown])
        meta["max_codes_reached"] = int(np.count_nonzero(bounded))
    made = [Tree(vectors.labels, g.child_start, g.child, counts=vectors.counts) for g in grown]
    tree = made[0] if trees == 1 else join_under_root(made, vectors.labels, counts=vectors.counts)
    return tree.with_meta(meta)


def _cut(
    vectors: WordVectors,
    split: str,
    epsilon: float,
    iterations: int,
    shared_variance: bool,
    weighted: bool,
) -> Cut:
    """Make the rule that sends words to the components of their node's mixture."""
    weights = _weights(vectors) if weighted else np.ones(len(vectors.labels))
    scale = scale_of(vectors.vectors)
    doubtful = np.log(0.5 + epsilon) - np.log(0.5 - epsilon) if epsilon < 0.5 else np.inf

    def cut(words: Int64, start: Int64, rng: np.random.Generator) -> Int64:
        nodes, weight = Nodes(start), weights[words]
        X = centred_rows(vectors.vectors, words, nodes, weight, scale)
        odds = log_odds(
            nodes,
            X,
            cut_in_order(nodes, rng.random(len(words))) == 1,
            weight=weight,
            iterations=iterations,
            shared_variance=shared_variance,
        )
        if split == "balanced":
            return cut_in_order(nodes, odds)
        second = odds > 0
        branch = second.astype(np.int64)
        if epsilon == 0.5:
            free_stuck(branch, all_in_one(nodes, second) | all_in_one(nodes, ~second), nodes, X)
            both = ~_surest(nodes, branch, odds)
            branch[both] = ~branch[both]
            return branch
        if epsilon > 0:
            both = np.abs(odds) <= doubtful
            full = all_in_one(nodes, second | both) | all_in_one(nodes, ~second | both)
            both &= ~full[nodes.node]
            branch[both] = ~branch[both]
        free_stuck(branch, all_in_one(nodes, second) | all_in_one(nodes, ~second), nodes, X)
        return branch

    return cut


def _surest(nodes: Nodes, branch: Int64, odds: Float64) -> Bool:
    """Mark the word of each child of a node that is farthest from the other: bool array (n,)."""
    order = np.lexsort((odds, branch, nodes.node))
    surest = np.zeros(len(order), bool)
    surest[order[nodes.start[:-1]]] = True
    surest[order[nodes.start[1:] - 1]] = True
    return surest


def _weights(vectors: WordVectors) -> Float64:
    if vectors.counts is None:
        raise InputError(
            "the option 'weighted' needs counts, and these vectors have none; add them to "
            "NAME.labels.tsv (word<TAB>count), name a vocabulary, or leave the option out"
        )
    return np.maximum(vectors.counts.astype(np.float64), LEAST_COUNT)

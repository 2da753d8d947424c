"""Trees by k-means: the words of a node around k centres, again and again.

Balanced, this is the tree under probabilistic label trees and Parabel. The recursion and the way
on from nodes that no centre parts are those of `gmm`; a word has one code.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from hstree import progress
from hstree._options import RandomState, Range, checked_options
from hstree._ragged import offsets
from hstree._typing import Bool, Float64, Floating, Int64
from hstree.builders.shared.cuts import all_in_one, centred_rows, free_stuck, scale_of
from hstree.builders.shared.mixture import Nodes
from hstree.builders.shared.recursion import Cut, grow
from hstree.data.vectors import WordVectors
from hstree.tree import Tree


@checked_options
def kmeans(
    vectors: WordVectors,
    *,
    arity: Annotated[int, Range(2)] = 2,
    balanced: bool = False,
    iterations: Annotated[int, Range(1)] = 10,
    random_state: RandomState = 0,
) -> Tree:
    """Part the words by k-means, then the words of each part, until each stands alone.

    Parameters
    ----------
    vectors : WordVectors
        One vector a word; distances are Euclidean.
    arity : int
        Centres, and so children, of a node: k. A node of k words or fewer has them as children.
    balanced : bool
        Make the children of a node equally large, up to one word.
    iterations : int
        Rounds of Lloyd's algorithm for each node, at most; fewer where nothing moves.
    random_state : int
        Seed of the first centres.

    Returns
    -------
    Tree
        With one code a label.

    Raises
    ------
    OptionError
        When an option is out of its range.

    Notes
    -----
    The first centres are drawn by k-means++ [1]_. A centre that loses all its words stays where it
    is, so that a node may have fewer than k children. Where one centre takes all words, as among
    identical vectors, they are cut evenly along the node's widest axis.

    Balanced, the first part is the words that are nearest to the first centre, compared with
    the best of the others; the second is taken in the same way from the rest, and so on. With
    two centres that orders the words by the difference of their distances and cuts
    in the middle, as Parabel does [2]_.

    O(k V d) a level and round.

    References
    ----------
    .. [1] D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", 2007.
    .. [2] Y. Prabhu et al., "Parabel: partitioned label trees for extreme classification with
       application to dynamic search advertising", WWW 2018, section 4.1.
    """
    arity = min(arity, max(2, len(vectors.labels)))  # more children change nothing
    cut = kmeans_cut(vectors.vectors, arity, balanced, iterations=iterations)
    n_words = len(vectors.labels)
    rng = np.random.default_rng(random_state)
    with progress.task("building the tree", total=n_words, unit="words") as task:
        grown = grow(n_words, cut, rng, arity=arity, task=task)
    return Tree(vectors.labels, grown.child_start, grown.child, counts=vectors.counts)


def kmeans_cut(
    vectors: Floating, arity: int = 2, balanced: bool = False, *, iterations: int
) -> Cut:
    """Return the rule that cuts nodes by k-means: see `kmeans`, whose options these are.

    Parameters
    ----------
    vectors : float array (V, d)
        One row for each of the words that are to be cut.
    arity, balanced, iterations
    """
    scale = scale_of(vectors)
    every = np.ones(len(vectors))

    def cut(words: Int64, start: Int64, rng: np.random.Generator) -> Int64:
        nodes = Nodes(start)
        X = centred_rows(vectors, words, nodes, every[: len(words)], scale)
        branch = _cluster(nodes, X, arity, balanced, iterations, rng)
        stuck = all_in_one(nodes, branch == branch[start[nodes.node]])
        free_stuck(branch, stuck, nodes, X, arity)
        return branch

    return cut


def _cluster(
    nodes: Nodes, X: Floating, k: int, balanced: bool, iterations: int, rng: np.random.Generator
) -> Int64:
    """Give each row the number of its centre, by Lloyd's algorithm in all nodes at once."""
    centres = _first_centres(nodes, X, k, rng)
    branch = np.full(len(X), -1)
    for _ in range(iterations):
        distance = np.stack([_distance(nodes, X, centre) for centre in centres])
        nearest = _even_parts(nodes, distance) if balanced else np.argmin(distance, axis=0)
        if np.array_equal(nearest, branch):
            break
        branch = nearest
        for j in range(k):
            centres[j] = _mean(nodes, X, branch == j, centres[j])
    return branch


def _distance(nodes: Nodes, X: Floating, centre: Floating) -> Float64:
    """Return squared distances (n,) to each node's centre (S, d), less the rows' own squares."""
    square: Float64 = np.vecdot(centre, centre).astype(np.float64)
    return square[nodes.node] - 2 * nodes.dot(X, centre)


def _mean(nodes: Nodes, X: Floating, member: Bool, otherwise: Floating) -> Floating:
    """Return each node's mean over its members (S, d); `otherwise` where it has none."""
    weight = member.astype(np.float64)
    n_members = nodes.total(weight)
    weight /= np.maximum(n_members, 1)[nodes.node]
    return np.where(n_members[:, None] > 0, nodes.weighted_sum(weight, X), otherwise)


def _first_centres(nodes: Nodes, X: Floating, k: int, rng: np.random.Generator) -> list[Floating]:
    """Draw k rows of each node, with chances as their squared distances to those drawn before.

    The row of the largest log(chance) + Gumbel noise is such a draw.
    """
    square = np.vecdot(X, X).astype(np.float64)
    nearest = np.ones(len(X))
    centres: list[Floating] = []
    for _ in range(k):
        with np.errstate(divide="ignore"):
            key = np.log(nearest) + rng.gumbel(size=len(X))
        last_in_order = np.lexsort((key, nodes.node))[nodes.start[1:] - 1]
        centres.append(X[last_in_order])
        distance = np.maximum(square + _distance(nodes, X, centres[-1]), 0)
        nearest = np.minimum(nearest, distance) if len(centres) > 1 else distance
    return centres


def _even_parts(nodes: Nodes, distance: Float64) -> Int64:
    """Part the rows of each node evenly, given their distances (k, n) to its k centres."""
    k, n = distance.shape
    part = np.full(n, k - 1)
    best_later = np.minimum.accumulate(distance[::-1], axis=0)[::-1]
    ends = -(-nodes.size * np.arange(k)[:, None] // k)
    rest, n_left = np.arange(n), nodes.size
    for j, wanted in enumerate(np.diff(ends, axis=0)):
        lead = distance[j, rest] - best_later[j + 1, rest]
        order = rest[np.lexsort((lead, nodes.node[rest]))]
        node = nodes.node[order]
        taken = np.arange(len(order)) - offsets(n_left)[node] < wanted[node]
        part[order[taken]] = j
        rest, n_left = np.sort(order[~taken]), n_left - wanted
    return part

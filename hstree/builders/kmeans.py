"""Hierarchical k-means; balanced on request, as in probabilistic label trees and Parabel."""

from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from hstree._arrays import Float64, Floating, Int64, offsets
from hstree._options import RandomState, checked_options
from hstree._parallel import stop_flag
from hstree.builders.shared.nodes import (
    Nodes,
    centre_rows,
    centred_rows,
    power_of_two_scale,
    split_stuck,
)
from hstree.builders.shared.top_down import RowScores, SplitRule, Splitter
from hstree.builders.shared.vector_trees import build_vector_trees
from hstree.data.vectors import WordVectors
from hstree.kernels import compiled
from hstree.tree import Tree


@checked_options
def kmeans(
    vectors: WordVectors,
    *,
    arity: Annotated[int, Meta(ge=2)] = 2,
    max_leaves: Annotated[int, Meta(ge=2)] | None = None,
    balanced: bool = False,
    iterations: Annotated[int, Meta(ge=1)] = 10,
    random_state: RandomState = 0,
    n_jobs: int | None = None,
) -> Tree:
    """Split the words by k-means, then the words of each cluster, until each is a leaf.

    Parameters
    ----------
    vectors : WordVectors
        One vector per word; distances are Euclidean.
    arity : int
        Number of clusters, k, and of children of a node that is split.
    max_leaves : int, optional
        Maximum number of words of a node that is not split: they are its children. Nodes with at
        most k words are never split.
    balanced : bool
        Whether the children of a node have the same number of words, up to one word.
    iterations : int
        Maximum number of rounds of Lloyd's algorithm for each node.
    random_state : int
        Random seed for the initial centres.
    n_jobs : int, optional
        Number of jobs at a time, as in scikit-learn. The tree does not depend on it.

    Returns
    -------
    Tree
        One code per label.

    Notes
    -----
    The initial centres are drawn by k-means++ [1]_. A centre that loses all its words keeps its
    position, so that a node may have fewer than k children. If one centre gets all words, for
    example if their vectors are identical, they are split evenly along the axis of largest
    variance.

    With `balanced`, the first child gets the words nearest to the first centre, relative to the
    nearest of the other centres. The second child gets its part of the remaining words in the same
    way, and so on. With two centres, words are sorted by the difference of their distances and
    split in the middle, as in Parabel [2]_.

    O(k V d) per level and round. Compiled code rounds sums differently: a word that is about
    equally near to two centres may go to the other one.

    Above two million words, the split of an upper node is computed from a sample of its rows, and
    jobs build the sub-trees (`hstree.builders.shared.large`).

    References
    ----------
    .. [1] D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", 2007.
    .. [2] Y. Prabhu et al., "Parabel: partitioned label trees for extreme classification with
       application to dynamic search advertising", WWW 2018, section 4.1.
    """
    limit = max(2, len(vectors.labels))  # more children change nothing
    splitter = KMeansSplitter(
        balanced, iterations, arity=min(arity, limit), max_leaves=min(max_leaves or 0, limit)
    )
    seeds = [np.random.SeedSequence(random_state)]
    (topology,) = build_vector_trees("kmeans", vectors, splitter, seeds, n_jobs=n_jobs)
    return Tree(vectors.labels, topology.child_start, topology.child, counts=vectors.counts)


@dataclass(frozen=True)
class KMeansSplitter(Splitter):
    """Splitter by k-means, with the options of `kmeans`."""

    balanced: bool
    iterations: int
    arity: int = 2
    max_leaves: int = 0

    def draw(self, rng: np.random.Generator, n: int) -> Float64:
        """Draw Gumbel noise (k, n), which determines the initial k centres."""
        return rng.gumbel(size=(self.arity, n))

    def split_rule(self, vectors: Floating, word_values: None) -> SplitRule:
        """Return the rule that splits nodes of words with these vectors (V, d)."""
        scale = power_of_two_scale(vectors)

        def split(words: Int64, start: Int64, noise: Float64) -> Int64:
            nodes = Nodes(start)
            X = centred_rows(vectors, words, nodes, scale)
            centres = draw_centres(nodes, X, noise)
            branch = cluster_rows(nodes, X, centres, self.balanced, self.iterations)
            split_stuck(branch, nodes, X, self.arity)
            return branch

        return split

    def fit_scores(self, rows: Floating, word_values: None, rng: np.random.Generator) -> RowScores:
        """Cluster the rows; return the squared distance to each centre, minus the row's square."""
        nodes, X, scale, centre = centre_rows(rows)
        centres = draw_centres(nodes, X, self.draw(rng, len(rows)))
        branch = cluster_rows(nodes, X, centres, self.balanced, self.iterations)
        # (k, d) means of the clusters; an empty cluster keeps its initial centre
        mean = np.empty((self.arity, X.shape[1]), X.dtype)
        for j, first_centre in enumerate(centres):
            members = X[branch == j]
            mean[j] = members.mean(axis=0, dtype=np.float64) if len(members) else first_centre[0]
        square = np.vecdot(mean, mean).astype(np.float64)
        return RowScores(scale, centre, square, np.zeros(self.arity), -2 * mean)

    def branches(self, nodes: Nodes, scores: Float64, word_values: None) -> Int64:
        """Return the branches (n,) of words by their distances (k, n)."""
        return _split_evenly(nodes, scores) if self.balanced else np.argmin(scores, axis=0)


def draw_centres(nodes: Nodes, X: Floating, noise: Float64) -> list[Floating]:
    """Draw k rows from each node by k-means++; return a list of k arrays (S, d).

    The probability of a row is proportional to its squared distance to the nearest row drawn
    before. The row with the largest log(probability) + Gumbel noise (k, n) has this distribution.
    """
    square = np.vecdot(X, X).astype(np.float64)
    nearest = np.ones(len(X))  # squared distance to the nearest centre; the first draw is uniform
    centres: list[Floating] = []
    for row_noise in noise:
        if stop_flag.get()[0]:
            raise CancelledError
        # A row that is a centre has probability 0
        with np.errstate(divide="ignore"):
            key = np.log(nearest) + row_noise
        last_in_order = np.lexsort((key, nodes.node))[nodes.start[1:] - 1]
        centres.append(X[last_in_order])
        # Rounding may give a small negative distance. The first distances replace the initial ones
        distance = np.maximum(square + _distances(nodes, X, centres[-1]), 0)
        nearest = np.minimum(nearest, distance) if len(centres) > 1 else distance
    return centres


def cluster_rows(
    nodes: Nodes, X: Floating, centres: list[Floating], balanced: bool, iterations: int
) -> Int64:
    """Return the cluster (n,) of each row, by Lloyd's algorithm from initial centres (S, d).

    Changes the list of centres. The result has no meaning once `stop_flag` is set.
    """
    fast = compiled()
    if fast is not None and not balanced and fast.is_supported(X):
        branch: Int64 = fast.clusters(
            nodes.start, X, np.stack(centres), iterations, stop_flag.get()
        )
        return branch
    branch = np.full(len(X), -1)
    for _ in range(iterations):
        distance = np.stack([_distances(nodes, X, centre) for centre in centres])  # (k, n)
        nearest = _split_evenly(nodes, distance) if balanced else np.argmin(distance, axis=0)
        if np.array_equal(nearest, branch):
            break
        branch = nearest
        for j in range(len(centres)):
            # (S, d) mean over the rows of cluster j in each node; an empty cluster keeps its centre
            weight = (branch == j).astype(np.float64)
            n_rows = nodes.total(weight)
            weight /= np.maximum(n_rows, 1)[nodes.node]
            mean = nodes.weighted_sum(weight, X)
            centres[j] = np.where(n_rows[:, None] > 0, mean, centres[j])
    return branch


def _distances(nodes: Nodes, X: Floating, centre: Floating) -> Float64:
    """Return the squared distance (n,) to the node's centre (S, d), minus the row's square."""
    square = np.vecdot(centre, centre).astype(np.float64)
    return np.asarray(square[nodes.node] - 2 * nodes.dot(X, centre))


def _split_evenly(nodes: Nodes, distance: Float64) -> Int64:
    """Split the rows of each node evenly, by their distances (k, n) to its k centres."""
    k, n = distance.shape
    branch = np.full(n, k - 1)
    # (k, n) distance to the nearest of the centres j, ..., k - 1
    nearest_later = np.minimum.accumulate(distance[::-1], axis=0)[::-1]
    # (k, S) end of each branch within its node; the differences are the sizes of the branches
    ends = -(-nodes.size * np.arange(k)[:, None] // k)
    # Each centre takes its rows; `rest` holds the remaining rows, and `n_left` (S,) their numbers
    rest = np.arange(n)
    n_left = nodes.size
    for j, n_wanted in enumerate(np.diff(ends, axis=0)):
        # Centre j takes the rows whose distance to the nearest later centre is larger by most
        lead = distance[j, rest] - nearest_later[j + 1, rest]
        order = rest[np.lexsort((lead, nodes.node[rest]))]
        node = nodes.node[order]
        is_taken = np.arange(len(order)) - offsets(n_left)[node] < n_wanted[node]
        branch[order[is_taken]] = j
        rest = np.sort(order[~is_taken])
        n_left = n_left - n_wanted
    return branch

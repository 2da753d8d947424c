"""Trees of Mnih and Hinton (2008): words split in two by mixtures of Gaussians, level by level.

Words with similar vectors are under the same nodes. In the paper, the vector of a word is the mean
of the vectors that a model predicted for it; the bootstrap computes such vectors.
"""

from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
from msgspec import Meta
from scipy.special import expit

from hstree._arrays import Bool, Float64, Floating, Int64
from hstree._options import RandomState, checked_options
from hstree._parallel import stop_flag
from hstree.builders.shared.join import join_under_root
from hstree.builders.shared.nodes import (
    Nodes,
    centre_rows,
    centred_rows,
    power_of_two_scale,
    split_in_order,
    split_stuck,
)
from hstree.builders.shared.top_down import RowScores, SplitRule, Splitter
from hstree.builders.shared.vector_trees import build_vector_trees
from hstree.data.vectors import WordVectors
from hstree.errors import OptionError
from hstree.tree import Tree

#: Fraction of a node's variance that is added to the variances of its components. It corresponds to
#: `reg_covar` in scikit-learn, but is relative.
VARIANCE_FLOOR = 1e-6
#: Minimum variance, for nodes of equal vectors.
LEAST_VARIANCE = 1e-300
#: Minimum fraction of a node's rows in a component, so that logs are finite.
LEAST_FRACTION = 1e-200


@checked_options
def gmm(
    vectors: WordVectors,
    *,
    split: Literal["adaptive", "balanced"] = "adaptive",
    epsilon: Annotated[float, Meta(ge=0, le=0.5)] = 0.0,
    trees: Annotated[int, Meta(ge=1, le=65536)] = 1,
    iterations: Annotated[int, Meta(ge=1)] = 10,
    max_codes: Annotated[int, Meta(ge=1)] = 64,
    random_state: RandomState = 0,
    n_jobs: int | None = None,
) -> Tree:
    """Split the words of each node in two by a mixture of two spherical Gaussians.

    Parameters
    ----------
    vectors : WordVectors
        One vector per word.
    split : {"adaptive", "balanced"}
        How to divide words between the two children. adaptive: each word goes to the component with
        the higher responsibility. balanced: words are sorted by the log-odds of the components, and
        each child gets half of them.
    epsilon : float
        A word goes to both children, and has several codes, if its responsibility differs from
        0.5 by at most epsilon: with 0.4, from 0.1 to 0.9. With 0.5, all words go to both children,
        until they have max_codes codes. Only with split "adaptive".
    trees : int
        Number of trees side by side under one root, each from its own random start.
    iterations : int
        Number of EM rounds for each node.
    max_codes : int
        Maximum number of codes per word and tree.
    random_state : int
        Random seed for the even halves from which EM starts.
    n_jobs : int, optional
        Number of jobs at a time, as in scikit-learn. The tree does not depend on it.

    Returns
    -------
    Tree
        Binary, except for the root if `trees` is 3 or more.

    Raises
    ------
    OptionError
        When `epsilon` is above 0 with a balanced split.

    Notes
    -----
    EM for a node starts from two random even halves of its words. `VARIANCE_FLOOR` times the
    variance of the node is added to the variance of each component. If a child would get all words
    of its node, no word of the node goes to both children. If a child still gets all words, they
    are split at the median of the axis of largest variance, ties in their order. Every child is
    therefore smaller than its parent. With an epsilon of 0.5, all words of a node go to both
    children, except the most certain word of each child.

    Tree t starts from child t of ``SeedSequence(random_state)``; the first tree is the one that
    ``trees=1`` builds. O(V d) per level and round: a million words with 100 dimensions take half a
    minute, and about twice the memory of the vectors. Above two million words, the split of an
    upper node is computed from a sample of its rows, and jobs build the sub-trees
    (`hstree.builders.shared.large`).

    References
    ----------
    .. [1] A. Mnih and G. Hinton, "A Scalable Hierarchical Distributed Language Model",
       NIPS 2008, section 4: RANDOM, BALANCED, ADAPTIVE(epsilon).
    """
    if epsilon > 0 and split == "balanced":
        reason = "needs split 'adaptive'; leave epsilon at 0 with split 'balanced'"
        raise OptionError.about("epsilon", reason)
    splitter = MixtureSplitter(split, epsilon, iterations, max_codes)
    seeds = np.random.SeedSequence(random_state).spawn(trees)
    topologies = build_vector_trees("gmm", vectors, splitter, seeds, n_jobs=n_jobs)
    built = [
        Tree(vectors.labels, topology.child_start, topology.child, counts=vectors.counts)
        for topology in topologies
    ]
    return built[0] if trees == 1 else join_under_root(built, vectors.labels, counts=vectors.counts)


@dataclass(frozen=True)
class MixtureSplitter(Splitter):
    """Splitter by a mixture of two Gaussians, with the options of `gmm`."""

    split: str
    epsilon: float
    iterations: int
    max_codes: int

    def draw(self, rng: np.random.Generator, n: int) -> Float64:
        """Draw numbers (n,) whose order splits each node evenly."""
        return rng.random(n)

    def split_rule(self, vectors: Floating, word_values: None) -> SplitRule:
        """Return the rule that splits nodes of words with these vectors (V, d)."""
        scale = power_of_two_scale(vectors)

        def split(words: Int64, start: Int64, drawn: Float64) -> Int64:
            nodes = Nodes(start)
            X = centred_rows(vectors, words, nodes, scale)
            # EM starts from random even halves
            half = split_in_order(nodes, drawn) == 1
            odds = log_odds(nodes, X, half, self.iterations)
            return self._assign(nodes, odds, X)

        return split

    def fit_scores(self, rows: Floating, word_values: None, rng: np.random.Generator) -> RowScores:
        """Fit a mixture to the rows, and return the log-odds of its components as scores."""
        nodes, X, scale, centre = centre_rows(rows)
        half = split_in_order(nodes, self.draw(rng, len(rows))) == 1
        odds = log_odds(nodes, X, half, self.iterations)
        fitted = maximise(nodes, X, np.vecdot(X, X).astype(np.float64), odds)
        linear = fitted.linear[:, None] * fitted.mean
        return RowScores(scale, centre, fitted.constant, fitted.quadratic, linear.astype(X.dtype))

    def branches(self, nodes: Nodes, scores: Float64, word_values: None) -> Int64:
        """Return the branches (n,) of words by their log-odds (1, n)."""
        return self._assign(nodes, scores[0])

    def _assign(self, nodes: Nodes, odds: Float64, X: Floating | None = None) -> Int64:
        """Return the branches (n,) of words by their log-odds (n,).

        Without X (n, d), all words of a node may get the same branch.
        """
        if self.split == "balanced":
            return split_in_order(nodes, odds)
        is_second = odds > 0
        branch = is_second.astype(np.int64)
        if X is not None:
            split_stuck(branch, nodes, X)
        if self.epsilon == 0:
            return branch

        # (n,) whether a word goes to both children
        if self.epsilon == 0.5:
            # All words except the most certain word of each child
            order = np.lexsort((odds, branch, nodes.node))
            both = np.ones(len(odds), bool)
            both[order[np.r_[nodes.start[:-1], nodes.start[1:] - 1]]] = False
        else:
            both = np.abs(odds) <= np.log(0.5 + self.epsilon) - np.log(0.5 - self.epsilon)
            # No word of a node goes to both if one child would then have all its words
            is_in_child = [~is_second | both, is_second | both]
            has_all = np.logical_and.reduceat(is_in_child, nodes.start[:-1], axis=1)  # (2, S)
            both &= ~(has_all[0] | has_all[1])[nodes.node]
        return np.where(both, ~branch, branch)


class LogOdds(NamedTuple):
    """Log-odds of the second component of each node's mixture, as a function of a row x.

    The log-odds are ``constant + quadratic * x @ x + linear * mean @ x``.
    """

    constant: Float64  #: (S,)
    quadratic: Float64  #: (S,)
    linear: Float64  #: (S,)
    mean: Floating  #: (S, d) mean of the component with the smaller mass


def log_odds(nodes: Nodes, X: Floating, is_second: Bool, iterations: int) -> Float64:
    """Fit a mixture of two spherical Gaussians to each node by EM; return the log-odds of its rows.

    Parameters
    ----------
    nodes : Nodes
        S nodes with n rows.
    X : float array (n, d)
        Rows, centred within each node. Products have their precision; sums are float64.
    is_second : bool array (n,)
        Whether EM starts with the row in the second component.
    iterations : int
        Number of rounds after the first M-step.

    Returns
    -------
    log_odds : float64 array (n,)
        ``log P(second | row) - log P(first | row)``, finite if X is; the `expit` of the log-odds is
        the responsibility of the second component.
    """
    square = np.vecdot(X, X).astype(np.float64)
    odds = np.where(is_second, np.inf, -np.inf)
    for _ in range(iterations + 1):
        if stop_flag.get()[0]:
            raise CancelledError
        fitted = maximise(nodes, X, square, odds)
        # E-step: the log-odds are a quadratic function of the row
        terms = np.stack([fitted.constant, fitted.quadratic, fitted.linear])
        constant, quadratic, linear = terms.take(nodes.node, axis=1)
        odds = constant + quadratic * square + linear * nodes.dot(X, fitted.mean)
    return odds


def maximise(nodes: Nodes, X: Floating, square: Float64, odds: Float64) -> LogOdds:
    """Fit the mixture of each node to the rows (n, d) and their log-odds (n,): the M-step.

    Rows are centred, so that the means of the two components lie on a line through zero. The sums
    for the lighter component therefore determine those for the other, and one dot product per row
    gives both distances: ``4 n d`` operations per round. `square` (n,) holds the squared lengths of
    the rows.
    """
    d = X.shape[1]
    mass = nodes.size
    spread = nodes.total(square)  # (S,) sum of squared lengths
    least_variance = np.maximum(VARIANCE_FLOOR * spread / (mass * d), LEAST_VARIANCE)
    # (S,) 1 if the second component is the lighter one, else -1
    sign = np.where(nodes.total(expit(odds)) <= mass / 2, 1.0, -1.0)

    # (S,) mass, mean and variance of the lighter component, then of the heavier one
    responsibility = expit(sign[nodes.node] * odds)
    light = np.maximum(nodes.total(responsibility), LEAST_FRACTION * mass)
    heavy = mass - light
    ratio = light / heavy
    mean = nodes.weighted_sum(responsibility / light[nodes.node], X)
    mean_square = np.vecdot(mean, mean).astype(np.float64)
    light_spread = nodes.total(responsibility * square)
    light_variance = np.maximum(light_spread / light - mean_square, 0) / d
    heavy_variance = np.maximum((spread - light_spread) / heavy - ratio**2 * mean_square, 0) / d
    light_precision = 1 / (light_variance + least_variance)
    heavy_precision = 1 / (heavy_variance + least_variance)

    # (S,) coefficients of the log-odds of the lighter component, then of the second component
    constant = np.log(ratio) + d / 2 * np.log(light_precision / heavy_precision)
    constant += mean_square / 2 * (ratio**2 * heavy_precision - light_precision)
    quadratic = (heavy_precision - light_precision) / 2
    linear = light_precision + ratio * heavy_precision
    return LogOdds(sign * constant, sign * quadratic, sign * linear, mean)

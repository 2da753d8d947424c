"""Mixtures of two spherical Gaussians, fitted by EM to many small groups of vectors at once.

The groups ("nodes") lie one after the other in one matrix, and each gets a mixture of its own:
thousands of nodes of three words cost what one node of as many words does. What is not here:
where the groups come from, and what is done with the answer (`builders.gmm`).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from hstree._ragged import offsets, segment_ids
from hstree._typing import Bool, Float64, Floating, Int64

#: Rows summed in the data's own precision before the sums go on in float64.
PIECE = 4096
#: Variances are kept above this share of their node's own variance.
VARIANCE_FLOOR = 1e-6
#: The least share of a node's weight that a component is taken to have, so that logs are finite.
LEAST_SHARE = 1e-200


class Nodes:
    """The layout of n rows in S nodes, and the two products that every fit is made of.

    Parameters
    ----------
    start : int64 array (S + 1,)
        The rows of node s are ``start[s]:start[s + 1]``; no node is empty.

    Attributes
    ----------
    node : int64 array (n,)
        The node of each row.
    """

    def __init__(self, start: Int64) -> None:
        self.start = start
        self.size = np.diff(start)
        self.node = segment_ids(start)
        n = int(start[-1])
        piece = start if len(self.size) > 1 else offsets(np.diff(np.r_[0:n:PIECE, n]))
        # The products below replace the weights: building a sparse matrix costs more than using it.
        self._sum = csr_array((np.ones(n), np.arange(n), piece), shape=(len(piece) - 1, n))

    def total(self, value: Float64) -> Float64:
        """Sum a figure (n,) over the rows of each node: float64 array (S,)."""
        return np.add.reduceat(value, self.start[:-1])

    def weighted_sum(self, weight: Float64, X: Floating) -> Floating:
        """Sum rows (n, d), each times its weight, over each node: array (S, d)."""
        matrix = self._sum
        matrix.data = weight.astype(X.dtype, copy=False)
        of_piece = np.asarray(matrix @ X)
        if len(self.size) > 1:
            return of_piece
        whole: Floating = of_piece.sum(axis=0, keepdims=True, dtype=np.float64).astype(X.dtype)
        return whole

    def dot(self, X: Floating, per_node: Floating) -> Float64:
        """Take the dot product of each row (n, d) with its node's vector (S, d): float64 (n,)."""
        vector = per_node if len(per_node) == 1 else per_node.take(self.node, axis=0)
        product: Float64 = np.vecdot(X, vector).astype(np.float64)
        return product

    def centre(self, X: Floating, weight: Float64) -> None:
        """Take each node's (weighted) mean off its rows, in place."""
        mean = self.weighted_sum(weight / self.total(weight)[self.node], X)
        X -= mean if len(mean) == 1 else mean.take(self.node, axis=0)


def log_odds(
    nodes: Nodes,
    X: Floating,
    second: Bool,
    *,
    weight: Float64 | None = None,
    iterations: int = 10,
    shared_variance: bool = False,
    floor: float = VARIANCE_FLOOR,
) -> Float64:
    """Fit a mixture of two spherical Gaussians to each node and score its rows.

    Parameters
    ----------
    nodes : Nodes
    X : float32 or float64 array (n, d)
        The rows, centred within each node (`Nodes.centre`). All work on them is done in their
        precision, sums over them in float64.
    second : bool array (n,)
        The hard start: rows of the second component. A random half, in Mnih & Hinton's tree.
    weight : float64 array (n,), optional
        How often each row counts, above zero; once by default.
    iterations : int, default 10
        Rounds of EM after the first M-step.
    shared_variance : bool, default False
        One variance for both components rather than one each.
    floor : float, default 1e-6
        This share of the node's own variance is added to every variance (scikit-learn's
        `reg_covar`, but relative).

    Returns
    -------
    float64 array (n,)
        ``log P(second | row) - log P(first | row)``; its `expit` is the responsibility of the
        second component. Finite where X is.

    Notes
    -----
    With rows centred, the means of the components lie on one line through zero, so that the
    sums of the lighter component give those of the other, and one dot product a row gives both
    distances: ``4 n d`` operations a round. The lighter one is summed because the
    difference is then taken where it loses no digits.

    References
    ----------
    .. [1] A. Mnih and G. Hinton, "A Scalable Hierarchical Distributed Language Model",
       NIPS 2008, section 4.
    """
    d = X.shape[1]
    weight = np.ones(len(X)) if weight is None else weight
    square = np.vecdot(X, X).astype(np.float64)
    mass = nodes.total(weight)
    spread = nodes.total(weight * square)
    least_variance = np.maximum(floor * spread / (mass * d), 1e-300)
    odds = np.where(second, np.inf, -np.inf)
    for _ in range(iterations + 1):
        # M-step: weight, mean and variances of the lighter component, and so of both.
        sign = np.where(nodes.total(weight * expit(odds)) <= mass / 2, 1.0, -1.0)
        share = weight * expit(sign[nodes.node] * odds)
        light = np.maximum(nodes.total(share), LEAST_SHARE * mass)
        heavy = mass - light
        ratio = light / heavy
        mean = nodes.weighted_sum(share / light[nodes.node], X)
        mean_square = np.vecdot(mean, mean).astype(np.float64)
        light_spread = nodes.total(share * square)
        light_variance = np.maximum(light_spread / light - mean_square, 0) / d
        heavy_variance = np.maximum((spread - light_spread) / heavy - ratio**2 * mean_square, 0) / d
        if shared_variance:
            light_variance = (light * light_variance + heavy * heavy_variance) / mass
            heavy_variance = light_variance
        light_precision = 1 / (light_variance + least_variance)
        heavy_precision = 1 / (heavy_variance + least_variance)
        # E-step: the log-odds of the lighter component, a quadratic in the row.
        constant = np.log(ratio) + d / 2 * np.log(light_precision / heavy_precision)
        constant += mean_square / 2 * (ratio**2 * heavy_precision - light_precision)
        quadratic = (heavy_precision - light_precision) / 2
        linear = light_precision + ratio * heavy_precision
        terms = np.stack([constant, quadratic, linear]) * sign
        at_zero, of_square, of_dot = terms.take(nodes.node, axis=1)
        odds = at_zero + of_square * square + of_dot * nodes.dot(X, mean)
    return odds

"""The optimum of the penalised likelihood, by L-BFGS over all samples.

The objective is that of scikit-learn's `LogisticRegression`: ``C`` times the weighted sum of the
negative log-likelihoods, plus half the squared norm of the weights; biases are free. Where every
label has one code each node's weights occur in its own decisions only, so the objective is a sum
of convex problems, one a node, over the samples that reach it: each is solved to its own
optimum. Where labels have several codes all weights are moved together, to a local optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.optimize

from hstree import progress
from hstree._typing import Float64, Floating, Int64
from hstree.interop.linear import LinearTree, Rows, is_sparse, met_features
from hstree.layers import kernels

Objective = Callable[[Float64], tuple[float, Float64]]


@dataclass
class Solution:
    """How the solver came to its end.

    Attributes
    ----------
    iterations : int
        Of the node that took the most.
    converged : bool
        Whether the gradient fell below `tol` everywhere.
    curve : list of float
        The objective after each iteration, divided by ``C`` times the weight of the samples; a
        node that has ended keeps its last value.
    """

    iterations: int = 0
    converged: bool = True
    curve: list[float] = field(default_factory=list)
    _ended: float = 0.0

    def add(self, values: list[float], share: float, converged: bool) -> None:
        """Take in the iterations of one problem, which has `share` of the samples' weight."""
        own = [share * value for value in values]
        longer = max(len(own), len(self.curve))
        padded = own + [own[-1]] * (longer - len(own))
        total = self.curve + [self._ended] * (longer - len(self.curve))
        self.curve = [a + b for a, b in zip(total, padded, strict=True)]
        self._ended += own[-1]
        self.iterations = max(self.iterations, len(values))
        self.converged &= converged


def solve(
    model: LinearTree,
    X: Rows,
    labels: Int64,
    sample_weight: Float64,
    *,
    C: float,
    tol: float,
    max_iter: int,
) -> Solution:
    """Move the weights to the optimum, in place.

    Parameters
    ----------
    model : LinearTree
    X : float array or CSR array (n, features)
    labels : int64 array (n,)
        Label ids.
    sample_weight : float64 array (n,)
    C : float
        Inverse strength of the penalty.
    tol : float
        A problem is solved when no element of its gradient, divided by ``C`` times the weight
        of its samples, is larger.
    max_iter : int
        Iterations at most, of each problem.
    """
    solution = Solution()
    used = np.flatnonzero(sample_weight)
    if model.tree.n_nodes == 0 or not used.size:
        return solution
    X, labels, sample_weight = X[used], labels[used], sample_weight[used]
    if model.tree.has_single_codes:  # the loss is convex, and a sum over nodes
        _solve_nodes(model, X, labels, sample_weight, C, tol, max_iter, solution)
    else:
        _solve_together(model, X, labels, sample_weight, C, tol, max_iter, solution)
    return solution


def _solve_nodes(
    model: LinearTree,
    X: Rows,
    labels: Int64,
    sample_weight: Float64,
    C: float,
    tol: float,
    max_iter: int,
    solution: Solution,
) -> None:
    tree, expansion = model.tree, model.layer.codes.expand(labels)
    sample = expansion.decision_code
    node, branch = tree.edge_node[expansion.edge], tree.edge_branch[expansion.edge]
    order = np.argsort(node, kind="stable")
    total = sample_weight.sum()
    # One problem a node, each many passes over its samples: the loop is over optimisations.
    with progress.task("fitting nodes", len(order), "decisions") as task:
        for own in np.split(order, np.flatnonzero(np.diff(node[order])) + 1):
            n = int(node[own[0]])
            weight = sample_weight[sample[own]]
            rows = slice(int(tree.row_start[n]), int(tree.row_start[n + 1]))
            problem = _Node(X[sample[own]], branch[own], weight, int(tree.fan_out[n]), C)
            start = problem.packed(model.bias[rows])
            end, values, converged = _minimise(problem, start, tol, max_iter)
            features, weights, bias = problem.unpacked(end)
            model.weight[rows, features] = weights.T
            model.bias[rows] = bias
            solution.add(values, weight.sum() / total, converged)
            task.advance(len(own))


class _Node:
    """The objective of one node: a logistic regression, or a softmax, over what reaches it."""

    def __init__(self, X: Rows, branch: Int64, weight: Float64, n_children: int, C: float) -> None:
        self.features: Int64 | slice = slice(None)
        if is_sparse(X):
            X, self.features = met_features(X)
        self.X = X.astype(np.float64)
        self.XT = self.X.T
        self.branch = branch
        self.share = weight / weight.sum()
        self.penalty = 1 / (C * weight.sum())
        self.shape = (self.X.shape[1], 1 if n_children == 2 else n_children)
        self.chosen = np.arange(len(branch)) * n_children + branch

    def packed(self, bias: Floating) -> Float64:
        return np.concatenate([np.zeros(self.shape[0] * self.shape[1]), bias])

    def unpacked(self, theta: Float64) -> tuple[Int64 | slice, Float64, Float64]:
        n_weights = self.shape[0] * self.shape[1]
        return self.features, theta[:n_weights].reshape(self.shape), theta[n_weights:]

    def __call__(self, theta: Float64) -> tuple[float, Float64]:
        _, weight, bias = self.unpacked(theta)
        error = self.X @ weight + bias
        if self.shape[1] == 1:
            log_prob, error = kernels.binary_decision(error[:, 0], self.branch == 0)
            error = error[:, None]
        else:
            log_prob = kernels.block_softmax_error(error, self.chosen)
        error *= self.share[:, None]
        by_weight = self.XT @ error + self.penalty * weight
        value = 0.5 * self.penalty * np.vdot(weight, weight) - self.share @ log_prob
        return float(value), np.concatenate([by_weight.ravel(), error.sum(axis=0)])


def _solve_together(
    model: LinearTree,
    X: Rows,
    labels: Int64,
    sample_weight: Float64,
    C: float,
    tol: float,
    max_iter: int,
    solution: Solution,
) -> None:
    share, penalty = sample_weight / sample_weight.sum(), 1 / (C * sample_weight.sum())
    shape, n_weights = model.table.shape, model.table.size

    def objective(theta: Float64) -> tuple[float, Float64]:
        model.table, model.bias = theta[:n_weights].reshape(shape), theta[n_weights:]
        nll, gradients = model.loss(X, labels, share)
        by_table, by_bias = penalty * model.table, np.zeros(len(model.bias))
        for gradient in gradients:
            by_table[gradient.index] += gradient.weight
            by_bias[gradient.rows] += gradient.bias
        value = share @ nll + 0.5 * penalty * np.vdot(model.table, model.table)
        return float(value), np.concatenate([by_table.ravel(), by_bias])

    dtype = model.table.dtype
    X = X.astype(np.float64)
    start = np.concatenate([model.table.ravel(), model.bias]).astype(np.float64)
    with progress.task("fitting all nodes together"):
        end, values, converged = _minimise(objective, start, tol, max_iter)
    model.table, model.bias = (
        end[:n_weights].reshape(shape).astype(dtype),
        end[n_weights:].astype(dtype),
    )
    solution.add(values, 1.0, converged)


def _minimise(
    objective: Objective, start: Float64, tol: float, max_iter: int
) -> tuple[Float64, list[float], bool]:
    """Return the optimum, the objective after each iteration, and whether it converged."""
    values: list[float] = []
    found = scipy.optimize.minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: values.append(float(intermediate_result.fun)),
        # The ending by the objective's fall is left to rounding, as in scikit-learn.
        options={"maxiter": max_iter, "gtol": tol, "ftol": 64 * np.finfo(float).eps, "maxls": 50},
    )
    return found.x, values or [float(found.fun)], found.status == 0

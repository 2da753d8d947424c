"""Training of the linear model node by node: L-BFGS, or liblinear for each child.

The objective is that of scikit-learn's `LogisticRegression`: ``C`` times the weighted sum of the
negative log-likelihoods, plus half the squared norm of the weights; biases are not penalised. A
node that a fraction s of the samples reaches has ``C / sqrt(s)`` instead of C. Every label has one
code, so that the weights of a node occur in its own decisions only. The objective is thus a sum of
convex problems, one per node over the samples that pass it. L-BFGS solves each separately.

For many classes, liblinear's dual coordinate descent trains each child of a node against its
siblings by a separate logistic regression. The probabilities of a node are the softmax of their
logits. Weights that change the logit of no sample are dropped.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse
from threadpoolctl import threadpool_limits

from hstree import progress
from hstree._arrays import Array, Float64, Int32, Int64, segment_ids
from hstree._parallel import n_parallel, parallel
from hstree.interop.sklearn.features import (
    Samples,
    is_sparse,
    spread_columns,
    without_empty_columns,
)
from hstree.interop.sklearn.label_nodes import dual_logistic
from hstree.interop.sklearn.linear import LinearTree
from hstree.layers import arithmetic

#: Tolerance of liblinear.
TOLERANCE = 0.3
#: Minimum number of groups of nodes; a job solves one group at a time.
GROUPS = 64
#: Minimum number of groups per job, so that all jobs end at about the same time.
GROUPS_PER_JOB = 8


class NodeProblem(NamedTuple):
    """Training samples of a node, and the weights to start from."""

    sample: Int64  # (n,) samples that pass the node
    branch: Int64  # (n,) child of the node on the path of each sample
    weight: Float64  # (n,)
    C: float
    start: Any  # weights (n_features, rows) from which L-BFGS starts
    bias: Array  # (rows,)


class Optimum(NamedTuple):
    """Solution of a node's problem."""

    features: Int32 | slice  # those that occur in the samples of the node
    weight: Float64  # (features, rows)
    bias: Float64  # (rows,)
    objective: list[float]  # after each iteration
    is_converged: bool


def solve(
    model: LinearTree,
    X: Samples,
    targets: Int64,
    weight: Float64,
    C: float,
    tol: float,
    max_iter: int,
    n_jobs: int | None,
) -> tuple[list[float], bool]:
    """Optimise the weights in place by L-BFGS, from their present values.

    Parameters
    ----------
    model : LinearTree
    X : array or CSR array (n, n_features)
    targets : int array (n,)
        As for `LinearTree.codes`.
    weight : float array (n,)
        Weights of the samples.
    C : float
    tol : float
        A problem is solved when no element of its gradient, divided by its C times the weight of
        its samples, exceeds this.
    max_iter : int
        Maximum number of iterations for each problem.
    n_jobs : int, optional
        Number of processes.

    Returns
    -------
    curve : list of float
        Objective after each iteration, divided by ``C`` times the weight of the samples. After its
        last iteration, a node keeps its value.
    is_converged : bool
        Whether all problems were solved.
    """
    model.make_dense()
    weights = model.weight
    fractions: dict[int, float] = {}
    objectives: dict[int, list[float]] = {}
    is_converged = True
    solve_group = partial(_optima, X, model.fit_intercept, tol, max_iter)
    for node, fraction, optimum in _each_node(model, targets, weight, C, solve_group, n_jobs):
        rows = model.rows(node)
        model.bias[rows] = optimum.bias
        weights[rows] = 0
        weights[rows, optimum.features] = optimum.weight.T
        fractions[node] = fraction
        objectives[node] = optimum.objective
        is_converged = is_converged and optimum.is_converged

    curve = np.zeros(max(map(len, objectives.values()), default=0))
    # Jobs end in any order; sort by node, since the rounding of sums depends on the order
    for node in sorted(objectives):
        values = objectives[node]
        curve[: len(values)] += fractions[node] * np.array(values)
        curve[len(values) :] += fractions[node] * values[-1]
    return curve.tolist(), is_converged


def solve_by_child(
    model: LinearTree,
    X: Samples,
    targets: Int64,
    weight: Float64,
    C: float,
    threshold: float,
    seed: int,
    n_jobs: int | None,
) -> None:
    """Train each child of a node against its siblings by liblinear; targets and weights are (n,).

    The model becomes sparse. It keeps, as float32, the weights that change the logit of some sample
    by more than `threshold`.
    """
    X = scipy.sparse.csr_array(X)
    largest = abs(X).max(axis=0).toarray().ravel()
    solve_group = partial(_optima_by_child, X, model.fit_intercept, largest, threshold, seed)
    sizes = np.diff(model.tree.row_start).tolist()
    rows = [scipy.sparse.csr_array((size, X.shape[1]), dtype=np.float32) for size in sizes]
    for node, _, optimum in _each_node(model, targets, weight, C, solve_group, n_jobs):
        rows[node], model.bias[model.rows(node)] = optimum
    if rows:
        model.weight = scipy.sparse.vstack(rows, format="csr")


def _each_node(
    model: LinearTree,
    targets: Int64,
    weight: Float64,
    C: float,
    solve_group: Callable[[list[NodeProblem]], list[Any]],
    n_jobs: int | None,
) -> Iterator[tuple[int, float, Any]]:
    """Yield each node with samples, their fraction of the weight, and its solution."""
    tree = model.tree
    used = np.flatnonzero(weight)
    if tree.n_nodes == 0 or not used.size:
        return
    penalty = model.node_penalty()
    total = weight.sum()

    # (D,) sample, branch and node of each decision; a target has one code
    paths = model.codes.expand(targets[used])
    sample = used[segment_ids(paths.decision_start)]
    branch = tree.edge_branch[paths.edge]
    node = tree.edge_node[paths.edge]

    # Decisions of each node, and nodes in groups with about as many decisions each
    order = np.argsort(node, kind="stable")
    first = np.flatnonzero(np.diff(node[order], prepend=-1))
    n_groups = max(GROUPS, GROUPS_PER_JOB * n_parallel(n_jobs))
    group = first * n_groups // len(order)
    nodes = zip(group.tolist(), np.split(order, first[1:]), strict=True)
    groups = [[here for _, here in members] for _, members in groupby(nodes, itemgetter(0))]

    def problem(here: Int64) -> NodeProblem:
        number = int(node[here[0]])
        rows = model.rows(number)
        return NodeProblem(
            sample=sample[here],
            branch=branch[here],
            weight=weight[sample[here]],
            C=C / float(penalty[number]),
            start=None if is_sparse(model.weight) else model.weight[rows].T,
            bias=model.bias[rows],
        )

    problems = (list(map(problem, members)) for members in groups)
    with progress.task("fitting nodes", len(order), "decisions") as task:
        for number, solutions in parallel(solve_group, problems, n_jobs):
            for here, solution in zip(groups[number], solutions, strict=True):
                yield int(node[here[0]]), weight[sample[here]].sum() / total, solution
                task.advance(len(here))


# L-BFGS.


def _optima(
    X: Samples, fit_intercept: bool, tol: float, max_iter: int, problems: list[NodeProblem]
) -> list[Optimum]:
    """Solve the problems of some nodes by L-BFGS.

    BLAS uses one thread, since the rounding of its sums depends on the number of threads.
    """
    with threadpool_limits(1):
        return [_optimum(X, problem, fit_intercept, tol, max_iter) for problem in problems]


def _optimum(
    X: Samples, problem: NodeProblem, fit_intercept: bool, tol: float, max_iter: int
) -> Optimum:
    """Solve the problem of a node by L-BFGS."""
    node = _NodeObjective(X[problem.sample], problem, fit_intercept)
    values: list[float] = []
    result = scipy.optimize.minimize(
        node,
        np.r_[problem.start[node.features].ravel(), problem.bias],
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: values.append(float(intermediate_result.fun)),
        # `ftol` is within rounding, as in scikit-learn, so that `gtol` decides
        options={"maxiter": max_iter, "gtol": tol, "ftol": 64 * np.finfo(float).eps, "maxls": 50},
    )
    weight, bias = node.unpack(result.x)
    objective = values or [float(result.fun)]
    return Optimum(node.features, weight, bias, objective, result.status == 0)


class _NodeObjective:
    """Objective of one node: a logistic regression or a softmax over the samples that pass it."""

    def __init__(self, X: Samples, problem: NodeProblem, fit_intercept: bool) -> None:
        self.features: Int32 | slice = slice(None)
        if is_sparse(X):
            X, self.features = without_empty_columns(X)
        self.X = X.astype(np.float64)
        self.XT = self.X.T
        self.branch = problem.branch
        self.fraction = problem.weight / problem.weight.sum()
        self.penalty = 1 / (problem.C * problem.weight.sum())
        self.n_rows = len(problem.bias)
        self.fit_intercept = fit_intercept

    def unpack(self, theta: Float64) -> tuple[Float64, Float64]:
        """Return the weights (features, rows) and the biases (rows,)."""
        return theta[: -self.n_rows].reshape(-1, self.n_rows), theta[-self.n_rows :]

    def __call__(self, theta: Float64) -> tuple[float, Float64]:
        weight, bias = self.unpack(theta)
        # (n, rows) logits, then errors
        error = self.X @ weight + bias
        if self.n_rows == 1:
            log_prob, error = arithmetic.binary_decision(error[:, 0], self.branch == 0)
            error = error[:, None]
        else:
            position = np.arange(len(error))
            chosen = error[position, self.branch]
            log_prob = chosen - arithmetic.softmax(error)
            error[position, self.branch] -= 1
        error *= self.fraction[:, None]
        grad_weight = self.XT @ error + self.penalty * weight
        grad_bias = error.sum(axis=0) * self.fit_intercept
        value = 0.5 * self.penalty * np.vdot(weight, weight) - self.fraction @ log_prob
        return float(value), np.concatenate([grad_weight.ravel(), grad_bias])


# liblinear.


def _optima_by_child(
    X: Any,
    fit_intercept: bool,
    largest: Array,
    threshold: float,
    seed: int,
    problems: list[NodeProblem],
) -> list[tuple[Any, Float64]]:
    """Return the weights (rows, n_features), CSR, and the biases of some nodes."""
    optima = []
    for problem in problems:
        samples, features = without_empty_columns(X[problem.sample])
        present = np.unique(problem.branch)
        bias = problem.bias.astype(np.float64)
        table = np.zeros((len(bias), len(features)))
        if len(present) > 1:
            y = np.searchsorted(present, problem.branch).astype(np.float64)
            weights, biases = dual_logistic(
                samples, y, problem.weight, problem.C, TOLERANCE, seed, fit_intercept
            )
            if len(present) == 2:
                # liblinear gives weights of the second class; a binary node has those of the first
                weights = np.vstack([-weights, weights])
                biases = np.r_[-biases, biases]
            chosen = present[: len(bias)]
            table[chosen] = weights[: len(chosen)]
            bias[chosen] = biases[: len(chosen)]
        table[np.abs(table) * largest[features] <= threshold] = 0
        kept = scipy.sparse.csr_array(table.astype(np.float32))
        optima.append((spread_columns(kept, features, X.shape[1]), bias))
    return optima

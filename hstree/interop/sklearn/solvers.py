"""Training of the linear model: L-BFGS over all samples, or Adagrad over minibatches.

The objective is that of scikit-learn's `LogisticRegression`: ``C`` times the weighted sum of the
negative log-likelihoods, plus half the squared norm of the weights; biases are not penalised. A
node that a share s of the samples reaches has ``C / sqrt(s)`` in the place of C. Every label has
one code, so that the weights of a node occur in its own decisions only: the objective is a sum of
convex problems, one per node over the samples that pass it. L-BFGS solves each by itself.

For many classes, liblinear's dual coordinate descent trains each child of a node against its
siblings, as a logistic regression by itself, and the softmax of their logits is the node's. Of the
weights, those are kept that move the logit of some sample.
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
from hstree._arrays import Array, Float64, Int32, Int64, Integer, segment_ids
from hstree._parallel import n_parallel, parallel
from hstree.interop.sklearn.label_nodes import dual_logistic
from hstree.interop.sklearn.linear import (
    Gradient,
    LinearTree,
    Rows,
    is_sparse,
    lengthened,
    without_empty_columns,
)
from hstree.layers import arithmetic
from hstree.training.adagrad import TINY, adagrad_rows
from hstree.tree.weight_rows import row_curvature

#: Tolerance of liblinear.
TOLERANCE = 0.3
#: Groups of nodes, each solved by one job: so many at least, and so many for each job at a time,
#: so that all end at about the same time.
GROUPS, GROUPS_EACH = 64, 8


class Problem(NamedTuple):
    """What a node is trained on, and what it starts from."""

    sample: Int64  # (n,) samples that pass the node
    branch: Int64  # (n,) their children of it
    weight: Float64  # (n,)
    width: int  # number of children
    C: float
    start: Array | None  # (n_features, rows), None for zeros
    bias: Array  # (rows,)


def solve(
    model: LinearTree,
    X: Rows,
    labels: Int64,
    weight: Float64,
    C: float,
    tol: float,
    max_iter: int,
    n_jobs: int | None,
) -> tuple[list[float], bool]:
    """Move the weights to the optimum by L-BFGS, in place; labels and weights are (n,).

    It starts from the weights that are there. Nodes are solved in `n_jobs` processes. A problem
    takes at most `max_iter` iterations. It is solved when no element of its gradient, divided by
    its C times the weight of its samples, is larger than `tol`. Returns the objective after each
    iteration, divided by ``C`` times the weight of the samples (a node that has ended keeps its
    last value), and whether all problems were solved.
    """
    table = model.dense_weight
    # share in the samples' weight, objective after each iteration and convergence of each node
    ended: dict[int, tuple[float, list[float], bool]] = {}
    solved = partial(_optima, X, model.fit_intercept, tol, max_iter)
    for node, share, optimum in _each_node(model, labels, weight, C, solved, n_jobs):
        features, weights, bias, *end = optimum
        rows = model.rows(node)
        model.bias[rows], table[rows] = bias, 0
        table[rows, features] = weights.T
        ended[node] = share, *end
    curve = np.zeros(max((len(values) for _, values, _ in ended.values()), default=0))
    # In the order of nodes, whatever job ended first: the rounding of sums depends on it.
    for node in sorted(ended):
        share, values, _ = ended[node]
        curve[: len(values)] += share * np.array(values)
        curve[len(values) :] += share * values[-1]
    return curve.tolist(), all(converged for *_, converged in ended.values())


def solve_by_child(
    model: LinearTree,
    X: Rows,
    labels: Int64,
    weight: Float64,
    C: float,
    threshold: float,
    seed: int,
    n_jobs: int | None,
) -> None:
    """Train each child of a node against its siblings by liblinear; labels and weights are (n,).

    `model.kept` gets the weights that move the logit of some sample by more than `threshold`, as
    float32.
    """
    X = scipy.sparse.csr_array(X)
    most = abs(X).max(axis=0).toarray().ravel()
    solved = partial(_optima_by_child, X, model.fit_intercept, most, threshold, seed)
    model.table, model.kept = None, None
    sizes = np.diff(model.tree.row_start).tolist()
    rows = [scipy.sparse.csr_array((size, X.shape[1]), dtype=np.float32) for size in sizes]
    for node, _, (weights, bias) in _each_node(model, labels, weight, C, solved, n_jobs):
        rows[node], model.bias[model.rows(node)] = weights, bias
    if rows:
        model.kept = scipy.sparse.vstack(rows, format="csr")


def _each_node(
    model: LinearTree,
    labels: Int64,
    weight: Float64,
    C: float,
    solved: Callable[[list[Problem]], list[Any]],
    n_jobs: int | None,
) -> Iterator[tuple[int, float, Any]]:
    """Yield each node with samples, their share of the weight, and what `solved` returns for it."""
    tree, used = model.tree, np.flatnonzero(weight)
    if tree.n_nodes == 0 or not used.size:
        return
    penalty = model.node_penalty()
    total = weight.sum()
    paths = model.expand(labels[used])
    # (D,) sample, branch and node of each decision; a target has one code
    sample = used[segment_ids(paths.decision_start)]
    branch, node = tree.edge_branch[paths.edge], tree.edge_node[paths.edge]
    order = np.argsort(node, kind="stable")
    first = np.flatnonzero(np.diff(node[order], prepend=-1))
    # Groups have nodes with about as many decisions each.
    job = first * max(GROUPS, GROUPS_EACH * n_parallel(n_jobs)) // len(order)
    nodes = zip(job.tolist(), np.split(order, first[1:]), strict=True)
    groups = [[here for _, here in some] for _, some in groupby(nodes, itemgetter(0))]

    def problem(here: Int64) -> Problem:
        number, some = int(node[here[0]]), sample[here]
        rows = model.rows(number)
        start = model.started(rows), model.bias[rows]
        width, C_here = int(tree.fan_out[number]), C / float(penalty[number])
        return Problem(some, branch[here], weight[some], width, C_here, *start)

    problems = (list(map(problem, group)) for group in groups)
    with progress.task("fitting nodes", len(order), "decisions") as task:
        for number, optima in parallel(solved, problems, n_jobs):
            for here, optimum in zip(groups[number], optima, strict=True):
                yield int(node[here[0]]), weight[sample[here]].sum() / total, optimum
                task.advance(len(here))


def _optima(
    X: Rows, fit_intercept: bool, tol: float, max_iter: int, problems: list[Problem]
) -> list[Any]:
    """Solve the problems of some nodes by L-BFGS.

    Returns the features, weights and biases of each, its objective after each iteration, and
    whether it converged. BLAS has one thread, whatever the number of jobs: the rounding of its sums
    depends on threads.
    """
    optima = []
    with threadpool_limits(1):
        for problem in problems:
            node = _Node(X[problem.sample], problem, fit_intercept)
            start = np.zeros((X.shape[1], node.n_rows)) if problem.start is None else problem.start
            start = np.r_[start[node.features].ravel(), problem.bias]
            end, *how = _minimise(node, start, tol, max_iter)
            optima.append((node.features, *node.unpacked(end), *how))
    return optima


def _minimise(
    node: "_Node", start: Float64, tol: float, max_iter: int
) -> tuple[Float64, list[float], bool]:
    """Return the optimum, the objective after each iteration, and whether it converged."""
    values: list[float] = []
    result = scipy.optimize.minimize(
        node,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: values.append(float(intermediate_result.fun)),
        # Only rounding ends it by the fall of the objective, as in scikit-learn.
        options={"maxiter": max_iter, "gtol": tol, "ftol": 64 * np.finfo(float).eps, "maxls": 50},
    )
    return result.x, values or [float(result.fun)], result.status == 0


def _optima_by_child(
    X: Any,
    fit_intercept: bool,
    most: Array,
    threshold: float,
    seed: int,
    problems: list[Problem],
) -> list[Any]:
    """Return the weights (rows, n_features), CSR, and the biases of some nodes."""
    optima = []
    for problem in problems:
        some, features = without_empty_columns(X[problem.sample])
        present = np.unique(problem.branch)
        bias = problem.bias.astype(np.float64)
        table = np.zeros((len(bias), len(features)))
        if len(present) > 1:
            y = np.searchsorted(present, problem.branch).astype(np.float64)
            weights, biases = dual_logistic(
                some, y, problem.weight, problem.C, TOLERANCE, seed, fit_intercept
            )
            if len(present) == 2:  # liblinear has the second, a row of two children the first
                weights, biases = np.vstack([-weights, weights]), np.r_[-biases, biases]
            chosen = present[: len(bias)]
            table[chosen], bias[chosen] = weights[: len(chosen)], biases[: len(chosen)]
        table[np.abs(table) * most[features] <= threshold] = 0
        few = scipy.sparse.csr_array(table.astype(np.float32))
        content = few.data, features[few.indices], few.indptr
        shape = len(bias), X.shape[1]
        optima.append((scipy.sparse.csr_array(content, shape=shape), bias))
    return optima


class _Node:
    """Objective of one node: a logistic regression or a softmax over the samples that pass it."""

    def __init__(self, X: Rows, problem: Problem, fit_intercept: bool) -> None:
        self.features: Int32 | slice = slice(None)
        if is_sparse(X):
            X, self.features = without_empty_columns(X)
        self.X, self.branch = X.astype(np.float64), problem.branch
        self.XT = self.X.T
        self.share = problem.weight / problem.weight.sum()
        self.penalty = 1 / (problem.C * problem.weight.sum())
        self.n_rows, self.fit_intercept = len(problem.bias), fit_intercept

    def unpacked(self, theta: Float64) -> tuple[Float64, Float64]:
        """Return the weights (features, rows) and the biases (rows,)."""
        return theta[: -self.n_rows].reshape(-1, self.n_rows), theta[-self.n_rows :]

    def __call__(self, theta: Float64) -> tuple[float, Float64]:
        weight, bias = self.unpacked(theta)
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
        error *= self.share[:, None]
        grad_weight = self.XT @ error + self.penalty * weight
        value = 0.5 * self.penalty * np.vdot(weight, weight) - self.share @ log_prob
        grad_bias = error.sum(axis=0) * self.fit_intercept
        return float(value), np.concatenate([grad_weight.ravel(), grad_bias])


class Adagrad:
    """Adagrad over minibatches, with one learning rate per weight (Duchi, Hazan & Singer 2011).

    Trains `model` in place. Only the weights that a batch touches move. A weight pays the penalty
    for the batches that did not touch it when one next does, so that rare features are regularised
    as much as frequent ones.

    Parameters
    ----------
    model : LinearTree
    seen : float array (n_features + 1,), optional
        Sums of the squared features of samples that the model was fitted to by L-BFGS, and last
        their weight. Steps are as small as if these samples had been passed over once: each weight
        begins with the sum of their squared gradients, as expected of the untrained model.
    """

    def __init__(self, model: LinearTree, seen: Float64 | None = None) -> None:
        self.model = model
        self._penalty = model.row_penalty()
        self._squares = np.zeros(model.table.shape, model.table.dtype)
        self._bias_squares = np.zeros(len(model.bias))
        if seen is not None:
            curvature = row_curvature(model.tree, model.counts)
            occurring = np.flatnonzero(seen[:-1])
            if model.sparse:
                self._squares[occurring] = np.multiply.outer(seen[occurring], curvature)
            else:
                self._squares[:, occurring] = np.multiply.outer(curvature, seen[occurring])
            self._bias_squares += seen[-1] * curvature
        # Step up to which the penalty of each weight is paid
        self._paid = np.zeros(model.table.shape, np.int32)
        self._steps = 0

    def widen(self, n_features: int) -> None:
        """Follow `LinearTree.widen`."""
        self._squares = lengthened(self._squares, n_features)
        self._paid = lengthened(self._paid, n_features)

    def epoch(
        self,
        X: Rows,
        labels: Integer,
        sample_weight: Array,
        *,
        learning_rate: float,
        penalty: float,
        batch_size: int,
        rng: np.random.Generator,
    ) -> float:
        """Pass over all samples once, in a random order; labels and their weights are (n,).

        `penalty` is the weight of half the squared norm of the root's weights in each sample's
        loss; other nodes have less, as in `solve`.
        Returns the weighted mean of the negative log-likelihoods, before the step of each batch.
        """
        order, total = rng.permutation(len(labels)), 0.0
        for a in range(0, len(order), batch_size):
            batch = order[a : a + batch_size]
            weight = sample_weight[batch]
            nll, gradients = self.model.loss(self.model.converted(X[batch]), labels[batch], weight)
            self._steps += 1
            row_penalty = (penalty * len(batch) * self._penalty).astype(self.model.table.dtype)
            for gradient in gradients:
                self._move(gradient, learning_rate, row_penalty)
            total += float(weight @ nll)
        return total / max(float(sample_weight.sum()), TINY)

    def _move(self, gradient: Gradient, learning_rate: float, row_penalty: Array) -> None:
        """Take a step; `row_penalty` (R,) is the strength of the penalty per step."""
        model = self.model
        arrays = [model.table, self._squares, self._paid]
        index = gradient.index
        if not model.sparse:
            # (r, n_features) rows of the table
            penalty = row_penalty[index][:, None]
        elif isinstance(index[1], slice):
            # (f, k) features of the rows of one node
            index, rows = index
            arrays = [array[:, rows] for array in arrays]
            penalty = row_penalty[rows]
        else:
            # (P,) pairs of a feature and a row, as elements of the flat table
            features, rows = index
            index = features * model.shape[0] + rows
            arrays = [array.reshape(-1) for array in arrays]
            penalty = row_penalty[rows]
        table, squares, paid = arrays

        # Add the gradient of the penalty for all steps since the last touch
        total = (self._steps - paid[index]).astype(table.dtype)
        total *= penalty
        total *= table[index]
        total += gradient.weight
        paid[index] = self._steps
        adagrad_rows(table, squares, index, total, learning_rate)

        if model.fit_intercept:
            sums = self._bias_squares
            adagrad_rows(model.bias, sums, gradient.rows, gradient.bias, learning_rate)

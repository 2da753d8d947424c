"""Slow and plain answers to hold trees against; nothing here is shared with hstree."""

import heapq
import math
import warnings

import numpy as np
from scipy.special import expit, softmax
from sklearn.mixture import GaussianMixture

from tests.strategies import children_of, codes_by_walk


def em_responsibilities(X, second, floor, iterations):
    """P(second) of each row by scikit-learn's EM from the halves that `second` divides X into."""
    halves = X[~second], X[second]
    mixture = GaussianMixture(
        2,
        covariance_type="spherical",
        max_iter=iterations,
        tol=0,
        reg_covar=floor,
        weights_init=[np.mean(~second), np.mean(second)],
        means_init=[half.mean(axis=0) for half in halves],
        precisions_init=[1 / (half.var(axis=0).mean() + floor) for half in halves],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged
        return mixture.fit(X).predict_proba(X)[:, 1]


def code_lengths(tree):
    """The lengths of each label's codes; a label alone has one of no decision."""
    if tree.n_nodes == 0:
        return [[0]]
    return [[len(code) for code in of_label] for of_label in codes_by_walk(tree)]


def weighted_length(tree):
    """Sum over labels of count times code length; one code per label."""
    return sum(
        count * length
        for count, (length,) in zip(tree.counts.tolist(), code_lengths(tree), strict=True)
    )


def leaf_probabilities(tree, weights, hidden):
    """P of each label; rows as the format has them: one for a binary node, k for a wide one."""
    if tree.n_nodes == 0:
        return [1.0]
    scores = iter([math.fsum(w * h for w, h in zip(row, hidden, strict=True)) for row in weights])
    share = []  # of each branch of each node
    for of_node in children_of(tree):
        of_rows = [next(scores) for _ in (range(1) if len(of_node) == 2 else of_node)]
        is_one = len(of_rows) == 1
        share.append([expit(of_rows[0]), expit(-of_rows[0])] if is_one else softmax(of_rows))
    assert not list(scores)
    return [
        math.fsum(math.prod(share[node][branch] for node, branch in code) for code in of_label)
        for of_label in codes_by_walk(tree)
    ]


def n_rows(tree):
    return sum(1 if len(of_node) == 2 else len(of_node) for of_node in children_of(tree))


def heap_order(weights, arity):
    """Merge one at a time with a heap; return the items of each merge, and its weight.

    Of equal weights, an item goes before a merge, and the first before others.
    """
    n = len(weights)
    heap = [(weight, 0, i) for i, weight in enumerate(weights)]
    heapq.heapify(heap)
    size = (n - 2) % (arity - 1) + 2
    order, total = [], []
    while len(heap) > 1:
        joined = [heapq.heappop(heap) for _ in range(size)]
        total.append(sum(weight for weight, *_ in joined))
        heapq.heappush(heap, (total[-1], 1, n + len(order)))
        order.append([item for *_, item in joined])
        size = arity
    return order, total


def shortest_by_heap(counts, arity):
    """The least sum of count times length."""
    _, total = heap_order(counts, arity)
    return sum(total)

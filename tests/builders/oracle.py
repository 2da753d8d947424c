"""Slow and plain answers to hold trees against; nothing here is shared with hstree."""

import heapq
import math
import warnings

import numpy as np
from scipy.special import expit, softmax
from sklearn.mixture import GaussianMixture

from tests.strategies import children_of


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
    """The lengths of each label's codes, by walking down from the root."""
    lengths = [[] for _ in tree.labels]
    if tree.n_nodes == 0:
        return [[0]]
    children = children_of(tree)
    waiting = [(0, 1)]
    while waiting:
        node, depth = waiting.pop()
        for child in children[node]:
            if child < 0:
                lengths[~child].append(depth)
            else:
                waiting.append((child, depth + 1))
    return lengths


def weighted_length(tree):
    """Sum over labels of count times code length; one code a label."""
    return sum(
        count * length
        for count, (length,) in zip(tree.counts.tolist(), code_lengths(tree), strict=True)
    )


def leaf_probabilities(tree, weights, hidden):
    """P of each label; rows as the format has them: one for a binary node, k for a wide one."""
    codes = [[] for _ in tree.labels]
    if tree.n_nodes == 0:
        return [1.0]
    children = children_of(tree)
    first_row = [0]
    for of_node in children:
        first_row.append(first_row[-1] + (1 if len(of_node) == 2 else len(of_node)))
    assert len(weights) == first_row[-1]
    score = [math.fsum(w * h for w, h in zip(row, hidden, strict=True)) for row in weights]
    waiting = [(0, 1.0)]
    while waiting:
        node, reach = waiting.pop()
        row = first_row[node]
        if len(children[node]) == 2:
            branch = [expit(score[row]), expit(-score[row])]
        else:
            branch = softmax(score[row : first_row[node + 1]])
        for child, share in zip(children[node], branch, strict=True):
            if child < 0:
                codes[~child].append(reach * share)
            else:
                waiting.append((child, reach * share))
    return [math.fsum(of_label) for of_label in codes]


def n_rows(tree):
    return sum(1 if len(of_node) == 2 else len(of_node) for of_node in children_of(tree))


def shortest_by_heap(counts, arity):
    """The least sum of count times length, by the textbook's heap, of counts and zeros."""
    if len(counts) == 1:
        return 0
    heap = list(counts) + [0] * (-(len(counts) - 1) % (arity - 1))
    heapq.heapify(heap)
    cost = 0
    while len(heap) > 1:
        joined = sum(heapq.heappop(heap) for _ in range(arity))
        cost += joined
        heapq.heappush(heap, joined)
    return cost

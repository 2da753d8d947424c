"""Exact top-k labels by best-first search: the likelier child first.

A heap holds the frontier: the edges not yet followed, by the log-probability of the way to them.
No label below an edge is likelier than the edge, so where every label has one code the labels
come off the heap in order. Where labels have several, a label's whole probability is computed
when it is first met, and the search ends when no label that was not met can still be likelier:
it can have no more than the frontier holds, and no more than its number of codes times the
likeliest edge. A search that follows a large part of the tree falls back to `log_prob`.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hstree.errors import OptionError
from hstree.layers import decision

if TYPE_CHECKING:
    from hstree.layers.hierarchical import HierarchicalSoftmax

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

#: The search gives way to one dense pass when it has followed this share of the nodes ...
PATIENCE = 1 / 8
#: ... and at least this many.
LEAST_PATIENCE = 256


def top_k(layer: HierarchicalSoftmax, hidden: NDArray[Any], k: int) -> tuple[Int64, Float64]:
    """Return the k most probable labels of each hidden vector and their log-probabilities.

    Parameters
    ----------
    layer : HierarchicalSoftmax
    hidden : float array (B, d)
    k : int
        At least 1; more than V means V.

    Returns
    -------
    labels : int64 array (B, min(k, V))
        Most probable first; ties by label id.
    log_prob : float64 array (B, min(k, V))

    Raises
    ------
    OptionError
        When `k` is below 1.
    """
    if k < 1:
        raise OptionError(f"k is {k}; ask for at least 1 label")
    k = min(k, layer.tree.n_labels)
    most_codes = int(layer.codes.codes_per_label.max())
    labels = np.empty((len(hidden), k), np.int64)
    log_prob = np.empty((len(hidden), k))
    for i in range(len(hidden)):
        found = _search(layer, hidden[i], k, most_codes) if most_codes else [(0.0, 0)]
        if found is None:
            labels[i], log_prob[i] = _by_full_sort(layer, hidden[i : i + 1], k)
        else:
            labels[i] = [label for _, label in found]
            log_prob[i] = [-cost for cost, _ in found]
    return labels, log_prob


def _by_full_sort(
    layer: HierarchicalSoftmax, hidden: NDArray[Any], k: int
) -> tuple[Int64, Float64]:
    log_prob = layer.log_prob(hidden)[0]
    labels = np.lexsort((np.arange(len(log_prob)), -log_prob))[:k]
    return labels, log_prob[labels]


def _search(
    layer: HierarchicalSoftmax, hidden: NDArray[Any], k: int, most_codes: int
) -> list[tuple[float, int]] | None:
    """Return the k best as (-log_prob, label), sorted, or None where a dense pass is cheaper."""
    patience = max(LEAST_PATIENCE, PATIENCE * layer.tree.n_nodes)
    # A heap entry is (-log_prob, is_label, number): at equal probability nodes come first, so
    # that all labels of that probability are met before the smallest id is taken.
    heap: list[tuple[float, bool, int]] = [(0.0, False, 0)]
    best: list[tuple[float, int]] = []
    met: set[int] = set()
    followed = 0
    while heap:
        if most_codes > 1 and len(best) >= k and _settled(heap, best[k - 1][0], most_codes):
            break
        cost, is_label, number = heapq.heappop(heap)
        if not is_label:
            followed += 1
            if followed > patience:
                return None
            for entry in _children(layer, hidden, number, cost):
                heapq.heappush(heap, entry)
        elif most_codes == 1:
            best.append((cost, number))
            if len(best) == k:
                break
        elif number not in met:
            met.add(number)
            total = float(layer.nll(hidden[None], np.array([number]))[0])
            best = heapq.nsmallest(k, [*best, (total, number)])
    return best


def _settled(heap: list[tuple[float, bool, int]], kth_cost: float, most_codes: int) -> bool:
    """Tell whether no label that is not met yet can be as likely as the k-th best.

    `most_codes` times the likeliest edge is cheap to know; the mass of the whole frontier is
    summed only where that does not settle it.
    """
    kth = math.exp(-kth_cost)
    likeliest = math.exp(-heap[0][0])
    if most_codes * likeliest < kth:
        return True
    if likeliest >= kth:
        return False
    return math.fsum(math.exp(-cost) for cost, _, _ in heap) < kth


def _children(
    layer: HierarchicalSoftmax, hidden: NDArray[Any], node: int, cost: float
) -> list[tuple[float, bool, int]]:
    """Return a node's children as heap entries."""
    tree = layer.tree
    edges = slice(int(tree.child_start[node]), int(tree.child_start[node + 1]))
    rows = slice(int(layer.row_start[node]), int(layer.row_start[node + 1]))
    score = layer.weight[rows] @ hidden + layer.bias[rows]
    below = tree.child[edges].tolist()
    if len(below) == 2:
        z = float(score[0])
        step = math.log1p(math.exp(-abs(z)))
        costs = [step + max(-z, 0.0), step + max(z, 0.0)]
    else:
        z64 = score.astype(np.float64)
        whole = np.array([0, len(below)])
        costs = (-decision.segment_log_softmax(z64, whole)).tolist()
    return [(cost + c, b < 0, ~b if b < 0 else b) for c, b in zip(costs, below, strict=True)]

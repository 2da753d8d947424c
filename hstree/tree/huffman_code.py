"""Huffman's algorithm on weights: order of the merges, and mean length of the code."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hstree._typing import Int64, refuse_masked
from hstree.errors import InputError, OptionError


def merge_order(weights: ArrayLike, arity: int = 2) -> Int64:
    """Return the merges of Huffman's algorithm, which joins the lightest items until one is left.

    Row i of the result (M, k) is the i-th merge of V weights, lightest item first;
    M = ceil((V - 1) / (arity - 1)), and k = arity, or V where that is smaller (but not below 2). An
    item below V is a weight, ``V + j`` is merge j. Only the first merge may join fewer than k
    items, which keeps the result optimal; its row ends in -1. The last merge is the root. Sums are
    exact. Raises OptionError when `arity` is below 2, InputError when a weight is not a whole
    number from 0 to 2**63 - 1.

    Notes
    -----
    Among equal weights, single items come before merges, both in index order. The tree is thus
    the same on every machine, and the shallowest of the optimal ones (binary: Schwartz 1964).

    O(V log V): one sort, then a few rounds of many merges. If the next merge weighs s, all items
    up to s are used before any new merge, so they can be grouped at once; s grows by half or
    more in each round.

    References
    ----------
    .. [1] D. A. Huffman, "A method for the construction of minimum-redundancy codes", 1952.
    .. [2] J. van Leeuwen, "On the construction of Huffman trees", ICALP 1976 (the two queues).

    Examples
    --------
    >>> merge_order([5, 1, 2]).tolist()
    [[1, 2], [3, 0]]
    >>> merge_order([1, 1, 1, 1], arity=3).tolist()
    [[0, 1, -1], [2, 3, 4]]
    """
    refuse_masked(weights, "weights")
    array = np.asarray(weights)
    if array.size == 0:
        array = array.astype(np.int64)
    is_exact = np.issubdtype(array.dtype, np.integer) and np.can_cast(array.dtype, np.int64)
    if array.ndim != 1 or not is_exact:
        raise InputError(
            f"weights must be a vector of int64, not of {array.dtype} and shape {array.shape}"
        )
    if array.size and array.min() < 0:
        at = int(np.argmin(array))
        raise InputError(f"weight {at} is {array[at]}; weights must be zero or more")
    if arity < 2:
        raise OptionError(f"arity must be 2 or more, not {arity}")
    return _merge(array.astype(np.int64), arity)[0]


def optimal_length(weights: ArrayLike) -> float:
    """Return the mean code length of a binary Huffman tree, in decisions per label by weight.

    It is the sum of all merges over the sum of the weights (V,), which are zero or more. Raises
    InputError when all are zero.

    Examples
    --------
    >>> optimal_length([5, 1, 2])
    1.375
    """
    array = np.asarray(weights)
    total = array.sum(dtype=np.float64)
    if total == 0:
        raise InputError("the optimal length needs a weight above zero; all weights are zero")
    return float(_merge(array, 2)[1].astype(np.float64).sum() / total)


def _merge(weights: Int64, arity: int) -> tuple[Int64, NDArray[np.generic]]:
    """Return the merges (M, k) and their weights (M,): int64, or exact Python integers."""
    n = len(weights)
    arity = max(2, min(arity, n))
    order = np.argsort(weights, kind="stable")  # (V,) items, lightest first
    sums_fit = weights.sum(dtype=np.float64) < 2**62  # else exact Python integers
    single = weights[order] if sums_fit else weights[order].astype(object)
    n_merges = -(-(n - 1) // (arity - 1)) if n else 0
    merged = np.full((n_merges, arity), -1, np.int64)
    total = np.zeros(n_merges, single.dtype)
    if n_merges == 0:
        return merged, total
    filled = (n - 2) % (arity - 1) + 2  # items of the first merge, so that all others are full
    merged[0, :filled] = order[:filled]
    total[0] = single[:filled].sum()
    next_single, next_merge, made = filled, 0, 1
    while made < n_merges:
        # Weight of the next merge; items up to it precede every merge still to be made
        first = np.concatenate([single[next_single:][:arity], total[next_merge:made][:arity]])
        limit = np.sort(first)[:arity].sum()
        n_single = np.searchsorted(single[next_single:], limit, "right")
        n_merge = np.searchsorted(total[next_merge:made], limit, "right")
        # Items that are candidates for the merges of this round, and their weights
        weight = np.concatenate([single[next_single:][:n_single], total[next_merge:made][:n_merge]])
        merges = n + np.arange(next_merge, next_merge + n_merge)
        number = np.concatenate([order[next_single:][:n_single], merges])
        # Candidates in ascending order, single items before merges; each group is one merge
        groups = len(weight) // arity
        taken = np.argsort(weight, kind="stable")[: groups * arity]
        merged[made : made + groups] = number[taken].reshape(groups, arity)
        total[made : made + groups] = weight[taken].reshape(groups, arity).sum(axis=1)
        singles_taken = int(np.count_nonzero(taken < n_single))
        next_single += singles_taken
        next_merge += len(taken) - singles_taken
        made += groups
    return merged, total

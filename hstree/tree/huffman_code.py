"""Huffman's algorithm: the sequence of merges, and their weights."""

import numpy as np
from numpy.typing import NDArray

from hstree._arrays import Int64
from hstree.errors import InputError


def merge_order(weights: Int64, arity: int = 2) -> tuple[Int64, NDArray[np.generic]]:
    """Return the merges of Huffman's algorithm, which joins the lightest items until one remains.

    Row i of the first array (M, k) is the i-th merge of V weights, lightest item first;
    M = ceil((V - 1) / (arity - 1)), and k is arity, or V if that is smaller (but at least 2). An
    item below V is a weight, and ``V + j`` is merge j. Only the first merge may join fewer than k
    items, which keeps the result optimal; its row is padded with -1. The last merge is the root.
    The second array (M,) has the exact weight of each merge, as int64 or Python integers. Raises
    InputError when a weight is below zero.

    Notes
    -----
    If weights are equal, single items come before merges, both in index order. The tree is
    therefore the same on every machine, and a binary tree is the shallowest of all optimal trees
    (Schwartz 1964).

    O(V log V): one sort, then a few rounds with many merges. If the next merge has the weight s,
    all items up to s are used before any new merge, so that they can be grouped at once. s grows by
    half or more in each round.

    References
    ----------
    .. [1] D. A. Huffman, "A method for the construction of minimum-redundancy codes", 1952.
    .. [2] J. van Leeuwen, "On the construction of Huffman trees", ICALP 1976 (the two queues).

    Examples
    --------
    >>> merged, weight = merge_order(np.array([5, 1, 2]))
    >>> merged.tolist(), weight.tolist()
    ([[1, 2], [3, 0]], [3, 8])
    """
    if weights.min(initial=0) < 0:
        at = int(np.argmin(weights))
        raise InputError(f"weight {at} is {weights[at]}; weights must be zero or more")
    n = len(weights)
    arity = max(2, min(arity, n))
    order = np.argsort(weights, kind="stable")  # (V,) items, lightest first
    sums_fit = weights.sum(dtype=np.float64) < 2**62  # otherwise use Python integers
    single = weights[order] if sums_fit else weights[order].astype(object)
    n_merges = -(-(n - 1) // (arity - 1)) if n else 0
    merged = np.full((n_merges, arity), -1, np.int64)
    total = np.zeros(n_merges, single.dtype)
    if n_merges == 0:
        return merged, total
    # Number of items of the first merge; all other merges have `arity` items
    n_first = (n - 2) % (arity - 1) + 2
    merged[0, :n_first] = order[:n_first]
    total[0] = single[:n_first].sum()
    # Two queues, single items and merges, each in ascending order of weight
    next_single = n_first
    next_merge = 0
    n_made = 1
    while n_made < n_merges:
        # Weight of the next merge; items up to this weight precede all later merges
        first = np.concatenate([single[next_single:][:arity], total[next_merge:n_made][:arity]])
        limit = np.sort(first)[:arity].sum()
        n_single = np.searchsorted(single[next_single:], limit, "right")
        n_merge = np.searchsorted(total[next_merge:n_made], limit, "right")
        # Candidates for the merges of this round, and their weights
        weight = np.concatenate(
            [single[next_single:][:n_single], total[next_merge:n_made][:n_merge]]
        )
        merges = n + np.arange(next_merge, next_merge + n_merge)
        number = np.concatenate([order[next_single:][:n_single], merges])
        # Sort candidates by weight, single items before merges; each group is one merge
        groups = len(weight) // arity
        taken = np.argsort(weight, kind="stable")[: groups * arity]
        merged[n_made : n_made + groups] = number[taken].reshape(groups, arity)
        total[n_made : n_made + groups] = weight[taken].reshape(groups, arity).sum(axis=1)
        singles_taken = int(np.count_nonzero(taken < n_single))
        next_single += singles_taken
        next_merge += len(taken) - singles_taken
        n_made += groups
    return merged, total

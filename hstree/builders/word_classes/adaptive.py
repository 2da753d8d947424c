"""The clusters of the adaptive softmax: a head of frequent words beside clusters of rare ones.

The sizes are chosen by dynamic programming over a cost model, as Grave et al. do; the model is
in scores of words, not in the time of one machine.
"""

from __future__ import annotations

import numpy as np

from hstree._typing import Int64, Integer

#: What one more cluster costs a target, in scores: one for the cluster itself in the root, and
#: what it takes to begin another matrix product, about 2,000 scores, over a batch of 256.
CLUSTER_COST = 9.0
#: Up to so many words every rank may be a boundary.
EVERY_RANK = 1000


def adaptive_boundaries(counts: Integer) -> Int64:
    """Choose the head and the tail clusters that cost least.

    Parameters
    ----------
    counts : int array (V,)
        Largest first; where all are zero, each counts as one.

    Returns
    -------
    int64 array (J + 1,)
        The head is the ranks below the first boundary, cluster j those from boundary j to j + 1;
        the last boundary is V. With J = 0 all words are in the head.

    Notes
    -----
    The cost of a target is the size of the head, and for each cluster its size times its share
    of the tokens, and `CLUSTER_COST`: the root scores all its children, a cluster all its words
    when the target is in it. (Grave et al. count the time of matrix products, and project the
    tail to fewer dimensions, which a tree does not do.) Of equal costs, the smaller head and the
    smaller clusters first.

    Boundaries lie at every rank up to `EVERY_RANK` and then about 1% apart; over those the
    minimum is exact. O(B^2) for B boundaries: 1,500 of them for 100,000 words.

    References
    ----------
    .. [1] E. Grave et al., "Efficient softmax approximation for GPUs", ICML 2017, section 4.

    Examples
    --------
    >>> adaptive_boundaries(np.array([1000, 900] + [1] * 98)).tolist()
    [2, 100]
    """
    n = len(counts)
    ranks = _boundary_ranks(n)
    mass = np.concatenate([[0], np.cumsum(counts, dtype=np.float64)])
    share = (mass / mass[-1] if mass[-1] else np.arange(n + 1) / n)[ranks]
    last = len(ranks) - 1
    # The least that the words from each boundary on cost, and where the first cluster ends.
    cost = np.zeros(last + 1)
    end = np.full(last + 1, last)
    for at in range(last - 1, -1, -1):
        clusters = (ranks[at + 1 :] - ranks[at]) * (share[at + 1 :] - share[at]) + CLUSTER_COST
        through = clusters + cost[at + 1 :]
        end[at] = at + 1 + int(np.argmin(through))
        cost[at] = through.min()
    chosen = [int(np.argmin(ranks + cost))]
    while chosen[-1] < last:
        chosen.append(int(end[chosen[-1]]))
    return ranks[chosen]


def _boundary_ranks(n: int) -> Int64:
    """Return the ranks at which a cluster may begin or end: 0, ..., n."""
    steps = max(0, int(np.ceil(np.log(n / EVERY_RANK) / np.log(1.01))))
    later = EVERY_RANK * 1.01 ** np.arange(1, steps + 1)
    every = np.arange(min(n, EVERY_RANK) + 1)
    return np.unique(np.concatenate([every, np.minimum(later, n).astype(np.int64)]))

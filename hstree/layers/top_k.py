"""Exact search of the most probable labels, which follows the most probable nodes first.

`best_first_search` gets the log-probabilities of children from a function. Output layers and
scikit-learn estimators therefore share one search.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hstree._arrays import Array, Bool, Float64, Int64, offsets, ranges
from hstree.kernels import compiled
from hstree.layers import arithmetic
from hstree.layers.base import TIE
from hstree.layers.ngram_features import ContextFeatures
from hstree.tree.arrays import TreeArrays
from hstree.tree.codes import Codes

#: Function that returns the logits (P,) of pairs, given items (P,) and weight rows (P,).
PairLogits = Callable[[Int64, Int64], Array]
#: Function that returns log P(child | node) for all children, node by node, given pairs of items
#: (n,) and nodes (n,).
ChildLogProb = Callable[[Int64, Int64], Float64]

#: Fraction of the edges, beyond `MIN_PATIENCE`, after which a search ends without an answer; the
#: log-probabilities of all labels are then computed. It is half that of the compiled search, since
#: each round has a fixed cost here: a search of one context that ends at 1/8 takes 3.5 times as
#: long as all log-probabilities (10,000 labels, d = 100).
PATIENCE = 1 / 8
#: Minimum number of edges that a search scores before it ends without an answer.
MIN_PATIENCE = 96
#: A round follows nodes with at least this fraction of the probability of the most probable node.
FOLLOWED = 1 / 2


# The search.


class BeamEntries(NamedTuple):
    """Nodes or labels that a search has reached, and the log-probabilities of their paths."""

    item: Int64  # (n,)
    child: Int64  # (n,) a node, or ~label
    log_prob: Float64  # (n,)

    def where(self, chosen: Any) -> BeamEntries:
        """Return the entries that a mask, a slice or an index array selects."""
        return BeamEntries(*(array[chosen] for array in self))

    def plus(self, others: BeamEntries) -> BeamEntries:
        """Return these entries followed by others."""
        pairs: Any = zip(self, others, strict=True)
        return BeamEntries(*map(np.concatenate, pairs))


def best_first_search(
    tree: TreeArrays,
    child_log_prob: ChildLogProb,
    n_items: int,
    k: int,
    *,
    root_log_prob: Float64 | None = None,
    least: float = -np.inf,
    margin: float = 0.0,
    patience: float = np.inf,
) -> tuple[BeamEntries, Bool]:
    """Search the k most probable labels of some items.

    Parameters
    ----------
    tree : TreeArrays
        It must have at least one node.
    child_log_prob : callable
        Returns the log-probabilities of the children of nodes, at most 0; see `ChildLogProb`.
    n_items, k : int
    root_log_prob : float64 array (n_items,), optional
        Log-probability of the root (default: 0).
    least : float
        Minimum log-probability of labels.
    margin : float
        Labels with a log-probability within this margin of the k-th label are returned, too. The
        margin is relative to the size of the k-th log-probability if that is below -1.
    patience : float
        Maximum number of edges to score for an item before its search ends without an answer.

    Returns
    -------
    labels : BeamEntries
        Labels by item, the most probable first, ties by label id. A label with several codes has
        the log-probability of its most probable code.
    is_done : bool array (n_items,)
        False for items whose search ended without an answer: their labels have no meaning.
    """
    if root_log_prob is None:
        root_log_prob = np.zeros(n_items)
    frontier = BeamEntries(np.arange(n_items), np.zeros(n_items, np.int64), root_log_prob)
    labels = frontier.where(slice(0))
    # (n_items,) minimum log-probability of a label that can still be among the first k
    floor = np.full(n_items, least)
    frontier = frontier.where(frontier.log_prob >= floor)
    n_scored = np.zeros(n_items)
    is_done = np.ones(n_items, np.bool_)
    while len(frontier.item):
        # Follow the most probable nodes of each item
        likeliest = np.full(n_items, -np.inf)
        np.maximum.at(likeliest, frontier.item, frontier.log_prob)
        is_followed = frontier.log_prob >= (likeliest + np.log(FOLLOWED))[frontier.item]
        followed = frontier.where(is_followed)
        waiting = frontier.where(~is_followed)

        # End the search for items that have scored too many edges
        n_scored += np.bincount(followed.item, tree.fan_out[followed.child], n_items)
        is_late = n_scored > patience
        if is_late.any():
            is_done &= ~is_late
            floor[is_late] = np.inf
            followed = followed.where(~is_late[followed.item])

        # Score the children of these nodes
        width = tree.fan_out[followed.child]
        start = offsets(width)
        edge = ranges(tree.child_start[followed.child], start)
        log_prob = child_log_prob(followed.item, followed.child)
        log_prob = np.repeat(followed.log_prob, width) + log_prob
        children = BeamEntries(np.repeat(followed.item, width), tree.child[edge], log_prob)
        children = children.where(children.log_prob >= floor[children.item])

        # Keep the most probable labels, and raise the floor to the k-th
        is_label = children.child < 0
        if is_label.any():
            labels = labels.plus(children.where(is_label))
            labels, kth = most_probable(labels, n_items, k, margin, tree.has_single_codes)
            np.maximum(floor, kth, out=floor)
        frontier = waiting.plus(children.where(~is_label))
        frontier = frontier.where(frontier.log_prob >= floor[frontier.item])
    return labels, is_done


def most_probable(
    labels: BeamEntries, n_items: int, k: int, margin: float, has_single_codes: bool
) -> tuple[BeamEntries, Float64]:
    """Return the k most probable labels of each item, and labels within `margin` of the k-th.

    Also returns the minimum log-probability of such labels (n_items,), -inf for an item with fewer
    than k labels.
    """
    if not has_single_codes:
        # Keep the most probable entry of each label
        labels = labels.where(np.lexsort((-labels.log_prob, labels.child, labels.item)))
        is_repeated = (np.diff(labels.child) == 0) & (np.diff(labels.item) == 0)
        labels = labels.where(np.append(True, ~is_repeated))
    labels = labels.where(np.lexsort((~labels.child, -labels.log_prob, labels.item)))

    # The k-th label of each item that has so many, and all labels within the margin below it
    count = np.bincount(labels.item, minlength=n_items)
    start = offsets(count)[:-1]
    least = np.full(n_items, -np.inf)
    has_k = count >= k
    kth = labels.log_prob[start[has_k] + k - 1]
    least[has_k] = kth
    is_kept = np.arange(len(labels.item)) - start[labels.item] < k
    if margin > 0:
        least[has_k] -= margin * np.maximum(1.0, -kth)
        is_kept |= labels.log_prob >= least[labels.item]
    return labels.where(is_kept), least


def children_of_rows(tree: TreeArrays, pair_logits: PairLogits) -> ChildLogProb:
    """Return a function for the log-probabilities of children, given one for logits of pairs.

    A node with two children has one row; a node with k > 2 children has k rows.
    """

    def child_log_prob(item: Int64, node: Int64) -> Float64:
        first_row = tree.row_start[node]
        n_rows = tree.row_start[node + 1] - first_row
        row_start = offsets(n_rows)
        # (rows,) logits, node by node
        logits = pair_logits(np.repeat(item, n_rows), ranges(first_row, row_start))
        return arithmetic.branch_log_prob(logits, row_start, offsets(tree.fan_out[node]))

    return child_log_prob


# Labels of a batch.


class BatchTopK(NamedTuple):
    """The most probable labels of some items."""

    labels: Int64  # (n, k) most probable first
    log_prob: Float64  # (n, k)
    certain: Bool  # (n,) False for items without an answer: their labels have no meaning

    @classmethod
    def empty(cls, n_items: int, k: int) -> BatchTopK:
        """Return a result in which no item has an answer."""
        shape = (n_items, k)
        return cls(np.zeros(shape, np.int64), np.zeros(shape), np.zeros(n_items, bool))


def top_k_of_batch(
    tree: TreeArrays,
    child_log_prob: ChildLogProb,
    n_items: int,
    k: int,
    *,
    margin: float,
    patience: float,
) -> BatchTopK:
    """Search the k most probable labels of some items, in a tree with one code per label.

    An item gets no answer if log-probabilities are within `margin` (relative to their size below
    -1), so that rounding could change the order of labels, or if its search would score more than
    `patience` edges. The tree has at least one node; `k` is from 1 to V.
    """
    labels, is_done = best_first_search(
        tree, child_log_prob, n_items, k, margin=margin, patience=patience
    )
    result = BatchTopK.empty(n_items, k)
    # More than k labels mean that the next label is within the margin
    result.certain[:] = is_done & (np.bincount(labels.item, minlength=n_items) == k)
    labels = labels.where(result.certain[labels.item])
    log_prob = labels.log_prob.reshape(-1, k)
    result.labels[result.certain] = ~labels.child.reshape(-1, k)
    result.log_prob[result.certain] = log_prob

    is_apart = -np.diff(log_prob, axis=1) > margin * np.maximum(1.0, -log_prob[:, :-1])
    result.certain[result.certain] = is_apart.all(axis=1) & (log_prob[:, -1] > -np.inf)
    return result


def search(
    codes: Codes,
    weight: Array,
    bias: Array,
    hidden: Array,
    k: int,
    features: ContextFeatures | None,
) -> BatchTopK:
    """Search the k most probable labels of hidden vectors (B, d), in a tree with several nodes.

    The search in NumPy supports neither features nor labels with several codes, whose probability
    is a sum over codes.
    """
    tree = codes.tree
    fast = compiled()
    if fast is not None and fast.is_supported(weight, bias, hidden):
        arrays = fast.SearchedTree(tree.child_start, tree.child, tree.row_start)
        label_codes = None
        if not tree.has_single_codes:
            label_codes = fast.SearchedCodes(
                codes.label_start, codes.leaf_edge, codes.parent_edge, tree.edge_node
            )
        table = None if features is None else fast.Features(*features.arrays())
        return BatchTopK(*fast.search(weight, bias, hidden, k, arrays, label_codes, table))
    # No answers: the caller computes the scores of all labels
    if features is not None or not tree.has_single_codes:
        return BatchTopK.empty(len(hidden), k)
    return top_k_of_batch(
        tree,
        children_of_rows(tree, partial(arithmetic.gather_dot, weight, bias, hidden)),
        len(hidden),
        k,
        margin=10 * TIE,
        patience=MIN_PATIENCE + PATIENCE * len(tree.child),
    )

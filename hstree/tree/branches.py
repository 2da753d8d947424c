"""What lies under each branch of a tree: its most frequent words, its leaves, its share.

For people who look at a tree, in a terminal or on a page. How that is drawn is not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hstree import progress
from hstree._ragged import segment_ids
from hstree._typing import Float64, Int64
from hstree.tree.tree import Tree
from hstree.tree.weight_rows import edge_mass


@dataclass(frozen=True)
class Branch:
    """One branch of a node, and what lies under it.

    Attributes
    ----------
    edge : int
        Its number: it leads to ``tree.child[edge]``.
    node : int or None
        The node that it leads to; None where it leads to a label.
    name : str or None
        The label, or the name of the node where it has one.
    words : tuple of str
        The most frequent labels under it, the most frequent first.
    leaves : int
        Places of labels under it; a label with several codes may be there several times.
    share : float
        The part of all counts that lies under it: the probability that an untrained model gives
        it. A label's count, at least 0.5, is split evenly over its codes.
    """

    edge: int
    node: int | None
    name: str | None
    words: tuple[str, ...]
    leaves: int
    share: float


class Branches:
    """The branches of one tree.

    Parameters
    ----------
    tree : Tree
    words : int, default 5
        Most frequent words kept for each branch.

    Examples
    --------
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]], counts=[2, 1, 1])
    >>> [(branch.words, branch.share) for branch in Branches(tree).of(0)]
    [(('a',), 0.5), (('b', 'c'), 0.5)]
    """

    def __init__(self, tree: Tree, words: int = 5) -> None:
        self.tree = tree
        self.n_words = words

    def of(self, node: int) -> list[Branch]:
        """Return the branches of a node, in their order."""
        first, last = self.tree.child_start[node : node + 2].tolist()
        return [self.at(edge) for edge in range(first, last)]

    def at(self, edge: int) -> Branch:
        """Return one branch by its number."""
        child = int(self.tree.child[edge])
        share = float(self._mass[edge] / self._total)
        if child < 0:
            label = self.tree.labels[~child]
            return Branch(edge, None, label, (label,), 1, share)
        best = self._frequent[child]
        words = tuple(self.tree.labels[label] for label in best[best >= 0])
        name = None if self.tree.names is None else self.tree.names[child]
        return Branch(edge, child, name, words, int(self._leaves[edge]), share)

    @cached_property
    def _mass(self) -> Float64:
        return edge_mass(self.tree, self.tree.counts)

    @cached_property
    def _total(self) -> float:
        return float(self._mass[: self.tree.child_start[1]].sum())

    @cached_property
    def _leaves(self) -> Int64:
        """int64 array (E,): the leaves under each edge."""
        return self.tree.sum_up(np.ones(self.tree.n_labels, np.int64))

    @cached_property
    def _frequent(self) -> Int64:
        return most_frequent(self.tree, self.n_words)


def most_frequent(tree: Tree, k: int) -> Int64:
    """Return the most frequent labels under every node.

    Parameters
    ----------
    tree : Tree
    k : int
        How many for each node.

    Returns
    -------
    int64 array (N, k)
        Label ids, the largest count first, ties by id; -1 where a node has fewer labels under it.
        O(k E log E), one pass a level.

    Examples
    --------
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]], counts=[2, 1, 3])
    >>> most_frequent(tree, 2).tolist()
    [[2, 0], [2, 1]]
    """
    n_labels = tree.n_labels
    by_rank = (
        np.arange(n_labels) if tree.counts is None else np.argsort(-tree.counts, kind="stable")
    )
    rank = np.empty(n_labels, np.int64)
    rank[by_rank] = np.arange(n_labels)
    best = np.full((tree.n_nodes, k), n_labels)
    with progress.task("ranking words", total=tree.n_nodes, unit="nodes") as task:
        for nodes, edges, edge_start in reversed(tree.levels):
            child = tree.child[edges]
            owner, leaf = segment_ids(edge_start), child < 0
            below = best[child[~leaf]].ravel()
            found = np.concatenate([rank[~child[leaf]], below])
            owners = np.concatenate([owner[leaf], np.repeat(owner[~leaf], k)])
            pairs = np.unique(owners * (n_labels + 1) + found)
            owners, found = np.divmod(pairs, n_labels + 1)
            place = np.arange(len(pairs)) - np.searchsorted(owners, owners)
            kept = place < k
            best[nodes[owners[kept]], place[kept]] = found[kept]
            task.advance(len(nodes))
    labels: Int64 = np.append(by_rank, -1)[best]
    return labels

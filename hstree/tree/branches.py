"""Branches of a tree for display: most frequent words, leaves and share of the counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hstree import progress
from hstree._ragged import segment_ids
from hstree._typing import Int64
from hstree.tree.tree import Tree
from hstree.tree.weight_rows import edge_mass


@dataclass(frozen=True)
class Branch:
    """One branch of a node and the labels below it."""

    edge: int  #: it leads to ``tree.child[edge]``
    node: int | None  #: the node that it leads to; None if it leads to a label
    name: str | None  #: the label, or the name of the node if it has one
    words: tuple[str, ...]  #: most frequent labels below it, in descending order
    leaves: int  #: number of leaves below it; those of one label count several times
    share: float  #: fraction of `edge_mass`: its probability in an untrained model


class Branches:
    """The branches of one tree, with the `words` most frequent words of each.

    Examples
    --------
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]], counts=[2, 1, 1])
    >>> [(branch.words, branch.share) for branch in Branches(tree).of(0)]
    [(('a',), 0.5), (('b', 'c'), 0.5)]
    """

    def __init__(self, tree: Tree, words: int = 5) -> None:
        self.tree = tree
        self._mass = edge_mass(tree, tree.counts)  # (E,)
        self._total = float(self._mass[tree.edge_node == 0].sum())
        self._leaves = tree.sum_up(np.ones(tree.n_labels, np.int64))  # (E,) leaves below each edge
        self._frequent = most_frequent(tree, words)  # (N, words)

    def of(self, node: int) -> list[Branch]:
        """Return the branches of a node, in order."""
        first, last = self.tree.child_start[node : node + 2].tolist()
        return [self.at(edge) for edge in range(first, last)]

    def at(self, edge: int) -> Branch:
        """Return the branch of an edge."""
        child = int(self.tree.child[edge])
        share = float(self._mass[edge] / self._total)
        if child < 0:
            label = self.tree.labels[~child]
            return Branch(edge, None, label, (label,), 1, share)
        best = self._frequent[child]
        words = tuple(self.tree.labels[label] for label in best[best >= 0])
        name = None if self.tree.names is None else self.tree.names[child]
        return Branch(edge, child, name, words, int(self._leaves[edge]), share)


def most_frequent(tree: Tree, k: int) -> Int64:
    """Return the k most frequent labels below every node, one pass per level, O(k E log E).

    int64 array (N, k): label ids by descending count, ties by id; -1 where a node has fewer.

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
    rank = np.empty(n_labels, np.int64)  # (V,) of each label; n_labels is the rank of none
    rank[by_rank] = np.arange(n_labels)
    best = np.full((tree.n_nodes, k), n_labels)  # ranks of the most frequent labels of each node
    with progress.task("ranking words", total=tree.n_nodes, unit="nodes") as task:
        for nodes, edges, edge_start in reversed(tree.levels):
            child, parent = tree.child[edges], segment_ids(edge_start)  # parent: index into nodes
            is_leaf = child < 0
            # Candidates of all nodes of the level: their own leaves, and the best below them
            parents = np.concatenate([parent[is_leaf], np.repeat(parent[~is_leaf], k)])
            ranks = np.concatenate([rank[~child[is_leaf]], best[child[~is_leaf]].ravel()])
            # Without repeats, by node, then by rank
            pairs = np.unique(parents * (n_labels + 1) + ranks)
            parents, ranks = np.divmod(pairs, n_labels + 1)
            column = np.arange(len(pairs)) - np.searchsorted(parents, parents)
            kept = column < k
            best[nodes[parents[kept]], column[kept]] = ranks[kept]
            task.advance(len(nodes))
    labels: Int64 = np.append(by_rank, -1)[best]
    return labels

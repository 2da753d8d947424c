"""Branches of a tree for display: most frequent words, leaves and share of the counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hstree.tree.frequent import most_frequent
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

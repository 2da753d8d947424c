"""From a label to its codes: the ways from the root to each of its places.

A code is a chain of edges. Edges are numbered as in ``tree.child``, so one integer says which
node decides and which branch is taken. Codes are
expanded for a batch of labels at a time, into flat arrays with offsets, and never as a padded
table: a legal chain of 100,000 labels has five billion decisions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from hstree._ragged import offsets, ranges, segment_ids
from hstree._typing import Int64, Integer
from hstree.tree.arrays import TreeArrays

#: Decisions that `Codes` keeps expanded; a tree with more is expanded batch by batch.
CACHE_LIMIT = 1 << 25

#: Every decision at least halves the mass, and float64 ends at 2**-1074.
_LONGEST_WITH_MASS = 1100


@dataclass(frozen=True)
class Expansion:
    """The codes of a batch of B labels, laid out flat.

    Attributes
    ----------
    code_start : int64 array (B + 1,)
        The codes of batch item i are ``code_start[i]:code_start[i + 1]``.
    decision_start : int64 array (C + 1,)
        The decisions of code c are ``edge[decision_start[c]:decision_start[c + 1]]``.
    edge : int64 array (D,)
        The edges taken, from the root down.
    """

    code_start: Int64
    decision_start: Int64
    edge: Int64

    @cached_property
    def code_item(self) -> Int64:
        """int64 array (C,): the batch item of each code."""
        return segment_ids(self.code_start)

    @cached_property
    def decision_code(self) -> Int64:
        """int64 array (D,): the code of each decision."""
        return segment_ids(self.decision_start)


class Codes:
    """All codes of a tree's labels.

    Parameters
    ----------
    tree : Tree
    cache_limit : int, default 2**25
        Decisions kept expanded (8 bytes each); above that every batch walks up the tree.

    Attributes
    ----------
    label_start : int64 array (V + 1,)
        The codes of label v are numbered ``label_start[v]:label_start[v + 1]``.
    leaf_edge : int64 array (C,)
        The last edge of each code, which leads to the label; ascending for each label.
    length : int64 array (C,)
        Decisions in each code.
    """

    def __init__(self, tree: TreeArrays, *, cache_limit: int = CACHE_LIMIT) -> None:
        self.tree = tree
        leaf_edge = np.flatnonzero(tree.child < 0)
        self.leaf_edge = leaf_edge[np.argsort(~tree.child[leaf_edge], kind="stable")]
        self.label_start = offsets(tree.codes_per_label)
        self.length = tree.depth[tree.edge_node[self.leaf_edge]] + 1
        self.n_decisions = int(self.length.sum())
        self._start = offsets(self.length)
        self._edge = self._climb(self.leaf_edge) if self.n_decisions <= cache_limit else None

    @property
    def label(self) -> Int64:
        """int64 array (C,): the label of each code."""
        return segment_ids(self.label_start)

    def expand(self, labels: Integer) -> Expansion:
        """Lay out all codes of a batch of labels.

        Parameters
        ----------
        labels : int array (B,)
            Label ids; repeats are fine.

        Returns
        -------
        Expansion
            O(D) time for D decisions, or O(D + depth) where codes are not cached.
        """
        first = self.label_start[labels]
        per_label = self.label_start[labels + 1] - first
        code_start = offsets(per_label)
        code = ranges(first, code_start)
        return Expansion(code_start, *self._decisions(code))

    def of(self, label: int) -> list[list[tuple[int, int]]]:
        """List one label's codes as (node, branch) pairs, from the root down.

        Examples
        --------
        >>> from hstree import Tree
        >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
        >>> Codes(tree).of(2)
        [[(0, 1), (1, 1)]]
        """
        found = self.expand(np.array([label]))
        node, branch = self.tree.edge_node[found.edge], self.tree.edge_branch[found.edge]
        pairs = list(zip(node.tolist(), branch.tolist(), strict=True))
        bounds = found.decision_start.tolist()
        return [pairs[a:b] for a, b in pairwise(bounds)]

    def kraft_sum(self, chunk: int = 1 << 22) -> float:
        """Return the mass that a uniform walk from the root puts on the expanded codes.

        It is 1 when no code misses, repeats or skips a decision, which is where public
        implementations went wrong; a code that is no walk from the root to its label has none.
        Reads every decision, `chunk` at a time, but for codes so long that float64 cannot tell
        their mass from zero.
        """
        tree = self.tree
        if tree.n_nodes == 0:
            return 1.0
        log_share = -np.log2(tree.fan_out)
        label = self.label
        readable = np.flatnonzero(self.length <= _LONGEST_WITH_MASS)
        start = offsets(self.length[readable])
        bounds = np.searchsorted(start, np.arange(0, start[-1] + chunk, chunk)).tolist()
        masses = [0.0]
        for code in (readable[a:b] for a, b in pairwise(bounds) if a < b):
            decision_start, edge = self._decisions(code)
            node = tree.edge_node[edge]
            leads_to = np.empty_like(edge)  # where the decision before it should have led
            leads_to[1:] = tree.child[edge[:-1]]
            leads_to[decision_start[:-1]] = 0
            walks = np.logical_and.reduceat(node == leads_to, decision_start[:-1])
            walks &= tree.child[edge[decision_start[1:] - 1]] == ~label[code]
            log_mass = np.add.reduceat(log_share[node], decision_start[:-1])
            masses.append(float(np.exp2(log_mass) @ walks))
        return math.fsum(masses)

    def _decisions(self, code: Int64) -> tuple[Int64, Int64]:
        """Lay out the edges of some codes: their offsets and the edges."""
        decision_start = offsets(self.length[code])
        if self._edge is None:
            return decision_start, self._climb(self.leaf_edge[code])
        return decision_start, self._edge[ranges(self._start[code], decision_start)]

    def _climb(self, last: Int64) -> Int64:
        """Expand the codes that end in these edges (C,) by walking all of them up at once."""
        start = offsets(self.tree.depth[self.tree.edge_node[last]] + 1)  # (C + 1,) into edge
        edge = np.empty(start[-1], np.int64)  # (D,) from the root down
        current, slot = last, start[1:] - 1  # edge reached by each code, where to write it
        while current.size:
            edge[slot] = current
            current = self.tree.parent_edge[current]
            alive = current >= 0
            if not alive.all():
                current, slot = current[alive], slot[alive]
            slot = slot - 1
        return edge

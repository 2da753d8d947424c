"""From a label to its codes: the ways from the root to each of its places.

A code is a chain of edges. Edges are numbered as in ``tree.child``, so one integer says which
node decides and which branch is taken; ``above[e]`` is the edge taken just before. Codes are
expanded for a batch of labels at a time, into flat arrays with offsets, and never as a padded
table: a legal chain of 100,000 labels has five billion decisions.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hstree.segments import offsets, ranges
from hstree.tree import Tree

Int64 = NDArray[np.int64]

#: Decisions that `Codes` keeps expanded; a tree with more is expanded batch by batch.
CACHE_LIMIT = 1 << 25


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
    place : int64 array (C,)
        The last edge of each code, the one that leads to the label. A label's codes are in the
        order of these.
    length : int64 array (C,)
        Decisions in each code.
    above : int64 array (E,)
        The edge taken just before each edge, -1 at the root.
    """

    def __init__(self, tree: Tree, *, cache_limit: int = CACHE_LIMIT) -> None:
        self.tree = tree
        self.above = tree.node_edge[tree.edge_node]
        leaf_edge = np.flatnonzero(tree.child < 0)
        label = ~tree.child[leaf_edge]
        self.place = leaf_edge[np.argsort(label, kind="stable")]
        self.label_start = offsets(np.bincount(label, minlength=tree.n_labels))
        self.length = tree.depth[tree.edge_node[self.place]] + 1
        self.n_decisions = int(self.length.sum())
        self._start = offsets(self.length)
        self._edge = self._climb(self.place) if self.n_decisions <= cache_limit else None

    @property
    def codes_per_label(self) -> Int64:
        """int64 array (V,): how many codes each label has; 0 only where V = 1."""
        return np.diff(self.label_start)

    def expand(self, labels: NDArray[np.integer]) -> Expansion:
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
        length = self.length[code]
        decision_start = offsets(length)
        if self._edge is None:
            edge = self._climb(self.place[code])
        else:
            edge = self._edge[ranges(self._start[code], decision_start)]
        return Expansion(code_start, decision_start, edge)

    def of(self, label: int) -> list[list[tuple[int, int]]]:
        """List one label's codes as (node, branch) pairs, from the root down.

        Examples
        --------
        >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
        >>> Codes(tree).of(2)
        [[(0, 1), (1, 1)]]
        """
        found = self.expand(np.array([label]))
        node = self.tree.edge_node[found.edge]
        branch = found.edge - self.tree.child_start[node]
        pairs = list(zip(node.tolist(), branch.tolist(), strict=True))
        bounds = found.decision_start.tolist()
        return [pairs[a:b] for a, b in pairwise(bounds)]

    def uniform_mass(self, chunk: int = 1 << 22) -> float:
        """Return the mass that a uniform walk from the root puts on the expanded codes.

        It is 1 when no code misses, repeats or skips a decision, which is where public
        implementations went wrong. Reads every decision of every code, `chunk` at a time.
        """
        if self.tree.n_nodes == 0:
            return 1.0
        log_share = -np.log2(self.tree.fan_out)
        masses = []
        bounds = np.searchsorted(self._start, np.arange(0, self.n_decisions + chunk, chunk))
        for a, b in pairwise(bounds):
            if a == b:
                continue
            start = offsets(self.length[a:b])
            edge = self._climb(self.place[a:b])
            step = log_share[self.tree.edge_node[edge]]
            masses.append(np.exp2(np.add.reduceat(step, start[:-1])).sum())
        return float(np.sum(masses))

    def _climb(self, place: Int64) -> Int64:
        """Expand the codes that end in these edges by walking all of them up at once."""
        length = self.tree.depth[self.tree.edge_node[place]] + 1
        start = offsets(length)
        edge = np.empty(start[-1], np.int64)
        slot = start[1:] - 1
        while place.size:
            edge[slot] = place
            place = self.above[place]
            alive = place >= 0
            if not alive.all():
                place, slot = place[alive], slot[alive]
            slot = slot - 1
        return edge

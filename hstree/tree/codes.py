"""Codes: root-to-leaf paths of each label, as edge indices.

An edge index identifies the deciding node and the chosen branch. Codes are expanded for a batch of
labels at a time, into flat arrays with offsets, not into a padded table: a chain of 100,000 labels
has five billion decisions.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from hstree._arrays import NARROW, Int64, Integer, offsets, ranges, segment_ids
from hstree.tree.arrays import TreeArrays, compact
from hstree.tree.order import sum_to_root

#: Maximum number of decisions that `Codes` caches; larger trees are expanded for each batch.
CACHE_LIMIT = 1 << 25


class Expansion(NamedTuple):
    """Codes of a batch of B labels, as flat arrays."""

    code_start: Int64  #: (B + 1,), item i has the codes ``code_start[i]:code_start[i + 1]``
    code_item: Int64  #: (C,), batch item of each code
    decision_start: Int64  #: (C + 1,), offsets of the codes in `edge`
    edge: Int64  #: (D,), edges taken, from the root down


class Codes:
    """All codes of a tree's labels.

    Parameters
    ----------
    tree : Tree
    cache_limit : int, default 2**25
        Maximum number of decisions that are cached (8 bytes each); for larger trees, every batch is
        expanded by walking up the tree.
    nodes : bool, default False
        Whether nodes have codes, too: the path to node n is then the code of ``V + n``, as if the
        node were a label. The path to the root has no decision.

    Attributes
    ----------
    label_start : int64 array (V + 1,)
        The codes of label v are numbered ``label_start[v]:label_start[v + 1]``.
    leaf_edge : int64 array (C,)
        The last edge of each code, which leads to the label; ascending within a label.
    length : int64 array (C,)
        Number of decisions of each code.
    parent_edge : int64 array (E,)
        `parent_edge` of the tree.
    n_decisions : int
        Sum of `length`, D.
    """

    def __init__(
        self, tree: TreeArrays, *, cache_limit: int = CACHE_LIMIT, nodes: bool = False
    ) -> None:
        self.tree = tree
        self.parent_edge = tree.parent_edge
        # The last edge of each code, by label, then in tree order; and the length of each code
        leaf_edge = np.flatnonzero(tree.child < 0)
        by_label = np.argsort(~tree.child[leaf_edge], kind="stable")
        leaf_edge = leaf_edge[by_label]
        n_codes = tree.codes_per_label
        length = tree.depth[tree.edge_node[leaf_edge]] + 1
        if nodes:
            # After the labels, each node has one code: the path to the node
            leaf_edge = np.r_[leaf_edge, tree.node_edge]
            n_codes = np.r_[n_codes, np.ones(tree.n_nodes, np.int64)]
            length = np.r_[length, tree.depth]
        self.leaf_edge = compact(leaf_edge)
        self.label_start = compact(offsets(n_codes))
        self.length = length
        self.n_decisions = int(self.length.sum())

        # Cache the decisions of all codes if they are few enough
        self._edge: Int64 | None = None
        if self.n_decisions <= cache_limit:
            self._start = offsets(self.length)
            self._edge = self.expand(np.arange(len(n_codes))).edge

    @cached_property
    def label(self) -> Int64:
        """Label of each code, an integer array (C,)."""
        return ~self.tree.child[self.leaf_edge]

    @cached_property
    def walk(self) -> tuple[Int64, ...]:
        """Arrays for walks from labels up to the root, for `hstree.kernels.layout.Paths`."""
        tree = self.tree
        # (N,) number of logits at narrow nodes and of wide nodes on the path, including the node
        is_wide = tree.fan_out > NARROW
        n_logits = np.where(is_wide, 0, np.diff(tree.row_start))
        n_pairs = sum_to_root(n_logits, tree.parent)
        n_wide = sum_to_root(is_wide.astype(np.int64), tree.parent)

        last = tree.edge_node[self.leaf_edge]
        return (
            self.label_start,
            self.leaf_edge,
            n_pairs[last],
            n_wide[last],
            self.parent_edge,
            tree.edge_row,
            tree.edge_width,
            tree.edge_branch,
        )

    def expand(self, labels: Integer) -> Expansion:
        """Return all codes of a batch of label ids (B,), which may repeat.

        O(D) time for D decisions. If codes are not cached, all walk up at once: O(D + depth).
        """
        first = self.label_start[labels]
        code_start = offsets(self.label_start[labels + 1] - first)
        code = ranges(first, code_start)
        start = offsets(self.length[code])
        if self._edge is not None:
            edge = self._edge[ranges(self._start[code], start)]
        else:
            edge = np.empty(start[-1], np.int64)
            # Current edge of each code, and its index in `edge`; the code of the root has no edge
            current = self.leaf_edge[code]
            slot = start[1:] - 1
            while (alive := current >= 0).any():
                if not alive.all():
                    current = current[alive]
                    slot = slot[alive]
                edge[slot] = current
                current = self.parent_edge[current]
                slot = slot - 1
        return Expansion(code_start, segment_ids(code_start), start, edge)

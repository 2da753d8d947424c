"""The log-probabilities of all labels: one dense product, then one pass a level."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from hstree._ragged import offsets
from hstree._typing import Int64
from hstree.interop.torch.index import index_tensor
from hstree.interop.torch.precision import at_least_float32
from hstree.interop.torch.segments import log_sum_exp
from hstree.tree.arrays import TreeArrays
from hstree.tree.codes import Codes


class AllLabels:
    """The order in which a tree's edges and labels are computed, as index tensors.

    Parameters
    ----------
    codes : Codes
        Of a tree with a node.
    device : device
    """

    def __init__(self, codes: Codes, device: torch.device) -> None:
        tree = codes.tree
        self.n_labels = tree.n_labels
        self.one_code = tree.has_single_codes
        groups = _softmax_groups(tree)
        down = np.concatenate([level.edges for level in tree.levels])
        rank = np.empty_like(down)
        rank[down] = np.arange(len(down))
        self._level_bounds: list[int] = offsets(
            np.array([len(level.edges) for level in tree.levels])
        ).tolist()
        binary = np.flatnonzero(tree.fan_out == 2)
        self._binary_row = index_tensor(tree.row_start[binary], device)
        self._group_rows = [index_tensor(rows, device) for _, rows in groups]
        self._slot = index_tensor(_slots(tree, binary, groups)[down], device)
        self._above = index_tensor(rank[tree.parent_edge[down]], device)
        self._place = index_tensor(rank[codes.leaf_edge], device)
        self._code_label = index_tensor(codes.label, device)

    def log_prob(self, weight: Tensor, bias: Tensor, hidden: Tensor) -> Tensor:
        """Return the log-probabilities (N, V), at least float32; O(N (R d + E))."""
        score = at_least_float32(torch.addmm(bias[:, None], weight, hidden.T))
        way = self._of_edges(score).index_select(0, self._slot)
        for a, b in pairwise(self._level_bounds[1:]):
            way[a:b] += way.index_select(0, self._above[a:b])
        of_code = way.index_select(0, self._place)
        if self.one_code:
            return of_code.T
        return log_sum_exp(of_code, self._code_label, self.n_labels).T

    def _of_edges(self, score: Tensor) -> Tensor:
        """Turn the scores of all rows (R, N) into the log-probabilities of all edges, by slot."""
        binary = score.index_select(0, self._binary_row)
        parts = [logsigmoid(binary), logsigmoid(-binary)]
        if self._group_rows:
            nothing = score.new_full((1, score.shape[1]), -torch.inf)
            score = torch.cat([score, nothing])
        for rows in self._group_rows:
            parts.append(torch.log_softmax(score[rows], 1).flatten(0, 1))
        return torch.cat(parts)


def _softmax_groups(tree: TreeArrays) -> list[tuple[Int64, Int64]]:
    """Group the nodes with a softmax by their widths, between the same powers of two.

    Returns
    -------
    list of (nodes (n,), rows (n, K))
        The weight rows of each node, then the number R up to the width K of the widest.
    """
    start = tree.row_start
    width_class = np.ceil(np.log2(tree.fan_out)).astype(np.int64)
    groups = []
    for number in np.unique(width_class[tree.fan_out > 2]).tolist():
        nodes = np.flatnonzero((width_class == number) & (tree.fan_out > 2))
        branch = np.arange(tree.fan_out[nodes].max())
        past = branch >= tree.fan_out[nodes, None]
        groups.append((nodes, np.where(past, start[-1], start[nodes, None] + branch)))
    return groups


def _slots(tree: TreeArrays, binary: Int64, groups: list[tuple[Int64, Int64]]) -> Int64:
    """Return where each edge's log-probability stands in what `AllLabels._of_edges` returns."""
    slot_start = np.empty(tree.n_nodes, np.int64)
    step = np.ones(tree.n_nodes, np.int64)
    slot_start[binary], step[binary] = np.arange(len(binary)), len(binary)
    size = 2 * len(binary)
    for nodes, rows in groups:
        slot_start[nodes] = size + rows.shape[1] * np.arange(len(nodes))
        size += rows.size
    slots: Int64 = slot_start[tree.edge_node] + step[tree.edge_node] * tree.edge_branch
    return slots

"""The tree as index tensors on a device: from targets to the decisions they take.

The arrays are those of `hstree.tree.codes`, laid out flat; there is never a padded table of codes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from hstree.interop.torch.segments import ranges
from hstree.tree.codes import Codes

#: Decisions that are kept expanded on the device, 4 bytes each: 128 MiB. Codes of a tree with
#: more are laid out on the host, batch by batch.
CACHE_LIMIT = 1 << 25


class Taken(NamedTuple):
    """The decisions of all codes of a batch of N targets.

    Attributes
    ----------
    code_item : int64 tensor (C,)
        The batch item of each code; ascends.
    decision_code : int64 tensor (D,)
        The code of each decision; ascends.
    edge : int64 tensor (D,)
        The edge taken.
    """

    code_item: Tensor
    decision_code: Tensor
    edge: Tensor


def index_tensor(
    values: ArrayLike, device: torch.device, dtype: torch.dtype = torch.int64
) -> Tensor:
    """Copy integers to a device; autograd may keep them, whatever mode they are made in."""
    with torch.inference_mode(False):
        return torch.tensor(np.asarray(values), dtype=dtype, device=device)


class TreeIndex:
    """A tree's arrays as index tensors.

    Parameters
    ----------
    codes : Codes
        Of the tree; kept where the tree has more than `CACHE_LIMIT` decisions.
    device : device

    Attributes
    ----------
    edge_row : int64 tensor (E,)
        The first weight row of the node that each edge leaves.
    edge_branch : int64 tensor (E,)
        Which child of that node it leads to, counted from 0.
    edge_width : int64 tensor (E,)
        How many children that node has.
    child_start, child : int64 tensors (N + 1,), (E,)
        As in the tree.
    n_labels : int
    one_code : bool
        Whether every label has one code.
    widest : int
        The most children that a node has; 0 where there is no node.
    """

    def __init__(self, codes: Codes, device: torch.device) -> None:
        tree = codes.tree
        self.n_labels = tree.n_labels
        self.one_code = tree.has_single_codes
        self.widest = int(tree.fan_out.max(initial=0))
        self.edge_row = index_tensor(tree.edge_row, device)
        self.edge_branch = index_tensor(tree.edge_branch, device)
        self.edge_width = index_tensor(tree.edge_width, device)
        self.child_start = index_tensor(tree.child_start, device)
        self.child = index_tensor(tree.child, device)
        self._label_start = index_tensor(codes.label_start, device)
        cached = codes.n_decisions <= CACHE_LIMIT
        self._host_codes = None if cached else codes
        everything = codes.expand(np.arange(tree.n_labels if cached else 0))
        self._code_start = index_tensor(everything.decision_start, device)
        self._code_edge = index_tensor(everything.edge, device, torch.int32)

    def expand(self, target: Tensor) -> Taken:
        """Lay out all codes of the targets (N,)."""
        if self._host_codes is not None:
            return _expand_on_host(self._host_codes, target)
        item = torch.arange(len(target), device=target.device)
        code = target
        if not self.one_code:
            first = self._label_start[target]
            per_item = self._label_start[target + 1] - first
            item = torch.repeat_interleave(item, per_item)
            code = ranges(first, per_item)
        first = self._code_start[code]
        length = self._code_start[code + 1] - first
        edge = self._code_edge[ranges(first, length)]
        of_code = torch.arange(len(code), device=target.device)
        decision_code = torch.repeat_interleave(of_code, length, output_size=len(edge))
        return Taken(item, decision_code, edge.long())


def _expand_on_host(codes: Codes, target: Tensor) -> Taken:
    found = codes.expand(target.cpu().numpy())
    arrays = (found.code_item, found.decision_code, found.edge)
    return Taken(*(torch.from_numpy(array).to(target.device) for array in arrays))

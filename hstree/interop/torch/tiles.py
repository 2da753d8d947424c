"""Nodes with many children, as batched products of equal tiles; how decisions are cut into them.

The decisions of a batch at such nodes are sorted by node; those at one node are a tile, or several
where they are many. Nodes alike, whose numbers of children and of decisions lie between the same
powers of two, share a batch of tiles, padded to the largest. So Python loops over powers of two and
over blocks of bounded memory, and never over nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from hstree.interop.torch.precision import at_least_float32
from hstree.interop.torch.segments import offsets, ranges

#: Numbers in a block: its scores and what is gathered for them.
BLOCK = 1 << 25


class Decisions(NamedTuple):
    """Decisions at nodes with a softmax.

    Attributes
    ----------
    item : int64 tensor (D,)
        The batch item that each belongs to.
    row : int64 tensor (D,)
        The first weight row of the node.
    width : int64 tensor (D,)
        The number of its children.
    """

    item: Tensor
    row: Tensor
    width: Tensor


class Tiles(NamedTuple):
    """A block: n tiles, each of up to T decisions at one node of up to K children.

    Attributes
    ----------
    place : int64 tensor (n, T)
        Which decisions; the node's last one again where a tile is not full.
    full : bool tensor (n, T)
        False where it is not.
    widest : int
        K.
    """

    place: Tensor
    full: Tensor
    widest: int

    def scores(self, weight: Tensor, bias: Tensor, hidden: Tensor, taken: Decisions) -> Tensor:
        """Return the scores (n, T, K), minus infinity past a node's last child."""
        row = taken.row[self.place[:, 0]]
        own = self.rows(weight, row).transpose(1, 2)
        score = torch.baddbmm(
            self.rows(bias, row)[:, None], take_rows(hidden, taken.item[self.place]), own
        )
        past = self._branch() >= taken.width[self.place[:, 0]][:, None]
        return at_least_float32(score.masked_fill_(past[:, None], -torch.inf))

    def rows(self, parameter: Tensor, row: Tensor) -> Tensor:
        """Return the rows of the tiles' nodes, (n, K, ...), which begin at `row` (n,).

        Where a node has fewer than K, the rest are rows of others.
        """
        if self._is_one_run(row, len(parameter)):
            return parameter.narrow(0, int(row), self.widest)[None]
        return take_rows(parameter, self._row_numbers(row, len(parameter)))

    def add_to_rows(self, total: Tensor, row: Tensor, values: Tensor) -> None:
        """Add values (n, K, ...) to the rows that `rows` returns; those past a node are zero."""
        if self._is_one_run(row, len(total)):
            total.narrow(0, int(row), self.widest).add_(values[0])
        else:
            numbers = self._row_numbers(row, len(total))
            total.index_add_(0, numbers.flatten(), values.flatten(0, 1))

    def _is_one_run(self, row: Tensor, n_rows: int) -> bool:
        """Tell whether the rows are one run, which need not be gathered."""
        return len(row) == 1 and int(row) + self.widest <= n_rows

    def _row_numbers(self, row: Tensor, n_rows: int) -> Tensor:
        return (row[:, None] + self._branch()).clamp_(max=n_rows - 1)

    def _branch(self) -> Tensor:
        return torch.arange(self.widest, device=self.place.device)[None]


def take_rows(values: Tensor, rows: Tensor) -> Tensor:
    """Return ``values[rows]``, in about half the time."""
    return values.index_select(0, rows.flatten()).view(*rows.shape, *values.shape[1:])


def cut(taken: Decisions, dim: int) -> Iterator[Tiles]:
    """Cut decisions into tiles, and these into blocks of about `BLOCK` numbers (or one tile)."""
    order = torch.argsort(taken.row, stable=True)
    count = torch.unique_consecutive(taken.row[order], return_counts=True)[1]
    start = offsets(count)[:-1]
    width = taken.width[order[start]]
    powers = 1 << torch.arange(32, device=order.device)
    likeness = 32 * torch.bucketize(width, powers) + torch.bucketize(count, powers)
    by_likeness = torch.argsort(likeness, stable=True)
    alike = torch.unique_consecutive(likeness[by_likeness], return_counts=True)[1].tolist()
    for nodes in torch.split(by_likeness, alike):
        yield from _cut_alike(order, start[nodes], count[nodes], int(width[nodes].max()), dim)


def _cut_alike(
    order: Tensor, start: Tensor, count: Tensor, widest: int, dim: int
) -> Iterator[Tiles]:
    """Cut the decisions at nodes that are alike; node j has order[start[j]:start[j] + count[j]]."""
    height = _height(int(count.max()), BLOCK // (widest + dim))
    per_node = (count + height - 1) // height
    node = torch.repeat_interleave(per_node)
    begin = start[node] + height * ranges(torch.zeros_like(per_node), per_node)
    end = (start + count)[node][:, None]
    slot = begin[:, None] + torch.arange(height, device=order.device)
    full = slot < end
    place = order[torch.minimum(slot, end - 1)]
    step = max(1, BLOCK // (height * (widest + dim) + widest * dim))
    for tiles in zip(torch.split(place, step), torch.split(full, step), strict=True):
        yield Tiles(*tiles, widest)


def _height(largest: int, most: int) -> int:
    """Return T: all decisions at a node, or equal parts of them where they are too many."""
    parts = -(-largest // max(1, most))
    return -(-largest // parts)

"""Logits of nodes with many children, as batched products of equal tiles.

The decisions of a batch at such nodes are sorted by node; those of one node are a tile, or several
where they are many. Nodes whose numbers of children and of decisions are between the same powers of
two share a batch of tiles, padded to the largest. So Python loops over powers of two and over
blocks of bounded memory, and never over nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from hstree.interop.torch.index import at_least_float32, offsets, ranges

#: Numbers in a block: its logits and what is gathered for them.
BLOCK = 1 << 25


class Decisions(NamedTuple):
    """Decisions at nodes with a softmax, as int64 tensors (D,)."""

    item: Tensor  # batch item of each
    row: Tensor  # first weight row of the node
    width: Tensor  # number of children of the node


class Tiles(NamedTuple):
    """A block of n tiles, each of up to T decisions at one node of up to K children."""

    decision: Tensor  # (n, T) int64; the last of the node again where a tile is not full
    is_full: Tensor  # (n, T) bool; False at these
    widest: int  # K

    def logits(self, weight: Tensor, bias: Tensor, hidden: Tensor, taken: Decisions) -> Tensor:
        """Return the logits (n, T, K), minus infinity past the last child of a node."""
        # (n,) first row of each node, (n, K, d) its rows, (n, T, d) hidden vectors
        row = taken.row[self.decision[:, 0]]
        rows = self.rows(weight, row).transpose(1, 2)
        gathered = take_rows(hidden, taken.item[self.decision])
        logits = torch.baddbmm(self.rows(bias, row)[:, None], gathered, rows)
        past = self._branch() >= taken.width[self.decision[:, 0]][:, None]
        return at_least_float32(logits.masked_fill_(past[:, None], -torch.inf))

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
        """Whether the rows are consecutive, and need not be gathered."""
        return len(row) == 1 and int(row) + self.widest <= n_rows

    def _row_numbers(self, row: Tensor, n_rows: int) -> Tensor:
        return (row[:, None] + self._branch()).clamp_(max=n_rows - 1)

    def _branch(self) -> Tensor:
        return torch.arange(self.widest, device=self.decision.device)[None]


def take_rows(values: Tensor, rows: Tensor) -> Tensor:
    """Return ``values[rows]``, in about half the time."""
    return values.index_select(0, rows.flatten()).view(*rows.shape, *values.shape[1:])


def split(taken: Decisions, dim: int) -> Iterator[Tiles]:
    """Yield decisions as tiles, in blocks of about `BLOCK` numbers (or one tile)."""
    # (nodes,) offset into the decisions by node, number of decisions, and width of each node
    order = torch.argsort(taken.row, stable=True)
    count = torch.unique_consecutive(taken.row[order], return_counts=True)[1]
    start = offsets(count)[:-1]
    width = taken.width[order[start]]
    # (nodes,) kind of each node: the powers of two of its width and count
    powers = 1 << torch.arange(32, device=order.device)
    kind = 32 * torch.bucketize(width, powers) + torch.bucketize(count, powers)
    by_kind = torch.argsort(kind, stable=True)
    per_kind = torch.unique_consecutive(kind[by_kind], return_counts=True)[1].tolist()
    for nodes in torch.split(by_kind, per_kind):
        yield from _split_kind(order, start[nodes], count[nodes], int(width[nodes].max()), dim)


def _split_kind(
    order: Tensor, start: Tensor, count: Tensor, widest: int, dim: int
) -> Iterator[Tiles]:
    """Split the decisions ``order[start[j]:start[j] + count[j]]`` of the nodes j of one kind."""
    # All decisions at a node in one tile, or in equal ones where they are too many
    largest, limit = int(count.max()), max(1, BLOCK // (widest + dim))
    height = -(-largest // -(-largest // limit))
    # (tiles,) node of each tile, and its decisions (tiles, height)
    per_node = (count + height - 1) // height
    node = torch.repeat_interleave(per_node)
    begin = start[node] + height * ranges(torch.zeros_like(per_node), per_node)
    end = (start + count)[node][:, None]
    slot = begin[:, None] + torch.arange(height, device=order.device)
    is_full = slot < end
    decision = order[torch.minimum(slot, end - 1)]
    step = max(1, BLOCK // (height * (widest + dim) + widest * dim))
    for tiles in zip(torch.split(decision, step), torch.split(is_full, step), strict=True):
        yield Tiles(*tiles, widest)

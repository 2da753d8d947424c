"""The three ways to compute a decision; each node is in one of them, by its number of children.

- two children: one logistic decision, one weight row; pairs laid out flat (`BinaryNodes`);
- 3 to `NARROW` children: all rows of the node, laid out flat, a softmax a segment (`NarrowNodes`);
- more: the batch items grouped by node and one matrix product a group (`WideNodes`).

Each takes the decisions of a batch that fall to it, returns their log-probabilities, and keeps
what it needs to carry back the weight that each decision has in the loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hstree.layers import decision, pairs
from hstree.layers.pairs import RowGradient
from hstree.segments import offsets, ranges

Array = NDArray[Any]
Int64 = NDArray[np.int64]

#: Up to this many children a node's softmax is laid out flat; above, it is a matrix product.
NARROW = 32

#: Scores of a wide node computed at a time ...
BLOCK_SCORES = 1 << 25
#: ... and kept in a batch for the way back; beyond that they are computed twice.
KEPT_SCORES = 1 << 28


@dataclass(frozen=True)
class Decisions:
    """The decisions of a batch that fall to one group of nodes, sorted by batch item.

    Attributes
    ----------
    item : int64 array (D,)
        The batch item that each decision belongs to.
    row : int64 array (D,)
        The first weight row of the deciding node.
    branch : int64 array (D,)
        The child taken, counted from 0.
    width : int64 array (D,)
        The number of children of the node.
    """

    item: Int64
    row: Int64
    branch: Int64
    width: Int64


class Group(Protocol):
    """One way to compute decisions."""

    def forward(self, weight: Array, bias: Array, hidden: Array, taken: Decisions) -> Array:
        """Return the log-probabilities (D,) of the decisions, and keep what `backward` needs."""

    def backward(
        self, weight: Array, hidden: Array, share: Array | None
    ) -> tuple[Array, list[RowGradient]]:
        """Return the gradients by the hidden vectors (B, d) and by the rows.

        `share` (D,) is the weight of each decision in the loss; None means 1 for all.
        """


class BinaryNodes:
    """Nodes with two children."""

    def forward(self, weight: Array, bias: Array, hidden: Array, taken: Decisions) -> Array:
        """Return the log-probabilities (D,) of the decisions."""
        self._taken = taken
        z = pairs.score(weight, bias, hidden, taken.item, taken.row)
        log_prob, self._error = decision.binary(z, taken.branch == 0)
        return log_prob

    def backward(
        self, weight: Array, hidden: Array, share: Array | None
    ) -> tuple[Array, list[RowGradient]]:
        """Return the gradients by the hidden vectors (B, d) and by the rows."""
        error = self._error if share is None else self._error * share
        start = offsets(np.bincount(self._taken.item, minlength=len(hidden)))
        by_hidden, by_rows = pairs.backward(weight, hidden, start, self._taken.row, error)
        return by_hidden, [by_rows]


class NarrowNodes:
    """Nodes with 3 to `NARROW` children: one pair a child, a softmax over each run of pairs."""

    def forward(self, weight: Array, bias: Array, hidden: Array, taken: Decisions) -> Array:
        """Return the log-probabilities (D,) of the decisions."""
        self._start = offsets(taken.width)
        self._row = ranges(taken.row, self._start)
        self._item = np.repeat(taken.item, taken.width)
        self._chosen = self._start[:-1] + taken.branch
        z = pairs.score(weight, bias, hidden, self._item, self._row)
        self._log_prob = decision.segment_log_softmax(z, self._start)
        chosen: Array = self._log_prob[self._chosen]
        return chosen

    def backward(
        self, weight: Array, hidden: Array, share: Array | None
    ) -> tuple[Array, list[RowGradient]]:
        """Return the gradients by the hidden vectors (B, d) and by the rows."""
        error = np.exp(self._log_prob)
        error[self._chosen] -= 1
        if share is not None:
            error *= np.repeat(share, np.diff(self._start))
        start = offsets(np.bincount(self._item, minlength=len(hidden)))
        by_hidden, by_rows = pairs.backward(weight, hidden, start, self._row, error)
        return by_hidden, [by_rows]


@dataclass(frozen=True)
class _Block:
    """Some of a batch's decisions at one wide node.

    `error` is the (items, children) derivative by the scores, or None where it was too large to
    keep and has to be computed again from `log_total`.
    """

    rows: slice
    decision: Int64
    item: Int64
    chosen: Int64
    log_total: Array
    error: Array | None


class WideNodes:
    """Nodes with more than `NARROW` children: one dense softmax a node over its batch items."""

    def forward(self, weight: Array, bias: Array, hidden: Array, taken: Decisions) -> Array:
        """Return the log-probabilities (D,) of the decisions."""
        self._blocks: list[_Block] = []
        self._bias = bias
        log_prob = np.empty(len(taken.row), weight.dtype)
        kept = 0
        for rows, decision_ids in _blocks_of_nodes(taken):
            item, chosen = taken.item[decision_ids], taken.branch[decision_ids]
            z = _scores(weight, bias, hidden, rows, item)
            top = z.max(axis=1, keepdims=True)
            z -= top
            picked = z[np.arange(len(item)), chosen]
            np.exp(z, out=z)
            total = z.sum(axis=1, keepdims=True)
            log_prob[decision_ids] = picked - np.log(total[:, 0])
            kept += z.size
            error = None
            if kept <= KEPT_SCORES:
                error = np.divide(z, total, out=z)
                error[np.arange(len(item)), chosen] -= 1
            log_total = top + np.log(total)
            self._blocks.append(_Block(rows, decision_ids, item, chosen, log_total, error))
        return log_prob

    def backward(
        self, weight: Array, hidden: Array, share: Array | None
    ) -> tuple[Array, list[RowGradient]]:
        """Return the gradients by the hidden vectors (B, d) and by the rows."""
        by_hidden = np.zeros_like(hidden)
        by_rows: list[RowGradient] = []
        for block in self._blocks:
            error = block.error
            if error is None:
                error = np.exp(
                    _scores(weight, self._bias, hidden, block.rows, block.item) - block.log_total
                )
                error[np.arange(len(block.item)), block.chosen] -= 1
            if share is not None:
                error *= share[block.decision, None]
            add_rows(by_hidden, block.item, error @ weight[block.rows])
            by_weight, by_bias = error.T @ hidden[block.item], error.sum(axis=0)
            if by_rows and by_rows[-1].rows == block.rows:
                by_rows[-1].weight[...] += by_weight
                by_rows[-1].bias[...] += by_bias
            else:
                by_rows.append(RowGradient(block.rows, by_weight, by_bias))
        return by_hidden, by_rows


def _blocks_of_nodes(taken: Decisions) -> Iterator[tuple[slice, Int64]]:
    """Group the decisions by node; cut a node's decisions where its scores would be too many."""
    order = np.argsort(taken.row, kind="stable")
    first = np.flatnonzero(np.diff(taken.row[order], prepend=-1))
    for of_node in np.split(order, first[1:]):
        row, width = int(taken.row[of_node[0]]), int(taken.width[of_node[0]])
        size = max(1, BLOCK_SCORES // width)
        for a in range(0, len(of_node), size):
            yield slice(row, row + width), of_node[a : a + size]


def _scores(weight: Array, bias: Array, hidden: Array, rows: slice, item: Int64) -> Array:
    """Return the scores of all children of a node for some items, (items, children)."""
    z = hidden[item] @ weight[rows].T
    z += bias[rows]
    return z


def add_rows(total: Array, item: Int64, values: Array) -> None:
    """Add rows to a matrix in place; `item` ascends and may repeat (several codes of a label)."""
    first = np.flatnonzero(np.diff(item, prepend=-1))
    total[item[first]] += np.add.reduceat(values, first, axis=0)

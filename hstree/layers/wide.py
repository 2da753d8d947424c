"""Decisions at nodes with many children: one dense softmax a node over the batch items there.

The items are gathered once in the order of their nodes, so that each node's part is a slice of
three matrix products: scores, and the gradients by the hidden vectors and by the rows. What a
decision is, and which nodes are wide, is said in `groups`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from hstree.layers.groups import Decisions
from hstree.layers.pairs import RowGradient
from hstree.segments import offsets, ranges

Array = NDArray[Any]
Int64 = NDArray[np.int64]

#: Scores of a wide node computed at a time ...
BLOCK_SCORES = 1 << 25
#: ... and kept in a batch for the way back; beyond that they are computed twice.
KEPT_SCORES = 1 << 28


@dataclass(frozen=True)
class _Block:
    """Some of a batch's decisions at one wide node.

    Attributes
    ----------
    here : slice
        The decisions, in the order of their nodes.
    rows : slice
        The node's weight rows.
    own : slice
        The same among the touched rows of the batch.
    error : float array (n, k) or None
        The derivative by the scores; None where it was too large to keep and has to be computed
        again.
    """

    here: slice
    rows: slice
    own: slice
    error: Array | None


class WideNodes:
    """Nodes with more than `groups.NARROW` children."""

    def forward(self, weight: Array, bias: Array, hidden: Array, taken: Decisions) -> Array:
        """Return the log-probabilities (D,) of the decisions."""
        order = np.argsort(taken.row, kind="stable")
        self._taken, self._order, self._bias = taken, order, bias
        self._given = hidden.take(taken.item[order], axis=0)
        self._chosen = taken.branch[order]
        self._blocks: list[_Block] = []
        in_order = np.empty(len(order), weight.dtype)
        kept = 0
        for here, rows, own in self._cut():
            log_prob, error = self._softmax(weight, here, rows)
            in_order[here] = log_prob
            kept += error.size
            self._blocks.append(_Block(here, rows, own, error if kept <= KEPT_SCORES else None))
        log_prob = np.empty_like(in_order)
        log_prob[order] = in_order
        return log_prob

    def backward(
        self, weight: Array, hidden: Array, share: Array | None
    ) -> tuple[Array, list[RowGradient]]:
        """Return the gradients by the hidden vectors (B, d) and by the rows."""
        touched = self._touched
        by_given = np.empty_like(self._given)
        by_rows = RowGradient(
            touched,
            np.empty((self._n_touched, weight.shape[1]), weight.dtype),
            np.empty(self._n_touched, weight.dtype),
        )
        in_order = None if share is None else share[self._order, None]
        before = -1
        for block in self._blocks:
            error = block.error
            if error is None:
                error = self._softmax(weight, block.here, block.rows)[1]
            if in_order is not None:
                error *= in_order[block.here]
            np.matmul(error, weight[block.rows], out=by_given[block.here])
            of_node = by_rows.weight[block.own]
            if block.own.start == before:  # a node whose decisions were cut
                of_node += error.T @ self._given[block.here]
                by_rows.bias[block.own] += error.sum(axis=0)
            else:
                np.matmul(error.T, self._given[block.here], out=of_node)
                np.add.reduce(error, axis=0, out=by_rows.bias[block.own])
            before = block.own.start
        return self._to_items(by_given, len(hidden)), [by_rows]

    def _cut(self) -> Iterator[tuple[slice, slice, slice]]:
        """Yield the decisions of each node, cut where its scores would be too many.

        Sets which rows are touched: a slice where they are one run, as those of a single node.
        """
        row = self._taken.row[self._order]
        first = np.flatnonzero(np.diff(row, prepend=-1))
        width = self._taken.width[self._order[first]]
        start = offsets(width)
        self._n_touched = int(start[-1])
        self._touched: Int64 | slice
        if row[-1] + width[-1] - row[0] == self._n_touched:
            self._touched = slice(int(row[0]), int(row[0]) + self._n_touched)
        else:
            self._touched = ranges(row[first], start)
        stop = np.append(first[1:], len(row))
        nodes = (row[first], width, first, stop, start[:-1])
        for of_node, k, a, b, own in zip(*(array.tolist() for array in nodes), strict=True):
            size = max(1, BLOCK_SCORES // k)
            for here in range(a, b, size):
                end = min(here + size, b)
                yield slice(here, end), slice(of_node, of_node + k), slice(own, own + k)

    def _softmax(self, weight: Array, here: slice, rows: slice) -> tuple[Array, Array]:
        """Return the log-probabilities (n,) of what was taken at a node, and the errors (n, k)."""
        z = self._given[here] @ weight[rows].T
        z += self._bias[rows]
        z -= z.max(axis=1, keepdims=True)
        taken = np.arange(len(z)), self._chosen[here]
        log_prob = z[taken]
        np.exp(z, out=z)
        total = z.sum(axis=1, keepdims=True)
        log_prob -= np.log(total[:, 0])
        z /= total
        z[taken] -= 1
        return log_prob, z

    def _to_items(self, by_given: Array, n_items: int) -> Array:
        """Sum the gradients of the decisions (D, d) of each batch item: (B, d)."""
        n = len(by_given)
        place = np.empty(n, np.int32)
        place[self._order] = np.arange(n, dtype=np.int32)
        start = offsets(np.bincount(self._taken.item, minlength=n_items)).astype(np.int32)
        S = scipy.sparse.csr_array((np.ones(n, by_given.dtype), place, start), shape=(n_items, n))
        total: Array = S @ by_given
        return total

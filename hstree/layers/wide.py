"""Decisions at nodes with many children: one dense softmax a node over the batch items there.

The items are gathered once in the order of their nodes, so that each node's part is a slice of
three matrix products: scores, and the gradients by the hidden vectors and by the rows. What a
decision is, and which nodes are wide, is said in `groups`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from hstree._ragged import offsets, ranges
from hstree._typing import Array, Int64
from hstree.layers.groups import Decisions
from hstree.layers.pairs import RowGradient
from hstree.layers.scratch import Scratch
from hstree.layers.threads import one_blas_thread

#: Scores of a wide node computed at a time ...
BLOCK_SCORES = 1 << 25
#: ... and kept in a batch for the way back; beyond that they are computed twice.
KEPT_SCORES = 1 << 28
#: Blocks of this many scores gain from a second BLAS thread.
LARGE = 1 << 16


@dataclass
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
    is_first : bool
        Whether these are the first of the node's decisions.
    shape : (int, int)
        How many decisions n, and how many children k.
    size : int
        How many scores: n k.
    error : float array (n, k) or None
        The derivative by the scores; None where it was too large to keep and has to be computed
        again.
    """

    here: slice
    rows: slice
    own: slice
    is_first: bool
    shape: tuple[int, int]
    size: int
    error: Array | None = None


class WideNodes:
    """Nodes with more than `groups.NARROW` children, or `groups.CROWDED` scores in a batch.

    Parameters
    ----------
    scratch : Scratch
        Holds what is needed from `forward` to `backward`; another `forward` overwrites it.
    """

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch

    def forward(self, weight: Array, bias: Array, hidden: Array, taken: Decisions) -> Array:
        """Return the log-probabilities (D,) of the decisions."""
        order = np.argsort(taken.row, kind="stable")
        self._taken, self._order, self._bias = taken, order, bias
        self._given = self._scratch.empty("given", (len(order), hidden.shape[1]), hidden.dtype)
        np.take(hidden, taken.item[order], axis=0, out=self._given, mode="clip")
        n_kept = min(int(taken.width.sum()), KEPT_SCORES)
        every = self._scratch.empty("scores", (n_kept,), np.result_type(hidden, weight))
        in_order = np.empty(len(order), weight.dtype)
        self._blocks: list[_Block] = []
        kept = 0
        for block in _small_ones_last(self._cut()):
            room = kept + block.size <= n_kept
            if room:
                block.error = every[kept : kept + block.size].reshape(block.shape)
                kept += block.size
            in_order[block.here] = self._softmax(weight, block, block.error)[0]
            self._blocks.append(block)
        log_prob = np.empty_like(in_order)
        log_prob[order] = in_order
        return log_prob

    def backward(
        self, weight: Array, hidden: Array, share: Array | None
    ) -> tuple[Array, list[RowGradient]]:
        """Return the gradients by the hidden vectors (B, d) and by the rows."""
        touched = self._touched
        by_given = self._scratch.empty("by given", self._given.shape, self._given.dtype)
        by_rows = RowGradient(
            touched,
            np.empty((self._n_touched, weight.shape[1]), weight.dtype),
            np.empty(self._n_touched, weight.dtype),
        )
        in_order = None if share is None else share[self._order, None]
        for block in _small_ones_last(self._blocks):
            error = block.error
            if error is None:
                error = self._softmax(weight, block)[1]
            if in_order is not None:
                error *= in_order[block.here]
            np.matmul(error, weight[block.rows], out=by_given[block.here])
            of_node = by_rows.weight[block.own]
            if block.is_first:
                np.matmul(error.T, self._given[block.here], out=of_node)
                np.add.reduce(error, axis=0, out=by_rows.bias[block.own])
            else:
                of_node += error.T @ self._given[block.here]
                by_rows.bias[block.own] += error.sum(axis=0)
        return self._to_items(by_given, len(hidden)), [by_rows]

    def _cut(self) -> Iterator[_Block]:
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
        at_once = np.maximum(1, BLOCK_SCORES // width)
        nodes = (row[first], width, first, stop, start[:-1], at_once)
        within = np.arange(len(row)) - np.repeat(first, stop - first)
        within %= np.repeat(at_once, stop - first)
        k_of = np.repeat(width, stop - first)
        self._place = within * k_of + self._taken.branch[self._order]  # among a block's scores
        for of_node, k, a, b, own, size in zip(*(array.tolist() for array in nodes), strict=True):
            for here in range(a, b, size):
                end = min(here + size, b)
                rows, mine, n = slice(of_node, of_node + k), slice(own, own + k), end - here
                yield _Block(slice(here, end), rows, mine, here == a, (n, k), n * k)

    def _softmax(
        self, weight: Array, block: _Block, out: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the log-probabilities (n,) of what was taken at a node, and the errors (n, k).

        The errors are written to `out`, where it is given.
        """
        z = np.matmul(self._given[block.here], weight[block.rows].T, out=out)
        z += self._bias[block.rows]
        z -= np.maximum.reduce(z, axis=1, keepdims=True)
        flat, taken = z.reshape(-1), self._place[block.here]
        log_prob = flat.take(taken)
        np.exp(z, out=z)
        total = np.add.reduce(z, axis=1, keepdims=True)
        log_prob -= np.log(total[:, 0])
        z /= total
        flat[taken] -= 1
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


def _small_ones_last(blocks: Iterable[_Block]) -> Iterator[_Block]:
    """Yield large blocks, and then small ones while BLAS is held to one thread.

    A node's later decisions are never before its first, which are as many or more.
    """
    small = []
    for block in blocks:
        if block.size >= LARGE:
            yield block
        else:
            small.append(block)
    if small:
        with one_blas_thread():
            yield from small

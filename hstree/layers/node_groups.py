"""Decisions of a batch, computed in three groups of nodes by their number of children.

- Two children: a logistic decision with one weight row; one (item, row) pair each (`BinaryNodes`).
- 3 to `NARROW` children: one pair for each child, a softmax over segments (`NarrowNodes`).
- More children, or fewer at a node with many scores in a batch: the items of each node together,
  as matrix products (`WideNodes`).

The arithmetic is in `hstree.layers.kernels`; here decisions are sorted, split into blocks, and kept
from the forward to the backward pass.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike
from threadpoolctl import ThreadpoolController

from hstree._ragged import offsets, ranges
from hstree._typing import Array, Int64, UInt8
from hstree.layers import kernels

#: The most children of a node that is computed by pairs; above, it is a matrix product.
NARROW = 32
#: A narrow node with this many scores in a batch is a matrix product too.
CROWDED = 512
#: Scores of a wide node computed at a time.
BLOCK_SCORES = 1 << 25
#: Errors of a batch kept for the backward pass; beyond that they are computed twice.
KEPT_SCORES = 1 << 28
#: Blocks of this many scores gain from a second BLAS thread.
LARGE = 1 << 16
#: The most bytes that `Scratch` keeps under one name; a larger array is an ordinary one.
LARGEST_KEPT = 1 << 26


@dataclass(frozen=True)
class RowGradient:
    """Gradient of the loss with respect to some weight rows and their biases.

    Attributes
    ----------
    rows : int64 array (r,) or slice
        Without repeats.
    weight : float array (r, d)
    bias : float array (r,)
    """

    rows: Int64 | slice
    weight: Array
    bias: Array


@dataclass(frozen=True)
class Decisions:
    """The decisions of a batch in one group of nodes, sorted by batch item.

    Attributes
    ----------
    item : int64 array (D,)
        Batch item of each decision.
    row : int64 array (D,)
        First weight row of the deciding node.
    branch : int64 array (D,)
        The child taken, counted from 0.
    width : int64 array (D,)
        Number of children of the node.
    """

    item: Int64
    row: Int64
    branch: Int64
    width: Int64


class Group(Protocol):
    """Forward and backward pass of the decisions of one group; one object a batch."""

    def forward(self, weight: Array, bias: Array, hidden: Array, taken: Decisions) -> Array:
        """Return the log-probabilities (D,) of the decisions; keep what `backward` needs."""

    def backward(
        self, weight: Array, hidden: Array, share: Array | None
    ) -> tuple[Array, RowGradient]:
        """Return the gradients with respect to the hidden vectors (B, d) and the rows.

        `share` (D,) is the weight of each decision in the loss; None means 1 for all.
        """


class BinaryNodes:
    """Nodes with two children."""

    def forward(self, weight: Array, bias: Array, hidden: Array, taken: Decisions) -> Array:
        """Return the log-probabilities (D,) of the decisions."""
        self._taken = taken
        logits = kernels.gather_dot(weight, bias, hidden, taken.item, taken.row)
        log_prob, self._error = kernels.binary_decision(logits, taken.branch == 0)
        return log_prob

    def backward(
        self, weight: Array, hidden: Array, share: Array | None
    ) -> tuple[Array, RowGradient]:
        """Return the gradients with respect to the hidden vectors (B, d) and the rows."""
        error = self._error if share is None else self._error * share
        return _pairs_backward(weight, hidden, self._taken.item, self._taken.row, error)


class NarrowNodes:
    """Nodes with 3 to `NARROW` children."""

    def forward(self, weight: Array, bias: Array, hidden: Array, taken: Decisions) -> Array:
        """Return the log-probabilities (D,) of the decisions."""
        # (P,) one pair for each child of each decision's node
        self._start = offsets(taken.width)
        self._row = ranges(taken.row, self._start)
        self._item = np.repeat(taken.item, taken.width)
        logits = kernels.gather_dot(weight, bias, hidden, self._item, self._row)
        self._log_prob = kernels.segment_log_softmax(logits, self._start)
        self._chosen = self._start[:-1] + taken.branch
        chosen: Array = self._log_prob[self._chosen]
        return chosen

    def backward(
        self, weight: Array, hidden: Array, share: Array | None
    ) -> tuple[Array, RowGradient]:
        """Return the gradients with respect to the hidden vectors (B, d) and the rows."""
        error = kernels.segment_softmax_error(self._log_prob, self._chosen)
        if share is not None:
            error *= np.repeat(share, np.diff(self._start))
        return _pairs_backward(weight, hidden, self._item, self._row, error)


def _pairs_backward(
    weight: Array, hidden: Array, item: Int64, row: Int64, error: Array
) -> tuple[Array, RowGradient]:
    start = offsets(np.bincount(item, minlength=len(hidden)))
    grad_hidden, *of_rows = kernels.gather_dot_backward(weight, hidden, start, row, error)
    return grad_hidden, RowGradient(*of_rows)


class Scratch(threading.local):
    """Arrays by name that are reused from batch to batch, separately in each thread.

    Touching fresh memory takes longer than what is computed in it.
    """

    def __init__(self) -> None:
        self._kept: dict[str, UInt8] = {}

    def __reduce__(self) -> tuple[type[Scratch], tuple[()]]:
        return Scratch, ()  # copies of a layer start without any

    def empty(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an uninitialised array, valid until `name` is asked for again."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size > LARGEST_KEPT:
            return np.empty(shape, dtype)
        kept = self._kept.get(name)
        if kept is None or len(kept) < size:
            kept = self._kept[name] = np.empty(size, np.uint8)
        return kept[:size].view(dtype).reshape(shape)


@dataclass
class _Block:
    """Some of a batch's n decisions at one wide node of k children.

    Attributes
    ----------
    decisions : slice
        The decisions, in the order of their nodes.
    rows : slice
        Weight rows of the node.
    touched : slice
        The same rows among the touched rows of the batch.
    is_first : bool
        Whether these are the first of the node's decisions.
    shape : (int, int)
        (n, k).
    error : float array (n, k) or None
        None where there is no room to keep it; it is computed again then.
    """

    decisions: slice
    rows: slice
    touched: slice
    is_first: bool
    shape: tuple[int, int]
    error: Array | None = None

    @property
    def size(self) -> int:
        """Number of scores, n k."""
        return self.shape[0] * self.shape[1]


class WideNodes:
    """Nodes with more than `NARROW` children, or `CROWDED` scores in a batch.

    The hidden vectors are gathered once in the order of the nodes, so that the decisions of a node
    are a slice of three matrix products: logits, and the gradients with respect to the hidden
    vectors and the rows.

    Parameters
    ----------
    scratch : Scratch
        Holds arrays from `forward` to `backward`; another `forward` overwrites them.
    """

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch

    def forward(self, weight: Array, bias: Array, hidden: Array, taken: Decisions) -> Array:
        """Return the log-probabilities (D,) of the decisions."""
        order = np.argsort(taken.row, kind="stable")
        self._taken, self._order, self._bias = taken, order, bias
        # (D, d) hidden vector of each decision, in the order of the nodes
        self._hidden = self._scratch.empty("hidden", (len(order), hidden.shape[1]), hidden.dtype)
        np.take(hidden, taken.item[order], axis=0, out=self._hidden, mode="clip")
        n_kept = min(int(taken.width.sum()), KEPT_SCORES)
        errors = self._scratch.empty("errors", (n_kept,), np.result_type(hidden, weight))
        in_order = np.empty(len(order), weight.dtype)
        self._blocks: list[_Block] = []
        used = 0
        for block in _small_blocks_last(self._split()):
            if used + block.size <= n_kept:
                block.error = errors[used : used + block.size].reshape(block.shape)
                used += block.size
            in_order[block.decisions] = self._softmax(weight, block, block.error)[0]
            self._blocks.append(block)
        log_prob = np.empty_like(in_order)
        log_prob[order] = in_order
        return log_prob

    def backward(
        self, weight: Array, hidden: Array, share: Array | None
    ) -> tuple[Array, RowGradient]:
        """Return the gradients with respect to the hidden vectors (B, d) and the rows."""
        n_touched = self._n_touched
        # (D, d) gradient with respect to the hidden vector of each decision
        grad = self._scratch.empty("gradient", self._hidden.shape, self._hidden.dtype)
        rows = RowGradient(
            self._touched,
            np.empty((n_touched, weight.shape[1]), weight.dtype),
            np.empty(n_touched, weight.dtype),
        )
        share_in_order = None if share is None else share[self._order, None]
        for block in _small_blocks_last(self._blocks):
            error = block.error
            if error is None:
                error = self._softmax(weight, block)[1]
            if share_in_order is not None:
                error *= share_in_order[block.decisions]
            kernels.block_softmax_backward(
                error,
                weight[block.rows],
                self._hidden[block.decisions],
                grad[block.decisions],
                rows.weight[block.touched],
                rows.bias[block.touched],
                accumulate=not block.is_first,
            )
        # (D,) position of each decision, by item, in the order of the nodes
        position = np.empty(len(grad), np.int32)
        position[self._order] = np.arange(len(grad), dtype=np.int32)
        item_start = offsets(np.bincount(self._taken.item, minlength=len(hidden)))
        return kernels.segment_sums(grad, position, item_start), rows

    def _softmax(
        self, weight: Array, block: _Block, out: Array | None = None
    ) -> tuple[Array, Array]:
        return kernels.block_softmax(
            weight[block.rows],
            self._bias[block.rows],
            self._hidden[block.decisions],
            self._chosen[block.decisions],
            out,
        )

    def _split(self) -> Iterator[_Block]:
        """Yield the decisions of each node, in several blocks where its scores are too many.

        Sets the touched rows: a slice where they are consecutive, as those of a single node.
        """
        row = self._taken.row[self._order]
        # (nodes,) first decision and width of each node, (nodes + 1,) its touched rows
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
        per_block = np.maximum(1, BLOCK_SCORES // width)
        # (D,) index of the branch taken into the flat scores of the decision's block
        row_in_block = np.arange(len(row)) - np.repeat(first, stop - first)
        row_in_block %= np.repeat(per_block, stop - first)
        k_of = np.repeat(width, stop - first)
        self._chosen = row_in_block * k_of + self._taken.branch[self._order]
        nodes = (row[first], width, first, stop, start[:-1], per_block)
        for node_row, k, a, b, slot, n in zip(*(array.tolist() for array in nodes), strict=True):
            for begin in range(a, b, n):
                end = min(begin + n, b)
                yield _Block(
                    slice(begin, end),
                    slice(node_row, node_row + k),
                    slice(slot, slot + k),
                    begin == a,
                    (end - begin, k),
                )


def _small_blocks_last(blocks: Iterable[_Block]) -> Iterator[_Block]:
    """Yield large blocks, then small ones while BLAS is held to one thread.

    The blocks of a node stay in their order: only the last can be smaller than the others.
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


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses the calling thread alone; entering takes about 10 us.

    For many small products, where waiting for a second thread takes longer than it saves.
    """
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited


@cache
def _controller() -> ThreadpoolController:
    """Return the loaded BLAS libraries, which are looked up once."""
    return ThreadpoolController()

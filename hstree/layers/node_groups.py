"""Decisions of a batch, computed in three groups of nodes by their number of children.

- Two children: a logistic decision with one weight row; one (item, row) pair each.
- 3 to `NARROW` children: one pair for each child, a softmax over segments.
- More children, or fewer at a node with many scores in a batch: the items of each node together,
  as matrix products.

The arithmetic is in `hstree.layers.kernels`; here decisions are sorted, split into blocks, and kept
from the forward to the backward pass.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike
from threadpoolctl import ThreadpoolController

from hstree._ragged import offsets, ranges
from hstree._typing import Array, Bool, Int64, UInt8
from hstree.layers import kernels

#: A narrow node with this many scores in a batch is a matrix product too.
CROWDED = 512
#: Scores of a wide node computed at a time.
BLOCK_SCORES = 1 << 25
#: Errors of a batch kept for the backward pass; beyond that they are computed twice.
KEPT_SCORES = 1 << 28
#: Blocks of this many scores gain from a second BLAS thread.
LARGE = 1 << 16
#: The module whose import loads SciPy's BLAS, which products in compiled kernels call.
SCIPY_BLAS = "scipy.linalg.cython_blas"
#: The most bytes that `Scratch` keeps under one name; a larger array is an ordinary one.
LARGEST_KEPT = 1 << 27

T = TypeVar("T")
#: Returns the logits (P,) of pairs, from their batch items (P,) and weight rows (P,).
PairLogits = Callable[[Int64, Int64], Array]
#: Returns the gradient of pairs, from their batch items, weight rows and errors (P,).
PairGradient = Callable[[Int64, Int64, Array], T]
#: Returns the gradient from the weight (D,) of each decision in the loss; None is 1 for all.
Backward = Callable[[Array | None], T]
#: Log-probabilities (D,) of decisions, and the way back.
Passed = tuple[Array, Backward[T]]
#: Gradients with respect to the hidden vectors (B, d), and to some rows without repeats (r,), their
#: weights (r, d) and biases (r,).
Gradient = tuple[Array, Int64 | slice, Array, Array]


@dataclass(frozen=True)
class Decisions:
    """The decisions of a batch in one group of nodes, sorted by batch item; arrays (D,)."""

    item: Int64  # batch item of each decision
    row: Int64  # first weight row of the deciding node
    branch: Int64  # the child taken, counted from 0
    width: Int64  # number of children of the node


def binary_nodes(logits: PairLogits, gradient: PairGradient[T], taken: Decisions) -> Passed[T]:
    """Decide at nodes with two children: one pair for each decision."""
    item, row = taken.item, taken.row
    log_prob, error = kernels.binary_decision(logits(item, row), taken.branch == 0)
    return log_prob, lambda share: gradient(item, row, error if share is None else error * share)


def narrow_nodes(logits: PairLogits, gradient: PairGradient[T], taken: Decisions) -> Passed[T]:
    """Decide at nodes with 3 to `NARROW` children: one pair for each child of a decision's node."""
    # (P,) pairs of one decision after another
    start = offsets(taken.width)
    item, row = np.repeat(taken.item, taken.width), ranges(taken.row, start)
    log_prob = kernels.segment_log_softmax(logits(item, row), start)
    chosen = start[:-1] + taken.branch

    def backward(share: Array | None) -> T:
        error: Array = np.exp(log_prob)
        error[chosen] -= 1
        if share is not None:
            error *= np.repeat(share, taken.width)
        return gradient(item, row, error)

    return log_prob[chosen], backward


class Scratch(threading.local):
    """Arrays by name that are reused from batch to batch, separately in each thread.

    Touching fresh memory takes longer than what is computed in it.
    """

    def __reduce__(self) -> tuple[type[Scratch], tuple[()]]:
        return Scratch, ()  # copies of a layer start without any

    def empty(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """Return an uninitialised array, valid until `name` is asked for again."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size > LARGEST_KEPT:
            return np.empty(shape, dtype)
        arrays: dict[str, UInt8] = self.__dict__  # of this thread
        kept = arrays.get(name)
        if kept is None or len(kept) < size:
            kept = arrays[name] = np.empty(size, np.uint8)
        return kept[:size].view(dtype).reshape(shape)


@dataclass
class Block:
    """Some of a batch's n visits of one wide node of k children."""

    visits: slice  # in the order of their nodes
    decisions: slice  # of these visits
    rows: slice  # weight rows of the node
    touched: slice  # the same rows among the touched rows of the batch
    is_first: bool  # whether these are the first of the node's visits
    shape: tuple[int, int]  # (n, k)
    size: int  # number of scores, n k
    table: Array | None = None  # (n, k) probabilities; None where there is no room: made again then


class WideFeatures(Protocol):
    """What is added to the scores of wide nodes, and learns from their errors."""

    def add_to(self, logits: Array, item: Int64, block: Block) -> None:
        """Add to the logits (n, k) of a block, whose visits are of these batch items (n,)."""

    def learn_from(self, error: Array, item: Int64, block: Block) -> None:
        """Take the errors (n, k) of a block."""


class WideNodes:
    """Decisions at nodes with more than `NARROW` children, or `CROWDED` scores in a batch.

    An item visits a node once, whatever number of its codes pass through it: they share the scores.
    The hidden vectors are gathered once in the order of the nodes, so that the visits of a node
    are a slice of three matrix products: logits, and the gradients with respect to the hidden
    vectors and the rows. `scratch` holds arrays until `backward`; the next batch overwrites them.
    """

    def __init__(
        self,
        scratch: Scratch,
        weight: Array,
        bias: Array,
        hidden: Array,
        taken: Decisions,
        features: WideFeatures | None = None,
    ) -> None:
        self._scratch, self._weight, self._bias, self._taken = scratch, weight, bias, taken
        self._features = features
        self._batch_size = len(hidden)
        self._order = order = np.argsort(taken.row, kind="stable")
        row, item = taken.row[order], taken.item[order]
        is_new = (np.diff(row, prepend=-1) != 0) | (np.diff(item, prepend=-1) != 0)
        # (visits,) first decision of each, in the order of the nodes
        self._first = np.flatnonzero(is_new)
        self.item = item[self._first]
        # (visits, d) hidden vector of each
        shape = (len(self._first), hidden.shape[1])
        self._hidden = scratch.empty("hidden", shape, hidden.dtype)
        np.take(hidden, self.item, axis=0, out=self._hidden, mode="clip")
        n_kept = min(int(taken.width[order[self._first]].sum()), KEPT_SCORES)
        tables = scratch.empty("tables", (n_kept,), np.result_type(hidden, weight))
        in_order = np.empty(len(order), weight.dtype)
        self._blocks: list[Block] = []
        used = 0
        for block in _small_blocks_last(self._split(is_new)):
            if used + block.size <= n_kept:
                block.table = tables[used : used + block.size].reshape(block.shape)
                used += block.size
            in_order[block.decisions] = self._probabilities(block, block.table)[1]
            self._blocks.append(block)
        # (D,) log-probability of each decision
        self.log_prob = np.empty_like(in_order)
        self.log_prob[order] = in_order

    def backward(self, share: Array | None) -> Gradient:
        """Return the gradient from the weight (D,) of each decision in the loss."""
        weight, n_touched = self._weight, self._n_touched
        # (visits, d) gradient with respect to the hidden vector of each
        grad = self._scratch.empty("gradient", self._hidden.shape, self._hidden.dtype)
        grad_weight = np.empty((n_touched, weight.shape[1]), weight.dtype)
        grad_bias = np.empty(n_touched, weight.dtype)
        if share is not None:
            share = share[self._order]
        for block in _small_blocks_last(self._blocks):
            table = self._probabilities(block)[0] if block.table is None else block.table
            # (n, k) the sums of the weighted errors of each visit's decisions
            chosen = self._chosen[block.decisions]
            if share is None:  # one code a label, which passes a node once
                table.reshape(-1)[chosen] -= 1
            else:
                of_block = share[block.decisions]
                first = self._first[block.visits] - block.decisions.start
                one_each = len(chosen) == len(table)
                of_visit = of_block if one_each else np.add.reduceat(of_block, first)
                table *= of_visit[:, None]
                np.subtract.at(table.reshape(-1), chosen, of_block)
            if self._features:
                self._features.learn_from(table, self.item[block.visits], block)
            rows, hidden = block.touched, self._hidden[block.visits]
            np.matmul(table, weight[block.rows], out=grad[block.visits])
            if block.is_first:
                np.matmul(table.T, hidden, out=grad_weight[rows])
                np.add.reduce(table, axis=0, out=grad_bias[rows])
            else:
                grad_weight[rows] += table.T @ hidden
                grad_bias[rows] += table.sum(axis=0)
        # (visits,) by item, and then as the first decisions of an item are
        place = np.full(len(self._order), -1, np.int32)
        place[self._order[self._first]] = np.arange(len(grad), dtype=np.int32)
        by_item = place[place >= 0]
        item_start = offsets(np.bincount(self.item, minlength=self._batch_size))
        grad_hidden = kernels.segment_sums(grad, by_item, item_start)
        return grad_hidden, self._touched, grad_weight, grad_bias

    def _probabilities(self, block: Block, out: Array | None = None) -> tuple[Array, Array]:
        """Return the probabilities of branches (n, k), and the logarithms of those taken."""
        rows, hidden = block.rows, self._hidden[block.visits]
        table: Array = np.matmul(hidden, self._weight[rows].T, out=out)
        table += self._bias[rows]
        if self._features:
            self._features.add_to(table, self.item[block.visits], block)
        return table, kernels.block_probabilities(table, self._chosen[block.decisions])

    def _split(self, is_new: Bool) -> Iterator[Block]:
        """Yield the visits of each node, in several blocks where its scores are too many.

        Sets the touched rows: a slice where they are consecutive, as those of a single node.
        `is_new` tells which decisions (D,) are the first of a visit, in the order of the nodes.
        """
        of_visit = self._order[self._first]
        row = self._taken.row[of_visit]
        # (nodes,) first visit and width of each node, (nodes + 1,) its touched rows
        first = np.flatnonzero(np.diff(row, prepend=-1))
        width = self._taken.width[of_visit[first]]
        start = offsets(width)
        self._n_touched = int(start[-1])
        self._touched: Int64 | slice
        if row[-1] + width[-1] - row[0] == self._n_touched:
            self._touched = slice(int(row[0]), int(row[0]) + self._n_touched)
        else:
            self._touched = ranges(row[first], start)
        stop = np.append(first[1:], len(row))
        per_block = np.maximum(1, BLOCK_SCORES // width)
        # (visits,) place of each in its block, and number of children
        row_in_block = np.arange(len(row)) - np.repeat(first, stop - first)
        row_in_block %= np.repeat(per_block, stop - first)
        k_of = np.repeat(width, stop - first)
        # (D,) index of the branch taken into the flat scores of the decision's block
        visit = np.cumsum(is_new) - 1
        self._chosen = row_in_block[visit] * k_of[visit] + self._taken.branch[self._order]
        decision = np.append(self._first, len(is_new))
        nodes = (row[first], width, first, stop, start[:-1], per_block)
        for node_row, k, a, b, slot, n in zip(*(array.tolist() for array in nodes), strict=True):
            for begin in range(a, b, n):
                end = min(begin + n, b)
                yield Block(
                    slice(begin, end),
                    slice(int(decision[begin]), int(decision[end])),
                    slice(node_row, node_row + k),
                    slice(slot, slot + k),
                    begin == a,
                    (end - begin, k),
                    (end - begin) * k,
                )


def _small_blocks_last(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield large blocks, then small ones while BLAS is held to one thread.

    The blocks of a node stay in their order: only the last can be smaller than the others.
    """
    small = []
    for block in blocks:
        if block.size >= LARGE:
            yield block
        else:
            small.append(block)
    if small:  # waiting for a second thread would take longer than it saves
        with ONE_BLAS_THREAD:
            yield from small


class _OneBlasThread:
    """Holds BLAS to one thread while any thread is between `__enter__` and `__exit__`."""

    inside, lock = 0, threading.Lock()
    limiter: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.limiter = _blas(SCIPY_BLAS in sys.modules).limit(limits=1, user_api="blas")
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limiter.restore_original_limits()


#: Holds BLAS to one thread in a ``with`` statement, which takes about 10 us to enter.
ONE_BLAS_THREAD = _OneBlasThread()


@cache
def _blas(with_scipy: bool) -> ThreadpoolController:
    """Return the loaded BLAS libraries, which are looked up once with and without SciPy's."""
    return ThreadpoolController()

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
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike
from threadpoolctl import ThreadpoolController

from hstree._ragged import offsets, ranges
from hstree._typing import Array, Int64, UInt8
from hstree.layers import kernels

#: A narrow node with this many scores in a batch is a matrix product too.
CROWDED = 512
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
    """A batch's n visits of one wide node of k children."""

    visits: slice  # in the order of the nodes
    decisions: slice  # of these visits
    rows: slice  # weight rows of the node
    touched: slice  # the same rows among the touched rows of the batch
    table: Array  # (n, k) probabilities, then errors


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
        self._scratch, self._weight, self._features = scratch, weight, features
        self._batch_size = len(hidden)
        self._order = order = np.argsort(taken.row, kind="stable")
        row, item = taken.row[order], taken.item[order]
        is_new = (np.diff(row, prepend=-1) != 0) | (np.diff(item, prepend=-1) != 0)
        # (visits,) first decision, item and node's first row of each, in the order of the nodes
        self._first = np.flatnonzero(is_new)
        self.item, row = item[self._first], row[self._first]
        # (visits, d) hidden vector of each
        shape = (len(self._first), hidden.shape[1])
        self._hidden = scratch.empty("hidden", shape, hidden.dtype)
        np.take(hidden, self.item, axis=0, out=self._hidden, mode="clip")
        # (nodes,) first visit, number of visits and width of each node
        first = np.flatnonzero(np.diff(row, prepend=-1))
        n_visits, width = np.diff(first, append=len(row)), taken.width[order[self._first[first]]]
        # (D,) index of the branch taken into the flat scores of the decision's block
        visit = np.cumsum(is_new) - 1
        in_block = np.arange(len(row)) - np.repeat(first, n_visits)
        self._chosen = in_block[visit] * np.repeat(width, n_visits)[visit] + taken.branch[order]
        # (nodes + 1,) touched rows of each, and its part of the scores; a slice of rows where they
        # are consecutive, as those of a single node
        start, table_start = offsets(width), offsets(n_visits * width)
        self._n_touched = int(start[-1])
        self._touched: Int64 | slice = ranges(row[first], start)
        if row[-1] + width[-1] - row[0] == self._n_touched:
            self._touched = slice(int(row[0]), int(row[0]) + self._n_touched)
        tables = scratch.empty("tables", (int(table_start[-1]),), np.result_type(hidden, weight))
        visits = [*first.tolist(), len(row)]
        decisions = [*self._first[first].tolist(), len(is_new)]
        places = zip(row[first].tolist(), width.tolist(), start.tolist(), strict=False)
        self._blocks = [
            Block(
                slice(*visits[i : i + 2]),
                slice(*decisions[i : i + 2]),
                slice(node_row, node_row + k),
                slice(slot, slot + k),
                tables[table_start[i] : table_start[i + 1]].reshape(-1, k),
            )
            for i, (node_row, k, slot) in enumerate(places)
        ]
        in_order = np.empty(len(order), weight.dtype)
        with ONE_BLAS_THREAD:  # a second one is as fast
            for block in self._blocks:
                table, some = block.table, block.decisions
                np.matmul(self._hidden[block.visits], weight[block.rows].T, out=table)
                table += bias[block.rows]
                if features:
                    features.add_to(table, self.item[block.visits], block)
                in_order[some] = kernels.block_probabilities(table, self._chosen[some])
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
        with ONE_BLAS_THREAD:
            for block in self._blocks:
                # (n, k) the sums of the weighted errors of each visit's decisions
                table, chosen = block.table, self._chosen[block.decisions]
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
                np.matmul(table, weight[block.rows], out=grad[block.visits])
                np.matmul(table.T, self._hidden[block.visits], out=grad_weight[block.touched])
                np.add.reduce(table, axis=0, out=grad_bias[block.touched])
        grad_hidden = kernels.slot_sums(grad, self.item, self._batch_size)
        return grad_hidden, self._touched, grad_weight, grad_bias


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

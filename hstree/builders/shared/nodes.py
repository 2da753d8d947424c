"""Vectors grouped by node: sums over nodes, centring, and even splits.

The rows of a node are consecutive rows of one matrix. Thousands of nodes with three words each then
take as long as one node with the same number of words.
"""

import numpy as np
from scipy.sparse import csr_array

from hstree._arrays import Float64, Floating, Int64, offsets, segment_ids

#: Number of rows that are summed in their own precision; sums of such pieces are added in float64.
PIECE = 4096


class Nodes:
    """Layout of n rows in S nodes, with sums and products over the nodes.

    Node s has the rows ``start[s]:start[s + 1]``; no node is empty.
    """

    def __init__(self, start: Int64) -> None:
        self.start = start
        self.size = np.diff(start)  # (S,)
        self.node = segment_ids(start)  # (n,) node of each row
        self._sum: csr_array | None = None

    def total(self, value: Float64) -> Float64:
        """Return the sum of a value (n,) over the rows of each node, a float64 array (S,)."""
        return np.add.reduceat(value, self.start[:-1])

    def weighted_sum(self, weight: Float64, X: Floating) -> Floating:
        """Return the weighted sum of the rows (n, d) of each node, an array (S, d)."""
        n = len(X)
        weight = weight.astype(X.dtype, copy=False)
        # Keep the matrix (S or pieces, n): replacing its entries is faster than making a new one
        if self._sum is None:
            pieces = self.start if len(self.size) > 1 else offsets(np.diff(np.r_[0:n:PIECE, n]))
            self._sum = csr_array((weight, np.arange(n), pieces), shape=(len(pieces) - 1, n))
        self._sum.data = weight
        sums = np.asarray(self._sum @ X)
        if len(self.size) > 1:
            return sums
        return np.asarray(sums.sum(axis=0, keepdims=True, dtype=np.float64), X.dtype)

    def dot(self, X: Floating, node_vectors: Floating) -> Float64:
        """Return the dot product of each row (n, d) and its node's vector (S, d): float64 (n,)."""
        is_single = len(node_vectors) == 1
        row_vectors = node_vectors if is_single else node_vectors.take(self.node, axis=0)
        return np.asarray(np.vecdot(X, row_vectors), np.float64)


def power_of_two_scale(vectors: Floating) -> float:
    """Return the power of two that scales the largest entry to about one.

    Squares then neither overflow nor underflow, and entries keep all their digits.
    """
    largest = max(float(vectors.max()), -float(vectors.min()))
    exponent = int(np.frexp(largest)[1])
    return float(2.0 ** np.clip(-exponent, -126, 126))


def centred_rows(
    vectors: Floating, words: Int64, nodes: Nodes, scale: float, weight: Float64 | None = None
) -> Floating:
    """Return the rows of some words, scaled, minus the weighted mean of their node."""
    weight = np.ones(len(words)) if weight is None else weight
    fraction = weight / np.add.reduceat(weight, nodes.start[:-1])[nodes.node]
    rows = vectors.take(words, axis=0)
    rows *= rows.dtype.type(scale)
    mean = nodes.weighted_sum(fraction, rows)
    rows -= mean if len(mean) == 1 else mean.take(nodes.node, axis=0)
    return rows


def centre_rows(
    rows: Floating, weight: Float64 | None = None
) -> tuple[Nodes, Floating, float, Floating]:
    """Scale and centre the rows of one node; return its layout, the rows, the scale and centre."""
    weight = np.ones(len(rows)) if weight is None else weight
    nodes = Nodes(np.array([0, len(rows)]))
    scale = power_of_two_scale(rows)
    x = rows * rows.dtype.type(scale)
    centre = nodes.weighted_sum(weight / weight.sum(), x)[0]
    return nodes, x - centre, scale, centre


def split_in_order(nodes: Nodes, value: Float64, arity: int = 2) -> Int64:
    """Sort the rows of each node by a value; return branches (n,) of equal sizes.

    Ties keep the order of the rows. Sizes differ by at most one; of two branches, the first is the
    larger. No branch is empty if a node has at least `arity` rows.
    """
    is_single = len(nodes.size) == 1
    order = np.argsort(value, kind="stable") if is_single else np.lexsort((value, nodes.node))
    rank = np.arange(len(order)) - nodes.start[nodes.node]
    branch = np.empty_like(order)
    branch[order] = rank * arity // nodes.size[nodes.node]
    return branch


def split_stuck(branch: Int64, nodes: Nodes, X: Floating, arity: int = 2) -> None:
    """Split nodes whose rows are all in one branch evenly, along the axis of largest variance.

    The vectors of such a node are identical, or a component is empty. If variances are equal, the
    first axis is used; equal entries keep their order. Changes `branch` in place.
    """
    # (S,) whether all rows of a node are in the branch of its first row
    is_first = branch == branch[nodes.start[nodes.node]]
    is_stuck = np.logical_and.reduceat(is_first, nodes.start[:-1])
    if not is_stuck.any():
        return

    # The rows are centred, so that the axis with the largest sum of squares has the most variance
    index = is_stuck[nodes.node]
    rows = X[index]
    stuck_nodes = Nodes(offsets(nodes.size[is_stuck]))
    variance = stuck_nodes.weighted_sum(np.ones(len(rows)), rows * rows)
    axis = np.argmax(variance, axis=1)
    value = rows[np.arange(len(rows)), axis[stuck_nodes.node]].astype(np.float64)
    branch[index] = split_in_order(stuck_nodes, value, arity)

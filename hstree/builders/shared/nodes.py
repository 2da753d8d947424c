"""Vectors grouped by node: sums over nodes, centring, and even splits.

The rows of a node are consecutive rows of one matrix, so that thousands of nodes of three words
take as long as one node of as many words.
"""

import numpy as np
from scipy.sparse import csr_array

from hstree._arrays import Float64, Floating, Int64, offsets, segment_ids
from hstree._parallel import in_parts

#: Weight of a word with a count of zero, so that no node is without weight.
LEAST_COUNT = 0.5
#: Number of rows that are summed in their own precision; sums of such pieces are float64.
PIECE = 4096


class Nodes:
    """Layout of n rows in S nodes, with sums and products over nodes.

    The rows of node s are ``start[s]:start[s + 1]``; no node is empty.
    """

    def __init__(self, start: Int64) -> None:
        self.start = start
        self.size = np.diff(start)  # (S,)
        self.node = segment_ids(start)  # (n,) node of each row
        self._sum: csr_array | None = None

    def total(self, value: Float64) -> Float64:
        """Sum a value of the rows (n,) over each node: float64 array (S,)."""
        return np.add.reduceat(value, self.start[:-1])

    def weighted_sum(self, weight: Float64, X: Floating) -> Floating:
        """Sum the weighted rows (n, d) of each node: array (S, d)."""
        n, weight = len(X), weight.astype(X.dtype, copy=False)
        if self._sum is None:  # (S or pieces, n); kept, since building costs more than new entries
            piece = self.start if len(self.size) > 1 else offsets(np.diff(np.r_[0:n:PIECE, n]))
            self._sum = csr_array((weight, np.arange(n), piece), shape=(len(piece) - 1, n))
        self._sum.data = weight
        of_piece = np.asarray(self._sum @ X)
        if len(self.size) > 1:
            return of_piece
        return np.asarray(of_piece.sum(axis=0, keepdims=True, dtype=np.float64), X.dtype)

    def dot(self, X: Floating, per_node: Floating) -> Float64:
        """Return the dot product of each row (n, d) with its node's vector (S, d): float64 (n,)."""
        of_rows = per_node if len(per_node) == 1 else per_node.take(self.node, axis=0)
        return np.asarray(np.vecdot(X, of_rows), np.float64)


def scale_of(vectors: Floating) -> float:
    """Return the power of two that scales the largest entry to about one.

    Squares then neither overflow nor vanish, and entries keep all their digits.
    """
    largest = max(float(vectors.max()), -float(vectors.min()))
    exponent = int(np.frexp(largest)[1])
    return float(2.0 ** np.clip(-exponent, -126, 126))


def centred_rows(
    vectors: Floating, words: Int64, nodes: Nodes, scale: float, weight: Float64 | None = None
) -> Floating:
    """Return the rows of some words, scaled, and centred at the weighted means of their nodes."""
    weight = np.ones(len(words)) if weight is None else weight
    share = weight / np.add.reduceat(weight, nodes.start[:-1])[nodes.node]
    rows = np.empty((len(words), vectors.shape[1]), vectors.dtype)

    def take(first: int, stop: int) -> None:
        some = rows[first:stop]
        vectors.take(words[first:stop], axis=0, out=some, mode="clip")  # else in a copy
        some *= vectors.dtype.type(scale)

    in_parts(len(words), take, step=PIECE)
    mean = nodes.weighted_sum(share, rows)
    rows -= mean if len(mean) == 1 else mean.take(nodes.node, axis=0)
    return rows


def split_in_order(nodes: Nodes, value: Float64, arity: int = 2) -> Int64:
    """Sort the rows of each node by a value; return branches (n,) of equal sizes.

    Ties are in the order of the rows. Sizes differ by at most one; of two branches the first is
    the larger. No branch is empty where a node has at least `arity` rows.
    """
    one = len(nodes.size) == 1
    order = np.argsort(value, kind="stable") if one else np.lexsort((value, nodes.node))
    rank = np.arange(len(order)) - nodes.start[nodes.node]
    branch = np.empty_like(order)
    branch[order] = rank * arity // nodes.size[nodes.node]
    return branch


def split_stuck(branch: Int64, nodes: Nodes, X: Floating, arity: int = 2) -> None:
    """Split nodes of one branch evenly along the axis of their largest variance, in place.

    Vectors are identical there, or a component is empty. The first of equal axes is taken; equal
    entries stay in their order.
    """
    is_first = branch == branch[nodes.start[nodes.node]]
    stuck = np.logical_and.reduceat(is_first, nodes.start[:-1])
    if not stuck.any():
        return
    at = stuck[nodes.node]
    stuck_nodes, rows = Nodes(offsets(nodes.size[stuck])), X[at]
    variance = stuck_nodes.weighted_sum(np.ones(len(rows)), rows * rows)
    axis = np.argmax(variance, axis=1)
    value = rows[np.arange(len(rows)), axis[stuck_nodes.node]].astype(np.float64)
    branch[at] = split_in_order(stuck_nodes, value, arity)

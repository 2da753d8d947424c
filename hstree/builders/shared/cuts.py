"""What every cut of nodes by vectors needs: the rows, a cut in order, and a way on when stuck."""

from __future__ import annotations

import numpy as np

from hstree._ragged import offsets
from hstree._typing import Bool, Float64, Floating, Int64
from hstree.builders.shared.mixture import Nodes


def scale_of(vectors: Floating) -> float:
    """Return the power of two that brings the largest entry near one.

    Squares then neither overflow nor vanish, and no digit of an entry is lost.
    """
    largest = max(float(vectors.max()), -float(vectors.min()))
    exponent = int(np.frexp(largest)[1])
    return float(2.0 ** np.clip(-exponent, -126, 126))


def centred_rows(
    vectors: Floating, words: Int64, nodes: Nodes, weight: Float64, scale: float
) -> Floating:
    """Copy the rows of some words, scaled, and centre them within their nodes."""
    rows = vectors.take(words, axis=0)
    rows *= vectors.dtype.type(scale)
    nodes.centre(rows, weight)
    return rows


def cut_in_order(nodes: Nodes, value: Float64, arity: int = 2) -> Int64:
    """Order the rows of each node by a figure and cut into parts of even size.

    Ties are in the order of the rows; where sizes differ by one, the earlier parts are larger
    in the binary case.

    Returns
    -------
    int64 array (n,)
        The part of each row. No part is empty where a node has at least `arity` rows.

    Examples
    --------
    >>> cut_in_order(Nodes(np.array([0, 3, 5])), np.array([3.0, 1.0, 2.0, 0.0, 0.0])).tolist()
    [1, 0, 0, 0, 1]
    """
    order = np.lexsort((value, nodes.node))
    rank = np.arange(len(order)) - nodes.start[nodes.node]
    part = np.empty_like(order)
    part[order] = rank * arity // nodes.size[nodes.node]
    return part


def all_in_one(nodes: Nodes, member: Bool) -> Bool:
    """Tell for each node whether all of its rows are members: bool array (S,)."""
    return np.logical_and.reduceat(member, nodes.start[:-1])


def free_stuck(branch: Int64, stuck: Bool, nodes: Nodes, X: Floating, arity: int = 2) -> None:
    """Cut stuck nodes evenly along their widest axis, the one of largest variance, in place.

    The way on where a cut would leave all words in one child: identical vectors, an empty
    component. Of equal axes the first is taken; words with equal entries are cut in their order.
    """
    if not stuck.any():
        return
    at = stuck[nodes.node]
    few, rows = Nodes(offsets(nodes.size[stuck])), X[at]
    variance = few.weighted_sum(np.ones(len(rows)), rows * rows)
    axis = np.argmax(variance, axis=1)
    value = rows[np.arange(len(rows)), axis[few.node]].astype(np.float64)
    branch[at] = cut_in_order(few, value, arity)

"""Sparse scoring: a list of (batch item, weight row) pairs, and the gradients through it.

Gather and dot product in chunks that stay in cache on the way forward; two sparse products on
the way back, over the touched rows only. Never a padded table, never a scatter-add.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from hstree._typing import Array, Int64

#: Pairs scored at a time: two gathered blocks of this many rows stay in cache.
CHUNK = 2048


@dataclass(frozen=True)
class RowGradient:
    """The gradient of the loss by some weight rows and their biases; no row stands twice.

    Attributes
    ----------
    rows : int64 array (r,) or slice
    weight : float array (r, d)
    bias : float array (r,)
    """

    rows: Int64 | slice
    weight: Array
    bias: Array


def score(weight: Array, bias: Array, hidden: Array, item: Int64, row: Int64) -> Array:
    """Return ``weight[row] . hidden[item] + bias[row]``, a float array (P,)."""
    result = bias[row]
    for a in range(0, len(row), CHUNK):
        b = a + CHUNK
        result[a:b] += np.vecdot(hidden.take(item[a:b], 0), weight.take(row[a:b], 0))
    return result


def backward(
    weight: Array, hidden: Array, item_start: Int64, row: Int64, error: Array
) -> tuple[Array, RowGradient]:
    """Carry the error of every pair back to the hidden vectors and to the rows.

    Parameters
    ----------
    weight : float array (R, d)
    hidden : float array (B, d)
    item_start : int64 array (B + 1,)
        The pairs of batch item i are ``item_start[i]:item_start[i + 1]``.
    row : int64 array (P,)
        Rows may repeat, for one item too.
    error : float array (P,)

    Returns
    -------
    gradient by hidden : float array (B, d)
    gradient by rows : RowGradient
        Over the touched rows, ascending.
    """
    mark = np.zeros(len(weight), bool)
    mark[row] = True
    touched = np.flatnonzero(mark)
    place = np.empty(len(weight), np.int32)
    place[touched] = np.arange(len(touched), dtype=np.int32)
    G = scipy.sparse.csr_array(
        (error, place[row], item_start.astype(np.int32)), shape=(len(hidden), len(touched))
    )
    by_bias = np.bincount(G.indices, weights=error, minlength=len(touched))
    return G @ weight[touched], RowGradient(touched, G.T @ hidden, by_bias.astype(weight.dtype))

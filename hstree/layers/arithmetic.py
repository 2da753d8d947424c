"""Arithmetic of output layers on plain arrays: the functions that take most of the time.

They use NumPy and SciPy, without padded tables, ``np.add.at``, clipping or sigmoid tables. "Error"
is the gradient of ``-log_prob`` with respect to the logits.
"""

import numpy as np
import scipy.sparse

from hstree._arrays import Array, Bool, Float64, Int32, Int64, Integer, offsets, ranges
from hstree.kernels import NARROW

#: Number of pairs that `gather_dot` scores at a time: two blocks of so many rows stay in cache.
PAIRS = 2048
#: Ratio of rows to occurrences above which `touched_rows` sorts the occurrences.
ROWS_PER_OCCURRENCE = 16


# Log-probabilities and errors of decisions.


def log_sigmoid(x: Array) -> Array:
    """Return ``log(1 / (1 + exp(-x)))``, elementwise, in the dtype of `x`.

    Computed as ``min(x, 0) - log1p(exp(-|x|))``, which is accurate at both ends.
    """
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def binary_decision(logits: Array, is_first: Bool) -> tuple[Array, Array]:
    """Return the log-probabilities and the errors (D,) of logistic decisions.

    Logits are ``z = q.h + b`` at the deciding nodes; `is_first` is True if the first child is
    taken, which has the probability ``sigmoid(z)``.
    """
    # log sigmoid(z) = min(z, 0) - log(1 + exp(-|z|)), accurate at both ends
    small = np.exp(-np.abs(logits))
    log_prob = np.minimum(np.where(is_first, logits, -logits), 0) - np.log1p(small)

    # d(-log P) / dz = sigmoid(z) - [first child taken]
    sigmoid = np.where(logits >= 0, 1, small) / (1 + small)
    return log_prob, sigmoid - is_first


def segment_log_softmax(logits: Array, start: Int64) -> Array:
    """Return the log-softmax (P, ...) of each segment of logits (P, ...), along the first axis.

    Segment s is ``logits[start[s]:start[s + 1]]``, for offsets (S + 1,); none is empty.
    """
    length = np.diff(start)
    shifted: Array = logits - np.repeat(np.maximum.reduceat(logits, start[:-1]), length, axis=0)
    total = np.add.reduceat(np.exp(shifted), start[:-1])
    shifted -= np.repeat(np.log(total), length, axis=0)
    return shifted


def softmax(logits: Array) -> Float64:
    """Convert logits (n, k) to probabilities in place; return ln Z of each row, float64 (n,)."""
    largest = logits.max(axis=1, keepdims=True)
    logits -= largest
    np.exp(logits, out=logits)
    total = logits.sum(axis=1)
    logits /= total[:, None]
    log_z: Float64 = np.log(total, dtype=np.float64) + largest[:, 0]
    return log_z


def branch_log_prob(logits: Array, row_start: Int64, branch_start: Int64) -> Float64:
    """Return the log-probabilities of all branches of some nodes, a float64 array (E, ...).

    Logits (R, ...) have one row for a node with two branches, and k rows for a node with k > 2.
    `row_start` and `branch_start` (n + 1,) are offsets of the nodes in the logits and in the
    result.
    """
    fan_out = np.diff(branch_start)
    result = np.empty((branch_start[-1], *logits.shape[1:]))
    binary = np.flatnonzero(fan_out == 2)
    # (binary nodes, ...) one logit each
    z = logits[row_start[binary]].astype(np.float64)
    first = branch_start[binary]
    # log sigmoid of z and of -z, as in `log_sigmoid`
    tail = np.log1p(np.exp(-np.abs(z)))
    result[first] = np.minimum(z, 0) - tail
    result[first + 1] = np.minimum(-z, 0) - tail
    narrow = np.flatnonzero((fan_out > 2) & (fan_out <= NARROW))
    if narrow.size:
        # (branches of narrow nodes, ...) logits, node by node
        start = offsets(fan_out[narrow])
        z = logits[ranges(row_start[narrow], start)].astype(np.float64)
        result[ranges(branch_start[narrow], start)] = segment_log_softmax(z, start)
    for node in np.flatnonzero(fan_out > NARROW).tolist():
        z = logits[row_start[node] : row_start[node + 1]].astype(np.float64)
        z -= z.max(axis=0)
        z -= np.log(np.exp(z).sum(axis=0))
        result[branch_start[node] : branch_start[node + 1]] = z
    return result


# Logits of (batch item, weight row) pairs, and the gradients through them.


def gather_dot(weight: Array, bias: Array, hidden: Array, item: Int64, row: Int64) -> Array:
    """Return ``weight[row] . hidden[item] + bias[row]`` for pairs (P,) of an item and a row."""
    logits: Array = bias[row]
    for a in range(0, len(row), PAIRS):
        b = a + PAIRS
        logits[a:b] += np.vecdot(hidden.take(item[a:b], 0), weight.take(row[a:b], 0))
    return logits


def gather_dot_backward(
    weight: Array, hidden: Array, item: Int64, row: Int64, error: Array
) -> tuple[Array, Int64, Array, Array]:
    """Return the gradients of `gather_dot`, by two sparse products over the touched rows.

    Each pair (P,) has an item, a row and an error. Items ascend; rows may repeat, also for the same
    item. Returns the gradient of hidden vectors (B, d), the rows that occur (r,), ascending, and
    the gradients of their weights (r, d) and biases (r,).
    """
    touched, slot = touched_rows(row, len(weight))
    # (B, r) error of each item at each touched row
    start = offsets(np.bincount(item, minlength=len(hidden))).astype(np.int32)
    shape = (len(hidden), len(touched))
    G = scipy.sparse.csr_array((error, slot, start), shape=shape)
    grad_bias = np.bincount(slot, weights=error, minlength=len(touched)).astype(weight.dtype)
    return G @ weight[touched], touched, G.T @ hidden, grad_bias


def touched_rows(row: Integer, n_rows: int) -> tuple[Int64, Int32]:
    """Return the distinct rows (r,), ascending, and the index of each occurrence among them.

    `row` has numbers below `n_rows`, which may repeat; the indices have the same shape, and
    ``touched[slot] == row``. O(P + R) without a sort; O(P log P) if most rows do not occur.
    """
    if n_rows > ROWS_PER_OCCURRENCE * row.size:
        distinct, index = np.unique(row, return_inverse=True)
        return distinct.astype(np.int64), index.reshape(row.shape).astype(np.int32)
    # Mark the rows in a table, without a sort
    is_touched = np.zeros(n_rows, bool)
    is_touched[row] = True
    touched = np.flatnonzero(is_touched)
    slot_of_row = np.empty(n_rows, np.int32)
    slot_of_row[touched] = np.arange(len(touched), dtype=np.int32)
    return touched, slot_of_row[row]


def slot_sums(vectors: Array, slot: Integer, n_slots: int, scale: Array | None = None) -> Array:
    """Return the sum (n_slots, d) of vectors (P, d), multiplied by scales (P,), in each slot."""
    scale = np.ones(len(slot), vectors.dtype) if scale is None else scale
    start = np.arange(len(slot) + 1, dtype=np.int32)
    total: Array = scipy.sparse.csc_array((scale, slot, start), (n_slots, len(slot))) @ vectors
    return total

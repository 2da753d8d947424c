"""Log-probabilities of binary decisions and of softmaxes over segments, and their gradients.

Nodes with many targets in a batch have their softmax as matrix products in `hstree.layers.wide`.
Nothing is tabulated, clipped or skipped: ``log sigmoid(x) = min(x, 0) - log1p(exp(-|x|))`` is
exact at both ends.
"""

from __future__ import annotations

import numpy as np

from hstree._typing import Array, Bool, Int64


def log_sigmoid(x: Array) -> Array:
    """Return ``log(1 / (1 + exp(-x)))``, elementwise, in the dtype of `x`."""
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def binary(score: Array, left: Bool) -> tuple[Array, Array]:
    """Score binary decisions.

    Parameters
    ----------
    score : float array (D,)
        ``z = q.h + b`` of each decision's node.
    left : bool array (D,)
        True where the first child is taken.

    Returns
    -------
    log_prob : float array (D,)
    error : float array (D,)
        The derivative of ``-log_prob`` by `score`: ``sigmoid(z) - left``.
    """
    small = np.exp(-np.abs(score))
    log_prob = np.minimum(np.where(left, score, -score), 0) - np.log1p(small)
    sigmoid = np.where(score >= 0, 1, small) / (1 + small)
    return log_prob, sigmoid - left


def segment_log_softmax(score: Array, start: Int64) -> Array:
    """Normalise scores within segments, along the first axis.

    Parameters
    ----------
    score : float array (P, ...)
    start : int64 array (S + 1,)
        Segment s is ``score[start[s]:start[s + 1]]``; none is empty.

    Returns
    -------
    float array (P, ...)
        Log-probabilities; ``exp`` of them sums to one in every segment.
    """
    length = np.diff(start)
    shifted: Array = score - np.repeat(np.maximum.reduceat(score, start[:-1]), length, axis=0)
    total = np.add.reduceat(np.exp(shifted), start[:-1])
    shifted -= np.repeat(np.log(total), length, axis=0)
    return shifted

"""Compiled steps of optimisers."""

import math
from typing import Any

import numpy as np

from hstree._compiled import in_parts, inlined, jit, takes
from hstree._typing import Array, Int64
from hstree.layers.compiled.arithmetic import ONE, ZERO, check_shape, exp
from hstree.training.adagrad import MOVED, TINY

TINY32 = np.float32(TINY)


@inlined
def adagrad_row(parameter, squares, row, grad, learning_rate, owed):
    """Step of Adagrad for one row, which first shrinks by the weight decay that it owes."""
    values = parameter[row]
    total = ZERO
    for j in range(len(grad)):
        total += grad[j] * grad[j]
    total = squares[row] + total / np.float32(len(grad))
    squares[row] = total
    rate = learning_rate / np.sqrt(total + TINY32)
    kept = exp(-rate * owed) if owed > 0 else ONE
    for j in range(len(grad)):
        values[j] = kept * values[j] - rate * grad[j]


@jit
def _adagrad_rows(first, stop, parameter, squares, rows, gradient, learning_rate, owed):
    for i in range(first, stop):
        of_row = owed[i] if len(owed) > 0 else ZERO
        adagrad_row(parameter, squares, rows[i], gradient[i], learning_rate, of_row)


def adagrad_rows(
    parameter: Array,
    squares: Array,
    rows: Int64 | slice,
    gradient: Array,
    learning_rate: float,
    owed: Array | None = None,
) -> Any:
    """Twin of `adagrad.adagrad_rows`; arguments that NumPy would refuse are refused."""
    if owed is None:
        owed = squares[:0]
    if not takes(parameter, squares, gradient, owed):
        return NotImplemented
    if isinstance(rows, slice):
        rows = np.arange(*rows.indices(len(parameter)))
    elif len(rows) and not 0 <= rows.min() <= rows.max() < len(parameter):
        raise IndexError(f"rows must be from 0 to {len(parameter) - 1}")
    check_shape("gradients", gradient.shape, (len(rows), *parameter.shape[1:]))
    check_shape("sums of squares", squares.shape, (len(parameter),))
    if len(owed):
        check_shape("owed decay", owed.shape, (len(rows),))
    if not (parameter.flags.writeable and squares.flags.writeable):
        raise ValueError("the parameter or its sums of squares are read-only")
    width = math.prod(parameter.shape[1:])
    table, moves = parameter.reshape(-1, width), gradient.reshape(-1, width)
    step = max(1, MOVED // max(1, width))
    arrays = table, squares, rows, moves, np.float32(learning_rate), owed
    in_parts(len(rows), _adagrad_rows, *arrays, step=step)
    return None

"""Compiled twins of the sparse linear model: logits of pairs, and steps of Adagrad.

They compute in the order of NumPy, float32 or float64, so that results have the same bits.
"""

from typing import Any

import numpy as np

from hstree._compiled import in_parts, jit_exact
from hstree._typing import Array, Int64
from hstree.training.adagrad import TINY


@jit_exact
def _add_products(first, stop, start, column, data, table, item, row, logits):
    """Add the products of the pairs from `first` to `stop`."""
    for p in range(first, stop):
        total = 0.0
        for k in range(start[item[p]], start[item[p] + 1]):
            total += np.float64(data[k] * table[column[k], row[p]])
        logits[p] += total


@jit_exact
def _move(table, squares, paid, a, b, grad, rates):
    """Move one weight against its gradient and the penalty of all steps since its last."""
    learning_rate, penalty, tiny, n_steps = rates
    number = table.dtype.type
    weight = table[a, b]
    owed = number(number(n_steps - paid[a, b]) * penalty[b])
    step = owed * weight + grad
    paid[a, b] = n_steps
    squares[a, b] += step * step
    table[a, b] = weight - step / np.sqrt(squares[a, b] + tiny) * learning_rate


@jit_exact
def _move_elements(first, stop, table, squares, paid, a, b, grad, rates):
    for i in range(first, stop):
        _move(table, squares, paid, a[i], b[i], grad[i], rates)


@jit_exact
def _move_block(first, stop, table, squares, paid, a, b, grad, rates):
    for i in range(first, stop):
        for j in range(grad.shape[1]):
            _move(table, squares, paid, a[i], b + j, grad[i, j], rates)


def add_products(logits: Array, X: Any, table: Array, item: Int64, row: Int64) -> None:
    """Twin of `sklearn.linear.add_products`."""
    in_parts(len(item), _add_products, X.indptr, X.indices, X.data, table, item, row, logits)


def move(table: Array, squares: Array, paid: Array, index: Any, grad: Array, rates: Any) -> Any:
    """Twin of `sklearn.solvers.move` for a sparse X; the table has its features first."""
    if not isinstance(index, tuple):
        return NotImplemented
    learning_rate, penalty, n_steps = rates
    number = table.dtype.type
    numbers = number(learning_rate), penalty, number(TINY), n_steps
    arrays, (a, b) = (table, squares, paid), index
    if isinstance(b, slice):
        in_parts(len(a), _move_block, *arrays, a, b.start, grad, numbers, step=1)
    else:
        in_parts(len(a), _move_elements, *arrays, a, b, grad, numbers)
    return None

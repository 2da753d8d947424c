"""Sparse linear models over trees: logits of pairs, and Adagrad of single weights.

They compute in the order of NumPy, float32 or float64, so that results have the same bits.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hstree._arrays import Array, Int64
from hstree._parallel import in_parts
from hstree.kernels.jit import jit

exact_jit = partial(jit, exact=True)


class ElementState(NamedTuple):
    """State of Adagrad for each element of a table (n_features, R)."""

    squares: Array  # (n_features, R) accumulated squared gradients
    paid: Array  # (n_features, R) step up to which the penalty is paid


class ElementRates(NamedTuple):
    """How far a step moves; numbers are of the dtype of the table."""

    learning_rate: Any
    tiny: Any
    penalty: Array  # (R,)
    n_steps: int  # up to this one


@exact_jit
def _add_products(first, stop, start, column, data, table, item, row, logits):
    """Add the products of the pairs from `first` to `stop`."""
    for p in range(first, stop):
        total = 0.0
        for k in range(start[item[p]], start[item[p] + 1]):
            total += np.float64(data[k] * table[column[k], row[p]])
        logits[p] += total


@exact_jit
def _move(table, state, a, b, grad, rates):
    """Move one weight against its gradient and the penalty of all steps since its last."""
    number = table.dtype.type
    weight = table[a, b]
    penalty = number(number(rates.n_steps - state.paid[a, b]) * rates.penalty[b])
    step = penalty * weight + grad
    state.paid[a, b] = rates.n_steps
    state.squares[a, b] += step * step
    root = np.sqrt(state.squares[a, b] + rates.tiny)
    table[a, b] = weight - step / root * rates.learning_rate


@exact_jit
def _move_elements(first, stop, table, state, a, b, grad, rates):
    for i in range(first, stop):
        _move(table, state, a[i], b[i], grad[i], rates)


@exact_jit
def _move_block(first, stop, table, state, a, b, grad, rates):
    for i in range(first, stop):
        for j in range(grad.shape[1]):
            _move(table, state, a[i], b + j, grad[i, j], rates)


def add_products(logits: Array, X: Any, table: Array, item: Int64, row: Int64) -> None:
    """Add the products (P,) of pairs of a CSR sample and a column of a table (n_features, R)."""
    in_parts(len(item), _add_products, X.indptr, X.indices, X.data, table, item, row, logits)


def move_elements(
    table: Array,
    state: ElementState,
    features: Int64,
    rows: Int64,
    grad: Array,
    rates: ElementRates,
) -> None:
    """Move the weights ``table[features, rows]`` (P,) by Adagrad, in place."""
    in_parts(len(features), _move_elements, table, state, features, rows, grad, rates)


def move_block(
    table: Array,
    state: ElementState,
    features: Int64,
    rows: slice,
    grad: Array,
    rates: ElementRates,
) -> None:
    """Move the weights ``table[features, rows]`` (f, r) by Adagrad, in place."""
    in_parts(len(features), _move_block, table, state, features, rows.start, grad, rates, step=1)

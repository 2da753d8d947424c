"""Compiled steps of optimisers against those in NumPy."""

import numpy as np
import pytest

from hstree._compiled import numpy_alone
from hstree.training.adagrad import adagrad_rows
from tests.needs import NUMBA

pytest.importorskip("numba", reason=NUMBA)


@pytest.mark.parametrize("rows", [slice(2, 9), slice(None), np.array([4, 0, 7])])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
@pytest.mark.parametrize("decays", [False, True])
def test_adagrad_is_that_of_numpy(rows, shape, decays):
    rng = np.random.default_rng(0)
    parameter = rng.standard_normal((9, *shape)).astype(np.float32)
    squares = rng.random(9).astype(np.float32)
    gradient = rng.standard_normal(parameter[rows].shape).astype(np.float32)
    owed = rng.random(len(gradient)).astype(np.float32) if decays else None
    expected, sums = parameter.copy(), squares.copy()
    with numpy_alone():
        adagrad_rows(expected, sums, rows, gradient, 0.1, owed)
    adagrad_rows(parameter, squares, rows, gradient, 0.1, owed)
    np.testing.assert_allclose(parameter, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(squares, sums, rtol=1e-6)


def test_adagrad_refuses_what_numpy_would():
    parameter, squares, grad = np.ones((4, 2), "f"), np.ones(4, "f"), np.ones((1, 2), "f")
    rows = np.array([2])
    with pytest.raises(ValueError, match="sums of squares must have the shape"):
        adagrad_rows(parameter, squares[:2], rows, grad, 0.1)
    with pytest.raises(ValueError, match="owed decay must have the shape"):
        adagrad_rows(parameter, squares, rows, grad, 0.1, np.ones(2, "f"))
    parameter.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        adagrad_rows(parameter, squares, rows, grad, 0.1)


@pytest.mark.parametrize(("rows", "n"), [([0, 9], 2), ([-1, 3], 2), ([0, 1], 3)])
def test_rows_that_do_not_fit_are_refused(rows, n):
    parameter, squares = np.ones((9, 3), np.float32), np.ones(9, np.float32)
    with pytest.raises((IndexError, ValueError), match="must"):
        adagrad_rows(parameter, squares, np.array(rows), parameter[:n], 0.1, None)

"""Row-wise Adagrad against its definition."""

import numpy as np
import pytest

from hstree.training.adagrad import RowAdagrad, adagrad_rows


def test_a_step_divides_by_the_root_of_the_rows_mean_squares():
    parameter = np.ones((3, 2))
    adagrad = RowAdagrad(parameter)
    adagrad.step(np.array([2]), np.array([[3.0, 4.0]]), 0.1)
    np.testing.assert_allclose(parameter[2], 1 - 0.1 * np.array([3, 4]) / np.sqrt(12.5), rtol=1e-6)
    adagrad.step(np.array([2]), np.array([[1.0, 1.0]]), 0.1)
    np.testing.assert_allclose(adagrad.squares, [0, 0, 13.5])
    np.testing.assert_array_equal(parameter[:2], 1)


def test_a_factor_on_the_rate_scales_steps_and_weight_decay():
    one, other = (np.full((2, 2), 2.0) for _ in range(2))
    gradient = np.array([[3.0, 4.0], [1.0, 1.0]])
    RowAdagrad(one, 0.01, rate=0.25).step(slice(None), gradient, 0.4, tokens=50)
    RowAdagrad(other, 0.01).step(slice(None), gradient, 0.1, tokens=50)
    np.testing.assert_array_equal(one, other)


def test_vectors_and_matrices_are_rows_too():
    for shape in ((3,), (3, 2, 2)):
        parameter = np.zeros(shape)
        RowAdagrad(parameter).step(slice(0, 2), np.full((2, *shape[1:]), 5.0), 0.5)
        np.testing.assert_allclose(parameter[:2], -0.5, rtol=1e-6)
        np.testing.assert_array_equal(parameter[2], 0)


@pytest.mark.parametrize("rows", [slice(1, 4), np.array([0, 3])])
def test_a_sum_per_element_gives_each_its_own_rate(rows, monkeypatch):
    monkeypatch.setattr("hstree.training.adagrad.MOVED", 2)
    rng = np.random.default_rng(0)
    parameter, squares = rng.standard_normal((4, 2)), rng.random((4, 2))
    expected, sums = parameter.copy(), squares.copy()
    gradient = rng.standard_normal(parameter[rows].shape)
    adagrad_rows(parameter, squares, rows, gradient, 0.1)
    sums[rows] += gradient**2
    expected[rows] -= 0.1 * gradient / np.sqrt(sums[rows])
    np.testing.assert_allclose(squares, sums)
    np.testing.assert_allclose(parameter, expected)


def test_a_row_shrinks_by_the_weight_decay_since_its_last_touch():
    parameter = np.full((2, 2), 2.0)
    adagrad = RowAdagrad(parameter, weight_decay=0.01)
    adagrad.step(np.array([0]), np.ones((1, 2)), 0.1, tokens=50)
    first = 2 * np.exp(-0.1 * 0.01 * 50) - 0.1
    np.testing.assert_allclose(parameter, [[first, first], [2, 2]], rtol=1e-6)
    adagrad.step(np.array([0, 1]), np.ones((2, 2)), 0.1, tokens=150)
    rate = 0.1 / np.sqrt(2)
    second = first * np.exp(-rate * 0.01 * 100) - rate
    other = 2 * np.exp(-0.1 * 0.01 * 150) - 0.1
    np.testing.assert_allclose(parameter, [[second, second], [other, other]], rtol=1e-6)


@pytest.mark.parametrize("learning_rate", [0.1, 0.3, 1.0])
def test_a_row_first_touched_late_shrinks_and_never_changes_its_sign(learning_rate):
    start = np.array([[0.01, -0.02, 0.005]], np.float32)
    adagrad = RowAdagrad(start.copy(), weight_decay=1.5e-5)
    adagrad.step(np.array([0]), np.zeros((1, 3), np.float32), learning_rate, tokens=500_000)
    assert (np.abs(adagrad.parameter) <= np.abs(start)).all()
    assert (adagrad.parameter * start >= 0).all()


@pytest.mark.parametrize("rows", [slice(3, 40), slice(None), np.arange(1, 40, 3)])
def test_rows_of_each_block_shrink_by_what_they_owe(rows, monkeypatch):
    """By a number of tokens of their own, moved a few at a time."""
    monkeypatch.setattr("hstree.training.adagrad.MOVED", 12)  # four rows
    rng = np.random.default_rng(0)
    start = rng.standard_normal((41, 3)).astype("f")
    adagrad = RowAdagrad(start.copy(), weight_decay=0.01)
    seen = rng.integers(1, 1000, len(start))  # tokens at which each row was last touched
    adagrad.decayed[:] = seen
    gradient = rng.standard_normal(start[rows].shape).astype("f")
    adagrad.step(rows, gradient, 0.1, tokens=1000)
    expected = start.astype(float)
    rate = 0.1 / np.sqrt((gradient.astype(float) ** 2).mean(axis=1, keepdims=True))
    owed = 0.01 * (1000 - seen[rows])[:, None]
    expected[rows] = np.exp(-rate * owed) * expected[rows] - rate * gradient
    np.testing.assert_allclose(adagrad.parameter, expected, rtol=1e-5, atol=1e-6)


def test_sums_of_squares_begin_with_the_initial_accumulator():
    parameter = np.zeros((2, 2))
    optimiser = RowAdagrad(parameter, initial_accumulator=3.0)
    optimiser.step(np.array([1]), np.array([[1.0, -1.0]]), 0.5)
    np.testing.assert_allclose(parameter, [[0, 0], [-0.25, 0.25]], rtol=1e-6)

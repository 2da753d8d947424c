"""Damped gradient descent: as one item after the other, and never beyond a minimum."""

import numpy as np
import pytest

from hstree.training.sgd import DampedSGD, damping


def test_the_damping_is_one_for_little_and_the_inverse_for_much():
    s = np.array([0, 1e-12, 0.5, 50, 1e300])
    expected = [1, 1, (1 - np.exp(-0.5)) / 0.5, 0.02, 0]
    assert damping(s) == pytest.approx(expected, rel=1e-9, abs=1e-290)


@pytest.mark.parametrize("items", [1, 10, 1000])
@pytest.mark.parametrize("rate", [0.001, 0.025])
def test_a_batch_moves_as_far_as_its_items_in_turn(items, rate):
    """On items whose loss is 1/2 k (x - 3)^2."""
    k = 0.25
    x = 0.0
    for _ in range(items):
        x -= rate * k * (x - 3)
    parameter = np.zeros((1, 1), np.float32)
    gradient = np.full((1, 1), items * k * (0 - 3), np.float32)
    DampedSGD(parameter, np.array([k])).step(np.array([0]), gradient, rate, items)
    assert parameter[0, 0] == pytest.approx(x, rel=0.01)


@pytest.mark.parametrize("rows", [slice(1, 3), np.array([1, 2])])
@pytest.mark.parametrize("shape", [(4,), (4, 3)])
def test_only_the_rows_of_a_step_move(rows, shape):
    parameter = np.ones(shape, np.float32)
    gradient = np.full((2, *shape[1:]), 2, np.float32)
    DampedSGD(parameter, np.zeros(4)).step(rows, gradient, 0.25, 7)
    np.testing.assert_array_equal(parameter.reshape(4, -1)[:, 0], [1, 0.5, 0.5, 1])


def test_many_rows_move_a_chunk_at_a_time():
    rng = np.random.default_rng(0)
    parameter = rng.standard_normal((3000, 2)).astype(np.float32)
    rows, curvature = np.arange(0, 3000, 2), rng.random(3000)
    gradient = rng.standard_normal((1500, 2)).astype(np.float32)
    expected = parameter.copy()
    expected[rows] -= 0.1 * damping(0.1 * 5 * curvature[rows])[:, None] * gradient
    DampedSGD(parameter, curvature).step(rows, gradient, 0.1, 5)
    np.testing.assert_allclose(parameter, expected, rtol=1e-5, atol=1e-6)

"""Gradients as whole arrays, and those of the exact softmax, to compare layers with."""

import numpy as np
import pytest


def dense(layer, gradients):
    """Gradients by name, hidden vectors' among them, as arrays of the parameters' shapes."""
    arrays = {"hidden": gradients.hidden.copy()}
    for name, array in layer.parameters().items():
        arrays[name] = np.zeros_like(array)
    for g in gradients.parameters:
        if g.name in arrays:
            arrays[g.name][g.rows] += g.values
    return arrays


def assert_same(layer, gradients, expected, **tolerance):
    """Compare gradients, the hidden vectors' too, with others or with arrays by name."""
    if not isinstance(expected, dict):
        expected = dense(layer, expected)
    for name, values in dense(layer, gradients).items():
        np.testing.assert_allclose(values, expected[name], err_msg=name, **tolerance)


def drawn(layer, batch=7, seed=0):
    """Return a layer with drawn parameters, and drawn hidden vectors (B, d) and targets."""
    rng = np.random.default_rng(seed)
    for parameter in layer.parameters().values():
        parameter[...] = rng.standard_normal(parameter.shape)
    hidden = rng.standard_normal((batch, layer.dim)).astype(parameter.dtype)
    return layer, hidden, rng.integers(0, layer.n_labels, batch)


def softmax_gradients(layer, hidden, targets):
    """Gradients of the summed negative log-likelihood of a softmax with a row per label."""
    error = np.exp(layer.log_prob(hidden))
    error[np.arange(len(targets)), targets] -= 1
    return {"hidden": error @ layer.weight, "weight": error.T @ hidden, "bias": error.sum(axis=0)}


def assert_slopes(arrays, gradients, loss, size=1e-5, **tolerance):
    """Compare gradients with central differences of a loss, along a direction in each array."""
    for number, (name, array) in enumerate(arrays.items()):
        along = size * np.random.default_rng(number).standard_normal(array.shape)
        array += along
        above = loss()
        array -= 2 * along
        below = loss()
        array += along
        assert 2 * (gradients[name] * along).sum() == pytest.approx(above - below, **tolerance), (
            name
        )

"""Kernels against definitions in float64; a compiled twin has to pass the same tests."""

import numpy as np
import pytest
from scipy.special import expit, log_expit, log_softmax

from hstree._ragged import offsets
from hstree.layers import kernels

RNG = np.random.default_rng(0)
FAR = np.array([-1e4, -50.0, -1e-9, 0.0, 1e-9, 50.0, 1e4])
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def close(dtype):
    return {"rtol": 1e-5, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-12}


@dtypes
def test_a_logistic_decision_is_exact_at_both_ends(dtype):
    z = FAR.astype(dtype)
    np.testing.assert_allclose(kernels.log_sigmoid(z), log_expit(z), **close(dtype))
    for first in (True, False):
        log_prob, error = kernels.binary_decision(z, np.full(len(z), first))
        assert log_prob.dtype == error.dtype == dtype
        np.testing.assert_allclose(log_prob, log_expit(z if first else -z), **close(dtype))
        np.testing.assert_allclose(error, expit(z) - first, **close(dtype))


@dtypes
def test_softmaxes_over_segments(dtype):
    start = np.array([0, 3, 4, 9])
    logits = (100 * RNG.standard_normal(9)).astype(dtype)
    log_prob = kernels.segment_log_softmax(logits, start)
    expected = np.concatenate([log_softmax(logits[a:b]) for a, b in ((0, 3), (3, 4), (4, 9))])
    np.testing.assert_allclose(log_prob, expected, **close(dtype))
    table = RNG.standard_normal((9, 2))
    both = kernels.segment_log_softmax(table, start)
    for column in range(2):
        alone = kernels.segment_log_softmax(table[:, column], start)
        np.testing.assert_array_equal(both[:, column], alone)


@dtypes
def test_the_softmax_of_a_block(dtype):
    n, k, d = 5, 4, 3
    weight, bias, hidden = (RNG.standard_normal(s).astype(dtype) for s in ((k, d), k, (n, d)))
    branch = RNG.integers(k, size=n)
    table = hidden @ weight.T + bias
    log_prob = kernels.block_probabilities(table, np.arange(n) * k + branch)
    expected = log_softmax(hidden @ weight.T + bias, axis=1)
    np.testing.assert_allclose(log_prob, expected[np.arange(n), branch], **close(dtype))
    np.testing.assert_allclose(table, np.exp(expected), **close(dtype))


def test_log_probabilities_of_branches():
    fan_out = np.array([2, 3, 2, 5])
    row_start, branch_start = offsets(np.where(fan_out == 2, 1, fan_out)), offsets(fan_out)
    logits = RNG.standard_normal((row_start[-1], 2)).astype(np.float32)
    log_prob = kernels.branch_log_prob(logits, row_start, branch_start)
    assert log_prob.dtype == np.float64
    for node, k in enumerate(fan_out):
        z = logits[row_start[node] : row_start[node + 1]].astype(np.float64)
        expected = np.concatenate([log_expit(z), log_expit(-z)]) if k == 2 else log_softmax(z, 0)
        part = log_prob[branch_start[node] : branch_start[node + 1]]
        np.testing.assert_allclose(part, expected, rtol=1e-12)


@dtypes
def test_logits_of_pairs_and_their_gradients(dtype, monkeypatch):
    weight, bias, hidden = (RNG.standard_normal(s).astype(dtype) for s in ((7, 3), 7, (4, 3)))
    row, item = np.array([2, 2, 5, 0, 5]), np.array([0, 0, 1, 3, 3])
    monkeypatch.setattr(kernels, "PAIRS", 2)
    logits = kernels.gather_dot(weight, bias, hidden, item, row)
    np.testing.assert_allclose(logits, (hidden @ weight.T + bias)[item, row], **close(dtype))
    error = RNG.standard_normal(5).astype(dtype)
    G = np.zeros((4, 7), dtype)
    np.add.at(G, (item, row), error)
    grad_hidden, touched, grad_weight, grad_bias = kernels.gather_dot_backward(
        weight, hidden, item, row, error
    )
    assert touched.tolist() == [0, 2, 5]
    assert grad_hidden.dtype == grad_weight.dtype == grad_bias.dtype == dtype
    np.testing.assert_allclose(grad_hidden, G @ weight, **close(dtype))
    np.testing.assert_allclose(grad_weight, (G.T @ hidden)[touched], **close(dtype))
    np.testing.assert_allclose(grad_bias, G.sum(axis=0)[touched], **close(dtype))

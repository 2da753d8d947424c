import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from hstree._compiled import backend, limited_threads, numpy_alone
from hstree.builders.gmm import VARIANCE_FLOOR, log_odds
from hstree.builders.shared.nodes import Nodes, centred_rows
from tests.builders.oracle import em_responsibilities
from tests.needs import NUMBA


def two_clouds(rng, n, d):
    """Two overlapping clouds of unequal spread, away from zero."""
    second = rng.random((n, 1)) < 0.4
    return 10 + second * 1.5 / np.sqrt(d) + rng.standard_normal((n, d)) * np.where(second, 1, 0.7)


def fit(X, start, second, dtype=np.float64, iterations=10, shared_variance=False):
    nodes = Nodes(np.asarray(start))
    X = centred_rows(X.astype(dtype), np.arange(len(X)), nodes, 1.0)
    return log_odds(nodes, X, second, iterations, shared_variance)


def plain_em(X, second, iterations):
    """The textbook's EM for two spherical Gaussians of one variance, one density at a time."""
    floor = VARIANCE_FLOOR * X.var(axis=0).mean()
    r = np.stack([~second, second], axis=1).astype(float)
    for _ in range(iterations + 1):
        mass = r.sum(axis=0)
        mean = r.T @ X / mass[:, None]
        square = ((X[:, None] - mean) ** 2).sum(axis=2)
        scale = np.sqrt((r * square).sum() / X.size + floor)
        log_p = np.log(mass / mass.sum()) + norm.logpdf(X[:, None], mean, scale).sum(2)
        odds = log_p[:, 1] - log_p[:, 0]
        r = np.stack([expit(-odds), expit(odds)], axis=1)
    return odds


@pytest.mark.parametrize("n", [4, 7, 50, 400])
@pytest.mark.parametrize("d", [1, 2, 10, 100])
@pytest.mark.parametrize("iterations", [1, 10])
def test_agrees_with_scikit_learn_from_the_same_start(n, d, iterations):
    rng = np.random.default_rng(n * d)
    X, second = two_clouds(rng, n, d), rng.permutation(n) < n // 2
    floor = VARIANCE_FLOOR * X.var(axis=0).mean()
    expected = em_responsibilities(X, second, floor, iterations)
    np.testing.assert_allclose(
        expit(fit(X, [0, n], second, iterations=iterations)), expected, rtol=0, atol=1e-9
    )
    single = fit(X, [0, n], second, iterations=iterations, dtype=np.float32)
    np.testing.assert_allclose(expit(single), expected, rtol=0, atol=1e-4)


def test_agrees_with_the_textbook_when_variances_are_shared():
    rng = np.random.default_rng(1)
    X, second = two_clouds(rng, 60, 3), rng.permutation(60) < 30
    ours = fit(X, [0, 60], second, iterations=7, shared_variance=True)
    np.testing.assert_allclose(ours, plain_em(X, second, 7), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nodes_do_not_see_each_other(dtype):
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 30, 50)
    start = np.concatenate([[0], np.cumsum(sizes)])
    X, second = two_clouds(rng, start[-1], 6), rng.random(start[-1]) < 0.5
    together = fit(X, start, second, dtype=dtype)
    for a, b in pairwise(start):
        alone = fit(X[a:b], [0, b - a], second[a:b], dtype=dtype)
        np.testing.assert_allclose(expit(together[a:b]), expit(alone), atol=1e-3)
        if dtype == np.float64:
            np.testing.assert_allclose(together[a:b], alone, rtol=1e-6, atol=1e-8)


def test_a_large_node_is_summed_in_pieces():
    rng = np.random.default_rng(5)
    X, second = two_clouds(rng, 30_000, 4) + 100, rng.permutation(30_000) < 15_000
    np.testing.assert_allclose(
        expit(fit(X, [0, 30_000], second, dtype=np.float32)),
        expit(fit(X, [0, 30_000], second)),
        atol=2e-3,
    )


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((5, 3)),
        np.ones((6, 2)) * 0.3,
        np.array([[0.0], [0.0], [1.0]]),
        np.r_[np.zeros((9, 2)), np.ones((1, 2))],
        np.array([[1.0, 2.0], [3.0, 4.0]]),
        np.array([[1e-30], [2e-30], [5e-30]]),
    ],
)
@pytest.mark.parametrize("second", ["half", "none", "all"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stays_finite_without_a_warning(X, second, dtype):
    start = {"half": np.arange(len(X)) % 2 == 0, "none": np.zeros(len(X), bool)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        odds = fit(X, [0, len(X)], start.get(second, np.ones(len(X), bool)), dtype=dtype)
    assert np.isfinite(odds).all()


@pytest.mark.parametrize("shared", [False, True])
def test_compiled_mixtures_are_those_of_numpy(shared):
    pytest.importorskip("numba", reason=NUMBA)
    rng = np.random.default_rng(3)
    start = np.array([0, 30, 90, 700, 10_000])
    X = np.concatenate([two_clouds(rng, n, 12) for n in np.diff(start)])
    second = rng.random(len(X)) < np.repeat([0.5, 0.2, 0.9, 0.6], np.diff(start))
    given = {"dtype": np.float32, "shared_variance": shared}
    compiled = fit(X, start, second, **given)
    with numpy_alone():
        reference = fit(X, start, second, **given)
    assert not np.array_equal(compiled, reference)  # summed in another order
    np.testing.assert_allclose(compiled, reference, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_threads_share_a_large_node_in_parts_of_a_fixed_size(monkeypatch, share):
    pytest.importorskip("numba", reason=NUMBA)
    monkeypatch.setattr(backend("builders"), "MANY", 1000)
    monkeypatch.setattr(backend("builders"), "PART", 300)
    rng = np.random.default_rng(4)
    X, second = two_clouds(rng, 2000, 12), rng.random(2000) < share  # the lighter one may change
    found = []
    for n in (1, 3):
        with limited_threads(n):
            found.append(fit(X, [0, 2000], second, np.float32))
    with numpy_alone():
        reference = fit(X, [0, 2000], second, np.float32)
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], reference, rtol=1e-3, atol=1e-3)

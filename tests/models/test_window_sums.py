"""Sums over windows: compiled against NumPy's, and contexts that are refused."""

import numpy as np
import pytest

from hstree._compiled import numpy_alone
from hstree.models.lbl import window_sum, window_sum_backward
from tests.needs import NUMBA

pytest.importorskip("numba", reason=NUMBA)


@pytest.mark.parametrize("n", [1, 2, 4, 5, 9])
def test_windows_are_those_of_numpy(n):
    rng = np.random.default_rng(n)
    embedding = rng.standard_normal((30, 6)).astype(np.float32)
    position = rng.standard_normal((n, 6)).astype(np.float32)
    contexts, grad = rng.integers(0, 30, (11, n)), rng.standard_normal((11, 6)).astype(np.float32)
    hidden, vectors = window_sum(embedding, position, contexts)
    words, *found = window_sum_backward(embedding, position, contexts, vectors, grad)
    with numpy_alone():
        expected, vectors = window_sum(embedding, position, contexts)
        ascending, *wanted = window_sum_backward(embedding, position, contexts, vectors, grad)
    np.testing.assert_allclose(hidden, expected, rtol=1e-5, atol=1e-6)
    order = np.argsort(words)
    np.testing.assert_array_equal(words[order], ascending)
    np.testing.assert_allclose(found[0][order], wanted[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("contexts", [[[0, 30]], [[0, -1]], [[0, 2**32]], [[0]], [0]])
def test_contexts_that_do_not_fit_are_refused(contexts):
    embedding, position = np.ones((30, 6), np.float32), np.ones((2, 6), np.float32)
    grad = np.ones((1, 6), np.float32)
    with pytest.raises((IndexError, ValueError), match="must"):
        window_sum(embedding, position, np.array(contexts))
    with pytest.raises((IndexError, ValueError), match="must"):
        window_sum_backward(embedding, position, np.array(contexts), grad, grad)

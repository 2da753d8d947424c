"""The differentiated softmax against a dense softmax, whole and in blocks."""

import numpy as np
import pytest
from scipy.special import log_softmax

from hstree.data.vocabulary import Vocabulary
from hstree.layers.differentiated import DifferentiatedSoftmax
from tests.layers.gradients import drawn as drawn_layer

V, DIM, BATCH = 40, 16, 30
#: Counts that do not fall with the label ids, with ties and zeros.
COUNTS = np.random.default_rng(3).permutation(np.repeat([0, 1, 1, 5, 30], 8) * np.arange(1, V + 1))
WORDS = Vocabulary([f"w{i}" for i in range(V)], COUNTS)


def drawn(dtype=np.float64):
    layer = DifferentiatedSoftmax(WORDS, DIM, bands="6:16,20:8,*:3", dtype=dtype)
    return drawn_layer(layer, BATCH)


def dense_weight(parameters):
    """Return the weights of a dense softmax (V, d) in the order of bands."""
    projections = (parameters.get(f"band{i}_projection", np.eye(DIM)) for i in (1, 2, 3))
    return np.vstack([parameters[f"band{i}_weight"] @ p for i, p in enumerate(projections, 1)])


@pytest.mark.parametrize("blocks", ["whole", "in blocks"])
def test_equals_a_dense_softmax(blocks, monkeypatch):
    if blocks == "in blocks":
        monkeypatch.setattr("hstree.layers.dense.KEPT_SCORES", 7 * V)
    layer, hidden, targets = drawn()
    parameters = layer.parameters()
    weight = dense_weight(parameters)
    by_count = layer.bands.label
    assert set(by_count[:6]) == set(np.argsort(-COUNTS, kind="stable")[:6])
    expected = np.empty((BATCH, V))
    expected[:, by_count] = log_softmax(hidden @ weight.T + parameters["bias"], axis=1)
    losses, gradients = layer.loss(hidden, targets)
    np.testing.assert_allclose(layer.log_prob(hidden), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(losses, -expected[np.arange(BATCH), targets], rtol=1e-12)
    np.testing.assert_allclose(layer.nll(hidden, targets), losses, rtol=1e-12)
    labels, _ = layer.top_k(hidden, 7)
    np.testing.assert_array_equal(labels, np.argsort(-expected, axis=1)[:, :7])
    error = np.exp(expected)
    error[np.arange(BATCH), targets] -= 1
    error = error[:, by_count]
    np.testing.assert_allclose(gradients.hidden, error @ weight, atol=1e-12)
    bias = next(g.values for g in gradients.parameters if g.name == "bias")
    np.testing.assert_allclose(bias, error.sum(axis=0), atol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("first", "last"), [(500, -300), (0, 300)])
def test_logits_far_apart_lose_nothing(first, last):
    """No exponential overflows, and a target far below the best, or a later band, has gradients."""
    layer, hidden, targets = drawn(np.float32)
    exact, hidden_64, _ = drawn()
    if last > 0:
        targets = np.resize(layer.bands.label[:6], BATCH)
    for one in (layer, exact):
        one.bias[:20] += first
        one.bias[-3:] += last
    losses, gradients = layer.loss(hidden, targets)
    expected, exact_gradients = exact.loss(hidden_64, targets)
    np.testing.assert_allclose(losses, expected, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(gradients.hidden, exact_gradients.hidden, rtol=1e-3, atol=1e-3)

"""Softmax with a penalty on ln Z, for all targets and for a fraction of them."""

import numpy as np
import pytest
from scipy.special import logsumexp

from hstree.data.vocabulary import Vocabulary
from hstree.layers import dense
from hstree.layers.registry import LayerSpec
from tests.layers.gradients import assert_same
from tests.layers.gradients import drawn as drawn_layer

WORDS = Vocabulary([f"w{i}" for i in range(9)], [5, 0, 9, 1, 30, 2, 2, 4, 1])
DIM = 4


def drawn(name, batch=12, **options):
    """Return a layer with drawn parameters, hidden vectors and more targets than words."""
    return drawn_layer(LayerSpec(WORDS, name, **options).new(DIM, dtype=np.float64), batch)


@pytest.mark.parametrize("alpha", [0.1, 2.0])
def test_the_loss_is_the_formula_of_devlin(alpha):
    layer, hidden, targets = drawn("self-normalised", alpha=alpha)
    scores = hidden @ layer.weight.T + layer.bias
    log_z = logsumexp(scores, axis=1)
    nll = log_z - scores[np.arange(12), targets]
    losses, _ = layer.loss(hidden, targets, np.random.default_rng(0))
    np.testing.assert_allclose(losses, nll + alpha * log_z**2)
    np.testing.assert_allclose(layer.log_normaliser(hidden), log_z)
    np.testing.assert_allclose(layer.log_prob(hidden) + log_z[:, None], scores)


@pytest.mark.parametrize("name", ["self-normalised", "infrequent"])
def test_blocks_of_a_batch_change_nothing(name, monkeypatch):
    layer, hidden, targets = drawn(name)
    losses, gradients = layer.loss(hidden, targets, np.random.default_rng(0))
    monkeypatch.setattr(dense, "KEPT_SCORES", 5 * len(WORDS))
    in_blocks, some_gradients = layer.loss(hidden, targets, np.random.default_rng(0))
    np.testing.assert_allclose(in_blocks, losses, rtol=1e-12)
    assert_same(layer, some_gradients, gradients, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 2.0])
def test_the_loss_of_a_subset_is_the_formula_of_andreas_and_klein(alpha):
    layer, hidden, targets = drawn("infrequent", alpha=alpha, fraction=0.25)
    losses, _ = layer.loss(hidden, targets, np.random.default_rng(5))
    scores = hidden @ layer.weight.T + layer.bias
    penalty = losses + scores[np.arange(12), targets] - 1 / (4 * alpha)
    is_chosen = np.abs(penalty) > 1e-9
    assert is_chosen.sum() == 3
    expected = alpha / 0.25 * logsumexp(scores, axis=1) ** 2
    np.testing.assert_allclose(penalty[is_chosen], expected[is_chosen])


def test_with_all_targets_it_is_self_normalised_around_its_centre():
    """The same scores, less 1 / (2 alpha): the same losses and the same gradients."""
    layer, hidden, targets = drawn("infrequent", alpha=0.3, fraction=1.0)
    centred, _, _ = drawn("self-normalised", alpha=0.3)
    centred.weight[...] = layer.weight
    centred.bias[...] = layer.bias - 1 / (2 * 0.3)
    (losses, gradients), (expected, others) = (
        some.loss(hidden, targets, np.random.default_rng(0)) for some in (layer, centred)
    )
    np.testing.assert_allclose(losses, expected, rtol=1e-9)
    assert_same(layer, gradients, others, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(layer.log_normaliser(hidden), centred.log_normaliser(hidden))
    np.testing.assert_allclose(layer.log_prob(hidden), centred.log_prob(hidden))


def test_the_smallest_alpha_still_starts_as_the_unigram_distribution_in_float32():
    layer = LayerSpec(WORDS, "infrequent", alpha=1e-3).new(DIM)
    mass = np.maximum(WORDS.counts, 0.5)
    start = np.exp(layer.log_prob(np.zeros((1, DIM), np.float32)))[0]
    np.testing.assert_allclose(start, mass / mass.sum(), rtol=1e-4)

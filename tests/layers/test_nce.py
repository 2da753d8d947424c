"""Noise-contrastive estimation against the formulas of the papers, and its known limit."""

import numpy as np
import pytest
from scipy.special import logsumexp

from tests.layers.test_noise import drawn


@pytest.mark.parametrize("ranking", [True, False])
def test_the_loss_is_that_of_the_papers(ranking):
    """Mnih & Teh (2012), equation 8, with Z = 1; Ma & Collins (2018), section 3."""
    layer, hidden, targets = drawn("nce", {"samples": 5, "ranking": ranking, "unique": False})
    mass = np.array([5, 0.5, 9, 1, 30, 2, 2, 4])
    q = mass / mass.sum()
    some = layer.noise.sample(5, np.random.default_rng(3)).labels
    assert np.isin(some, targets).any()  # hits are kept
    expected = []
    for h, t in zip(hidden, targets, strict=True):
        u = np.exp(layer.weight @ h + layer.bias)  # unnormalised, taken for probabilities
        if ranking:
            scores = np.log(u / q)[[t, *some]]
            expected.append(logsumexp(scores) - scores[0])
        else:
            is_data = u / (u + 5 * q)
            expected.append(-np.log(is_data[t]) - np.log(1 - is_data[some]).sum())
    losses, _ = layer.loss(hidden, targets, np.random.default_rng(3))
    np.testing.assert_allclose(losses, expected, rtol=1e-12)


def test_ln_z_is_that_of_the_logits_and_free_for_ranking():
    layer, hidden, _ = drawn("nce", {})
    unnormalised = layer.log_prob(hidden) + layer.log_normaliser(hidden)[:, None]
    np.testing.assert_allclose(unnormalised, hidden @ layer.weight.T + layer.bias)
    assert drawn("nce", {"ranking": True})[0].log_normaliser(hidden) is None

"""Layers that draw labels: what sampled, nce and negative share."""

import numpy as np
import pytest

from hstree.data.vocabulary import EOS, Vocabulary
from hstree.errors import OptionError
from hstree.layers.registry import layer_spec

COUNTS = np.array([5, 0, 9, 1, 30, 2, 2, 4])
WORDS = Vocabulary([EOS, *"abcdefg"], COUNTS)


def drawn(name, options, batch=7, dim=4, seed=0):
    """Return a float64 layer with drawn vectors and biases, hidden vectors and targets."""
    rng = np.random.default_rng(seed)
    layer = layer_spec(WORDS, name, **options).new(dim, dtype=np.float64)
    layer.weight[...] = rng.standard_normal(layer.weight.shape)
    if options.get("biases", True):
        layer.bias += rng.standard_normal(layer.bias.shape)
    return layer, rng.standard_normal((batch, dim)), rng.integers(0, 8, batch)


def test_more_different_samples_than_labels_are_refused_but_the_default():
    for legal in ({}, {"samples": 8}, {"samples": 9, "unique": False}):
        layer_spec(WORDS, "sampled", **legal).new(4).check()
    with pytest.raises(OptionError, match="samples is 9, but there are 8 labels to draw from"):
        layer_spec(WORDS, "sampled", samples=9).new(4).check()


@pytest.mark.parametrize("shared", [True, False])
def test_different_labels_are_expected_as_often_as_they_are_drawn(shared):
    layer, hidden, targets = drawn("nce", {"samples": 5, "shared": shared})
    expected, times = np.zeros(8), np.zeros(8)
    for seed in range(2_000 if shared else 300):
        noise = layer.draw(hidden, targets, None, np.random.default_rng(seed))
        kept = noise.labels if shared else noise.labels[np.isfinite(noise.log_expected)]
        times += np.bincount(kept, minlength=8)
        everything = layer.proposal.log_prob(np.arange(8), hidden)
        q = np.exp(everything)
        # The tries, from the expectation of one target
        tries = np.log1p(-np.exp(noise.log_expected_target[0])) / np.log1p(-q[targets[0]])
        expected += (1 if shared else 7) * (1 - (1 - q) ** tries)
    np.testing.assert_allclose(times / times.sum(), expected / expected.sum(), atol=0.02)

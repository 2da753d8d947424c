"""Layers that draw labels: what sampled, nce and negative share."""

import numpy as np
import pytest
from scipy.stats import chisquare

from hstree.data.vocabulary import EOS, Vocabulary
from hstree.errors import OptionError
from hstree.layers.noise import Unigram
from hstree.layers.registry import layer_spec
from tests.layers.gradients import assert_same, softmax_gradients
from tests.layers.gradients import drawn as drawn_layer

COUNTS = np.array([5, 0, 9, 1, 30, 2, 2, 4])
WORDS = Vocabulary([EOS, *"abcdefg"], COUNTS)


def drawn(name, options):
    """Return a float64 layer with drawn vectors and biases, hidden vectors and targets."""
    return drawn_layer(layer_spec(WORDS, name, **options).new(4, dtype=np.float64))


def test_more_different_samples_than_labels_are_refused_but_the_default():
    for legal in ({}, {"samples": 8}, {"samples": 9, "unique": False}):
        layer_spec(WORDS, "nce", **legal).new(4)
    with pytest.raises(OptionError, match="samples is 9, but there are 8 labels to draw from"):
        layer_spec(WORDS, "sampled", samples=9).new(4)


@pytest.mark.parametrize(("name", "options"), [("sampled", {}), ("nce", {"ranking": True})])
def test_a_softmax_among_all_labels_is_exact(name, options):
    """Among different labels the target occurs once: it would count twice otherwise."""
    layer, hidden, targets = drawn(name, {"samples": 8, **options})
    losses, gradients = layer.loss(hidden, targets, np.random.default_rng(0))
    np.testing.assert_allclose(losses, layer.nll(hidden, targets), rtol=1e-12)
    assert_same(layer, gradients, softmax_gradients(layer, hidden, targets), atol=1e-12)


def test_different_labels_are_expected_as_often_as_they_are_drawn():
    layer, _, targets = drawn("nce", {"samples": 5})
    expected, times = np.zeros(8), np.zeros(8)
    for seed in range(2_000):
        noise = layer.draw(targets, np.random.default_rng(seed))
        times[noise.labels] += 1
        q = np.exp(layer.noise.log_prob)
        # The tries, from the expectation of one target
        tries = np.log1p(-np.exp(noise.log_expected_target[0])) / np.log1p(-q[targets[0]])
        expected += 1 - (1 - q) ** tries
    np.testing.assert_allclose(times / times.sum(), expected / expected.sum(), atol=0.02)


def test_counts_to_a_power():
    mass = np.array([5, 0.5, 9, 1, 30, 2, 2, 4])
    for alpha in (1.0, 0.75, 0.0):
        expected = np.log(mass**alpha / (mass**alpha).sum())
        np.testing.assert_allclose(Unigram(COUNTS, alpha).log_prob, expected)


@pytest.mark.parametrize("shape", [(20_000,), (3, 20_000)])
def test_samples_follow_the_log_probabilities(shape):
    unigram = Unigram(COUNTS, 0.75)
    labels, log_prob = unigram.sample(shape, np.random.default_rng(0))
    assert labels.shape == log_prob.shape == shape
    np.testing.assert_array_equal(log_prob, unigram.log_prob[labels])
    expected = labels.size * np.exp(unigram.log_prob)
    assert chisquare(np.bincount(labels.ravel(), minlength=8), expected).pvalue > 1e-3


@pytest.mark.parametrize("by_arrival", [True, False])
def test_unique_samples_are_the_first_different_ones(by_arrival):
    unigram = Unigram(COUNTS)
    unigram.different = -1 if by_arrival else np.inf
    times, log_miss = np.zeros(8), []
    for seed in range(2_000):
        (labels, log_prob), tries = unigram.sample_unique(3, np.random.default_rng(seed))
        assert len(set(labels.tolist())) == 3 <= tries == int(tries)
        np.testing.assert_array_equal(log_prob, unigram.log_prob[labels])
        times[labels] += 1
        log_miss.append(tries * np.log1p(-np.exp(unigram.log_prob)))
    # as many are drawn as are expected in the tries
    share, expected = times / times.sum(), -np.expm1(log_miss).sum(axis=0)
    np.testing.assert_allclose(share, expected / expected.sum(), atol=0.03)
    # The first three of a succession of draws: in proportion to the counts, without replacement.
    q = np.exp(unigram.log_prob)
    expected = np.zeros(8)
    for a in range(8):
        for b in set(range(8)) - {a}:
            for c in set(range(8)) - {a, b}:
                p = q[a] * q[b] / (1 - q[a]) * q[c] / (1 - q[a] - q[b])
                expected[[a, b, c]] += p
    np.testing.assert_allclose(times / 2_000, expected, atol=0.05)
    (labels, _), tries = unigram.sample_unique(9, np.random.default_rng(0))
    assert (labels.tolist(), tries) == (list(range(8)), np.inf)

"""Negative sampling against word2vec's step, as gensim states it."""

import numpy as np
import pytest
from scipy.special import expit

from hstree.data.vocabulary import Vocabulary
from hstree.layers.registry import layer_spec
from tests.layers.gradients import dense
from tests.layers.test_noise import drawn


def step_of_word2vec(vectors, h, target, negatives):
    """Changes of one pair at rate 1 of the hidden and the output vectors, as in word2vec.c."""
    to_hidden, to_vectors = np.zeros_like(h), np.zeros_like(vectors)
    for number, word in enumerate([target, *negatives]):
        label = 1 if number == 0 else 0
        if number > 0 and word == target:
            continue
        g = label - expit(vectors[word] @ h)
        to_hidden += g * vectors[word]
        to_vectors[word] += g * h
    return to_hidden, to_vectors


def as_word2vec():
    """Return a layer whose scores are products, as those of word2vec, and drawn arrays."""
    layer, hidden, targets = drawn("negative", {})
    layer.bias[...] = np.log(5) + layer.noise.log_prob
    return layer, hidden, targets


def test_a_step_is_that_of_word2vec():
    layer, hidden, targets = as_word2vec()
    labels = layer.noise.sample((len(hidden), 5), np.random.default_rng(3)).labels
    assert (labels == targets[:, None]).any()
    steps = [
        step_of_word2vec(layer.weight, *item) for item in zip(hidden, targets, labels, strict=True)
    ]
    _, gradients = layer.loss(hidden, targets, np.random.default_rng(3))
    gradients = dense(layer, gradients)
    np.testing.assert_allclose(-gradients["hidden"], [step[0] for step in steps])
    np.testing.assert_allclose(-gradients["weight"], sum(step[1] for step in steps))


def test_the_noise_is_that_of_gensim():
    gensim = pytest.importorskip("gensim.models", reason="needs gensim: pip install gensim")
    counts = [30, 9, 5, 4, 2, 2, 1, 1]
    model = gensim.Word2Vec(negative=5, min_count=1)
    model.build_vocab_from_freq({f"w{i}": count for i, count in enumerate(counts)})
    words = Vocabulary(model.wv.index_to_key, counts)
    layer = layer_spec(words, "negative").new(4)
    share = np.diff(model.cum_table.astype(np.float64), prepend=0) / model.cum_table[-1]
    noise = np.exp(layer.noise.log_prob)
    np.testing.assert_allclose(noise, share, atol=1e-6)
    assert layer.sampling.samples == model.negative


def test_scores_are_those_of_word2vec_and_the_noise():
    layer, hidden, _ = as_word2vec()
    mass = np.array([5, 0.5, 9, 1, 30, 2, 2, 4]) ** 0.75
    scores = np.exp(hidden @ layer.weight.T) * 5 * mass / mass.sum()
    expected = scores / scores.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(layer.log_prob(hidden)), expected)
    np.testing.assert_allclose(np.exp(layer.log_normaliser(hidden)), scores.sum(axis=1))

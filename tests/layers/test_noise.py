"""Layers that draw labels: what they share, and sampled, nce and negative themselves."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import chisquare

from hstree.data.vocabulary import EOS, Vocabulary
from hstree.errors import OptionError
from hstree.layers.noise import Unigram
from hstree.layers.registry import LayerSpec
from tests.layers.gradients import assert_same, dense, softmax_gradients
from tests.layers.gradients import drawn as drawn_layer

COUNTS = np.array([5, 0, 9, 1, 30, 2, 2, 4])
WORDS = Vocabulary([EOS, *"abcdefg"], COUNTS)
MASS = np.maximum(COUNTS, 0.5)


def drawn(name, options):
    """Return a float64 layer with drawn vectors and biases, hidden vectors and targets."""
    return drawn_layer(LayerSpec(WORDS, name, **options).new(4, dtype=np.float64))


def test_more_different_samples_than_labels_are_refused_but_the_default():
    for legal in ({}, {"samples": 8}, {"samples": 9, "unique": False}):
        LayerSpec(WORDS, "nce", **legal).new(4)
    with pytest.raises(OptionError, match="samples is 9, but there are 8 labels to draw from"):
        LayerSpec(WORDS, "sampled", samples=9).new(4)


@pytest.mark.parametrize(("name", "options"), [("sampled", {}), ("nce", {"ranking": True})])
def test_a_softmax_among_all_labels_is_exact(name, options):
    """Among different labels the target occurs once: it would count twice otherwise."""
    layer, hidden, targets = drawn(name, {"samples": 8, **options})
    losses, gradients = layer.loss(hidden, targets, np.random.default_rng(0))
    np.testing.assert_allclose(losses, layer.nll(hidden, targets), rtol=1e-12)
    assert_same(layer, gradients, softmax_gradients(layer, hidden, targets), atol=1e-12)


def test_counts_to_a_power():
    for alpha in (1.0, 0.75, 0.0):
        expected = np.log(MASS**alpha / (MASS**alpha).sum())
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


# Sampled softmax, against TensorFlow's formulas


def tensorflow_loss(weight, bias, hidden, targets, labels, expected, expected_target):
    """`tf.nn.sampled_softmax_loss`, item by item: subtract_log_q, remove_accidental_hits."""
    losses = []
    for h, t, expected_t in zip(hidden, targets, expected_target, strict=True):
        logits = [weight[t] @ h + bias[t] - np.log(expected_t)]
        for label, count in zip(labels, expected, strict=True):
            logit = weight[label] @ h + bias[label] - np.log(count)
            logits.append(-np.inf if label == t else logit)
        losses.append(logsumexp(logits) - logits[0])
    return np.array(losses)


def test_the_loss_is_that_of_tensorflow():
    layer, hidden, targets = drawn("sampled", {"samples": 4})
    losses, _ = layer.loss(hidden, targets, np.random.default_rng(3))
    # The same draw, and the expected counts of TensorFlow's candidate samplers.
    (labels, _), tries = layer.noise.sample_unique(4, np.random.default_rng(3))
    count = 1 - (1 - np.exp(layer.noise.log_prob)) ** tries
    assert np.isin(labels, targets).any()
    expected = tensorflow_loss(
        layer.weight, layer.bias, hidden, targets, labels, count[labels], count[targets]
    )
    np.testing.assert_allclose(losses, expected, rtol=1e-12)


def test_the_expected_count_is_that_of_a_label_in_the_tries():
    layer, *_ = drawn("sampled", {})
    log_q = np.log([0.5, 0.25, 1e-12])
    np.testing.assert_allclose(
        np.exp(layer.log_expected(log_q, 3)), [1 - 0.5**3, 1 - 0.75**3, 3e-12], rtol=1e-9
    )
    assert layer.log_expected(log_q, np.inf).tolist() == [0, 0, 0]
    assert layer.log_expected(np.zeros(1), 3.0).tolist() == [0]


# Noise-contrastive estimation, against the formulas of the papers


@pytest.mark.parametrize("ranking", [True, False])
def test_the_loss_is_that_of_the_papers(ranking):
    """Mnih & Teh (2012), equation 8, with Z = 1; Ma & Collins (2018), section 3."""
    layer, hidden, targets = drawn("nce", {"samples": 5, "ranking": ranking, "unique": False})
    q = MASS / MASS.sum()
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


# Negative sampling, against word2vec's step, as gensim states it


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
    layer = LayerSpec(words, "negative").new(4)
    share = np.diff(model.cum_table.astype(np.float64), prepend=0) / model.cum_table[-1]
    noise = np.exp(layer.noise.log_prob)
    np.testing.assert_allclose(noise, share, atol=1e-6)
    assert layer.n_samples == model.negative


def test_scores_are_those_of_word2vec_and_the_noise():
    layer, hidden, _ = as_word2vec()
    scores = np.exp(hidden @ layer.weight.T) * 5 * MASS**0.75 / (MASS**0.75).sum()
    expected = scores / scores.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(layer.log_prob(hidden)), expected)
    np.testing.assert_allclose(np.exp(layer.log_normaliser(hidden)), scores.sum(axis=1))

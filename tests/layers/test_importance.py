"""Importance sampling: its formulas, effective sample sizes, the softmax as the limit."""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

from hstree.data.vocabulary import EOS, Vocabulary
from hstree.data.windows import ContextBatches, SymmetricWindows
from hstree.errors import InputError
from hstree.layers.registry import LayerSpec
from tests.layers.gradients import assert_same, assert_slopes, dense, drawn, softmax_gradients
from tests.texts import corpus_of, markov_lines

COUNTS = np.array([50, 20, 10, 8, 4, 4, 2, 1, 1, 0])
WORDS = Vocabulary([EOS, *"abcdefghi"], COUNTS)
Q = np.maximum(COUNTS, 0.5) / np.maximum(COUNTS, 0.5).sum()
NAMES = ("importance", "adaptive-importance")


def new(name="importance", words=WORDS, dtype=np.float64, batch=6, **options):
    """Return a layer with drawn parameters, hidden vectors and targets."""
    return drawn(LayerSpec(words, name, **options).new(3, dtype=dtype), batch, 1)


def as_drawn(monkeypatch, layer):
    """Record what a layer draws."""
    every, sample = [], layer.samples

    def recorded(*arguments, **options):
        every.append(sample(*arguments, **options))
        return every[-1]

    monkeypatch.setattr(layer, "samples", recorded)
    return every


def test_the_estimate_is_that_of_the_paper_but_for_the_target(monkeypatch):
    """Weights r = exp(s) / Q, normalised; each draw counts, repeats too."""
    layer, hidden, targets = new(samples=30, effective=1)
    every = as_drawn(monkeypatch, layer)
    losses, gradients = layer.loss(hidden, targets, np.random.default_rng(0))
    (labels,) = (samples.labels for samples in every)
    s = hidden @ layer.weight.T + layer.bias
    error = np.zeros((6, 10))
    for item, t in enumerate(targets):
        kept = labels[labels != t]
        r = np.exp(s[item, kept]) / Q[kept] / 30
        own = np.exp(s[item, t])
        z = own + r.sum()
        assert losses[item] == pytest.approx(np.log(z) - s[item, t], rel=1e-10)
        np.add.at(error[item], kept, r / z)
        error[item, t] += own / z - 1
    exact = {"hidden": error @ layer.weight, "weight": error.T @ hidden, "bias": error.sum(axis=0)}
    assert_same(layer, gradients, exact, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_drawn_until_they_are_worth_enough(name, monkeypatch):
    options = {"samples": 20, "limit": 100, "effective": 12}
    layer, hidden, targets = new(name, batch=200, **options)
    hidden *= 2
    every = as_drawn(monkeypatch, layer)
    losses, gradients = layer.loss(hidden, targets, np.random.default_rng(0))
    s = hidden @ layer.weight.T + layer.bias
    left, sizes = np.arange(200), []
    labels = np.zeros((200, 0), int)
    for samples in every:
        sizes.append(samples.labels.shape[-1])
        labels = np.hstack([labels, np.broadcast_to(samples.labels, (len(left), sizes[-1]))])
        z = np.take_along_axis(s[left], labels, axis=1) - np.log(Q[labels])
        own = s[left, targets[left]]
        z[labels == targets[left][:, None]] = -np.inf
        worth = np.exp(2 * logsumexp(z, axis=1) - logsumexp(2 * z, axis=1))
        log_z = logsumexp(z, axis=1) - np.log(labels.shape[1])
        expected = np.logaddexp(own, log_z) - own
        done = worth >= 12
        np.testing.assert_allclose(losses[left[done]], expected[done], rtol=1e-9)
        left, labels = left[~done], labels[~done]
    assert sizes == [20, 20, 40, 20]
    assert 0 < len(left) < 100
    # The others get the softmax.
    np.testing.assert_allclose(losses[left], layer.nll(hidden[left], targets[left]), rtol=1e-9)
    exact = softmax_gradients(layer, hidden[left], targets[left])
    np.testing.assert_allclose(gradients.hidden[left], exact["hidden"], atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_without_enough_samples_it_is_the_softmax(name, monkeypatch):
    monkeypatch.setattr("hstree.layers.importance.TABLE_LIMIT", 40)  # four items at a time
    layer, hidden, targets = new(name, effective=1e6, samples=3, limit=5)
    losses, gradients = layer.loss(hidden, targets, np.random.default_rng(0))
    expected = -log_softmax(hidden @ layer.weight.T + layer.bias, axis=1)
    np.testing.assert_allclose(losses, expected[np.arange(6), targets], rtol=1e-10)
    assert_same(layer, gradients, softmax_gradients(layer, hidden, targets), atol=1e-12)


@pytest.fixture(scope="module")
def windows(tmp_path_factory):
    return ContextBatches(corpus_of(tmp_path_factory.mktemp("text"), markov_lines(3_000, 0)[0]), 3)


def test_gradients_agree_with_finite_differences_in_context(windows):
    options = {"samples": 5, "limit": 40, "effective": 7.5, "batch": 50}
    layer, hidden, _ = new("adaptive-importance", windows.corpus.vocabulary, **options)
    layer.prepare(windows)
    contexts, targets, _ = next(windows.batches(50, np.random.default_rng(0)))

    def loss():
        layer.mixture.restart(layer.mixture.models)
        return layer.in_context(contexts).loss(hidden, targets, np.random.default_rng(0))

    slopes = dense(layer, loss()[1])
    arrays = {"hidden": hidden, **layer.parameters()}
    assert_slopes(arrays, slopes, lambda: loss()[0].sum(), size=1e-6, rel=1e-4)


def test_the_mixture_draws_what_it_says(windows):
    layer, *_ = new("adaptive-importance", windows.corpus.vocabulary)
    layer.prepare(windows)
    n_words = layer.n_labels
    contexts, *_ = next(windows.batches(3, np.random.default_rng(0)))
    mixture = layer.mixture
    rng = np.random.default_rng(0)
    mixture.sums[...] = rng.random(mixture.sums.shape)
    mixture.update()
    np.testing.assert_allclose(mixture.weights.sum(axis=1), 1)
    everything = np.tile(np.arange(n_words), (3, 1))
    prob = np.exp(logsumexp(mixture.joint(everything, contexts), axis=0))
    np.testing.assert_allclose(prob.sum(axis=1), 1)
    labels, log_prob = mixture.sample(100_000, rng, contexts)
    np.testing.assert_allclose(np.exp(log_prob), np.take_along_axis(prob, labels, axis=1))
    for of_item, expected in zip(labels, prob, strict=True):
        share = np.bincount(of_item, minlength=n_words) / 100_000
        np.testing.assert_allclose(share, expected, atol=0.01)


@pytest.mark.slow
def test_the_mixture_comes_near_the_model(windows):
    """Where the model is one of the components, that gets the weight: the optimum of EM."""
    layer, *_ = new("adaptive-importance", windows.corpus.vocabulary)
    layer.prepare(windows)
    mixture, rng = layer.mixture, np.random.default_rng(0)

    def divergence(contexts, log_p):
        everything = np.tile(np.arange(layer.n_labels), (64, 1))
        log_q = logsumexp(mixture.joint(everything, contexts), axis=0)
        return (np.exp(log_p) * (log_p - log_q)).sum()

    def of_component(number, labels, contexts):
        log_weight = np.log(mixture.weights[mixture.group[contexts[:, -1]]])
        return mixture.joint(labels, contexts)[number] - log_weight[:, [number]]

    for truth in (0, 1):
        mixture.restart(mixture.models)
        before = mixture.weights.copy()
        for _ in range(200):
            contexts, *_ = next(windows.batches(64, rng))
            labels, log_q = mixture.sample(20, rng, contexts)
            log_r = of_component(truth, labels, contexts) - log_q
            mixture.observe(np.exp(log_softmax(log_r, axis=1)))
            mixture.update()
        words = np.tile(np.arange(layer.n_labels), (64, 1))
        log_p = of_component(truth, words, contexts)
        after = divergence(contexts, log_p)
        fitted, mixture.weights = mixture.weights, before
        assert after < 0.4 * divergence(contexts, log_p)
        if truth == 0:
            used = np.unique(mixture.group[contexts[:, -1]])
            assert (fitted[used, 0] > 0.4).all()


def test_it_is_refused_without_the_words_before(windows):
    around = SymmetricWindows(windows.corpus, 2)
    words = windows.corpus.vocabulary
    with pytest.raises(InputError, match="adaptive-importance needs the words before"):
        LayerSpec(words, "adaptive-importance").new(3).prepare(around)

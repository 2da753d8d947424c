"""Proposals draw labels as often as their log-probabilities say."""

import numpy as np
import pytest
from scipy.stats import chisquare

from hstree.data.vocabulary import EOS, Vocabulary
from hstree.data.windows import SymmetricWindows, Windows
from hstree.errors import OptionError
from hstree.layers.proposals import Unigram, proposal_of
from hstree.ngrams.kneser_ney import KneserNey
from tests.texts import corpus_of, markov_lines

COUNTS = np.array([5, 0, 9, 1, 30, 2, 2, 4])
WORDS = Vocabulary([EOS, *"abcdefg"], COUNTS)
HIDDEN = np.zeros((3, 4))


def test_counts_to_a_power():
    mass = np.array([5, 0.5, 9, 1, 30, 2, 2, 4])
    for alpha in (1.0, 0.75):
        proposal = proposal_of("unigram", WORDS, alpha=alpha)
        expected = np.log(mass**alpha / (mass**alpha).sum())
        np.testing.assert_allclose(proposal.log_prob(np.arange(8), HIDDEN), expected)
    uniform = proposal_of("uniform", WORDS, alpha=0.75)
    np.testing.assert_allclose(uniform.log_prob(np.arange(8), HIDDEN), np.log(np.full(8, 1 / 8)))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", ["unigram", "uniform"])
def test_samples_follow_the_log_probabilities(name, shared):
    proposal = proposal_of(name, WORDS, alpha=0.75)
    labels, log_prob = proposal.sample(20_000, np.random.default_rng(0), HIDDEN, shared=shared)
    assert labels.shape == log_prob.shape == ((20_000,) if shared else (3, 20_000))
    np.testing.assert_array_equal(log_prob, proposal.log_prob(labels, HIDDEN))
    expected = labels.size * np.exp(proposal.log_prob(np.arange(8), HIDDEN))
    assert chisquare(np.bincount(labels.ravel(), minlength=8), expected).pvalue > 1e-3


def test_unique_samples_are_the_first_different_ones():
    proposal = Unigram(COUNTS)
    times = np.zeros(8)
    for seed in range(2_000):
        (labels, log_prob), tries = proposal.sample_unique(3, np.random.default_rng(seed))
        assert len(set(labels.tolist())) == 3 <= tries
        np.testing.assert_array_equal(log_prob, proposal.log_prob(labels, HIDDEN))
        times[labels] += 1
    # The first three of a succession of draws: in proportion to the counts, without replacement.
    q = np.exp(proposal.log_prob(np.arange(8), HIDDEN))
    expected = np.zeros(8)
    for a in range(8):
        for b in set(range(8)) - {a}:
            for c in set(range(8)) - {a, b}:
                p = q[a] * q[b] / (1 - q[a]) * q[c] / (1 - q[a] - q[b])
                expected[[a, b, c]] += p
    np.testing.assert_allclose(times / 2_000, expected, atol=0.05)
    (labels, _), tries = proposal.sample_unique(9, np.random.default_rng(0))
    assert (labels.tolist(), tries) == (list(range(8)), np.inf)


def test_another_proposal_is_refused():
    with pytest.raises(OptionError, match="proposal is 'bigrams'; it must be one of 'unigram'"):
        proposal_of("bigrams", WORDS)


@pytest.mark.parametrize("context", [1, 2, 6])
@pytest.mark.parametrize("name", ["bigram", "kn"])
def test_n_grams_of_the_training_text(name, context, tmp_path):
    corpus = corpus_of(tmp_path, markov_lines(3_000, 0)[0])
    windows = Windows(corpus, context)
    order = min({"bigram": 2, "kn": 5}[name], context + 1)
    proposal = proposal_of(name, corpus.vocabulary)
    proposal.prepare(windows)
    contexts, targets, _ = next(windows.batches(3, np.random.default_rng(0)))
    labels, log_prob = proposal.sample(20_000, np.random.default_rng(1), HIDDEN, contexts)
    expected = KneserNey(order).fit(corpus).log_prob(contexts[:, context + 1 - order :])
    np.testing.assert_allclose(log_prob, np.take_along_axis(expected, labels, axis=1))
    of_targets = proposal.log_prob(targets, HIDDEN, contexts)
    np.testing.assert_allclose(of_targets, expected[np.arange(3), targets])
    for drawn, prob in zip(labels, 20_000 * np.exp(expected), strict=True):
        assert chisquare(np.bincount(drawn, minlength=len(prob)), prob).pvalue > 1e-3


def test_n_grams_need_the_words_before(tmp_path):
    corpus = corpus_of(tmp_path, markov_lines(300, 0)[0])
    proposal = proposal_of("bigram", corpus.vocabulary)
    with pytest.raises(OptionError, match="proposal is 'bigram', which needs a"):
        proposal.prepare(SymmetricWindows(corpus, 2))
    proposal.prepare(Windows(corpus, 2))
    with pytest.raises(OptionError, match="proposal is 'bigram', which needs"):
        proposal.sample(5, np.random.default_rng(0), HIDDEN)

"""Ensembles: the mean of the probabilities of several models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hstree
from hstree.errors import InputError, OptionError
from hstree.models.ensemble import mean_probability
from hstree.models.lbl import LanguageModel
from hstree.models.skipgram import SkipGram
from tests.texts import corpus_of, markov_lines

CONTEXTS = [["w0", "w1", "w2"], ["w3"], []]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    lines, _ = markov_lines(3_000, 0)
    return corpus_of(tmp_path_factory.mktemp("text"), [*lines, "once <unk> only"])


@pytest.fixture(scope="module")
def models(text):
    """Models of other trees, whose labels have other orders, of other sizes and contexts."""
    words = text.vocabulary
    backwards = hstree.Vocabulary(words.words[::-1], words.counts[::-1])
    kinds = [
        (hstree.build("huffman", words), {"dim": 8, "context": 2}),
        (hstree.build("random", backwards), {"dim": 5, "context": 3, "random_state": 1}),
        (hstree.build("flat", words), {"dim": 6, "context": 1, "random_state": 2}),
    ]
    return [LanguageModel(tree, epochs=2, **sizes).fit(text) for tree, sizes in kinds]


@pytest.fixture(scope="module")
def ensemble(models):
    return hstree.Ensemble(models)


@given(st.lists(st.lists(st.floats(0.0, 800.0), min_size=3, max_size=3), min_size=1, max_size=5))
def test_the_mean_is_of_probabilities_not_of_their_logarithms(nlls):
    nll = mean_probability([np.array(of_model) for of_model in nlls])
    lowest = np.min(nlls, axis=0)
    shares = np.exp(lowest - np.array(nlls))  # relative to the greatest, which is 1
    np.testing.assert_allclose(nll, lowest - np.log(shares.mean(axis=0)), rtol=1e-12, atol=1e-12)


def test_probabilities_are_the_means_of_those_of_the_models_and_sum_to_one(ensemble, models):
    probability = np.exp(ensemble.log_prob(CONTEXTS))
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-6)
    for word in ("w0", "w4", "<eos>", "<unk>"):
        each = [
            np.exp(model.log_prob(CONTEXTS))[:, model.spec.labels.index(word)] for model in models
        ]
        mine = probability[:, ensemble.spec.labels.index(word)]
        np.testing.assert_allclose(mine, np.mean(each, axis=0), rtol=1e-9)


def test_ids_of_contexts_are_those_of_the_first_model(ensemble):
    with pytest.raises(InputError, match=r"shape \(2,\)"):
        ensemble.log_prob(np.array([0, 1]))
    ids = np.array([[ensemble.spec.labels.index(word) for word in CONTEXTS[0]]])
    np.testing.assert_array_equal(ensemble.log_prob(ids), ensemble.log_prob(CONTEXTS[:1]))


def test_a_text_is_scored_token_by_token(ensemble, models, text):
    each = [np.exp(-model.nll(text)) for model in models]
    np.testing.assert_allclose(ensemble.nll(text), -np.log(np.mean(each, axis=0)), rtol=1e-9)
    score = ensemble.score(text)
    assert (score.tokens, score.oov) == (len(text), text.n_oov)
    assert score.perplexity == ensemble.perplexity(text)
    perplexities = [model.perplexity(text) for model in models]
    assert score.perplexity < np.exp(np.log(perplexities).mean())  # Jensen's inequality


def test_tokens_out_of_vocabulary_count_as_unk(ensemble, tmp_path):
    some = corpus_of(tmp_path, ["w0 zebra w1", "w2"])
    nll, score = ensemble.nll(some), ensemble.score(some)
    assert (score.oov, score.nll_of_oov) == (1, pytest.approx(nll[1]))


def test_the_most_probable_words_are_those_of_the_mean(ensemble):
    labels, log_prob = ensemble.top_k(CONTEXTS, 4)
    everything = ensemble.log_prob(CONTEXTS)
    assert (np.diff(log_prob, axis=1) <= 0).all()
    np.testing.assert_array_equal(log_prob, -np.sort(-everything, axis=1)[:, :4])
    words = [[word for word, _ in answers] for answers in ensemble.predict(CONTEXTS, 4)]
    assert words == [[ensemble.spec.labels[label] for label in row] for row in labels]
    with pytest.raises(OptionError, match="k is 0"):
        ensemble.top_k(CONTEXTS, 0)


def test_words_are_drawn_by_their_mean_probability(ensemble):
    expected = np.exp(ensemble.log_prob([["w0", "w1"]]))[0]
    drawn = [ensemble.sample(1, ["w0", "w1"], random_state=seed)[0] for seed in range(1_000)]
    share = np.array([drawn.count(word) for word in ensemble.spec.labels]) / len(drawn)
    spread = np.sqrt(expected * (1 - expected) / len(drawn))
    assert (np.abs(share - expected) < 4 * spread).all()
    assert ensemble.sample(9, random_state=3) == ensemble.sample(9, random_state=3)
    with pytest.raises(OptionError, match="length"):
        ensemble.sample(-1)


def test_models_that_do_not_go_together_are_refused(models, text):
    tree = hstree.build("huffman", {"a": 1, "b": 2, "<eos>": 1})
    with pytest.raises(OptionError, match=r"model 2 has 3 words, model 1 \d+, not the same"):
        hstree.Ensemble([models[0], LanguageModel(tree)])
    with pytest.raises(OptionError, match="model 2 is skipgram; ensembles are of language models"):
        hstree.Ensemble([models[0], SkipGram(models[0].tree)])
    with pytest.raises(OptionError, match="model 1 is Tree"):
        hstree.Ensemble([models[0].tree])
    with pytest.raises(OptionError, match="at least one model"):
        hstree.Ensemble([])

"""Kneser-Ney models: by hand, against brute force, on the Penn Treebank."""

import tempfile
import tracemalloc
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from hstree.data.corpus import Corpus
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError, OptionError
from hstree.ngrams import kneser_ney
from hstree.ngrams.kneser_ney import FALLBACK, KneserNey, modified_discounts
from tests.needs import shared
from tests.ngrams.brute import BruteKneserNey
from tests.texts import corpus_of

line_lists = st.lists(st.text("abc", max_size=6).map(" ".join), min_size=1, max_size=8)


def zipf_lines(n_lines, seed, n_words=12):
    """Draw lines of 0 to 8 words in which each word depends on the one before it."""
    rng = np.random.default_rng(seed)
    share = np.arange(1, n_words + 1) ** -1.5
    lines, word = [], 0
    for length in rng.integers(0, 9, n_lines):
        words = []
        for _ in range(length):
            word = (2 * word + rng.choice(n_words, p=share / share.sum())) % n_words
            words.append(f"w{word}")
        lines.append(" ".join(words))
    return lines


def split(lines):
    return [line.split() for line in lines]


def brute_nll(brute, lines):
    return [-np.log(brute.prob(word, context)) for context, word in brute.positions(split(lines))]


def read(lines, **options):
    with tempfile.TemporaryDirectory() as folder:
        return corpus_of(Path(folder), lines, **options)


def test_bigrams_by_hand(tmp_path):
    # Unigrams, by the words before them: a 2, b 1, <eos> 2 of 5; 0.4, 0.2 and 0.4 smoothed.
    corpus = corpus_of(tmp_path, ["a b a", "a b"])
    model = KneserNey(2, discount=0.5).fit(corpus)
    in_order = [0.85, 17 / 30, 0.45, 9 / 30, 0.85, 17 / 30, 0.45]
    np.testing.assert_allclose(np.exp(-model.nll(corpus)), in_order, rtol=1e-14)
    assert model.perplexity(corpus) == pytest.approx(np.prod(in_order) ** (-1 / 7), rel=1e-14)
    assert model.n_grams_ == (3, 5)


@pytest.mark.parametrize("sentences", [True, False])
@pytest.mark.parametrize("order", [2, 3, 5])
def test_modified_smoothing_is_that_of_the_formulas(tmp_path, order, sentences):
    train, test = zipf_lines(800, 0, 30), zipf_lines(40, 1, 30)
    corpus = corpus_of(tmp_path, train)
    model = KneserNey(order, sentences=sentences).fit(corpus)
    brute = BruteKneserNey(split(train), corpus.vocabulary.words, order, sentences=sentences)
    np.testing.assert_allclose(model.discounts_, brute.discounts[1:], rtol=1e-12)
    assert FALLBACK not in map(tuple, model.discounts_[1:])
    seen = corpus_of(tmp_path, test, "test.txt", vocabulary=corpus.vocabulary)
    np.testing.assert_allclose(model.nll(seen), brute_nll(brute, test), rtol=1e-10)


@given(
    lines=line_lists,
    test=line_lists,
    order=st.integers(2, 7),
    discount=st.none() | st.floats(0.01, 0.99),
    sentences=st.booleans(),
)
def test_any_small_text_is_that_of_the_formulas(lines, test, order, discount, sentences):
    vocabulary = Vocabulary(["a", "b", "c", "<unk>", "<eos>"], [1, 1, 1, 1, 1])
    model = KneserNey(order, discount=discount or "modified", sentences=sentences)
    model.fit(read(lines, vocabulary=vocabulary))
    words = vocabulary.words
    brute = BruteKneserNey(split(lines), words, order, discount, sentences=sentences)
    result = model.nll(read(test, vocabulary=vocabulary))
    np.testing.assert_allclose(result, brute_nll(brute, test), rtol=1e-10)


@settings(max_examples=25)
@given(lines=line_lists, order=st.integers(2, 4), sentences=st.booleans())
def test_every_context_has_a_distribution(lines, order, sentences):
    vocabulary = Vocabulary(["a", "b", "c", "never", "<unk>", "<eos>"], [1] * 6)
    corpus = read(lines, vocabulary=vocabulary)
    model = KneserNey(order, sentences=sentences).fit(corpus)
    contexts = np.array(list(product(range(6), repeat=order - 1)), np.int32)
    log_prob = model.log_prob(contexts)
    np.testing.assert_allclose(np.exp(log_prob).sum(axis=1), 1, rtol=0, atol=1e-12)
    assert np.isfinite(log_prob).all()
    assert model.log_prob(contexts[:0]).shape == (0, 6)


@pytest.mark.parametrize("order", [2, 5])
@pytest.mark.parametrize("sentences", [True, False])
def test_nll_is_minus_log_prob_of_the_target(tmp_path, monkeypatch, order, sentences):
    monkeypatch.setattr(kneser_ney, "BATCH", 500)
    corpus = corpus_of(tmp_path, zipf_lines(300, 3))
    model = KneserNey(order, sentences=sentences).fit(corpus)
    end = corpus.vocabulary.index("<eos>")
    ids = np.concatenate([np.full(order - 1, end), corpus.ids()])
    window = np.lib.stride_tricks.sliding_window_view(ids, order)
    log_prob = model.log_prob(window[:, :-1])
    expected = -log_prob[np.arange(len(corpus)), window[:, -1]]
    assert len(corpus) > 1000
    np.testing.assert_allclose(model.nll(corpus), expected, rtol=1e-13)


def test_oov_is_scored_as_unk(tmp_path, monkeypatch):
    monkeypatch.setattr(kneser_ney, "BATCH", 8)
    train = corpus_of(tmp_path, ["a b a x", "a b y"], min_count=2)
    test = corpus_of(tmp_path, ["a z", "b z"] * 9, "test.txt")
    model = KneserNey(3).fit(train)
    unk = corpus_of(tmp_path, ["a <unk>", "b <unk>"] * 9, "u.txt", vocabulary=train.vocabulary)
    assert np.array_equal(model.nll(unk), model.nll(test))


@pytest.mark.parametrize("order", [2, 7])
def test_memory_is_bounded_by_tokens_and_ngrams(tmp_path, order):
    words = np.array([f"w{i}" for i in range(100)])
    drawn = words[np.random.default_rng(6).integers(0, len(words), (8_000, 9))]
    corpus = corpus_of(tmp_path, [" ".join(line) for line in drawn])
    KneserNey(order).fit(corpus)  # which imports what compiles
    tracemalloc.start()
    model = KneserNey(order).fit(corpus)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    kept, _ = tracemalloc.get_traced_memory()
    model.nll(corpus)
    _, scoring = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    n_grams = sum(model.n_grams_)
    assert peak <= 72 * len(corpus) + 40 * n_grams + 5_000_000
    assert kept <= 32 * n_grams + 1_000_000
    assert scoring - kept <= 300 * kneser_ney.BATCH


def test_a_text_that_does_not_fit_into_memory_is_refused(tmp_path, monkeypatch):
    corpus = corpus_of(tmp_path, zipf_lines(300, 3) * 60)
    model = KneserNey(4).fit(corpus)
    expected = 72 * len(corpus) + 40 * sum(model.n_grams_)
    assert model.memory(corpus) >= expected
    monkeypatch.setattr(kneser_ney, "free_memory", lambda: 1 << 20)
    assert model.memory(corpus) == pytest.approx(expected, rel=0.1)
    with pytest.raises(InputError, match=r"order 4, and 0\.0 GiB .* lower order") as caught:
        KneserNey(4).fit(corpus)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("order", [1, 8, 0, -3, 2.0, "5", True, None])
def test_orders_that_are_none(order):
    with pytest.raises(OptionError, match=r"order is .* from 2 to 7"):
        KneserNey(order)


@pytest.mark.parametrize(
    "discount", [0, 1, 0.0, 1.0, -0.5, float("nan"), "0.5", "", None, True, [0.5, 0.5]]
)
def test_discounts_that_are_none(discount):
    with pytest.raises(
        OptionError, match=r"discount is .* a number, above 0 and below 1, or 'modified'"
    ):
        KneserNey(discount=discount)


def test_what_cannot_be_scored_is_said(tmp_path):
    closed = corpus_of(tmp_path, ["a b"])
    other = corpus_of(tmp_path, ["a z"], "other.txt")
    with pytest.raises(InputError, match="call fit"):
        KneserNey(3).perplexity(closed)
    with pytest.raises(InputError, match="call fit"):
        KneserNey(3).log_prob(np.zeros((1, 2), int))
    with pytest.raises(InputError, match=r"1 of 3 tokens .* <unk>"):
        KneserNey(3).fit(closed).nll(other)
    with pytest.raises(InputError, match=r"1 of 3 tokens .* <unk>"):
        KneserNey(3).fit(other.with_vocabulary(closed.vocabulary))
    with pytest.raises(InputError, match=r"shape \(2, 3\); this model needs the shape \(B, 2\)"):
        KneserNey(3).fit(closed).log_prob(np.zeros((2, 3), int))
    with pytest.raises(InputError, match="no <eos>"):
        KneserNey(3).fit(closed.with_vocabulary(Vocabulary(["a", "b"], [1, 1])))


@pytest.mark.parametrize(("order", "published"), [(3, 148.3), (5, 141.2)])
def test_the_published_figures_on_the_penn_treebank(order, published):
    train = Corpus.read(shared("ptb/ptb.train.txt"))
    test = Corpus.read(shared("ptb/ptb.test.txt"), vocabulary=train.vocabulary)
    assert round(KneserNey(order).fit(train).perplexity(test), 1) == published


@pytest.mark.parametrize(
    "n",
    [(0, 5, 4, 3), (10, 0, 4, 3), (10, 5, 0, 3), (10, 5, 4, 0), (10, 5, 8, 3), (10, 5, 4, 6)],
)  # in the last two, 2 - 3/2 * 8/5 is below zero and 3 - 4/2 * 6/4 is zero
def test_discounts_that_cannot_be_estimated_fall_back(n):
    assert tuple(modified_discounts(np.repeat([1, 2, 3, 4, 8], [*n, 3]))) == FALLBACK


@pytest.mark.parametrize("sentences", [True, False])
@pytest.mark.parametrize("order", [2, 3, 5])
def test_draws_have_the_probabilities_of_the_model(tmp_path, order, sentences):
    corpus = corpus_of(tmp_path, zipf_lines(300, 0))
    model = KneserNey(order, sentences=sentences).fit(corpus)
    n_words = len(corpus.vocabulary)
    contexts = np.random.default_rng(1).integers(0, n_words, (20, order - 1))
    prob = np.exp(model.log_prob(contexts))
    rng = np.random.default_rng(2)
    drawn = model.sample(np.repeat(contexts, 50, axis=0), rng, 200)
    assert drawn.shape == (1000, 200)
    for words, expected in zip(drawn.reshape(20, -1), 10_000 * prob, strict=True):
        assert chisquare(np.bincount(words, minlength=n_words), expected).pvalue > 1e-5
    again = model.sample(np.repeat(contexts, 50, axis=0), np.random.default_rng(2), 200)
    np.testing.assert_array_equal(drawn, again)
    assert model.sample(contexts[:0], rng, 7).shape == (0, 7)
    assert model.sample(contexts, rng, 0).shape == (20, 0)


@pytest.mark.parametrize(
    ("words", "saying"),
    [
        ([[5]], "ids outside 0 to 4"),
        ([[-1]], "ids outside"),
        ([[0], [1]], r"words of shape \(2, 1\)"),
    ],
)
def test_words_that_are_none_are_refused(words, saying):
    model = KneserNey(2).fit(["a b c a b c", "c b a"])
    with pytest.raises(InputError, match=saying):
        model.log_prob(np.array([[0]]), words)
    assert model.log_prob([[0]], [[1, 2]]).shape == (1, 2)

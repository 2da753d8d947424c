from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hstree.builders.word_classes import bigrams as module
from hstree.builders.word_classes.bigrams import (
    bigram_counts,
    bigram_perplexity,
    class_sums,
    x_log_x,
)
from hstree.data.vocabulary import EOS, Vocabulary
from tests.builders.word_classes.brute import drawn_pairs, matrix, perplexity
from tests.texts import corpus_of

LINES = ["a b a", "", "b b <unk> c", "a"]
TEXT = [EOS, "a", "b", "a", EOS, EOS, "b", "b", "<unk>", "c", EOS, "a", EOS]


def counted(corpus):
    words, found = corpus.vocabulary.words, bigram_counts(corpus).tocoo()
    places = zip(found.row, found.col, found.data, strict=True)
    return {(words[v], words[w]): int(n) for v, w, n in places}


@pytest.mark.parametrize("block", [1, 2, 5, 100])
def test_pairs_run_over_line_ends_and_begin_with_one(tmp_path, monkeypatch, block):
    monkeypatch.setattr(module, "_BLOCK_TOKENS", block)
    corpus = corpus_of(tmp_path, LINES)
    assert counted(corpus) == Counter(pairwise(TEXT))
    found = bigram_counts(corpus)
    assert found.sum(axis=0).tolist() == corpus.counts.tolist()
    assert found.has_sorted_indices
    assert found.dtype == np.int64


def test_words_out_of_the_vocabulary_are_unk_or_in_no_pair(tmp_path):
    seen = corpus_of(tmp_path, LINES, vocabulary=Vocabulary(["a", EOS, "<unk>"], [1, 1, 1]))
    as_unk = [word if word in ("a", EOS) else "<unk>" for word in TEXT]
    assert counted(seen) == Counter(pairwise(as_unk))
    without = corpus_of(tmp_path, LINES, vocabulary=Vocabulary(["a", "b"], [1, 1]))
    assert counted(without) == {("a", "b"): 1, ("b", "a"): 1, ("b", "b"): 1}
    none = corpus_of(tmp_path, LINES, vocabulary=Vocabulary(["z"], [1]))
    assert bigram_perplexity(bigram_counts(none), np.zeros(1, np.int64)) is None


@given(st.integers(0, 50), st.integers(1, 12), st.integers(1, 60), st.integers(1, 5))
def test_perplexity_is_that_of_the_definition(seed, n_words, n_pairs, n_classes):
    pairs = drawn_pairs(seed, n_words, n_pairs)
    class_of = np.random.default_rng(seed).integers(n_classes, size=n_words)
    found = bigram_perplexity(matrix(pairs, n_words), class_of)
    assert found == pytest.approx(perplexity(pairs, class_of.tolist()), rel=1e-12)


def test_class_sums_add_the_columns_of_a_class():
    dense = np.arange(12).reshape(3, 4)
    sums = class_sums(module.csc_array(dense), np.array([1, 0, 1, 2]), 3)
    assert sums.toarray().tolist() == [[1, 2, 3], [5, 10, 7], [9, 18, 11]]


def test_x_log_x_of_zero_is_zero():
    assert x_log_x(np.array([0, 1, 3])).tolist() == [0, 0, pytest.approx(3 * np.log(3))]

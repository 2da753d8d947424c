"""tf-idf by its definition, and its projection by what a projection keeps."""

import math
from collections import Counter

import numpy as np
import pytest

from hstree.builders.wordnet import builder
from hstree.builders.wordnet.builder import tfidf_vectors
from tests.texts import corpus_of

LINES = ["the cat sat", "the dog", "the the cat", "sat on on on the cat", "dog"]


@pytest.mark.parametrize("block", [1, 4, 7, 1000])
def test_columns_are_what_the_definition_says(tmp_path, block, monkeypatch):
    monkeypatch.setattr(builder, "_TOKENS_AT_ONCE", 3)
    corpus = corpus_of(tmp_path, LINES)
    tokens = " <eos> ".join([*LINES, ""]).split()
    documents = [Counter(tokens[at : at + block]) for at in range(0, len(tokens), block)]
    words = np.array([2, 0, 4])
    expected = []
    for word in (corpus.vocabulary.words[i] for i in words):
        df = sum(word in document for document in documents)
        idf = 1 + math.log((1 + len(documents)) / (1 + df))
        tf = [document[word] for document in documents]
        expected.append([idf * (1 + math.log(n)) if n else 0 for n in tf])
    found = tfidf_vectors(corpus, words, block)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_words_out_of_the_vocabulary_fill_their_block(tmp_path):
    corpus = corpus_of(tmp_path, ["x x x a", "a x x x"], max_size=2, unk=False)
    vectors = tfidf_vectors(corpus, np.array([corpus.vocabulary.index("<eos>")]), 5)
    assert vectors.shape == (1, 2)


def test_the_projection_keeps_what_is_near_near(tmp_path, monkeypatch):
    """Two topics in many blocks: within a topic vectors point the same way, across they do not."""
    monkeypatch.setattr(builder, "DIMENSIONS", 4)
    rng = np.random.default_rng(0)
    topics = [[f"{name}{i}" for i in range(6)] for name in "ab"]
    lines = [" ".join(rng.choice(topics[i % 2], 9)) for i in range(60)]
    corpus = corpus_of(tmp_path, lines)
    words = np.array([corpus.vocabulary.index(word) for word in topics[0] + topics[1]])
    vectors = tfidf_vectors(corpus, words, 10, random_state=3)
    assert vectors.shape == (12, 4)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    near = unit @ unit.T
    assert near[:6, :6].min() > near[:6, 6:].max() + 0.3
    assert (vectors == tfidf_vectors(corpus, words, 10, random_state=3)).all()
    zero, one = (tfidf_vectors(corpus, words, 10, random_state=seed) for seed in (0, 1))
    assert (tfidf_vectors(corpus, words, 10) == zero).all()
    assert (zero != one).any()

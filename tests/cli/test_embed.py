"""`hstree embed`: vectors that gensim reads, trained over any tree."""

from unittest.mock import Mock

import numpy as np
import pytest

import hstree as library
from hstree.data.vectors import WordVectors
from hstree.kernels import backend_name
from hstree.models import new_model

QUICK = ["--epochs", "1", "--dim", "6"]


@pytest.mark.parametrize(
    ("kind", "asked", "how"),
    [
        ("cbow", "", {"online": backend_name() != "numpy"}),
        ("skipgram", " online=false", {"online": False}),
        ("cbow", " batch_size=64", {"batch_size": 64}),
    ],
)
def test_the_vectors_are_those_of_the_library(hstree, tree, corpus, tmp_path, kind, asked, how):
    """Word by word over a binary tree where kernels are, unless batches are asked for."""
    given = ["--model", f"{kind} window=2 sample=0.1{asked}", "--seed", 3]
    hstree("embed", corpus, tree, *given, *QUICK, "-o", "v.vec")
    grown = library.load(tree)
    text = library.Corpus.read(corpus, vocabulary=library.Vocabulary(grown.labels, grown.counts))
    options = how | {"model": kind, "dim": 6, "window": 2, "sample": 0.1, "epochs": 1}
    model = new_model(grown, random_state=3, **options).fit(text)
    found = WordVectors.read(tmp_path / "v.vec")
    assert found.labels == model.vectors(text).labels
    np.testing.assert_array_equal(found.vectors, model.vectors(text).vectors)


def test_without_a_tree_it_is_huffmans(hstree, corpus, tmp_path):
    ran = hstree("embed", corpus, "--min-count", 20, *QUICK, "-o", "v.npy")
    found = WordVectors.read(tmp_path / "v.npy")
    words = library.Corpus.read(corpus, min_count=20).vocabulary
    assert found.labels == words.words
    assert found.counts.tolist() == words.counts.tolist()
    assert "cbow over huffman" in ran.out


def test_a_tree_of_words_alone(hstree, corpus, tmp_path):
    """As those of gensim: line ends and words outside it are left out of the text."""
    words = library.Corpus.read(corpus, min_count=20).vocabulary.words
    labels = [word for word in words if word not in ("<eos>", "<unk>")]
    library.build("huffman", dict.fromkeys(labels, 1)).save("words.json")
    ran = hstree("embed", corpus, "words.json", *QUICK, "-o", "v.npy", warns=True)
    assert "left out" in ran.err
    assert set(WordVectors.read("v.npy").labels) == set(labels)
    given = ["--model", "cbow", *QUICK, "--save", "model"]
    hstree("evaluate", "words.json", corpus, *given, warns=True)
    hstree("predict", "model", labels[0])
    ran = hstree("score", "model", corpus, status=1)
    assert "not include <eos>" in ran.err
    ran = hstree("evaluate", "words.json", corpus, *QUICK, status=1)
    assert "not include <eos>" in ran.err


def test_another_output_layer_trains_the_vectors(hstree, corpus):
    ran = hstree("embed", corpus, "negative samples=3", *QUICK, "-o", "v.npy")
    assert "cbow over negative" in ran.out
    assert len(WordVectors.read("v.npy")) == 41


def test_an_interrupted_training_leaves_what_it_has(hstree, corpus, tmp_path, monkeypatch):
    step = "hstree.models.word2vec.Word2VecTrainer.step"
    monkeypatch.setattr(step, Mock(side_effect=KeyboardInterrupt))
    ran = hstree("embed", corpus, *QUICK, "--batch-size", 256, "-o", "v.vec", status=130)
    assert "interrupted" in ran.warnings[0]
    assert len(WordVectors.read(tmp_path / "v.vec").labels) == 41

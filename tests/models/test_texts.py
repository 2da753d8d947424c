"""Models take texts and contexts as programs have them."""

import numpy as np
import pytest

import hstree
from hstree import CBOW, Corpus, Ensemble, LanguageModel
from hstree.errors import InputError
from hstree.ngrams.kneser_ney import KneserNey
from tests.texts import markov_lines

LINES = markov_lines(2_000, 0)[0]
TOKENS = [line.split() for line in LINES]
CORPUS = Corpus.from_lines(LINES)
TREE = hstree.build("huffman", CORPUS)
IDS = [CORPUS.vocabulary.ids(line).tolist() for line in TOKENS]
SMALL = {"dim": 4, "context": 2, "epochs": 1, "batch_size": 64}


@pytest.fixture(scope="module")
def model():
    return LanguageModel(TREE, **SMALL).fit(CORPUS)


@pytest.mark.parametrize("text", [LINES, TOKENS, IDS])
def test_a_text_in_memory_is_fitted_to_the_same_weights(model, text):
    other = LanguageModel(TREE, **SMALL).fit(iter(text))
    for name, array in model.parameters().items():
        np.testing.assert_array_equal(other.parameters()[name], array)
    assert model.perplexity(text) == model.perplexity(CORPUS)


def test_all_models_take_texts(model):
    cbow = CBOW(TREE, dim=4, epochs=1).fit(LINES, iter(LINES[:10]))
    assert cbow.perplexity(IDS) == cbow.perplexity(CORPUS)
    both = Ensemble([model, model])
    assert both.perplexity(iter(LINES)) == both.perplexity(CORPUS)
    ngrams = KneserNey(2).fit(LINES)
    assert ngrams.perplexity(iter(TOKENS)) == ngrams.perplexity(CORPUS)
    assert model.vectors(LINES).counts.tolist() == model.vectors(CORPUS).counts.tolist()


def test_a_file_is_a_text(model, tmp_path, monkeypatch):
    monkeypatch.setenv("HSTREE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in LINES))
    assert model.perplexity(tmp_path / "text.txt") == model.perplexity(CORPUS)
    with pytest.raises(InputError, match="no such file: w1 w2"):
        model.perplexity("w1 w2")


@pytest.mark.parametrize("make", [LanguageModel, CBOW])
def test_contexts_are_lines_words_or_ids(make):
    model = make(TREE, dim=4, epochs=0)
    expected = model.predict([["w1", "w2"], ["w3"]], k=3)
    ids = [[TREE.label_id(word) for word in words] for words in (["w1", "w2"], ["w3"])]
    for contexts in (["w1 w2", " w3\n"], iter(["w1 w2", "w3"]), ids, map(np.array, ids)):
        assert model.predict(contexts, k=3) == expected
    both = Ensemble([LanguageModel(TREE, **SMALL)])
    assert both.predict(["w1"]) == both.predict([["w1"]])


def test_a_tensor_of_ids_is_contexts(model):
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install '.[torch]'")
    ids = np.array([[1, 2], [3, 0]])
    assert model.predict(torch.tensor(ids)) == model.predict(ids)


@pytest.mark.parametrize(
    ("contexts", "message"),
    [
        ("w1 w2", "contexts of type str; give a list of lines"),
        (3, "contexts of type int"),
        (CORPUS, "contexts of type Corpus"),
        ([3], "a context is 3; give each as a line"),
        ([["w1", 2]], "give each as a line, a list of words or a list of label ids"),
        ([[np.int64(2), "w1"]], "give each as a line, a list of words or a list of label ids"),
        ([["w1"], [None]], "give each as a line, a list of words or a list of label ids"),
        ([None], "as an integer array of label ids"),
        ([[99]], "contexts have ids outside 0 to"),
        (np.array([[2.0, 3.7]]), "label ids are whole numbers"),
        (np.array([["w1", "w2"]]), "label ids are whole numbers"),
        (np.ones((1, 2), bool), "label ids are whole numbers"),
    ],
)
def test_what_is_no_context_is_refused(model, contexts, message):
    with pytest.raises(InputError, match=message):
        model.predict(contexts)


def test_ids_outside_the_labels_are_refused(model):
    with pytest.raises(InputError, match="ids from 1 to 99"):
        model.perplexity([[1, 99]])


def test_any_text_is_compared(tmp_path):
    stop = {"stop": hstree.Epochs(1), "dim": 4, "speed_rounds": 0}
    (row,) = hstree.compare(LINES[:60], ["huffman"], tmp_path / "of", **stop).candidates
    assert 1 < row.perplexity["test"].mean < 10
    assert hstree.evaluate("huffman", IDS[:60], stop=hstree.Epochs(1), dim=4).perplexity


@pytest.mark.slow
def test_jobs_in_other_processes_get_a_text_in_memory(tmp_path):
    stop = {"stop": hstree.Epochs(1), "dim": 4, "speed_rounds": 0}
    rows = ["huffman", "random"]
    alone = hstree.compare(LINES[:60], rows, tmp_path / "alone", **stop).candidates
    both = hstree.compare(LINES[:60], rows, tmp_path / "both", n_jobs=2, **stop).candidates
    assert [row.perplexity for row in alone] == [row.perplexity for row in both]


def test_dir_shows_what_users_need(model):
    names = {name for name in dir(model) if not name.startswith("_")}
    assert {"fit", "perplexity", "predict", "save", "load", "tree", "history_"} <= names
    assert not names & {"trainer", "windows", "reencode", "context_ids", "from_saved"}

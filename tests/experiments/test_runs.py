"""Kept runs: what the key depends on, and what the kept model gives each test token."""

import json

import numpy as np
import pytest

import hstree
from hstree.errors import OptionError
from hstree.experiments.evaluation import corpus_splits
from hstree.experiments.runs import finished, nll_of, run
from hstree.layers.registry import LayerSpec
from hstree.models import config_of
from hstree.models.lbl import LanguageModel
from tests.texts import corpus_of, markov_lines

SMALL = {"dim": 8, "context": 2, "epochs": 1, "batch_size": 64}


#: Of the run below, as hstree computed it when it first kept runs.
KEY = "b33fbbee79822f7f7ee6e1a0620ee96507a3f08ff2c2fc5e097f5961bc39b7b6"


@pytest.fixture
def splits(tmp_path):
    return corpus_splits(corpus_of(tmp_path, markov_lines(3_000, 0)[0]))


def test_a_key_is_what_it_was_when_runs_were_first_kept(tmp_path, monkeypatch):
    """Long runs are kept under keys; a change of this figure would throw them all away."""
    monkeypatch.setattr("hstree.experiments.runs.__version__", "0.1.0")
    corpus = corpus_of(tmp_path, ["a b c", "b a"] * 20)
    tree = hstree.build("huffman", corpus)
    result = run(tree, corpus_splits(corpus), tmp_path / "r", **SMALL)
    assert result.key == KEY
    assert finished(tmp_path / "r", KEY) == result


def test_the_key_is_made_without_a_layer(splits, tmp_path, monkeypatch):
    tree = hstree.build("huffman", splits.train)
    first = run(tree, splits, tmp_path / "r", **SMALL)
    monkeypatch.setattr(LayerSpec, "new", lambda *given: pytest.fail("laid out"))
    assert run(tree, splits, tmp_path / "r", **SMALL) == first


@pytest.mark.parametrize("given", [{}, SMALL, {"full": True, "dim": 3}, {"random_state": 7}])
def test_a_config_does_not_depend_on_the_tree(given, splits):
    tree = hstree.build("balanced", splits.train)
    assert config_of(given) == LanguageModel(tree, **given).config()


def test_a_config_is_checked():
    with pytest.raises(OptionError, match="dim"):
        config_of({"dim": 0})


def test_the_nll_of_every_token_adds_up_to_the_score(splits, tmp_path):
    result = run(hstree.build("huffman", splits.train), splits, tmp_path / "r", **SMALL)
    nll = nll_of(tmp_path / "r", splits)
    assert nll.shape == (len(splits.test),)
    assert np.exp(nll.mean()) == pytest.approx(result.perplexity["test"], rel=1e-9)
    model = LanguageModel.load(tmp_path / "r" / "model")
    ids = model.reencode(splits.test).ids(slice(None))
    eos = model.vocabulary.index("<eos>")
    context = np.array([[eos, eos], [eos, ids[0]], [ids[0], ids[1]]])
    log_prob = model.log_prob(context)
    assert nll[:3] == pytest.approx(-log_prob[np.arange(3), ids[:3]], rel=1e-5)


def test_a_kept_nll_is_read_and_a_foreign_one_is_not(splits, tmp_path, monkeypatch):
    home = tmp_path / "r"
    run(hstree.build("huffman", splits.train), splits, home, **SMALL)
    nll = nll_of(home, splits)
    with monkeypatch.context() as patched:
        patched.setattr(LanguageModel, "load", lambda folder: pytest.fail("scored again"))
        assert np.array_equal(nll_of(home, splits), nll)
    for other in (nll[:-1], nll + 0.01, nll.astype(np.float32)):
        np.save(home / "test_nll.npy", other)
        assert np.array_equal(nll_of(home, splits), nll)
    (home / "test_nll.npy").write_bytes(b"\x93NUMPY half")
    assert np.array_equal(nll_of(home, splits), nll)


def test_a_new_run_in_a_folder_leaves_nothing_of_the_old_one(splits, tmp_path):
    home = tmp_path / "r"
    tree = hstree.build("huffman", splits.train)
    run(tree, splits, home, **SMALL)
    old = nll_of(home, splits)
    run(tree, splits, home, **SMALL | {"dim": 9})
    assert not np.array_equal(np.load(home / "test_nll.npy"), old)
    model = hstree.LanguageModel.load(home / "model")
    for split, text in (("valid", splits.valid), ("test", splits.test)):
        assert np.array_equal(nll_of(home, splits, split), model.nll(text))
    assert json.loads((home / "result.json").read_text())["options"]["dim"] == 9

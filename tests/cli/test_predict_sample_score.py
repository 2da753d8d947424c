"""`hstree predict`, `sample` and `score`: what a trained model answers."""

import json
import math
import re

import numpy as np
import pytest

import hstree as library

LINES = ["w0 w1 zebra", "", "w3 w0"]


@pytest.fixture
def other(tmp_path):
    path = tmp_path / "other.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


def answers(path):
    return json.loads(path.read_text(), parse_constant=pytest.fail)["predictions"]


def test_the_words_predicted_are_those_of_the_model(hstree, model, tmp_path):
    ran = hstree("predict", model, "w0 w1", "-k", 3, "--json", "a.json")
    [found] = answers(tmp_path / "a.json")
    (expected,) = library.LanguageModel.load(model).predict([["w0", "w1"]], 3)
    assert (found["context"], found["unknown"]) == (["w0", "w1"], [])
    for answer, (word, probability) in zip(found["words"], expected, strict=True):
        assert answer == {"word": word, "probability": pytest.approx(probability, rel=1e-6)}
        assert re.search(f"^ {word} +{probability:.6f} *$", ran.out, re.M)


def test_unknown_words_are_named_and_an_empty_text_begins_a_line(hstree, model, tmp_path):
    ran = hstree("predict", model, "w0 zebra zebra", "--json", "a.json", warns=True)
    assert ran.warnings == [
        "hstree: warning: not in the vocabulary of the model, read as <unk>: 'zebra'"
    ]
    assert answers(tmp_path / "a.json")[0]["unknown"] == ["zebra"]
    assert "(no word)" in hstree("predict", model, "").out


def test_a_sampled_text_ends_its_lines_at_eos(hstree, model):
    ran = hstree("sample", model, "--words", 30, "--seed", 3, "--context", "w0 w1")
    drawn = library.LanguageModel.load(model).sample(30, ["w0", "w1"], random_state=3)
    assert "<eos>" in drawn
    lines = " ".join(drawn).split("<eos>")
    assert ran.out.rstrip("\n").split("\n") == [line.strip() for line in lines]
    assert hstree("sample", model, "--words", 30, "--seed", 4).out != ran.out
    assert hstree("sample", model, "--words", 0).out == ""


def test_lines_and_words_are_scored_alike(hstree, model, other, tmp_path):
    ran = hstree("score", model, other, "-o", "lines.tsv", "--json", "score.json", warns=True)
    # One unknown token in eight is usual, but no word of the training text was <unk>.
    assert ran.err.count("\n") == 1
    assert "1 of 8 tokens are scored as <unk>, which did not occur" in ran.warnings[0]
    lines = [line.split("\t") for line in (tmp_path / "lines.tsv").read_text().splitlines()]
    assert [line[1:] for line in lines] == [
        ["4", "1", "w0 w1 zebra"],
        ["1", "0", ""],
        ["3", "0", "w3 w0"],
    ]
    hstree("score", model, other, "--per-word", "-o", "words.tsv", warns=True)
    _, *words = [line.split("\t") for line in (tmp_path / "words.tsv").read_text().splitlines()]
    every = [word for line in LINES for word in [*line.split(), "<eos>"]]
    assert [word[2] for word in words] == every
    assert [word[4] for word in words] == [str(word == "zebra") for word in every]
    log_prob = np.array([float(word[3]) for word in words])
    sums = [log_prob[:4].sum(), log_prob[4], log_prob[5:].sum()]
    assert [float(line[0]) for line in lines] == pytest.approx(sums, abs=1e-5)
    found = json.loads((tmp_path / "score.json").read_text())
    assert (found["tokens"], found["oov"], found["lines"], found["base"]) == (8, 1, 3, "e")
    assert found["log_prob"] == pytest.approx(log_prob.sum(), abs=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(-log_prob.mean()), rel=1e-5)
    known = np.delete(log_prob, 2)
    assert found["perplexity_without_oov"] == pytest.approx(math.exp(-known.mean()), rel=1e-5)
    assert f"{found['perplexity']:,.2f} with OOV" in ran.out


@pytest.mark.parametrize("output", [[], ["-o", "lines.tsv"]])
def test_a_text_that_cannot_be_read_to_its_end_is_no_error_of_writing(
    refused, model, other, monkeypatch, output
):
    def broken(*_):
        raise OSError(5, "Input/output error")
        yield

    monkeypatch.setattr(library.LanguageModel, "scored", broken)
    monkeypatch.setattr("hstree_cli.use.warn", lambda _: None)
    monkeypatch.setattr("hstree_cli.inputs.warn", lambda _: None)
    said = "cannot read other.txt: Input/output error"
    refused("score", model, other, *output, "--json", "s.json", saying=said)


def test_a_long_context_fits_80_columns(hstree, model):
    hstree("predict", model, " ".join(["w1"] * 60))


def test_several_models_are_averaged(hstree, tree, corpus, model, tmp_path):
    given = ("--epochs", "1", "--dim", "4", "--seed", "1", "--save", "other-model")
    hstree("evaluate", tree, corpus, *given)
    ensemble = library.Ensemble([library.load_model(folder) for folder in (model, "other-model")])
    hstree("score", model, corpus, "--with", "other-model", "--json", "s.json", warns=True)
    found = json.loads((tmp_path / "s.json").read_text())["perplexity"]
    assert found == pytest.approx(ensemble.perplexity(library.Corpus.read(corpus)), rel=1e-6)
    ((word, _),) = ensemble.predict([["w1"]], 1)[0]
    assert f" {word} " in hstree("predict", model, "w1", "--with", "other-model", "-k", "1").out
    hstree("sample", model, "--with", "other-model", "--words", "5")


def test_models_over_other_words_are_not_averaged(refused, hstree, model, corpus):
    hstree("evaluate", "flat", corpus, "--epochs", "0", "--dim", "4", "--save", "small")
    refused("predict", model, "w1", "--with", "small", status=2, saying="train all over one")

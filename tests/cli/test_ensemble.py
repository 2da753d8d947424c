"""`hstree ensemble`, commands that take its folder, and rows of several models."""

import json

import numpy as np
import pytest

import hstree as library


@pytest.fixture
def models(hstree, tree, corpus, tmp_path):
    """Folders of two trained models."""
    for seed in (0, 1):
        ran = hstree(
            *("evaluate", tree, corpus, "--epochs", 1, "--dim", 4),
            *("--seed", seed, "--save", f"m{seed}"),
        )
        assert ran.status == 0, ran.err
    return [tmp_path / "m0", tmp_path / "m1"]


@pytest.fixture
def ensemble(hstree, models, tmp_path):
    ran = hstree("ensemble", *models, "-o", "e")
    assert (ran.status, ran.err) == (0, "")
    parameters = library.load_model(tmp_path / "e").n_parameters
    assert f"{parameters:,}" in ran.out
    return tmp_path / "e"


def test_an_ensemble_answers_as_its_models_do_on_average(hstree, ensemble, models, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("w0 w1 zebra\n\nw3 w0\n")
    nlls = []
    for folder in (*models, ensemble):
        ran = hstree("score", folder, other, "--per-word", "-o", "words.tsv", "--json", "s.json")
        assert ran.status == 0, ran.err
        lines = (tmp_path / "words.tsv").read_text().splitlines()
        nlls.append(np.array([-float(line.split("\t")[1]) for line in lines]))
    expected = -np.log(np.mean(np.exp(-np.array(nlls[:2])), axis=0))
    np.testing.assert_allclose(nlls[2], expected, atol=2e-6)
    total = json.loads((tmp_path / "s.json").read_text())
    assert total["perplexity"] == pytest.approx(np.exp(expected.mean()), rel=1e-5)
    ran = hstree("predict", ensemble, "w0 w1", "-k", 2, "--json", "a.json")
    assert ran.status == 0
    [found] = json.loads((tmp_path / "a.json").read_text())["predictions"]
    loaded = library.load_model(ensemble)
    answers = [(one["word"], one["probability"]) for one in found["words"]]
    assert answers == loaded.predict([["w0", "w1"]], 2)[0]
    assert hstree("sample", ensemble, "--words", 7, "--seed", 3).out.split()


def test_what_is_read_is_told_of_each_model(hstree, ensemble, corpus):
    ran = hstree("score", ensemble, corpus)
    assert "the model was trained or validated on" in ran.err


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["ensemble", "m0", "nowhere", "-o", "x"], 1, "nowhere"),
        (["ensemble", "m0", "TREE", "-o", "x"], 2, "is a tree, and this command wants a model"),
        (
            ["ensemble", "m0", "m1", "-o", "m0"],
            1,
            "-o m0 is, holds or lies in m0, which",
        ),
        (["ensemble", "e", "m1", "-o", "x"], 1, "e is an ensemble; name the models that it is of"),
        (["compare", "CORPUS", "-m", "2 x flat,gmm", "-o", "x"], 2, "repeat the option: -m '2 x"),
        (["recommend", "CORPUS", "-m", "2 x flat", "-o", "x"], 2, "2 x flat is not one output"),
        (
            ["compare", "CORPUS", "-m", "2 x flat", "--model", "cbow", "-o", "x"],
            2,
            "2 x flat is an ensemble, which is of language models; cbow predicts a word given",
        ),
        (["ensemble", "-o", "x"], 2, "MODEL_DIR"),
        (
            ["evaluate", "e", "CORPUS", "--no-train"],
            2,
            "e is an ensemble: score it with `hstree sc",
        ),
        (["evaluate", "e", "CORPUS"], 2, "e is an ensemble: score it with `hstree score"),
        (["predict", "TEXT", "e"], 2, "the arguments are swapped"),
    ],
)
def test_what_is_refused(hstree, ensemble, corpus, tree, tmp_path, arguments, status, said):
    names = {"TREE": tree, "CORPUS": corpus, "TEXT": tmp_path / "text.txt"}
    (tmp_path / "text.txt").write_text("w0\n")
    ran = hstree(*(names.get(argument, argument) for argument in arguments))
    assert ran.status == status
    assert said in " ".join(ran.err.split())
    assert not (tmp_path / "x").exists()


def test_an_ensemble_is_a_row(hstree, corpus, tmp_path):
    ran = hstree(
        *("compare", corpus, "-m", "2 x huffman", "-m", "flat", "--epochs", 1, "--dim", 4),
        *("-o", "c", "--min-count", 1),
    )
    assert ran.status == 0, ran.err
    assert "2 x huffman" in ran.out
    assert "models of 2 x huffman" in " ".join(ran.out.split())
    rows = json.loads((tmp_path / "c" / "results.json").read_text())["rows"]
    folders = [run["folder"] for run in rows[0]["runs"]]
    assert folders == ["runs/huffman/seed-0", "runs/huffman/seed-1"]
    page = (tmp_path / "c" / "report.html").read_text()
    assert "The mean probability of 2 models, each trained by itself" in page
    command = ["ensemble", *(f"c/{folder}/model" for folder in folders), "-o", "made"]
    assert hstree(*command).status == 0
    assert "hstree ensemble runs/huffman/seed-0/model runs/huffman/seed-1/model" in page

"""`hstree bootstrap`: the rounds, what is kept, and what it says of bad input."""

import json

import pytest

from hstree.models.lbl import LanguageModel
from tests.texts import markov_lines, write_lines

SMALL = ("--dim", "8", "--context", "2", "--epochs", "1", "--batch-size", "64")


@pytest.fixture
def text(tmp_path):
    return write_lines(tmp_path / "text.txt", markov_lines(2_000, 0)[0])


def test_every_round_is_kept_and_shown(hstree, text, tmp_path):
    arguments = ("bootstrap", text, "-o", tmp_path / "b", "--rounds", "2", "--epsilon", "0.4")
    ran = hstree(*arguments, *SMALL, "--json", tmp_path / "all.json")
    assert ran.status == 0
    for name in ("round-0", "round-1", "round-2"):
        assert name in ran.out
        assert (tmp_path / "b" / name / "vectors.npy").exists()
    found = json.loads((tmp_path / "all.json").read_text())
    assert found["round-1"]["tree"]["method"] == "gmm"
    tree = json.loads((tmp_path / "b" / "round-1" / "tree.json").read_text())
    assert tree["meta"]["options"]["epsilon"] == 0.4
    before = (tmp_path / "b" / "round-2" / "result.json").stat().st_mtime_ns
    assert hstree(*arguments, *SMALL).status == 0
    assert (tmp_path / "b" / "round-2" / "result.json").stat().st_mtime_ns == before


def test_the_best_round_is_that_of_validation_and_costs_add_up(hstree, text, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    ran = hstree("bootstrap", text, "-o", "b", "--rounds", "2", *SMALL, "--json", "all.json")
    assert max(map(len, ran.out.splitlines())) <= 60
    found = json.loads((tmp_path / "all.json").read_text())
    best = min(found, key=lambda name: found[name]["perplexity"]["valid"])
    told = " ".join(ran.out.split())
    assert f"best round {best}, by validation perplexity" in told
    assert f"of 3 rounds; test perplexity {found[best]['perplexity']['test']:.1f}" in told
    assert "* stopped at the limit of 1 epoch" in told
    spent = 0.0
    for name, result in found.items():
        spent += json.loads((tmp_path / "b" / name / "build.json").read_text())["seconds"]
        spent += sum(epoch["seconds"] for epoch in result["epochs"])
        of_round = [line.split() for line in ran.out.splitlines() if line.startswith(f" {name} ")]
        bought, taken = of_round
        assert bought[-1] == f"{result['perplexity']['test']:.1f}*"
        assert taken[-1] == f"{spent:.1f}"
        weights = LanguageModel.load(tmp_path / "b" / name / "model")
        arrays = [*weights.context_model.parameters().values()]
        arrays += weights.layer.parameters().values()
        assert bought[3] == str(sum(array.size for array in arrays))


def test_another_method_brings_its_own_options(hstree, text, tmp_path):
    ran = hstree(
        "bootstrap", text, "-o", tmp_path / "b", "--method", "kmeans", "--arity", "3", *SMALL
    )
    assert ran.status == 0
    tree = json.loads((tmp_path / "b" / "round-1" / "tree.json").read_text())
    assert tree["meta"]["method"] == "kmeans"


def test_later_rounds_begin_with_the_vectors_of_the_best_round(hstree, text, tmp_path):
    runs = {}
    for name, options in (("cold", ()), ("warm", ("--warm-start",))):
        hstree("bootstrap", text, "-o", tmp_path / name, *SMALL, *options)
        runs[name] = [
            json.loads((tmp_path / name / f"round-{number}" / "result.json").read_text())
            for number in (0, 1)
        ]
    assert runs["warm"][1]["warm_start"]
    assert runs["warm"][0]["perplexity"] == runs["cold"][0]["perplexity"]
    assert runs["warm"][1]["tree"]["sha256"] == runs["cold"][1]["tree"]["sha256"]
    first_epoch = [run[1]["epochs"][0]["train"] for run in runs.values()]
    assert first_epoch[1] < first_epoch[0]


def test_every_round_may_have_a_method_of_its_own(hstree, text, tmp_path):
    then = "classes --cluster-by vectors --n-classes 3 --short-list 4"
    words = ("--first", "huffman", "--epsilon", "0.4", "--then", then, "--rounds", "3")
    ran = hstree("bootstrap", text, "-o", tmp_path / "b", *words, *SMALL)
    assert ran.status == 0
    assert "trees round-0 huffman, round-1 gmm, round-2 classes, round-3 classes" in " ".join(
        ran.out.split()
    )
    options = [
        json.loads((tmp_path / "b" / f"round-{i}" / "tree.json").read_text())["meta"]["options"]
        for i in range(1, 4)
    ]
    assert options[0]["epsilon"] == 0.4
    assert options[1]["short_list"] == options[2]["short_list"] == 4


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (("--arity", "3"), 2, "gmm"),
        (("--epsilon", "0.9"), 2, "epsilon"),
        (("--rounds", "0"), 2, "--rounds"),
        (("--first", "gmm"), 2, "gmm needs word vectors"),
        (("--rounds", "1", "--then", "kmeans"), 2, "every method needs a round"),
        (("--then", "gmm --arity 3"), 2, "arity"),
        (("--then", "sampled"), 2, "output layer"),
    ],
)
def test_wrong_options_are_one_line(hstree, text, tmp_path, options, status, said):
    ran = hstree("bootstrap", text, "-o", tmp_path / "b", *options, *SMALL)
    assert ran.status == status
    assert said in ran.err
    assert ran.err.count("\n") == 1

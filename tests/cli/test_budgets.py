"""Plans, budgets of minutes, and parts of a corpus on the command line."""

import json

import pytest

from hstree.data.corpus import Corpus
from hstree.experiments import results
from hstree.experiments.entries import Method
from hstree.experiments.planning import Plan, PlannedRun, Speeds
from hstree.models.base import MOST_EPOCHS
from hstree_cli.plan_tables import print_plan
from tests.texts import markov_lines

QUICK = ("--epochs", "2", "--dim", "4", "--context", "2", "--batch-size", "64", "--quiet")


@pytest.fixture(autouse=True)
def short_turns(monkeypatch):
    for name in ("TURN", "TESTING_TURN"):
        monkeypatch.setattr(f"hstree.experiments.throughput.{name}", 0.001)


@pytest.fixture
def corpus(tmp_path):
    file = tmp_path / "corpus.txt"
    file.write_text("\n".join(markov_lines(4_000, 0)[0]))
    return file


@pytest.mark.parametrize(
    "command",
    [
        ("compare", "-m", "huffman", "-m", "gmm", "--baseline", "kn2"),
        ("survey", "--rows", "huffman, gmm, sampled --samples 3"),
        ("bootstrap", "--rounds", "2"),
    ],
)
def test_a_plan_trains_nothing(hstree, corpus, tmp_path, command):
    name, *more = command
    ran = hstree(name, corpus, *more, "-o", "out", "--plan", *QUICK)
    assert (ran.status, ran.err) == (0, "")
    said = " ".join(ran.out.split())
    for expected in ("random", "gmm", "to train on", "at most 2 epochs", "time about"):
        assert expected in said
    assert not [*tmp_path.glob("out/**/result.json"), *tmp_path.glob("out/results.json")]


def test_a_budget_of_minutes_is_kept_for_the_next_row(hstree, corpus, tmp_path):
    budget = ("--minutes", "5", "-o", "out", *QUICK)
    assert hstree("compare", corpus, "-m", "huffman", *budget).status == 0
    plan = json.loads((tmp_path / "out/plan.json").read_bytes())
    assert plan["fit"] == {
        "minutes": 5.0, "equal_seconds": False, "options": {"epochs": 2}, "left_out": {},
    }  # fmt: skip
    assert hstree("compare", corpus, "-m", "flat", *budget).status == 0
    assert [row.name for row in results.load(tmp_path / "out").rows] == ["huffman", "flat"]


def test_too_little_time_is_refused_before_anything_is_trained(refused, hstree, corpus):
    ran = hstree("compare", corpus, "-m", "huffman", "-o", "out", "--minutes", "0.0001", *QUICK)
    assert (ran.status, ran.out) == (2, "")
    assert "give more minutes, fewer rows or a part of the text" in ran.err
    for minutes in ("0", "-1"):
        ran = hstree("compare", corpus, "-m", "huffman", "-o", "out", "--minutes", minutes, *QUICK)
        assert ran.status == 2
        assert ran.err.count("\n") == 1


def test_the_same_seconds_for_every_row(hstree, corpus, tmp_path, monkeypatch):
    speeds = Speeds(
        training=1e5, scoring=1e5, vectors=1e6, building=0.0, preparation=0.0, round=0.1
    )  # a busy machine is slower
    monkeypatch.setattr("hstree.experiments.planning._measured", lambda *_: speeds)
    budget = ("--minutes", "0.2", "--equal-seconds", "-o", "out", *QUICK)
    ran = hstree("compare", corpus, "-m", "huffman", "-m", "balanced", *budget)
    assert (ran.status, ran.err) == (0, "")
    found = results.load(tmp_path / "out")
    assert 1 <= found.options["seconds"] <= 6
    assert found.options["epochs"] == MOST_EPOCHS
    ran = hstree("compare", corpus, "-o", "x", "--equal-seconds", *QUICK)
    assert (ran.status, "give minutes" in ran.err) == (2, True)


@pytest.mark.parametrize(("typed", "number"), [("50", 50), ("25%", 50), ("0.1", 20)])
def test_a_part_of_a_corpus_is_its_first_lines(hstree, corpus, tmp_path, typed, number):
    assert len(corpus.read_text().splitlines()) == 200
    ran = hstree("compare", corpus, "-m", "huffman", "-o", "out", "--lines", typed, *QUICK)
    assert (ran.status, ran.err) == (0, "")
    splits = results.load(tmp_path / "out").corpus
    assert (splits["train"]["lines"][0], splits["test"]["lines"][1]) == (0, number)


@pytest.mark.parametrize("typed", ["0", "120%", "-3", "some"])
def test_what_is_no_part_of_a_corpus_is_refused(refused, corpus, typed):
    refused("compare", corpus, "-o", "out", "--lines", typed, status=2, saying="--lines")


def test_the_share_within_which_a_row_may_be_chosen(hstree, corpus, tmp_path):
    rows = ("-m", "huffman", "-m", "flat", "-o", "out", *QUICK)
    assert hstree("compare", corpus, *rows, "--within", "1000%").status == 0
    assert results.load(tmp_path / "out").choice.within == 10
    assert hstree("compare", corpus, *rows, "--within", "0").status == 0
    choice = results.load(tmp_path / "out").choice
    assert (choice.within, choice.chosen) == (0, choice.best)


def test_files_are_replaced_only_by_force(hstree, refused, corpus, tmp_path):
    assert hstree("build", "--method", "huffman", corpus, "-o", "tree.json").status == 0
    outputs = ("--json", "r.json", "--save", "model", "--vectors-out", "v.npy")
    assert hstree("evaluate", "tree.json", corpus, *outputs, *QUICK).status == 0
    for option, value in zip(outputs[::2], outputs[1::2], strict=True):
        refused(
            "evaluate", "tree.json", corpus, option, value, *QUICK, saying="add --force to replace"
        )
    assert hstree("evaluate", "tree.json", corpus, *outputs, *QUICK, "--force").status == 0
    assert hstree("bootstrap", corpus, "-o", "rounds", *QUICK).status == 0
    other = (*QUICK, "--learning-rate", "0.2")
    ran = hstree("bootstrap", corpus, "-o", "rounds", *other)
    assert (ran.status, "finished round of another text" in ran.err) == (1, True)
    assert hstree("bootstrap", corpus, "-o", "rounds", "--force", *other).status == 0


def test_a_line_for_each_epoch_where_there_is_no_terminal(hstree, corpus, monkeypatch):
    monkeypatch.setattr("hstree._displays.LINE_PATIENCE", 0.0)
    loud = [option for option in QUICK if option != "--quiet"]
    ran = hstree("compare", corpus, "-m", "huffman", "-o", "out", *loud)
    lines = [line for line in ran.err.splitlines() if "validation" in line]
    assert len(lines) == 2
    assert lines[0].startswith("huffman, seed 0, epoch 1 of 2, validation ")
    assert lines[0].endswith(" left")
    assert hstree("compare", corpus, "-m", "flat", "-o", "out", *QUICK).err == ""


def test_a_plan_of_hours_says_how_to_bound_it(capsys, corpus):
    text = Corpus.read(corpus)
    runs = [
        PlannedRun(Method(name), "equal_epochs", 0, epoch=seconds, epochs=20)
        for name, seconds in (("huffman", 10.0), ("flat", 900.0))
    ]
    print_plan(Plan(runs, 5.0), [], text)
    said = " ".join(capsys.readouterr().out.split())
    assert "flat alone takes 5 h 0 min; --minutes N fits the epochs" in said
    print_plan(Plan(runs[:1], 5.0), [], text)
    assert "--minutes" not in capsys.readouterr().out

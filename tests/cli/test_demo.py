"""The demo, on less text than it has for people."""

import pytest

import hstree as library
from hstree.experiments import results
from hstree_cli.commands import demo


@pytest.fixture
def small(corpus, monkeypatch):
    monkeypatch.setattr(demo, "CORPUS", str(corpus))
    monkeypatch.setattr(demo, "EPOCHS", 1)
    monkeypatch.setattr("hstree.experiments.throughput.TURN", 0.001)
    monkeypatch.setattr("hstree.report.write", lambda folder: folder / "report.html")


@pytest.mark.usefixtures("small")
def test_it_compares_trees_and_leaves_them_behind(hstree, tmp_path):
    ran = hstree("demo", "-o", "out/demo")
    assert (ran.status, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80
    found = results.load(tmp_path / "out" / "demo")
    assert [row.name for row in found.rows] == list(demo.ENTRIES)
    assert found.corpus["train"]["lines"] == [0, 160]
    assert found.tokens == {"train": 160 * 9, "valid": 20 * 9, "test": 20 * 9}
    for row in found.rows:
        of_row = [line for line in ran.out.splitlines() if line.split()[:1] == [row.name]]
        line = of_row[1]  # below that of the plan
        assert f"{row.perplexity['test'].mean:,.1f}" in line.replace("*", "").split()
        if row.kind == "tree":
            tree = library.load(tmp_path / "out" / "demo" / row.tree_file)
            assert "<unk>" in tree.labels
    for word in (
        "tokens",
        "out of vocabulary",
        "vocabulary",
        "<eos>",
        "Which tree?",
        "report.html",
    ):
        assert word in ran.out


@pytest.mark.usefixtures("small")
def test_a_place_that_cannot_be_written(refused):
    refused("demo", "-o", "corpus.txt/demo", saying="-o")

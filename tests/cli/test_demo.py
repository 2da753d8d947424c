"""The demo, on less text than it has for people."""

import json

import pytest

import hstree as library
from hstree_cli.commands import demo


@pytest.fixture
def small(corpus, monkeypatch):
    monkeypatch.setattr(demo, "CORPUS", str(corpus))
    monkeypatch.setattr(demo, "LINES", 100)
    monkeypatch.setattr(demo, "EPOCHS", 1)


@pytest.mark.usefixtures("small")
def test_it_compares_four_trees_and_leaves_them_behind(hstree, tmp_path):
    ran = hstree("demo", "-o", "out/demo")
    assert (ran.status, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80
    results = {}
    for method in ("random", "balanced", "huffman", "flat"):
        tree = library.load(tmp_path / "out" / "demo" / f"{method}.json")
        assert tree.meta["input"]["lines"] == [0, 80]
        assert "<unk>" in tree.labels
        results[method] = json.loads((tmp_path / f"out/demo/{method}.result.json").read_text())
        assert results[method]["tree"]["sha256"] == tree.sha256
        row = next(line for line in ran.out.splitlines() if line.split()[:1] == [method])
        assert f"{results[method]['perplexity']['test']:,.1f}" in row.split()
    assert len({result["vocabulary"]["sha256"] for result in results.values()}) == 1
    assert {result["tokens"]["train"] for result in results.values()} == {80 * 9}
    for word in ("tokens", "out of vocabulary", "vocabulary", "<eos>"):
        assert word in ran.out


@pytest.mark.usefixtures("small")
def test_a_place_that_cannot_be_written(refused):
    refused("demo", "-o", "corpus.txt/demo", saying="-o")

"""`hstree evaluate`: figures, warnings, outputs, and what it refuses before it trains."""

import os
import re
import stat
from pathlib import Path
from unittest.mock import Mock

import pytest

import hstree as library
from hstree._files import acquire_lock
from hstree.models.lbl import LogBilinearTrainer
from hstree.training.trainer import Trainer
from tests.cli.conftest import figures

QUICK = ["--epochs", "2", "--dim", "8", "--context", "2"]


def test_the_json_has_the_figures(hstree, tree, corpus, tmp_path):
    ran = hstree("evaluate", tree, corpus, *QUICK, "--json", "result.json")
    found = figures(tmp_path / "result.json")
    assert set(found["perplexity"]) == {"valid", "test", "test_without_oov"}
    # 200 lines of 8 words and <eos>, cut 80, 10, 10.
    assert found["tokens"] == {"train": 1440, "valid": 180, "test": 180}
    assert found["tree"]["sha256"] == library.load(tree).sha256
    assert [epoch["epoch"] for epoch in found["epochs"]] == [1, 2]
    assert f"{found['perplexity']['test']:,.2f}" in ran.out
    assert "* stopped at the epoch limit" in " ".join(ran.out.split())


@pytest.mark.parametrize("candidate", ["sampled samples=5", "gmm epsilon=0.4", "huffman + ngrams"])
def test_any_candidate_is_evaluated(hstree, corpus, tmp_path, candidate):
    hstree("evaluate", candidate, corpus, *QUICK, "--json", "r.json", "--save", "m")
    found, model = figures(tmp_path / "r.json"), library.load_model(tmp_path / "m")
    assert found["name"] == candidate
    test = model.perplexity(library.Corpus.read(corpus).splits()[2])
    assert test == pytest.approx(found["perplexity"]["test"], rel=1e-6)


def test_few_shared_words_without_unk_are_refused(refused, hstree, corpus, tmp_path):
    hstree("build", "-m", "huffman", corpus, "--no-unk", "-o", "closed.json")
    (tmp_path / "far.txt").write_text("w0 x1 x2 x3\n" * 50)
    saying = "120 of 200 tokens of far.txt are not among the labels, which do not include <unk>"
    refused("evaluate", "closed.json", "far.txt", saying=saying)
    # One unknown word in the test part is refused before the training, not after.
    rare = corpus.read_text().splitlines()
    rare[-1] += " x"
    (tmp_path / "rare.txt").write_text("".join(f"{line}\n" for line in rare))
    refused("evaluate", "closed.json", "rare.txt", "--epochs", "100000", saying="1 of 181")


def test_lower_reads_lower_case(hstree, tree, corpus, tmp_path):
    (tmp_path / "loud.txt").write_text(corpus.read_text().upper())
    hstree("evaluate", tree, "loud.txt", "--epochs", "0", "--lower", "--json", "r.json")
    assert figures(tmp_path / "r.json")["oov"]["test"] == 0


def test_an_interrupted_evaluation_goes_on(hstree, tree, corpus, tmp_path, monkeypatch):
    batches, drawn = Trainer.epoch_batches, []

    def interrupted(self, *arguments):
        for batch in batches(self, *arguments):
            drawn.append(batch)
            if len(drawn) == 10:  # six batches an epoch
                raise KeyboardInterrupt
            yield batch

    monkeypatch.setattr(Trainer, "epoch_batches", interrupted)
    usual = ("evaluate", tree, corpus, *QUICK, "--json")
    stopped = hstree(*usual, "again.json", status=130)
    assert "--force" in stopped.warnings[0]
    assert re.search(r"^written +again\.json$", stopped.out, re.M)
    hstree(*usual, "again.json", "--force")
    hstree(*usual, "whole.json")
    again, whole = (figures(tmp_path / name) for name in ("again.json", "whole.json"))
    assert again["perplexity"] == whole["perplexity"]
    assert len(drawn) == 10 + 6 + 12  # the second epoch again, as far as it was not done


def test_the_folder_of_another_evaluation_that_goes_on_stays(hstree, tree, corpus, monkeypatch):
    """The same command in another process, which begins when this one is about to end."""
    monkeypatch.setenv("HSTREE_CACHE", "cache")
    evaluations, held = Path("cache", "evaluations"), []

    def shown(*_):
        (folder,) = evaluations.iterdir()
        held.append(acquire_lock(folder))

    with monkeypatch.context() as patched:
        patched.setattr("hstree_cli.results.print_evaluation", shown)
        hstree("evaluate", tree, corpus, *QUICK)
    assert len(list(evaluations.glob("*/runs"))) == 1
    held.pop().close()
    hstree("evaluate", tree, corpus, *QUICK)
    assert list(evaluations.iterdir()) == []


def test_places_are_refused_before_the_training(
    refused, tree, corpus, monkeypatch, tmp_path_factory
):
    monkeypatch.setattr(LogBilinearTrainer, "fit", Mock(side_effect=AssertionError("it trained")))
    for option, ending in (("--json", ".json"), ("--vectors-out", ".npy"), ("--save", "")):
        refused("evaluate", tree, corpus, option, f"corpus.txt/a{ending}", saying=option)
        if option != "--save":  # folders are made
            refused("evaluate", tree, corpus, option, f"missing/a{ending}", saying=option)
    pipe = tmp_path_factory.mktemp("pipes") / "figures.json"
    os.mkfifo(pipe)
    refused("evaluate", tree, corpus, "--json", pipe, "--force", saying="not a regular file")
    assert stat.S_ISFIFO(pipe.stat().st_mode)

"""What a comparison's folder keeps: when results are written, and that damage is found."""

import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import hstree
from hstree.errors import FileFormatError, HstreeError
from hstree.experiments import compare as module
from hstree.experiments import results
from hstree.experiments.results import JobResult
from hstree.experiments.run import Runner
from hstree.models.lbl import LogBilinearTrainer
from tests.experiments.conftest import QUICK

RULE = hstree.Epochs(1)


def compare(text, rows, folder, **options):
    return hstree.compare(
        text, rows, folder, **{"stop": RULE, "speed_rounds": 0, **QUICK, **options}
    )


@pytest.fixture
def written(monkeypatch):
    """The names of the rows in the results, each time that they are written."""
    names = []

    def save(comparison, folder):
        names.append([row.name for row in comparison.rows])
        results_save(comparison, folder)

    results_save = results.save
    monkeypatch.setattr(results, "save", save)
    return names


def interrupt_after(monkeypatch, n_steps):
    """Raise KeyboardInterrupt from a training step once so many steps were done."""
    step, steps = LogBilinearTrainer.step, []

    def interrupted(self, *arguments):
        steps.append(None)
        if len(steps) > n_steps:
            raise KeyboardInterrupt
        return step(self, *arguments)

    monkeypatch.setattr(LogBilinearTrainer, "step", interrupted)


# When results are written


def test_results_are_not_written_once_per_kept_row(splits, tmp_path, written):
    rows = [f"random random_state={seed}" for seed in range(6)]
    compare(splits, rows, tmp_path)
    written.clear()
    compare(splits, ["flat"], tmp_path)
    assert written == [rows, [*rows, "flat"]]
    written.clear()
    compare(splits, rows, tmp_path)
    assert written == [[*rows, "flat"]]


def test_the_number_of_writes_is_bounded_where_they_take_long(
    splits, tmp_path, written, monkeypatch
):
    monkeypatch.setattr(module, "_WRITING_SECONDS", 0.0)
    monkeypatch.setattr(module, "_WRITING_SHARE", 0.0)
    compare(splits, [f"random random_state={seed}" for seed in range(4)], tmp_path)
    assert list(map(len, written)) == [0, 4]


@pytest.mark.parametrize("stop", [RULE, hstree.Halving(0.1)])
def test_an_interrupted_comparison_has_results_of_what_is_finished(
    splits, tmp_path, monkeypatch, stop
):
    with monkeypatch.context() as patched:
        interrupt_after(patched, 3)
        with pytest.raises(KeyboardInterrupt):
            compare(splits, ["kn2", "huffman", "flat"], tmp_path, stop=stop)
    stopped = results.load(tmp_path)
    assert [row.name for row in stopped.rows] == ["kn2"]
    assert stopped.pending == ["huffman", "flat"]
    stopped.to_html(tmp_path / "report.html")
    assert compare(splits, ["kn2", "huffman", "flat"], tmp_path, stop=stop).pending == []


def test_an_interruption_before_the_first_result_leaves_a_page(splits, tmp_path, monkeypatch):
    interrupt_after(monkeypatch, 3)
    with pytest.raises(KeyboardInterrupt):
        compare(splits, ["huffman", "flat"], tmp_path)
    assert results.load(tmp_path).pending == ["huffman", "flat"]
    assert "huffman" in results.load(tmp_path).to_html(tmp_path / "report.html").read_text()


def test_rows_finished_since_the_last_write_are_in_the_results_of_an_interruption(
    splits, tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "_WRITING_SECONDS", 0.0)
    monkeypatch.setattr(module, "_WRITING_SHARE", 0.0)
    monkeypatch.setattr(
        "hstree.experiments.speed.kept_speeds", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        compare(splits, ["huffman", "flat"], tmp_path)
    assert [row.name for row in results.load(tmp_path).rows] == ["huffman", "flat"]


def test_an_interruption_while_finished_jobs_are_read_leaves_the_results_as_they_were(
    splits, tmp_path, monkeypatch
):
    rows = ["huffman", "random", "flat"]
    compare(splits, rows, tmp_path)
    before = (tmp_path / "results.json").read_bytes()
    kept, calls = Runner.kept, []

    def interrupted(self, folder, key):
        calls.append(folder)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return kept(self, folder, key)

    with monkeypatch.context() as patched:
        patched.setattr(Runner, "kept", interrupted)
        with pytest.raises(KeyboardInterrupt):
            compare(splits, ["balanced"], tmp_path)
    assert (tmp_path / "results.json").read_bytes() == before


def test_rows_that_were_to_train_anew_stay_after_an_interruption(splits, tmp_path, monkeypatch):
    """By halving, another row changes the seconds of all."""
    stop = hstree.Halving(0.1)
    compare(splits, ["kn2", "huffman", "flat"], tmp_path, stop=stop)
    shutil.rmtree(tmp_path / "runs/kn2")  # so that results are written before the interruption
    with monkeypatch.context() as patched, pytest.warns(UserWarning, match="all train anew"):
        interrupt_after(patched, 3)
        with pytest.raises(KeyboardInterrupt):
            compare(splits, ["random"], tmp_path, stop=stop)
    assert results.load(tmp_path).pending == ["huffman", "flat", "random"]
    assert {row.name for row in compare(splits, ["random"], tmp_path, stop=stop).rows} == {
        *("kn2", "huffman", "flat", "random")
    }

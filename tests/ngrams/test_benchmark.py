"""The benchmark of the n-gram models runs on a small text, and measures both context rules."""

import pytest

from tests.test_benchmarks import run
from tests.texts import markov_lines, write_lines


@pytest.mark.slow
def test_kneser_ney(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("benchmarks.kneser_ney.DISCOUNTS", ("modified",))
    for number, split in enumerate(("train", "valid", "test")):
        write_lines(tmp_path / f"ptb.{split}.txt", markov_lines(2_000, number)[0])
    options = ("--ptb", tmp_path, "--orders", 2)
    line, running = run("kneser_ney", monkeypatch, capsys, tmp_path, *options)
    assert (line["contexts"], running["contexts"]) == ("line", "running")
    assert line["test"] == running["test"]  # one word of context never reaches over a line end
    assert line["fit s"] > 0

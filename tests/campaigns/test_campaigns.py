"""The campaigns in short, and what that of mutated files takes for a fault."""

import os
import time

import numpy as np
import pytest

from hstree.errors import FileFormatError
from tests.campaigns import interrupts, kills, mutations
from tests.campaigns.readers import READERS, Reader


def test_every_reader_takes_its_own_valid_files(tmp_path):
    for place, reader in enumerate(READERS.values()):
        folder = tmp_path / str(place)
        folder.mkdir()
        for files in reader.seeds(folder):
            for name, content in files.items():
                (folder / name).write_bytes(content)
            reader.check(reader.read(folder / next(iter(files))))


@pytest.mark.slow
def test_mutated_files_are_read_or_refused(tmp_path):
    happened = mutations.run(6000, 0, tmp_path / "faults")
    for name, counts in happened.items():
        n_read = counts["accepted"] + counts["refused"]
        assert [name, *(counts[what] for what in mutations.BAD)] == [name, 0, 0, 0]
        assert counts["refused"] > n_read / 4 > 0
    assert sum(counts["accepted"] for counts in happened.values()) > 600
    assert not list((tmp_path / "faults").iterdir())


def _refuse_two_lines(path):
    raise FileFormatError("two\nlines")


def _run_out_of_memory(path):
    try:
        np.empty(1 << 50, np.uint8)
    except MemoryError as error:
        raise FileFormatError("too large") from error


def _compute(path):
    end = time.process_time() + 5
    while time.process_time() < end:
        pass


@pytest.mark.parametrize(
    ("read", "outcome"),
    [
        (_refuse_two_lines, "tracebacks"),
        ({}.__getitem__, "tracebacks"),
        (lambda path: 2, "tracebacks"),  # not what is expected
        (_run_out_of_memory, "above 1 GB"),
        (_compute, "hangs"),
    ],
)
def test_what_counts_as_a_fault(read, outcome, monkeypatch, tmp_path):
    def check(found):
        assert found == 1

    monkeypatch.setattr(mutations, "PATIENCE", 0.2)
    reader = Reader("any", 1, lambda folder: [], read, check)
    assert mutations.outcome(reader, tmp_path)[0] == outcome


with_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, and signals to others")


@pytest.mark.slow
@with_fork
def test_killed_commands_leave_what_is_whole():
    assert kills.run(kills=10) == []


@pytest.mark.slow
@with_fork
def test_commands_end_soon_after_ctrl_c(tmp_path, monkeypatch):
    monkeypatch.setenv("HSTREE_FAST", "0")  # compiling takes longer than the commands
    interrupts.inputs(tmp_path, n_words=3000, tokens=150_000)
    found = [
        answer
        for command in ("build classes", "evaluate", "convert .graphml")
        for answer in interrupts.answers(tmp_path, command, first=0.5, ratio=2)
    ]
    assert "evaluate" in {answer.command for answer in found}  # the others may end within the first
    assert [str(answer) for answer in found if answer.fault or answer.is_slow] == []

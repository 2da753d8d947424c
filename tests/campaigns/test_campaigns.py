"""The campaigns, and the outcomes that the campaign of mutated files calls faults."""

import os
import time

import numpy as np
import pytest

from hstree.errors import FileFormatError
from tests.campaigns import interrupts, kills, mutations
from tests.campaigns.readers import READERS, Reader

with_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, and signals to others")


@pytest.fixture
def is_full(request):
    return request.config.getoption("--campaigns") == "full"


def test_every_reader_accepts_its_own_valid_files(tmp_path):
    for number, reader in enumerate(READERS.values()):
        folder = tmp_path / str(number)
        folder.mkdir()
        for files in reader.seeds(folder):
            for name, content in files.items():
                (folder / name).write_bytes(content)
            reader.check(reader.read(folder / next(iter(files))))


def test_mutated_files_are_read_or_refused(tmp_path, is_full):
    n_files = 1_000_000 if is_full else 6000
    n_processes = os.cpu_count() if is_full else 1
    counts = mutations.run(n_files, 0, tmp_path / "faults", n_processes)
    for name, row in counts.items():
        n_read = row["accepted"] + row["refused"]
        assert [name, *(row[fault] for fault in mutations.FAULTS)] == [name, 0, 0, 0]
        assert row["refused"] > n_read / 4 > 0
    assert sum(row["accepted"] for row in counts.values()) > n_files / 10
    assert not list((tmp_path / "faults").iterdir())


def refuse_in_two_lines(path):
    raise FileFormatError("two\nlines")


def run_out_of_memory(path):
    try:
        np.empty(1 << 50, np.uint8)
    except MemoryError as error:
        raise FileFormatError("too large") from error


def compute(path):
    end = time.process_time() + 5
    while time.process_time() < end:
        pass


@pytest.mark.parametrize(
    ("read", "outcome"),
    [
        (refuse_in_two_lines, "tracebacks"),
        ({}.__getitem__, "tracebacks"),
        (lambda path: "not valid", "tracebacks"),
        (run_out_of_memory, "above 1 GB"),
        (compute, "hangs"),
    ],
)
def test_outcomes_that_are_faults(read, outcome, monkeypatch, tmp_path):
    def check(value):
        assert value == "valid"

    monkeypatch.setattr(mutations, "PATIENCE", 0.2)
    reader = Reader("any", 1, lambda folder: [], read, check)
    assert mutations.outcome(reader, tmp_path)[0] == outcome


@with_fork
def test_killed_commands_leave_whole_files(is_full):
    faults = kills.run(200, kills.COMMANDS) if is_full else kills.run(10, kills.SEVERAL_FILES)
    assert faults == []


@with_fork
def test_commands_end_soon_after_ctrl_c(tmp_path, monkeypatch, is_full):
    if is_full:
        commands = interrupts.COMMANDS
        interrupts.make_inputs(tmp_path, n_words=100_000, tokens=2_000_000)
    else:
        commands = ("build classes", "evaluate", "convert .graphml")
        monkeypatch.setenv("HSTREE_FAST", "0")  # compiling takes longer than the commands
        interrupts.make_inputs(tmp_path, n_words=3000, tokens=150_000)
    answers = [
        answer
        for command in commands
        for answer in interrupts.answers(tmp_path, command, ratio=1.4 if is_full else 2)
    ]
    # the others may end before the first signal
    assert "evaluate" in {answer.command for answer in answers}
    assert [str(answer) for answer in answers if answer.fault or answer.is_slow] == []

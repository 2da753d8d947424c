"""The short form of the campaign of interrupts: fewer words, some commands."""

import os

import pytest

from tests.campaigns import interrupts


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGINT for other processes here")
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

"""Progress on a terminal: what, how far, how fast, how long still, in 80 columns."""

import io
import re
import sys

import pytest

from hstree import _progress_bars as progress_bars
from hstree import progress
from hstree_cli.terminal import showing_progress


class Terminal(io.StringIO):
    """A standard error that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def on_terminal(monkeypatch):
    """Run something with a terminal for standard error; return what it wrote there.

    Set inside the test: pytest puts its own standard error back between fixtures and tests.
    """

    def run(body, stream=None):
        terminal = stream or Terminal()
        with monkeypatch.context() as patch:
            patch.setenv("COLUMNS", "80")
            patch.setenv("TERM", "xterm")
            patch.setattr(sys, "stderr", terminal)
            body()
        return terminal.getvalue()

    return run


def lines_of(written):
    """Return the lines that were on the screen at some time, without colours and movements."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", written)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", text)
    return [line for line in re.split(r"[\r\n]+", text) if line.strip()]


def work(title="reading"):
    import time

    with progress.task(title, total=4, unit="tokens") as task:
        for _ in range(3):
            task.advance()
            task.note("perplexity 12.3")
            time.sleep(0.15)


def test_it_says_what_and_how_far(on_terminal, monkeypatch):
    monkeypatch.setattr(progress_bars, "PATIENCE", 0)

    def body():
        with showing_progress():
            work("a long title " * 10)

    lines = lines_of(on_terminal(body))
    last = lines[-1]
    for part in ("a long title", "…", "75%", "tokens/s", "00:0", "perplexity 12.3"):
        assert part in last
    assert max(map(len, lines)) <= 80


def test_tasks_of_unknown_length_and_inside_another(on_terminal, monkeypatch):
    monkeypatch.setattr(progress_bars, "PATIENCE", 0)

    def body():
        with showing_progress(), progress.task("outer"):
            work("inner")

    lines = lines_of(on_terminal(body))
    outer = [line for line in lines if line.startswith("outer")]
    assert outer
    assert not any("%" in line for line in outer)
    assert any(line.startswith("inner") for line in lines)


def test_what_takes_a_moment_is_not_drawn(on_terminal):
    def body():
        with showing_progress(), progress.task("quick"):
            pass

    assert "quick" not in on_terminal(body)


def test_quiet(on_terminal):
    def body():
        with showing_progress(quiet=True):
            work()

    assert on_terminal(body) == ""


def test_no_terminal(on_terminal):
    def body():
        with showing_progress():
            work()

    assert on_terminal(body, io.StringIO()) == ""


def test_results_go_to_standard_output_while_bars_are_drawn(on_terminal, capsys):
    def body():
        with showing_progress():
            sys.stdout.write("a result\n")

    assert "a result" not in on_terminal(body)
    assert capsys.readouterr().out == "a result\n"

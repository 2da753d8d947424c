"""Progress of the program, of scripts and of notebooks: what, how far, how fast, how long still."""

import io
import re
import sys
import threading
import time
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from hstree import _displays, progress
from hstree_cli.terminal import running, showing_progress


class Terminal(io.StringIO):
    """A standard error that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Show every task at once; silent again after the test."""
    monkeypatch.setattr(_displays, "PATIENCE", 0)
    yield
    progress.disable()


@pytest.fixture
def written(monkeypatch):
    """Run something with a stream for standard error; return the text written there."""

    def run(body, stream):  # pytest puts its own standard error back between fixtures and tests
        with monkeypatch.context() as patch:
            patch.setenv("COLUMNS", "80")
            patch.setenv("TERM", "xterm")
            patch.setattr(sys, "stderr", stream)
            body()
        return stream.getvalue()

    return run


def lines_of(text):
    """Return the lines that were on the screen at some time, without colours and movements."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", text)
    return [line for line in re.split(r"[\r\n]+", text) if line.strip()]


def work(title="inner"):
    with progress.task("outer <b>"), progress.task(title, total=4, unit="tokens") as task:
        for _ in range(3):
            task.advance()
            task.note("perplexity < 12")
            time.sleep(0.15)


def program(quiet=False, title="inner"):
    with running(threads=None, quiet=quiet, debug=False), showing_progress():
        work(title)


def script():
    progress.enable()
    work()


@pytest.mark.parametrize("body", [program, script])
def test_a_terminal_shows_a_bar_for_each_task(written, body):
    lines = lines_of(written(body, Terminal()))
    outer = [line for line in lines if line.startswith("outer <b>")]
    assert outer
    assert not any("%" in line for line in outer)  # of unknown length
    inner = next(line for line in reversed(lines) if line.startswith("inner"))
    assert all(part in inner for part in ("75%", "tokens/s", "00:0", "perplexity < 12"))


def test_what_has_not_advanced_has_its_seconds_and_no_bar(written):
    def body():
        with showing_progress(), progress.task("waiting", total=4):
            time.sleep(0.15)

    lines = lines_of(written(body, Terminal()))
    assert {line.rstrip() for line in lines if line.startswith("waiting")} == {"waiting 0 s"}


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_what_is_said_is_a_line_on_a_terminal_and_in_a_log(written, stream):
    def body():
        with showing_progress(), progress.task("inner"):
            progress.say("compiling <b>")

    assert "compiling <b>" in lines_of(written(body, stream()))


def test_long_titles_are_cut_to_80_columns(written):
    lines = lines_of(written(lambda: program(title="a long title " * 10), Terminal()))
    assert any("a long title" in line and "…" in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_bars_start_again(written):
    def body():
        with showing_progress():
            for title in ("first", "second"):
                with progress.task(title, total=2) as task:
                    task.advance()
                    time.sleep(0.15)

    text = written(body, Terminal())
    assert {"first", "second"} <= {line.split()[0] for line in lines_of(text)}
    assert text.count("\x1b[?25h") == 2  # the cursor is shown again after each


def test_what_takes_a_moment_or_is_quiet_is_not_drawn(written, monkeypatch):
    assert written(lambda: program(quiet=True), Terminal()) == ""
    monkeypatch.setattr(_displays, "PATIENCE", 60)
    assert "inner" not in written(program, Terminal())


def test_results_go_to_standard_output_while_bars_are_drawn(written, capsys):
    def body():
        with showing_progress(), progress.task("counting"):
            sys.stdout.write("a result\n")

    assert "a result" not in written(body, Terminal())
    assert capsys.readouterr().out == "a result\n"


@pytest.mark.parametrize("body", [program, script])
def test_a_log_has_a_line_for_each_long_task_alone(written, monkeypatch, body):
    assert written(body, io.StringIO()) == ""
    monkeypatch.setattr(_displays, "LONG_TASK", 0.0)
    assert re.fullmatch(r"outer <b>: 0\.\d s\n", written(body, io.StringIO()))


@pytest.fixture
def log(written, monkeypatch):
    """Return the lines that a function leaves in a log, however fast its events come."""
    monkeypatch.setattr(_displays, "LINE_PATIENCE", 0.0)

    def run(function):
        def body():
            with showing_progress():
                function()

        return written(body, io.StringIO()).splitlines()

    return run


def test_a_log_has_the_events_with_their_candidate_and_the_time_left(log):
    def body():
        progress.report("epoch 1 of 2", 44.2)
        with progress.task("candidates", 2, "candidates") as task:
            task.note("huffman")
            progress.report("epoch 2 of 2", 1.0)

    assert log(body) == [
        "epoch 1 of 2, 45 s left",
        "candidate 1 of 2: huffman, epoch 2 of 2, 1 s left for this candidate",
    ]


def test_a_log_has_the_round_and_the_time_left_of_all_candidates(log):
    def body():
        with (
            progress.task("all candidates", 600.0, "seconds"),
            progress.task("round 2 of 3, 24 s per candidate", 5, "candidates") as task,
        ):
            task.advance()
            task.note("huffman")
            progress.report("epoch 3, validation 231.2", 12.0)

    assert log(body) == [
        "round 2 of 3, 24 s per candidate, candidate 2 of 5: huffman, epoch 3, validation 231.2, "
        "10 min left of 10 min",
    ]


def test_a_log_names_what_is_made_for_a_candidate_first(log):
    def body():
        with progress.task("candidates", 1, "candidates") as task:
            task.note("gmm")
            with progress.task("vectors for gmm", unit="candidates"):
                progress.report("epoch 1 of 2", 5.0)

    assert log(body) == ["candidate 1 of 1: vectors for gmm, epoch 1 of 2, 5 s left"]


def test_a_terminal_shows_the_time_left_of_all_candidates(written):
    def body():
        with showing_progress(), progress.task("all candidates", 600.0, "seconds"):
            time.sleep(0.15)

    lines = lines_of(written(body, Terminal()))
    assert any(re.fullmatch(r"all candidates +10 min left of 10 min *", line) for line in lines)


def test_a_notebook_without_ipywidgets_has_lines(monkeypatch, written):
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    monkeypatch.setattr(_displays, "LONG_TASK", 0.0)
    assert written(script, Terminal()).startswith("outer <b>: ")


def test_threads_report_too_where_a_context_variable_would_not_reach(written, monkeypatch):
    monkeypatch.setattr(_displays, "LONG_TASK", 0.0)

    def body():
        progress.enable()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert "outer" in written(body, io.StringIO())


def test_a_display_of_the_body_comes_first_and_none_is_silent(capsys):
    work()
    progress.enable()
    with progress.shown_by(display := MagicMock()):
        work()
    progress.disable()
    work()
    assert [task.args[0] for task in display.task.call_args_list] == ["outer <b>", "inner"]
    assert capsys.readouterr() == ("", "")

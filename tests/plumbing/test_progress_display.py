"""Progress of notebooks and scripts that `hstree.progress.enable` shows."""

import io
import re
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from hstree import _progress_bars, _progress_display, progress
from tests.plumbing.test_progress_bars import Terminal, lines_of


@pytest.fixture(autouse=True)
def enabled(monkeypatch):
    """Show every task at once; silent again after the test."""
    for module in (_progress_bars, _progress_display):
        monkeypatch.setattr(module, "PATIENCE", 0)
    yield
    progress.disable()


@pytest.fixture
def shown(monkeypatch):
    """The HTML that a notebook shows, change by change."""
    shown = []

    class Handle:
        def update(self, html):
            shown.append(html)

    def display(html, display_id):
        assert display_id
        shown.append(html)
        return Handle()

    ipython = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=None),
        display=SimpleNamespace(display=display, HTML=str),
    )
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr(_progress_display, "INTERVAL", 0)
    return shown


def work():
    with progress.task("outer <b>", total=2) as outer, progress.task("inner") as inner:
        inner.note("perplexity < 12")
        outer.advance()


def test_a_notebook_shows_a_bar_for_each_task(shown):
    progress.enable()
    work()
    outer, inner = re.findall("<div>(.*?)</div>", shown[-2])
    assert outer == '<progress value="1" max="2"></progress> outer &lt;b&gt; 50% '
    assert inner == "<progress></progress> inner  perplexity &lt; 12"
    assert shown[-1] == ""  # the bars are gone


def test_another_cell_has_bars_of_its_own(shown):
    progress.enable()
    work()
    display = progress._enabled
    assert display._handle is None


def test_what_takes_a_moment_is_not_shown(shown, monkeypatch):
    monkeypatch.setattr(_progress_display, "PATIENCE", 60)
    progress.enable()
    work()
    assert shown == []


def test_bars_change_a_few_times_a_second(shown, monkeypatch):
    monkeypatch.setattr(_progress_display, "INTERVAL", 60)
    progress.enable()
    with progress.task("counting", total=1000) as task:
        for _ in range(1000):
            task.advance()
    assert len(shown) == 2  # the first change, and the end


def test_threads_report_too(shown):
    """Where a context variable would not reach."""
    progress.enable()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "outer" in shown[0]


def test_a_script_on_a_terminal_draws_bars(monkeypatch):
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stderr", terminal)
    progress.enable()
    for _ in range(2):  # bars start again
        work()
    assert len([line for line in lines_of(terminal.getvalue()) if line.startswith("inner")]) >= 2


def test_a_script_without_a_terminal_writes_a_line_for_each_task(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr(_progress_display, "LONG_TASK", 0.0)
    progress.enable()
    work()
    assert re.fullmatch(r"inner: perplexity < 12, 0\.\d s\nouter <b>: 0\.\d s\n", log.getvalue())


def test_disabled_and_not_enabled(capsys):
    work()
    progress.enable()
    progress.disable()
    work()
    assert capsys.readouterr() == ("", "")


def test_a_sink_of_the_body_comes_first(capsys):
    titles = []

    class Sink(progress._Silent):
        def start(self, title, total, unit):
            titles.append(title)
            return self

    progress.enable()
    with progress.shown_by(Sink()):
        work()
    assert titles == ["outer <b>", "inner"]
    assert capsys.readouterr() == ("", "")


def test_importing_hstree_does_not_import_what_draws():
    program = "import sys, hstree; print({'rich', 'IPython'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")

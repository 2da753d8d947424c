"""Displays that `hstree.progress.enable` chooses from: HTML in notebooks, bars on terminals, lines.

Any thread may report to them. They have the methods of the protocols of `hstree.progress`, which
imports this module when it is asked to.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from html import escape
from threading import RLock
from typing import Any

from rich.console import Console

from hstree._progress_bars import PATIENCE, ProgressBars
from hstree._tables import in_notebook
from hstree._text import duration, printable

#: Seconds between two changes of a notebook's bars.
INTERVAL = 0.2
#: Seconds between two lines of events, and those of a task whose end gets a line.
LINE_PATIENCE, LONG_TASK = 2.0, 10.0


def new_display() -> NotebookBars | TerminalBars | Lines:
    """Return a display for the place where this process writes."""
    if in_notebook():
        return NotebookBars()
    return TerminalBars() if sys.stderr.isatty() else Lines()


class TerminalBars:
    """Bars on standard error while any task runs."""

    def __init__(self) -> None:
        self._bars = ProgressBars(Console(stderr=True))
        self._n_running = 0
        self._lock = RLock()

    def start(self, title: str, total: float | None, unit: str) -> Any:
        """Start to draw a task, with the first also the bars."""
        with self._lock:
            if self._n_running == 0:
                self._bars.start()
            self._n_running += 1
            return self._bars.sink.start(title, total, unit)

    def stop(self, task: Any) -> None:
        """Stop drawing a task, with the last also the bars."""
        with self._lock:
            self._bars.sink.stop(task)
            self._n_running -= 1
            if self._n_running == 0:
                self._bars.stop()

    def report(self, text: str, left: float | None) -> None:
        """Show nothing: the bars tell as much."""


@dataclass(eq=False)
class _Running:
    """A running task of a notebook or a log."""

    display: _Tasks
    title: str
    total: float | None
    unit: str
    done: float = 0
    text: str = ""
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float:
        """Seconds that are left of a task of planned seconds, at the pace so far."""
        left = max((self.total or 0.0) - self.done, 0.0)
        return left * (self.seconds / self.done if self.done else 1.0)

    def advance(self, amount: float = 1) -> None:
        self.done += amount
        self.display.changed()

    def note(self, text: str) -> None:
        self.text = text
        self.display.changed()


class _Tasks:
    """The running tasks of a display."""

    def __init__(self) -> None:
        self._running: list[_Running] = []
        self._lock = RLock()

    def start(self, title: str, total: float | None, unit: str) -> _Running:
        """Start to show a task."""
        with self._lock:
            self._running.append(_Running(self, title, total, unit))
            return self._running[-1]

    def changed(self) -> None:
        """Show what has changed; by default nothing before the task is done."""


class NotebookBars(_Tasks):
    """Bars of the running tasks below a notebook's cell; they are gone when all are done."""

    def __init__(self) -> None:
        super().__init__()
        self._handle: Any = None  # of the cell's output
        self._drawn = 0.0

    def stop(self, task: Any) -> None:
        """Stop showing a task."""
        with self._lock:
            self._running.remove(task)
            if not self._running and self._handle is not None:
                self._show("")
                self._handle = None

    def report(self, text: str, left: float | None) -> None:
        """Show nothing: the bars tell as much."""

    def changed(self) -> None:
        """Draw the bars of the tasks that have lasted long enough, unless that was just done."""
        with self._lock:
            now = time.monotonic()
            if now - self._drawn < INTERVAL:
                return
            self._drawn = now
            if bars := [_html_bar(task) for task in self._running if task.seconds > PATIENCE]:
                self._show("".join(bars))

    def _show(self, html: str) -> None:
        ipython = sys.modules["IPython"].display
        if self._handle is None:
            self._handle = ipython.display(ipython.HTML(html), display_id=True)
        else:
            self._handle.update(ipython.HTML(html))


class Lines(_Tasks):
    """Lines on standard error: of each epoch, with the time left, and of each task that is done."""

    def __init__(self) -> None:
        super().__init__()
        self._last = time.monotonic()

    def stop(self, task: Any) -> None:
        """Write the line of a task that took long; those of text have events."""
        with self._lock:
            self._running.remove(task)
            if task.seconds > LONG_TASK and task.unit not in ("tokens", "s"):
                noted = f"{task.text}, " if task.text else ""
                self._print(f"{task.title}: {noted}{task.seconds:.1f} s")

    def report(self, text: str, left: float | None) -> None:
        """Write the line of an event, unless the last line is newer than `LINE_PATIENCE`."""
        with self._lock:
            if time.monotonic() - self._last < LINE_PATIENCE:
                return
            planned = [task for task in self._running if task.unit == "s"]
            if planned:
                left = planned[0].seconds_left
            of_rows = [task.text for task in planned if task.text]
            self._print(", ".join([*of_rows, text, *([f"{duration(left)} left"] if left else [])]))

    def _print(self, line: str) -> None:
        self._last = time.monotonic()
        print(printable(line), file=sys.stderr, flush=True)


def _html_bar(task: _Running) -> str:
    amount, share = "", ""
    if task.total:
        amount, share = f' value="{task.done}" max="{task.total}"', f"{task.done / task.total:.0%}"
    return (
        f"<div><progress{amount}></progress> {escape(task.title)} {share} {escape(task.text)}</div>"
    )

"""Progress reports of long-running work.

The library reports to a display, which by default shows nothing. `enable` shows progress in
notebooks and scripts, as the command line does::

    hstree.progress.enable()

    with progress.task("reading", total=size, unit="bytes") as task:
        for block in blocks:
            task.advance(len(block))
            task.note("12,345 words")
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Task(Protocol):
    """A running task."""

    def advance(self, amount: float = 1) -> None:
        """Report that `amount` more units are done."""

    def note(self, text: str) -> None:
        """Show a short text beside the bar, such as a running perplexity."""


class Display(Protocol):
    """Where progress is shown."""

    def start(self, title: str, total: float | None, unit: str) -> Task:
        """Start to show a task of `total` units; None if unknown."""

    def stop(self, task: Task) -> None:
        """Stop showing a task."""

    def report(self, text: str, left: float | None) -> None:
        """Show an event, and the seconds that are left of the work that it is part of, if known."""


class _Silent:
    """A display that shows nothing, and its task."""

    def start(self, title: str, total: float | None, unit: str) -> Task:
        return self

    def stop(self, task: Task) -> None:
        pass

    def report(self, text: str, left: float | None) -> None:
        pass

    def advance(self, amount: float = 1) -> None:
        pass

    def note(self, text: str) -> None:
        pass


#: The display of all threads where no `shown_by` is running.
_enabled: Display = _Silent()
_display: ContextVar[Display | None] = ContextVar("hstree progress", default=None)


def enable() -> None:
    """Show the progress of all tasks from now on, until `disable`.

    A notebook with ipywidgets shows a bar for each running task below its cell. A script draws them
    on standard error where that is a terminal; elsewhere there is a line for each epoch, with the
    time left, and for each other task that is done. Tasks of less than half a second are not shown.
    """
    from hstree._displays import new_display

    global _enabled
    _enabled = new_display()


def disable() -> None:
    """Show no progress; undoes `enable`."""
    global _enabled
    _enabled = _Silent()


@contextmanager
def task(title: str, total: float | None = None, unit: str = "") -> Iterator[Task]:
    """Report a task of `total` units (None if unknown) while the body runs."""
    display = _display.get() or _enabled
    running = display.start(title, total, unit)
    try:
        yield running
    finally:
        display.stop(running)


@contextmanager
def shown_by(display: Display) -> Iterator[None]:
    """Send all progress reports of the body to a display."""
    token = _display.set(display)
    try:
        yield
    finally:
        _display.reset(token)


def report(text: str, left: float | None = None) -> None:
    """Report an event, such as the end of an epoch, and the seconds that are left, if known."""
    (_display.get() or _enabled).report(text, left)


@contextmanager
def counted(task: Task, total: float, per_token: float) -> Iterator[None]:
    """Advance a task with the tokens that tasks of the body report.

    Parameters
    ----------
    task : Task
    total : float
        Units that the body adds to `task`; what is left of them is added at its end.
    per_token : float
        Units of each token.
    """
    counting = _Counting((_display.get() or _enabled), task, total, per_token)
    with shown_by(counting):
        yield
    counting.add(total)


class _Counting:
    """Display that passes everything on, and adds tokens to a task up to a total."""

    def __init__(self, display: Display, task: Task, total: float, per_token: float) -> None:
        self._shown_by, self._task, self._left, self._per_token = display, task, total, per_token

    def add(self, amount: float) -> None:
        amount = min(amount, self._left)
        self._left -= amount
        self._task.advance(amount)

    def start(self, title: str, total: float | None, unit: str) -> Task:
        shown = self._shown_by.start(title, total, unit)
        return _Counted(shown, self, self._per_token if unit == "tokens" else 0.0)

    def stop(self, task: Task) -> None:
        self._shown_by.stop(task.shown if isinstance(task, _Counted) else task)

    def report(self, text: str, left: float | None) -> None:
        self._shown_by.report(text, left)


class _Counted:
    """Task whose units are added to another."""

    def __init__(self, shown: Task, to: _Counting, per_unit: float) -> None:
        self.shown, self._to, self._per_unit = shown, to, per_unit

    def advance(self, amount: float = 1) -> None:
        self.shown.advance(amount)
        self._to.add(amount * self._per_unit)

    def note(self, text: str) -> None:
        self.shown.note(text)

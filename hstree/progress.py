"""Progress reports of long-running work.

The library reports to a display, which by default shows nothing. `enable` shows progress in
notebooks and scripts, as the command line does::

    hstree.progress.enable()

    with progress.task("reading", total=size, unit="bytes") as task:
        for block in blocks:
            task.advance(len(block))
            task.note("12,345 words")
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any, Protocol


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

    def say(self, text: str) -> None:
        """Show a line that stays, whatever else is shown."""


class Silent:
    """A display that shows nothing, and its task."""

    def start(self, *_: object, **__: object) -> Any:
        """Show nothing."""
        return self

    stop = advance = note = report = say = start


#: The display of all threads where no `shown_by` is running.
_enabled: Display = Silent()
_display: ContextVar[Display | None] = ContextVar("hstree progress", default=None)


def enable() -> None:
    """Show the progress of all tasks from now on, until `disable`.

    A notebook with ipywidgets shows a bar for each running task below its cell, a script draws them
    on a terminal; elsewhere there is a line for each epoch and each other long task that is done.
    """
    from rich.console import Console

    from hstree._displays import Bars, Lines
    from hstree._text import in_notebook

    global _enabled
    if in_notebook():  # where Rich draws through ipywidgets
        _enabled = Bars(Console(force_jupyter=True)) if find_spec("ipywidgets") else Lines()
    else:
        _enabled = Bars(Console(stderr=True)) if sys.stderr.isatty() else Lines()


def disable() -> None:
    """Show no progress; undoes `enable`."""
    global _enabled
    _enabled = Silent()


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


def say(text: str) -> None:
    """Show a line that stays, such as why a first call takes long."""
    (_display.get() or _enabled).say(text)

"""Progress reports of long-running work.

The library reports progress to a display, which shows nothing by default. `enable` shows progress
in notebooks and scripts, as on the command line::

    hstree.progress.enable()

    with progress.task("reading", total=size, unit="bytes") as task:
        for block in blocks:
            task.advance(len(block))
            task.note("12,345 words")
"""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any, Protocol


class Task(Protocol):
    """Reports of progress from a running task."""

    def advance(self, amount: float = 1) -> None:
        """Report that `amount` more units are done."""

    def note(self, text: str) -> None:
        """Show a short text beside the bar, such as a running perplexity."""


class Display(Protocol):
    """A display of progress."""

    def task(self, title: str, total: float | None, unit: str) -> AbstractContextManager[Task]:
        """Show a task of `total` units (None if unknown) while the body runs.

        A task whose unit is seconds advances by itself.
        """

    def report(self, text: str, left: float | None) -> None:
        """Show an event, and the remaining seconds of its task, if known."""

    def say(self, text: str) -> None:
        """Show a permanent line."""


class Silent:
    """A display that shows nothing; it is also its task."""

    def task(self, *_: object, **__: object) -> Any:
        """Show nothing."""
        return nullcontext(self)

    advance = note = report = say = task


#: The display of all threads outside `shown_by`.
_enabled: Display = Silent()
_display: ContextVar[Display | None] = ContextVar("hstree progress", default=None)


def enable() -> None:
    """Show the progress of all tasks from now on, until `disable`.

    A notebook with ipywidgets shows a bar per running task below the cell, and a script draws bars
    on a terminal. Elsewhere, there is a line per epoch and per finished long task.
    """
    from rich.console import Console

    from hstree._displays import Bars, Lines
    from hstree._text import in_notebook

    global _enabled
    if in_notebook():  # Rich draws with ipywidgets
        _enabled = Bars(Console(force_jupyter=True)) if find_spec("ipywidgets") else Lines()
    else:
        _enabled = Bars(Console(stderr=True)) if sys.stderr.isatty() else Lines()


def disable() -> None:
    """Show no progress; revert `enable`."""
    global _enabled
    _enabled = Silent()


def task(title: str, total: float | None = None, unit: str = "") -> AbstractContextManager[Task]:
    """Report a task of `total` units (None if unknown) while the body runs."""
    return (_display.get() or _enabled).task(title, total, unit)


@contextmanager
def shown_by(display: Display) -> Iterator[None]:
    """Send all progress reports of the body to a display."""
    # Only in this context: other threads and tasks keep their display
    token = _display.set(display)
    try:
        yield
    finally:
        _display.reset(token)


def report(text: str, left: float | None = None) -> None:
    """Report an event, such as the end of an epoch, and the remaining seconds, if known."""
    (_display.get() or _enabled).report(text, left)


def say(text: str) -> None:
    """Show a line that stays visible, such as the reason why a first call takes long."""
    (_display.get() or _enabled).say(text)

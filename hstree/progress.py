"""Progress of anything that may take longer than two seconds.

The library reports, the program that runs it decides what to show. By default nothing is
shown; the command line installs a sink that draws a bar on standard error when that is a
terminal::

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
    """One running piece of work."""

    def advance(self, amount: float = 1) -> None:
        """Say that `amount` more units are done."""

    def note(self, text: str) -> None:
        """Show a short figure beside the bar (a running perplexity, a count)."""


class Sink(Protocol):
    """Whatever shows progress."""

    def start(self, title: str, total: float | None, unit: str) -> Task:
        """Begin to show a task."""

    def stop(self, task: Task) -> None:
        """Take the task away again."""


class _Silent:
    def start(self, title: str, total: float | None, unit: str) -> Task:
        return self

    def stop(self, task: Task) -> None:
        pass

    def advance(self, amount: float = 1) -> None:
        pass

    def note(self, text: str) -> None:
        pass


_sink: ContextVar[Sink] = ContextVar("hstree progress", default=_Silent())  # noqa: B039


@contextmanager
def task(title: str, total: float | None = None, unit: str = "") -> Iterator[Task]:
    """Report a piece of work of `total` units (None: unknown) while the body runs."""
    sink = _sink.get()
    running = sink.start(title, total, unit)
    try:
        yield running
    finally:
        sink.stop(running)


@contextmanager
def shown_by(sink: Sink) -> Iterator[None]:
    """Send all progress inside the body to `sink`."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)

"""Progress reports of long-running work.

The library reports to a sink, which by default shows nothing; the command line installs one that
draws progress bars::

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


class Sink(Protocol):
    """Display of progress."""

    def start(self, title: str, total: float | None, unit: str) -> Task:
        """Start to display a task of `total` units; None if unknown."""

    def stop(self, task: Task) -> None:
        """Stop displaying a task."""


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
    """Report a task of `total` units (None if unknown) while the body runs."""
    sink = _sink.get()
    running = sink.start(title, total, unit)
    try:
        yield running
    finally:
        sink.stop(running)


@contextmanager
def shown_by(sink: Sink) -> Iterator[None]:
    """Send all progress reports of the body to `sink`."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)

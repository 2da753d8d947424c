"""The library's progress, drawn on standard error: what, how far, how fast, how long still.

Only where standard error is a terminal, and only for what takes longer than a moment.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Task as RichTask
from rich.table import Column, Table
from rich.text import Text

from hstree.progress import Task, shown_by
from hstree_cli.console import Output

#: Seconds that a task lasts before it is drawn.
PATIENCE = 0.5


@contextmanager
def showing_progress(quiet: bool = False) -> Iterator[None]:
    """Draw the progress of whatever runs inside the body."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    bars = _Bars(
        TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(max_width=24, no_wrap=True, overflow="ellipsis"),
        ),
        BarColumn(bar_width=16),
        _Done(),
        _Rate(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}", markup=False),
        console=Output(stderr=True),
        transient=True,
        # Rich would send results to where the bars are, whatever standard output is.
        redirect_stdout=False,
    )
    with bars, shown_by(_Sink(bars)):
        yield


class _Bars(Progress):
    """Progress bars of the tasks that have lasted a moment."""

    def make_tasks_table(self, tasks: Iterable[RichTask]) -> Table:
        return super().make_tasks_table([t for t in tasks if (t.elapsed or 0) > PATIENCE])


class _Done(ProgressColumn):
    """How much of the whole is done, where that is known."""

    def render(self, task: RichTask) -> Text:
        return Text("" if task.total is None else f"{task.percentage:>3.0f}%")


class _Rate(ProgressColumn):
    """Units a second."""

    def render(self, task: RichTask) -> Text:
        speed, unit = task.speed, task.fields["unit"]
        if not speed or not unit:
            return Text("")
        if unit == "bytes":
            return Text(f"{speed / 1e6:,.1f} MB/s")
        return Text(f"{speed:,.0f} {unit}/s")


class _Running:
    """One task of the library, drawn as a bar."""

    def __init__(self, bars: Progress, title: str, total: float | None, unit: str) -> None:
        self._bars = bars
        self.id = bars.add_task(title, total=total, unit=unit, note="")

    def advance(self, amount: float = 1) -> None:
        self._bars.advance(self.id, amount)

    def note(self, text: str) -> None:
        self._bars.update(self.id, note=text)


class _Sink:
    def __init__(self, bars: Progress) -> None:
        self._bars = bars

    def start(self, title: str, total: float | None, unit: str) -> Task:
        return _Running(self._bars, title, total, unit)

    def stop(self, task: Task) -> None:
        if isinstance(task, _Running):
            self._bars.remove_task(task.id)

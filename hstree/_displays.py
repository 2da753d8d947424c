"""Displays of progress, drawn by Rich: bars in notebooks and on terminals, lines elsewhere.

Any thread may report to them. `hstree.progress` imports this module when it is asked to.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from threading import RLock
from typing import Any

from rich import progress as rich
from rich.console import Console
from rich.filesize import decimal
from rich.table import Column, Table
from rich.text import Text

from hstree._text import duration, printable

#: Seconds that a task lasts before it is drawn, between two lines of events, and of a task whose
#: end gets a line.
PATIENCE, LINE_PATIENCE, LONG_TASK = 0.5, 2.0, 10.0


@dataclass(eq=False)
class _Running:
    """A task that Rich counts."""

    bars: rich.Progress
    id: rich.TaskID

    def advance(self, amount: float = 1) -> None:
        self.bars.advance(self.id, amount)

    def note(self, text: str) -> None:
        self.bars.update(self.id, note=text)


class Bars:
    """Bars of the running tasks; they are gone when all are done."""

    def __init__(self, console: Console) -> None:
        self._console, self._lock = console, RLock()
        self._running: list[_Running] = []

    def start(self, title: str, total: float | None, unit: str) -> _Running:
        """Start to draw a task, with the first also the bars, which are below the present cell."""
        with self._lock:
            bars = self._running[0].bars if self._running else _Progress(self._console)
            task = bars.add_task(title, total=total, unit=unit, note="")
            self._running.append(_Running(bars, task))
            bars.start()
            return self._running[-1]

    def stop(self, task: Any) -> None:
        """Stop drawing a task, with the last also the bars."""
        with self._lock:
            self._running.remove(task)
            task.bars.remove_task(task.id)
            if not self._running:
                task.bars.stop()

    def report(self, text: str, left: float | None) -> None:
        """Show nothing: the bars tell as much."""


class _Progress(rich.Progress):
    """What, how far, how fast, how long still; only of tasks that have lasted long enough."""

    def __init__(self, console: Console) -> None:
        title = Column(max_width=24, no_wrap=True, overflow="ellipsis")
        super().__init__(
            rich.TextColumn("{task.description}", markup=False, table_column=title),
            rich.BarColumn(bar_width=16),
            rich.TaskProgressColumn("{task.percentage:>3.0f}%"),
            _Rate(),
            rich.TimeRemainingColumn(compact=True),
            rich.TextColumn("{task.fields[note]}", markup=False),
            console=console,
            transient=True,
            # Rich would send results to where the bars are, whatever standard output is.
            redirect_stdout=False,
        )

    def make_tasks_table(self, tasks: Iterable[rich.Task]) -> Table:
        return super().make_tasks_table([t for t in tasks if (t.elapsed or 0) > PATIENCE])


class _Rate(rich.ProgressColumn):
    """Units per second."""

    def render(self, task: rich.Task) -> Text:
        speed, unit = task.speed, task.fields["unit"]
        if not speed or unit in ("", "s"):
            return Text("")
        return Text(f"{decimal(int(speed)) if unit == 'bytes' else f'{speed:,.0f} {unit}'}/s")


class Lines:
    """Lines on standard error: of each epoch, with the time left, and of each task that is done."""

    def __init__(self) -> None:
        self._tasks, self._lock = rich.Progress(disable=True), RLock()
        self._last = time.monotonic()

    def start(self, title: str, total: float | None, unit: str) -> _Running:
        """Start to count a task."""
        task = self._tasks.add_task(title, total=total, unit=unit, note="")
        return _Running(self._tasks, task)

    def stop(self, task: Any) -> None:
        """Write the line of a task that took long; those of text have events."""
        with self._lock:
            state = next(one for one in self._tasks.tasks if one.id == task.id)
            self._tasks.remove_task(task.id)
            seconds, note = state.elapsed or 0.0, state.fields["note"]
            if seconds > LONG_TASK and state.fields["unit"] not in ("tokens", "s"):
                self._last = time.monotonic()
                line = f"{state.description}: {f'{note}, ' if note else ''}{seconds:.1f} s"
                print(printable(line), file=sys.stderr, flush=True)

    def report(self, text: str, left: float | None) -> None:
        """Write the line of an event, unless the last line is newer than `LINE_PATIENCE`."""
        with self._lock:
            if time.monotonic() - self._last < LINE_PATIENCE:
                return
            planned = [task for task in self._tasks.tasks if task.fields["unit"] == "s"]
            if planned:  # at the pace so far
                whole = planned[0]
                pace = (whole.elapsed or 0.0) / whole.completed if whole.completed else 1.0
                left = max(whole.remaining or 0.0, 0.0) * pace
            of_rows = [task.fields["note"] for task in planned if task.fields["note"]]
            line = ", ".join([*of_rows, text, *([f"{duration(left)} left"] if left else [])])
            self._last = time.monotonic()
            print(printable(line), file=sys.stderr, flush=True)

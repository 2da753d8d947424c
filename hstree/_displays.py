"""Displays of progress with Rich: bars in notebooks and on terminals, lines elsewhere.

All threads can report to them. `hstree.progress` imports this module only if it is needed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import RLock

from rich import progress as rich
from rich.console import Console
from rich.filesize import decimal
from rich.table import Column, Table
from rich.text import Text

from hstree._text import duration, printable

#: Seconds after which a running task is drawn.
PATIENCE = 0.5
#: Minimum number of seconds between two lines of events.
LINE_PATIENCE = 2.0
#: Minimum number of seconds of a task whose end is printed.
LONG_TASK = 10.0
#: Units of tasks that report events, so that their end is not printed.
WITH_EVENTS = {"tokens", "candidates", "jobs", "kernels", "seconds"}
#: Minimum width of a terminal for bars and speeds, in columns.
WIDE = 80


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
    """Bars of running tasks, which disappear when all tasks are done."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = RLock()
        self._running: list[_Running] = []

    @contextmanager
    def task(self, title: str, total: float | None, unit: str) -> Iterator[_Running]:
        """Draw a task below the bars of the other running tasks."""
        with self._lock:
            # A notebook shows the bars of a `rich.Progress` only until it stops
            bars = self._running[0].bars if self._running else _Progress(self._console)
            task = _Running(bars, bars.add_task(title, total=total, unit=unit, note=""))
            self._running.append(task)
            bars.start()
        try:
            yield task
        finally:
            with self._lock:
                self._running.remove(task)
                bars.remove_task(task.id)
                if not self._running:
                    bars.stop()

    def report(self, text: str, left: float | None) -> None:
        """Show nothing, because the bars already show the progress."""

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self._console.print(text, markup=False, highlight=False)


class _Progress(rich.Progress):
    """Title, bar, speed and remaining time of tasks that have run for `PATIENCE` seconds."""

    def __init__(self, console: Console) -> None:
        title = Column(max_width=24, no_wrap=True, overflow="ellipsis")
        super().__init__(
            rich.TextColumn("{task.description}", markup=False, table_column=title),
            _Advance(is_narrow=console.width < WIDE),
            rich.TextColumn("{task.fields[note]}", markup=False),
            console=console,
            transient=True,
            # Rich would send results to the stream of the bars, even if standard output is another.
            redirect_stdout=False,
        )

    def make_tasks_table(self, tasks: Iterable[rich.Task]) -> Table:
        return super().make_tasks_table([t for t in tasks if (t.elapsed or 0) > PATIENCE])


def _time_left(task: rich.Task) -> str:
    """Return the remaining and the total time of a task whose unit is seconds."""
    total = task.total or 0.0
    return f"{duration(max(total - (task.elapsed or 0.0), 0.0))} left of {duration(total)}"


class _Advance(rich.ProgressColumn):
    """A bar with the percentage, the speed and the remaining time.

    Before the first progress, only the elapsed time is shown. A narrow terminal has no bar and no
    speed.
    """

    bar = rich.BarColumn(bar_width=10)
    percentage = rich.TaskProgressColumn("{task.percentage:>3.0f}%")
    left = rich.TimeRemainingColumn(compact=True)

    def __init__(self, *, is_narrow: bool) -> None:
        super().__init__()
        self.is_narrow = is_narrow

    def render(self, task: rich.Task) -> Text | Table:
        speed = task.speed
        unit = task.fields["unit"]
        rate = ""
        if unit == "seconds":
            return Text(_time_left(task))
        # Candidates take different times, so their number per second is not shown
        if speed and unit not in ("", "candidates"):
            rate = f"{decimal(int(speed)) if unit == 'bytes' else f'{speed:,.0f} {unit}'}/s"
        # Without a total there is no bar to fill
        if not task.total or not task.completed:
            return Text(f"{task.elapsed or 0:.0f} s {'' if self.is_narrow else rate}")
        cells = Table.grid(padding=(0, 1))
        left = self.left.render(task) if task.time_remaining is not None else ""
        percentage = self.percentage.render(task)
        if self.is_narrow:
            cells.add_row(percentage, left)
        else:
            cells.add_row(self.bar.render(task), percentage, rate, left)
        return cells


@dataclass(eq=False)
class Lines:
    """Lines on standard error: one per epoch, with the remaining time, and one per long task."""

    _tasks: rich.Progress = field(default_factory=partial(rich.Progress, disable=True))
    _lock: RLock = field(default_factory=RLock)
    _last: float = field(default_factory=time.monotonic)  #: when the last line was written

    @contextmanager
    def task(self, title: str, total: float | None, unit: str) -> Iterator[_Running]:
        """Count a task; print a line at its end if it took long and reports no events."""
        task = _Running(self._tasks, self._tasks.add_task(title, total=total, unit=unit, note=""))
        try:
            yield task
        finally:
            with self._lock:
                state = next(known for known in self._tasks.tasks if known.id == task.id)
                self._tasks.remove_task(task.id)
                seconds = state.elapsed or 0.0
                note = state.fields["note"]
                if seconds > LONG_TASK and unit not in WITH_EVENTS:
                    self._last = time.monotonic()
                    line = f"{title}: {f'{note}, ' if note else ''}{seconds:.1f} s"
                    print(printable(line), file=sys.stderr, flush=True)

    def report(self, text: str, left: float | None) -> None:
        """Print the line of an event, unless the last line is newer than `LINE_PATIENCE`.

        The line names the round, the candidate and the task of the event. With a time limit, the
        remaining time is that of all candidates.
        """
        with self._lock:
            if time.monotonic() - self._last < LINE_PATIENCE:
                return
            # Running tasks: rounds of halving or stages, candidates, and others
            tasks = self._tasks.tasks
            candidates = [task for task in tasks if task.fields["unit"] == "candidates"]
            rounds = [task for task in tasks if task.fields["unit"] == "jobs"] + candidates
            where = []
            events = [text]
            end = f"{duration(left)} left" if left else ""
            for task in rounds[:1]:
                where += [] if task.description == "candidates" else [task.description]
                if task.fields["unit"] == "candidates" and task.total:
                    where.append(f"candidate {task.completed + 1:.0f} of {task.total:.0f}")
                    end += " for this candidate" if left and task.total > 1 else ""
            # The candidate, or the input that is made for it
            for task in candidates[-1:]:
                events.insert(0, task.fields["note"] or task.description)
            # With a time limit of all candidates, the remaining time
            for task in tasks:
                if task.fields["unit"] == "seconds":
                    end = _time_left(task)
            line = ", ".join(filter(None, [*events, end]))
            line = f"{', '.join(where)}: {line}" if where else line
            self._last = time.monotonic()
            print(printable(line), file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Write a line."""
        print(printable(text), file=sys.stderr, flush=True)

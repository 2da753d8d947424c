"""Progress bars on standard error: title, share done, rate and remaining time.

Only tasks that last longer than `PATIENCE` are drawn.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich import progress
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

#: Seconds that a task lasts before it is drawn.
PATIENCE = 0.5


class ProgressBars(progress.Progress):
    """Bars of the library's running tasks; `sink` is what the library reports to."""

    def __init__(self, console: Console) -> None:
        title = Column(max_width=24, no_wrap=True, overflow="ellipsis")
        super().__init__(
            progress.TextColumn("{task.description}", markup=False, table_column=title),
            progress.BarColumn(bar_width=16),
            progress.TaskProgressColumn("{task.percentage:>3.0f}%"),
            _Rate(),
            progress.TimeRemainingColumn(compact=True),
            progress.TextColumn("{task.fields[note]}", markup=False),
            console=console,
            transient=True,
            # Rich would send results to where the bars are, whatever standard output is.
            redirect_stdout=False,
        )
        self.sink = _Sink(self)

    def make_tasks_table(self, tasks: Iterable[progress.Task]) -> Table:
        """Return the bars of the tasks that have lasted long enough."""
        return super().make_tasks_table([t for t in tasks if (t.elapsed or 0) > PATIENCE])


class _Rate(progress.ProgressColumn):
    """Units per second."""

    def render(self, task: progress.Task) -> Text:
        speed, unit = task.speed, task.fields["unit"]
        if not speed or unit in ("", "s"):
            return Text("")
        if unit == "bytes":
            return Text(f"{speed / 1e6:,.1f} MB/s")
        return Text(f"{speed:,.0f} {unit}/s")


class _Running:
    """A task of the library and its bar."""

    def __init__(self, bars: progress.Progress, title: str, total: float | None, unit: str) -> None:
        self._bars = bars
        self.id = bars.add_task(title, total=total, unit=unit, note="")

    def advance(self, amount: float = 1) -> None:
        self._bars.advance(self.id, amount)

    def note(self, text: str) -> None:
        self._bars.update(self.id, note=text)


class _Sink:
    """Receiver of the library's progress reports."""

    def __init__(self, bars: progress.Progress) -> None:
        self._bars = bars

    def start(self, title: str, total: float | None, unit: str) -> _Running:
        return _Running(self._bars, title, total, unit)

    def stop(self, task: object) -> None:
        if isinstance(task, _Running):
            self._bars.remove_task(task.id)

    def report(self, text: str, left: float | None) -> None:
        """Show nothing: the bars tell as much."""

"""Results on standard output; errors, warnings and progress on standard error.

Words of a corpus are never read as markup, and control characters are escaped.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

#: Exit statuses; 0 is success. A file cannot be read, used or written.
BAD_INPUT = 1
#: An option or argument is unknown, or cannot have its value.
WRONG_USAGE = 2
#: Ctrl-C or SIGTERM.
INTERRUPTED = 130

_is_quiet = ContextVar("hstree quiet", default=False)


def printable(text: str, keep: str = "") -> str:
    """Escape control characters as `hstree._text.printable` does.

    Every command imports this module, so that help pages wait for it: functions import the library.
    """
    from hstree._text import printable

    return printable(text, keep)


def complain(message: str) -> None:
    """Print an error as one line on standard error, with commands for the functions it names."""
    line = re.sub(r"`hstree\.(bootstrap|build|compare|evaluate)`", r"`hstree \1`", message)
    line = " ".join(line.split())
    print(f"hstree: error: {printable(line)}", file=sys.stderr)


def warn(message: str) -> None:
    """Print a warning as one line on standard error."""
    print(f"hstree: warning: {printable(' '.join(message.split()))}", file=sys.stderr)


def note(message: str) -> None:
    """Print what a command has chosen by itself as one line on standard error."""
    print(f"hstree: {printable(' '.join(message.split()))}", file=sys.stderr)


@contextmanager
def tracebacks(wanted: bool) -> Iterator[None]:
    """Print the traceback of an error that the body raises, if `wanted`."""
    try:
        yield
    except Exception as error:
        if wanted and not isinstance(error, BrokenPipeError):
            from hstree.errors import HstreeError

            if isinstance(error, HstreeError | OSError | MemoryError):
                sys.stderr.write(printable(traceback.format_exc(), keep="\n"))
        raise


@contextmanager
def limited_threads(number: int | None) -> Iterator[None]:
    """Compute in at most so many threads while the body runs; None changes nothing.

    The libraries that compute are loaded later, and read the environment variable.
    """
    before = os.environ.get("OMP_NUM_THREADS")
    if number is not None:
        os.environ["OMP_NUM_THREADS"] = str(number)
    try:
        yield
    finally:
        os.environ.pop("OMP_NUM_THREADS", None)
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before


class Output(Console):
    """A console that escapes control characters of texts and raises `BrokenPipeError`."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render with the control characters of every text escaped."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else printable(segment.text, keep="\n")
            yield Segment(text, segment.style, segment.control)

    def on_broken_pipe(self) -> None:
        """Raise the error, where Rich would end the program."""
        raise BrokenPipeError


def console() -> Console:
    """Return standard output as a Rich console: 80 columns wide where it is no terminal."""
    return Output(markup=False, highlight=False, emoji=False)


def say(result: RenderableType) -> None:
    """Print a result on standard output."""
    console().print(result, crop=False)


@contextmanager
def quiet(wanted: bool) -> Iterator[None]:
    """Show no progress while the body runs, if `wanted`."""
    token = _is_quiet.set(wanted)
    try:
        yield
    finally:
        _is_quiet.reset(token)


@contextmanager
def showing_progress(wanted: bool = True) -> Iterator[None]:
    """Show the library's progress while the body runs, unless in `quiet`: bars, or lines."""
    if _is_quiet.get() or not wanted:
        yield
        return
    from hstree._displays import new_display
    from hstree.progress import shown_by

    with shown_by(new_display(Output(stderr=True))):
        yield


@contextmanager
def showing_training() -> Iterator[None]:
    """Show progress; say so, too, when Ctrl-C waits for the end of a long step of a training."""
    from hstree.training.interrupts import telling

    text = "interrupted: the training ends after the batch that is being computed"
    with telling(lambda: warn(text)), showing_progress():
        yield


@contextmanager
def going_on_in(folder: Path) -> Iterator[None]:
    """Train in a folder from which the same command goes on after Ctrl-C."""
    try:
        with showing_training():
            yield
    except KeyboardInterrupt:
        complain(
            f"interrupted; every finished run is kept in {folder}, and the same command goes on "
            "from there"
        )
        raise typer.Exit(INTERRUPTED) from None

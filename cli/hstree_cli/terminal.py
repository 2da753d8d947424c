"""Results on standard output; errors, warnings and progress on standard error.

Words of a corpus are never interpreted as markup, and control characters are escaped.
"""

import os
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

#: Exit status if a file cannot be read, used or written.
BAD_INPUT = 1
#: Exit status if an option or argument is unknown or has a wrong value.
WRONG_USAGE = 2
#: Exit status after Ctrl-C or SIGTERM.
INTERRUPTED = 130

_is_quiet = ContextVar("hstree quiet", default=False)


def printable(text: str, keep: str = "") -> str:
    """Escape control characters as `hstree._text.printable` does.

    The library is imported only for texts with control characters: the import would delay help
    pages, and after Ctrl-C during the import of NumPy, NumPy cannot be imported again.
    """
    if text.isprintable():
        return text
    from hstree._text import printable

    return printable(text, keep)


def warn(message: str, kind: str = "warning: ") -> None:
    """Print a message as one line on standard error, by default as a warning."""
    sys.stderr.write(f"hstree: {kind}{printable(' '.join(message.split()))}\n")


def complain(message: str) -> None:
    """Print an error as one line on standard error."""
    warn(message, "error: ")


@contextmanager
def running(*, threads: int | None, quiet: bool, debug: bool) -> Iterator[None]:
    """Run the body with the options of the program.

    The body uses at most `threads` threads: numerical libraries are loaded later and read the
    environment variable. If `quiet`, no progress is shown. If `debug`, the traceback of an error is
    printed. Warnings of the library are printed as warnings of the program.
    """
    token = _is_quiet.set(quiet)
    show_by_default = warnings.showwarning

    def show_as_line(
        message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any
    ) -> None:
        # Other warnings, such as deprecations, are for developers
        if issubclass(category, UserWarning):
            warn(str(message))
        else:
            show_by_default(message, category, *args, **kwargs)

    warnings.showwarning = show_as_line
    if threads is not None:
        os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        yield
    except Exception as error:
        if debug and not isinstance(error, BrokenPipeError):
            from hstree.errors import HstreeError

            # Python prints the traceback of every other error
            if isinstance(error, HstreeError | OSError | MemoryError):
                sys.stderr.write(printable(traceback.format_exc(), keep="\n"))
        raise
    finally:
        warnings.showwarning = show_by_default
        _is_quiet.reset(token)


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
        """Raise the error; Rich would end the program."""
        raise BrokenPipeError


def say(result: RenderableType) -> None:
    """Print a result on standard output, 80 columns wide unless it is a terminal."""
    Output(markup=False, highlight=False, emoji=False).print(result, crop=False)


@contextmanager
def showing_progress(
    *,
    folder: Path | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
) -> Iterator[None]:
    """Show the progress of the body as bars or lines, unless the program is quiet.

    After Ctrl-C, the error states that the work in `folder` can be continued. The body runs `jobs`
    jobs in parallel, or runs them on the cluster of a `scheduler`.
    """
    with ExitStack() as stack:
        if not _is_quiet.get():
            from hstree._displays import Bars, Lines
            from hstree.progress import shown_by

            display = Bars(Output(stderr=True)) if sys.stderr.isatty() else Lines()
            stack.enter_context(shown_by(display))
        if jobs is not None or scheduler is not None:
            from hstree._parallel import doing_jobs

            stack.enter_context(doing_jobs(jobs, scheduler))
        try:
            yield
        except KeyboardInterrupt:
            if folder is None:
                raise
            complain(
                f"interrupted; finished runs are kept in {folder}, and the same command continues "
                "the work"
            )
            raise typer.Exit(INTERRUPTED) from None

"""What a command prints on standard output: its results.

Tables fit the terminal, 80 columns where there is none. Words of a corpus are printed as they
are, never read as markup.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from hstree_cli.messages import printable


class Output(Console):
    """A console on which nothing but Rich itself moves the cursor or changes colours.

    A closed pipe is for the caller to deal with.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render with the control characters of every text escaped."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else printable(segment.text, keep="\n")
            yield Segment(text, segment.style, segment.control)

    def on_broken_pipe(self) -> None:
        """Pass the error on, where Rich would end the program."""
        raise BrokenPipeError


def say(what: RenderableType) -> None:
    """Print a result on standard output."""
    console().print(what)


def console() -> Console:
    """Return standard output as rich draws on it."""
    return Output(markup=False, highlight=False, emoji=False)


def table(*columns: str, text: Sequence[str] = ()) -> Table:
    """Return an empty table: figures to the right, the columns named in `text` to the left."""
    empty = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        left = name in text
        empty.add_column(name, justify="left" if left else "right", overflow="fold")
    return empty


def no_wrap(drawn: Table, *columns: str) -> Table:
    """Keep the figures of columns in one piece, however long the names of the rows are."""
    drawn.collapse_padding = True
    for column in drawn.columns:
        column.no_wrap = column.header in columns
    return drawn


def facts(rows: Sequence[tuple[str, str]]) -> str:
    """Return names and what they stand for, side by side, as wide as the terminal at the most."""
    column = max(len(name) for name, _ in rows) + 2
    indent = " " * column
    return "\n".join(
        textwrap.fill(
            printable(value),
            console().width,
            initial_indent=name.ljust(column),
            subsequent_indent=indent,
        )
        for name, value in rows
    )


def figure(value: float | None, digits: int = 2) -> str:
    """Return a figure as people read it; a dash where there is none."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:,.{digits}f}"


def large(value: int | None) -> str:
    """Return a large number in three figures: 51.6k, 2.01M."""
    if value is None:
        return "-"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:#.3g}".rstrip(".") + unit
    return str(value)


def at_limit(epochs: int) -> tuple[str, str]:
    """Return the mark of rows that stopped at the limit of epochs, and what it means."""
    return (
        "*",
        f"stopped at the limit of {count(epochs)} {'epoch' if epochs == 1 else 'epochs'}, before "
        "the validation perplexity had stopped falling: more may lower it",
    )


def count(value: int) -> str:
    """Return a whole number with its thousands apart."""
    return f"{value:,}"


def share(part: float, whole: float) -> str:
    """Return a part of a whole in per cent."""
    return "-" if whole == 0 else f"{100 * part / whole:.2f}%"


def shortened(word: str, width: int = 24) -> str:
    """Return a word of a corpus, shortened and printable."""
    shown = printable(word)
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"

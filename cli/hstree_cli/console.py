"""What a command prints: results on standard output, warnings and errors on standard error.

Tables fit the terminal, 80 columns where there is none. Words of a corpus are printed as they
are, never read as markup.
"""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table


def complain(what: str) -> None:
    """Print an error: one line on standard error."""
    print(f"hstree: error: {printable(' '.join(what.split()))}", file=sys.stderr)


def warn(what: str) -> None:
    """Print a warning: one line on standard error."""
    print(f"hstree: warning: {printable(' '.join(what.split()))}", file=sys.stderr)


def say(what: str | RenderableType) -> None:
    """Print a result on standard output."""
    console().print(what)


def console() -> Console:
    """Return standard output as rich draws on it."""
    from rich.console import Console

    return Console(markup=False, highlight=False, emoji=False)


def table(*columns: str, text: Sequence[str] = ()) -> Table:
    """Return an empty table: figures to the right, the columns named in `text` to the left."""
    from rich import box
    from rich.table import Table

    empty = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        left = name in text
        empty.add_column(name, justify="left" if left else "right", overflow="fold")
    return empty


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


def count(value: int) -> str:
    """Return a whole number with its thousands apart."""
    return f"{value:,}"


def share(part: float, whole: float) -> str:
    """Return a part of a whole in per cent."""
    return "-" if whole == 0 else f"{100 * part / whole:.2f}%"


def printable(text: str) -> str:
    """Return a text with nothing in it that would move the cursor or colour the screen."""
    return text if text.isprintable() else repr(text)[1:-1]


def quoted(word: str, width: int = 24) -> str:
    """Return a word of a corpus, shortened and printable."""
    shown = printable(word)
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"

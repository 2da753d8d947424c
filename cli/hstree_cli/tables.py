"""Tables and lists of names and values.

Every command and every help page imports this module. The library is therefore imported inside
functions.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Group
from rich.table import Table
from rich.text import Text

from hstree_cli.terminal import printable

if TYPE_CHECKING:
    from hstree.data.corpus import Corpus
    from hstree.tree import Tree

#: Names and values, printed one below the other.
Facts = list[tuple[str, str]]
#: Characters between two cells, and total at both edges of a table.
_GAP = 2


def shortened(word: str, width: int = 24) -> str:
    """Return a printable word, shortened to `width` characters."""
    text = printable(word)
    return text if len(text) <= width else f"{text[: width - 1]}…"


# Layout


#: Style of every table.
STYLE: dict[str, Any] = {"box": box.SIMPLE_HEAD, "pad_edge": False, "collapse_padding": True}


def table(
    columns: Sequence[str],
    lines: Sequence[Sequence[str]],
    text: Sequence[str] = (),
    *,
    bold: str | None = None,
    first: Sequence[str] = (),
) -> Group:
    """Return a table of texts whose names and numbers are never broken.

    In a pipe, the table is as wide as necessary, unless ``COLUMNS`` is set. On a narrow terminal,
    it has the columns that fit, preferably those in `first`, and a note lists the other columns.
    The line that begins with `bold` is bold. Columns are right-aligned, except those in `text`.
    """
    is_wrapped = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = shutil.get_terminal_size().columns if is_wrapped else 1 << 16

    full_widths = [max(map(_width, cells)) for cells in zip(columns, *lines, strict=True)]
    # Titles and names can be broken at white space, and an interval can follow on a second line
    broken = [[re.sub(r"\s", "\n", title) for title in columns]]
    for name, *cells in lines:
        broken.append([re.sub(r"\s", "\n", name), *(c.replace(" [", "\n[") for c in cells)])
    min_widths = [max(map(_width, cells)) for cells in zip(*broken, strict=True)]
    full_width = sum(full_widths) + _GAP * len(columns)

    shown = list(range(len(columns)))
    widths = full_widths
    if full_width > width:
        # Add columns while they fit: the names, the columns in `first`, then the others
        ranked = [columns.index(title) for title in first if title in columns]
        left = width
        chosen: list[int] = []
        for i in dict.fromkeys([0, *ranked, *shown]):
            if not chosen or min_widths[i] + _GAP <= left:
                chosen.append(i)
                left -= min_widths[i] + _GAP
        shown = sorted(chosen)
        widths = min_widths
        # The names get the remaining width
        widths[0] = min(full_widths[0], min_widths[0] + max(left, 0))

    # In a pipe, Rich assumes 80 columns, but accepts a wider table
    result = Table(**STYLE, width=None if is_wrapped else full_width)
    for i in shown:
        side: Any = "left" if columns[i] in text else "right"
        result.add_column(columns[i], justify=side, overflow="fold", width=widths[i])
    for line in lines:
        result.add_row(*(line[i] for i in shown), style="bold" if line[0] == bold else None)

    hidden = [" ".join(columns[i].split()) for i in range(len(columns)) if i not in shown]
    note = [Text(f"Columns that do not fit: {'; '.join(hidden)}.")] if hidden else []
    return Group(result, *note)


def _width(text: str) -> int:
    """Return the width of the longest line of a text."""
    return max(cell_len(printable(line)) for line in text.split("\n"))


def facts(rows: Sequence[tuple[str, str]]) -> str:
    """Return names and values in two columns, wrapped at the width of the terminal."""
    column = max(len(name) for name, _ in rows) + 2
    return "\n".join(
        textwrap.fill(
            printable(value),
            shutil.get_terminal_size().columns,
            initial_indent=name.ljust(column),
            subsequent_indent=" " * column,
        )
        for name, value in rows
    )


# Corpora and trees


def origin(corpus: Corpus) -> str:
    """Return the name of a text and its hash."""
    return f"{corpus.name}, sha256 {corpus.sha256[:16]}"


def corpus_facts(corpus: Corpus) -> Facts:
    """Return the sizes of a corpus and of its vocabulary."""
    words = corpus.vocabulary
    tokens = len(corpus)
    return [
        ("text", origin(corpus)),
        ("lines", f"{corpus.n_lines:,}"),
        ("tokens", f"{tokens:,}, including one <eos> per line"),
        ("out of vocabulary", f"{corpus.n_oov:,} ({corpus.n_oov / tokens:.2%})"),
        ("vocabulary", f"{len(words):,} words, sha256 {words.sha256[:16]}"),
    ]


def input_facts(tree: Tree) -> Facts:
    """Return the options of the builder and the input, as recorded in a tree file."""
    rows: Facts = []
    for key, value in tree.meta.items():
        if key not in ("method", "input", "hstree") and (text := _recorded(value)):
            rows.append((key.replace("_", " "), text))
    # The meta of a file may contain any values; only those of the expected form are shown
    source = tree.meta.get("input")
    if isinstance(source, dict):
        name = str(source.get("name", source.get("kind", "-")))
        # The lines of a corpus, or else the hash of the input
        match source.get("lines"), source.get("sha256"):
            case [int(first), int(last)], _:
                name += f", lines {first + 1:,} to {last:,}"
            case None, str(sha256):
                name += f", sha256 {sha256[:16]}"
        rows.append(("built from", name))
        if isinstance(without := source.get("words_without_vector"), int):
            tokens = source.get("tokens_without_vector")
            fraction = f", {tokens:.2%} of the tokens" if isinstance(tokens, float) else ""
            rows.append(
                ("without vector", f"{without:,} words{fraction}, in a separate Huffman tree")
            )
    return rows


def _recorded(value: object) -> str:
    """Return a recorded value on one line: "number=4, by=exchange"; a list as "1 to 9"."""
    match value:
        case dict():
            parts = {key: _recorded(part) for key, part in value.items()}
            return ", ".join(f"{key}={text}" for key, text in parts.items() if text)
        case [first, *_, last]:
            return f"{_recorded(first)} to {_recorded(last)}"
        case bool() | str():
            return str(value)
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.4g}"
    return ""

"""Formatting of numbers, tables and name-value lines; the figures of a corpus and of a tree.

Every command imports this module, so that help pages wait for it: functions import the library.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Column, Table

from hstree_cli.terminal import console, printable

if TYPE_CHECKING:
    from hstree.data.corpus import Corpus
    from hstree.tree import Tree

#: Names and values, printed one below the other.
Facts = list[tuple[str, str]]
Json = Mapping[str, Any]


# Numbers and words


def figure(value: float | None, digits: int = 2) -> str:
    """Return a number as `hstree._tables.figure` does."""
    from hstree._tables import figure

    return figure(value, digits)


def count(value: int) -> str:
    """Return a whole number with its thousands separated."""
    return f"{value:,}"


def percent(part: float, whole: float) -> str:
    """Return a share as a percentage; a dash if the whole is 0."""
    return "-" if whole == 0 else f"{100 * part / whole:.2f}%"


def shortened(word: str, width: int = 24) -> str:
    """Return a word of a corpus, printable and of at most `width` characters."""
    text = printable(word)
    return text if len(text) <= width else f"{text[: width - 1]}…"


# Layout


class WholeTable(Table):
    """A table that keeps its names and numbers whole.

    In a pipe it is as wide as it needs to be, unless ``COLUMNS`` is set. On a terminal that is too
    narrow it is drawn in several tables, each with the first column.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the table, or the tables that it is split into."""
        natural = Measurement.get(console, _any_width(options), self).maximum
        if not console.is_terminal and "COLUMNS" not in os.environ:
            options = options.update(max_width=natural)
        if natural <= options.max_width:
            yield from super().__rich_console__(console, options)
            return
        for part in self._parts(console, options):
            yield from part.__rich_console__(console, options)

    def _parts(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        """Yield tables of the first column, whose words stay whole, and as many others as fit."""
        first, *rest = self.columns
        width = options.max_width
        widths = {id(column): _least_width(column, console, options) for column in rest}

        def least(part: Table) -> int:
            return Measurement.get(console, _any_width(options), part).minimum

        while rest:
            shown = len(rest)
            while shown > 1 and least(self._with([first, *rest[:shown]], widths)) > width:
                shown -= 1
            yield self._with([first, *rest[:shown]], widths)
            rest = rest[shown:]

    def _with(self, columns: Sequence[Column], widths: Mapping[int, int]) -> Table:
        """Return a table of some columns, of these widths but for the first."""
        part = Table(box=self.box, pad_edge=self.pad_edge, collapse_padding=self.collapse_padding)
        for column in columns:
            width = widths.get(id(column))
            part.add_column(
                column.header, justify=column.justify, overflow=column.overflow, width=width
            )
        cells = zip(*(column.cells for column in columns), strict=True)
        for row, values in zip(self.rows, cells, strict=True):
            part.add_row(*values, style=row.style)
        return part


def _any_width(options: ConsoleOptions) -> ConsoleOptions:
    return options.update(max_width=1 << 16)


def _least_width(column: Column, console: Console, options: ConsoleOptions) -> int:
    """Return the width of a column's longest word; of its longest line if it must not wrap."""
    measured = [
        Measurement.get(console, _any_width(options), cell)
        for cell in (column.header, *column.cells)
    ]
    return max(one.maximum if column.no_wrap else one.minimum for one in measured)


def table(*columns: str, text: Sequence[str] = ()) -> Table:
    """Return an empty table: numbers right-aligned, the columns in `text` left-aligned."""
    empty = WholeTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        empty.add_column(name, justify="left" if name in text else "right", overflow="fold")
    return empty


def narrow(filled: Table, *columns: str) -> Table:
    """Let a table wrap in its other columns alone, so that `columns` keep their numbers whole."""
    filled.collapse_padding = True
    for column in filled.columns:
        column.no_wrap = column.header in columns
    return filled


def facts(rows: Sequence[tuple[str, str]]) -> str:
    """Return names and values as aligned lines, wrapped at the width of the terminal."""
    column = max(len(name) for name, _ in rows) + 2
    return "\n".join(
        textwrap.fill(
            printable(value),
            console().width,
            initial_indent=name.ljust(column),
            subsequent_indent=" " * column,
        )
        for name, value in rows
    )


# Corpora


def origin(corpus: Corpus) -> str:
    """Return a text's name, the versions of the packages it comes from, and its hash."""
    packages = [f"{package} {version}" for package, version in corpus.versions.items()]
    return ", ".join([corpus.name, *packages, f"sha256 {corpus.sha256[:16]}"])


def corpus_facts(corpus: Corpus) -> Facts:
    """Return the figures of a corpus and of its vocabulary."""
    words = corpus.vocabulary
    return [
        ("text", origin(corpus)),
        ("lines", count(corpus.n_lines)),
        ("tokens", f"{count(len(corpus))}, one <eos> per line included"),
        ("out of vocabulary", f"{count(corpus.n_oov)} ({percent(corpus.n_oov, len(corpus))})"),
        ("vocabulary", vocabulary_line(len(words), words.sha256)),
    ]


def vocabulary_line(size: int, sha256: str) -> str:
    """Return the size and the hash of a vocabulary."""
    return f"{size:,} words, sha256 {sha256[:16]}"


# Trees


def input_facts(tree: Tree) -> Facts:
    """Return what a tree's file records about its builder and input."""
    rows: Facts = []
    for key, value in tree.meta.items():
        if key not in ("method", "input", "hstree") and (text := _recorded(value)):
            rows.append((key.replace("_", " "), text))
    source = tree.meta.get("input")
    if isinstance(source, dict):
        rows.append(("built from", _input(source)))
        if isinstance(columns := source.get("columns"), str):
            rows.append(("columns", columns))
        if isinstance(without := source.get("words_without_vector"), int):
            tokens = source.get("tokens_without_vector")
            share = f", {tokens:.2%} of the tokens" if isinstance(tokens, float) else ""
            text = f"{without:,} words{share}, in a separate Huffman tree"
            rows.append(("without vector", text))
    return rows


def _recorded(value: object, depth: int = 0) -> str:
    """Return a recorded value on one line: "number=4, by=exchange"; only the ends of long lists."""
    if isinstance(value, Mapping) and depth < 3:
        parts = [(key, _recorded(one, depth + 1)) for key, one in value.items()]
        return ", ".join(f"{key}={text}" for key, text in parts if text)
    if isinstance(value, list) and value and depth:
        ends = value[:1] if len(value) == 1 else [value[0], value[-1]]
        return " to ".join(_recorded(one, 3) for one in ends)
    if isinstance(value, int) and not isinstance(value, bool):
        return count(value)
    if isinstance(value, float):
        return f"{value:,.4g}"
    return str(value) if isinstance(value, str | bool) else ""


def _input(source: Json) -> str:
    name = str(source.get("name", source.get("kind", "-")))
    if "lines" not in source and isinstance(sha256 := source.get("sha256"), str):
        return f"{name}, sha256 {sha256[:16]}"
    match source.get("lines"):
        case [int(first), int(last)]:
            return f"{name}, lines {count(first + 1)} to {count(last)}"
    return name

"""Numbers, tables and name-value lines; the figures of a corpus and of a tree.

Every command imports this module, so that help pages wait for it: functions import the library.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
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
#: Characters between two cells, and at both edges of a table together.
_GAP = 2


# Numbers and words


def shortened(word: str, width: int = 24) -> str:
    """Return a word of a corpus, printable and of at most `width` characters."""
    text = printable(word)
    return text if len(text) <= width else f"{text[: width - 1]}…"


# Layout


#: Looks of every table.
LOOKS: dict[str, Any] = {"box": box.SIMPLE_HEAD, "pad_edge": False, "collapse_padding": True}


def table(
    columns: Sequence[str],
    lines: Sequence[Sequence[str]],
    text: Sequence[str] = (),
    *,
    bold: str | None = None,
    first: Sequence[str] = (),
) -> Group:
    """Return lines of texts as one table that keeps names and numbers whole.

    In a pipe it is as wide as it needs to be, unless ``COLUMNS`` is set. On a terminal that is too
    narrow it has the columns that fit, those named in `first` before others, and a line that names
    the rest. The line that begins with `bold` is bold; columns are right-aligned but for those in
    `text`.
    """
    is_wrapped = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = shutil.get_terminal_size().columns if is_wrapped else 1 << 16
    # Width of each column's longest line, and the least: words of titles and names stay whole, and
    # so do numbers, but an interval may go below its number
    pieces = [re.split(r"\s", title) for title in columns]
    for line in lines:
        pieces[0] += line[0].split()
        for i, cell in enumerate(line[1:], start=1):
            pieces[i] += cell.replace(" [", "\n[").split("\n")
    least = [max(cell_len(printable(piece)) for piece in column) for column in pieces]
    whole = [
        max(cell_len(printable(one)) for cell in column for one in cell.split("\n"))
        for column in zip(columns, *lines, strict=True)
    ]
    shown, widths = list(range(len(columns))), whole
    if sum(whole) + _GAP * len(columns) > width:
        rank = [columns.index(title) for title in first if title in columns]
        left, chosen = width, list[int]()
        for i in dict.fromkeys([0, *rank, *shown]):
            if not chosen or least[i] + _GAP <= left:
                chosen.append(i)
                left -= least[i] + _GAP
        shown, widths = sorted(chosen), least
        widths[0] = min(whole[0], least[0] + max(left, 0))  # the rest of the width is for names
    # Rich has 80 columns in a pipe, but leaves a table's own width as it is
    own = None if is_wrapped else sum(whole) + _GAP * len(columns)
    drawn = Table(**LOOKS, width=own)
    for i in shown:
        side: Any = "left" if columns[i] in text else "right"
        drawn.add_column(columns[i], justify=side, overflow="fold", width=widths[i])
    for line in lines:
        drawn.add_row(*(line[i] for i in shown), style="bold" if line[0] == bold else None)
    names = [" ".join(columns[i].split()) for i in range(len(columns)) if i not in shown]
    note = [Text(f"No room here for {'; '.join(names)}.")] if names else []
    return Group(drawn, *note)


def facts(rows: Sequence[tuple[str, str]]) -> str:
    """Return names and values as aligned lines, wrapped at the width of the terminal."""
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
    """Return a text's name and its hash."""
    return f"{corpus.name}, sha256 {corpus.sha256[:16]}"


def corpus_facts(corpus: Corpus) -> Facts:
    """Return the figures of a corpus and of its vocabulary."""
    words, tokens = corpus.vocabulary, len(corpus)
    return [
        ("text", origin(corpus)),
        ("lines", f"{corpus.n_lines:,}"),
        ("tokens", f"{tokens:,}, one <eos> per line included"),
        ("out of vocabulary", f"{corpus.n_oov:,} ({corpus.n_oov / tokens:.2%})"),
        ("vocabulary", f"{len(words):,} words, sha256 {words.sha256[:16]}"),
    ]


def input_facts(tree: Tree) -> Facts:
    """Return what a tree's file records about its builder and input."""
    rows: Facts = []
    for key, value in tree.meta.items():
        if key not in ("method", "input", "hstree") and (text := _recorded(value)):
            rows.append((key.replace("_", " "), text))
    source = tree.meta.get("input")
    if isinstance(source, dict):
        name = str(source.get("name", source.get("kind", "-")))
        match source.get("lines"), source.get("sha256"):
            case [int(first), int(last)], _:
                name += f", lines {first + 1:,} to {last:,}"
            case None, str(sha256):
                name += f", sha256 {sha256[:16]}"
        rows.append(("built from", name))
        if isinstance(without := source.get("words_without_vector"), int):
            tokens = source.get("tokens_without_vector")
            share = f", {tokens:.2%} of the tokens" if isinstance(tokens, float) else ""
            rows.append(("without vector", f"{without:,} words{share}, in a separate Huffman tree"))
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
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return str(value) if isinstance(value, str | bool) else ""

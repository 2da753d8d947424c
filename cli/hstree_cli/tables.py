"""Formatting of numbers, tables and name-value lines; the figures of a corpus and of a tree.

Every command imports this module, so that help pages wait for it: functions import the library.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
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


def short_figure(value: float | None) -> str:
    """Return a number with one decimal place, and none from 1,000 on."""
    return figure(value, 1 if (value or 0) < 1000 else 0)


def count(value: int) -> str:
    """Return a whole number with its thousands separated."""
    return f"{value:,}"


def counted(value: int, one: str) -> str:
    """Return a whole number and its noun: "1 word", "2,000 words"."""
    from hstree._text import plural

    return plural(value, one)


def compact(value: int | None) -> str:
    """Return a whole number in three digits: 51.6k, 2.01M."""
    if value is None:
        return "-"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:#.3g}".rstrip(".") + unit
    return str(value)


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
        widths = {id(column): _least_width(column, console, options) for column in rest}
        while rest:
            shown = len(rest)
            part = self._with_columns(first, rest, widths)
            while (
                shown > 1
                and Measurement.get(console, _any_width(options), part).minimum > options.max_width
            ):
                shown -= 1
                part = self._with_columns(first, rest[:shown], widths)
            yield part
            rest = rest[shown:]

    def _with_columns(
        self, first: Column, others: Sequence[Column], widths: Mapping[int, int]
    ) -> Table:
        """Return a table of some columns, the others than the first with these widths."""
        part = Table(box=self.box, pad_edge=self.pad_edge, collapse_padding=self.collapse_padding)
        for column in (first, *others):
            part.add_column(
                column.header,
                justify=column.justify,
                overflow=column.overflow,
                width=widths.get(id(column)),
            )
        cells = zip(*(column.cells for column in (first, *others)), strict=True)
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


def bold_if(is_answer: bool) -> str | None:
    """Return the style of a table's row: bold for the answer's."""
    return "bold" if is_answer else None


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
    return f"{counted(size, 'word')}, sha256 {sha256[:16]}"


# Trees


def input_facts(tree: Tree) -> Facts:
    """Return what a tree's file records about its builder and input."""
    rows: Facts = []
    options = tree.meta.get("options")
    if isinstance(options, dict):
        values = [f"{name} {value}" for name, value in options.items() if value is not None]
        rows += [("options", ", ".join(values))] if values else []
    if isinstance(reached := tree.meta.get("max_codes_reached"), int) and reached:
        words = counted(reached, "word")
        rows.append(("bounded", f"{words} would have more codes but for max_codes"))
    for key, facts_of in (("classes", _class_facts), ("coverage", _wordnet_facts)):
        # Another package's builder may use the same name for something else.
        with suppress(TypeError, ValueError, LookupError, AttributeError):
            rows += facts_of(tree.meta[key])
    source = tree.meta.get("input")
    if isinstance(source, dict):
        rows.append(("built from", _input(source)))
        if isinstance(columns := source.get("columns"), str):
            rows.append(("columns", columns))
        rows += _vector_facts(source)
    return rows


def _input(source: Json) -> str:
    name = str(source.get("name", source.get("kind", "-")))
    if "lines" not in source and isinstance(sha256 := source.get("sha256"), str):
        return f"{name}, sha256 {sha256[:16]}"
    match source.get("lines"):
        case [int(first), int(last)]:
            return f"{name}, lines {count(first + 1)} to {count(last)}"
    return name


def _vector_facts(source: Json) -> Facts:
    """Return how many words had no vector, and their share of the tokens."""
    without, tokens = source.get("words_without_vector"), source.get("tokens_without_vector")
    if not isinstance(without, int):
        return []
    of_tokens = f", {100 * tokens:.2f}% of the tokens" if isinstance(tokens, float) else ""
    words = counted(without, "word")
    return [("without vector", f"{words}{of_tokens}, in a separate Huffman tree")]


def _class_facts(classes: Json) -> Facts:
    """Return the number of word classes, how they were made, and their bigram perplexity."""
    number = f"{count(classes['number'])}, by {classes['by']}"
    if head := classes.get("head"):
        number += f", beside a head of {counted(head, 'word')}"
    if listed := classes.get("short_list"):
        number += f", beside {counted(listed, 'listed word')}"
    rows = [("classes", number)]
    if perplexity := classes.get("bigram_perplexity"):
        text = f"perplexity {figure(perplexity, 1)}"
        if sweeps := classes.get("perplexity_by_sweep"):
            text += f", from {figure(sweeps[0], 1)} in {counted(len(sweeps) - 1, 'sweep')}"
        rows.append(("class bigrams", text))
    for key, what in (("words_without_vector", "vector"), ("words_without_class", "class")):
        if without := classes.get(key):
            rows.append((f"without {what}", counted(without, "word")))
    return rows


_PARTS_OF_SPEECH = {"n": "noun", "v": "verb", "a": "adjective", "r": "adverb"}


def _wordnet_facts(coverage: Json) -> Facts:
    """Return how many words WordNet has, their parts of speech, and the edges removed."""
    tokens = coverage["tokens_in_wordnet"]
    of_tokens = "" if tokens is None else f", {100 * tokens:.2f}% of the tokens"
    by_pos = coverage["by_part_of_speech"].items()
    n = {key: count(value) for key, value in coverage.items() if isinstance(value, int)}
    return [
        ("in WordNet", f"{n['words_in_wordnet']} of {n['words']} words{of_tokens}"),
        ("as", ", ".join(counted(m, _PARTS_OF_SPEECH.get(pos, pos)) for pos, m in by_pos)),
        ("lemmatised", f"{counted(coverage['lemmatised'], 'word')}, found by another form"),
        ("several senses", counted(coverage["multi_sense"], "word")),
        ("unused", counted(coverage["senses_unused"], "sense")),
        ("is-a edges", f"{n['edges']} among {n['synsets']} synsets, of which {n['edges_cut']} cut"),
    ]

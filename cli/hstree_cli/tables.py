"""Formatting of numbers, tables and name-value lines; the figures of a corpus and of a tree."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from hstree_cli.terminal import console, printable

if TYPE_CHECKING:
    from hstree.data.corpus import Corpus
    from hstree.tree import Tree
    from hstree.tree.statistics import TreeStatistics

#: Names and values, printed one below the other.
Facts = list[tuple[str, str]]
Json = Mapping[str, Any]


# Numbers and words


def figure(value: float | None, digits: int = 2) -> str:
    """Return a number with its thousands separated; a dash for None and NaN."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:,.{digits}f}"


def short_figure(value: float | None) -> str:
    """Return a number with one decimal place, and none from 1,000 on."""
    return figure(value, 1 if (value or 0) < 1000 else 0)


def count(value: int) -> str:
    """Return a whole number with its thousands separated."""
    return f"{value:,}"


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


def duration(seconds: float) -> str:
    """Return a time as people say it: "45 s", "12 min", "3 h 20 min"."""
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def shortened(word: str, width: int = 24) -> str:
    """Return a word of a corpus, printable and of at most `width` characters."""
    text = printable(word)
    return text if len(text) <= width else f"{text[: width - 1]}…"


# Layout


def table(*columns: str, text: Sequence[str] = ()) -> Table:
    """Return an empty table: numbers right-aligned, the columns in `text` left-aligned."""
    empty = Table(box=box.SIMPLE_HEAD, pad_edge=False)
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
    return f"{count(size)} words, sha256 {sha256[:16]}"


# Trees


def tree_facts(stats: TreeStatistics) -> Facts:
    """Return the figures of a tree."""
    rows = [
        ("method", str(stats.method or "-")),
        ("labels", count(stats.labels)),
        ("nodes", count(stats.nodes)),
        ("code length", code_length_line(stats.length_weighted, stats.length_uniform)),
        ("scores/target", figure(stats.scores_per_target)),
        ("depth", count(stats.depth)),
        ("sha256", stats.sha256),
    ]
    if stats.entropy is not None:
        bounds = f"entropy {figure(stats.entropy)}, Huffman length {figure(stats.huffman_length)}"
        rows.insert(-1, ("bounds", f"{bounds} (binary codes, one per label)"))
    if stats.max_codes_per_label > 1:
        codes = f"{figure(stats.codes_per_label)}, at most {count(stats.max_codes_per_label)}"
        rows.insert(3, ("codes/label", f"{codes}; the code length is their sum"))
    return rows


def input_facts(tree: Tree) -> Facts:
    """Return what a tree's file records about its builder and input."""
    rows: Facts = []
    options = tree.meta.get("options")
    if isinstance(options, dict):
        values = [f"{name} {value}" for name, value in options.items() if value is not None]
        rows += [("options", ", ".join(values))] if values else []
    if isinstance(reached := tree.meta.get("max_codes_reached"), int) and reached:
        rows.append(("bounded", f"{count(reached)} words would have more codes but for max_codes"))
    for key, facts_of in (("classes", _class_facts), ("coverage", _wordnet_facts)):
        # Another package's builder may use the same name for something else.
        with suppress(TypeError, ValueError, LookupError, AttributeError):
            rows += facts_of(tree.meta[key])
    source = tree.meta.get("input")
    if isinstance(source, dict):
        rows.append(("built from", _input(source)))
        rows += _vector_facts(source)
    return rows


def code_length_line(weighted: float | None, uniform: float | None) -> str:
    """Return the mean code lengths of a tree, by counts if it has any."""
    by_counts = "" if weighted is None else f"{figure(weighted)} by counts, "
    return f"{by_counts}{figure(uniform)} per label"


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
    return [("without vector", f"{count(without)} words{of_tokens}, in a separate Huffman tree")]


def _class_facts(classes: Json) -> Facts:
    """Return the number of word classes, how they were made, and their bigram perplexity."""
    number = f"{count(classes['number'])}, by {classes['by']}"
    if head := classes.get("head"):
        number += f", beside a head of {count(head)} words"
    rows = [("classes", number)]
    if perplexity := classes.get("bigram_perplexity"):
        text = f"perplexity {figure(perplexity, 1)}"
        if sweeps := classes.get("perplexity_by_sweep"):
            text += f", from {figure(sweeps[0], 1)} in {count(len(sweeps) - 1)} sweeps"
        rows.append(("class bigrams", text))
    for key, what in (("words_without_vector", "vector"), ("words_without_class", "class")):
        if without := classes.get(key):
            rows.append((f"without {what}", f"{count(without)} words"))
    return rows


_PARTS_OF_SPEECH = {"n": "nouns", "v": "verbs", "a": "adjectives", "r": "adverbs"}


def _wordnet_facts(coverage: Json) -> Facts:
    """Return how many words WordNet has, their parts of speech, and the edges removed."""
    tokens = coverage["tokens_in_wordnet"]
    of_tokens = "" if tokens is None else f", {100 * tokens:.2f}% of the tokens"
    by_pos = coverage["by_part_of_speech"].items()
    n = {key: count(value) for key, value in coverage.items() if isinstance(value, int)}
    return [
        ("in WordNet", f"{n['words_in_wordnet']} of {n['words']} words{of_tokens}"),
        ("as", ", ".join(f"{count(m)} {_PARTS_OF_SPEECH.get(pos, pos)}" for pos, m in by_pos)),
        ("lemmatised", f"{n['lemmatised']} words, found by another form"),
        (
            "senses",
            f"{n['multi_sense']} words have several; {n['senses_unused']} senses are not used",
        ),
        ("is-a edges", f"{n['edges']} among {n['synsets']} synsets, of which {n['edges_cut']} cut"),
    ]

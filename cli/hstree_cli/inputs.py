"""Inputs that options name: vocabularies, corpora and their splits, contexts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from hstree._files import open_regular, reading, strict_text
from hstree.data.corpus import Corpus
from hstree.data.overlap import overlap, shared_words
from hstree.data.vocabulary import UNK, Vocabulary
from hstree.errors import OptionError
from hstree.experiments.evaluation import (
    Splits,
    corpus_splits,
    read_by_builder,
    read_by_vocabulary,
    shared_lines,
)
from hstree.layers.registry import LayerSpec
from hstree.tree import Tree
from hstree_cli.options import HeldOut, Reading, flag
from hstree_cli.terminal import note, warn

#: Unknown words that a warning names.
NAMED = 5


# Corpora


def read_vocabulary(reading: Reading) -> Vocabulary | None:
    """Read the vocabulary that the option names; refuse other options that select words."""
    if reading.vocabulary is None:
        return None
    refuse_options("--vocabulary chooses the words already", **reading.selection)
    words = Vocabulary.from_file(reading.vocabulary)
    if columns := words.source.get("columns"):
        note(f"{reading.vocabulary}: {columns}")
    return words


def read_corpus(source: str, reading: Reading, unk: bool | None = None) -> Corpus:
    """Read one corpus with the words that the options choose; `unk` as in `Corpus.read`."""
    vocabulary = read_vocabulary(reading)
    return Corpus.read(
        source,
        vocabulary=vocabulary,
        min_count=reading.min_count,
        max_size=reading.max_size,
        unk=unk if vocabulary is None else True,
        lower=reading.lower,
        text=reading.text,
    )


def training_split(
    corpus: Corpus,
    vocabulary: Vocabulary | None,
    selection: Mapping[str, Any],
    unk: bool = True,
) -> Corpus:
    """Return the lines of a corpus that `hstree evaluate` trains on.

    Without a vocabulary they get their own words, chosen by `selection`, and ``<unk>`` if `unk`.
    """
    train = corpus.splits()[0]
    if vocabulary is not None:
        return train
    return train.with_vocabulary(train.select_vocabulary(**selection, unk=unk))


def read_splits(
    corpus: str, held_out: HeldOut, reading: Reading, vocabulary: Vocabulary | None = None
) -> Splits:
    """Read the three splits of an evaluation, encoded with a vocabulary.

    By default it has the words of the training split, and ``<unk>`` if another split needs it.
    """

    def read(source: str) -> Corpus:
        return Corpus.read(source, vocabulary=vocabulary, lower=reading.lower, text=reading.text)

    splits = _splits(corpus, held_out, read)
    if vocabulary is not None:
        return splits
    train = splits.train
    words = train.select_vocabulary(**reading.selection)
    if words.unk is None and any(
        split.with_vocabulary(words).n_oov for split in (splits.valid, splits.test)
    ):
        words = train.select_vocabulary(**reading.selection, unk=True)
    encoded = _each(splits, lambda split, _: split.with_vocabulary(words))
    _check_words_left(encoded.train, "training split", reading.selection)
    return encoded


class LabelReader:
    """Reads texts as ids of a tree's labels, for training or scoring a model.

    Words outside the vocabulary of `reading`, or outside those that it selects from a text, are
    read as ``<unk>``, even if they are among the labels.
    """

    def __init__(self, tree: Tree | LayerSpec, reading: Reading) -> None:
        counts = np.zeros(len(tree.labels), np.int64) if tree.counts is None else tree.counts
        self._labels = Vocabulary(tree.labels, counts)
        self._reading = reading
        self._words = read_vocabulary(reading)

    def text(self, source: str) -> Corpus:
        """Read one text."""
        text = self._read(source)
        return self._checked(text, self._words_of(text), text.name)

    def splits(self, corpus: str, held_out: HeldOut) -> Splits:
        """Read the three splits of an evaluation; words are selected from the training split."""
        splits = _splits(corpus, held_out, self._read)
        words = self._words_of(splits.train)
        return _each(splits, lambda split, name: self._checked(split, words, name))

    def _read(self, source: str) -> Corpus:
        how = self._reading
        return Corpus.read(source, vocabulary=self._labels, lower=how.lower, text=how.text)

    def _words_of(self, text: Corpus) -> Vocabulary | None:
        selection = self._reading.selection
        return text.select_vocabulary(**selection) if selection else self._words

    def _checked(self, text: Corpus, words: Vocabulary | None, name: str) -> Corpus:
        """Limit a text to the words; warn where the labels and the text share few words."""
        common = overlap(text)
        if common.is_small:
            warn(f"{name}: {common}; they are read as <unk>")
        if words is None:
            return text
        limited = text.limited_to(words)
        if common.shared:
            options = self._reading.selection or {"vocabulary": self._reading.vocabulary}
            _check_words_left(limited, name, options)
        return limited


def warn_of_seen_lines(splits: Splits, trees: Mapping[str, Tree]) -> None:
    """Warn of lines in two splits, and of test lines that the vocabulary or a tree was made from.

    The trees are by the name that the warning gives them; "" for none.
    """
    for message in shared_lines(splits):
        warn(message)
    if chosen := read_by_vocabulary(splits):
        warn(f"{chosen} (`hstree vocab --train-split-only`)")
    for name, tree in trees.items():
        if seen := read_by_builder(tree, splits.test):
            source = tree.meta.get("input")
            if isinstance(source, dict) and source.get("kind") == "corpus":
                seen += " (--train-split-only)"
            warn(f"{name}: {seen}" if name else seen)


def refuse_options(reason: str, **values: Any) -> None:
    """Refuse options; one that is None or False was not typed."""
    if typed := [flag(name) for name, value in values.items() if value not in (None, False)]:
        raise OptionError(f"{' and '.join(typed)}: {reason}")


def _splits(corpus: str, held_out: HeldOut, read: Callable[[str], Corpus]) -> Splits:
    others = (held_out.valid, held_out.test)
    text = held_out.part(read(corpus))
    return corpus_splits(text, *(None if name is None else read(name) for name in others))


def _each(splits: Splits, change: Callable[[Corpus, str], Corpus]) -> Splits:
    """Return the splits, each changed by a function of the split and its name."""
    return Splits(
        train=change(splits.train, "training split"),
        valid=change(splits.valid, "validation split"),
        test=change(splits.test, "test split"),
    )


def _check_words_left(text: Corpus, name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that leave a text no word but ``<unk>``."""
    if options and not shared_words(text):
        typed = " and ".join(f"{flag(option)} {value}" for option, value in options.items())
        raise OptionError(f"{name}: {typed}: no word but <unk> is left; choose more words")


# Contexts


def words_of(text: str) -> list[str]:
    """Return the words of a text, separated by ASCII white space as in a corpus."""
    words = text.encode("utf-8", "surrogateescape").split()
    return [word.decode("utf-8", "surrogateescape") for word in words]


def read_contexts(name: str) -> Iterator[list[str]]:
    """Yield the words of each line of a file, or of standard input for ``-``."""
    source = "standard input" if name == "-" else name
    offset = 0
    with (
        reading(f"the contexts {source}"),
        nullcontext(sys.stdin.buffer) if name == "-" else open_regular(name) as file,
    ):
        for number, line in enumerate(file, start=1):
            yield words_of(strict_text(line, source, line=number, offset=offset))
            offset += len(line)


def unknown_words(words: Iterable[str], vocabulary: Vocabulary) -> list[str]:
    """Return the words that are not in a vocabulary, each once, in order."""
    return list(dict.fromkeys(word for word in words if word not in vocabulary))


def warn_of_unknown(contexts: Sequence[Sequence[str]], vocabulary: Vocabulary) -> None:
    """Warn of words that are read as ``<unk>``; without that label the model refuses them."""
    if vocabulary.unk is None:
        return
    unknown = unknown_words((word for words in contexts for word in words), vocabulary)
    if unknown:
        named = ", ".join(map(repr, unknown[:NAMED]))
        more = f" and {len(unknown) - NAMED:,} more" if len(unknown) > NAMED else ""
        warn(f"not among the model's words, read as {UNK}: {named}{more}")

"""Reading corpora as the options say, and what is said about them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hstree.data.corpus import Corpus
from hstree.data.overlap import overlap, shared_words
from hstree.data.vocabulary import Vocabulary
from hstree.errors import OptionError
from hstree.experiments.evaluation import (
    Splits,
    corpus_splits,
    read_by_builder,
    read_by_vocabulary,
    shared_lines,
)
from hstree.tree import Tree
from hstree_cli.console import count, share
from hstree_cli.messages import warn


def vocabulary_of(path: Path | None) -> Vocabulary | None:
    """Read the vocabulary that an option names."""
    return None if path is None else Vocabulary.from_file(path)


def training_lines(
    corpus: Corpus,
    vocabulary: Vocabulary | None = None,
    *,
    min_count: int = 1,
    max_size: int | None = None,
) -> Corpus:
    """Return the lines of a corpus that `hstree evaluate` would train on.

    Without a vocabulary they are seen through their own words, and ``<unk>`` for those that
    they lack.
    """
    train = corpus.splits()[0]
    if vocabulary is not None:
        return train
    words = train.select_vocabulary(min_count=min_count, max_size=max_size, unk=True)
    return train.with_vocabulary(words)


def parts_of(
    sources: tuple[str, str | None, str | None],
    vocabulary: Vocabulary | None = None,
    *,
    min_count: int = 1,
    max_size: int | None = None,
    lower: bool = False,
) -> Splits:
    """Read the three splits of an evaluation, all seen through the training part's words.

    ``<unk>`` is one of them where another part needs it.
    """

    def read(source: str) -> Corpus:
        return Corpus.read(source, vocabulary=vocabulary, lower=lower)

    corpus, *held_out = sources
    splits = corpus_splits(read(corpus), *(None if s is None else read(s) for s in held_out))
    if vocabulary is not None:
        return splits
    train, *others = splits.train, splits.valid, splits.test
    words = train.select_vocabulary(min_count=min_count, max_size=max_size)
    if words.unk is None and any(part.with_vocabulary(words).n_oov for part in others):
        words = train.select_vocabulary(min_count=min_count, max_size=max_size, unk=True)
    seen = Splits(*(part.with_vocabulary(words) for part in (train, *others)))
    _check_some_left(seen.train, "training part", min_count=min_count, max_size=max_size)
    return seen


class Reader:
    """Reads texts as ids of a tree's labels, for a model to be trained on or scored on.

    Parameters
    ----------
    tree : Tree
    lower : bool
        Lower-case every word.
    vocabulary : path, optional
        Words outside this file are read as ``<unk>``, among the labels or not.
    **selection
        `min_count` and `max_size`: the same for words outside what they choose of a text.
    """

    def __init__(
        self, tree: Tree, *, lower: bool, vocabulary: Path | None, **selection: Any
    ) -> None:
        counts = np.zeros(tree.n_labels, np.int64) if tree.counts is None else tree.counts
        self._labels = Vocabulary(tree.labels, counts)
        self._lower = lower
        self._only = vocabulary_of(vocabulary)
        self._selection = _given(**selection)
        self._options = self._selection or {"vocabulary": vocabulary}
        if self._only is not None and self._selection:
            raise OptionError("--vocabulary chooses the words: drop --min-count and --max-size")

    def text(self, source: str) -> Corpus:
        """Read one text."""
        text = self._read(source)
        return self._checked(text, self._words(text), text.name)

    def splits(self, corpus: str, valid: str | None, test: str | None) -> Splits:
        """Read the three splits of an evaluation; what the words are, the training part says."""
        splits = corpus_splits(
            self._read(corpus),
            None if valid is None else self._read(valid),
            None if test is None else self._read(test),
        )
        words = self._words(splits.train)
        return Splits(
            train=self._checked(splits.train, words, "training part"),
            valid=self._checked(splits.valid, words, "validation part"),
            test=self._checked(splits.test, words, "test part"),
        )

    def _read(self, source: str) -> Corpus:
        return Corpus.read(source, vocabulary=self._labels, lower=self._lower)

    def _words(self, text: Corpus) -> Vocabulary | None:
        return text.select_vocabulary(**self._selection) if self._selection else self._only

    def _checked(self, text: Corpus, words: Vocabulary | None, name: str) -> Corpus:
        """Take out the words that are not wanted; warn where few were there in the first place."""
        found = overlap(text)
        if found.is_small:
            warn(f"{name}: {found}; they are read as <unk>")
        if words is None:
            return text
        limited = text.limited_to(words)
        if found.shared:
            _check_some_left(limited, name, **self._options)
        return limited


def warn_of_seen_lines(splits: Splits, trees: Mapping[str, Tree] | None = None) -> None:
    """Warn of lines in two splits, and of test lines that the vocabulary or a tree was made from.

    Parameters
    ----------
    splits : Splits
    trees : mapping of str to Tree, optional
        By the name to call them by; "" where there is only one.
    """
    for said in [*shared_lines(splits), read_by_vocabulary(splits)]:
        if said is not None:
            warn(said)
    for name, tree in (trees or {}).items():
        if (said := read_by_builder(tree, splits.test)) is not None:
            warn(f"{name}: {said}" if name else said)


def refuse_options(why: str, **given: Any) -> None:
    """Refuse options; one that is None or False was not given.

    Raises
    ------
    OptionError
        Naming those that were given.
    """
    names = [name for name, value in given.items() if value not in (None, False)]
    if names:
        raise OptionError(f"{' and '.join(map(_flag, names))}: {why}")


def _check_some_left(text: Corpus, name: str, **options: Any) -> None:
    """Refuse options that leave a text no word but ``<unk>``; without any, others will tell why.

    Raises
    ------
    OptionError
        Naming them.
    """
    given = _given(**options)
    if given and not shared_words(text):
        flags = " and ".join(f"{_flag(option)} {value}" for option, value in given.items())
        raise OptionError(f"{name}: {flags}: no word but <unk> is left; choose more words")


def _given(**options: Any) -> dict[str, Any]:
    """Return the options that choose words at all: with --min-count 1, every word is kept."""
    return {
        option: value
        for option, value in options.items()
        if value is not None and (option, value) != ("min_count", 1)
    }


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def origin(corpus: Corpus) -> str:
    """Return what a text is called, the packages that it was taken from, and its hash."""
    packages = [f"{package} {version}" for package, version in corpus.versions.items()]
    return ", ".join([corpus.name, *packages, f"sha256 {corpus.sha256[:16]}"])


def corpus_facts(corpus: Corpus) -> list[tuple[str, str]]:
    """Return names and figures of a corpus and the vocabulary that it is seen through."""
    words = corpus.vocabulary
    return [
        ("text", origin(corpus)),
        ("lines", count(corpus.n_lines)),
        ("tokens", f"{count(len(corpus))}, one <eos> a line included"),
        ("out of vocabulary", f"{count(corpus.n_oov)} ({share(corpus.n_oov, len(corpus))})"),
        ("vocabulary", f"{count(len(words))} words, sha256 {words.sha256[:16]}"),
    ]

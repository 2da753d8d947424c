"""Inputs that options name: vocabularies, corpora and their splits, contexts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from hstree.data.corpus import Corpus
from hstree.data.overlap import overlap, shared_words
from hstree.data.splits import (
    Splits,
    corpus_splits,
    read_by_layer,
    read_by_vocabulary,
    shared_lines,
)
from hstree.data.vocabulary import UNK, Vocabulary
from hstree.errors import InputError, OptionError
from hstree.tree import Tree
from hstree_cli.options import flag
from hstree_cli.terminal import warn

#: Unknown words that a warning names.
NAMED = 5


# Corpora


def read_vocabulary(file: Path | None, **selection: Any) -> Vocabulary | None:
    """Read the vocabulary that the option names; refuse other options that select words."""
    if file is None:
        return None
    refuse_options("--vocabulary chooses the words already", **selection)
    return Vocabulary.from_file(file)


def training_split(
    corpus: Corpus, vocabulary: Vocabulary | None, selection: Mapping[str, Any]
) -> Corpus:
    """Return the lines of a corpus that `hstree evaluate` trains on.

    Without a vocabulary they get their own words, chosen by `selection`, and ``<unk>``.
    """
    train = corpus.splits()[0]
    if vocabulary is not None:
        return train
    return train.with_vocabulary(train.select_vocabulary(**selection, unk=True))


def read_splits(
    corpus: str,
    valid: str | None,
    test: str | None,
    *,
    lower: bool = False,
    vocabulary: Vocabulary | None = None,
    trees: Sequence[Tree] = (),
    **selection: Any,
) -> Splits:
    """Read the three splits of a training, encoded with one vocabulary; warn of shared lines.

    The words are those of `vocabulary`, else the labels of the first of the trees in the order of
    the training split, else those of the training split and ``<unk>`` if another split needs it.
    """

    def read(source: str) -> Corpus:
        return Corpus.read(source, vocabulary=words, lower=lower)

    words = vocabulary
    if words is None and trees and not selection:
        words = Vocabulary(trees[0].labels, [0] * trees[0].n_labels)
    others = (None if name is None else read(name) for name in (valid, test))
    splits = corpus_splits(read(corpus), *others)
    train = splits.train
    if words is None:
        words = train.select_vocabulary(**selection)
        if words.unk is None and any(
            split.with_vocabulary(words).n_oov for split in (splits.valid, splits.test)
        ):
            words = train.select_vocabulary(**selection, unk=True)
    elif vocabulary is None:
        words = _in_order_of(train, trees[0])
    splits = Splits(*(split.with_vocabulary(words) for split in splits.as_dict().values()))
    check_words_left(splits.train, "training split", selection)
    for message in shared_lines(splits):
        warn(message)
    if trees and vocabulary is None and not selection:  # of which `warn_of_trees` tells
        for part in splits.as_dict().values():
            warn_of_overlap(part)
    elif chosen := read_by_vocabulary(splits):
        warn(f"{chosen} (`hstree vocab --train-split-only`)")
    return splits


def limited(splits: Splits, words: Vocabulary | None, options: Mapping[str, Any]) -> Splits:
    """Return splits whose words outside `words`, or those that options select, are ``<unk>``."""
    if words is None and not any(options.values()):
        return splits
    if words is None:
        words = splits.train.select_vocabulary(**options)
    splits = Splits(*(part.limited_to(words) for part in splits.as_dict().values()))
    check_words_left(splits.train, "training split", options)
    if chosen := read_by_vocabulary(splits):
        warn(f"{chosen} (`hstree vocab --train-split-only`)")
    return splits


def _in_order_of(train: Corpus, tree: Tree) -> Vocabulary:
    """Return a tree's labels in the order that the training split itself would give them."""
    from hstree.data.provenance import texts

    order = sorted(range(tree.n_labels), key=lambda i: (-train.counts[i], tree.labels[i]))
    source: dict[str, object] = {
        "kind": "tree",
        "sha256": tree.sha256,
        "texts": texts(tree.meta.get("input")),
    }
    return Vocabulary([tree.labels[i] for i in order], train.counts[order], source=source)


def read_as(
    labels: Sequence[str], source: str, vocabulary: Path | None = None, *, lower: bool = False
) -> Corpus:
    """Read a text as ids of labels; words outside the file `vocabulary` are ``<unk>``."""
    text = Corpus.read(
        source, vocabulary=Vocabulary(labels, np.zeros(len(labels), np.int64)), lower=lower
    )
    warn_of_overlap(text)
    if vocabulary is None:
        return text
    limited = text.limited_to(Vocabulary.from_file(vocabulary))
    check_words_left(limited, text.name, {"vocabulary": vocabulary})
    return limited


def warn_of_overlap(text: Corpus) -> None:
    """Warn where a text and its vocabulary share few words; InputError where they share none."""
    common = overlap(text)
    if common.is_small:
        warn(f"{text.name}: {common}; they are read as <unk>")


def warn_of_trees(trees: Mapping[str, Tree], splits: Splits) -> None:
    """Warn of test lines that trees were built from; the warning gives the trees' names."""
    for name, tree in trees.items():
        source = tree.meta.get("input")
        if seen := read_by_layer(source, splits.test):
            is_text = isinstance(source, dict) and source.get("kind") == "corpus"
            seen += " (--train-split-only)" if is_text else ""
            warn(f"{name}: {seen}" if name else seen)


def refuse_options(reason: str, **values: Any) -> None:
    """Refuse options; one that is None or False was not typed."""
    if typed := [flag(name) for name, value in values.items() if value not in (None, False)]:
        raise OptionError(f"{' and '.join(typed)}: {reason}")


def check_words_left(text: Corpus, name: str, options: Mapping[str, Any]) -> None:
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
    from hstree._files import open_regular

    source = "standard input" if name == "-" else name
    number = 0
    try:
        with nullcontext(sys.stdin.buffer) if name == "-" else open_regular(name) as file:
            for line in file:
                number += 1
                yield words_of(line.decode("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read the contexts {source}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{source}, line {number}: not UTF-8; convert the file first") from error


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

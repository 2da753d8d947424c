"""Inputs of commands: texts with their splits, vocabularies, models and contexts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hstree.data.corpus import Corpus
from hstree.data.vocabulary import EOS, UNK, Vocabulary
from hstree.errors import OptionError
from hstree_cli.options import SplitOptions, flag
from hstree_cli.terminal import warn

if TYPE_CHECKING:
    from hstree.data.splits import Splits
    from hstree.experiments.candidate import Candidate
    from hstree.models import BaseModel, Ensemble
    from hstree.tree import Tree

#: Maximum number of unknown words in a warning.
MAX_NAMED = 5


# Texts


def read_vocabulary(
    file: Path, *, min_count: int | None = None, max_size: int | None = None, no_unk: bool = False
) -> Vocabulary:
    """Read the file of ``--vocabulary``; refuse other options that select words."""
    refuse_options(
        "--vocabulary already selects the words",
        min_count=min_count,
        max_size=max_size,
        no_unk=no_unk,
    )
    return Vocabulary.from_file(file)


def read_splits(
    corpus: str, options: SplitOptions | None = None, candidates: Iterable[Candidate] = ()
) -> Splits:
    """Read the three splits of a corpus with one vocabulary; warn of lines in two of them.

    The words come from the vocabulary file, or else from the labels of the first tree, in the order
    of the training split. Without either, they come from the training split, with ``<unk>`` if
    another split needs it.
    """
    from hstree.data.splits import Splits

    options = options or SplitOptions()
    min_count = options.min_count
    vocabulary = None
    if options.vocabulary is not None:
        vocabulary = read_vocabulary(options.vocabulary, min_count=min_count)
    # Trees by file; the labels of the first tree are the words, unless the user selects words
    single = [candidate.single for candidate in candidates]
    trees = {candidate.file: candidate.tree for candidate in single if candidate.tree is not None}
    first_tree = None
    if vocabulary is None and min_count is None:
        first_tree = next(iter(trees.values()), None)

    # The words are selected below, from the training split only
    read = partial(
        Corpus.read, vocabulary=Vocabulary([EOS], [0]), lower=options.lower, text=options.text
    )
    valid = None if options.valid is None else read(options.valid)
    test = None if options.test is None else read(options.test)
    splits = Splits.of(read(corpus), valid, test)

    # The same words for all splits
    if vocabulary is not None:
        splits = Splits(*(part.with_vocabulary(vocabulary) for part in splits))
    elif first_tree is not None:
        splits = splits.over_labels(first_tree)
    else:
        splits = splits.over_training_words(min_count)

    _warn_of_seen_lines(splits, trees, has_labels=first_tree is not None)
    if min_count is not None and not splits.train.n_known_words:
        raise OptionError(
            f"training split: --min-count {min_count} leaves no word but <unk>; use a lower value"
        )
    return splits


def _warn_of_seen_lines(splits: Splits, trees: Mapping[str, Tree], *, has_labels: bool) -> None:
    """Warn of held-out lines that are also in another split, or in the input of a tree.

    If the words are the labels of a tree (`has_labels`), unknown words are reported, too.
    """
    from hstree.data.splits import overlap, read_before

    # Lines in two splits, in the vocabulary, then in the input of each tree
    train_lines = splits.train.source
    messages = [
        read_before(splits.test, train=train_lines),
        read_before(splits.test, valid=splits.valid.source),
        read_before(splits.valid, "validation", train=train_lines),
    ]
    if has_labels:
        messages += map(overlap, splits)
    else:
        record = splits.train.record.get("vocabulary")
        seen = read_before(splits.test, vocabulary=record)
        messages.append(seen and f"{seen} (`hstree vocab --train-split-only`)")
    for name, tree in trees.items():
        source = tree.meta.get("input")
        seen = read_before(splits.test, tree=source)
        # The option helps only if the tree was built from a text
        is_text = isinstance(source, dict) and source.get("kind") == "corpus"
        hint = " (--train-split-only)" if is_text else ""
        messages.append(seen and f"{name}: {seen}{hint}")
    for message in messages:
        if message:
            warn(message)


def read_with_labels(labels: Sequence[str], source: str, **reading: Any) -> Corpus:
    """Read a text as ids of labels."""
    from hstree.data.splits import overlap

    vocabulary = Vocabulary(labels, np.zeros(len(labels), np.int64))
    corpus = Corpus.read(source, vocabulary=vocabulary, **reading)
    if message := overlap(corpus):
        warn(message)
    return corpus


def refuse_options(reason: str, **values: Any) -> None:
    """Refuse options that were typed; a value of None or False was not."""
    if typed := [flag(name) for name, value in values.items() if value not in (None, False)]:
        raise OptionError(f"{' and '.join(typed)}: {reason}")


# Models


def load_models(model: Path, others: Sequence[Path] | None) -> BaseModel | Ensemble:
    """Read a model, or several models whose probabilities are averaged."""
    from hstree.models import Ensemble, load_model

    loaded = [load_model(folder) for folder in (model, *(others or ()))]
    return Ensemble(loaded) if others else loaded[0]


# Contexts


def split_words(text: str) -> list[str]:
    """Split a text at ASCII white space, as a corpus is."""
    words = text.encode("utf-8", "surrogateescape").split()
    return [word.decode("utf-8", "surrogateescape") for word in words]


def warn_of_unknown(words: Iterable[str], vocabulary: Vocabulary) -> list[str]:
    """Return the distinct unknown words, in order, and warn that they are mapped to ``<unk>``.

    There is no warning if the vocabulary has no ``<unk>``: the model then refuses the words.
    """
    unknown = list(dict.fromkeys(word for word in words if word not in vocabulary))
    if unknown and vocabulary.unk is not None:
        named = ", ".join(map(repr, unknown[:MAX_NAMED]))
        n_more = len(unknown) - MAX_NAMED
        more = f" and {n_more:,} more" if n_more > 0 else ""
        warn(f"not in the vocabulary of the model, read as {UNK}: {named}{more}")
    return unknown

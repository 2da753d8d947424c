"""Inputs of commands: texts and their splits, vocabularies, models and contexts."""

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
        "--vocabulary selects the words already",
        min_count=min_count,
        max_size=max_size,
        no_unk=no_unk,
    )
    return Vocabulary.from_file(file)


def read_splits(
    corpus: str, options: SplitOptions | None = None, candidates: Iterable[Candidate] = ()
) -> Splits:
    """Read the three splits of a corpus over one vocabulary; warn of lines in two of them.

    The words are those of the vocabulary file, or else the labels of the first tree in the order
    of the training split, or else those of the training split, and ``<unk>`` if another split needs
    it.
    """
    from hstree.data.splits import Splits

    options = options or SplitOptions()
    min_count = options.min_count
    vocabulary = None
    if options.vocabulary is not None:
        vocabulary = read_vocabulary(options.vocabulary, min_count=min_count)
    # Trees by their files; the labels of the first are the words, unless the user selects words
    single = [candidate.single for candidate in candidates]
    trees = {candidate.file: candidate.tree for candidate in single if candidate.tree is not None}
    first_tree = None
    if vocabulary is None and min_count is None:
        first_tree = next(iter(trees.values()), None)

    # The words are selected below, from the training split alone.
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
            f"training split: --min-count {min_count}: no word but <unk> is left; select more words"
        )
    return splits


def _warn_of_seen_lines(splits: Splits, trees: Mapping[str, Tree], *, has_labels: bool) -> None:
    """Warn of held-out lines that are also in another split, or in the input of a tree.

    If the words are the labels of a tree (`has_labels`), also warn of unknown words.
    """
    from hstree.data.splits import overlap, read_before

    # Of the splits among each other, of the words, then of each tree
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
        # What to do, where the tree was built from a text, not from vectors
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
    """Return the words of a text, separated by ASCII white space as in a corpus."""
    words = text.encode("utf-8", "surrogateescape").split()
    return [word.decode("utf-8", "surrogateescape") for word in words]


def warn_of_unknown(words: Iterable[str], vocabulary: Vocabulary) -> list[str]:
    """Return the distinct words that are not in a vocabulary, in order.

    Warn that they are mapped to ``<unk>``. A model without that label refuses them.
    """
    unknown = list(dict.fromkeys(word for word in words if word not in vocabulary))
    if unknown and vocabulary.unk is not None:
        named = ", ".join(map(repr, unknown[:MAX_NAMED]))
        n_more = len(unknown) - MAX_NAMED
        more = f" and {n_more:,} more" if n_more > 0 else ""
        warn(f"not among the model's words, read as {UNK}: {named}{more}")
    return unknown

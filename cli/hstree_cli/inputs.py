"""What commands read: texts and their splits, vocabularies, models, contexts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hstree.data.corpus import Corpus
from hstree.data.splits import Splits, overlap, read_before
from hstree.data.vocabulary import EOS, UNK, Vocabulary
from hstree.errors import OptionError
from hstree_cli.options import flag
from hstree_cli.terminal import warn

if TYPE_CHECKING:
    from hstree.experiments.candidate import Candidate
    from hstree.models import Ensemble, Model

#: Unknown words that a warning names.
NAMED = 5


# Texts


def read_vocabulary(
    file: Path, *, min_count: int | None = None, max_size: int | None = None, no_unk: bool = False
) -> Vocabulary:
    """Read the vocabulary that the option names; refuse other options that select words."""
    others = {"min_count": min_count, "max_size": max_size, "no_unk": no_unk}
    refuse_options("--vocabulary chooses the words already", **others)
    return Vocabulary.from_file(file)


def training_split(corpus: Corpus, vocabulary: Vocabulary | None, **selection: Any) -> Corpus:
    """Return the lines of a corpus that `hstree evaluate` trains on.

    Without a vocabulary they get their own words, chosen by `selection`.
    """
    train = corpus.splits()[0]
    words = train.select_vocabulary(**selection) if vocabulary is None else vocabulary
    return train.with_vocabulary(words)


def read_splits(
    corpus: str,
    valid: str | None = None,
    test: str | None = None,
    *,
    lower: bool = False,
    text: bool = False,
    vocabulary: Path | None = None,
    candidates: Iterable[Candidate] = (),
    min_count: int | None = None,
) -> Splits:
    """Read the three splits of a training over one vocabulary; warn of lines read before.

    The words are those of the vocabulary file, else the labels of the first tree in the order of
    the training split, else those of the training split and ``<unk>`` if another split needs it.
    """
    from hstree.experiments.candidate import TreeCandidate

    words = None if vocabulary is None else read_vocabulary(vocabulary, min_count=min_count)
    named = [candidate.single for candidate in candidates]
    trees = {one.file: one.tree for one in named if isinstance(one, TreeCandidate)}
    is_chosen = words is not None or min_count is not None
    first = None if is_chosen else next(iter(trees.values()), None)
    # The words are chosen below, from the training split alone.
    read = partial(Corpus.read, vocabulary=Vocabulary([EOS], [0]), lower=lower, text=text)
    others = (None if name is None else read(name) for name in (valid, test))
    splits = Splits.of(read(corpus), *others)
    if words is not None:
        splits = Splits(*(part.with_vocabulary(words) for part in splits))
    elif first is not None:
        splits = splits.over_labels(first)
    else:
        splits = splits.over_training_words(min_count)
    train_lines, test_text = splits.train.source, splits.test
    for message in (
        read_before(test_text, train=train_lines),
        read_before(test_text, valid=splits.valid.source),
        read_before(splits.valid, "validation", train=train_lines),
        *(map(overlap, splits) if first is not None else ()),
    ):
        if message is not None:
            warn(message)
    if min_count is not None and not splits.train.n_known_words:
        typed = f"--min-count {min_count}"
        raise OptionError(f"training split: {typed}: no word but <unk> is left; choose more words")
    record = splits.train.record.get("vocabulary") if first is None else None
    if seen := read_before(splits.test, vocabulary=record):
        warn(f"{seen} (`hstree vocab --train-split-only`)")
    for name, tree in trees.items():
        source = tree.meta.get("input")
        if seen := read_before(test_text, tree=source):
            is_text = isinstance(source, dict) and source.get("kind") == "corpus"
            warn(f"{name}: {seen}{' (--train-split-only)' if is_text else ''}")
    return splits


def read_as(labels: Sequence[str], source: str, **how: Any) -> Corpus:
    """Read a text as ids of labels."""
    known = Vocabulary(labels, np.zeros(len(labels), np.int64))
    read = Corpus.read(source, vocabulary=known, **how)
    if message := overlap(read):
        warn(message)
    return read


def refuse_options(reason: str, **values: Any) -> None:
    """Refuse options; one that is None or False was not typed."""
    if typed := [flag(name) for name, value in values.items() if value not in (None, False)]:
        raise OptionError(f"{' and '.join(typed)}: {reason}")


# Models


def load_models(model: Path, others: Sequence[Path] | None) -> Model[Any] | Ensemble:
    """Read a model, or several whose probabilities are averaged."""
    from hstree.models import Ensemble, load_model

    loaded = [load_model(folder) for folder in (model, *(others or ()))]
    return Ensemble(loaded) if others else loaded[0]


# Contexts


def words_of(text: str) -> list[str]:
    """Return the words of a text, separated by ASCII white space as in a corpus."""
    words = text.encode("utf-8", "surrogateescape").split()
    return [word.decode("utf-8", "surrogateescape") for word in words]


def warn_of_unknown(words: Iterable[str], vocabulary: Vocabulary) -> list[str]:
    """Return the words that are not in a vocabulary, each once, in order.

    Warns that they are read as ``<unk>``; without that label the model refuses them.
    """
    unknown = list(dict.fromkeys(word for word in words if word not in vocabulary))
    if unknown and vocabulary.unk is not None:
        named = ", ".join(map(repr, unknown[:NAMED]))
        more = f" and {len(unknown) - NAMED:,} more" if len(unknown) > NAMED else ""
        warn(f"not among the model's words, read as {UNK}: {named}{more}")
    return unknown

"""Training, validation and test split of a text, and the test lines that were read before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from hstree.data.corpus import Corpus
from hstree.data.provenance import shared
from hstree.errors import InputError

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

_NAMES = {"train": "training split", "valid": "validation split", "test": "test split"}
_ARE_FLATTERED = "are in the test split: its figure is optimistic"


@dataclass(frozen=True)
class Splits:
    """Training, validation and test text of an evaluation, over the same vocabulary."""

    train: Corpus
    valid: Corpus
    test: Corpus

    @classmethod
    def of(cls, text: Splits | Corpus) -> Splits:
        """Return splits as they are, and a corpus split by `corpus_splits`; else InputError."""
        if isinstance(text, Splits):
            return text
        if isinstance(text, Corpus):
            return corpus_splits(text)
        raise InputError(
            f"the text is {type(text).__name__}, not Splits or a Corpus; "
            "read a file with hstree.Corpus.read"
        )

    def as_dict(self) -> dict[Split, Corpus]:
        """Return the corpora by the names of their splits."""
        return {"train": self.train, "valid": self.valid, "test": self.test}

    def held_out_sample(self, tokens: int) -> Splits:
        """Return the same training split, with the first lines of the others: `tokens` at most."""
        return Splits(self.train, first_tokens(self.valid, tokens), first_tokens(self.test, tokens))


def corpus_splits(
    corpus: Corpus, valid: Corpus | None = None, test: Corpus | None = None
) -> Splits:
    """Split a corpus into training, validation and test text by its lines.

    Without `valid` and `test`, the last 10% of the lines are the test split and the 10% before
    them the validation split; with both, all of `corpus` trains; with one of them, the other is
    the last 10% of `corpus`.
    """
    if valid is not None and test is not None:
        return Splits(corpus, valid, test)
    if valid is None and test is None:
        return Splits(*corpus.splits())
    train, last = corpus.last_tenth()
    if valid is None and test is not None:
        return Splits(train, last, test)
    return Splits(train, valid or last, test or last)


def first_tokens(corpus: Corpus, tokens: int) -> Corpus:
    """Return the first lines of a corpus that have at most `tokens` tokens, one line at least."""
    if len(corpus) <= tokens:
        return corpus
    lines = int(np.searchsorted(corpus.line_start, tokens, side="right")) - 1
    return corpus.select_lines(0, max(lines, 1))


def seen(splits: Splits, made_from: object = None, *, what: str = "tree") -> str | None:
    """Name test lines that training, validation, the output layer or the vocabulary has read.

    Parameters
    ----------
    splits : Splits
    made_from : object
        Record of what the output layer was made from (`hstree.data.provenance`).
    what : {"tree", "vocabulary"}
        What the layer was made of.

    Returns
    -------
    str or None
        One sentence; None where no such lines are known.
    """
    sentences = [
        _in_both(splits, "train", "test"),
        _in_both(splits, "valid", "test"),
        read_by_layer(made_from, splits.test, what=what),
        read_by_vocabulary(splits),
    ]
    return next(filter(None, sentences), None)


def shared_lines(splits: Splits) -> list[str]:
    """Name lines that are in two splits, in one sentence per pair of splits."""
    pairs: list[tuple[Split, Split]] = [("train", "test"), ("valid", "test"), ("train", "valid")]
    sentences = [_in_both(splits, *pair) for pair in pairs]
    return [sentence for sentence in sentences if sentence is not None]


def read_by_layer(made_from: object, test: Corpus, *, what: str = "tree") -> str | None:
    """Name test lines that a tree or a layer's vocabulary was made from, in one sentence."""
    remedy = "from the training lines alone"
    if what == "tree" and isinstance(made_from, dict):
        read = {key: made_from.get(key) for key in ("name", "sha256", "lines")}
        if (lines := shared(read, test.source)) is not None:
            return f"the tree's builder read {lines}, which {_ARE_FLATTERED}; build {remedy}"
    if (lines := shared(made_from, test.source)) is None:
        return None
    if what == "tree":
        source = "the vocabulary or the vectors that the tree was built from were made from"
        return f"{source} {lines}, which {_ARE_FLATTERED}; make them {remedy}"
    source = "the vocabulary of the output layer was made from"
    return f"{source} {lines}, which {_ARE_FLATTERED}; make it {remedy}"


def read_by_training(texts: object, test: Corpus) -> str | None:
    """Name test lines that a model was trained or validated on, in one sentence."""
    if (lines := shared(texts, test.source)) is None:
        return None
    return (
        f"the model was trained or validated on {lines}, which are scored here: its figure is "
        "optimistic; score another text"
    )


def read_by_vocabulary(splits: Splits) -> str | None:
    """Name test lines that the words of the vocabulary were chosen on, in one sentence."""
    lines = shared(splits.train.record.get("vocabulary"), splits.test.source)
    if lines is None:
        return None
    return (
        f"the words of the vocabulary were chosen on {lines}, which {_ARE_FLATTERED}; choose them "
        "on the training lines alone"
    )


def _in_both(splits: Splits, one: Split, other: Split) -> str | None:
    lines = shared(getattr(splits, one).source, getattr(splits, other).source)
    if lines is None:
        return None
    return (
        f"{lines} are in the {_NAMES[one]} and in the {_NAMES[other]}: the figure of the "
        f"{_NAMES[other]} is optimistic; use other lines for it"
    )

"""Training, validation and test split of a text, and what has read their lines and words before."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np

from hstree.data.corpus import Corpus
from hstree.data.provenance import shared
from hstree.data.vocabulary import EOS, UNK
from hstree.data.windows import Windows
from hstree.errors import InputError

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

#: Share of OOV tokens in a text above which a warning is due: more than the rare words of a text
#: that was counted itself, or of another one of its kind.
MANY_OOV = 0.2

_NAMES = {"train": "training split", "valid": "validation split", "test": "test split"}
_PAIRS: list[tuple[Split, Split]] = [("train", "test"), ("valid", "test"), ("train", "valid")]
_TEST = "{}, which are in the test split: its figure is optimistic"
_TRAIN = "the training lines alone"
#: What may have read test lines before, and the sentence that says so.
_READERS = {
    "builder": f"the tree's builder read {_TEST}; build from {_TRAIN}",
    "tree": "the vocabulary or the vectors that the tree was built from were made from "
    f"{_TEST}; make them from {_TRAIN}",
    "layer": f"the vocabulary of the output layer was made from {_TEST}; make it from {_TRAIN}",
    "vocabulary": f"the words of the vocabulary were chosen on {_TEST}; choose them on {_TRAIN}",
    "training": "the model was trained or validated on {}, which are scored here: its figure is "
    "optimistic; score another text",
}


class Splits(NamedTuple):
    """Training, validation and test text of an evaluation, over the same vocabulary."""

    train: Corpus
    valid: Corpus
    test: Corpus

    @classmethod
    def of(
        cls, text: Splits | Corpus, valid: Corpus | None = None, test: Corpus | None = None
    ) -> Splits:
        """Return splits as they are, and a corpus split by its lines; else InputError.

        Without `valid` and `test`, the last 10% of the lines are the test split and the 10% before
        them the validation split; with both, all of `text` trains; with one of them, the other is
        the last 10% of `text`.
        """
        if isinstance(text, Splits):
            return text
        if not isinstance(text, Corpus):
            raise InputError(
                f"the text is {type(text).__name__}, not Splits or a Corpus; "
                "read a file with hstree.Corpus.read"
            )
        if valid is not None and test is not None:
            return cls(text, valid, test)
        first, second, last = text.splits()
        if valid is None and test is None:
            return cls(first, second, last)
        rest = text.select_lines(0, first.n_lines + second.n_lines)
        return cls(rest, valid or last, test or last)

    def held_out_sample(self, tokens: int) -> Splits:
        """Return the same training split, with the first lines of the others: `tokens` at most."""
        return Splits(self.train, first_tokens(self.valid, tokens), first_tokens(self.test, tokens))


def first_tokens(corpus: Corpus, tokens: int) -> Corpus:
    """Return the first lines of a corpus that have at most `tokens` tokens, one line at least."""
    if len(corpus) <= tokens:
        return corpus
    lines = int(np.searchsorted(corpus.line_start, tokens, side="right")) - 1
    return corpus.select_lines(0, max(lines, 1))


# What has been read before


def seen(splits: Splits, made_from: object = None, *, reader: str = "tree") -> str | None:
    """Name test lines that training, validation, the output layer or the vocabulary has read.

    Parameters
    ----------
    splits : Splits
    made_from : object
        Record of what the output layer was made from (`hstree.data.provenance`).
    reader : {"tree", "layer"}
        What was made from it; see `read_before`.

    Returns
    -------
    str or None
        One sentence; None where no such lines are known.
    """
    words = splits.train.record.get("vocabulary")
    sentences = [
        *shared_lines(splits, _PAIRS[:2]),
        read_before(reader, made_from, splits.test),
        read_before("vocabulary", words, splits.test),
    ]
    return next(filter(None, sentences), None)


def shared_lines(splits: Splits, pairs: list[tuple[Split, Split]] = _PAIRS) -> list[str]:
    """Name lines that are in two splits, in one sentence per pair of splits."""
    sentences = []
    for one, other in pairs:
        if lines := shared(getattr(splits, one).source, getattr(splits, other).source):
            sentences.append(
                f"{lines} are in the {_NAMES[one]} and in the {_NAMES[other]}: the figure of the "
                f"{_NAMES[other]} is optimistic; use other lines for it"
            )
    return sentences


def read_before(reader: str, record: object, test: Corpus) -> str | None:
    """Name test lines in the record of a reader, in one sentence; None without any.

    Readers are a "tree", the vocabulary of a "layer", the choice of the "vocabulary" and a model's
    "training". Of a tree, the lines that its builder read are told from those behind its vectors.
    """
    if reader == "tree" and isinstance(record, dict):
        text = {key: record.get(key) for key in ("name", "sha256", "lines")}
        if lines := shared(text, test.source):
            return _READERS["builder"].format(lines)
    lines = shared(record, test.source)
    return _READERS[reader].format(lines) if lines else None


# Words


def overlap(corpus: Corpus) -> str | None:
    """Count what a corpus shares with its vocabulary, in one sentence if much of it is OOV.

    Raises InputError when that is no word, or when ``<eos>`` or a needed ``<unk>`` is not in it.
    """
    n_shared, n_words = shared_words(corpus), len(corpus.select_vocabulary(unk=False)) - 1
    if n_shared == 0 and n_words > 0:
        words = corpus.vocabulary.words
        raise InputError(
            f"no word of {corpus.name} is among the {len(words):,} labels "
            f"({words[0]!r}, ...); is it in the same language and case?"
        )
    Windows(corpus, 1)  # refuses missing labels
    if corpus.n_oov <= MANY_OOV * len(corpus):
        return None
    return (
        f"{n_shared:,} of the {n_words:,} words of {corpus.name} are among the labels; "
        f"{corpus.n_oov:,} of its {len(corpus):,} tokens are not"
    )


def shared_words(corpus: Corpus) -> int:
    """Count the distinct words of a corpus in its vocabulary, ``<eos>`` and ``<unk>`` excluded."""
    specials = corpus.vocabulary.ids([EOS, UNK])
    n_specials = np.count_nonzero(corpus.counts[specials[specials >= 0]])
    return int(np.count_nonzero(corpus.counts) - n_specials)

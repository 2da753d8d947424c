"""Training, validation and test split of a text, and what has read their lines before."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

from hstree.data.corpus import Corpus
from hstree.data.provenance import texts
from hstree.data.windows import Windows
from hstree.errors import InputError

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

#: Share of OOV tokens in a text above which a warning is due: more than the rare words of a text
#: that was counted itself, or of another one of its kind.
MANY_OOV = 0.2

_TEST = "{lines}, which are in the test split: its figure is optimistic"
_TRAIN = "the training lines alone"
_IN_BOTH = (
    "and in the {scored} split: the figure of the {scored} split is optimistic; use other lines "
    "for it"
)
#: What may have read scored lines before, and the sentence that says so; the first one counts.
_READERS = {
    "train": "{lines} are in the training split " + _IN_BOTH,
    "valid": "{lines} are in the validation split " + _IN_BOTH,
    "builder": f"the tree's builder read {_TEST}; build from {_TRAIN}",
    "tree": "the vocabulary or the vectors that the tree was built from were made from "
    f"{_TEST}; make them from {_TRAIN}",
    "layer": f"the vocabulary of the output layer was made from {_TEST}; make it from {_TRAIN}",
    "vocabulary": f"the words of the vocabulary were chosen on {_TEST}; choose them on {_TRAIN}",
    "training": "the model was trained or validated on {lines}, which are scored here: its figure "
    "is optimistic; score another text",
}


class Splits(NamedTuple):
    """Training, validation and test text of an evaluation, over the same vocabulary."""

    train: Corpus
    valid: Corpus
    test: Corpus

    @classmethod
    def of(cls, text: Any, valid: Any = None, test: Any = None) -> Splits:
        """Return splits, and a text (as `Corpus.of` takes it) split by its lines.

        Without `valid` and `test`, the last 10% of the lines are the test split and the 10% before
        them the validation split; with both, all of `text` trains; with one of them, the other is
        the last 10% of `text`.
        """
        if isinstance(text, Splits):
            text, valid, test = text
        text = Corpus.of(text)
        valid, test = (
            None if part is None else Corpus.of(part, text.vocabulary) for part in (valid, test)
        )
        if valid is not None and test is not None:
            return cls(text, valid, test)
        first, second, last = text.splits()
        if valid is None and test is None:
            return cls(first, second, last)
        rest = text.select_lines(0, first.n_lines + second.n_lines)
        return cls(rest, valid or last, test or last)


def read_before(text: Corpus, scored: str = "test", **records: object) -> str | None:
    """Name lines of a text that something has read before, in one sentence; None without any.

    Parameters
    ----------
    text : Corpus
    scored : {"test", "validation"}
        Name of the split that the text is.
    **records
        Records (`hstree.data.provenance`) of what has read or was made from lines: the splits
        "train" and "valid", a "tree", the vocabulary of a "layer", the choice of the "vocabulary",
        a model's "training". Of a tree, the lines that its builder read are told from those behind
        its vectors.
    """
    if isinstance(tree := records.get("tree"), dict):
        records["builder"] = {key: tree.get(key) for key in ("name", "sha256", "lines")}
    for reader, sentence in _READERS.items():
        runs = [
            (f"lines {start + 1} to {stop}" if stop - start > 1 else f"line {stop}")
            + f" of {ours['name']}"
            for ours in texts(text.source)
            for read in texts(records.get(reader))
            if ours["sha256"] == read["sha256"]
            and (start := max(ours["lines"][0], read["lines"][0]))
            < (stop := min(ours["lines"][1], read["lines"][1]))
        ]
        if runs:
            lines = " and ".join(dict.fromkeys(runs))
            return sentence.format(lines=lines, scored=scored)
    return None


def overlap(corpus: Corpus) -> str | None:
    """Count what a corpus shares with its vocabulary, in one sentence if much of it is OOV.

    Raises InputError when that is no word, or when ``<eos>`` or a needed ``<unk>`` is not in it.
    """
    n_known = corpus.n_known_words
    if n_known == 0 and corpus.n_oov_words > 0:
        words = corpus.vocabulary.words
        raise InputError(
            f"no word of {corpus.name} is among the {len(words):,} labels "
            f"({words[0]!r}, ...); is it in the same language and case?"
        )
    Windows(corpus, 1)  # refuses missing labels
    if corpus.n_oov <= MANY_OOV * len(corpus):
        return None
    n_words = n_known + corpus.n_oov_words
    return (
        f"{n_known:,} of the {n_words:,} words of {corpus.name} are among the labels; "
        f"{corpus.n_oov:,} of its {len(corpus):,} tokens are not, and are read as <unk>"
    )

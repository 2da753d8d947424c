"""Training, validation and test split of a text, and warnings of lines that were seen before."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

from hstree import progress
from hstree.data.corpus import Corpus
from hstree.data.provenance import collect_sources
from hstree.data.vocabulary import UNK, Vocabulary, unk_min_count
from hstree.errors import InputError
from hstree.tree.tree import Tree

SplitName = Literal["train", "valid", "test"]
SPLITS: tuple[SplitName, ...] = get_args(SplitName)

#: Fraction of OOV tokens in a text above which there is a warning. In the text from which the
#: vocabulary was selected, or in a similar text, the fraction is lower.
MANY_OOV = 0.2

_TEST = "{lines}, which are in the test split: its result is optimistic"
_TRAIN = "the training lines only"
_IN_BOTH = (
    "and in the {scored} split: the result of the {scored} split is optimistic; use other lines "
    "for it"
)
#: Objects that may have seen scored lines, with a sentence for each; the first match is used.
_READERS = {
    "train": "{lines} are in the training split " + _IN_BOTH,
    "valid": "{lines} are in the validation split " + _IN_BOTH,
    "builder": f"the tree's builder read {_TEST}; build from {_TRAIN}",
    "tree": "the tree was built from a vocabulary or vectors that were made from "
    f"{_TEST}; make them from {_TRAIN}",
    "layer": f"the vocabulary of the output layer was made from {_TEST}; make it from {_TRAIN}",
    "vocabulary": f"the vocabulary was selected from {_TEST}; select it from {_TRAIN}",
    "training": "the model was trained or validated on {lines}, which are scored here: its result "
    "is optimistic; score another text",
}


class Splits(NamedTuple):
    """Training, validation and test text of an evaluation, over the same vocabulary."""

    train: Corpus
    valid: Corpus
    test: Corpus

    @classmethod
    def of(cls, text: Any, valid: Any = None, test: Any = None) -> Splits:
        """Split a text, given as splits or as `Corpus.of` accepts it.

        Without `valid` and `test`, the last 10% of the lines are the test split, and the 10% before
        them are the validation split. With both, `text` is the training split. With one of them,
        the other split is the last 10% of `text`. If no option has selected the vocabulary of
        `text`, it is selected from the training split (`over_training_words`).
        """
        if isinstance(text, Splits):
            text, valid, test = text
        text = Corpus.of(text)
        valid, test = (
            None if part is None else Corpus.of(part, text.vocabulary) for part in (valid, test)
        )
        if valid is not None and test is not None:
            splits = cls(text, valid, test)
        else:
            first, second, last = text.splits()
            splits = cls(first, second, last)
            if valid is not None or test is not None:
                rest = text.select_lines(0, first.n_lines + second.n_lines)
                splits = cls(rest, valid or last, test or last)
        if text.has_automatic_words:
            # Rare words were already reported when `text` was read
            with progress.shown_by(progress.Silent()):
                splits = splits.over_training_words()
        return splits

    def over_training_words(self, min_count: int | None = None) -> Splits:
        """Return the same lines with the vocabulary of the training split.

        It includes ``<unk>`` if words are excluded or if another split needs it. For `min_count`,
        see `Vocabulary.from_counts`.
        """
        words = self.train.select_vocabulary(min_count=min_count)
        # Words that occur only in a held-out split are scored as <unk>, even if it is untrained
        held_out = (self.valid, self.test)
        if words.unk is None and any(part.with_vocabulary(words).n_oov for part in held_out):
            words = self.train.select_vocabulary(min_count=min_count, unk=True)
        splits = Splits(*(part.with_vocabulary(words) for part in self))
        for part in splits:
            part.has_automatic_words = min_count is None
        return splits

    def over_labels(self, tree: Tree) -> Splits:
        """Return the same lines with the labels of a tree, sorted by their training counts."""
        record: dict[str, object] = {
            "kind": "tree",
            "sha256": tree.sha256,
            "texts": collect_sources(tree.meta.get("input")),
        }
        words = Vocabulary(tree.labels, [0] * tree.n_labels, source=record)
        words = self.train.with_vocabulary(words).counted_vocabulary(record)
        return Splits(*(part.with_vocabulary(words) for part in self))


def read_before(text: Corpus, scored: str = "test", **records: object) -> str | None:
    """Return a sentence that names lines of a text that were seen before; None without any.

    Parameters
    ----------
    text : Corpus
    scored : {"test", "validation"}
        Name of the split.
    **records
        Records (`hstree.data.provenance`) of objects that were made from lines: the splits "train"
        and "valid", a "tree", the vocabulary of a "layer", the selection of the "vocabulary", or
        the "training" of a model. For a tree, the lines that its builder read are distinguished
        from the lines of its vectors.
    """
    # Lines that the builder read are in the record itself, and lines of its vectors inside it
    if isinstance(tree := records.get("tree"), dict):
        records["builder"] = {key: tree.get(key) for key in ("name", "sha256", "lines")}
    for reader, sentence in _READERS.items():
        if shared := _shared_lines(text.source, records.get(reader)):
            lines = " and ".join(dict.fromkeys(shared))
            return sentence.format(lines=lines, scored=scored)
    return None


def _shared_lines(source: object, record: object) -> list[str]:
    """Return the names of lines that are also in a record, such as "lines 1 to 9 of a.txt"."""
    names = []
    for text in collect_sources(source):
        for other in collect_sources(record):
            # Overlapping ranges of lines in the same file
            start = max(text["lines"][0], other["lines"][0])
            stop = min(text["lines"][1], other["lines"][1])
            if text["sha256"] == other["sha256"] and start < stop:
                lines = f"lines {start + 1} to {stop}" if stop - start > 1 else f"line {stop}"
                names.append(f"{lines} of {text['name']}")
    return names


def overlap(corpus: Corpus) -> str | None:
    """Return a sentence about unknown words if a corpus has many of them, else None.

    Raises InputError if the vocabulary contains no word of the corpus, or not the ``<unk>`` that
    the corpus needs.
    """
    n_known = corpus.n_known_words
    if n_known == 0 and corpus.n_oov_words > 0:
        words = corpus.vocabulary.words
        raise InputError(
            f"no word of {corpus.name} is among the {len(words):,} labels "
            f"({words[0]!r}, ...); check its language and case"
        )
    if corpus.vocabulary.eos is None:
        return None  # models refuse the corpus or remove unknown words
    from hstree.data.windows import ContextBatches  # not needed for building a tree

    ContextBatches(corpus, 1)  # refuses a missing <unk>
    if corpus.n_oov <= MANY_OOV * len(corpus):
        return None
    n_words = n_known + corpus.n_oov_words
    return (
        f"{n_known:,} of the {n_words:,} words of {corpus.name} are among the labels; "
        f"{corpus.n_oov:,} of its {len(corpus):,} tokens are not, and are read as <unk>"
    )


def untrained_unk(train: Corpus, *held_out: Corpus) -> str | None:
    """Return a sentence about tokens that are scored as an untrained ``<unk>``.

    All splits have the same vocabulary. Returns None if ``<unk>`` is trained or not scored.
    """
    unk = train.vocabulary.unk
    if unk is None:
        return None
    number = train.vocabulary.index(unk)
    # The held-out splits in which <unk> occurs, and how often
    scored = [(part, int(part.counts[number])) for part in held_out]
    scored = [(part, n) for part, n in scored if n]
    if train.counts[number] or not scored:
        return None
    part, n = max(scored, key=lambda pair: pair[1] / len(pair[0]))
    return (
        f"{UNK} never occurs in the training split, and {n:,} of {len(part):,} tokens "
        f"({n / len(part):.2%}) of lines {part.lines[0] + 1:,} to {part.lines[1]:,} of {part.name} "
        "are scored as it: results and their order depend on an untrained word; select the words, "
        "also those of a tree, with a min_count (--min-count) of "
        f"{unk_min_count(train.vocabulary, train.counts)} or more"
    )

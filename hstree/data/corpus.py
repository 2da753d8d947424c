"""The corpus: a run of whole lines of a text, seen through a vocabulary.

The text is encoded once (`encoding`); a vocabulary is laid over it by one table, so that to see
the same lines through another vocabulary, or other lines through the same, costs next to nothing
and no memory that grows with the text. What is not here: contexts and batches (`windows`).
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hstree._text import plural
from hstree._typing import Int32, Int64, Integer
from hstree.data.encoding import EncodedText, encode
from hstree.data.provenance import texts
from hstree.data.sources import open_source
from hstree.data.vocabulary import EOS, Vocabulary
from hstree.errors import InputError, OptionError

_BLOCK_TOKENS = 1 << 20


class Corpus:
    """Whole lines of a text as ids of a vocabulary's words.

    Every line ends with ``<eos>``. A literal ``<unk>`` in the text is a word like any other; out
    of the vocabulary (OOV) is what is not in it, whether it holds ``<unk>`` or not.

    Parameters
    ----------
    text : EncodedText
    vocabulary : Vocabulary
    lines : (int, int), optional
        The first line, counted from 0, and the one after the last; by default all.
    only : Vocabulary, optional
        Every word that is not in it, ``<eos>`` aside, is OOV, whatever `vocabulary` holds.

    Attributes
    ----------
    vocabulary : Vocabulary
    lines : (int, int)
        Which lines of the text it holds.

    Raises
    ------
    InputError
        When there is no such line.

    Examples
    --------
    >>> corpus = Corpus.read("corpus.txt")  # doctest: +SKIP
    >>> train, valid, test = corpus.splits()  # doctest: +SKIP
    >>> train.ids(slice(0, 3))  # doctest: +SKIP
    array([17, 4, 0], dtype=int32)
    """

    def __init__(
        self,
        text: EncodedText,
        vocabulary: Vocabulary,
        lines: tuple[int, int] | None = None,
        *,
        only: Vocabulary | None = None,
    ) -> None:
        n_lines = len(text.line_start) - 1
        start, stop = (0, n_lines) if lines is None else lines
        if not 0 <= start < stop <= n_lines:
            raise InputError(
                f"{text.name} has {plural(n_lines, 'line')}, and none from {start} to {stop}"
            )
        self.vocabulary = vocabulary
        self.lines = (start, stop)
        self._text = text
        self._only = only
        self._types = _types(text, self.lines)

    @classmethod
    def read(
        cls,
        source: str | Path,
        *,
        vocabulary: Vocabulary | None = None,
        min_count: int = 1,
        max_size: int | None = None,
        unk: bool | None = None,
        lower: bool = False,
        cache: str | os.PathLike[str] | None = None,
    ) -> Corpus:
        """Read a text: one sentence a line, words between white space (see `encoding`).

        Parameters
        ----------
        source : str or Path
            A text file, plain or with a name that ends in ``.gz``; ``nltk:NAME``, a corpus of
            NLTK with sentences; ``builtin:python``, the docstrings that every installation has,
            or one part of them (``builtin:stdlib``, ``builtin:numpy``; see `docstrings`).
        vocabulary : Vocabulary, optional
            The words to see it through; by default chosen from all its lines by the next three.
        min_count, max_size, unk
            See `Vocabulary.from_counts`.
        lower : bool
            Lower-case every word.
        cache : path, optional
            Folder for the encoded text; see `encoding.encode`.

        Raises
        ------
        InputError
            When there is no such text, or it is empty or no UTF-8 text.
        OptionError
            When a vocabulary is given and another one is to be chosen as well.
        """
        if vocabulary is not None and (min_count, max_size, unk) != (1, None, None):
            raise OptionError(
                "a vocabulary is given, so there is none to choose: drop min_count and max_size"
            )
        text = encode(open_source(source), lower=lower, cache=cache)
        if vocabulary is not None:
            return cls(text, vocabulary)
        lines = (0, len(text.line_start) - 1)
        return cls(text, _chosen_vocabulary(text, lines, min_count, max_size, unk))

    def __len__(self) -> int:
        return len(self._types)

    def __repr__(self) -> str:
        start, stop = self.lines
        return (
            f"Corpus({self.name}, lines {start} to {stop}, {len(self)} tokens, "
            f"{len(self.vocabulary)} words)"
        )

    @property
    def name(self) -> str:
        """What the text is called, without a folder."""
        return self._text.name

    @property
    def sha256(self) -> str:
        """Of the whole text, uncompressed, whichever lines of it these are."""
        return self._text.sha256

    @property
    def versions(self) -> dict[str, str]:
        """The packages that the text was taken from; empty for a file."""
        return dict(self._text.versions)

    @property
    def source(self) -> dict[str, Any]:
        """What this is, as a tree file records it."""
        return _source(self._text, self.lines)

    @property
    def record(self) -> dict[str, Any]:
        """What this is, and the vocabulary's source where its words were chosen elsewhere.

        Here are these lines, and the whole text that they were read with.
        """
        own, words = self.source, self.vocabulary if self._only is None else self._only
        is_of_this_text = {**words.source, "lines": own["lines"]} == own
        is_own = is_of_this_text or texts([own, words.source]) == texts(own)
        return own if is_own else {**own, "vocabulary": words.source}

    @property
    def n_lines(self) -> int:
        """The number of lines."""
        return self.lines[1] - self.lines[0]

    @property
    def n_tokens(self) -> int:
        """The number of tokens, an ``<eos>`` for each line included."""
        return len(self)

    @cached_property
    def n_oov(self) -> int:
        """The number of tokens that are not in the vocabulary."""
        return int(self._type_counts[self._id_of_type < 0].sum())

    @cached_property
    def counts(self) -> Int64:
        """int64 array (V,), read-only: how often each word of the vocabulary stands in these lines.

        Tokens out of the vocabulary count under ``<unk>`` where the vocabulary holds it. These
        are the counts to build a tree from; the vocabulary's own may be of other lines.
        """
        known = self._id_of_type >= 0
        counts = np.zeros(len(self.vocabulary), np.int64)
        # No type shares its id with another one.
        counts[self._id_of_type[known]] = self._type_counts[known]
        if self.vocabulary.unk is not None:
            counts[self.vocabulary.index(self.vocabulary.unk)] += self.n_oov
        counts.setflags(write=False)
        return counts

    def counted_vocabulary(self) -> Vocabulary:
        """Return the vocabulary with the counts of these lines; its own may be of others."""
        return Vocabulary(self.vocabulary.words, self.counts, source=self.record)

    @property
    def line_start(self) -> Int64:
        """int64 array (lines + 1,): where each line begins among the tokens of this corpus."""
        start, stop = self.lines
        relative: Int64 = self._text.line_start[start : stop + 1] - self._text.line_start[start]
        return relative

    def ids(self, positions: slice | Integer) -> Int32:
        """Return the ids of the words at some positions, -1 where they are OOV.

        Parameters
        ----------
        positions : slice or int array of any shape
            Places among the tokens of this corpus, from 0.

        Returns
        -------
        int32 array
            A new one.
        """
        return self._id_of_type[self._types[positions]]

    def words(self, positions: slice | Integer) -> list[str]:
        """Return the words at some positions as the text has them, OOV or not."""
        types = self._text.types
        return [types[number] for number in self._types[positions].tolist()]

    def part(self, start: int, stop: int) -> Corpus:
        """Return lines `start` to `stop` of this corpus, counted from its first line.

        Raises
        ------
        InputError
            When there is no such line.
        """
        if not 0 <= start < stop <= self.n_lines:
            raise InputError(
                f"{self.name} has {plural(self.n_lines, 'line')}, and none from {start} to {stop}"
            )
        first = self.lines[0]
        lines = (first + start, first + stop)
        return Corpus(self._text, self.vocabulary, lines, only=self._only)

    def splits(self) -> tuple[Corpus, Corpus, Corpus]:
        """Return the training, validation and test part of this corpus.

        The last tenth of the lines (rounded down) is the test part, the tenth before them the
        validation part.

        Raises
        ------
        InputError
            When there are fewer than ten lines.
        """
        rest, test = self.last_tenth()
        n_train = rest.n_lines - test.n_lines
        return self.part(0, n_train), self.part(n_train, rest.n_lines), test

    def last_tenth(self) -> tuple[Corpus, Corpus]:
        """Return all lines but the last tenth (rounded down), and the last tenth.

        Raises
        ------
        InputError
            When there are fewer than ten lines.
        """
        n_last = self.n_lines // 10
        if n_last == 0:
            raise InputError(
                f"{self.name} has {plural(self.n_lines, 'line')}; a tenth of them is held out, "
                "which takes ten or more: give a longer text, or files for validation and test"
            )
        n_rest = self.n_lines - n_last
        return self.part(0, n_rest), self.part(n_rest, self.n_lines)

    def with_vocabulary(self, vocabulary: Vocabulary) -> Corpus:
        """Return the same lines seen through another vocabulary, in that one's order. O(types)."""
        return Corpus(self._text, vocabulary, self.lines, only=self._only)

    def limited_to(self, words: Vocabulary) -> Corpus:
        """Return the same lines and ids, all words but these and ``<eos>`` being OOV. O(types)."""
        return Corpus(self._text, self.vocabulary, self.lines, only=words)

    def select_vocabulary(
        self, *, min_count: int = 1, max_size: int | None = None, unk: bool | None = None
    ) -> Vocabulary:
        """Choose a vocabulary from the words of these lines alone; see `Vocabulary.from_counts`."""
        return _chosen_vocabulary(self._text, self.lines, min_count, max_size, unk)

    @cached_property
    def _id_of_type(self) -> Int32:
        """The id of each type of the text in the vocabulary, -1 where it is not in it."""
        ids = self.vocabulary.ids(self._text.types)
        if self._only is not None:
            unwanted = self._only.ids(self._text.types) < 0
            unwanted[self._text.types.index(EOS)] = False
            ids[unwanted] = -1
        return ids

    @cached_property
    def _type_counts(self) -> Int64:
        """How often each type of the text stands in these lines."""
        return _type_counts(self._text, self.lines)


def _types(text: EncodedText, lines: tuple[int, int]) -> Int32:
    """Return a view of the type ids of some lines."""
    start, stop = text.line_start[list(lines)]
    return text.ids[start:stop]


def _type_counts(text: EncodedText, lines: tuple[int, int]) -> Int64:
    types = _types(text, lines)
    counts = np.zeros(len(text.types), np.int64)
    for start in range(0, len(types), _BLOCK_TOKENS):
        counts += np.bincount(types[start : start + _BLOCK_TOKENS], minlength=len(counts))
    return counts


def _chosen_vocabulary(
    text: EncodedText,
    lines: tuple[int, int],
    min_count: int,
    max_size: int | None,
    unk: bool | None,
) -> Vocabulary:
    counts = _type_counts(text, lines)
    present = np.flatnonzero(counts)
    return Vocabulary.from_counts(
        [text.types[number] for number in present.tolist()],
        counts[present],
        min_count=min_count,
        max_size=max_size,
        unk=unk,
        source=_source(text, lines),
    )


def _source(text: EncodedText, lines: tuple[int, int]) -> dict[str, Any]:
    source: dict[str, Any] = {
        "kind": "corpus",
        "name": text.name,
        "sha256": text.sha256,
        "lines": list(lines),
    }
    return {**source, "lower": True} if text.lower else source

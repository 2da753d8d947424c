"""Corpus: consecutive lines of a text as ids of a vocabulary.

A text is encoded once as type ids (`encoding`), and a table maps types to vocabulary ids. The time
and memory for changing the vocabulary therefore do not depend on the length of the text, and a
selection of lines needs no memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence, Sized
from dataclasses import replace
from itertools import compress, pairwise
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from hstree import progress
from hstree._arrays import Bool, Int32, Int64, Integer, offsets
from hstree._options import checked_count
from hstree._text import plural
from hstree.data.arrays import count_axes, is_no_list
from hstree.data.encoding import (
    EncodedText,
    count_ids,
    encode,
    encoded_again,
)
from hstree.data.in_memory import encode_ids, encode_lines, encode_tokens
from hstree.data.provenance import collect_sources
from hstree.data.sources import open_source
from hstree.data.vocabulary import EOS, UNK, Vocabulary, automatic_count, ranked
from hstree.errors import InputError, OptionError

#: All tokens of a corpus.
ALL = slice(None)


class Corpus:
    """Consecutive lines of a text as ids of a vocabulary.

    `read` reads files; `from_lines`, `from_tokens` and `from_ids` use data in memory. Every line
    ends with ``<eos>``. A word outside the vocabulary is out of vocabulary (OOV), even if the
    vocabulary contains ``<unk>``. A literal ``<unk>`` in the text is an ordinary word.

    Parameters
    ----------
    text : EncodedText
    vocabulary : Vocabulary, optional
        Vocabulary (default: all types of the text, in their order).
    lines : (int, int), optional
        First line, counted from 0, and the line after the last (default: all).
    type_counts : int64 array, optional
        Number of occurrences of each type in these lines, if known.

    Attributes
    ----------
    vocabulary : Vocabulary
    lines : (int, int)
        First line of the text, and the line after the last.
    n_lines, n_tokens : int
        Numbers of lines and tokens. The tokens include one ``<eos>`` per line.
    counts : int64 array (V,), read-only
        Number of occurrences of each word of the vocabulary in these lines. OOV tokens are counted
        as ``<unk>`` if the vocabulary contains it. Build trees from these counts: the counts of the
        vocabulary may come from other lines.
    n_oov : int
        Number of tokens outside the vocabulary.
    n_known_words : int
        Number of distinct words in the vocabulary, ``<eos>`` and ``<unk>`` excluded.
    n_oov_words : int
        Number of distinct words outside the vocabulary.
    name : str
        Name of the text, without a folder.
    sha256 : str
        Hash of the whole uncompressed text, not only of these lines.
    source : dict
        Name, hash and lines of the text, as recorded in tree files.
    has_automatic_words : bool
        Whether the vocabulary was selected from the text without any option. `Splits.of` then
        selects it from the training split.
    record : dict
        The source, with the source of the vocabulary if it is another text.

    Examples
    --------
    >>> corpus = Corpus.read("corpus.txt")  # doctest: +SKIP
    >>> train, valid, test = corpus.splits()  # doctest: +SKIP
    >>> train.ids()  # doctest: +SKIP
    array([17, 4, 0, ...], dtype=int32)
    """

    def __init__(
        self,
        text: EncodedText,
        vocabulary: Vocabulary | None = None,
        lines: tuple[int, int] | None = None,
        *,
        type_counts: Int64 | None = None,
    ) -> None:
        if not isinstance(text, EncodedText):
            raise InputError(
                f"Corpus takes an encoded text, not {type(text).__name__}; use Corpus.read for "
                "files, from_lines for lines, from_tokens for lists of words, from_ids for ids"
            )
        start, stop = (0, len(text.line_start) - 1) if lines is None else lines
        # Corpora of the same text share it, so selecting lines or a vocabulary copies nothing
        first, last = text.line_start[[start, stop]]
        self._text = text
        # (T,) type of each token
        self._types = text.ids[first:last]
        self.lines = start, stop
        self.n_lines = stop - start
        self.n_tokens = len(self._types)
        self.name = text.name
        self.sha256 = text.sha256
        self.has_automatic_words = False

        self.source: dict[str, Any] = {
            "kind": "corpus",
            "name": text.name,
            "sha256": text.sha256,
            "lines": [start, stop],
        }
        if text.lower:
            self.source["lower"] = True
        if vocabulary is None:
            vocabulary = Vocabulary(text.types, text.counts, source=self.source)
        self.vocabulary = vocabulary
        self.record = _source_record(self.source, vocabulary.source)

        # (types,) vocabulary id of each type, and whether it is OOV: an OOV type has the id of
        # <unk>, as a literal <unk> does, or -1
        self._type_ids = vocabulary.ids(text.types)
        unk_id = int(vocabulary.ids([UNK])[0])
        self._is_oov_type: Bool = self._type_ids == unk_id
        if UNK in text.types:
            self._is_oov_type[text.types.index(UNK)] = vocabulary.unk is None

        # (types,) occurrences of each type, which are known for the whole text
        if type_counts is None:
            is_whole = self.n_tokens == len(text.ids)
            type_counts = text.counts if is_whole else count_ids(self._types, len(text.types))
        self._type_counts = type_counts
        self.n_oov = int(type_counts[self._is_oov_type].sum())
        self.n_oov_words = int(np.count_nonzero(type_counts[self._is_oov_type]))
        # Every known type has the id of a different word
        is_known = ~self._is_oov_type
        self.counts: Int64 = np.zeros(len(vocabulary), np.int64)
        self.counts[self._type_ids[is_known]] = type_counts[is_known]
        special = [vocabulary.index(word) for word in (EOS, UNK) if word in vocabulary]
        self.n_known_words = int(np.count_nonzero(np.delete(self.counts, special)))
        if vocabulary.unk is not None:
            self.counts[unk_id] += self.n_oov
        self.counts.setflags(write=False)

    @classmethod
    def read(
        cls,
        source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        vocabulary: Vocabulary | None = None,
        min_count: int | None = None,
        max_size: int | None = None,
        unk: bool | None = True,
        lower: bool = False,
        text: bool = False,
        cache: str | os.PathLike[str] | None = None,
    ) -> Corpus:
        """Read a text with one sentence per line and white space between words; see `encoding`.

        Parameters
        ----------
        source : str or Path, or a list of them
            A text file, compressed if its name ends in ``.gz``, ``.xz``, ``.bz2`` or ``.zst`` (with
            Python 3.14 or the extra ``zstd``). A folder or a pattern (``corpus/*.txt.gz``): all its
            files, in the order of their names. A list of files, in its order. ``-``: standard
            input. ``nltk:NAME``: an NLTK corpus with sentences. ``builtin:python``: the
            documentation of Python.
        vocabulary : Vocabulary, optional
            The vocabulary (default: selected from all lines with the next three options).
        min_count : int, optional
            Map words that occur fewer times to ``<unk>`` (default: 2, or 1 if the text contains
            ``<unk>``; see `hstree.data.vocabulary.automatic_count`).
        max_size
            See `Vocabulary.from_counts`.
        unk : bool, optional
            Whether the vocabulary contains ``<unk>``, so that a model can read other texts. None:
            only if words are excluded.
        lower : bool, default False
            Whether to convert every word to lower case.
        text : bool, default False
            Whether to read files as text regardless of their extensions, such as ``.csv``.
        cache : path, optional
            Folder for encoded texts; see `encoding.encode`.

        Raises
        ------
        InputError
            If the text does not exist, is empty, or is not UTF-8.
        OptionError
            If `vocabulary` is combined with options that select a vocabulary.
        """
        # Absolute name, by which another process can open the text again
        location: str | list[str]
        if not isinstance(source, str | os.PathLike):
            location = list(map(os.path.abspath, source))
        elif str(source).partition(":")[0] in ("-", "nltk", "builtin"):
            location = str(source)
        else:
            location = os.path.abspath(source)
        encoded = encode(open_source(source, text=text), lower=lower, cache=cache)
        encoded = replace(encoded, location=location)
        return cls._over(encoded, vocabulary, min_count, max_size, unk)

    @classmethod
    def from_lines(
        cls,
        lines: Iterable[str],
        *,
        vocabulary: Vocabulary | None = None,
        min_count: int | None = None,
        max_size: int | None = None,
        unk: bool | None = True,
        lower: bool = False,
        name: str = "text",
    ) -> Corpus:
        """Make a corpus in memory from lines with white space between words.

        Parameters
        ----------
        lines : iterable of str
            A list, a generator or a column of a data set. Text with line ends counts as more lines.
        vocabulary, min_count, max_size, unk, lower
            See `read`.
        name : str
            Name in messages and records.

        Examples
        --------
        >>> corpus = Corpus.from_lines(["the cat", "the dog"])
        >>> len(corpus), corpus.vocabulary.words
        (6, ('<eos>', '<unk>', 'the'))
        """
        encoded = encode_lines(lines, name, lower=lower)
        return cls._over(encoded, vocabulary, min_count, max_size, unk)

    @classmethod
    def from_tokens(
        cls,
        lines: Iterable[Iterable[str] | Iterable[int]],
        *,
        vocabulary: Vocabulary | None = None,
        min_count: int | None = None,
        max_size: int | None = None,
        unk: bool | None = True,
        name: str = "text",
    ) -> Corpus:
        """Make a corpus in memory from lists of tokens; ``<eos>`` ends each list.

        Parameters
        ----------
        lines : iterable of iterables of str
            Tokens may contain white space. Whole numbers are converted to text: 3 becomes "3".
        vocabulary, min_count, max_size, unk
            See `read`.
        name : str
            Name in messages and records.

        Examples
        --------
        >>> corpus = Corpus.from_tokens(line.split() for line in ["a b", "b"])
        >>> corpus.words()
        ['a', 'b', '<eos>', 'b', '<eos>']
        """
        return cls._over(encode_tokens(lines, name), vocabulary, min_count, max_size, unk)

    @classmethod
    def from_ids(
        cls,
        ids: Any,
        *,
        labels: Any = None,
        eos: int | str | None = None,
        name: str = "text",
    ) -> Corpus:
        """Make a corpus from token ids, which are also the ids of its vocabulary.

        Parameters
        ----------
        ids : integer array (T,), or iterable of lists or arrays of int
            One array, whose lines end with `eos`; it is not copied and can be memory-mapped. Or a
            list of lines; `eos` is appended to a line that does not end with it. Rows of a data set
            and outputs of a tokenizer are accepted if they have the key ``"input_ids"``.
        labels : sequence of str, length V, or tokenizer, optional
            Name of each id (default: its digits, up to the largest id). Required if other texts may
            have larger ids. A tokenizer must have a method ``get_vocab``.
        eos : int or str, optional
            The id that ends lines, or its label (default: the id of ``<eos>`` or of the
            ``eos_token`` of the tokenizer, or a new id after all others). The vocabulary names it
            ``<eos>``. An array without this id is one line.
        name : str
            Name in messages and records.

        Raises
        ------
        InputError
            If ids are not whole numbers, or not ids of the labels.

        Examples
        --------
        >>> corpus = Corpus.from_ids([[2, 0, 2], [1]])
        >>> corpus.ids().tolist(), corpus.vocabulary.words
        ([2, 0, 2, 3, 1, 3], ('0', '1', '2', '<eos>'))
        """
        return cls(encode_ids(ids, labels, eos, name))

    @classmethod
    def of(cls, text: Any, vocabulary: Vocabulary | None = None) -> Corpus:
        """Make a corpus from a text of any supported type.

        Parameters
        ----------
        text : Corpus, str, path, iterable or array
            A corpus is returned unchanged. The name of a file is read with `read`. The first item
            determines whether an iterable contains lines (`from_lines`), lists of tokens
            (`from_tokens`) or token ids (`from_ids`, also for arrays).
        vocabulary : Vocabulary, optional
            Vocabulary of the corpus. Token ids are indices of its words.
        """
        if isinstance(text, Corpus):
            return text
        if isinstance(text, str | os.PathLike):
            return cls.read(text, vocabulary=vocabulary)
        is_table = hasattr(text, "columns")
        if is_table or is_no_list(text) or getattr(text, "shape", None) == ():
            raise InputError(
                f"a text of type {type(text).__name__}; give a Corpus, the name of a file, lines, "
                "lists of tokens, token ids, or one column of a table"
            )
        # Arrays contain token ids; the first token determines the type of other texts
        token: object = 0
        if count_axes(text)[0] == 0:
            if not isinstance(text, Sized):
                text = list(text)  # a generator can be read only once
            lines = (line for line in text if not isinstance(line, Sized) or len(line))
            line = next(lines, "")
            if isinstance(line, str):
                return cls.from_lines(text, vocabulary=vocabulary)
            token = next(iter(line), "") if isinstance(line, Iterable) else ""
        if not isinstance(token, Integral):
            return cls.from_tokens(text, vocabulary=vocabulary)
        if vocabulary is None:
            return cls.from_ids(text)
        return cls.from_ids(text, labels=vocabulary.words).with_vocabulary(vocabulary)

    @classmethod
    def _over(
        cls,
        text: EncodedText,
        vocabulary: Vocabulary | None,
        min_count: int | None,
        max_size: int | None,
        unk: bool | None,
    ) -> Corpus:
        """Return a corpus with a given or a selected vocabulary; refuse options for both."""
        if not isinstance(vocabulary, Vocabulary | None):
            kind = type(vocabulary).__name__
            raise InputError(f"a vocabulary of type {kind}; give an hstree.Vocabulary")
        has_options = min_count is not None or max_size is not None or unk is False
        if vocabulary is not None and has_options:
            raise OptionError(
                "min_count, max_size and unk select a vocabulary, but one is given; remove them"
            )
        if vocabulary is not None:
            return cls(text, vocabulary)
        # All types are counted, independently of the vocabulary
        corpus = cls(text, Vocabulary([EOS], [0], source={}))
        chosen = corpus.select_vocabulary(min_count=min_count, max_size=max_size, unk=unk)
        corpus = corpus.with_vocabulary(chosen)
        corpus.has_automatic_words = not has_options
        return corpus

    def __len__(self) -> int:
        return self.n_tokens

    def __repr__(self) -> str:
        lines = "lines {} to {}".format(*self.lines)
        return f"Corpus({self.name}, {lines}, {len(self)} tokens, {len(self.vocabulary)} words)"

    def counted_vocabulary(self, source: dict[str, object] | None = None) -> Vocabulary:
        """Return the vocabulary with the counts of these lines.

        If a `source` is given, it replaces the record of this text, and the words are sorted as if
        selected from these lines: by descending count, ties by word.
        """
        if source is None:
            return Vocabulary(self.vocabulary.words, self.counts, source=self.record)
        return Vocabulary(*ranked(self.vocabulary.words, self.counts), source=source)

    @property
    def line_start(self) -> Int64:
        """Offset of each line among the tokens of this corpus; int64 array (lines + 1,)."""
        starts = self._text.line_start[self.lines[0] : self.lines[1] + 1]
        return np.asarray(starts - starts[0])

    def line_starts(self, first: int, stop: int) -> Int64:
        """Return the offsets of the lines of tokens `first` to `stop` - 1, and of their end.

        Lines before `first` without a token are omitted.
        """
        starts = self._text.line_start[self.lines[0] : self.lines[1] + 1]
        # From the last line that starts by `first` to the first one that starts at `stop` or later
        first_line = np.searchsorted(starts, first + starts[0], "right") - 1
        last_line = np.searchsorted(starts, stop + starts[0])
        return np.asarray(starts[first_line : last_line + 1] - starts[0])

    def ids(self, positions: slice | Integer = ALL) -> Int32:
        """Return the ids of the words at some positions (default: all) as int32.

        OOV words have the id of ``<unk>``, or -1 if the vocabulary does not contain it.
        """
        return self._type_ids[self._types[positions]]

    def is_oov(self, positions: slice | Integer = ALL) -> Bool:
        """Return whether each word at some positions (default: all) is OOV."""
        return self._is_oov_type[self._types[positions]]

    def words(self, positions: slice | Integer = ALL) -> list[str]:
        """Return the words at some positions (default: all), including OOV words."""
        types = self._text.types
        return [types[number] for number in self._types[positions].tolist()]

    def select_lines(self, start: int, stop: int) -> Corpus:
        """Return lines `start` (from 0) to `stop` - 1. Raises InputError for invalid lines."""
        if not 0 <= start < stop <= self.n_lines:
            has = f"{self.name} has {plural(self.n_lines, 'line')}"
            raise InputError(f"{has}, and none from {start} to {stop}")
        lines = (self.lines[0] + start, self.lines[0] + stop)
        selected = Corpus(self._text, self.vocabulary, lines)
        selected.has_automatic_words = self.has_automatic_words
        return selected

    def first_tokens(self, n: int) -> Corpus:
        """Return the first lines with at most `n` tokens in total, but at least one line.

        Raises OptionError if `n` is not a whole number, 0 or more.
        """
        n = min(checked_count("n", n, 0), self.n_tokens)
        start, stop = self.lines
        ends = self._text.line_start[start + 1 : stop + 1]
        last_token = n + self._text.line_start[start]
        n_lines = int(np.searchsorted(ends, last_token, side="right"))
        return self.select_lines(0, max(1, n_lines))

    def splits(self) -> tuple[Corpus, Corpus, Corpus]:
        """Return the training, validation and test split.

        The last tenth of the lines (rounded down) is the test split, and the tenth before it is the
        validation split. Raises InputError if there are fewer than ten lines.
        """
        n = self.n_lines
        n_last = n // 10
        if n_last == 0:
            hint = "; eos= of from_ids names the id that ends lines" if n == 1 else ""
            raise InputError(
                f"{self.name} has {plural(n, 'line')}, and splits need ten or more; give a longer "
                f"text, or files for validation and test{hint}"
            )
        # Split at lines, so that no sentence is cut
        bounds = pairwise([0, n - 2 * n_last, n - n_last, n])
        train, valid, test = (self.select_lines(start, stop) for start, stop in bounds)
        return train, valid, test

    def with_vocabulary(self, vocabulary: Vocabulary) -> Corpus:
        """Return the same lines as ids of another vocabulary. O(types)."""
        return Corpus(self._text, vocabulary, self.lines, type_counts=self._type_counts)

    def select_words(self) -> Corpus:
        """Return the same lines without the tokens that have no id in the vocabulary.

        If the vocabulary does not contain ``<eos>``, line ends are removed, and also OOV words if
        it does not contain ``<unk>``. A progress display shows the number of removed words. The
        other ids are copied in memory. With ``<eos>``, the corpus is returned unchanged.
        """
        text = self._text
        if self.vocabulary.eos is not None or EOS not in text.types:
            return self
        # (types,) whether tokens of each type are kept
        is_kept = self._type_ids >= 0
        is_kept[text.types.index(EOS)] = False
        counts = np.where(is_kept, self._type_counts, 0)
        n_ends = int(self._type_counts[text.types.index(EOS)])
        n_left_out = self.n_tokens - n_ends - int(counts.sum())
        if n_ends + n_left_out == 0:
            return self
        if n_left_out:
            progress.say(
                f"{self.name}: {n_left_out:,} of {self.n_tokens - n_ends:,} words are left out: "
                "they are not among the labels, which do not include <unk>"
            )

        # Offsets of these lines among the kept tokens; all other lines are empty
        stays = is_kept[self._types]
        line_start = np.zeros_like(text.line_start)
        start, stop = self.lines
        line_start[start : stop + 1] = offsets(stays.astype(np.int64))[self.line_start]
        line_start[stop:] = line_start[stop]
        ids = self._types[stays]
        selected = replace(text, counts=counts, ids=ids, line_start=line_start, entry=Path())
        return Corpus(selected, self.vocabulary, self.lines)

    def select_vocabulary(
        self,
        *,
        min_count: int | None = None,
        max_size: int | None = None,
        unk: bool | None = None,
    ) -> Vocabulary:
        """Select a vocabulary from the words of these lines; see `Vocabulary.from_counts`.

        Without `min_count`, a progress display shows the number of words mapped to ``<unk>``.
        """
        # Types that occur in these lines, and their counts
        present = self._type_counts > 0
        types = self._text.types if present.all() else list(compress(self._text.types, present))
        counts = self._type_counts[present]
        if min_count is None:
            # Report the words that are mapped to <unk> by default
            min_count = automatic_count(types, counts, unk)
            is_rare = counts < min_count
            if EOS in types:
                is_rare[types.index(EOS)] = False
            if is_rare.any():
                progress.say(
                    f"{self.name}: words that occur once are read as {UNK} "
                    f"({np.count_nonzero(is_rare):,} of {plural(len(types), 'word')}); "
                    "--min-count 1 (in Python min_count=1) keeps them"
                )
        return Vocabulary.from_counts(
            types,
            counts,
            min_count=min_count,
            max_size=max_size,
            unk=unk,
            source=self.source,
        )


def _source_record(source: dict[str, Any], words: dict[str, Any]) -> dict[str, Any]:
    """Return the source of a text, with that of its vocabulary if it is another text."""
    is_same = {**words, "lines": source["lines"]} == source
    if is_same or collect_sources([source, words]) == collect_sources(source):
        return source
    return {**source, "vocabulary": words}


def corpus_address(corpus: Corpus) -> tuple[Any, ...]:
    """Return values from which `open_corpus` makes the same corpus in another process.

    The values are names and words, without the arrays of the text. A text in memory is included.
    """
    text = corpus._text
    is_in_memory = text.entry == Path()
    location = (text.entry, text.name, text.location, text.sha256, text.lower)
    return text if is_in_memory else location, corpus.vocabulary, corpus.lines


def open_corpus(address: tuple[Any, ...]) -> Corpus:
    """Return the corpus for a value of `corpus_address`."""
    text, vocabulary, lines = address
    if not isinstance(text, EncodedText):
        text = encoded_again(*text)
    return Corpus(text, vocabulary, lines)

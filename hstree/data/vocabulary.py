"""Vocabulary: words with their training counts, and the ids of words.

Text is counted in `corpus`; the file format is in `word_files`.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress, pairwise, repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hstree._arrays import Int32, Int64
from hstree._files import BYTE_ORDER_MARK, replacing
from hstree._text import brief, quoted
from hstree.data.arrays import as_array, as_words, get_index
from hstree.data.provenance import collect_sources
from hstree.data.word_files import read_words, word_lines
from hstree.errors import InputError, OptionError, naming
from hstree.tree.names import whole_number
from hstree.tree.row_numbers import RowNumbers

#: The word that replaces every word outside the vocabulary.
UNK = "<unk>"
#: The word that ends every line.
EOS = "<eos>"
_LARGEST_TOTAL = np.iinfo(np.int64).max


class Vocabulary:
    """Unique words with their counts, in a fixed order.

    A vocabulary made from text is sorted by descending count, ties by word in code-point order
    (`from_counts`). One read from a file or made from a list keeps that order.

    Parameters
    ----------
    words : sequence of str, length V
        Unique words, at least one. Whole numbers become text: 3 becomes "3".
    counts : array_like of int, shape (V,)
        Number of occurrences of each word in the training text, zero or more. Whole floats are
        accepted. A dict or a Series contains the counts by word.
    source : dict, optional
        Record of the origin, stored in tree files (default: the hash of the words).

    Attributes
    ----------
    words : tuple of str
        Labels that are row numbers are stored without strings.
    counts : int64 array (V,), read-only
    source : dict
    unk, eos : str or None
        ``"<unk>"`` and ``"<eos>"`` if these are among the words, else None.

    Raises
    ------
    InputError
        If there are no words, if a word is duplicate, or if the counts do not match the words.

    Examples
    --------
    >>> vocabulary = Vocabulary(["the", "cat", "<eos>"], [7, 2, 3])
    >>> vocabulary.index("cat"), vocabulary.ids(["the", "dog"]).tolist()
    (1, [0, -1])
    """

    def __init__(
        self,
        words: Sequence[str] | Sequence[int],
        counts: Any,
        *,
        source: dict[str, object] | None = None,
    ) -> None:
        self.words = as_words(words, "word")
        if not self.words:
            raise InputError("the vocabulary is empty; give at least one word")
        if isinstance(self.words, tuple) and len(set(self.words)) < len(self.words):
            word = Counter(self.words).most_common(1)[0][0]
            raise InputError(f"duplicate word {word!r} in the vocabulary; remove one")
        self.counts: Int64 = checked_counts(counts, self.words)
        self.unk = UNK if UNK in self.words else None
        self.eos = EOS if EOS in self.words else None
        if source is not None:
            self.source = dict(source)

    @classmethod
    def from_counts(
        cls,
        words: Any,
        counts: ArrayLike | None = None,
        *,
        min_count: int | None = None,
        max_size: int | None = None,
        unk: bool | None = None,
        source: dict[str, object] | None = None,
    ) -> Vocabulary:
        """Select the vocabulary of a text from the counts of all its words.

        It contains the most frequent words (ties by word in code-point order), and always
        ``<eos>``. The count of ``<unk>`` is that of all excluded words and of literal ``<unk>``, so
        that the sum of the counts is the number of tokens. O(V log V).

        Parameters
        ----------
        words : sequence of str, dict or Series
            All words of the text. A dict, such as a ``Counter``, or a Series contains their counts.
        counts : array_like of int, optional
            Number of occurrences of each word in a sequence, as in `Vocabulary`.
        min_count : int, optional
            Map words that occur fewer times to ``<unk>``; 1 or more (default: `automatic_count` of
            the words).
        max_size : int, optional
            Maximum size of the vocabulary, including ``<eos>`` and ``<unk>``.
        unk : bool, optional
            Whether the vocabulary contains ``<unk>`` (default: only if words are excluded or the
            text contains it). Without ``<unk>``, excluded words have no id.
        source : dict, optional
            Record of the text, stored in tree files.

        Raises
        ------
        OptionError
            If `min_count` is below 1, or if `max_size` is too small for ``<eos>`` and ``<unk>``.

        Examples
        --------
        >>> words, counts = ["<eos>", "cat", "the", "dog"], [3, 2, 7, 1]
        >>> Vocabulary.from_counts(words, counts).words
        ('the', '<eos>', 'cat', '<unk>')
        >>> Vocabulary.from_counts(words, counts, min_count=1).words
        ('the', '<eos>', 'cat', 'dog')
        >>> Vocabulary.from_counts(words, counts, max_size=3).words
        ('the', '<eos>', '<unk>')
        >>> Vocabulary.from_counts({"cat": 2, "the": 7, "dog": 1}).words
        ('the', 'cat', '<unk>', '<eos>')
        """
        if counts is None:
            counted = cls.of(words)
            words = counted.words
            counts = counted.counts
        if min_count is not None and min_count < 1:
            raise OptionError.about("min_count", f"is {min_count}; it must be 1 or more")
        n = checked_counts(counts, words)
        if min_count is None:
            min_count = automatic_count(words, n, unk)
        if len(words) == 0 or len(set(words)) < len(words):
            cls(words, n)  # which refuses them

        # The special words are added at the end
        n_tokens = int(n.sum())
        special_ids = {word: i for i, word in enumerate(words) if word in (EOS, UNK)}
        n_eos = int(n[special_ids[EOS]]) if EOS in special_ids else 0

        # Frequent words, up to the maximum size without the special words
        is_kept = n >= min_count
        is_kept[list(special_ids.values())] = False
        chosen = list(compress(words, is_kept.tolist()))
        n = n[is_kept]
        if unk is None:
            is_too_large = max_size is not None and len(chosen) + 1 > max_size
            unk = is_too_large or n_eos + int(n.sum()) < n_tokens
        if max_size is not None:
            n_chosen = max_size - 1 - unk
            if n_chosen < 0:
                needed = f"{EOS} and {UNK}" if unk else EOS
                raise OptionError.about("max_size", f"is {max_size}: no room for {needed}")
            chosen, n = ranked(chosen, n)
            chosen = chosen[:n_chosen]
            n = n[:n_chosen]

        # <unk> counts all excluded tokens
        n_unk = n_tokens - n_eos - int(n.sum())
        chosen.append(EOS)
        n = np.append(n, n_eos)
        if unk:
            chosen.append(UNK)
            n = np.append(n, n_unk)
        return cls(*ranked(chosen, n), source=source)

    @classmethod
    def of(cls, counts: Any, labels: Any = None) -> Vocabulary:
        """Make a vocabulary from counts of any supported type.

        Parameters
        ----------
        counts : Vocabulary, dict, Series, array, list or tensor
            The index of a Series supplies the words. Words of an array, a list or a tensor are row
            numbers.
        labels : sequence of str or int, optional
            Words to use instead, in this order; they select from a dict or a Series.

        Examples
        --------
        >>> tuple(Vocabulary.of([3, 1, 2]).words), Vocabulary.of([3, 1], ["cat", "dog"]).words
        (('0', '1', '2'), ('cat', 'dog'))
        """
        if isinstance(counts, Vocabulary):
            return counts if labels is None else cls(labels, counts.counts)
        if labels is None and isinstance(counts, Mapping):
            labels = list(counts)
        elif labels is None:
            index = get_index(counts)
            counts = as_array(counts, "counts")
            if counts.ndim != 1 or counts.dtype.kind == "U":
                raise InputError(
                    f"{brief(counts.tolist())} is no list of counts; give a dict of words and "
                    "their counts, or words and as many counts"
                )
            labels = RowNumbers(counts.size) if index is None else index
        return cls(labels, counts)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Vocabulary:
        r"""Read ``word<TAB>count`` lines (UTF-8) in the order of the file; skip empty lines.

        A ``.csv`` file must have columns of words and counts. At least one count must be positive.
        The first line may record the texts in which the words were counted; `source` then contains
        them. Raises InputError for other files; the message names the line.
        """
        # Messages about the words name the file
        content = read_words(path, "the vocabulary", counted=True)
        with naming(content.path):
            vocabulary = cls(content.words, content.counts)
        if not vocabulary.counts.any():
            raise InputError(
                f"{content.path}: every count is zero; give the number of occurrences of each word"
            )
        if content.record is not None:
            vocabulary.source["texts"] = content.record["texts"]
        return vocabulary

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``word<TAB>count`` lines in the order of the vocabulary.

        The first line records the texts in `source`, if any. Raises InputError if a word is empty
        or contains a tab or a line end, and FileFormatError if the file cannot be written.
        """
        counted_on = collect_sources(self.source)
        record = {"texts": counted_on} if counted_on else None
        text = word_lines(path, self.words, self.counts, record)
        with replacing(path) as file:
            # A byte order mark in the first word must follow a byte order mark of the file
            file.write(BYTE_ORDER_MARK + text if text.startswith(BYTE_ORDER_MARK) else text)

    @cached_property
    def source(self) -> dict[str, object]:
        """Record of the origin, stored in tree files."""
        return {"kind": "vocabulary", "sha256": self.sha256}

    @cached_property
    def _index(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._index

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} words, {int(self.counts.sum())} tokens)"

    def index(self, word: str) -> int:
        """Return the id of a word, its index in `words`. Raises InputError for unknown words."""
        index = self._index.get(word, -1)
        if index < 0:
            raise InputError(f"{word!r} is not one of the {len(self)} words in the vocabulary")
        return index

    def ids(self, words: Iterable[str]) -> Int32:
        """Return the ids of words as an int32 array.

        Unknown words have the id of ``<unk>``, or -1 without ``<unk>``.
        """
        unk_id = self._index.get(UNK, -1)
        return np.fromiter(map(self._index.get, words, repeat(unk_id)), np.int32)

    @cached_property
    def sha256(self) -> str:
        """Hash of the sorted words; independent of their order and counts."""
        text = "\n".join(sorted(self.words))
        return hashlib.sha256(f"{text}\n".encode("utf-8", "surrogatepass")).hexdigest()


def automatic_count(words: Sequence[str], counts: Int64, unk: bool | None = None) -> int:
    """Return the default `min_count` of a text: 2, or 1 if all words are kept.

    Words that occur once are mapped to ``<unk>``, so that a model is trained with ``<unk>`` before
    it scores unknown words in other texts. All words are kept if the text contains ``<unk>``, if
    the vocabulary must not contain ``<unk>`` (`unk` is False), or if every word occurs once.
    """
    if unk is False or UNK in words:
        return 1
    is_repeated = counts > 1
    if EOS in words:
        is_repeated[words.index(EOS)] = False
    return 2 if is_repeated.any() else 1


def unk_min_count(vocabulary: Vocabulary, counts: Int64) -> int:
    """Return the smallest `min_count` that maps words of a text to ``<unk>``; 2 without words.

    `counts` are the counts of the vocabulary in a text that contains no other words.
    """
    is_word = counts > 0
    for special in (vocabulary.unk, vocabulary.eos):
        if special is not None:
            is_word[vocabulary.index(special)] = False
    return int(counts[is_word].min()) + 1 if is_word.any() else 2


def ranked(words: Sequence[str], counts: Int64) -> tuple[list[str], Int64]:
    """Return words and their counts by descending count, ties by word in code-point order."""
    order = np.argsort(-counts, kind="stable")
    by_count = [words[i] for i in order]
    counts = counts[order]
    # Words of the same count are adjacent
    ends = np.flatnonzero(np.diff(counts, append=-1)) + 1
    for first, stop in pairwise([0, *ends.tolist()]):
        if stop - first > 1:
            by_count[first:stop] = sorted(by_count[first:stop])
    return by_count, counts


def checked_counts(counts: Any, words: Sequence[str]) -> Int64:
    """Return a read-only int64 copy of the counts of words.

    A dict or a Series contains the counts by word; missing words have the count zero. A Series with
    a default index, an array, a list or a tensor has the order of the words. Raises InputError
    unless there is one whole number per word, zero or more, with a sum below 2**63.
    """
    if isinstance(counts, Mapping) or get_index(counts) is not None:
        counts = _in_order(counts, words)
    array = as_array(counts, "counts")
    if array.shape != (len(words),):
        raise InputError(
            f"counts of shape {array.shape} for {len(words)} words; give one count per word"
        )
    if array.dtype.kind not in "iu":
        # Floats and objects are accepted if they are whole numbers
        numbers = [whole_number(count) for count in array.tolist()]
        if None in numbers:
            at = numbers.index(None)
            raise InputError(
                f"the count of {quoted(words[at])} is {brief(array.tolist()[at])}, not a whole "
                "number"
            )
        array = np.array(numbers, object)
    # Counts must be zero or more, with a sum that fits into int64
    if array.min(initial=0) < 0:
        at = int(array.argmin())
        raise InputError(
            f"the word {quoted(words[at])} has the count {brief(array.tolist()[at])}; counts must "
            "be zero or more"
        )
    # A sum of floats detects an overflow, which a sum of int64 hides
    is_large = array.dtype == object or array.sum(dtype=np.float64) > _LARGEST_TOTAL / 2
    if is_large and sum(array.tolist()) > _LARGEST_TOTAL:
        raise InputError(
            "the sum of the counts is above 2**63 - 1; divide all counts by the same number"
        )
    checked = array.astype(np.int64)
    checked.setflags(write=False)
    return checked


def _in_order(counts: Any, words: Sequence[str]) -> Any:
    """Return the counts in a dict or a Series in the order of words.

    Raises InputError if it contains none of the words.
    """
    is_dict = isinstance(counts, Mapping)
    keys = as_words(list(counts) if is_dict else get_index(counts), "word")
    values = list(counts.values()) if is_dict else counts
    # A Series with a default index has the order of the words
    has_default_index = not is_dict and tuple(keys) == tuple(RowNumbers(len(keys)))
    if has_default_index or tuple(keys) == tuple(words):
        return values
    word_counts = dict(zip(keys, values if is_dict else as_array(values, "counts"), strict=True))
    if len(word_counts) < len(keys):
        word = Counter(keys).most_common(1)[0][0]
        raise InputError(f"duplicate word {quoted(word)} in the counts; add its counts")
    if words and not any(word in word_counts for word in words):
        raise InputError(
            f"the words of the counts ({', '.join(map(quoted, keys[:1]))}, ...) are not among the "
            f"labels ({quoted(words[0])}, ...); use the same names for both"
        )
    return [word_counts.get(word, 0) for word in words]

"""The vocabulary: the words that a tree is made over, with their training counts.

It keeps words and counts, reads and writes them as ``word<TAB>count`` lines, with a record of the
texts that they were counted on (`provenance`) as the first, and gives ids for words. It does not
count text (`corpus` does) and knows nothing of trees.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import repeat

import numpy as np
from numpy.typing import ArrayLike

from hstree._files import BYTE_ORDER_MARK, read_text, replacing
from hstree._text import quoted
from hstree._typing import Int32, Int64
from hstree.data.provenance import header, parse_header, texts
from hstree.errors import InputError, OptionError

UNK = "<unk>"
"""The word that stands for every word left out of a vocabulary."""

EOS = "<eos>"
"""The word that ends every line."""

_LARGEST_TOTAL = np.iinfo(np.int64).max
_STORABLE = re.compile(r"[^\0\t\n\r\ud800-\udfff]+")


class Vocabulary:
    """Unique words with their counts, in an order of their own.

    A vocabulary made from text is ordered by count, largest first, ties by word in code-point
    order (`from_counts`). One read from a file, or given as a list, keeps the order it came in.

    Parameters
    ----------
    words : sequence of str, length V
        Unique; at least one.
    counts : array_like of int, shape (V,)
        How often each word stands in the training text; zero or more.
    source : dict, optional
        What it was made from, as a tree file records it; by default its own hash.

    Attributes
    ----------
    words : tuple of str
    counts : int64 array (V,), read-only
    source : dict

    Raises
    ------
    InputError
        When there is no word, a word stands twice, or the counts do not fit the words.

    Examples
    --------
    >>> vocabulary = Vocabulary(["the", "cat", "<eos>"], [7, 2, 3])
    >>> vocabulary.index("cat"), vocabulary.ids(["the", "dog"]).tolist()
    (1, [0, -1])
    """

    def __init__(
        self,
        words: Sequence[str],
        counts: ArrayLike,
        *,
        source: dict[str, object] | None = None,
    ) -> None:
        self.words: tuple[str, ...] = tuple(words)
        if not self.words:
            raise InputError("a vocabulary without a word; it needs at least one")
        if len(self._index) < len(self.words):
            twice = Counter(self.words).most_common(1)[0][0]
            raise InputError(f"a vocabulary with the word {twice!r} twice; drop one")
        self.counts: Int64 = _checked_counts(counts, self.words)
        self.source: dict[str, object] = (
            {"kind": "vocabulary", "sha256": self.sha256} if source is None else dict(source)
        )

    @classmethod
    def from_counts(
        cls,
        words: Sequence[str],
        counts: ArrayLike,
        *,
        min_count: int = 1,
        max_size: int | None = None,
        unk: bool | None = None,
        source: dict[str, object] | None = None,
    ) -> Vocabulary:
        """Choose the vocabulary of a text from the counts of all its words.

        The most frequent words are kept, ties by word in code-point order. ``<eos>`` is always
        among them. ``<unk>`` counts every token left out, and every literal ``<unk>``, so that
        the counts sum to the number of tokens. O(V log V).

        Parameters
        ----------
        words : sequence of str, length V
            Unique.
        counts : array_like of int, shape (V,)
        min_count : int
            Words that stand fewer times are left out; 1 or more.
        max_size : int, optional
            The largest size of the vocabulary, ``<eos>`` and ``<unk>`` included.
        unk : bool, optional
            Whether ``<unk>`` is in the vocabulary; by default only where something is left out
            or the text itself holds it. With False, tokens left out, literal ones too, have no
            word.
        source : dict, optional
            What the text is, as a tree file records it.

        Raises
        ------
        InputError
            When a word is counted twice, or the counts do not fit the words.
        OptionError
            When `min_count` is below 1, or `max_size` leaves no room for ``<eos>`` and ``<unk>``.

        Examples
        --------
        >>> words, counts = ["<eos>", "cat", "the", "dog"], [3, 2, 7, 1]
        >>> Vocabulary.from_counts(words, counts).words
        ('the', '<eos>', 'cat', 'dog')
        >>> Vocabulary.from_counts(words, counts, max_size=3).words
        ('the', '<eos>', '<unk>')
        """
        if min_count < 1:
            raise OptionError(f"min_count is {min_count}; it must be 1 or more")
        count = _checked_counts(counts, words)
        special = {word: place for place, word in enumerate(words) if word in (EOS, UNK)}
        n_eos = int(count[special[EOS]]) if EOS in special else 0
        is_kept = count >= min_count
        is_kept[list(special.values())] = False
        kept = np.flatnonzero(is_kept)
        has_unk = unk
        if has_unk is None:
            is_all_kept = n_eos + count[kept].sum() == count.sum()
            has_unk = not is_all_kept or (max_size is not None and len(kept) + 1 > max_size)
        if max_size is not None:
            room = max_size - 1 - has_unk
            if room < 0:
                needed = f"{EOS} and {UNK}" if has_unk else EOS
                raise OptionError(f"max_size is {max_size}, which leaves no room for {needed}")
            kept = kept[_largest_first([words[i] for i in kept.tolist()], count[kept])[:room]]
        chosen = [*(words[i] for i in kept.tolist()), EOS]
        chosen_count = [*count[kept].tolist(), n_eos]
        if has_unk:
            chosen.append(UNK)
            chosen_count.append(int(count.sum()) - sum(chosen_count))
        order = _largest_first(chosen, np.array(chosen_count))
        return cls(
            [chosen[i] for i in order.tolist()], np.array(chosen_count)[order], source=source
        )

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Vocabulary:
        r"""Read ``word<TAB>count`` lines (UTF-8; ``\n`` or ``\r\n``), in the order of the file.

        Lines without any character are skipped. A count may be zero, but not all of them. The
        first line may record the texts that they were counted on, which `source` then names.

        Raises
        ------
        InputError
            When the file cannot be read as that, with the line that is wrong.
        """
        name = os.fspath(path)
        words: list[str] = []
        counts: list[int] = []
        lines = read_text(path, "the vocabulary").split("\n")
        record = parse_header(lines[0], name)
        if record is not None:
            lines[0] = ""
        for number, line in enumerate(lines, start=1):
            if not line:
                continue
            word, _, count = line.partition("\t")
            if not word or not _is_count(count):
                raise InputError(
                    f"{name}, line {number}: expected a word, a tab and a whole number, "
                    f"found {quoted(line)}"
                )
            words.append(word)
            counts.append(int(count))
        if not any(counts):
            what = "every count is zero" if counts else "the file is empty"
            raise InputError(f"{name}: {what}; give lines of the form word<TAB>count")
        try:
            vocabulary = cls(words, counts)
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
        if record is not None:
            vocabulary.source["texts"] = record["texts"]
        return vocabulary

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``word<TAB>count`` lines in the vocabulary's order.

        The first line records the texts that `source` names, where it names any.

        Raises
        ------
        InputError
            When a word is empty or holds a tab or a line end, which the file cannot hold.
        FileFormatError
            When the file cannot be written.
        """
        for word in self.words:
            if _STORABLE.fullmatch(word) is None:
                raise InputError(
                    f"cannot write {os.fspath(path)}: the word {word!r} is empty or holds a tab, "
                    "a line end, NUL or half a character; the file is lines of word<TAB>count"
                )
        lines = [f"{word}\t{n}\n" for word, n in zip(self.words, self.counts.tolist(), strict=True)]
        if counted_on := texts(self.source):
            lines.insert(0, header(texts=counted_on))
        with replacing(path) as file:
            text = "".join(lines).encode()
            # A byte order mark that belongs to the first word needs one of the file before it.
            file.write(BYTE_ORDER_MARK + text if text.startswith(BYTE_ORDER_MARK) else text)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._index

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} words, {int(self.counts.sum())} tokens)"

    def index(self, word: str) -> int:
        """Return the id of `word`, its place in `words`.

        Raises
        ------
        InputError
            When the word is not in the vocabulary.
        """
        found = self._index.get(word, -1)
        if found < 0:
            raise InputError(f"{word!r} is not one of the vocabulary's {len(self)} words")
        return found

    def ids(self, words: Iterable[str]) -> Int32:
        """Return the id of each of `words`, -1 for one that is not in the vocabulary."""
        return np.fromiter(map(self._index.get, words, repeat(-1)), np.int32)

    @property
    def unk(self) -> str | None:
        """``"<unk>"`` if that word is in the vocabulary."""
        return UNK if UNK in self else None

    @property
    def eos(self) -> str | None:
        """``"<eos>"`` if that word is in the vocabulary."""
        return EOS if EOS in self else None

    @cached_property
    def sha256(self) -> str:
        """A hash of the words, sorted, whatever their order and counts here."""
        text = "".join(f"{word}\n" for word in sorted(self.words))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def _index(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}


def _largest_first(words: Sequence[str], counts: Int64) -> Int64:
    """Return the order by count, largest first, ties by word."""
    by_word = np.array(sorted(range(len(words)), key=words.__getitem__), np.int64)
    order: Int64 = by_word[np.argsort(-counts[by_word], kind="stable")]
    return order


def _checked_counts(counts: ArrayLike, words: Sequence[str]) -> Int64:
    """Return the counts as a read-only int64 array of their own."""
    given = np.asarray(counts)
    if given.shape != (len(words),):
        raise InputError(f"counts of shape {given.shape} for {len(words)} words; one for each word")
    if given.dtype.kind not in "iu":
        raise InputError(f"counts of type {given.dtype}; they must be whole numbers below 2**63")
    if int(given.min(initial=0)) < 0:
        at = int(np.argmin(given))
        raise InputError(f"the word {words[at]!r} has the count {given[at]}; counts start at zero")
    # A sum in floats finds an overflow that a sum in int64 would hide.
    if given.sum(dtype=np.float64) > _LARGEST_TOTAL / 2 and sum(given.tolist()) > _LARGEST_TOTAL:
        raise InputError("counts whose sum is above 2**63 - 1; divide them all by the same number")
    checked = given.astype(np.int64)
    checked.setflags(write=False)
    return checked


def _is_count(field: str) -> bool:
    """Say whether a field is a whole number; nineteen digits hold every int64."""
    return len(field) <= 19 and field.isascii() and field.isdigit()

"""Word vectors: one row of numbers for each word, perhaps with the words' counts.

This is the checked object that builders take, with its `read` and `save`. The formats themselves
stand elsewhere (`vector_files`): `.npy` and its labels in `npy`, reading word2vec and GloVe files
in `reading`, writing word2vec's in `writing`.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hstree._text import quoted
from hstree._typing import Array, Float32, Int64
from hstree.data.provenance import texts
from hstree.data.vector_files.npy import is_npy, labels_beside, read_labels, read_npy, write_npy
from hstree.data.vector_files.reading import read_text_or_binary
from hstree.data.vector_files.writing import write_binary, write_text
from hstree.errors import FileFormatError, InputError, OptionError


class WordVectors:
    """Unique words, each with a vector of the same dimension.

    Parameters
    ----------
    labels : sequence of str, length V
        Unique; at least one.
    vectors : array_like of numbers, shape (V, d)
        Finite; kept as float32, without a copy where it is that already.
    counts : array_like of int, shape (V,), optional
        How often each word stands in the training text; zero or more.
    source : dict, optional
        What they were made from, as a tree file records it, beside their own hash.
    named_by_index : bool, default False
        Whether nothing named the rows, so that the labels are "0", "1", ...

    Attributes
    ----------
    labels : tuple of str
    vectors : float32 array (V, d), read-only
    counts : int64 array (V,), read-only, or None
    named_by_index : bool

    Raises
    ------
    InputError
        For anything but that: NaN, infinities, objects, ragged rows, a word twice, ...

    Examples
    --------
    >>> vectors = WordVectors(["cat", "dog"], [[0.5, 1.0], [0.25, 1.0]], counts=[3, 2])
    >>> vectors.dimension, vectors.labels
    (2, ('cat', 'dog'))
    """

    def __init__(
        self,
        labels: Sequence[str],
        vectors: ArrayLike,
        *,
        counts: ArrayLike | None = None,
        source: dict[str, object] | None = None,
        named_by_index: bool = False,
    ) -> None:
        self.labels: tuple[str, ...] = tuple(labels)
        self.vectors: Float32 = _checked_vectors(vectors, self.labels)
        _check_labels(self.labels)
        self.counts = None if counts is None else _checked_counts(counts, self.labels)
        self.named_by_index = named_by_index
        self._source = source

    @classmethod
    def read(
        cls, path: str | os.PathLike[str], *, labels: str | os.PathLike[str] | None = None
    ) -> WordVectors:
        """Read `.npy`, word2vec text or binary, or GloVe text; all but `.npy` may be gzipped.

        The content decides which of them it is.

        Parameters
        ----------
        path : str or path
        labels : str or path, optional
            For `.npy`: lines of ``word`` or ``word<TAB>count``, one for each row. Without it
            ``NAME.labels.tsv`` beside ``NAME.npy`` is read; without that file too, the rows are
            named by index and `named_by_index` is set.

        Raises
        ------
        InputError
            When the files cannot be read as that; the message names the line or the row.
        OptionError
            When `labels` is given for a file that holds its words itself.
        """
        name = os.fspath(path)
        if not is_npy(name):
            if labels is not None:
                raise OptionError(
                    f"{name} holds its words itself; leave out --labels, which is for .npy"
                )
            words, rows = read_text_or_binary(name)
            return _named(name, words, rows)
        matrix = read_npy(name)
        beside = labels_beside(name) if labels is None else os.fspath(labels)
        if beside is None:
            by_index = [str(row) for row in range(len(np.atleast_1d(matrix)))]
            return _named(name, by_index, matrix, named_by_index=True)
        words, counts, made_from = read_labels(beside, name)
        if matrix.ndim and len(words) != len(matrix):
            raise InputError(
                f"{beside} has {len(words)} labels for the {len(matrix)} rows of {name}; "
                "give one line for each row"
            )
        source = {"texts": made_from} if made_from else None
        return _named(name, words, matrix, counts=counts, source=source)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the vectors; the file's ending decides how.

        ``.npy`` has the words, their counts if known, and the texts that `source` names, beside
        it in ``NAME.labels.tsv``; ``.vec`` and ``.txt`` are word2vec's text, ``.bin`` is its
        binary: these hold no counts and no record of texts.

        Raises
        ------
        FileFormatError
            When the ending is another, or the files cannot be written; the old ones stay.
        InputError
            When a word holds white space (for `.npy` a tab or a line end), which such a file
            cannot hold.
        """
        name = os.fspath(path)
        if name.endswith((".vec", ".txt")):
            write_text(name, self.labels, self.vectors)
        elif name.endswith(".bin"):
            write_binary(name, self.labels, self.vectors)
        elif name.endswith(".npy"):
            write_npy(name, self.labels, self.vectors, self.counts, texts(self._source))
        else:
            raise FileFormatError(f"cannot write {name}: name it .npy, .vec, .txt or .bin")

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        counted = "" if self.counts is None else ", with counts"
        return f"WordVectors({len(self)} words, {self.dimension} numbers each{counted})"

    @property
    def dimension(self) -> int:
        """d, how many numbers stand for each word."""
        return int(self.vectors.shape[1])

    @property
    def source(self) -> dict[str, object]:
        """What they were made from, for a tree's meta["input"]."""
        own = dict(self._source or {})
        if "sha256" not in own:  # that of vectors which these are some of
            own["sha256"] = self.sha256
        return {"kind": "vectors", **own}

    @cached_property
    def sha256(self) -> str:
        """A hash of labels, vectors and counts, whatever file they came in."""
        digest = hashlib.sha256(f"hstree vectors 1\n{self.vectors.shape}\n".encode())
        lengths = ",".join(str(len(label)) for label in self.labels)
        digest.update(f"{lengths}\n{''.join(self.labels)}\n".encode("utf-8", "surrogatepass"))
        digest.update(self.vectors.astype("<f4", copy=False).data)
        if self.counts is not None:
            digest.update(b"\n" + self.counts.astype("<i8").tobytes())
        return digest.hexdigest()


def _named(name: str, labels: Sequence[str], vectors: ArrayLike, **more: Any) -> WordVectors:
    """Make word vectors from a file's content; an error names the file."""
    try:
        return WordVectors(labels, vectors, **more)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def _checked_vectors(vectors: ArrayLike, labels: tuple[str, ...]) -> Float32:
    """Return the vectors as a read-only, finite float32 matrix, one row for each label."""
    try:
        given = np.asarray(vectors)
    except ValueError as error:
        raise InputError("vectors of different lengths; every word needs the same") from error
    if given.dtype.kind not in "fiu":
        raise InputError(f"vectors of type {given.dtype}; they must be real numbers")
    if given.ndim != 2 or given.size == 0:
        raise InputError(
            f"vectors of shape {given.shape}; expected (words, dimension), both at least 1"
        )
    if len(given) != len(labels):
        raise InputError(f"{len(labels)} labels for {len(given)} rows; give one for each row")
    with np.errstate(over="ignore"):  # found below, and told from an infinity
        matrix = np.ascontiguousarray(given, np.float32).view()
    _check_finite(given, matrix, labels)
    matrix.setflags(write=False)
    return matrix


def _check_finite(given: Array, matrix: Float32, labels: tuple[str, ...]) -> None:
    finite = np.isfinite(matrix)
    if finite.all():
        return
    row, column = (int(place) for place in np.argwhere(~finite)[0])
    value = given[row, column]
    what = f"the value {value}, too large for float32" if np.isfinite(value) else f"{value}"
    more = int(np.count_nonzero(~finite.all(axis=1))) - 1
    rest = f", as do {more} other rows" if more else ""
    raise InputError(
        f"row {row} ({quoted(labels[row])}) holds {what} in column {column}{rest}; "
        "vectors must be finite numbers"
    )


def _check_labels(labels: tuple[str, ...]) -> None:
    for row, label in enumerate(labels):
        if not isinstance(label, str):
            raise InputError(f"label {row} is {label!r}; labels must be text")
    if len(set(labels)) < len(labels):
        twice = Counter(labels).most_common(1)[0][0]
        first = labels.index(twice)
        second = labels.index(twice, first + 1)
        raise InputError(
            f"the word {quoted(twice)} names row {first} and row {second}; drop one of them"
        )


def _checked_counts(counts: ArrayLike, labels: tuple[str, ...]) -> Int64:
    given = np.asarray(counts)
    if given.shape != (len(labels),):
        raise InputError(f"counts of shape {given.shape} for {len(labels)} words; one for each")
    if given.dtype.kind not in "iu" or int(given.max()) > np.iinfo(np.int64).max:
        raise InputError(f"counts of type {given.dtype}; they must be whole numbers below 2**63")
    if int(given.min()) < 0:
        row = int(np.argmin(given))
        raise InputError(
            f"the word {quoted(labels[row])} has the count {given[row]}; counts start at zero"
        )
    checked = given.astype(np.int64)
    checked.setflags(write=False)
    return checked

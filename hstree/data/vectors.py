"""Word vectors: a checked matrix with one row per word, optionally with counts of the words.

`vector_files` implements the file formats.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hstree._arrays import Array, Float32, Float64, Int64, refuse_masked
from hstree._files import open_regular
from hstree._options import checked_count
from hstree._text import brief, quoted
from hstree.data.arrays import as_array, as_words, get_index
from hstree.data.provenance import collect_sources
from hstree.data.vector_files import (
    LARGE,
    MappedRows,
    read_shards,
    read_text_or_binary,
    write_word2vec,
)
from hstree.data.vocabulary import checked_counts
from hstree.data.word_files import read_labels, replacing_with_labels
from hstree.errors import FileFormatError, InputError, OptionError, explained, naming
from hstree.tree.npy import read_npy, write_array
from hstree.tree.row_numbers import RowNumbers

#: Minimum number of words for which the counts V, V - 1, ..., 1 are considered made up by gensim.
MADE_UP = 50
#: Labels and rows that are processed at a time.
_AT_ONCE = 1 << 16


@runtime_checkable
class KeyedVectorsLike(Protocol):
    """The interface of ``KeyedVectors`` in gensim: words and a matrix with one row per word.

    Counts are in ``expandos["count"]``, if there are any.
    """

    index_to_key: list[str]
    vectors: Float32


class WordVectors:
    """Unique words, each with a vector of the same dimension.

    Parameters
    ----------
    labels : sequence of str, length V, or None
        Unique labels, at least one. Whole numbers become text: 3 becomes "3". With None, the index
        of a DataFrame supplies the labels, and other rows are labelled "0", "1" and so on.
    vectors : array_like of numbers, shape (V, d)
        Finite numbers; a tensor or a DataFrame is also accepted. They are stored as float32,
        without a copy if they are float32 already. If there are more than two million rows of
        another type, rows are converted when they are read.
    counts : array_like of int, shape (V,), optional
        Number of occurrences of each word in the training text, zero or more. A dict or a Series
        contains the counts by word.
    source : dict, optional
        Record of the origin, stored in tree files with the hash of the vectors.

    Attributes
    ----------
    labels : tuple of str
    vectors : float32 array (V, d), read-only
    dimension : int
        d, the number of columns.
    counts : int64 array (V,), read-only, or None
    named_by_index : bool
        Whether no labels were given.

    Raises
    ------
    InputError
        For NaN, infinities, objects, rows of different lengths, duplicate words and so on.

    Examples
    --------
    >>> vectors = WordVectors(["cat", "dog"], [[0.5, 1.0], [0.25, 1.0]], counts=[3, 2])
    >>> vectors.dimension, vectors.labels
    (2, ('cat', 'dog'))
    """

    def __init__(
        self,
        labels: Sequence[str] | Sequence[int] | None,
        vectors: Any,
        *,
        counts: Any = None,
        source: dict[str, object] | None = None,
    ) -> None:
        if labels is None:
            labels = get_index(vectors)
        array: Any = vectors
        is_mapped = isinstance(vectors, MappedRows)
        if not is_mapped:
            array = as_array(vectors, "vectors")
        if array.dtype.kind not in "fiu":
            raise InputError(f"vectors of type {array.dtype}; they must be real numbers")
        if array.ndim != 2 or array.size == 0:
            raise InputError(
                f"vectors of shape {array.shape}; expected (words, dimension), both at least 1"
            )
        # One label for each row
        self.labels = RowNumbers(len(array)) if labels is None else as_words(labels)
        if len(array) != len(self.labels):
            raise InputError(
                f"{len(self.labels)} labels for {len(array)} rows; give one label per row"
            )

        # Convert to float32, without copying arrays that are float32 or large
        if len(array) > LARGE and array.dtype != np.float32 and not is_mapped:
            array = MappedRows([array])
            is_mapped = True
        self.vectors: Float32 = array
        if not is_mapped:
            with np.errstate(over="ignore"):  # refused below
                self.vectors = np.ascontiguousarray(array, np.float32).view()
            self.vectors.setflags(write=False)
        if not all(np.isfinite(rows).all() for rows in self._blocks()):
            raise _not_finite(array, np.asarray(self.vectors), self.labels)
        is_converted = not is_mapped and array.dtype != np.float32
        tiny = np.finfo(np.float32).tiny  # below which float32 has fewer digits
        if is_converted and array.any() and np.abs(self.vectors).max() < tiny:
            raise InputError(
                "the vectors are too small for float32; multiply all by the same number"
            )
        if not isinstance(self.labels, RowNumbers) and len(set(self.labels)) < len(self.labels):
            word = Counter(self.labels).most_common(1)[0][0]
            first = self.labels.index(word)
            second = self.labels.index(word, first + 1)
            raise InputError(
                f"duplicate word {quoted(word)} in rows {first} and {second}; remove one of them"
            )

        self.dimension = int(self.vectors.shape[1])
        self.counts = None if counts is None else checked_counts(counts, self.labels)
        self.named_by_index = labels is None
        self._source = source

    @classmethod
    def of(cls, vectors: Any, labels: Any = None, counts: Any = None) -> WordVectors:
        """Make word vectors from WordVectors, KeyedVectors, an array, a tensor or a DataFrame.

        `labels` and `counts`, if given, replace those of the vectors.
        """
        if isinstance(vectors, KeyedVectorsLike):
            vectors = cls.from_keyed_vectors(vectors)
        if not isinstance(vectors, WordVectors):
            return cls(labels, vectors, counts=counts)
        if labels is None and counts is None:
            return vectors
        # Keep the texts of the source, but not the hash, which is that of the old vectors
        old = None if vectors.named_by_index else vectors.labels
        provenance = collect_sources(vectors._source)
        return cls(
            old if labels is None else labels,
            vectors.vectors,
            counts=vectors.counts if counts is None else counts,
            source={"texts": provenance} if provenance else None,
        )

    @classmethod
    def from_keyed_vectors(cls, keyed: KeyedVectorsLike) -> WordVectors:
        """Make word vectors from ``KeyedVectors`` of gensim, in the same order.

        Counts are kept, except V, V - 1, ..., 1, which gensim makes up for files of vectors. gensim
        is not required: any object with the same attributes is accepted.
        """
        refuse_masked(keyed.vectors, "vectors")
        counts = keyed_counts(keyed)
        if counts is not None and len(counts) >= MADE_UP:
            counts = None if (np.diff(counts, append=0) == -1).all() else counts
        return cls(keyed.index_to_key, np.array(keyed.vectors), counts=counts)

    @classmethod
    def read(
        cls, path: str | os.PathLike[str], *, labels: str | os.PathLike[str] | None = None
    ) -> WordVectors:
        """Read ``.npy``, word2vec text or binary, or GloVe text; the content decides which.

        All except ``.npy`` can be gzipped. The ``.npy`` files in a folder are one matrix, in the
        order of their names. More than two million rows of ``.npy`` are memory-mapped.

        Parameters
        ----------
        path : str or path
        labels : str or path, optional
            For ``.npy``: file with one line ``word`` or ``word<TAB>count`` per row (default:
            ``NAME.labels.tsv`` beside ``NAME.npy``). Without such a file, the rows are named by
            index, and `named_by_index` is True.

        Raises
        ------
        InputError
            If a file has a wrong format; the message names the line or the row.
        OptionError
            If `labels` is given for a file that contains its own words.
        """
        name = os.fspath(path)
        is_folder = os.path.isdir(name)
        is_npy = is_folder
        if not is_folder:
            with explained(f"read the vectors {name}"), open_regular(name) as file:
                magic = np.lib.format.MAGIC_PREFIX
                is_npy = file.read(len(magic)) == magic or name.endswith(".npy")
        # Files that contain their words
        if not is_npy:
            if labels is not None:
                raise OptionError.about("labels", f"is for .npy; {name} contains its own words")
            words, rows = read_text_or_binary(name)
            with naming(name):
                return cls(words, rows)
        # Matrices, whose words are in a labels file
        matrix: Any = read_shards(name) if is_folder else read_npy(name, mapped_above=LARGE)
        content = read_labels(name, labels)
        if content is not None and matrix.ndim and len(content.words) != len(matrix):
            raise InputError(
                f"{content.path} has {len(content.words)} labels for the {len(matrix)} rows of "
                f"{name}; give one line per row"
            )
        with naming(name):
            if content is None:
                return cls(None, matrix)
            provenance = (content.record or {}).get("texts")
            source = {"texts": provenance} if provenance else None
            return cls(content.words, matrix, counts=content.counts, source=source)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the vectors in the format of the file's extension.

        For ``.npy``, the words, their counts and the texts in `source` are written to
        ``NAME.labels.tsv`` beside it. ``.vec`` and ``.txt`` are the word2vec text format, ``.bin``
        is its binary format; these contain neither counts nor texts. Raises FileFormatError for
        another extension or if the files cannot be written, and InputError if a word contains white
        space (for ``.npy``: a tab or a line end). Existing files are then unchanged.
        """
        name = os.fspath(path)
        if name.endswith((".vec", ".txt", ".bin")):
            write_word2vec(name, self.labels, self.vectors, binary=name.endswith(".bin"))
        elif name.endswith(".npy"):
            record = collect_sources(self._source)
            with replacing_with_labels(name, self.labels, self.counts, record) as file:
                write_array(file, self.vectors)
        else:
            raise FileFormatError(f"cannot write {name}: name it .npy, .vec, .txt or .bin")

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        counted = "" if self.counts is None else ", with counts"
        return f"WordVectors({len(self)} words, {self.dimension} numbers each{counted})"

    @property
    def source(self) -> dict[str, object]:
        """Origin of the vectors, for a tree's meta["input"]."""
        source = self._source or {}
        hashed = {} if "sha256" in source else {"sha256": self.sha256}  # a subset has the whole's
        return {"kind": "vectors", **source, **hashed}

    def most_similar(
        self,
        positive: str | Sequence[str],
        negative: str | Sequence[str] = (),
        *,
        topn: int = 10,
    ) -> list[tuple[str, float]]:
        """Return the words with the largest cosine similarity to a word or to a sum of words.

        O(V d) time per call.

        Parameters
        ----------
        positive : str or sequence of str
            A word, or words whose vectors are scaled to length 1 and added.
        negative : str or sequence of str, optional
            Words whose vectors are subtracted, as in an analogy.
        topn : int, default 10
            Maximum number of words.

        Returns
        -------
        list of (str, float)
            Words and cosines, the largest first, ties by row, without the given words. The cosine
            of a zero vector is 0.

        Raises
        ------
        InputError
            If no word is given, or if a word has no vector.
        OptionError
            If `topn` is not a whole number, 1 or more.

        Examples
        --------
        >>> vectors = WordVectors(["cat", "dog", "car"], [[1.0, 0.1], [0.9, 0.2], [0.0, 1.0]])
        >>> [word for word, _ in vectors.most_similar("cat", topn=2)]
        ['dog', 'car']
        """
        topn = checked_count("topn", topn)
        # Words to add, then words to subtract
        added = [positive] if isinstance(positive, str) else list(positive)
        words = [*added, *([negative] if isinstance(negative, str) else negative)]
        if not words:
            raise InputError("most_similar needs a word, or a list of words")
        for word in words:
            if word not in self.labels:
                raise InputError(f"{brief(word)} is not one of the {len(self):,} words")
        rows = np.array([self.labels.index(word) for word in words])

        # (d,) sum of the vectors scaled to length 1, minus those of negative words
        sign = np.where(np.arange(len(rows)) < len(added), 1.0, -1.0)
        target = sign @ _unit_rows(self.vectors.take(rows, axis=0))
        target = _unit_rows(target[None])[0]

        # (V,) cosine of each word
        cosine = np.concatenate([_unit_rows(block) @ target for block in self._blocks()])
        cosine[rows] = -np.inf
        best = np.argsort(-cosine, kind="stable")[: min(topn, len(self) - len(set(rows.tolist())))]
        return [(self.labels[row], float(cosine[row])) for row in best.tolist()]

    def _blocks(self) -> Iterator[Float32]:
        """Yield the vectors in blocks of rows."""
        for first in range(0, len(self.labels), _AT_ONCE):
            yield self.vectors[first : first + _AT_ONCE]

    @cached_property
    def sha256(self) -> str:
        """Hash of labels, vectors and counts; independent of the file format."""
        # The shape, the lengths of the labels, the labels, the vectors and the counts
        digest = hashlib.sha256(f"hstree vectors 1\n{self.vectors.shape}\n".encode())
        blocks = range(0, len(self.labels), _AT_ONCE)
        for first in blocks:
            lengths = ",".join(map(str, map(len, self.labels[first : first + _AT_ONCE])))
            digest.update(f"{',' if first else ''}{lengths}".encode())
        digest.update(b"\n")
        for first in blocks:
            text = "".join(self.labels[first : first + _AT_ONCE])
            digest.update(text.encode("utf-8", "surrogatepass"))
        digest.update(b"\n")
        for rows in self._blocks():
            digest.update(rows.astype("<f4", copy=False).data)
        if self.counts is not None:
            digest.update(b"\n" + self.counts.astype("<i8").tobytes())
        return digest.hexdigest()


def keyed_counts(keyed: KeyedVectorsLike) -> Int64 | None:
    """Return the counts of gensim's ``KeyedVectors``; None if it has none."""
    counts = getattr(keyed, "expandos", {}).get("count")
    refuse_masked(counts, "counts")
    return None if counts is None else np.array(counts, np.int64)


def _unit_rows(rows: Array) -> Float64:
    """Return the rows (n, d) scaled to length 1; rows of zeros stay."""
    # Divided by the largest number first, so that no square overflows or vanishes
    largest = np.abs(rows).max(axis=1, keepdims=True).astype(np.float64)
    scaled = rows / np.where(largest > 0, largest, 1)
    length = np.sqrt(np.vecdot(scaled, scaled))[:, None]
    unit: Float64 = scaled / np.maximum(length, 1)
    return unit


def _not_finite(array: Array, vectors: Float32, labels: Sequence[str]) -> InputError:
    """Return the error of an array that is not finite as the float32 `vectors`."""
    finite = np.isfinite(vectors)
    row, column = map(int, np.argwhere(~finite)[0])
    value = array.take(np.array([row]), axis=0)[0, column]
    what = f"the value {value}, too large for float32" if np.isfinite(value) else f"{value}"
    return InputError(
        f"row {row} ({quoted(labels[row])}) holds {what} in column {column}; vectors must be "
        "finite numbers"
    )

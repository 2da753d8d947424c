"""Word vectors: a checked matrix with one row per word, optionally with the words' counts.

The file formats are in `vector_files`.
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

#: Number of words from which counts of V, V - 1, ..., 1 are taken for made up by gensim.
MADE_UP = 50
#: Labels and rows that are processed at a time.
_AT_ONCE = 1 << 16


@runtime_checkable
class KeyedVectorsLike(Protocol):
    """gensim's ``KeyedVectors``: words and a matrix with a row for each.

    Counts are in ``expandos["count"]`` if it has that attribute.
    """

    index_to_key: list[str]
    vectors: Float32


class WordVectors:
    """Unique words, each with a vector of the same dimension.

    Parameters
    ----------
    labels : sequence of str, length V, or None
        Unique; at least one. Whole numbers become text: 3 is "3". None takes the index of a
        DataFrame, and names other rows by index: "0", "1", ...
    vectors : array_like of numbers, shape (V, d)
        Also a tensor or a DataFrame. Finite; kept as float32, without a copy if it is float32
        already. More than two million rows of another type are converted when they are read.
    counts : array_like of int, shape (V,), optional
        Number of occurrences of each word in the training text; zero or more. A dict or a Series
        gives them by word.
    source : dict, optional
        Record of their origin, stored in tree files beside their hash.

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
        For anything else: NaN, infinities, objects, ragged rows, a word twice, ...

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
                f"{len(self.labels)} labels for {len(array)} rows; give one for each row"
            )

        # float32, without a copy of arrays that are float32 or large
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
                f"the word {quoted(word)} names row {first} and row {second}; drop one of them"
            )

        self.dimension = int(self.vectors.shape[1])
        self.counts = None if counts is None else checked_counts(counts, self.labels)
        self.named_by_index = labels is None
        self._source = source

    @classmethod
    def of(cls, vectors: Any, labels: Any = None, counts: Any = None) -> WordVectors:
        """Make word vectors from WordVectors, KeyedVectors, an array, a tensor or a DataFrame.

        `labels` and `counts`, if any, replace those that the vectors have.
        """
        if isinstance(vectors, KeyedVectorsLike):
            vectors = cls.from_keyed_vectors(vectors)
        if not isinstance(vectors, WordVectors):
            return cls(labels, vectors, counts=counts)
        if labels is None and counts is None:
            return vectors
        # The texts stay; what else the source says, such as a hash, is of the vectors before
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
        """Make word vectors from gensim's ``KeyedVectors``, in the same order.

        Counts are kept if there are any, except V, V - 1, ..., 1, which gensim makes up for a file
        of vectors. gensim is not needed: any object with these attributes will do.
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

        All but ``.npy`` may be gzipped. A folder of ``.npy`` files is one matrix, in the order of
        their names. More than two million rows of ``.npy`` stay in their files, mapped.

        Parameters
        ----------
        path : str or path
        labels : str or path, optional
            For ``.npy``: file with a line ``word`` or ``word<TAB>count`` for each row (default:
            ``NAME.labels.tsv`` beside ``NAME.npy``). If there is neither, the rows are named by
            index and `named_by_index` is set.

        Raises
        ------
        InputError
            When the files cannot be read as that; the message names the line or the row.
        OptionError
            When `labels` is given for a file that contains its words.
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
                raise OptionError.about("labels", f"is for .npy; {name} holds its words itself")
            words, rows = read_text_or_binary(name)
            with naming(name):
                return cls(words, rows)
        # Matrices, whose words are in a labels file
        matrix: Any = read_shards(name) if is_folder else read_npy(name, mapped_above=LARGE)
        content = read_labels(name, labels)
        if content is not None and matrix.ndim and len(content.words) != len(matrix):
            raise InputError(
                f"{content.path} has {len(content.words)} labels for the {len(matrix)} rows of "
                f"{name}; give one line for each row"
            )
        with naming(name):
            if content is None:
                return cls(None, matrix)
            provenance = (content.record or {}).get("texts")
            source = {"texts": provenance} if provenance else None
            return cls(content.words, matrix, counts=content.counts, source=source)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the vectors in the format that the file's ending names.

        ``.npy`` keeps the words, their counts and the texts that `source` names in
        ``NAME.labels.tsv`` beside it. ``.vec`` and ``.txt`` are word2vec text, ``.bin`` is its
        binary; these hold neither counts nor texts. Raises FileFormatError when the ending is
        another one or the files cannot be written, InputError when a word contains white space (for
        ``.npy``: a tab or a line end); old files stay.
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
        """Return the words with the largest cosine to a word, or to a sum of words.

        O(V d) time for each call.

        Parameters
        ----------
        positive : str or sequence of str
            A word, or words whose vectors are scaled to length 1 and added up.
        negative : str or sequence of str, optional
            Words whose vectors are subtracted, as in an analogy.
        topn : int, default 10
            Maximum number of words.

        Returns
        -------
        list of (str, float)
            Words and cosines, the largest first, ties by row; without the words that were given. A
            vector of zeros has the cosine 0.

        Raises
        ------
        InputError
            When there is no word, or one has no vector.
        OptionError
            When `topn` is not a whole number, 1 or more.

        Examples
        --------
        >>> vectors = WordVectors(["cat", "dog", "car"], [[1.0, 0.1], [0.9, 0.2], [0.0, 1.0]])
        >>> [word for word, _ in vectors.most_similar("cat", topn=2)]
        ['dog', 'car']
        """
        topn = checked_count("topn", topn)
        # Rows of the words to add, then of those to subtract
        added = [positive] if isinstance(positive, str) else list(positive)
        words = [*added, *([negative] if isinstance(negative, str) else negative)]
        if not words:
            raise InputError("most_similar needs a word, or a list of words")
        for word in words:
            if word not in self.labels:
                raise InputError(f"{brief(word)} is not one of the {len(self):,} words")
        rows = np.array([self.labels.index(word) for word in words])

        # (d,) sum of the vectors of length 1, those of negative words subtracted
        sign = np.where(np.arange(len(rows)) < len(added), 1.0, -1.0)
        target = sign @ _unit_rows(self.vectors.take(rows, axis=0))
        target = _unit_rows(target[None])[0]

        # (V,) cosine of each word
        cosine = np.concatenate([_unit_rows(block) @ target for block in self._blocks()])
        cosine[rows] = -np.inf
        best = np.argsort(-cosine, kind="stable")[: min(topn, len(self) - len(set(rows.tolist())))]
        return [(self.labels[row], float(cosine[row])) for row in best.tolist()]

    def _blocks(self) -> Iterator[Float32]:
        """Yield the vectors, some rows at a time."""
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

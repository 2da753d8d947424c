"""Text form of extreme classification: samples with features and labels.

The first line is ``N D L``: the numbers of samples, features and labels. A line for each sample
follows, ``label,label feature:value ...``, with labels and features numbered from 0. The line of a
sample without labels begins with a blank. Files of napkinXC and LIBSVM have no line ``N D L``: a
first line with a feature is a sample.
"""

import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from hstree._arrays import Array, Int64, canonical_csr, offsets, segment_ids
from hstree._files import read_unpacked, replacing
from hstree._text import plural, quoted, strict_text
from hstree.data.arrays import as_table
from hstree.errors import InputError, naming

#: Bytes of a file that are read at a time.
AT_ONCE = 1 << 20
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
#: Most features or labels, which int32 numbers.
_MOST = 2**31 - 1
#: Numbers of samples, features and labels, of at most as many digits as an int64 has.
_SIZES = re.compile(r"\s*(\d{1,19})\s+(\d{1,19})\s+(\d{1,19})\s*", re.ASCII)
#: Labels and features of a line.
_LINE = re.compile(rf"(\d+(?:,\d+)*)?((?:(?:\s+|^)\d+:{_NUMBER})*)\s*", re.ASCII)
_WANTED = 'the numbers of samples, features and labels, as in "4880 1836 159"'


class MultilabelData(NamedTuple):
    """Samples and their labels."""

    X: Any  #: CSR array of float32 (N, D), the features
    Y: Any  #: CSR array of int8 (N, L), 1 for each label of a sample


class _File(NamedTuple):
    """Content of a file."""

    data: MultilabelData
    has_sizes: bool  #: whether its first line has the numbers of features and labels

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of features and labels."""
        return self.data.X.shape[1], self.data.Y.shape[1]


def read_multilabel(path: str | os.PathLike[str]) -> MultilabelData:
    """Read a file of the text form, which may be packed (.gz, .xz, .bz2, .zst).

    Without a first line of sizes, the largest numbers in the file give the numbers of features and
    labels.

    Raises InputError when the file cannot be read, a line is not of the form, or the numbers of the
    first line are not those of the others.
    """
    return _read(path).data


def read_train_and_test(
    train: str | os.PathLike[str], test: str | os.PathLike[str]
) -> tuple[MultilabelData, MultilabelData]:
    """Read two files of samples with the same features and labels, as `read_multilabel` does.

    A file without a first line of sizes has the sizes of the other file. Where both have none, the
    larger numbers hold for both. Also raises InputError when the sizes differ.
    """
    train_file = _read(train)
    test_file = _read(test)
    n_features, n_labels = map(max, train_file.sizes, test_file.sizes)
    for file in (train_file, test_file):
        if file.has_sizes and file.sizes != (n_features, n_labels):
            d, v = test_file.sizes
            d_train, v_train = train_file.sizes
            raise InputError(
                f"{test} has {plural(d, 'feature')} and {plural(v, 'label')}, {train} has "
                f"{d_train:,} and {v_train:,}; both need the same"
            )
    for file in (train_file, test_file):
        file.data.X.resize((file.data.X.shape[0], n_features))
        file.data.Y.resize((file.data.Y.shape[0], n_labels))
    return train_file.data, test_file.data


class _Header(NamedTuple):
    """Sizes that the first line of a file states, None without such a line."""

    end: int  #: first byte of the samples
    line: int  #: line of the first sample
    n_features: int | None = None
    n_labels: int | None = None


def _read(path: str | os.PathLike[str]) -> _File:
    """Read a file of the text form."""
    data = read_unpacked(path)
    with naming(path):
        header = _header(data, os.fspath(path))
    labels = []
    features = []
    start = header.end
    line = header.line
    # Some lines at a time, so that little is in memory as text
    while start < len(data):
        stop = data.find(b"\n", start + AT_ONCE) + 1 or len(data)
        text = strict_text(data[start:stop], os.fspath(path), line=line, offset=start)
        lines = text.removesuffix("\n").split("\n")
        with naming(path):
            matches = [_match_line(text, number) for number, text in enumerate(lines, start=line)]
            labels.append(_labels([match[1] or "" for match in matches], line, header.n_labels))
            features.append(_features([match[2] for match in matches], line, header.n_features))
        line += len(lines)
        start = stop
    data_set = MultilabelData(_stacked(features), _stacked(labels))
    return _File(data_set, has_sizes=header.n_features is not None)


def _header(data: bytes, path: str) -> _Header:
    """Return what the first line of a file says."""
    end = data.find(b"\n") + 1 or len(data)
    first = strict_text(data[:end], path).rstrip("\r\n")
    if match := _SIZES.fullmatch(first):
        n, n_features, n_labels = map(int, match.groups())
        if max(n_features, n_labels) > _MOST:
            raise InputError(f"line 1 is {quoted(first)}; at most {_MOST:,} of each are read")
        n_lines = data.count(b"\n", end) + (end < len(data) and not data.endswith(b"\n"))
        if n_lines != n or n == 0:
            raise InputError(f"line 1 says {plural(n, 'sample')}, and {n_lines} lines follow")
        return _Header(end, 2, n_features, n_labels)
    if (match := _LINE.fullmatch(first)) and match[2]:
        return _Header(0, 1)
    raise InputError(f"line 1 is {quoted(first)}; expected {_WANTED}, or a sample")


def _stacked(parts: Sequence[Any]) -> Any:
    """Return the rows of CSR arrays as one array, as wide as the widest of them."""
    width = max(part.shape[1] for part in parts)
    for part in parts:
        part.resize((part.shape[0], width))
    return scipy.sparse.vstack(parts, format="csr")


def _match_line(text: str, number: int) -> re.Match[str]:
    """Return the match of a line, whose groups are its labels and its features."""
    if (match := _LINE.fullmatch(text)) is None:
        wanted = "label,label feature:value ..."
        raise InputError(f"line {number} is {quoted(text)}; expected {wanted}")
    return match


def _labels(texts: Sequence[str], line: int, n_labels: int | None) -> Any:
    """Return the labels (n, L) of texts such as "3,23"; the first text is on line `line`."""
    count = np.array([text.count(",") + 1 if text else 0 for text in texts])
    label = _numbers(",".join(filter(None, texts)), ",")
    return _rows(np.ones(len(label), np.int8), label, count, n_labels, "label", line)


def _features(texts: Sequence[str], line: int, n_features: int | None) -> Any:
    """Return the features (n, D) of texts such as "0:1 5:0.5"."""
    count = np.array([text.count(":") for text in texts])
    # (pairs, 2) number and value of each feature
    pairs = _numbers(" ".join(texts).replace(":", " "), " ").reshape(-1, 2)
    with np.errstate(over="ignore"):  # refused as it is not finite
        values = pairs[:, 1].astype(np.float32)
    return _rows(values, pairs[:, 0], count, n_features, "feature", line)


def write_multilabel(path: str | os.PathLike[str], X: Any, Y: Any) -> None:
    """Write features X (N, D) and labels Y (N, L), arrays or sparse, in the text form.

    Values are rounded to float32, as `read_multilabel` reads them; stored zeros are kept.

    Raises InputError when there is no sample, X has a number that is not finite, or that float32
    cannot hold, Y one that is not 0 or 1, or one of them has too many columns to be read.
    """
    X = canonical_csr(as_table(X, "X"), keep_zeros=True)
    Y = indicator(as_table(Y, "Y"), "Y")
    if X.shape[0] != Y.shape[0]:
        raise InputError(f"X has {X.shape[0]} samples and Y {Y.shape[0]}; give labels for each")
    if X.shape[0] == 0:
        raise InputError("X has no sample, and the text form one or more; give samples")
    for name, columns in (("X", X.shape[1]), ("Y", Y.shape[1])):
        if columns > _MOST:
            raise InputError(f"{name} has {columns:,} columns; the text form has at most {_MOST:,}")
    with np.errstate(over="ignore", under="ignore"):  # refused below
        values = X.data.astype(np.float32)
    is_wrong = ~np.isfinite(values) | ((values == 0) & (X.data != 0))
    if is_wrong.any():
        raise InputError(
            f"X has the value {X.data[is_wrong][0]}; the text form has finite numbers of float32, "
            "up to 3.4e38 and from 1.4e-45 on: replace or rescale the others"
        )
    with replacing(path) as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode())
        for i in range(X.shape[0]):
            here = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip(X.indices[here].tolist(), values[here].tolist(), strict=True)
            labels = ",".join(map(str, Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist()))
            file.write(f"{labels} {' '.join(f'{j}:{value:.9g}' for j, value in pairs)}\n".encode())


def indicator(y: Any, name: str) -> Any:
    """Return labels (n, V) as a canonical CSR array that stores a 1 for each.

    Duplicate entries are summed. Raises InputError, which calls them `name`, when a value is not 0
    or 1.
    """
    Y = canonical_csr(y)
    if not (Y.data == 1).all():
        wrong = Y.data[Y.data != 1][0]
        raise InputError(
            f"{name} has the value {wrong}; it must be 1 for each label of a sample, else 0"
        )
    return Y


def _numbers(text: str, sep: str) -> Array:
    return np.fromstring(text, np.float64, sep=sep) if text.strip() else np.empty(0)


def _rows(data: Array, column: Array, count: Int64, width: int | None, noun: str, line: int) -> Any:
    """Return a CSR array of rows with `count` stored numbers, by default as wide as they need.

    Messages call a column by `noun`, and a row by its line; the first row is on line `line`.
    """
    start = offsets(count)
    limit = _MOST
    reason = f"there are at most {_MOST:,}"
    if width is not None:
        limit = width
        reason = f"line 1 says {plural(width, noun)}"
    for is_wrong, message in (
        (column >= limit, f"the {noun} {{}}, and {reason}, from 0 on"),
        (~np.isfinite(data), f"a value of the {noun} {{}} that is too large"),
    ):
        if is_wrong.any():
            first = int(np.argmax(is_wrong))
            row = int(segment_ids(start)[first])
            raise InputError(f"line {line + row} has {message.format(f'{column[first]:.0f}')}")

    if width is None:
        width = 1 + int(column.max(initial=-1))
    rows = scipy.sparse.csr_array((data, column.astype(np.int32), start), shape=(len(count), width))
    rows.sort_indices()
    is_repeated = (np.diff(rows.indices) == 0) & (np.diff(segment_ids(start)) == 0)
    if is_repeated.any():
        first = int(np.argmax(is_repeated))
        row = int(segment_ids(start)[first])
        raise InputError(
            f"line {line + row} has the {noun} {rows.indices[first]} twice; leave one out"
        )
    return rows

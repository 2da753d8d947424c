"""Text format of extreme classification: samples with features and labels.

The first line is ``N D L``: the numbers of samples, features and labels. One line per sample
follows, ``label,label feature:value ...``. Labels and features are numbered from 0, and the
features of a sample are in ascending order. Files of napkinXC and LIBSVM have no line ``N D L``.
scikit-learn parses and formats the lines.
"""

import io
import os
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from hstree._arrays import Array, Bool, Int64, Integer, canonical_csr, offsets
from hstree._files import read_unpacked, replacing
from hstree._text import one_line, plural, quoted
from hstree.data.arrays import as_table
from hstree.errors import InputError, naming

#: The path of a file of samples, and its uncompressed content.
SampleFile = tuple[str | os.PathLike[str], bytes]

#: Maximum number of features or labels: their ids are int32.
MAX_COLUMNS = 2**31 - 1
_SIZES = re.compile(rb"\s*(\d{1,10})\s+(\d{1,10})\s+(\d{1,10})\s*")
#: Lines without labels and features, which scikit-learn skips.
_EMPTY_LINE = re.compile(rb"^[ \t\r]*\n", re.MULTILINE)


class MultilabelData(NamedTuple):
    """Samples and their labels."""

    X: Any  #: CSR array of float32 (N, D), the features
    Y: Any  #: CSR array of int8 (N, L), 1 for each label of a sample


def read_multilabel(path: str | os.PathLike[str]) -> MultilabelData:
    """Read a multi-label file, which may be compressed (.gz, .xz, .bz2, .zst).

    If the first line has no sizes, the largest ids in the file determine the numbers of features
    and labels. Raises InputError if the file cannot be read, if a line has a wrong format, or if
    the first line contradicts the others.
    """
    return _parse_file((path, read_unpacked(path)))[0]


def parse_train_and_test(
    train: SampleFile, test: SampleFile
) -> tuple[MultilabelData, MultilabelData]:
    """Parse two files of samples with the same features and labels, as `read_multilabel` does.

    A file without a first line of sizes gets the sizes of the other file. If neither file has one,
    the larger numbers are used for both. Also raises InputError if the sizes differ.
    """
    files = [_parse_file(train), _parse_file(test)]
    # (features, labels) of each file, by its first line or its largest numbers
    sizes = [(data.X.shape[1], data.Y.shape[1]) for data, _ in files]
    n_features, n_labels = map(max, *sizes)
    for (data, has_sizes), file_sizes in zip(files, sizes, strict=True):
        if has_sizes and file_sizes != (n_features, n_labels):
            (d_train, v_train), (d, v) = sizes
            raise InputError(
                f"{test[0]} has {plural(d, 'feature')} and {plural(v, 'label')}, {train[0]} has "
                f"{d_train:,} and {v_train:,}; both files need the same numbers"
            )
        data.X.resize((data.X.shape[0], n_features))
        data.Y.resize((data.Y.shape[0], n_labels))
    return files[0][0], files[1][0]


def _parse_file(file: SampleFile) -> tuple[MultilabelData, bool]:
    """Parse a file in the text format; also return whether its first line contains sizes."""
    path, text = file
    first_line, _, samples = text.partition(b"\n")
    sizes = _SIZES.fullmatch(first_line)
    text = samples if sizes else text
    if text and not text.endswith(b"\n"):
        text += b"\n"
    line = 2 if sizes else 1  # of the first sample
    with naming(path):
        matrix, labels = _parse(text, line)
        if not labels:
            raise InputError("no sample; give lines 'label,label feature:value ...'")
        X: Any = scipy.sparse.csr_array(matrix)
        X.eliminate_zeros()
        n_samples = len(labels)
        # (pairs,) labels of all samples, sample by sample
        label = np.array(list(chain.from_iterable(labels)), np.float64)
        start = offsets(np.fromiter(map(len, labels), np.int64, n_samples))

        # Wrong labels and values; the entries of each sample begin at `start` and at `X.indptr`
        is_label = (label >= 0) & (label < MAX_COLUMNS) & (label == np.floor(label))
        _refuse(~is_label, label, start, line, "label", "labels are whole numbers from 0")
        is_finite = np.isfinite(X.data)
        _refuse(~is_finite, X.data, X.indptr, line, "value", "values are finite float32 numbers")

        n_features = int(X.indices.max(initial=-1)) + 1
        n_labels = int(label.max(initial=-1)) + 1
        if sizes:
            n_stated, n_features, n_labels = map(int, sizes.groups())
            if n_stated != n_samples:
                raise InputError(f"line 1 says {n_stated:,} samples, and {n_samples:,} follow")
            rule = f"line 1 says {n_features:,} features and {n_labels:,} labels, from 0 on"
            _refuse(X.indices >= n_features, X.indices, X.indptr, line, "feature", rule)
            _refuse(label >= n_labels, label, start, line, "label", rule)
        if max(n_features, n_labels) > MAX_COLUMNS:
            raise InputError(f"more than {MAX_COLUMNS:,} features or labels")
    X.resize((n_samples, n_features))
    return MultilabelData(X, _indicate(label, start, n_labels)), sizes is not None


def _parse(text: bytes, line: int) -> Any:
    """Return the features and labels of samples; the first sample is on line `line`."""
    from sklearn.datasets import load_svmlight_file  # which metrics and label trees do not need

    try:
        file = io.BytesIO(_EMPTY_LINE.sub(b"0:0\n", text))
        return load_svmlight_file(file, dtype=np.float32, multilabel=True, zero_based=True)
    except (ValueError, OverflowError) as error:
        # One of the halves ends in the error of its first bad line
        lines = text.splitlines(keepends=True)
        half = len(lines) // 2
        if half > 0:
            _parse(b"".join(lines[:half]), line)
            _parse(b"".join(lines[half:]), line + half)
        first = quoted(lines[0].decode("utf-8", "backslashreplace").rstrip())
        raise InputError(
            f"line {line} is {first} ({one_line(error).rstrip('.')}); expected 'label,label "
            "feature:value ...', after a first line of the numbers of samples, features and "
            'labels, as in "4880 1836 159"'
        ) from error


def _refuse(is_wrong: Bool, values: Array, start: Integer, line: int, noun: str, rule: str) -> None:
    """Raise InputError for the first wrong value; values of samples begin at `start` (N + 1,)."""
    if is_wrong.any():
        at = int(np.argmax(is_wrong))
        row = int(np.searchsorted(start, at, side="right")) - 1
        raise InputError(f"line {line + row} has the {noun} {values[at]:.10g}; {rule}")


def write_multilabel(path: str | os.PathLike[str], X: Any, Y: Any) -> None:
    """Write features X (N, D) and labels Y (N, L), dense or sparse, in the text format.

    Values are rounded to float32, which `read_multilabel` returns. Raises InputError if there are
    no samples, if a value of X is not finite as float32, or if a value of Y is not 0 or 1.
    """
    X = canonical_csr(as_table(X, "X"))
    Y = indicator(as_table(Y, "Y"), "Y")
    if not X.shape[0] == Y.shape[0] > 0:
        raise InputError(
            f"X has {X.shape[0]} samples and Y {Y.shape[0]}; both need the same number, at least "
            "one"
        )
    with np.errstate(over="ignore"):  # refused below
        values = X.data.astype(np.float32)
    if not np.isfinite(values).all():
        wrong = X.data[~np.isfinite(values)][0]
        raise InputError(f"X has the value {wrong}; give finite numbers of float32, up to 3.4e38")
    with replacing(path) as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode())
        for i in range(X.shape[0]):
            here = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip(X.indices[here].tolist(), values[here].tolist(), strict=True)
            # Nine digits identify a float32
            features = " ".join(f"{feature}:{value:.9g}" for feature, value in pairs)
            labels = ",".join(map(str, Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist()))
            file.write(f"{labels} {features}\n".encode())


def indicate_lists(lists: Sequence[Iterable[Any]], labels: Iterable[Any]) -> Any:
    """Convert lists of labels to a CSR array (n, V) of 0 and 1, with a column per label."""
    numbers = {label: number for number, label in enumerate(labels)}
    rows = [[numbers[label] for label in row] for row in lists]
    start = offsets(np.fromiter(map(len, rows), np.int64, len(rows)))
    return _indicate(np.array(list(chain.from_iterable(rows))), start, len(numbers))


def _indicate(label: Array, start: Int64, n_labels: int) -> Any:
    """Convert label ids to a CSR array of 0 and 1; `start` (n + 1,) has the offsets of samples."""
    ones = np.ones(len(label), np.int8)
    Y = scipy.sparse.csr_array(
        (ones, label.astype(np.int32), start), shape=(len(start) - 1, n_labels)
    )
    Y.sum_duplicates()
    Y.data[:] = 1
    return Y


def indicator(y: Any, name: str) -> Any:
    """Return labels (n, V) as a canonical CSR array whose stored values are all 1.

    Duplicate entries are summed. Raises InputError, which calls the labels `name`, if a value is
    not 0 or 1.
    """
    Y = canonical_csr(y)
    if not (Y.data == 1).all():
        wrong = Y.data[Y.data != 1][0]
        raise InputError(f"{name} has the value {wrong}; values must be 0 or 1")
    return Y

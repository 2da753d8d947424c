r"""Vectors as a NumPy matrix in `.npy`, with the words of its rows in a file of their own.

``NAME.labels.tsv`` holds one line for each row of ``NAME.npy``: the word or, for all lines alike,
``word<TAB>count``; UTF-8, ``\n`` or ``\r\n``. Nothing is ever unpickled.

A labels file that hstree writes opens with a record (`data.provenance`): ``file_sha256``, the
hash of the file whose rows it names, and ``texts``, what that was made from. The two files are two
renames, so the hash is checked whenever they are read. The labels are renamed first: a file left
beside them by a kill in between is refused, whether it had labels or not. Labels without a record
are read too.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from hstree._files import BYTE_ORDER_MARK, open_regular, read_text, replacing
from hstree._npy_format import MAGIC, read_array
from hstree._typing import Array, Float32, Int64
from hstree.data.provenance import LONGEST_HEADER, Text, header, parse_header
from hstree.errors import FileFormatError, InputError

_COUNT = re.compile(r"[0-9]{1,19}")  # nineteen digits hold every int64
_STORABLE = re.compile(r"[^\0\t\n\r\ud800-\udfff]+")


def is_npy(name: str) -> bool:
    """Say whether a file is, or by its name should be, a `.npy` file.

    Raises
    ------
    InputError
        When it cannot be opened.
    """
    try:
        with open_regular(name) as file:
            return file.read(len(MAGIC)) == MAGIC or name.endswith(".npy")
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot read the vectors {name}: {reason}") from error


def read_npy(name: str, what: str = "vectors") -> Array:
    """Read a `.npy` file of real numbers; the type and shape are for the caller to check.

    Parameters
    ----------
    name : str
    what : str
        What it should hold, for the message.

    Raises
    ------
    InputError
        When it is empty, cut off or not such a file, or holds anything but real numbers.
    """
    try:
        with open_regular(name) as file:
            return read_array(file, os.fstat(file.fileno()).st_size)
    except FileFormatError as error:
        raise InputError(f"cannot read the {what} {name}: {error}") from error
    except OSError as error:
        raise InputError(f"cannot read the {what} {name}: {error.strerror or error}") from error


class Labels(NamedTuple):
    """The content of a labels file."""

    words: list[str]
    counts: list[int] | None
    texts: list[Text]


def labels_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of the labels file that belongs to a file."""
    return Path(path).with_suffix(".labels.tsv")


def labels_beside(name: str) -> str | None:
    """Name the labels file that belongs to a file, or None where there is none."""
    beside = labels_path(name)
    return os.fspath(beside) if beside.exists() else None


def read_labels(name: str, belongs_to: str | os.PathLike[str]) -> Labels:
    """Read the words, where every line has one the counts, and the texts of the record.

    Parameters
    ----------
    name : str
    belongs_to : path
        The file whose rows the labels name.

    Raises
    ------
    InputError
        With the line that is wrong, or when the labels were written beside another file.
    """
    lines = read_text(name, "the labels").split("\n")
    record = parse_header(lines[0], name)
    if record is not None:
        lines[0] = ""
        if "file_sha256" in record:  # a vocabulary's record, which may serve as labels, has none
            _check_pair(name, record["file_sha256"], os.fspath(belongs_to))
    counted = "\t" in next(filter(None, lines), "")
    words, counts = [], []
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        word, tab, count = line.partition("\t")
        if not word or (counted and not _COUNT.fullmatch(count)) or (tab and not counted):
            expected = "a word, a tab and a whole number" if counted else "a word and nothing else"
            raise InputError(
                f"{name}, line {number}: expected {expected}, like the first line; "
                f"found {line[:40]!r}"
            )
        words.append(word)
        if counted:
            counts.append(int(count))
    if not words:
        raise InputError(f"{name}: the file is empty; give one word for each row, one a line")
    if counts and max(counts) > np.iinfo(np.int64).max:
        raise InputError(f"{name}: a count is above 2**63 - 1; divide them all by the same number")
    return Labels(words, counts if counted else None, record["texts"] if record else [])


def texts_of_file(path: str | os.PathLike[str]) -> list[Text]:
    """List the texts recorded in a vocabulary or labels file, or in the labels of a ``.npy``.

    Only the first line is read. A file of another kind records none, nor does one that cannot be
    read: whoever reads its content says why.

    Raises
    ------
    InputError
        When the record is damaged.
    """
    place = labels_path(path) if os.fspath(path).endswith(".npy") else Path(path)
    try:
        with open_regular(place) as file:
            first = file.readline(LONGEST_HEADER + 1)
    except OSError:
        return []
    line = first.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    record = parse_header(line, os.fspath(place))
    return [] if record is None else record["texts"]


def write_npy(
    name: str,
    labels: Sequence[str],
    vectors: Float32,
    counts: Int64 | None,
    texts: Sequence[Text] = (),
) -> None:
    """Write the matrix and its labels file; neither is put in place before both are written.

    Raises
    ------
    FileFormatError
        When the ending is not `.npy`, or a file cannot be written.
    InputError
        When a label has no place in a file of lines.
    """
    if not name.endswith(".npy"):
        raise FileFormatError(f"cannot write {name}: vectors are written as .npy; name it so")
    with replacing_with_labels(name, labels, counts, texts) as file:
        np.lib.format.write_array(file, vectors, allow_pickle=False)


@contextmanager
def replacing_with_labels(
    path: str | os.PathLike[str],
    labels: Sequence[str],
    counts: Int64 | None,
    texts: Sequence[Text],
) -> Iterator[BinaryIO]:
    """Open a file as `hstree._files.replacing` does, and write its labels file after it.

    The file is whole and on the disk before the labels, with its hash, are put in place, and
    takes its own place last.

    Raises
    ------
    FileFormatError
        When a file cannot be written.
    InputError
        When a label has no place in a file of lines.
    """
    lines = _labels_lines(os.fspath(path), labels, counts)
    with replacing(path) as file:
        hashing = _HashingWriter(file)
        yield hashing  # type: ignore[misc]
        file.flush()
        os.fsync(file.fileno())
        record = header(file_sha256=hashing.digest.hexdigest(), texts=list(texts))
        with replacing(labels_path(path)) as labels_file:
            labels_file.write(record.encode() + lines)


class _HashingWriter:
    """Writes to a file and hashes what is written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._file.write(data)


def _check_pair(labels: str, expected: object, path: str) -> None:
    """Refuse labels that were written beside another file than this one."""
    try:
        with open_regular(path) as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot read {path}: {reason}") from error
    if found != expected:
        raise InputError(
            f"{labels} was not written with {path}, one of them has been replaced since "
            f"(sha256 {found[:16]}, line 1 of the labels says {str(expected)[:16]!r}); write both "
            "again, or delete that line if the labels are right"
        )


def _labels_lines(name: str, labels: Sequence[str], counts: Int64 | None) -> bytes:
    """Return the lines of the labels file that belongs to the file `name`."""
    for label in labels:
        if _STORABLE.fullmatch(label) is None:
            raise InputError(
                f"cannot write {name}: the label {label!r} is empty or holds a tab, a line end, "
                "NUL or half a character, and the labels file is lines of word<TAB>count"
            )
    lines = list(labels)
    if counts is not None:
        lines = [f"{label}\t{n}" for label, n in zip(labels, counts.tolist(), strict=True)]
    return "".join(f"{line}\n" for line in lines).encode()

r"""Vectors as a NumPy matrix in `.npy`, with the words of its rows in a file of their own.

``NAME.labels.tsv`` holds one line for each row of ``NAME.npy``: the word or, for all lines alike,
``word<TAB>count``; UTF-8, ``\n`` or ``\r\n``. Nothing is ever unpickled.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError

import numpy as np
from numpy.typing import NDArray

from hstree.errors import FileFormatError, InputError
from hstree.files import replacing
from hstree.text.utf8 import BYTE_ORDER_MARK, strict_text

_MAGIC = b"\x93NUMPY"
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
        with open(name, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC or name.endswith(".npy")
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot read the vectors {name}: {reason}") from error


def read_npy(name: str, what: str = "vectors") -> NDArray[np.generic]:
    """Read a `.npy` file; the type and shape are for the caller to check.

    Parameters
    ----------
    name : str
    what : str
        What it should hold, for the message.

    Raises
    ------
    InputError
        When it is empty, cut off or not such a file, or holds Python objects.
    """
    try:
        # Mapping compares the shape that the header claims with the size of the file.
        return np.array(np.load(name, mmap_mode="r", allow_pickle=False))
    except (OSError, EOFError, ValueError, SyntaxError, TokenError, OverflowError) as error:
        if "Python objects" in str(error) or "Object arrays" in str(error):
            why = "it holds Python objects, which are never loaded; save numbers (float32)"
        elif "mmap length" in str(error) or isinstance(error, EOFError):
            why = "it ends too early; make or fetch it again"
        else:
            why = "it is not a readable .npy file; write one with numpy.save"
        raise InputError(f"cannot read the {what} {name}: {why}") from error


def labels_beside(name: str) -> str | None:
    """Name the labels file that belongs to a `.npy` file, or None where there is none."""
    beside = Path(name).with_suffix(".labels.tsv")
    return os.fspath(beside) if beside.exists() else None


def read_labels(name: str) -> tuple[list[str], list[int] | None]:
    """Read the words and, where every line has one, the counts.

    Raises
    ------
    InputError
        With the line that is wrong.
    """
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot read the labels {name}: {reason}") from error
    text = strict_text(data.removeprefix(BYTE_ORDER_MARK), name)
    lines = text.replace("\r\n", "\n").split("\n")
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
    return words, counts if counted else None


def write_npy(
    name: str,
    labels: Sequence[str],
    vectors: NDArray[np.float32],
    counts: NDArray[np.int64] | None,
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
    lines = labels_lines(name, labels, counts)
    beside = Path(name).with_suffix(".labels.tsv")
    with replacing(name) as matrix_file:
        np.lib.format.write_array(matrix_file, vectors, allow_pickle=False)
        matrix_file.flush()
        with replacing(beside) as labels_file:
            labels_file.write(lines)


def labels_lines(name: str, labels: Sequence[str], counts: NDArray[np.int64] | None) -> bytes:
    """Return the content of the labels file that belongs to the file `name`.

    Raises
    ------
    InputError
        When a label has no place in a file of lines.
    """
    for label in labels:
        if _STORABLE.fullmatch(label) is None:
            raise InputError(
                f"cannot write {name}: the label {label!r} is empty or holds a tab, a line end, "
                "NUL or half a character, and the labels file is lines of word<TAB>count"
            )
    lines = list(labels)
    if counts is not None:
        lines = [f"{label}\t{n}" for label, n in zip(labels, counts.tolist(), strict=True)]
    data = "".join(f"{line}\n" for line in lines).encode()
    # A reader drops one byte order mark, which must not be the first label's own.
    return BYTE_ORDER_MARK + data if data.startswith(BYTE_ORDER_MARK) else data

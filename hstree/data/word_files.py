r"""Text files of words: vocabularies, and the labels of the rows of another file.

All lines are ``word``, or all lines are ``word<TAB>count``, in UTF-8 with ``\n`` or ``\r\n``. Empty
lines are skipped. A ``.csv`` file of words and counts can be read, but is not written.

The first line can be a record, ``# hstree<TAB>{...}`` with a JSON object. ``texts`` are the sources
of the content (`data.provenance`). In a labels file, ``file_sha256`` is the hash of the file whose
rows it names. A record is never a word, because a count consists of digits.

``NAME.labels.tsv`` beside ``NAME.npy`` (or a tree file with numbered labels) contains one word per
row. The labels are renamed first, then the file, and the hash is checked on reading, so that files
from an interrupted writing are refused. Labels without a record are accepted.
"""

import csv
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from hstree._arrays import Int64
from hstree._files import BYTE_ORDER_MARK, open_regular, read_text, replacing
from hstree._text import quoted
from hstree.data.provenance import Text, collect_sources
from hstree.errors import FileFormatError, InputError, explained

#: Suffix of labels files.
LABELS = ".labels.tsv"
#: Extensions of files that have a labels file.
_LABELLED = (".npy", ".napkinxc")
#: Maximum length of a first line that is read as a record, in characters.
MAX_HEADER = 1 << 20
_MARK = "# hstree\t{"
_COUNT = re.compile(r"[0-9]{1,19}")  # nineteen digits hold every int64
_STORABLE = re.compile(r"[^\0\t\n\r\ud800-\udfff]+")


#: Titles of the columns of a CSV file with words and counts, in lower case.
_WORD_TITLES = ("word", "item", "label", "token")
_COUNT_TITLES = ("count", "frequency")


class WordList(NamedTuple):
    """Content of a vocabulary or labels file."""

    path: str
    words: list[str]
    counts: Any  # int64 array, or None if lines have no counts
    record: dict[str, Any] | None  # record in the first line, or None


def read_lines(path: str | os.PathLike[str], what: str = "") -> list[tuple[int, str]]:
    """Read the non-empty lines of a text file, with their numbers from 1; see `read_text`."""
    lines = read_text(path, what).split("\n")
    return [(number, line) for number, line in enumerate(lines, start=1) if line]


def read_words(path: str | os.PathLike[str], what: str, *, counted: bool = False) -> WordList:
    """Read a vocabulary or labels file; `what` is its name in messages.

    If not `counted`, the first word line determines whether all lines have a count. If `counted`, a
    ``.csv`` file without tabs has a column of words and a column of counts. Raises InputError for
    other files; the message names the line.
    """
    # The first line may be a record of the sources
    name = os.fspath(path)
    lines = read_lines(path, what)
    record = parse_header(lines[0][1], name) if lines and lines[0][0] == 1 else None
    if record is not None:
        del lines[0]
    if not lines:
        form = "word<TAB>count" if counted else "word or word<TAB>count"
        raise InputError(f"{name}: the file is empty; give lines of the form {form}")

    # The first word line determines the format of all lines
    if counted and "\t" not in lines[0][1] and ".csv" in Path(name.lower()).suffixes:
        return _read_csv(name, lines)
    counted = counted or "\t" in lines[0][1]
    expected = "a word, a tab and a whole number" if counted else "a word and nothing else"
    words = []
    counts = []
    for number, line in lines:
        word, tab, count = line.partition("\t")
        if not word or (not _COUNT.fullmatch(count) if counted else tab):
            raise unexpected(name, number, expected, line)
        words.append(word)
        counts.append(int(count or 0))
    return WordList(name, words, counts_array(name, counts) if counted else None, record)


def _read_csv(name: str, lines: Sequence[tuple[int, str]]) -> WordList:
    """Read words and counts from the lines of a CSV file.

    Titles identify the columns (`_WORD_TITLES`, `_COUNT_TITLES`). If there are only two columns,
    they can have any titles, or none.
    """
    unquoted = re.sub('"[^"]*"', "", lines[0][1])
    delimiter = max(",;", key=unquoted.count)
    rows = csv.reader((line for _, line in lines), delimiter=delimiter, strict=True)
    words = []
    counts = []
    columns = None
    try:
        for row in rows:
            number, line = lines[rows.line_num - 1]
            # The first line contains titles, unless it is a word and a count; pandas writes ",0"
            if columns is None:
                columns = _csv_columns(f"{name}, line {number}", row)
                if not (len(row) == 2 and row[0] and _COUNT.fullmatch(row[1])):
                    continue
            word, count = (row[column] if column < len(row) else "" for column in columns)
            if not word or not _COUNT.fullmatch(count):
                raise unexpected(name, number, "a word and a whole number", line)
            words.append(word)
            counts.append(int(count))
    except csv.Error as error:
        where = f"{name}, line {lines[rows.line_num - 1][0]}"
        raise InputError(f"{where}: {error}; correct the quotes") from error
    return WordList(name, words, counts_array(name, counts), None)


def _csv_columns(where: str, titles: Sequence[str]) -> tuple[int, int]:
    """Return the columns of words and counts by their titles, or the only two columns.

    Raises InputError if the titles do not identify exactly one column each.
    """
    plain = [title.strip().lower() for title in titles]
    word_columns = [column for column, title in enumerate(plain) if title in _WORD_TITLES]
    count_columns = [column for column, title in enumerate(plain) if title in _COUNT_TITLES]
    if len(word_columns) == len(count_columns) == 1:
        return word_columns[0], count_columns[0]
    if len(titles) == 2:
        return 0, 1
    raise InputError(
        f"{where}: the columns are {', '.join(titles)}; give two columns, or the titles "
        f"{' or '.join(_WORD_TITLES)} for the words and {' or '.join(_COUNT_TITLES)} for the counts"
    )


def counts_array(path: str | os.PathLike[str], counts: Sequence[int]) -> Int64:
    """Return the counts in a file as int64. Raises InputError if one is above 2**63 - 1."""
    try:
        return np.array(counts, np.int64)
    except OverflowError as error:
        raise InputError(
            f"{os.fspath(path)}: a count is above 2**63 - 1; divide all counts by the same number"
        ) from error


def unexpected(path: str | os.PathLike[str], number: int, expected: str, line: str) -> InputError:
    """Return the error for a line with a wrong format."""
    where = f"{os.fspath(path)}, line {number}"
    return InputError(f"{where}: expected {expected}, found {quoted(line)}")


def word_lines(
    path: str | os.PathLike[str],
    words: Sequence[str],
    counts: Int64 | None,
    record: dict[str, Any] | None = None,
) -> bytes:
    """Return the content of a vocabulary or labels file, beginning with the record.

    Raises InputError if a word is empty or contains a character that is not allowed in a line.
    """
    for word in words:
        if _STORABLE.fullmatch(word) is None:
            raise InputError(
                f"cannot write {os.fspath(path)}: the word {word!r} is empty or contains a tab, a "
                "line end, NUL or half a character, which word<TAB>count lines cannot represent"
            )
    ends = [""] * len(words) if counts is None else [f"\t{count}" for count in counts.tolist()]
    first = f"{_MARK[:-1]}{json.dumps(record, sort_keys=True)}\n" if record else ""
    lines = "".join(f"{word}{end}\n" for word, end in zip(words, ends, strict=True))
    return (first + lines).encode()


def parse_header(line: str, name: str) -> dict[str, Any] | None:
    """Parse the first line of the file `name`; return None if it is not a record.

    A record contains a list of ``texts``. Raises InputError if it is damaged.
    """
    if not line.startswith(_MARK):
        return None
    try:
        record = json.loads(line[len(_MARK) - 1 :]) if len(line) <= MAX_HEADER else None
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or record.setdefault("texts", []) != collect_sources(
        record["texts"]
    ):
        raise InputError(
            f"{name}, line 1: the record of the sources is damaged; write the file again, or "
            "delete the line"
        )
    return record


def texts_of_file(path: str | os.PathLike[str]) -> list[Text]:
    """List the texts recorded in a vocabulary or labels file, or in the labels of a ``.npy``.

    Only the first line is read. The list is empty for other files and for unreadable files. Raises
    InputError if the record is damaged.
    """
    file_path = Path(path).with_suffix(LABELS) if Path(path).suffix == ".npy" else Path(path)
    record = _read_record(file_path) or {}
    recorded_texts: list[Text] = record.get("texts", [])
    return recorded_texts


def _read_record(path: Path) -> dict[str, Any] | None:
    """Return the record in the first line of a file, or None."""
    try:
        with open_regular(path) as file:
            first = file.readline(MAX_HEADER + 1)
    except OSError:
        return None
    line = first.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace")
    return parse_header(line, os.fspath(path))


def read_labels(
    path: str | os.PathLike[str], labels: str | os.PathLike[str] | None = None
) -> WordList | None:
    """Read the labels of the rows of a file from `labels` or its labels file, if there is one.

    Raises InputError if the labels cannot be read or were written for another file.
    """
    beside = Path(path).with_suffix(LABELS)
    if labels is None and not beside.exists():
        return None
    content = read_words(labels or beside, "the labels")
    # A vocabulary can be used as labels; its record has no hash
    expected = (content.record or {}).get("file_sha256")
    if expected is None:
        return content
    with explained(f"read {os.fspath(path)}"):
        sha256 = _sha256(path)
    if sha256 != expected:
        raise InputError(
            f"{content.path} was not written with {os.fspath(path)}, or one of them was replaced "
            f"(its sha256 is {sha256[:16]}, line 1 of the labels has {str(expected)[:16]!r}); "
            "write both again, or delete that line if the labels are right"
        )
    return content


@contextmanager
def replacing_with_labels(
    path: str | os.PathLike[str], labels: Sequence[str], counts: Int64 | None, texts: Sequence[Text]
) -> Iterator[BinaryIO]:
    """Open a file as `hstree._files.replacing` does, and write its labels file.

    When the file is complete, the labels with its hash are renamed first, then the file. Raises
    FileFormatError if a file cannot be written or if the labels file belongs to another file with
    the same stem, and InputError if a label is not allowed in a line.
    """
    lines = word_lines(path, labels, counts)
    beside = Path(path).with_suffix(LABELS)
    if (owner := _owner(beside, Path(path))) is not None:
        raise FileFormatError(f"{beside} is the labels file of {owner}; choose another name")
    # After a crash between both renames, the hash in the labels does not match the file
    with replacing(path) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
        record = {"file_sha256": _sha256(file.name), "texts": list(texts)}
        with replacing(beside) as labels_file:
            labels_file.write(word_lines(path, [], None, record) + lines)


def _owner(labels: Path, path: Path) -> Path | None:
    """Return the other file with this stem for which a labels file was written, if any."""
    expected = None
    with suppress(InputError):  # a damaged record is replaced
        expected = (_read_record(labels) or {}).get("file_sha256")
    if not expected:
        return None
    for ending in _LABELLED:
        other = path.with_suffix(ending)
        if other != path and other.is_file() and _sha256(other) == expected:
            return other
    return None


def _sha256(path: str | os.PathLike[str]) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

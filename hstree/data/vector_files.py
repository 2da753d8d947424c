"""Files of word vectors: ``.npy``, word2vec text and binary, GloVe text.

``.npy`` is a matrix; its words are in a labels file (`word_files`). Both formats of word2vec begin
with a line ``V d``. In the text format, each further line is a word and its d numbers. In the
binary format, each entry is a word, a space, d little-endian float32 and a line end. GloVe is the
text format without the first line. All except ``.npy`` can be gzipped. The content determines the
format; the extension ``.bin`` is used only if the content is ambiguous.

`vectors` checks that numbers are finite and words are unique.
"""

import math
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from hstree import progress
from hstree._arrays import Array, Float32, Int64, offsets
from hstree._files import (
    BYTE_ORDER_MARK,
    open_regular,
    refuse_containers,
    replacing,
    unpacking_reader,
)
from hstree.data.word_files import unexpected
from hstree.errors import InputError, explained
from hstree.tree.npy import read_npy

#: Number of rows above which vectors stay on disk, and samples are used to split upper nodes.
LARGE = 2_000_000
#: Rows written at a time.
BLOCK_ROWS = 4096
_BLOCK = 1 << 24  # bytes read at a time
_LONGEST = 1 << 26  # bytes of one word and its vector
_HEADER = re.compile(rb"([0-9]{1,12})[ \t]+([0-9]{1,8})[ \t]*\r?(?:\n|$)")
#: A number that Python's `float` accepts, without underscores between digits.
_NUMBER = re.compile(
    rb"[-+]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]+)?|inf(?:inity)?|nan)", re.IGNORECASE
)
_BLANKS = re.compile(rb"[ \t]+")
#: Characters that no word contains.
_NO_WORD = re.compile(rb"[\0\r\n]")
# Readers of these files split lines at ASCII white space
_STORABLE = re.compile(r"[^ \t\n\r\v\f\0\ud800-\udfff]+")
_KINDS = "give .npy, word2vec text or binary, or GloVe text (a word and its numbers on each line)"
_TEXT_HINT = "; bootstrap makes vectors and a tree from running text"

#: A block of a file: words and their vectors (n, d).
_WordBlock = tuple[list[str], Float32]


class MappedRows:
    """Rows (V, d) of arrays on disk, which are read as float32 when they are used.

    The class has the attributes of a matrix that builders use.
    """

    dtype = np.dtype(np.float32)
    ndim = 2

    def __init__(self, parts: Sequence[Array]) -> None:
        self._parts = parts
        #: (parts + 1,) offsets of the parts in the rows
        self._start = offsets(np.array([len(part) for part in parts]))
        self.shape = int(self._start[-1]), int(parts[0].shape[1])
        self.size = math.prod(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, rows: Int64, axis: int = 0) -> Float32:
        """Return some rows (n, d)."""
        taken = np.empty((len(rows), self.shape[1]), np.float32)
        # (n,) part that contains each row
        part = np.searchsorted(self._start, rows, "right") - 1
        with np.errstate(over="ignore"):  # infinite numbers are refused later
            for number in np.unique(part).tolist():
                at = np.flatnonzero(part == number)
                taken[at] = self._parts[number][rows[at] - self._start[number]]
        return taken

    def __getitem__(self, rows: Any) -> Float32:
        return self.take(np.arange(len(self))[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self[:] if dtype is None else self[:].astype(dtype)


def read_shards(folder: str) -> Array | MappedRows:
    """Read the ``.npy`` files in a folder, sorted by name, as the rows of one matrix.

    More than `LARGE` rows stay on disk. Raises InputError if there are no files, or if they are not
    matrices with the same number of columns.
    """
    # Rows are in the order of the names of the files
    names = sorted(str(path) for path in Path(folder).glob("*.npy"))
    if not names:
        raise InputError(f"cannot read the vectors {folder}: it contains no .npy file; name a file")
    parts = [read_npy(name, mapped_above=0) for name in names]
    for name, part in zip(names, parts, strict=True):
        if part.ndim != 2 or part.shape[1:] != parts[0].shape[1:]:
            wrong = f"vectors of shape {part.shape}, and {names[0]} has {parts[0].shape}"
            raise InputError(f"{name}: {wrong}; give files with the same number of columns")
    rows = MappedRows(parts)
    return rows if len(rows) > LARGE else rows[:]


def read_text_or_binary(name: str) -> tuple[list[str], Float32]:
    """Read words and float32 vectors (V, d) from a word2vec or GloVe file.

    Parsing numbers takes most of the time, about 0.3 microseconds each. Raises InputError for other
    files; the message names the line (text) or the word (binary).
    """
    with (
        explained(f"read the vectors {name}"),
        open_regular(name) as raw,
        progress.task(f"reading {name}", os.fstat(raw.fileno()).st_size, "bytes") as task,
    ):
        read = unpacking_reader(raw, Path(name).suffix)

        def read_block() -> bytes:
            # Progress is measured in bytes of the file, which may be compressed
            before = raw.tell()
            block = read(_BLOCK)
            task.advance(raw.tell() - before)
            return block

        return _read(name, read_block)


def _read(name: str, read_block: Callable[[], bytes]) -> tuple[list[str], Float32]:
    """Detect the format of a file from its first lines, and read it."""
    head = read_block().removeprefix(BYTE_ORDER_MARK)
    refuse_containers(name, head)
    if not head.strip():
        raise InputError(f"{name}: the file is empty; {_KINDS}")
    # word2vec files begin with "V d"; in other files, the first line determines d
    n_words: int | None = None
    if header := _HEADER.match(head):
        n_words = int(header[1])
        d = int(header[2])
        if n_words == 0 or not 0 < 4 * d <= _LONGEST:
            wrong = f"{n_words} words with {d} numbers each"
            raise InputError(f"{name}, line 1: {wrong}; not a word2vec file")
        body = head[header.end() :]
        if _is_text_body(name, body, d):
            blocks = _parse_text(name, body, read_block, 2, d)
        else:
            blocks = _parse_binary(name, body, read_block, n_words, d)
    else:
        d = _count_numbers(head.partition(b"\n")[0])
        if d == 0:
            raise InputError(f"{name}, line 1: expected a word and numbers; {_KINDS}{_TEXT_HINT}")
        blocks = _parse_text(name, head, read_block, 1, d)

    # The blocks are parsed as they are read
    words = list[str]()
    rows = [np.empty((0, d), np.float32)]
    for block_words, block_rows in blocks:
        words += block_words
        rows.append(block_rows)
    if n_words is not None and len(words) != n_words:
        raise InputError(
            f"{name}: line 1 announces {n_words} words but {len(words)} follow; "
            "the file is truncated, or its first line is wrong"
        )
    return words, np.concatenate(rows)


def _is_text_body(name: str, body: bytes, d: int) -> bool:
    """Return whether the bytes after the header of a word2vec file are text, not binary."""
    line = body.partition(b"\n")[0]
    if _count_numbers(line) >= d:
        return True
    is_utf8 = line == line.decode("utf-8", "ignore").encode()
    return is_utf8 and b"\0" not in line and not name.endswith((".bin", ".bin.gz"))


def _count_numbers(line: bytes) -> int:
    """Count the numbers at the end of a line of text; the first field is always a word.

    Only spaces and tabs separate fields.
    """
    fields = list(filter(None, line.replace(b"\t", b" ").rstrip(b" \r").split(b" ")))
    return len(list(takewhile(_NUMBER.fullmatch, reversed(fields[1:]))))


def _parse_text(
    name: str, head: bytes, read_block: Callable[[], bytes], number: int, d: int
) -> Iterator[_WordBlock]:
    """Parse a text block by block; the first line of `head` is line `number`."""
    # The beginning of a line, which continues in the next block
    rest = b""
    block = head
    while block:
        end = block.rfind(b"\n") + 1
        if end:
            yield _parse_lines(name, rest + block[:end], number, d)
            number += block.count(b"\n")
            rest = b""
        rest += block[end:]
        if len(rest) > _LONGEST:
            raise InputError(f"{name}, line {number}: longer than {_LONGEST} bytes; {_KINDS}")
        block = read_block()
    if rest:
        yield _parse_lines(name, rest, number, d)


def _parse_lines(name: str, block: bytes, first_line: int, d: int) -> _WordBlock:
    """Parse complete lines from the right, because words may contain blanks."""
    words = list[bytes]()
    vectors = list[bytes]()
    lines = list[tuple[int, bytes]]()
    for number, line in enumerate(block.split(b"\n"), start=first_line):
        line = line.rstrip(b" \t\r")
        if not line:
            continue
        # The numbers start at the first blank, if there are d blanks
        start = line.find(b" ")
        if line.count(b" ") != d or b"\t" in line:
            # Otherwise the last d gaps precede numbers, and the word contains blanks. If the word
            # ends in a number, the line has too many numbers
            gaps = list(_BLANKS.finditer(line))
            start = gaps[-d].start() if len(gaps) >= d else -1
            last_of_word = _BLANKS.split(line[:start])[-1]
            if start < 0 or (len(gaps) > d and _NUMBER.fullmatch(last_of_word)):
                raise _unexpected(name, number, d, line)
        words.append(line[:start])
        vectors.append(line[start:])
        lines.append((number, line))
    # Parse all numbers of the block at once, which is several times faster than line by line
    rows = _parse_numbers(b" ".join(vectors))
    if len(rows) != len(vectors) * d:
        wrong = next(i for i, vector in enumerate(vectors) if len(_parse_numbers(vector)) != d)
        raise _unexpected(name, lines[wrong][0], d, lines[wrong][1])
    return _decode_words(words, [number for number, _ in lines], name), rows.reshape(-1, d)


def _unexpected(name: str, number: int, d: int, line: bytes) -> InputError:
    """Return the error for a line without d numbers."""
    return unexpected(
        name, number, f"a word and {d} numbers", line.decode("utf-8", "backslashreplace")
    )


def _parse_numbers(text: bytes) -> Float32:
    """Parse numbers separated by spaces; return fewer numbers than fields if one is invalid."""
    if any(space in text for space in (b"\v", b"\f", b"\r")):  # NumPy would split there
        return np.empty(0, np.float32)
    with warnings.catch_warnings():
        # NumPy warns if it stops early; the caller checks the length
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(text, np.float32, sep=" ")
        except (DeprecationWarning, ValueError):
            return np.empty(0, np.float32)


def _parse_binary(
    name: str, head: bytes, read_block: Callable[[], bytes], n_words: int, d: int
) -> Iterator[_WordBlock]:
    """Parse a word2vec binary file block by block.

    A line end may be before each word, as the word2vec program writes it.
    """
    n_parsed = 0
    # The beginning of a word and its vector, which continue in the next block
    rest = b""
    block = head
    while block and n_parsed < n_words:
        data = rest + block
        at = 0
        words = list[bytes]()
        rows = list[bytes]()
        # Read words that are complete in the block, with all bytes of their numbers
        while n_parsed + len(words) < n_words:
            space = data.find(b" ", at)
            end = space + 1 + 4 * d
            if space < 0 or end > len(data):
                break
            words.append(data[at:space].lstrip(b"\r\n"))
            rows.append(data[space + 1 : end])
            at = end

        # The rest is the beginning of the next block
        rest = data[at:]
        first = n_parsed + 1
        n_parsed += len(words)
        if len(rest) > _LONGEST:
            raise InputError(f"{name}: no end of the word after {n_parsed} words; {_KINDS}")
        vectors = np.frombuffer(b"".join(rows), "<f4").astype(np.float32).reshape(-1, d)
        yield _decode_words(words, range(first, n_parsed + 1), name, "word"), vectors
        block = read_block()

    if n_parsed < n_words:
        raise InputError(
            f"{name}: ends in word {n_parsed + 1} of the {n_words} that line 1 announces; the file "
            "is truncated, download it again"
        )
    if (rest + block).strip():
        raise InputError(f"{name}: more data after the {n_words} words that line 1 announces")


def _decode_words(
    words: list[bytes], numbers: list[int] | range, name: str, unit: str = "line"
) -> list[str]:
    """Decode the words of a block; `numbers` are the numbers of their lines or words.

    Raises InputError for a word that is empty, contains NUL or a line end, or is not UTF-8.
    """
    decoded = list[str]()
    for number, word in zip(numbers, words, strict=True):
        try:
            decoded.append(word.decode("utf-8"))
        except UnicodeDecodeError:
            decoded.append("")
        if not decoded[-1] or _NO_WORD.search(word):
            raise InputError(
                f"{name}, {unit} {number}: the word {word[:40]!r} is empty, contains NUL or a line "
                "end, or is not UTF-8; the file is damaged, or words in a binary file contain "
                "spaces: write it again as text"
            )
    return decoded


def check_words(name: str, words: Sequence[str]) -> None:
    """Refuse words that word2vec files cannot represent: empty words, and words with white space.

    Raises InputError, which names the file `name` and the first such word.
    """
    for word in words:
        if _STORABLE.fullmatch(word) is None:
            raise InputError(
                f"cannot write {name}: the word {word!r} is empty or contains white space or half "
                "a character, which word2vec files cannot represent; save it as .npy"
            )


def write_word2vec(name: str, words: Sequence[str], vectors: Float32, *, binary: bool) -> None:
    """Write a word2vec file: binary, or text with the fewest digits that identify each float32.

    Raises InputError before writing if a word is empty or contains white space, and FileFormatError
    if the file cannot be written.
    """
    check_words(name, words)
    with replacing(name) as file, progress.task(f"writing {name}", len(words), "words") as task:
        file.write(f"{len(words)} {vectors.shape[1]}\n".encode())
        for first in range(0, len(words), BLOCK_ROWS):
            block = words[first : first + BLOCK_ROWS]
            rows = vectors[first : first + BLOCK_ROWS]
            if binary:
                numbers = (row.tobytes() for row in rows.astype("<f4"))
            else:
                # NumPy writes the fewest digits that identify each float32
                numbers = (" ".join(row).encode() for row in rows.astype(np.str_))
            file.writelines(
                b"%b %b\n" % (word.encode(), vector)
                for word, vector in zip(block, numbers, strict=True)
            )
            task.advance(len(block))

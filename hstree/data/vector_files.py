"""Files of word vectors: ``.npy``, word2vec text and binary, GloVe text.

``.npy`` is a matrix; its words are in a labels file (`word_files`). word2vec's two kinds begin with
a line ``V d``: in text, every line after it is a word and its d numbers; in binary, a word, a
space, d little-endian float32 and a line end. GloVe is the text without the first line. All but
``.npy`` may be gzipped when read. The content tells the kinds apart, the ending ``.bin`` only
where the content cannot.

Whether numbers are finite and words unique is checked in `vectors`.
"""

import math
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from hstree import progress
from hstree._arrays import Array, Bool, Float32, Int64, offsets
from hstree._files import BYTE_ORDER_MARK, cache_folder, open_regular, replacing, unpacked
from hstree._text import quoted
from hstree.errors import FileFormatError, InputError, explained
from hstree.tree.npy import read_array

#: Rows above which vectors stay in their files, and upper nodes of trees are split by samples.
LARGE = 2_000_000
#: Least length of vectors by which a text of them is recognised.
FEWEST = 5
_FIRST_LINES = 10
#: Rows written at a time.
BLOCK_ROWS = 4096
_BLOCK = 1 << 24  # bytes read at a time
_LONGEST = 1 << 26  # bytes of one word and its vector
_HEADER = re.compile(rb"([0-9]{1,12})[ \t]+([0-9]{1,8})[ \t]*\r?(?:\n|$)")
#: What Python's `float` takes, but for underscores between digits.
_NUMBER = re.compile(
    rb"[-+]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]+)?|inf(?:inity)?|nan)", re.IGNORECASE
)
_BLANKS = re.compile(rb"[ \t]+")
#: What may be between the words of a binary file, and what no word holds.
_LINE_ENDS, _NO_WORD = (b"\r\n", b"\n"), re.compile(rb"[\0\r\n]")
#: Larger numbers are no vector where nothing separates the words of a binary file.
_LARGEST = 1e15
# Readers split at ASCII white space, the C program's `scanf` at all of it.
_STORABLE = re.compile(r"[^ \t\n\r\v\f\0\ud800-\udfff]+")
_KINDS = "give .npy, word2vec text or binary, or GloVe text (a word and its numbers on each line)"
_OF_TEXT = "; of running text, `hstree.bootstrap` makes vectors and a tree"


class MappedRows:
    """Rows (V, d) of several arrays of real numbers on disk, read as float32 when they are taken.

    As much of a matrix as builders need of one.
    """

    dtype, ndim = np.dtype(np.float32), 2

    def __init__(self, parts: Sequence[Array]) -> None:
        self._parts, self._start = parts, offsets(np.array([len(part) for part in parts]))
        self.shape = int(self._start[-1]), int(parts[0].shape[1])
        self.size = math.prod(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, rows: Int64, axis: int = 0) -> Float32:
        """Return some rows (n, d)."""
        taken = np.empty((len(rows), self.shape[1]), np.float32)
        of_part = np.searchsorted(self._start, rows, "right") - 1
        with np.errstate(over="ignore"):  # it is refused as not finite
            for p in np.unique(of_part).tolist():
                at = np.flatnonzero(of_part == p)
                taken[at] = self._parts[p][rows[at] - self._start[p]]
        return taken

    def __getitem__(self, rows: Any) -> Float32:
        return self.take(np.arange(len(self))[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self[:] if dtype is None else self[:].astype(dtype)


def read_shards(folder: str) -> Array | MappedRows:
    """Read the ``.npy`` files of a folder, by name, as the rows of one matrix.

    More than `LARGE` rows stay in the files. Raises InputError when there is none, or they are no
    matrices of as many columns.
    """
    names = sorted(str(path) for path in Path(folder).glob("*.npy"))
    if not names:
        raise InputError(f"cannot read the vectors {folder}: no .npy file is in it; name a file")
    parts = [read_npy(name, mapped_above=0) for name in names]
    for name, part in zip(names, parts, strict=True):
        if part.ndim != 2 or part.shape[1:] != parts[0].shape[1:]:
            wrong = f"vectors of shape {part.shape}, and {names[0]} has {parts[0].shape}"
            raise InputError(f"{name}: {wrong}; give shards of as many columns")
    rows = MappedRows(parts)
    return rows if len(rows) > LARGE else rows[:]


def is_dask(rows: object) -> bool:
    """Return whether an object is an array of Dask."""
    return hasattr(rows, "to_delayed") and hasattr(rows, "numblocks")


def compute_dask(rows: Any) -> Array:
    """Return the rows of a Dask array, computed block by block into a file without a name."""
    folder = cache_folder()
    with explained(f"write vectors to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:
            for block in range(rows.numblocks[0]):
                computed = np.asarray(rows.blocks[block])
                file.write(np.ascontiguousarray(computed, computed.dtype).data)
            shape = file.tell() // (computed.dtype.itemsize * rows.shape[1]), rows.shape[1]
            return np.memmap(file, computed.dtype, "r", 0, shape)


def read_npy(name: str, what: str = "vectors", *, mapped_above: float = math.inf) -> Array:
    """Read a ``.npy`` file of real numbers, of any type and shape; nothing is unpickled.

    An array of more than `mapped_above` rows stays in the file, as a `numpy.memmap`.

    `what` says for messages what it should hold. Raises InputError when it is empty, cut off or not
    such a file, or holds anything but real numbers.
    """
    try:
        with explained(f"read the {what} {name}"), open_regular(name) as file:
            size = os.fstat(file.fileno()).st_size
            return read_array(file, size, mapped_above=mapped_above)
    except FileFormatError as error:
        raise InputError(f"cannot read the {what} {name}: {error}") from error


def numbers_per_word(head: bytes) -> int:
    r"""Return how many numbers follow each word if a file's head is a text of vectors, else 0.

    The first lines, two or more, must all have a word, then the same number of numbers, `FEWEST` or
    more, and a decimal point among them.

    Examples
    --------
    >>> numbers_per_word(b"cat 0.5 1.0 2.5 0.1 1.5\ndog 0.2 1.0 2.5 0.3 1.5\n")
    5
    >>> numbers_per_word(b"the cat sat\non the mat\n")
    0
    """
    header = _HEADER.match(head)
    lines = head[header.end() if header else 0 :].split(b"\n")[: _FIRST_LINES + 1]
    whole = [line for line in lines[:-1] if line.strip()]  # the last may be cut off
    if len(whole) < 2 or not all(b"." in line for line in whole):
        return 0
    first, *others = map(_count_numbers, whole)
    return first if first >= FEWEST and set(others) == {first} else 0


def read_text_or_binary(name: str) -> tuple[list[str], Float32]:
    """Read words and float32 vectors (V, d) from a word2vec or GloVe file.

    Parsing numbers takes most of the time, about 0.3 microseconds each. Raises InputError when the
    file is none of them; the message names the line (text) or the word (binary).
    """
    with (
        explained(f"read the vectors {name}"),
        open_regular(name) as raw,
        progress.task(f"reading {name}", os.fstat(raw.fileno()).st_size, "bytes") as task,
    ):
        read = unpacked(raw, Path(name).suffix)

        def read_block() -> bytes:
            before = raw.tell()
            block = read(_BLOCK)
            task.advance(raw.tell() - before)
            return block

        return _read(name, read_block)


def _read(name: str, read_block: Callable[[], bytes]) -> tuple[list[str], Float32]:
    """Detect which of the three formats a file has by its first lines, and read it."""
    head = read_block().removeprefix(BYTE_ORDER_MARK)
    if not head.strip():
        raise InputError(f"{name}: the file is empty; {_KINDS}")
    if header := _HEADER.match(head):
        n_words, d = int(header[1]), int(header[2])
        if n_words == 0 or not 0 < 4 * d <= _LONGEST:
            wrong = f"{n_words} words with {d} numbers each"
            raise InputError(f"{name}, line 1: {wrong}; not a word2vec file")
        body = head[header.end() :]
        line = body.partition(b"\n")[0]
        is_utf8 = line == line.decode("utf-8", "ignore").encode()
        is_text = _count_numbers(line) >= d or (
            is_utf8 and b"\0" not in line and not name.endswith((".bin", ".bin.gz"))
        )
        parse, number = (_parse_text, 2) if is_text else (_parse_binary, n_words)
        blocks = parse(name, body, read_block, number, d)
    else:
        d = _count_numbers(head.partition(b"\n")[0])
        if d == 0:
            raise InputError(f"{name}, line 1: no word with numbers after it; {_KINDS}{_OF_TEXT}")
        blocks = _parse_text(name, head, read_block, 1, d)
    words, rows = [], [np.empty((0, d), np.float32)]
    for some_words, some_rows in blocks:
        words += some_words
        rows.append(some_rows)
    if header and len(words) != n_words:
        raise InputError(
            f"{name}: line 1 announces {n_words} words but {len(words)} follow; "
            "the file is cut off, or its first line is wrong"
        )
    return words, np.concatenate(rows)


def _count_numbers(line: bytes) -> int:
    """Count the numbers at the end of a line of text; the first field is always a word.

    Spaces and tabs alone separate fields.
    """
    fields = list(filter(None, line.replace(b"\t", b" ").rstrip(b" \r").split(b" ")))
    return len(list(takewhile(_NUMBER.fullmatch, reversed(fields[1:]))))


def _parse_text(
    name: str, head: bytes, read_block: Callable[[], bytes], number: int, d: int
) -> Iterator[tuple[list[str], Float32]]:
    """Parse a text block by block; the first line of `head` is line `number`."""
    rest, block = b"", head
    while block:
        whole = block.rfind(b"\n") + 1
        if whole:
            yield _parse_lines(name, rest + block[:whole], number, d)
            number += block.count(b"\n")
            rest = b""
        rest += block[whole:]
        if len(rest) > _LONGEST:
            raise InputError(f"{name}, line {number}: longer than {_LONGEST} bytes; {_KINDS}")
        block = read_block()
    if rest:
        yield _parse_lines(name, rest, number, d)


def _parse_lines(name: str, block: bytes, number: int, d: int) -> tuple[list[str], Float32]:
    """Parse whole lines from the right, since words may hold blanks; the first is `number`."""
    words, texts, numbers = [], [], []
    for n, line in enumerate(block.split(b"\n"), start=number):
        line = line.rstrip(b" \t\r")
        if not line:
            continue
        if line.count(b" ") == d and b"\t" not in line:
            word, _, text = line.partition(b" ")
        else:
            word, text = _split_line(name, line, n, d)
        words.append(word)
        texts.append(text)
        numbers.append(n)
    rows = _numbers(b" ".join(texts))
    if len(rows) != len(texts) * d:
        wrong = next(i for i, text in enumerate(texts) if len(_numbers(text)) != d)
        fields = list(filter(None, texts[wrong].split(b" ")))
        odd = next((field for field in fields if not _NUMBER.fullmatch(field)), None)
        what = f"{len(fields)} numbers after the word, expected {d}; give every word the same"
        if odd is not None:
            what = f"{_shown(odd)!r} is not a number; expected a word and {d} numbers"
        raise InputError(f"{name}, line {numbers[wrong]}: {what}")
    return _decoded(words, numbers, name), rows.reshape(-1, d)


def _split_line(name: str, line: bytes, number: int, d: int) -> tuple[bytes, bytes]:
    """Split a line with tabs, a word with blanks or a wrong length into its word and numbers."""
    fields = list(filter(None, _BLANKS.split(line)))
    if len(fields) <= d or (len(fields) > d + 1 and _NUMBER.fullmatch(fields[-d - 1])):
        raise InputError(
            f"{name}, line {number}: {_count_numbers(line)} numbers after the word, expected "
            f"{d} as in the lines before; give every word the same"
        )
    # The word is what is before the last d fields, with the blanks in it
    gaps = list(_BLANKS.finditer(line))[-d:]
    if len(gaps[0][0]) > 1 and all(len(gap[0]) == 1 for gap in gaps[1:]) and d > 1:
        raise InputError(
            f"{name}, line {number}: several blanks after the word {quoted(_shown(fields[0]))}, "
            "which may be a part of it; separate the word from the numbers as these are separated"
        )
    return line[: gaps[0].start()], b" ".join(fields[-d:])


def _shown(text: bytes) -> str:
    """Return bytes as text for a message."""
    return text[:40].decode("utf-8", "backslashreplace")


def _numbers(text: bytes) -> Float32:
    """Parse numbers separated by spaces; fewer than there are fields if one is not a number."""
    if any(space in text for space in (b"\v", b"\f", b"\r")):  # where NumPy would split, too
        return np.empty(0, np.float32)
    with warnings.catch_warnings():
        # NumPy deprecates stopping early; the caller checks the length.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(text, np.float32, sep=" ")
        except (DeprecationWarning, ValueError):
            return np.empty(0, np.float32)


def _parse_binary(
    name: str, head: bytes, read_block: Callable[[], bytes], n_words: int, d: int
) -> Iterator[tuple[list[str], Float32]]:
    """Parse a word2vec binary file block by block.

    A line end is before each word but the first, or before none. A word with a space is not read as
    another one: what is left of it does not fit this rule, or the numbers after it are not numbers.
    """
    done, data, block = 0, b"", head
    separator: bytes | None = None  # between words; None while it is not known
    while block and done < n_words:
        data, at, words, rows = data + block, 0, list[bytes](), list[bytes]()
        while done + len(words) < n_words:
            space = data.find(b" ", at)
            end = space + 1 + 4 * d
            if space < 0 or end > len(data):
                break
            word = data[at:space]
            if done + len(words) > 0:
                if separator is None:
                    separator = next(filter(word.startswith, _LINE_ENDS), b"")
                if not word.startswith(separator):
                    raise _misread(name, done + len(words), "is not followed by a line end")
                word = word.removeprefix(separator)
            words.append(word)
            rows.append(data[space + 1 : end])
            at = end
        data = data[at:]
        first, done = done + 1, done + len(words)
        if len(data) > _LONGEST:
            raise InputError(f"{name}: no end of the word after {done} words; {_KINDS}")
        vectors = np.frombuffer(b"".join(rows), "<f4").astype(np.float32).reshape(-1, d)
        if not separator and (is_wrong := _is_text(vectors)).any():
            raise _misread(name, first + int(np.argmax(is_wrong)), "has numbers that are no vector")
        yield _decoded(words, range(first, done + 1), name, "word"), vectors
        block = read_block()
    if done < n_words:
        raise InputError(
            f"{name}: ends in word {done + 1} of the {n_words} that line 1 announces; "
            "the file is cut off, fetch it again"
        )
    if (data + block).strip():
        raise InputError(f"{name}: more data after the {n_words} words that line 1 announces")


def _is_text(vectors: Float32) -> Bool:
    """Return which rows (n,) are the rest of a word and a space, rather than the first numbers.

    Letters make huge numbers, and a space at the end of the first one makes that tiny.
    """
    size = np.abs(vectors)
    is_tiny = (size[:, 0] > 0) & (size[:, 0] < 1 / _LARGEST)
    is_text: Bool = is_tiny | (size.max(axis=1) > _LARGEST)
    return is_text


def _misread(name: str, number: int, why: str) -> InputError:
    """Return the error of a word in a binary file that seems to hold a space."""
    return InputError(
        f"{name}, word {number}: it {why}; the file is damaged, or a word in it holds a space, "
        "which word2vec's binary cannot hold: write it as text"
    )


def _decoded(
    words: list[bytes], numbers: list[int] | range, name: str, unit: str = "line"
) -> list[str]:
    """Decode the words of a block; `numbers` count their lines or words, for the message.

    Raises InputError for a word that is empty, holds NUL or a line end, or is not UTF-8.
    """
    for number, word in zip(numbers, words, strict=True):
        if not word or _NO_WORD.search(word):
            what = f"the word {word[:40]!r} holds NUL or a line end" if word else "an empty word"
            raise InputError(
                f"{name}, {unit} {number}: {what}; the file is damaged, write it again"
            )
    try:
        return [word.decode("utf-8") for word in words]
    except UnicodeDecodeError as error:
        number = numbers[words.index(error.object)]
        raise InputError(
            f"{name}, {unit} {number}: the word {error.object[:40]!r} is not UTF-8; "
            "convert the file first"
        ) from None


def check_words(name: str, words: Sequence[str]) -> None:
    """Refuse words that word2vec's files cannot hold: empty ones, and those with white space.

    Raises InputError, which names the file `name` and the first such word.
    """
    for word in words:
        if _STORABLE.fullmatch(word) is None:
            raise InputError(
                f"cannot write {name}: the word {word!r} is empty or holds white space or half a "
                "character, where readers of word2vec's files split; save it as .npy"
            )


def write_word2vec(name: str, words: Sequence[str], vectors: Float32, *, binary: bool) -> None:
    """Write word2vec binary, or text with the fewest digits that give the same float32 back.

    Raises InputError when a word is empty or contains white space, before anything is written, and
    FileFormatError when the file cannot be written.
    """
    check_words(name, words)
    with replacing(name) as file, progress.task(f"writing {name}", len(words), "words") as task:
        file.write(f"{len(words)} {vectors.shape[1]}\n".encode())
        for a in range(0, len(words), BLOCK_ROWS):
            some, rows = words[a : a + BLOCK_ROWS], vectors[a : a + BLOCK_ROWS]
            if binary:
                numbers = (row.tobytes() for row in rows.astype("<f4"))
            else:
                numbers = (" ".join(row).encode() for row in rows.astype(np.str_))
            file.writelines(
                b"%b %b\n" % (w.encode(), n) for w, n in zip(some, numbers, strict=True)
            )
            task.advance(len(some))

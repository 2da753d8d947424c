"""Vectors with their words in one file: word2vec text, word2vec binary and GloVe text.

- word2vec, both kinds, opens with a line ``V d``. In text, every line after it is a word and its d
  numbers; in binary, a word, one space and d little-endian float32.
- GloVe is the text without that first line.

Any of them may be gzipped. The content tells them apart, the ending `.bin` only where the
content cannot. A text is parsed from the right of each line, since words may hold spaces. What
is not here: `.npy` (`npy`), and whether the numbers are finite and the words unique
(`vectors`).
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator

import numpy as np

from hstree import progress
from hstree._files import open_gzip, open_regular
from hstree._typing import Float32
from hstree.errors import InputError

_BLOCK = 1 << 24  # bytes read at a time
_LONGEST = 1 << 26  # bytes of one word and its vector
_HEADER = re.compile(rb"([0-9]{1,12})[ \t]+([0-9]{1,8})[ \t]*\r?(?:\n|$)")
_KINDS = "give .npy, word2vec text or binary, or GloVe text (a word and its numbers on each line)"
_OF_TEXT = "; of running text, `hstree bootstrap CORPUS -o DIR` makes vectors and a tree"


def read_text_or_binary(name: str) -> tuple[list[str], Float32]:
    """Read words and vectors from a word2vec or GloVe file.

    Returns
    -------
    words : list of str, length V
    vectors : float32 array (V, d)

    Raises
    ------
    InputError
        With the line (text) or the word (binary) that is wrong.

    Notes
    -----
    Nearly all of the time goes into turning digits into numbers, about 0.3 microseconds each.
    """
    try:
        with (
            open_regular(name) as raw,
            progress.task(f"reading {name}", os.fstat(raw.fileno()).st_size, "bytes") as task,
        ):
            zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = open_gzip(raw) if zipped else raw

            def read_block() -> bytes:
                before = raw.tell()
                block = stream.read(_BLOCK)
                task.advance(raw.tell() - before)
                return block

            return _read(name, read_block)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot read the vectors {name}: {reason}") from error


def _read(name: str, read_block: Callable[[], bytes]) -> tuple[list[str], Float32]:
    """Tell the three formats apart by their first lines and read on."""
    head = read_block()
    if not head.strip():
        raise InputError(f"{name}: the file is empty; {_KINDS}")
    header = _HEADER.match(head)
    if header is None:
        d = _count_numbers(head.partition(b"\n")[0])
        if d == 0:
            raise InputError(f"{name}, line 1: no word with numbers after it; {_KINDS}{_OF_TEXT}")
        return _join(list(_text_rows(name, head, read_block, 1, d)), d)

    n_words, d = int(header[1]), int(header[2])
    if n_words == 0 or not 0 < 4 * d <= _LONGEST:
        raise InputError(
            f"{name}, line 1: {n_words} words with {d} numbers each; not a word2vec file"
        )
    body = head[header.end() :]
    if _is_text(body.partition(b"\n")[0], d, name):
        found = _join(list(_text_rows(name, body, read_block, 2, d)), d)
    else:
        found = _join(list(_binary_rows(name, body, read_block, n_words, d)), d)
    if len(found[0]) != n_words:
        raise InputError(
            f"{name}: line 1 announces {n_words} words but {len(found[0])} follow; "
            "the file is cut off, or its first line is wrong"
        )
    return found


def _join(parts: list[tuple[list[str], Float32]], d: int) -> tuple[list[str], Float32]:
    words = [word for part, _ in parts for word in part]
    return words, np.concatenate([np.empty((0, d), np.float32), *(rows for _, rows in parts)])


def _is_text(line: bytes, d: int, name: str) -> bool:
    """Say whether the first line after a header belongs to a text file."""
    if _count_numbers(line) >= d:
        return True
    if name.endswith((".bin", ".bin.gz")) or b"\0" in line:
        return False
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _count_numbers(line: bytes) -> int:
    """Count the numbers at the end of a line; the first field is a word, whatever it is."""
    count = 0
    for field in reversed(line.replace(b"\t", b" ").split()[1:]):
        if not _is_number(field):
            break
        count += 1
    return count


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return b"_" not in field  # Python's own way to group digits


def _text_rows(
    name: str, head: bytes, read_block: Callable[[], bytes], number: int, d: int
) -> Iterator[tuple[list[str], Float32]]:
    """Parse a text block by block; `number` is that of the first line of `head`."""
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
    """Parse whole lines, the first of which has the number `number`."""
    words, texts, numbers = [], [], []
    for n, line in enumerate(block.replace(b"\t", b" ").split(b"\n"), start=number):
        line = line.rstrip(b" \r")
        if line.count(b" ") == d:
            word, _, text = line.partition(b" ")
        elif line:
            word, text = _split_uneven(line, d, f"{name}, line {n}")
        else:
            continue
        words.append(word)
        texts.append(text)
        numbers.append(n)
    rows = _numbers(b" ".join(texts))
    if len(rows) != len(texts) * d:
        place = next(i for i, text in enumerate(texts) if len(_numbers(text)) != d)
        raise InputError(_not_numbers(f"{name}, line {numbers[place]}", texts[place], d))
    return _decoded(words, numbers, name), rows.reshape(-1, d)


def _split_uneven(line: bytes, d: int, place: str) -> tuple[bytes, bytes]:
    """Split a line that has not exactly d spaces: a word with spaces, or a ragged row."""
    fields = [field for field in line.split(b" ") if field]
    n = len(fields) - 1
    if n < d or (n > d and _is_number(fields[-d - 1])):
        found = _count_numbers(line)
        raise InputError(
            f"{place}: {found} numbers after the word, expected {d} as in the lines before; "
            "give every word the same"
        )
    return b" ".join(fields[:-d]), b" ".join(fields[-d:])


def _numbers(text: bytes) -> Float32:
    """Parse numbers between spaces, up to the first field that is none."""
    with warnings.catch_warnings():
        # NumPy deprecates stopping early; the caller looks at the length instead.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(text, np.float32, sep=" ")
        except (DeprecationWarning, ValueError):
            return np.empty(0, np.float32)


def _not_numbers(place: str, text: bytes, d: int) -> str:
    fields = text.split()
    wrong = next((field for field in fields if not _is_number(field)), None)
    if wrong is None:
        return (
            f"{place}: {len(fields)} numbers after the word, expected {d}; give every word the same"
        )
    shown = wrong[:40].decode("utf-8", "backslashreplace")
    return f"{place}: {shown!r} is not a number; expected a word and {d} numbers"


def _binary_rows(
    name: str, head: bytes, read_block: Callable[[], bytes], n_words: int, d: int
) -> Iterator[tuple[list[str], Float32]]:
    """Parse a word2vec binary file block by block."""
    done, data, block = 0, b"", head
    while block and done < n_words:
        data += block
        words: list[bytes] = []
        rows: list[bytes] = []
        at = 0
        while done + len(words) < n_words:
            space = data.find(b" ", at)
            end = space + 1 + 4 * d
            if space < 0 or end > len(data):
                break
            words.append(data[at:space].lstrip(b"\r\n"))
            rows.append(data[space + 1 : end])
            at = end
        data = data[at:]
        if len(data) > _LONGEST:
            raise InputError(
                f"{name}: no end of the word after {done + len(words)} words; {_KINDS}"
            )
        vectors = np.frombuffer(b"".join(rows), "<f4").astype(np.float32).reshape(-1, d)
        yield _decoded(words, range(done + 1, done + len(words) + 1), name, "word"), vectors
        done += len(words)
        block = read_block()
    if done < n_words:
        raise InputError(
            f"{name}: ends in word {done + 1} of the {n_words} that line 1 announces; "
            "the file is cut off, fetch it again"
        )
    if (data + block).strip():
        raise InputError(f"{name}: more data after the {n_words} words that line 1 announces")


def _decoded(
    words: list[bytes], numbers: list[int] | range, name: str, unit: str = "line"
) -> list[str]:
    """Decode the words of a block; `numbers` are their lines or places, for the error."""
    try:
        return [word.decode("utf-8") for word in words]
    except UnicodeDecodeError:
        place = next(i for i, word in enumerate(words) if not _is_utf8(word))
        raise InputError(
            f"{name}, {unit} {numbers[place]}: the word {words[place][:40]!r} is not UTF-8; "
            "convert the file first"
        ) from None


def _is_utf8(word: bytes) -> bool:
    try:
        word.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True

r"""Texts as int32 type ids, encoded in one pass and kept in a file of the cache folder.

The ids are memory-mapped from that file, so that a corpus may be larger than memory; later runs
check the file's CRC-32 and do not read the text's words again. A type is a distinct word; types are
numbered in the order in which they first appear, independently of any vocabulary
(`hstree.data.corpus`).

Words stand between ASCII white space (space, tab, carriage return, vertical tab, form feed), as
for word2vec, fastText and awk: a no-break space is part of its word. Lines end at ``\n`` alone.
Every line, an empty one too, ends with ``<eos>``; a last line without ``\n`` is a line, and after
a last ``\n`` there is none.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import struct
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hstree._files import replacing
from hstree._typing import Int32, Int64
from hstree._utf8 import strict_text
from hstree.data.sources import BLOCK_BYTES, Source
from hstree.data.vocabulary import EOS
from hstree.errors import FileFormatError, InputError

CACHE_VARIABLE = "HSTREE_CACHE"

_MAGIC = b"hstree encoded 1"
_TRAILER = struct.Struct("<QI16s")
_ID = np.dtype("<i4")
_START = np.dtype("<i8")
_EOS_TYPE = 0
# NUL marks the end of a line among the words of a block: no text holds it (`strict_text`).
_LINE_END = b"\0"


@dataclass(frozen=True, eq=False)
class EncodedText:
    """A text as type ids.

    Attributes
    ----------
    name : str
        What the text is called, without a folder.
    sha256 : str
        Of the uncompressed text, before it was lower-cased.
    lower : bool
        Whether all words were lower-cased.
    types : list of str
        The distinct words in the order in which they first appear, after ``<eos>``, the first.
    ids : int32 array (T,), read-only, memory-mapped
        For each token the place of its word in `types`.
    line_start : int64 array (L + 1,)
        Line i is ``ids[line_start[i]:line_start[i + 1]]``; its last token is ``<eos>``.
    versions : dict of str to str
        The packages that the text was taken from; empty for a file.
    """

    name: str
    sha256: str
    lower: bool
    types: list[str]
    ids: Int32
    line_start: Int64
    versions: dict[str, str]


def encode(
    source: Source, *, lower: bool = False, cache: str | os.PathLike[str] | None = None
) -> EncodedText:
    """Encode a text, or open what an earlier run encoded of the same text.

    O(tokens) time, about 7 million tokens a second; O(types) memory.

    Parameters
    ----------
    source : Source
        The text.
    lower : bool
        Lower-case every word.
    cache : path, optional
        The folder for the encoded text; by default ``$HSTREE_CACHE``, else
        ``$XDG_CACHE_HOME/hstree``, else ``~/.cache/hstree``. One that cannot be written gives way
        to a temporary folder, which goes when the program ends.

    Raises
    ------
    InputError
        When the text is empty, cannot be read, or is no UTF-8 text.
    FileFormatError
        When the disk of the cache folder is full.
    """
    entry = f"{source.key()}{'-lower' if lower else ''}.ids"
    folder = _wanted_folder(cache)
    path = folder / entry
    text = _opened(path, source, lower)
    if text is None and not _is_writable(folder):
        path = Path(_temporary_folder().name) / entry
        text = _opened(path, source, lower)
    if text is None:
        _write(path, source, lower)
        text = _opened(path, source, lower)
    if text is None:
        raise FileFormatError(
            f"cannot read back {path}; set {CACHE_VARIABLE} to a folder on another disk"
        )
    return text


def _wanted_folder(chosen: str | os.PathLike[str] | None) -> Path:
    given = chosen or os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "hstree"


def _is_writable(folder: Path) -> bool:
    """Make the folder where it is missing, and try it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@functools.cache
def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return the folder that lives until the program ends."""
    return tempfile.TemporaryDirectory(prefix="hstree-", ignore_cleanup_errors=True)


class _TypeNumbers(dict[bytes, int]):
    """Word -> type id; a new word gets the next one."""

    def __missing__(self, word: bytes) -> int:
        # The mark of line ends is in here too, and is no type.
        number = self[word] = len(self) - 1
        return number


class _Encoder:
    """Takes a text block by block and gives the ids of each."""

    def __init__(self, name: str, lower: bool) -> None:
        self._name = name
        self._lower = lower
        self._numbers = _TypeNumbers({_LINE_END: -1, EOS.encode(): _EOS_TYPE})
        self._rest = b""
        self._line = 1
        self._offset = 0
        self._ends_a_line = True
        self.sha256 = hashlib.sha256()
        self.n_tokens = 0
        self.line_starts: list[Int64] = []

    def encode(self, block: bytes) -> Int32:
        """Return the ids of all whole words so far; what follows the last white space waits."""
        self.sha256.update(block)
        data = self._rest + block
        cut = 1 + max(data.rfind(white) for white in (b"\n", b" ", b"\t"))
        if cut == 0 and len(data) > BLOCK_BYTES:
            strict_text(data, self._name, line=self._line, offset=self._offset)
            raise InputError(
                f"{self._name}: line {self._line} has a word of more than {BLOCK_BYTES} bytes; "
                "give text with white space between the words"
            )
        self._rest = data[cut:]
        return self._ids(data[:cut])

    def finish(self) -> Int32:
        """Return the ids of what is left, and end the last line."""
        if self._offset == 0 and not self._rest:
            raise InputError(f"{self._name} is empty; give a text with at least one word")
        rest, self._rest = self._rest, b""
        unended = bool(rest) or not self._ends_a_line
        return self._ids(rest + b"\n" if unended else rest)

    def types(self) -> bytes:
        """Return all types so far, one a line."""
        numbers = iter(self._numbers)
        next(numbers)
        return b"\n".join(numbers)

    def _ids(self, data: bytes) -> Int32:
        text = strict_text(data, self._name, line=self._line, offset=self._offset)
        self._line += data.count(b"\n")
        self._offset += len(data)
        self._ends_a_line = data.endswith(b"\n") if data else self._ends_a_line
        if self._lower:
            data = text.lower().encode()
        words = data.replace(b"\n", b" " + _LINE_END + b" ").split()
        ids = np.fromiter(map(self._numbers.__getitem__, words), _ID, len(words))
        ends = np.flatnonzero(ids < 0)
        ids[ends] = _EOS_TYPE
        self.line_starts.append(self.n_tokens + ends + 1)
        self.n_tokens += len(ids)
        return ids


# The file: ids, line starts, types (one a line), then a footer (JSON: what stands in the parts),
# then a trailer: the length of the footer, the CRC-32 of all before the trailer, and the magic.


def _write(path: Path, source: Source, lower: bool) -> None:
    """Encode `source` to `path` in one pass."""
    encoder = _Encoder(source.name, lower)
    try:
        with replacing(path) as file:
            crc32 = 0
            for part in _parts(encoder, source):
                crc32 = zlib.crc32(part, crc32)
                file.write(part)
                length = len(part)
            file.write(_TRAILER.pack(length, crc32, _MAGIC))
    except FileFormatError as error:
        reason = getattr(error.__cause__, "strerror", None) or str(error.__cause__)
        raise FileFormatError(
            f"cannot write the encoded text {path}: {reason}; "
            f"set {CACHE_VARIABLE} to a folder with more room"
        ) from error


def _parts(encoder: _Encoder, source: Source) -> Iterator[bytes]:
    """Yield the content of the file for `source`; what comes last is the footer."""
    for block in source.blocks():
        yield encoder.encode(block).tobytes()
    yield encoder.finish().tobytes()
    starts = np.concatenate([[0], *encoder.line_starts]).astype(_START)
    yield starts.tobytes()
    types = encoder.types()
    yield types
    footer = {
        "sha256": encoder.sha256.hexdigest(),
        "tokens": encoder.n_tokens,
        "starts": len(starts),
        "types": len(types),
        "versions": source.versions,
    }
    yield json.dumps(footer).encode()


def _opened(path: Path, source: Source, lower: bool) -> EncodedText | None:
    """Open an encoded text; None where there is none, or a damaged one."""
    try:
        with path.open("rb") as file:
            footer = _footer(file)
            if footer is None:
                return None
            ids = np.memmap(file, _ID, "r", shape=(footer["tokens"],))
            file.seek(ids.nbytes)
            starts = np.frombuffer(file.read(footer["starts"] * _START.itemsize), _START)
            types = file.read(footer["types"]).decode().split("\n")
    except OSError:
        return None
    return EncodedText(
        name=source.name,
        sha256=footer["sha256"],
        lower=lower,
        types=types,
        ids=ids,
        line_start=starts,
        versions=footer["versions"],
    )


def _footer(file: BinaryIO) -> dict[str, Any] | None:
    """Return the footer of an encoded text, or None where not every byte is as it was written."""
    end = file.seek(0, os.SEEK_END) - _TRAILER.size
    if end < 0:
        return None
    file.seek(end)
    length, expected, magic = _TRAILER.unpack(file.read())
    file.seek(0)
    if magic != _MAGIC or _crc32(file, end) != expected:
        return None
    file.seek(end - length)
    footer: dict[str, Any] = json.loads(file.read(length))
    return footer


def _crc32(file: BinaryIO, size: int) -> int:
    """Return the CRC-32 of the next `size` bytes."""
    crc32 = 0
    for left in range(size, 0, -BLOCK_BYTES):
        crc32 = zlib.crc32(file.read(min(left, BLOCK_BYTES)), crc32)
    return crc32

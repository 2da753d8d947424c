r"""Texts as type ids, encoded in one pass and kept in the cache folder.

A type is a distinct word. Types are numbered in order of first occurrence, independently of any
vocabulary (`hstree.data.corpus`). An encoded text consists of three files in the cache folder,
named by the hash of its source: the arrays ``KEY.ids`` and ``KEY.line_start``, and ``KEY.json``.
The arrays are memory-mapped, so that a corpus can be larger than memory and opens in constant time.

Words are separated by ASCII white space (space, tab, carriage return, vertical tab, form feed), as
in word2vec, fastText and awk: a no-break space is part of a word. Only ``\n`` ends a line. Every
line, including empty lines, ends with ``<eos>``. The last line may lack its ``\n``, and no line
follows a final ``\n``.
"""

import functools
import hashlib
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from hstree._arrays import Int32, Int64, Integer
from hstree._files import CACHE_VARIABLE, cache_folder, is_writable, read_json, replacing
from hstree._text import strict_text
from hstree.data.sources import BLOCK_BYTES, Source, open_source
from hstree.data.vocabulary import EOS
from hstree.errors import FileFormatError, InputError

_ID = np.dtype("<i4")
_START = np.dtype("<i8")
_EOS_TYPE = 0
#: Minimum number of ids that are counted at a time.
_BLOCK = 1 << 18
# NUL marks line ends among the words of a block; no text contains it (`strict_text`).
_LINE_END = b"\0"


class _Description(msgspec.Struct):
    """The JSON file of an encoded text."""

    sha256: str
    types: str  #: types separated by spaces, which takes less memory than a list
    counts: bytes  #: int64 array (types,), little-endian
    format: Literal[6]


@dataclass(frozen=True, eq=False)
class EncodedText:
    """A text as type ids, in the cache folder and memory-mapped, or in memory (`in_memory`)."""

    name: str  #: name of the text, without a folder
    sha256: str  #: hash of the uncompressed text, before lower-casing
    lower: bool  #: whether all words were lower-cased
    types: list[str]  #: ``<eos>`` and the distinct words, in order of first occurrence or of ids
    counts: Int64  #: (types,), occurrences of each type
    ids: Integer  #: (T,), index into `types` of each token
    line_start: Int64  #: (L + 1,), offsets of the lines in `ids`; each line ends with ``<eos>``
    entry: Path = Path()  #: path of its cache files without endings; "." for a text in memory
    location: str | list[str] = ""  #: name by which another process can open the source


def encode(
    source: Source,
    *,
    lower: bool = False,
    cache: str | os.PathLike[str] | None = None,
) -> EncodedText:
    """Encode a text, or open the encoded text that is already in the folder `cache`.

    The default folder is ``$HSTREE_CACHE``, else ``$XDG_CACHE_HOME/hstree``, else
    ``~/.cache/hstree``. If it is read-only, a temporary folder is used, which is removed when the
    program ends. If `lower`, every word is converted to lower case. O(tokens) time, O(types)
    memory. Raises InputError if the text is empty, unreadable or not UTF-8, and FileFormatError if
    the disk of the cache folder is full.
    """
    name = f"{source.key()}{'-lower' if lower else ''}"
    # Open the text of an earlier run from the cache folder, or from the temporary folder
    entry = cache_folder(cache) / name
    text = _open_entry(entry, source.name, lower)
    if text is None and not is_writable(entry.parent):
        entry = Path(_temporary_folder().name) / name
        text = _open_entry(entry, source.name, lower)
    if text is None:
        _write(entry, source, lower)
        text = _open_entry(entry, source.name, lower)
    if text is None:
        raise FileFormatError(
            f"cannot read back {entry}.json; set {CACHE_VARIABLE} to a folder on another disk"
        )
    return text


def encoded_again(
    entry: Path, name: str, location: str | list[str], sha256: str, lower: bool
) -> EncodedText:
    """Return a text that another process has encoded, from either process's cache folder.

    If neither folder contains it, the text itself is encoded. Raises InputError if this is a
    different text.
    """
    text = _open_entry(entry, name, lower)
    if text is None and location == "-":
        raise InputError("another machine cannot read standard input; give the text as a file")
    text = text or encode(open_source(location, text=True), lower=lower)
    if text.sha256 != sha256:
        raise InputError(
            f"{location} differs from the text of the process that sends the jobs; copy it here"
        )
    return replace(text, location=location)


@functools.cache
def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that is removed when the program ends."""
    return tempfile.TemporaryDirectory(prefix="hstree-", ignore_cleanup_errors=True)


class Encoder:
    """Numbering of words in the order of their first occurrence, with ``<eos>`` first."""

    def __init__(self, name: str, *, lower: bool = False) -> None:
        self.n_tokens = 0
        self._name = name
        self._lower = lower
        self._digest = hashlib.sha256()
        # An unknown word gets the next number
        known = {_LINE_END: -1, EOS.encode(): _EOS_TYPE}
        self._numbers = defaultdict(count(_EOS_TYPE + 1).__next__, known)

    def encode(self, blocks: Iterator[bytes]) -> Iterator[tuple[Int32, Int64]]:
        """Yield the ids of words, and the offsets of the ends of their lines."""
        for block, text in whole_words(self._name, blocks, self._digest):
            data = text.lower().encode() if self._lower else block
            words = data.replace(b"\n", b" " + _LINE_END + b" ").split()
            # (T,) type of each word, -1 for a line end
            ids = np.fromiter(map(self._numbers.__getitem__, words), _ID, len(words))
            ends = np.flatnonzero(ids < 0)
            ids[ends] = _EOS_TYPE
            yield ids, ends + (self.n_tokens + 1)
            self.n_tokens += len(ids)

    @property
    def sha256(self) -> str:
        """Hash of the text so far."""
        return self._digest.hexdigest()

    @property
    def types(self) -> str:
        """All words so far, in order of their numbers, separated by spaces."""
        return b" ".join(word for word in self._numbers if word != _LINE_END).decode()


def whole_words(name: str, blocks: Iterator[bytes], digest: Any) -> Iterator[tuple[bytes, str]]:
    """Yield a text in blocks of whole words, as bytes and decoded; the last block ends its line.

    `digest` is updated with each block. Raises InputError for bytes that are not UTF-8 text.
    """
    # The beginning of a word, which continues in the next block
    rest = b""
    # Number of the line and of the bytes before the piece, for messages
    line = 1
    n_bytes = 0
    ends_line = True
    for block in chain(blocks, [None]):
        if block is None:
            piece = rest + b"\n" if rest or not ends_line else b""
            rest = b""
        else:
            digest.update(block)
            data = rest + block
            end = 1 + max(data.rfind(white) for white in (b"\n", b" ", b"\t"))
            piece = data[:end]
            rest = data[end:]

        is_too_long = not piece and len(rest) > BLOCK_BYTES
        text = strict_text(rest if is_too_long else piece, name, line=line, offset=n_bytes)
        if is_too_long:
            raise InputError(
                f"{name}: line {line} has a word of more than {BLOCK_BYTES} bytes; "
                "give text with white space between the words"
            )
        line += piece.count(b"\n")
        n_bytes += len(piece)
        if piece:
            ends_line = piece.endswith(b"\n")
        yield piece, text


def count_ids(ids: Integer, n_types: int) -> Int64:
    """Return the count (types,) of each id as int64."""
    counts = np.zeros(n_types, np.int64)
    size = max(_BLOCK, n_types)
    for first in range(0, len(ids), size):
        # NumPy 2.0 counts no unsigned integers of another byte order
        some = ids[first : first + size].astype(np.int64, copy=False)
        counts += np.bincount(some, minlength=n_types)
    return counts


def _paths(entry: Path) -> list[Path]:
    """Return the files of an encoded text: ids, offsets of lines, description."""
    return [Path(f"{entry}{ending}") for ending in (".ids", ".line_start", ".json")]


def _write(entry: Path, source: Source, lower: bool) -> None:
    """Encode a source in one pass; the files appear when they are complete."""
    encoder = Encoder(source.name, lower=lower)
    ids_path, start_path, description_path = _paths(entry)
    try:
        # Files are renamed in reverse order: the description appears after the arrays
        with (
            replacing(description_path) as description_file,
            replacing(start_path) as start_file,
            replacing(ids_path) as ids_file,
        ):
            # The ids of all tokens, and the line starts: 0, then the end of each line
            start_file.write(np.zeros(1, _START).data)
            for ids, ends in encoder.encode(source.blocks()):
                ids_file.write(ids.data)
                start_file.write(ends.astype(_START, copy=False).data)
            if encoder.n_tokens == 0:
                raise InputError(f"{source.name} is empty; give a text with at least one word")

            ids_file.flush()
            types = encoder.types
            counts = count_ids(np.memmap(ids_file.name, _ID, "r"), 1 + types.count(" "))
            description = _Description(
                sha256=encoder.sha256,
                types=types,
                counts=counts.astype(_START, copy=False).tobytes(),
                format=6,
            )
            description_file.write(msgspec.json.encode(description))
    except FileFormatError as error:
        raise FileFormatError(
            f"{error}, or set {CACHE_VARIABLE} to a folder with more room"
        ) from error


def _open_entry(entry: Path, name: str, lower: bool) -> EncodedText | None:
    """Open an encoded text; return None if there is none or its files are inconsistent."""
    ids_path, start_path, description_path = _paths(entry)
    try:
        description = read_json(description_path, _Description)
        counts = np.frombuffer(description.counts, _START).astype(np.int64)
        ids = np.asarray(np.memmap(ids_path, _ID, "r"))
        line_start = np.asarray(np.memmap(start_path, _START, "r"))
    except (FileFormatError, OSError, ValueError):
        return None

    # Compare only the sizes: reading all ids would take as long as reading the text
    types = description.types.split(" ")
    if len(types) != len(counts) or not len(ids) == counts.sum() == line_start[-1]:
        return None
    return EncodedText(name, description.sha256, lower, types, counts, ids, line_start, entry)

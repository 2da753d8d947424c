r"""Texts as type ids, encoded in one pass and kept in the cache folder.

A type is a distinct word. Types are numbered in order of first occurrence, independently of any
vocabulary (`hstree.data.corpus`). An encoded text is three files of the cache folder, named by the
hash of its source: ``KEY.ids.npy``, ``KEY.line_start.npy`` and ``KEY.json``. The arrays are
memory-mapped, so that a corpus may be larger than memory and opens in constant time.

Words are separated by ASCII white space (space, tab, carriage return, vertical tab, form feed), as
in word2vec, fastText and awk: a no-break space is part of its word. Lines end at ``\n`` alone.
Every line, an empty one too, ends with ``<eos>``; a last line without ``\n`` is a line, and no
line follows a last ``\n``.
"""

import base64
import ctypes
import functools
import hashlib
import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hstree._arrays import Int32, Int64, Integer
from hstree._files import CACHE_VARIABLE, cache_folder, is_writable, replacing
from hstree._text import strict_text
from hstree.data.sources import BLOCK_BYTES, Source, open_source
from hstree.data.vocabulary import EOS
from hstree.errors import FileFormatError, InputError

_FORMAT = 5
_ID = np.dtype("<i4")
_START = np.dtype("<i8")
_EOS_TYPE = 0
#: Numbers of a file that are read at a time, or more where there are more types.
_BLOCK = 1 << 18
_ENDINGS = (".ids.npy", ".line_start.npy", ".json")
# NUL marks line ends among the words of a block; no text contains it (`strict_text`).
_LINE_END = b"\0"

#: Ids of tokens, and the offsets behind the ends of their lines.
_Piece = tuple[Int32, Int64]


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
    entry: Path = Path()  #: its files in the cache folder, without their endings; "." in memory
    location: str | list[str] = ""  #: what its source is opened by in another process


def encode(
    source: Source,
    *,
    lower: bool = False,
    cache: str | os.PathLike[str] | None = None,
) -> EncodedText:
    """Encode a text, or open the encoded text that an earlier run left in the folder `cache`.

    The default folder is ``$HSTREE_CACHE``, else ``$XDG_CACHE_HOME/hstree``, else
    ``~/.cache/hstree``. Where it is read-only, a temporary folder is used instead, which is removed
    when the program ends. If `lower`, every word is lower-cased. O(tokens) time; O(types) memory.
    Raises InputError when the text is empty, unreadable or not UTF-8, and FileFormatError
    when the disk of the cache folder is full.
    """
    name = f"{source.key()}{'-lower' if lower else ''}"
    entry = cache_folder(cache) / name
    if text := _open_entry(entry, source.name, lower):
        return text
    if not is_writable(entry.parent):
        entry = Path(_temporary_folder().name) / name
        if text := _open_entry(entry, source.name, lower):
            return text
    _write(entry, source, lower)
    if text := _open_entry(entry, source.name, lower):
        return_freed_memory()
        return text
    raise FileFormatError(
        f"cannot read back {entry}.json; set {CACHE_VARIABLE} to a folder on another disk"
    )


def encoded_again(
    entry: Path, name: str, location: str | list[str], sha256: str, lower: bool
) -> EncodedText:
    """Return a text that another process has encoded, from its cache folder or from the own one.

    Where neither has it, the text itself is read here; raises InputError if that is another one.
    """
    text = _open_entry(entry, name, lower)
    if text is None and location == "-":
        raise InputError("another machine cannot read standard input; give the text as a file")
    text = text or encode(open_source(location, text=True), lower=lower)
    if text.sha256 != sha256:
        raise InputError(f"{location} is another text here than where the jobs come from; copy it")
    return replace(text, location=location)


@functools.cache
def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that is removed when the program ends."""
    return tempfile.TemporaryDirectory(prefix="hstree-", ignore_cleanup_errors=True)


class _WordNumbers:
    """Numbers of words in the order of their first occurrences; the line end is 0."""

    def __init__(self) -> None:
        # An unknown word gets the next number.
        known = {_LINE_END: -1, EOS.encode(): _EOS_TYPE}
        self._numbers = defaultdict(count(_EOS_TYPE + 1).__next__, known)

    def ids(self, data: bytes) -> tuple[Int32, Int64]:
        """Return the ids of the words of `data`, and the offsets behind the ends of its lines."""
        words = data.replace(b"\n", b" " + _LINE_END + b" ").split()
        # (T,) type of each word, -1 for a line end
        ids = np.fromiter(map(self._numbers.__getitem__, words), _ID, len(words))
        ends = np.flatnonzero(ids < 0)
        ids[ends] = _EOS_TYPE
        return ids, ends + 1

    def words(self) -> bytes:
        """Return all words so far, by number, with spaces between them."""
        return b" ".join(word for word in self._numbers if word != _LINE_END)


def encode_pieces(
    name: str, blocks: Iterator[bytes], lower: bool, about: dict[str, Any]
) -> Iterator[_Piece]:
    """Yield the ids of whole words, and the offsets behind the ends of their lines.

    At the end, `about` gets the hash of the text, and its words.
    """
    numbers = _WordNumbers()
    digest = hashlib.sha256()
    n_tokens = 0
    for block, text in whole_words(name, blocks, digest):
        ids, ends = numbers.ids(text.lower().encode() if lower else block)
        ends += n_tokens
        n_tokens += len(ids)
        yield ids, ends
    about["sha256"] = digest.hexdigest()
    about["words"] = numbers.words()


def whole_words(name: str, blocks: Iterator[bytes], digest: Any) -> Iterator[tuple[bytes, str]]:
    """Yield the blocks of a text cut between words, as bytes and decoded; the last ends its line.

    `digest` is updated with each block. Raises InputError for bytes that are not UTF-8 text.
    """
    # The beginning of a word, which continues in the next block
    rest = b""
    # Lines and bytes before the piece, for messages
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


def _blocks(path: Path, dtype: np.dtype[Any], offset: int = 0, size: int = _BLOCK) -> Iterator[Any]:
    """Yield the numbers of a file from a byte on, some at a time."""
    with path.open("rb") as file:
        file.seek(offset)
        while len(block := np.fromfile(file, dtype, size)):
            yield block


def _count_ids(path: Path, offset: int, n_types: int) -> Int64:
    """Count the ids of a file from a byte on: int64 (types,)."""
    counts = np.zeros(n_types, np.int64)
    for block in _blocks(path, _ID, offset, max(_BLOCK, n_types)):
        counts += np.bincount(block, minlength=n_types)
    return counts


def _write(entry: Path, source: Source, lower: bool) -> None:
    """Encode `source` in one pass; the files are put in place when complete."""
    about: dict[str, Any] = {}
    n_tokens = 0
    n_lines = 0
    ids_path, start_path, about_path = (Path(f"{entry}{ending}") for ending in _ENDINGS)
    try:
        # Renamed in reverse order: the description appears after the arrays
        with (
            replacing(about_path) as about_file,
            replacing(start_path) as start_file,
            replacing(ids_path) as ids_file,
        ):
            # Headers, written again when the lengths are known
            _write_header(ids_file, _ID, 0)
            _write_header(start_file, _START, 0)
            header_size = ids_file.tell()
            start_file.write(np.zeros(1, _START).data)
            for ids, ends in encode_pieces(source.name, source.blocks(), lower, about):
                ids_file.write(ids.astype(_ID, copy=False).data)
                start_file.write(ends.astype(_START, copy=False).data)
                n_tokens += len(ids)
                n_lines += len(ends)
            if n_tokens == 0:
                raise InputError(f"{source.name} is empty; give a text with at least one word")
            _write_header(start_file, _START, n_lines + 1)
            _write_header(ids_file, _ID, n_tokens)
            ids_file.flush()
            n_types = 1 + about["words"].count(b" ")
            counts = _count_ids(Path(ids_file.name), header_size, n_types)
            about = {
                "format": _FORMAT,
                "sha256": about["sha256"],
                # One string takes a fraction of the memory of a list.
                "types": about["words"].decode(),
                "counts": base64.b64encode(counts.astype(_START, copy=False).data).decode(),
            }
            about_file.write(json.dumps(about, ensure_ascii=False).encode())
    except FileFormatError as error:
        reason = getattr(error.__cause__, "strerror", None) or str(error.__cause__)
        raise FileFormatError(
            f"cannot write the encoded text {entry}.*: {reason}; "
            f"set {CACHE_VARIABLE} to a folder with more room"
        ) from error


def _write_header(file: BinaryIO, dtype: np.dtype[Any], length: int) -> None:
    """Write an array's header at the beginning; its size does not depend on the length."""
    header = {"descr": dtype.str, "fortran_order": False, "shape": (length,)}
    file.seek(0)
    np.lib.format.write_array_header_1_0(file, header)


def _open_entry(entry: Path, name: str, lower: bool) -> EncodedText | None:
    """Open an encoded text; None where there is none, or its files do not fit each other."""
    ids_path, start_path, about_path = (Path(f"{entry}{ending}") for ending in _ENDINGS)
    try:
        about = json.loads(about_path.read_bytes())
        ids = np.asarray(np.load(ids_path, mmap_mode="r"))
        line_start = np.asarray(np.load(start_path, mmap_mode="r"))
        counts = np.frombuffer(base64.b64decode(about["counts"]), _START).astype(np.int64)
        types = about["types"].split(" ")
        has_format = (about["format"], ids.dtype, line_start.dtype) == (_FORMAT, _ID, _START)
        has_lengths = len(counts) == len(types) and ids.shape == (counts.sum(),) == (
            line_start[-1],
        )
        sha256 = about["sha256"]
    except Exception:  # damaged files raise many kinds; the text is encoded again
        return None
    if not (has_format and has_lengths):
        return None
    return EncodedText(name, sha256, lower, types, counts, ids, line_start, entry)


def return_freed_memory() -> None:
    """Return freed memory to the system, where the C library does so on request (glibc).

    Each of its threads otherwise keeps freed arrays of up to 32 MiB.
    """
    with suppress(OSError, AttributeError, TypeError):  # TypeError on Windows
        ctypes.CDLL(None).malloc_trim(0)

"""Strict UTF-8: text, or an error that says where the bytes stop being text."""

from __future__ import annotations

from hstree.errors import InputError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def strict_text(data: bytes, name: str, *, line: int = 1, offset: int = 0) -> str:
    """Decode `data`, a run of the file `name` that starts at `line` (from 1) and byte `offset`.

    Raises
    ------
    InputError
        Where a byte is no UTF-8, or is NUL, which no text file holds.

    Examples
    --------
    >>> strict_text("café".encode(), "menu.txt")
    'café'
    """
    nul = data.find(b"\0")
    if nul >= 0:
        place = _place(data, nul, line, offset)
        raise InputError(f"{name}: a NUL byte at {place}: not a text file; give plain UTF-8 text")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = _place(data, error.start, line, offset)
        raise InputError(
            f"{name}: byte 0x{data[error.start]:02x} at {place} is not UTF-8; "
            "convert the file first, for example with `iconv -f latin1 -t utf-8`"
        ) from error


def _place(data: bytes, at: int, line: int, offset: int) -> str:
    """Name the place of byte `at` of `data`: its line, and its offset in the whole file."""
    newlines = data.count(b"\n", 0, at)
    return f"line {line + newlines}, byte offset {offset + at}"

"""Reading text files whole, with one clear line for each way in which that fails."""

from __future__ import annotations

from pathlib import Path

from hstree._input_files import read_regular
from hstree._utf8 import BYTE_ORDER_MARK, strict_text
from hstree.errors import InputError


def read_text(path: Path) -> str:
    """Read a file of UTF-8 text, without its byte order mark.

    Raises
    ------
    InputError
        When it cannot be read, or is not UTF-8.
    """
    try:
        data = read_regular(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    return strict_text(data.removeprefix(BYTE_ORDER_MARK), str(path)).replace("\r\n", "\n")

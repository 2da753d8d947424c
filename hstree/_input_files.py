"""Input files: regular files alone, and gzip with a bound on what it unpacks to.

Every failure is an `OSError`, so that a reader names what it could not read in one place.
Texts are not read through here: they are streamed, however large (`hstree.data.sources`).
"""

from __future__ import annotations

import errno
import gzip
import os
import stat
import zlib
from io import BufferedReader
from typing import BinaryIO

#: The most that gzip may unpack to, as a multiple of the file's size. Trees and vectors unpack to
#: 2 to 13 times their size; a compression bomb to 1,000 times.
MAX_RATIO = 16
#: What gzip may always unpack to, in bytes.
ALWAYS = 1 << 24


def largest_unpacked(size: int) -> int:
    """Return what a gzip file of `size` bytes may unpack to, in bytes."""
    return max(ALWAYS, MAX_RATIO * size)


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a file to read; never a pipe or a device, which may block or have no end.

    Raises
    ------
    OSError
        When it cannot be opened, or is not a regular file; `strerror` says why.
    """
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a folder has a message of its own
        what = "a pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
        raise OSError(errno.EINVAL, f"it is {what}, not a regular file; give a file")
    return open(path, "rb")


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Read a file whole; see `open_regular`.

    Raises
    ------
    OSError
    """
    with open_regular(path) as file:
        return file.read()


def read_gzip(path: str | os.PathLike[str]) -> bytes:
    """Read a gzip file whole; see `open_regular` and `Unpacked`.

    Raises
    ------
    OSError
    """
    with open_regular(path) as file:
        return Unpacked(file).read()


def open_gzip(file: BinaryIO) -> Unpacked:
    """Return what a gzip file holds, after unpacking it once to see that it is not too much.

    For files that are read in blocks, so that nothing is made of a compression bomb.

    Raises
    ------
    OSError
    """
    checked = Unpacked(file)
    while checked.read(1 << 20):
        pass
    file.seek(0)
    return Unpacked(file)


class Unpacked:
    """What a gzip file holds, up to `MAX_RATIO` times its size.

    Parameters
    ----------
    file : binary file
        Open, and a file of the disk: its size is the measure.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._stream = gzip.GzipFile(fileobj=file)
        self._left = largest_unpacked(os.fstat(file.fileno()).st_size)

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, fewer at the end of the file; all that follow if negative.

        Raises
        ------
        gzip.BadGzipFile
            When the file is damaged or cut off, or unpacks to more than it may.
        """
        wanted = self._left + 1 if size < 0 else min(size, self._left + 1)
        try:
            data = self._stream.read(wanted)
        except (EOFError, zlib.error) as error:
            raise gzip.BadGzipFile(f"{error}; make or fetch it again") from error
        self._left -= len(data)
        if self._left < 0:
            raise gzip.BadGzipFile(
                f"it unpacks to more than {MAX_RATIO} times its size; "
                "if that is right, unpack it with gunzip and give the file without .gz"
            )
        return data

"""Writing files so that nothing is ever lost: beside the old one, flushed, then renamed.

Regular files alone: a rename would take a device or a pipe away from everybody else.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hstree.errors import FileFormatError


def resolved(path: str | os.PathLike[str]) -> Path:
    """Return the file that `path` leads to through symbolic links, there already or not.

    Raises
    ------
    FileFormatError
        When what stands there is not a regular file.
    """
    target = Path(os.path.realpath(path))
    # Only a link that leads in a circle is still one.
    stands_there = os.path.exists(path) or os.path.islink(target)
    if stands_there and not os.path.isfile(path):
        raise FileFormatError(f"{path} is not a regular file; choose another place")
    return target


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`; on success it takes the place of `path`.

    A reader never sees half a file: the content is flushed to disk before the rename, and
    when the body raises, the temporary file goes and whatever stood at `path` stays. Where
    `path` is a symbolic link, the file that it leads to is replaced.

    Raises
    ------
    FileFormatError
        When the folder is missing or read-only, the disk is full, or something other than a
        regular file stands there.
    """
    target = resolved(path)
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode_of_a_new_file(target))
        os.replace(temporary, target)
    except OSError as error:
        _remove(temporary)
        reason = error.strerror or str(error)
        raise FileFormatError(
            f"cannot write {path}: {reason}; choose another place with -o"
        ) from error
    except BaseException:
        _remove(temporary)
        raise


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, if they are missing.

    Raises
    ------
    FileFormatError
        When a file is in the way, or a folder above it is read-only.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileFormatError(f"cannot make the folder {folder}: {reason}") from error


def _mode_of_a_new_file(target: Path) -> int:
    """Return the permissions that `open(target, "w")` would have left."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _remove(temporary: str) -> None:
    if temporary and os.path.exists(temporary):
        os.unlink(temporary)

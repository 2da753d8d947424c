"""One process at a time in a folder, so that two do not write the same runs.

The lock goes with the process, however that ends. Where the system has no `flock` there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hstree._files import make_folder
from hstree.errors import FileFormatError, InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder while the body runs; it is made if it is missing.

    Raises
    ------
    InputError
        When another process holds it.
    FileFormatError
        When the folder cannot be made or written.
    """
    make_folder(folder)
    try:
        file = (folder / NAME).open("ab")
    except OSError as error:
        raise FileFormatError(f"cannot write in {folder}: {error.strerror}") from error
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise InputError(
                    f"another process is at work in {folder}; "
                    "wait until it has ended, or choose another folder"
                ) from error
        yield

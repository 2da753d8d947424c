"""Writing files so that nothing is ever lost: beside the old one, flushed, then renamed.

Regular files alone: a rename would take a device or a pipe away from everybody else. A temporary
file is locked while its writer lives, so that the next writer in the same folder can tell what a
killed one left there, and removes it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from hstree.errors import FileFormatError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: What the names of temporary files and folders begin and end with; hstree alone makes such.
PREFIX, SUFFIX = ".hstree-", ".tmp"
#: The folder, inside the one that is written, of complete files on the way to their places.
_COMPLETE = ".hstree-new"


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
    with _explained(path), _temporary(target.parent, _make_file) as temporary:
        with temporary.open("wb") as file:
            yield file
            _flush(file)
        os.chmod(temporary, _mode_of_a_new_file(target))
        os.replace(temporary, target)


@contextmanager
def replacing_together(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a temporary folder; on success its files replace those of `folder`, all at once.

    `folder` is made if it is missing, and its other files stay. However the process ends,
    `standing` finds either every old file or every new one: the temporary folder is renamed
    when its files are complete, and from then on they count, moved to their places or not.

    Yields
    ------
    Path
        The temporary folder, inside `folder`; for files, not for folders.

    Raises
    ------
    FileFormatError
        As by `replacing`.
    """
    home = Path(folder)
    make_folder(home)
    with _explained(home), _temporary(home, _make_folder) as temporary:
        yield temporary
        for new in temporary.iterdir():
            with new.open("rb+") as file:
                _flush(file)
            new.chmod(_mode_of_a_new_file(resolved(home / new.name)))
        temporary.chmod(home.stat().st_mode & 0o777)
        _move_to_places(home)  # of a process that was killed
        temporary.rename(home / _COMPLETE)
        _move_to_places(home)


def standing(folder: str | os.PathLike[str], name: str) -> Path:
    """Return where a file stands that `replacing_together` wrote into a folder."""
    complete = Path(folder, _COMPLETE, name)
    return complete if complete.exists() else Path(folder, name)


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


def recorded_name(path: str | os.PathLike[str]) -> str:
    r"""Return a file's name or path as text that every file can hold.

    Bytes that are not UTF-8, which Python reads as half characters, become ``\xNN``.

    Examples
    --------
    >>> recorded_name(os.fsdecode(b"caf\xe9.txt"))
    'caf\\xe9.txt'
    """
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@contextmanager
def _explained(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise what the system refuses as one line that names `path`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileFormatError(f"cannot write {path}: {reason}; choose another place") from error


@contextmanager
def _temporary(folder: Path, make: Callable[[Path], str]) -> Iterator[Path]:
    """Make a temporary file or folder that is gone after the body, unless it was renamed."""
    _sweep(folder)
    name = make(folder)
    lock = _lock(name, wait=True)
    while not os.path.exists(name):  # swept by another process before it was locked
        _unlock(lock)
        name = make(folder)
        lock = _lock(name, wait=True)
    try:
        yield Path(name)
    finally:
        _remove(name)
        _unlock(lock)


def _make_file(folder: Path) -> str:
    handle, name = tempfile.mkstemp(SUFFIX, PREFIX, folder)
    os.close(handle)
    return name


def _make_folder(folder: Path) -> str:
    return tempfile.mkdtemp(SUFFIX, PREFIX, folder)


def _sweep(folder: Path) -> None:
    """Remove the temporary files of processes that were killed: those that nobody has locked."""
    with suppress(OSError):  # a folder that is missing or unreadable has nothing to sweep
        for name in os.listdir(folder):
            if name.startswith(PREFIX) and name.endswith(SUFFIX):
                path = os.path.join(folder, name)
                if (lock := _lock(path, wait=False)) is not None:
                    _remove(path)
                    _unlock(lock)


def _lock(path: str, *, wait: bool) -> int | None:
    """Lock a file or folder for this process; None where somebody has it, or there are no locks."""
    if fcntl is None:
        return None
    descriptor = None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        _unlock(descriptor)
        return None
    return descriptor


def _unlock(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(path)


def _move_to_places(folder: Path) -> None:
    """Move complete files to their places, as far as that is not done."""
    complete = folder / _COMPLETE
    for file in complete.glob("*"):
        with suppress(FileNotFoundError):  # another process moves them, too
            file.replace(folder / file.name)
    with suppress(OSError):
        complete.rmdir()


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _mode_of_a_new_file(target: Path) -> int:
    """Return the permissions that `open(target, "w")` would have left."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask

"""Places to write to, looked at before the work is done and not after."""

from __future__ import annotations

import tempfile
from pathlib import Path


def check_file(
    path: Path, option: str, endings: tuple[str, ...] = (), *, force: bool = True
) -> None:
    """Refuse a place where no file can be written, or one is in the way.

    Parameters
    ----------
    path : Path
    option : str
        The option that names the place, for the message.
    endings : tuple of str
        The endings that the file may have; any without.
    force : bool
        Whether a file that stands there may be replaced.

    Raises
    ------
    FileFormatError
        When it may not, something other than a regular file stands there, or the folder is
        missing or read-only.
    OptionError
        When the ending is another.
    """
    from hstree.errors import FileFormatError, OptionError
    from hstree.files import resolved

    if endings and not path.name.endswith(endings):
        raise OptionError(f"{option} {path}: the file's name must end in {' or '.join(endings)}")
    if path.is_dir():
        raise FileFormatError(f"{option} {path} is a folder; name a file in it")
    target = resolved(path)
    if path.exists() and not force:
        raise FileFormatError(
            f"{path} exists; add --force to replace it, or choose another place with {option}"
        )
    _check_folder(target.parent, path, option)


def check_folder(path: Path, option: str) -> None:
    """Refuse a place where no folder with files can be made.

    Raises
    ------
    FileFormatError
        When a file stands there or above it, or a folder above it is read-only.
    """
    nearest = path
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    _check_folder(nearest, path, option)


def _check_folder(folder: Path, path: Path, option: str) -> None:
    from hstree.errors import FileFormatError

    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FileFormatError(
            f"cannot write {path}: {error.strerror or error}; choose another place with {option}"
        ) from error

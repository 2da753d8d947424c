"""What commands write: places looked at before the work, files written before anything is printed.

An output never replaces a file that the command reads, nor another output.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from hstree_cli.exits import BAD_INPUT
from hstree_cli.messages import complain


@contextmanager
def written(*outputs: tuple[Path | None, Callable[[Path], object]]) -> Iterator[None]:
    """Write every output, then run the body, which prints.

    Each output is written whether the others could be or not, and the body runs whatever failed.
    Standard output that cannot be written loses nothing, for it comes last.

    Parameters
    ----------
    *outputs : pairs of a path and a function
        The function writes the path. None is not asked for.

    Raises
    ------
    typer.Exit
        After the body, when an output could not be written; each was named.
    OSError
        When standard output cannot be written; a `BrokenPipeError` only if nothing else failed.
    """
    from hstree.errors import HstreeError

    failed = False
    for path, write in outputs:
        if path is None:
            continue
        try:
            write(path)
        except (HstreeError, OSError) as error:
            complain(str(error))
            failed = True
        except MemoryError:
            complain(f"cannot write {path}: there is not enough memory")
            failed = True
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        if not failed:
            raise
    if failed:
        raise typer.Exit(BAD_INPUT)


def check_file(
    path: Path,
    option: str,
    endings: tuple[str, ...] = (),
    *,
    force: bool = True,
    apart_from: Iterable[object] = (),
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
    apart_from : iterable
        Files that the command reads, and its other outputs; what is not a path is passed over.

    Raises
    ------
    FileFormatError
        When it may not, it is one of those files, something other than a regular file stands
        there, or the folder is missing or read-only.
    OptionError
        When the ending is another.
    """
    from hstree._files import resolved
    from hstree.errors import FileFormatError, OptionError

    if endings and not path.name.endswith(endings):
        raise OptionError(f"{option} {path}: the file's name must end in {' or '.join(endings)}")
    if path.is_dir():
        raise FileFormatError(f"{option} {path} is a folder; name a file in it")
    target = resolved(path)
    _refuse_same([path], apart_from, path, option)
    if path.exists() and not force:
        raise FileFormatError(
            f"{path} exists; add --force to replace it, or choose another place with {option}"
        )
    _check_folder(target.parent, path, option)


def check_folder(
    path: Path, option: str, names: Iterable[str] = (), *, apart_from: Iterable[object] = ()
) -> None:
    """Refuse a place where no folder with files can be made.

    Parameters
    ----------
    path : Path
    option : str
    names : iterable of str
        The files and folders that are written in it.
    apart_from : iterable
        As `check_file` takes it.

    Raises
    ------
    FileFormatError
        When a file stands there or above it, a folder above it is read-only, or one of the files
        that the command reads would be replaced.
    """
    _refuse_same([path / name for name in names], apart_from, path, option)
    nearest = path
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    _check_folder(nearest, path, option)


def _refuse_same(
    targets: Iterable[Path], apart_from: Iterable[object], path: Path, option: str
) -> None:
    """Refuse targets that are one of some files, or a folder that holds one of them."""
    from hstree.errors import FileFormatError

    others = [other for other in apart_from if isinstance(other, str | Path)]
    for target in targets:
        for other in others:
            if _is_or_holds(target, other):
                raise FileFormatError(
                    f"{option} {path} would replace {other}, which this command reads or writes, "
                    f"too; choose another place with {option}"
                )


def _is_or_holds(target: Path, other: str | Path) -> bool:
    if not (target.exists() and os.path.exists(other)):
        return os.path.abspath(target) == os.path.abspath(other)
    inside = target.is_dir() and Path(other).resolve().is_relative_to(target.resolve())
    return inside or os.path.samefile(target, other)


def _check_folder(folder: Path, path: Path, option: str) -> None:
    from hstree.errors import FileFormatError

    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FileFormatError(
            f"cannot write {path}: {error.strerror or error}; choose another place with {option}"
        ) from error

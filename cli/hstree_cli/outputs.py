"""Outputs of commands: checked before the work, written before anything is printed.

No output is, lies inside or contains anything that the command reads (`check_apart`), and none
replaces another output.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hstree_cli.terminal import BAD_INPUT, complain

if TYPE_CHECKING:
    from hstree.experiments.row import Row


@contextmanager
def written(*outputs: tuple[Path | None, Callable[[Path], object]]) -> Iterator[None]:
    """Write every output by its function, then run the body, which prints; skip a path of None.

    A failed output is named, stops neither the others nor the body, and ends the program after
    the body. The body comes last, so that an error of standard output loses nothing.
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
    path: Path | None,
    option: str,
    endings: tuple[str, ...] = (),
    *,
    force: bool = True,
    reads: Iterable[object] = (),
    beside: Iterable[Path | None] = (),
) -> None:
    """Refuse a path where no file can be written, or where one must not be replaced.

    `option` names the path in messages, `endings` are those that the file may have (empty for
    any), `reads` is what the command reads (as for `check_apart`), `beside` has its other outputs.
    """
    from hstree._files import resolved
    from hstree.errors import FileFormatError, OptionError

    if path is None:
        return
    if endings and not path.name.endswith(endings):
        raise OptionError(f"{option} {path}: the file's name must end in {' or '.join(endings)}")
    if path.is_dir():
        raise FileFormatError(f"{option} {path} is a folder; name a file in it")
    check_apart(path, option, [*reads, *beside])
    if path.exists() and not force:
        raise FileFormatError(
            f"{path} exists; add --force to replace it, or choose another place with {option}"
        )
    _check_writable(resolved(path).parent, path, option)


def check_folder(
    path: Path | None,
    option: str,
    names: Iterable[str] = (),
    *,
    force: bool = True,
    reads: Iterable[object] = (),
    beside: Iterable[Path | None] = (),
) -> None:
    """Refuse a path where no folder can be made, or where files must not be replaced.

    `names` are the files and folders that are written into it, of which none may be an output
    `beside` it; the rest is as for `check_file`.
    """
    from hstree.errors import FileFormatError

    if path is None:
        return
    reads = list(reads)
    check_apart(path, option, reads)
    targets = [path / name for name in names]
    for target in targets:
        check_apart(target, option, [*reads, *beside])
    existing = next((target for target in targets if target.exists()), None)
    if existing is not None and not force:
        raise FileFormatError(
            f"{existing} exists; add --force to replace it, or choose another place with {option}"
        )
    nearest = path
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    _check_writable(nearest, path, option)


def check_apart(output: Path, option: str, reads: Iterable[object]) -> None:
    """Refuse an output that is, lies inside or contains anything that the command reads.

    `reads` has files and folders, by their paths or as they were typed: "-" is standard input;
    what is no path (None, numbers) is skipped. Hard and symbolic links are the file that they
    lead to, those inside a folder that is read, too.
    """
    from hstree.errors import FileFormatError

    ours = _identities(output)
    for read in filter(None, reads):
        if not isinstance(read, str | Path):
            continue
        source = Path("/dev/stdin" if read == "-" else read)
        # A link to the output can lie in a folder that is read only where the output exists.
        inside = source.rglob("*") if output.exists() and source.is_dir() else ()
        for path in chain([source, *_companions(source)], inside):
            theirs = _identities(path)
            if ours[0] in theirs or theirs[0] in ours:
                raise FileFormatError(
                    f"{option} {output} is, holds or lies in {path}, which this command "
                    f"reads or writes, too; choose another place with {option}"
                )


def files_named(options: Mapping[str, Any]) -> list[Path]:
    """Files that options of a method or layer name: their paths, and words that name trees."""
    from hstree.tree.files import ENDINGS

    values = options.values()
    trees = [Path(value) for value in values if isinstance(value, str) and value.endswith(ENDINGS)]
    return [*(value for value in values if isinstance(value, Path)), *trees]


def files_of_rows(rows: Iterable[Row]) -> Iterator[Path]:
    """Tree files that are rows, and files that the options of rows and of their layers name."""
    for row in rows:
        name, *pairs = shlex.split(str(row.single))
        values = dict(pair.partition("=")[::2] for pair in pairs)
        yield from files_named({"row": name, **values})
        yield from files_named(row.options)


def _identities(path: Path) -> list[tuple[int, int] | str]:
    """Device and inode of a path and of each folder above it; the name of what is not there."""
    real = Path(os.path.realpath(path))
    identities: list[tuple[int, int] | str] = []
    for part in (real, *real.parents):
        try:
            status = part.stat()
            identities.append((status.st_dev, status.st_ino))
        except OSError:
            identities.append(str(part))
    return identities


def _companions(path: Path) -> list[Path]:
    """Files that are read with a matrix, unless other labels are named."""
    from hstree.data.word_files import labels_path

    return [labels_path(path)] if path.suffix == ".npy" else []


def _check_writable(folder: Path, path: Path, option: str) -> None:
    from hstree.errors import FileFormatError

    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FileFormatError(
            f"cannot write {path}: {error.strerror or error}; choose another place with {option}"
        ) from error

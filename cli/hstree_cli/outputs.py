"""Outputs of commands: checked before the work, written before anything is printed.

An output never replaces a file that the command reads, nor another output.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TypeVar

import typer

from hstree_cli.terminal import (
    BAD_INPUT,
    INTERRUPTED,
    complain,
    printable,
    say,
    showing_progress,
)

R = TypeVar("R")


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


def show_kept(
    work: Callable[[Callable[[R], object]], object],
    show: Callable[[R], object],
    page: Path,
    write_page: Callable[[Path], Path],
    *,
    runs: Path,
    quiet: bool,
) -> None:
    """Do work whose finished runs are kept, print its result and write the result's page.

    `work` calls its argument with the result before it writes the files. `write_page` writes the
    page of a folder and returns its path. `runs` is what messages name
    as the place of finished runs. End the program after Ctrl-C, and after the result was printed if
    its files could not be written.
    """
    from hstree.errors import FileFormatError

    results: list[R] = []
    failure: FileFormatError | None = None
    lines: list[str] = []

    def write(page: Path) -> None:
        """Write the page and note where it is; fail as the files that it is made from did."""
        if failure is not None:
            raise failure
        with showing_progress(quiet):
            lines.append(f"A page to look at: {printable(str(write_page(page.parent)))}")

    try:
        with showing_progress(quiet):
            work(results.append)
    except FileFormatError as error:
        if not results:
            raise
        failure = error
    except KeyboardInterrupt:
        complain(
            f"interrupted; every finished run is kept in {runs}, "
            "and the same command goes on from there"
        )
        raise typer.Exit(INTERRUPTED) from None
    with written((page, write)):
        show(results[0])
        for line in lines:
            say(f"\n{line}")


def check_file(
    path: Path | None,
    option: str,
    endings: tuple[str, ...] = (),
    *,
    force: bool = True,
    apart_from: Iterable[object] = (),
) -> None:
    """Refuse a path where no file can be written, or where one must not be replaced.

    `option` names the path in messages, `endings` are those that the file may have (empty for
    any), `apart_from` has the files that the command reads and its other outputs.
    """
    from hstree._files import resolved
    from hstree.errors import FileFormatError, OptionError

    if path is None:
        return
    if endings and not path.name.endswith(endings):
        raise OptionError(f"{option} {path}: the file's name must end in {' or '.join(endings)}")
    if path.is_dir():
        raise FileFormatError(f"{option} {path} is a folder; name a file in it")
    _refuse_same([path], apart_from, path, option)
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
    apart_from: Iterable[object] = (),
) -> None:
    """Refuse a path where no folder can be made, or where files must not be replaced.

    `names` are the files and folders that are written into it; the rest is as for `check_file`.
    """
    from hstree.errors import FileFormatError

    if path is None:
        return
    targets = [path / name for name in names]
    _refuse_same(targets, apart_from, path, option)
    existing = next((target for target in targets if target.exists()), None)
    if existing is not None and not force:
        raise FileFormatError(
            f"{existing} exists; add --force to replace it, or choose another place with {option}"
        )
    nearest = path
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    _check_writable(nearest, path, option)


def _refuse_same(
    targets: Iterable[Path], apart_from: Iterable[object], path: Path, option: str
) -> None:
    """Refuse targets that are one of the files, or a folder that contains one."""
    from hstree.errors import FileFormatError

    others = [other for other in apart_from if isinstance(other, str | Path)]
    for target, other in product(targets, others):
        if _is_or_contains(target, other):
            raise FileFormatError(
                f"{option} {path} would replace {other}, which this command reads or writes, "
                f"too; choose another place with {option}"
            )


def _is_or_contains(target: Path, other: str | Path) -> bool:
    if not (target.exists() and os.path.exists(other)):
        return os.path.abspath(target) == os.path.abspath(other)
    inside = target.is_dir() and Path(other).resolve().is_relative_to(target.resolve())
    return inside or os.path.samefile(target, other)


def _check_writable(folder: Path, path: Path, option: str) -> None:
    from hstree.errors import FileFormatError

    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FileFormatError(
            f"cannot write {path}: {error.strerror or error}; choose another place with {option}"
        ) from error

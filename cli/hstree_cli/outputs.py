"""Outputs of commands: checked before the work, written before anything is printed.

A command says in one call of `check_outputs` what it reads and what it writes: no output is, lies
inside or contains anything that is read, and none replaces another output.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import typer

from hstree_cli.terminal import BAD_INPUT, complain


@contextmanager
def written(*outputs: tuple[Path | None, Callable[[Path], object]]) -> Iterator[list[Path]]:
    """Write every output by its function, then run the body, which prints; skip a path of None.

    The body gets the paths that are written.

    A failed output is named, stops neither the others nor the body, and ends the program after
    the body. The body comes last, so that an error of standard output loses nothing.
    """
    from hstree.errors import HstreeError

    failed, done = False, list[Path]()
    for path, write in outputs:
        if path is None:
            continue
        try:
            write(path)
            done.append(path)
        except (HstreeError, OSError, MemoryError) as error:
            failed = True
            is_memory = isinstance(error, MemoryError)
            reason = f"cannot write {path}: there is not enough memory" if is_memory else error
            complain(str(reason))
    try:
        yield done
        sys.stdout.flush()
    except BrokenPipeError:
        if not failed:
            raise
    if failed:
        raise typer.Exit(BAD_INPUT)


class Output(NamedTuple):
    """A file that a command writes, or a folder, by the option that names it."""

    option: str
    path: Path | None  #: None where the option was not typed
    endings: tuple[str, ...] = ()  #: that the file's name may have; empty for any
    holds: tuple[str, ...] | None = None  #: names written into a folder; None for a file


def check_outputs(*outputs: Output, reads: Iterable[object], force: bool = True) -> None:
    """Refuse outputs that cannot be written, must not be replaced, or are not apart.

    `reads` has all that the command reads, by paths or as it was typed: "-" is standard input; what
    is no path (None, numbers) is skipped. Without `force` nothing that is there is replaced.
    """
    from hstree._files import resolved
    from hstree.data.word_files import LABELS
    from hstree.errors import FileFormatError, OptionError

    named = [read for read in reads if read and isinstance(read, str | Path)]
    read = [Path("/dev/stdin" if one == "-" else one) for one in named]
    read += [path.with_suffix(LABELS) for path in read if path.suffix == ".npy"]
    taken = list(read)  # and what outputs before this one write
    for option, path, endings, holds in outputs:
        if path is None:
            continue
        if endings and not path.name.endswith(endings):
            raise OptionError(f"{option} {path}: its name must end in {' or '.join(endings)}")
        if holds is None and path.is_dir():
            raise FileFormatError(f"{option} {path} is a folder; name a file in it")
        check_apart(path, option, read)
        if holds is not None and path.is_file():
            raise FileFormatError(f"{option} {path} is a file; name a folder")
        targets = [path] if holds is None else [path / name for name in holds]
        targets += [file.with_suffix(LABELS) for file in targets if file.suffix == ".npy"]
        for target in targets:
            check_apart(target, option, taken)
            if target.exists() and not force:
                raise FileFormatError(
                    f"{target} exists; add --force to replace it, or choose another place with "
                    f"{option}"
                )
        taken += targets
        # the nearest folder that is there must take a file
        nearest = resolved(path).parent if holds is None else path
        while holds is not None and not nearest.exists() and nearest != nearest.parent:
            nearest = nearest.parent
        try:
            tempfile.TemporaryFile(dir=nearest).close()
        except OSError as error:
            is_missing = isinstance(error, FileNotFoundError)
            why = f"there is no folder {path.parent}" if is_missing else error.strerror or error
            end = f"choose another place with {option}"
            raise FileFormatError(f"cannot write {path}: {why}; {end}") from error


def check_apart(output: Path, option: str, sources: Iterable[Path]) -> None:
    """Refuse an output that is, lies inside or contains any of some files and folders.

    Hard and symbolic links are the file that they lead to, those inside a folder, too.
    """
    from hstree.errors import FileFormatError

    ours = _identities(output)
    for source in sources:
        # A link to the output can lie in a folder only where the output exists.
        inside = source.rglob("*") if output.exists() and source.is_dir() else ()
        for path in chain([source], inside):
            theirs = _identities(path)
            if ours[0] in theirs or theirs[0] in ours:
                raise FileFormatError(
                    f"{option} {output} is, holds or lies in {path}, which this command "
                    f"reads or writes, too; choose another place with {option}"
                )


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

"""Outputs of commands: checked before the work, written before anything is printed.

A command passes all its inputs and outputs to one call of `check_outputs`. No output may be an
input or another output, lie inside one, or contain one.
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

#: Name of the page in the folder of a comparison.
PAGE = "report.html"


@contextmanager
def written(*outputs: tuple[Path | None, Callable[[Path], object]]) -> Iterator[list[Path]]:
    """Write each output with its function, then run the body, which prints. Skip paths of None.

    The body receives the paths of the written files. If an output cannot be written, the error is
    reported, the other outputs and the body follow, and then the program ends with an error. The
    body runs last, so that an error of standard output loses no file.
    """
    from hstree.errors import HstreeError

    has_failed = False
    files: list[Path] = []
    # An output may be the result of hours of work: a failure of another one must not lose it
    for path, write in outputs:
        if path is None:
            continue
        try:
            write(path)
            files.append(path)
        except (HstreeError, OSError, MemoryError) as error:
            has_failed = True
            is_memory = isinstance(error, MemoryError)
            reason = f"cannot write {path}: not enough memory" if is_memory else error
            complain(str(reason))
    # A closed pipe, as with `head`, must not hide that a file could not be written
    try:
        yield files
        sys.stdout.flush()
    except BrokenPipeError:
        if not has_failed:
            raise
    if has_failed:
        raise typer.Exit(BAD_INPUT)


class Output(NamedTuple):
    """A file or folder that a command writes, and the option that names it."""

    option: str
    path: Path | None  #: None if the option was not typed
    endings: tuple[str, ...] = ()  #: accepted endings of the file's name; empty for any
    contents: tuple[str, ...] | None = None  #: names of the files in a folder; None for a file


def check_outputs(*outputs: Output, reads: Iterable[object], force: bool = True) -> None:
    """Refuse outputs that cannot be written, must not be replaced, or overlap with other files.

    `reads` contains the inputs of the command, as paths or as typed text; "-" is standard input.
    Values that are not paths (None, numbers) are skipped. Existing files are replaced only with
    `force`.
    """
    from hstree._files import resolve_file
    from hstree.data.word_files import LABELS
    from hstree.errors import FileFormatError, OptionError

    inputs = [
        Path("/dev/stdin" if value == "-" else value)
        for value in reads
        if value and isinstance(value, str | Path)
    ]
    inputs += [path.with_suffix(LABELS) for path in inputs if path.suffix == ".npy"]
    used = list(inputs)  # and the files of the previous outputs
    for option, path, endings, contents in outputs:
        if path is None:
            continue
        if endings and not path.name.endswith(endings):
            raise OptionError(f"{option} {path}: its name must end in {' or '.join(endings)}")
        if contents is None and path.is_dir():
            raise FileFormatError(f"{option} {path} is a folder; name a file in it")
        refuse_overlap(path, option, inputs)
        if contents is not None and path.is_file():
            raise FileFormatError(f"{option} {path} is a file; name a folder")

        # All files that will be written, including files in a folder and labels of arrays
        targets = [path] if contents is None else [path / name for name in contents]
        targets += [file.with_suffix(LABELS) for file in targets if file.suffix == ".npy"]
        for target in targets:
            refuse_overlap(target, option, used)
            if target.exists() and not force:
                raise FileFormatError(
                    f"{target} exists; add --force to replace it, or choose another path with "
                    f"{option}"
                )
        used += targets

        # Try to create a file in the nearest existing folder
        nearest = resolve_file(path).parent if contents is None else path
        while contents is not None and not nearest.exists() and nearest != nearest.parent:
            nearest = nearest.parent
        try:
            tempfile.TemporaryFile(dir=nearest).close()
        except OSError as error:
            is_missing = isinstance(error, FileNotFoundError)
            reason = f"there is no folder {path.parent}" if is_missing else error.strerror or error
            hint = f"choose another path with {option}"
            raise FileFormatError(f"cannot write {path}: {reason}; {hint}") from error


def refuse_overlap(output: Path, option: str, others: Iterable[Path]) -> None:
    """Refuse an output that equals one of `others`, lies inside it, or contains it.

    Hard and symbolic links, including links inside a folder, count as the file that they refer to.
    """
    from hstree.errors import FileFormatError

    output_ids = _identities(output)
    for other in others:
        # A folder can contain a link to the output only if the output exists
        inside = other.rglob("*") if output.exists() and other.is_dir() else ()
        for path in chain([other], inside):
            path_ids = _identities(path)
            if output_ids[0] in path_ids or path_ids[0] in output_ids:
                raise FileFormatError(
                    f"{option} {output} overlaps with {path}, which this command also reads or "
                    f"writes; choose another path with {option}"
                )


def _identities(path: Path) -> list[tuple[int, int] | str]:
    """Return the device and inode of a path and of each parent folder; its name if missing."""
    real = Path(os.path.realpath(path))
    identities: list[tuple[int, int] | str] = []
    for part in (real, *real.parents):
        try:
            status = part.stat()
            identities.append((status.st_dev, status.st_ino))
        except OSError:
            identities.append(str(part))
    return identities

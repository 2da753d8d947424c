"""Reading and writing of whole files: bounded, strict, and never half written.

Input files are regular files, and gzip may unpack only to a bounded multiple of its size; texts
and JSON are checked strictly. Corpora are streamed instead (`hstree.data.sources`). An output file
is written in a temporary folder beside the old one, flushed, then renamed, which only works for
regular files. The folder is locked while its writer lives, so that the next writer in the same
place can remove what a killed one left there.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import hashlib
import json
import lzma
import math
import os
import shutil
import stat
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from reprlib import repr as brief
from typing import Any, BinaryIO, NoReturn

import numpy as np

from hstree._typing import Array
from hstree.errors import FileFormatError, HstreeError, InputError

#: Environment variable that names the folder of what can be computed again.
CACHE_VARIABLE = "HSTREE_CACHE"

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Maximum size that gzip may unpack to, as a multiple of the file's size. Trees and vectors unpack
#: to 2 to 13 times their size, a compression bomb to 1,000 times.
MAX_RATIO = 16
#: Size that gzip may always unpack to, in bytes.
ALWAYS = 1 << 24
#: Maximum nesting of lists and objects in JSON values, so that recursive functions on them
#: (Python's `repr` and `json` too) end.
DEEPEST = 100
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: Endings of packed files, and what unpacks an open one.
UNPACK: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
#: What packed files begin with.
PACKED = {b"\x1f\x8b": ".gz", b"\xfd7zXZ": ".xz", b"BZh": ".bz2"}

#: Prefix and suffix of temporary folders.
PREFIX, SUFFIX = ".hstree-", ".tmp"
#: Folder, inside the one that is written, of complete files that are still to be moved.
_COMPLETE = ".hstree-new"


# Reading


@contextmanager
def explained(action: str, error: type[HstreeError], remedy: str = "") -> Iterator[None]:
    """Raise an `OSError` of the body as one line: "cannot {action}: {reason}; {remedy}"."""
    try:
        yield
    except OSError as caught:
        end = f"; {remedy}" if remedy else ""
        raise error(f"cannot {action}: {caught.strerror or caught}{end}") from caught


def reading(
    what: object, error: type[HstreeError] = InputError, remedy: str = ""
) -> AbstractContextManager[None]:
    """Raise an `OSError` of the body as one line: "cannot read {what}: {reason}; {remedy}"."""
    return explained(f"read {what}", error, remedy)


@contextmanager
def naming(path: object) -> Iterator[None]:
    """Put the name of a file before the message of an `InputError` of the body."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a regular file to read; pipes and devices may block or have no end.

    Raises OSError when it cannot be opened or is not a regular file; its `strerror` says why.
    """
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # `open` reports a folder itself
        what = "a pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
        raise OSError(errno.EINVAL, f"it is {what}, not a regular file; give a file")
    return open(path, "rb")


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Read a whole file; raises `OSError` as `open_regular`."""
    with open_regular(path) as file:
        return file.read()


def read_packed(path: str | os.PathLike[str]) -> bytes:
    """Read and unpack a whole file; raises `OSError` as `open_regular` and `Unpacked`."""
    with open_regular(path) as file:
        return Unpacked(file, Path(path).suffix).read()


def read_text(path: str | os.PathLike[str], what: str = "") -> str:
    r"""Read a file of UTF-8 text, unpacked if its name ends in ``.gz``, ``.xz`` or ``.bz2``.

    The byte order mark is dropped and line ends become ``\n``; `what` names the kind of file in
    messages ("the labels"). Raises InputError when it cannot be read or is not UTF-8.
    """
    name = os.fspath(path)
    with reading(f"{what} {name}".lstrip()):
        data = read_packed(path) if name.endswith(tuple(UNPACK)) else read_regular(path)
    return strict_text(data.removeprefix(BYTE_ORDER_MARK), name).replace("\r\n", "\n")


def strict_text(data: bytes, name: str, *, line: int = 1, offset: int = 0) -> str:
    """Decode UTF-8 without NUL bytes.

    `data` is a piece of the file `name` that begins at a line (from 1) and a byte offset. Raises
    InputError with the line and offset of the first byte that is NUL or not UTF-8.
    """

    def position(at: int) -> str:
        newlines = data.count(b"\n", 0, at)
        return f"line {line + newlines}, byte offset {offset + at}"

    if offset == 0 and data.startswith((b"\xff\xfe", b"\xfe\xff")):
        remedy = "convert the file first, for example with `iconv -f utf-16 -t utf-8`"
        raise InputError(f"{name} is UTF-16, not UTF-8; {remedy}")
    if (nul := data.find(b"\0")) >= 0:
        what = f"a NUL byte at {position(nul)}"
        raise InputError(f"{name}: {what}: not a text file; give plain UTF-8 text")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name}: byte 0x{data[error.start]:02x} at {position(error.start)} is not UTF-8; "
            "convert the file first, for example with `iconv -f latin1 -t utf-8`"
        ) from error


def largest_unpacked(size: int) -> int:
    """Return the maximum size that a gzip file of `size` bytes may unpack to, in bytes."""
    return max(ALWAYS, MAX_RATIO * size)


class Unpacked:
    """Unpacked content of a packed file on disk, up to `MAX_RATIO` times its size."""

    def __init__(self, file: BinaryIO, ending: str = ".gz") -> None:
        self._stream = UNPACK[ending](file)
        self._left = largest_unpacked(os.fstat(file.fileno()).st_size)

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, fewer at the end of the file; all the rest if negative.

        Raises gzip.BadGzipFile when the file is damaged, cut off, or unpacks to more than it may.
        """
        wanted = self._left + 1 if size < 0 else min(size, self._left + 1)
        try:
            data: bytes = self._stream.read(wanted)
        except gzip.BadGzipFile:
            raise
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            raise gzip.BadGzipFile(f"{error}; make or fetch it again") from error
        self._left -= len(data)
        if self._left < 0:
            raise gzip.BadGzipFile(
                f"it unpacks to more than {MAX_RATIO} times its size; "
                "if that is right, unpack it (gunzip, unxz) and give the file without its ending"
            )
        return data


# JSON


def read_json(path: str | os.PathLike[str], remedy: str) -> dict[str, Any]:
    """Read a file of one JSON object; raises FileFormatError as `parse_json`."""
    with reading(path, FileFormatError, remedy):
        data = read_regular(path)
    try:
        return parse_json(data, remedy)
    except FileFormatError as error:
        raise FileFormatError(f"{path} {error}") from error


def parse_json(data: bytes, remedy: str) -> dict[str, Any]:
    """Parse one JSON object, strictly: no NaN, no key twice, nothing but UTF-8.

    `remedy` says in messages what to do with a damaged file: "build it again". Raises
    FileFormatError for anything else, with a message that continues the name of the file.
    """
    if not data:
        raise FileFormatError(f"is empty; {remedy}")
    if data.startswith(BYTE_ORDER_MARK):
        raise FileFormatError("begins with a byte order mark, which JSON has none of; remove it")
    try:
        document = json.loads(
            data.decode("utf-8"), object_pairs_hook=_unique_keys, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError as error:
        wrong = f"is not UTF-8 text (byte {error.start}), so not JSON"
        raise FileFormatError(f"{wrong}; {remedy}") from error
    except json.JSONDecodeError as error:
        wrong = f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise FileFormatError(f"{wrong}; {remedy}") from error
    except RecursionError as error:
        raise FileFormatError(f"is JSON nested too deep; {remedy}") from error
    except ValueError as error:  # Python's limit on the digits of a number
        raise FileFormatError("holds a number of thousands of digits; 64 bits fit") from error
    if type(document) is not dict:
        raise FileFormatError(f"holds {brief(document)}, not a JSON object")
    return document


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise FileFormatError(f"has the key {brief(twice)} twice in one object")
    return values


def _refuse_constant(constant: str) -> NoReturn:
    raise FileFormatError(f"holds {constant}, which is not a number in JSON")


def nested_too_deep(value: Any, most: int = DEEPEST) -> bool:
    """Return whether lists and objects are nested more than `most` deep in a JSON value."""
    if not isinstance(value, Mapping | list | tuple):
        return False
    inner = value.values() if isinstance(value, Mapping) else value
    return most == 0 or any(nested_too_deep(one, most - 1) for one in inner)


def write_json(path: str | os.PathLike[str], document: Mapping[str, Any]) -> None:
    """Write an object of JSON values as a file.

    NaN and infinity become null, which is all that JSON has for them, and a lone surrogate its
    escape, since UTF-8 cannot encode it. Raises FileFormatError when the file cannot be written.
    """
    text = json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False)
    with replacing(path) as file:
        file.write(f"{text}\n".encode("utf-8", "backslashreplace"))


def hash_of(document: Mapping[str, Any]) -> str:
    """Return the sha256 of an object of JSON values, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _finite(value: Any) -> Any:
    """Replace every NaN and infinity in a JSON value by None."""
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# Arrays

NPY_MAGIC = np.lib.format.MAGIC_PREFIX
_NPY_VERSIONS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
    (3, 0): np.lib.format.read_array_header_2_0,  # for names in UTF-8, which numbers have none of
}


def write_array(file: BinaryIO, array: Array) -> None:
    """Write a C-contiguous array as ``.npy``; unlike `numpy.save`, say when the disk is full."""
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    file.write(array.data)


def read_array(file: BinaryIO, size: int) -> Array:
    """Read a ``.npy`` of real numbers from a file of `size` bytes, open at its beginning.

    The size that the header announces is compared with that of the file before anything is
    allocated. Returns a read-only array in the byte order of the file. Raises FileFormatError when
    it is no such file, or of another size; the message does not name the file.
    """
    try:
        version = np.lib.format.read_magic(file)
        shape, is_fortran, dtype = _NPY_VERSIONS[version](file)
        if len(shape) > 32 or min(shape, default=0) < 0:
            raise ValueError("a shape that no array has")
    except Exception as error:  # a damaged header raises errors of many kinds
        remedy = "it is not a readable .npy file; write one with numpy.save"
        raise FileFormatError(remedy) from error
    if dtype.hasobject:
        what = "Python objects, which are never loaded"
        raise FileFormatError(f"it holds {what}; save numbers (float32)")
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        raise FileFormatError(f"it holds {dtype.str!r}, not real numbers of up to 64 bits")
    expected, available = math.prod(shape) * dtype.itemsize, size - file.tell()
    # An axis may be longer than the file where another one is 0.
    if expected > available or max(shape, default=0) > size:
        raise FileFormatError("it ends too early; make or fetch it again")
    if expected < available:
        wrong = f"its header announces {expected} bytes of numbers and {available} follow"
        raise FileFormatError(f"{wrong}; make or fetch it again")
    data = file.read(expected)
    if len(data) != expected:
        raise FileFormatError("it ends too early; make or fetch it again")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if is_fortran else "C")


# Writing


def resolved(path: str | os.PathLike[str]) -> Path:
    """Follow symbolic links to the file that `path` names, which need not exist.

    Raises FileFormatError when something other than a regular file is there.
    """
    target = Path(os.path.realpath(path))
    exists = os.path.exists(path) or os.path.islink(target)  # a resolved link is a link to itself
    if exists and not os.path.isfile(path):
        raise FileFormatError(f"{path} is not a regular file; choose another place")
    return target


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file that replaces `path` on success.

    The content is flushed to disk before the rename, so that a reader never sees half a file.
    When the body raises, the new file is removed and `path` stays as it was. Where `path`
    is a symbolic link, the file that it leads to is replaced. Raises FileFormatError when the
    folder is missing or read-only, the disk is full, or `path` is not a regular file.
    """
    target = resolved(path)
    with _writing(path), _temporary(target.parent) as folder:
        with (folder / target.name).open("xb") as file:
            yield file
            flush_to_disk(file)
        if target.exists():
            shutil.copymode(target, folder / target.name)
        os.replace(folder / target.name, target)


@contextmanager
def replacing_together(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a temporary folder whose files replace those of `folder` on success, all at once.

    `folder` is made if it is missing, and its other files stay. However the process ends,
    `current_file` finds either every old file or every new one: the temporary folder is renamed
    when its files are complete, and from then on they count, moved into `folder` or not. Raises
    FileFormatError as `replacing`.
    """
    home = Path(folder)
    make_folder(home)
    with _writing(home), _temporary(home) as temporary:
        yield temporary
        for new in temporary.iterdir():
            with new.open("rb+") as file:
                flush_to_disk(file)
            if (old := resolved(home / new.name)).exists():
                shutil.copymode(old, new)
        temporary.chmod(home.stat().st_mode & 0o777)
        _move_complete(home)  # those of a process that was killed
        temporary.rename(home / _COMPLETE)
        _move_complete(home)


@contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """Make a folder that is removed after the body, by default among the system's temporary files.

    Those of processes that were killed are removed first.
    """
    with _temporary(parent or Path(tempfile.gettempdir())) as folder:
        yield folder


def current_file(folder: str | os.PathLike[str], name: str) -> Path:
    """Return the path of a file that `replacing_together` wrote into a folder."""
    complete = Path(folder, _COMPLETE, name)
    return complete if complete.exists() else Path(folder, name)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, if they are missing; raises FileFormatError if that fails."""
    with explained(f"make the folder {folder}", FileFormatError):
        folder.mkdir(parents=True, exist_ok=True)


def cache_folder(chosen: str | os.PathLike[str] | None = None) -> Path:
    """Return `chosen`, else ``$HSTREE_CACHE``, ``$XDG_CACHE_HOME/hstree``, ``~/.cache/hstree``."""
    folder = chosen or os.environ.get(CACHE_VARIABLE)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(folder or f"{base}/hstree")


def is_writable(folder: Path) -> bool:
    """Make a folder if it is missing, and try to write to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def recorded_name(path: str | os.PathLike[str]) -> str:
    r"""Return a file's name or path as text that every file can hold.

    Bytes that are not UTF-8, which Python reads as lone surrogates, become ``\xNN``.
    """
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _writing(path: str | os.PathLike[str]) -> AbstractContextManager[None]:
    return explained(f"write {path}", FileFormatError, "choose another place")


@contextmanager
def _temporary(parent: Path) -> Iterator[Path]:
    """Make a temporary folder that is removed after the body, unless it was renamed.

    Those that no living process has locked are removed first.
    """
    with suppress(OSError):  # nothing to remove in a folder that is missing or unreadable
        for name in os.listdir(parent):
            if name.startswith(PREFIX) and name.endswith(SUFFIX):
                lock = _lock(path := os.path.join(parent, name), wait=False)
                if lock is not None:
                    shutil.rmtree(path, ignore_errors=True)
                    os.close(lock)
    while True:
        folder = tempfile.mkdtemp(SUFFIX, PREFIX, parent)
        lock = _lock(folder, wait=True)
        if os.path.exists(folder):  # else another process removed it before it was locked
            break
        _unlock(lock)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _unlock(lock)


def _lock(path: str, *, wait: bool) -> int | None:
    """Lock a folder for this process; None if another has it, or there are no locks."""
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


def _move_complete(folder: Path) -> None:
    """Move complete files from `_COMPLETE` into the folder."""
    complete = folder / _COMPLETE
    for file in complete.glob("*"):
        with suppress(FileNotFoundError):  # another process moves them too
            file.replace(folder / file.name)
    with suppress(OSError):
        complete.rmdir()


def flush_to_disk(file: BinaryIO) -> None:
    """Write what is buffered of an open file to the disk."""
    file.flush()
    os.fsync(file.fileno())

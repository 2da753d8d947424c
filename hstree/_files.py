"""Strict reading of complete files, and atomic writing.

Input files must be regular files, and the uncompressed size of a compressed file is limited. An
output file is written in a temporary folder beside the old file, flushed, then renamed. A process
locks each folder that it uses and that others may remove. The lock ends with the process, so that
later processes remove only files that a killed process has left.
"""

import bz2
import errno
import gzip
import hashlib
import json
import lzma
import os
import re
import shutil
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from uuid import uuid4

import msgspec

from hstree._plugins import require
from hstree._text import one_line, strict_text
from hstree.errors import FileFormatError, HstreeError, InputError, explained

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

#: Environment variable with the name of the cache folder, whose files can be recomputed.
CACHE_VARIABLE = "HSTREE_CACHE"
#: Maximum uncompressed size of a file as a multiple of its size, and a size in bytes that is always
#: allowed. Trees and vectors have ratios from 2 to 13, a compression bomb has a ratio of 1,000.
MAX_RATIO = 16
ALWAYS = 1 << 24
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: Part of the standard library from Python 3.14 on.
_ZSTANDARD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
#: Extensions of compressed files, and the functions that decompress an open file.
UNPACK: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".bz2": bz2.open,
    ".zst": lambda file: require(_ZSTANDARD, package=_ZSTANDARD).open(file),
}
#: First bytes of a zip, and of a pickle with protocol 2 to 5. No text begins with these.
_ZIP = b"PK\x03\x04"
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
#: Prefix and suffix of the names of temporary folders.
PREFIX = ".hstree-"
SUFFIX = ".tmp"
#: Folder with complete files that are not yet moved.
_COMPLETE = ".hstree-new"
#: Name of the file in a folder that is locked while the folder is used.
LOCK = ".lock"
#: Maximum number of attempts to create and lock a folder that other processes remove.
MOST_ATTEMPTS = 100


# Reading


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a regular file for reading. Raises OSError for pipes and devices, which may block."""
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # `open` reports a folder itself
        what = "a pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
        raise OSError(errno.EINVAL, f"it is {what}, not a regular file; give a file")
    return open(path, "rb")


def read_regular(
    path: str | os.PathLike[str], error: type[HstreeError] = InputError, remedy: str = ""
) -> bytes:
    """Read all bytes of a file. Raises `error` on failure."""
    with explained(f"read {path}", error, remedy), open_regular(path) as file:
        return file.read()


def refuse_containers(path: str | os.PathLike[str], start: bytes | None = None) -> None:
    """Raise InputError for a zip or a pickle, whose content is never read.

    `start` is the uncompressed beginning of the file; it is read if it is not given.
    """
    start = _read_start(path) if start is None else start
    if start.startswith(_ZIP):
        raise InputError(
            f"{path} is a zip; extract it with `unzip {path}`, then give one of its files"
        )
    refuse_pickle(path, start)


def refuse_pickle(path: str | os.PathLike[str], start: bytes | None = None) -> None:
    """Raise InputError for a pickle, such as a saved gensim model; see `refuse_containers`."""
    if _PICKLE.match(_read_start(path) if start is None else start):
        raise InputError(
            f"{path} is a pickle, whose reading runs code; export a gensim model in Python by "
            f"model = gensim.models.Word2Vec.load({os.fspath(path)!r}) and, for its tree, "
            "hstree.interop.gensim.tree_of(model).save('tree.json'), or for its vectors "
            "model.wv.save_word2vec_format('vectors.vec')"
        )


def _read_start(path: str | os.PathLike[str]) -> bytes:
    """Return the first uncompressed bytes of a file; empty if it cannot be read."""
    with suppress(OSError), open_regular(path) as file:
        return unpacking_reader(file, Path(path).suffix)(4)
    return b""


def read_text(path: str | os.PathLike[str], what: str = "") -> str:
    r"""Read and decompress UTF-8 text, without a byte order mark and with line ends ``\n``.

    `what` names the kind of file in messages ("the labels"). Raises InputError on failure.
    """
    return strict_text(read_unpacked(path, what), os.fspath(path)).replace("\r\n", "\n")


def read_unpacked(path: str | os.PathLike[str], what: str = "") -> bytes:
    """Read and decompress all bytes of a text, without a byte order mark.

    Raises InputError on failure, and for a pickle or a zip.
    """
    with explained(f"read {f'{what} {path}'.lstrip()}"), open_regular(path) as file:
        text = unpacking_reader(file, Path(path).suffix)(-1)
    refuse_containers(path, text)
    return text.removeprefix(BYTE_ORDER_MARK)


def largest_unpacked(size: int) -> int:
    """Return the maximum uncompressed size of a compressed file with `size` bytes, in bytes."""
    return max(ALWAYS, MAX_RATIO * size)


def unpacking_reader(
    file: BinaryIO, ending: str, *, is_bounded: bool = True
) -> Callable[[int], bytes]:
    """Return a function that reads the next bytes of a file, or all bytes for -1.

    Bytes are decompressed according to the extension of the file. The function raises BadGzipFile
    if they are damaged, or, with `is_bounded`, if there are more than `largest_unpacked`.
    """
    if ending not in UNPACK:
        return file.read
    stream = UNPACK[ending](file)
    left = largest_unpacked(os.fstat(file.fileno()).st_size) if is_bounded else sys.maxsize
    # Errors of the decompressors, including Zstandard if its module is imported
    zstandard = [module.ZstdError] if (module := sys.modules.get(_ZSTANDARD)) else []
    damaged = (EOFError, OSError, zlib.error, lzma.LZMAError, *zstandard)

    def read(size: int) -> bytes:
        nonlocal left
        # Try to read one byte more than allowed, to detect excess data
        try:
            data: bytes = stream.read(left + 1 if size < 0 else min(size, left + 1))
        except damaged as error:
            raise gzip.BadGzipFile(f"{error}; create or download it again") from error
        left -= len(data)
        if left < 0:
            raise gzip.BadGzipFile(
                f"its uncompressed size is more than {MAX_RATIO} times its size; if that is right, "
                "decompress it (gunzip, unxz) and give the uncompressed file"
            )
        return data

    return read


def json_hash(document: Mapping[str, Any]) -> str:
    """Return the sha256 of an object of JSON values, independent of the order of keys."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def read_json(path: str | os.PathLike[str], kind: type[T], remedy: str = "") -> T:
    """Read JSON of a type, such as a struct. Raises FileFormatError if it is missing or damaged."""
    data = read_regular(path, FileFormatError, remedy)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        end = f"; {remedy}" if remedy else ""
        raise FileFormatError(f"{path} is damaged: {one_line(error)}{end}") from error


# Writing


def resolve_file(path: str | os.PathLike[str]) -> Path:
    """Follow links to a file, which need not exist. Raises FileFormatError if it is not a file."""
    target = Path(os.path.realpath(path))
    exists = os.path.exists(path) or os.path.islink(target)  # a circle of links ends in a link
    if exists and not os.path.isfile(path):
        raise FileFormatError(f"{path} is not a regular file; choose another path")
    return target


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file that replaces `path` on success.

    A reader never sees an incomplete file. If the body raises, `path` is unchanged. If it is a
    symbolic link, the file to which it refers is replaced. Raises FileFormatError on failure.
    """
    target = resolve_file(path)
    with (
        explained(f"write {path}", FileFormatError, "choose another path"),
        temporary_folder(target.parent) as folder,
    ):
        new = folder / target.name
        with new.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # The new file is on disk; keep the permissions of the old file
        if target.exists():
            shutil.copymode(target, new)
        new.replace(target)


def write_json(path: str | os.PathLike[str], document: Mapping[str, Any]) -> None:
    """Write an object of JSON values; NaN becomes null, and half characters are escaped."""
    finite = json.loads(json.dumps(document), parse_constant=lambda _: None)
    text = json.dumps(finite, indent=2, ensure_ascii=False)
    with replacing(path) as file:
        file.write(f"{text}\n".encode("utf-8", "backslashreplace"))


@contextmanager
def replacing_together(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a temporary folder whose files replace those in `folder` together on success.

    Even if the process is killed, `current_file` finds either all old files or all new files: the
    temporary folder is renamed when its files are complete, and from then on its files are used,
    even if they are not yet moved into `folder`. The folder is created if necessary. Raises
    FileFormatError on failure.
    """
    home = Path(folder)
    complete = home / _COMPLETE
    with explained(f"write {home}", FileFormatError, "choose another path"):
        home.mkdir(parents=True, exist_ok=True)
        with temporary_folder(home) as new_files:
            yield new_files
            # Flush all files to disk before the folder is renamed
            for new in new_files.iterdir():
                with new.open("rb+") as file:
                    os.fsync(file.fileno())
                resolve_file(home / new.name)  # refuses a folder
            while new_files.exists():
                # Move files that a killed process has left
                _move_complete(home)
                try:
                    new_files.rename(complete)
                except OSError as error:
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                        raise  # otherwise another process has just renamed its files
            _move_complete(home)


def _move_complete(home: Path) -> None:
    """Move complete files into their folder; other processes may do so at the same time."""
    complete = home / _COMPLETE
    with suppress(FileNotFoundError):
        for file in complete.iterdir():
            with suppress(FileNotFoundError):
                file.replace(home / file.name)
    with suppress(OSError):
        complete.rmdir()


def current_file(folder: str | os.PathLike[str], name: str) -> Path:
    """Return the path of a file in a folder that `replacing_together` has written."""
    complete = Path(folder, _COMPLETE, name)
    return complete if complete.exists() else Path(folder, name)


# Folders and their locks


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with its content, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Make a folder that is removed after the body; remove folders of killed processes."""
    for abandoned in parent.glob(f"{PREFIX}*{SUFFIX}"):
        remove_unused(abandoned)
    # The folder has ordinary permissions; folders of `tempfile` are private
    home = parent / f"{PREFIX}{uuid4().hex}{SUFFIX}"
    home.mkdir()
    files = home / "files"
    try:
        with acquire_lock(home, shared=True):
            files.mkdir()
            yield files
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def locked(folder: Path, *, wait: bool = False, shared: bool = False) -> Iterator[None]:
    """Hold the lock of a folder while the body runs; create the folder if necessary.

    Parameters
    ----------
    folder : Path
    wait : bool, default False
        Whether to wait until no other process holds the lock.
    shared : bool, default False
        Whether other processes can hold a shared lock at the same time. A shared lock always waits
        for the end of an exclusive lock.

    Raises
    ------
    InputError
        If another process holds the lock, unless `wait`.
    FileFormatError
        If the folder cannot be written.
    """
    with explained(f"write {folder / LOCK}", FileFormatError):
        try:
            file = acquire_lock(folder, wait=wait, shared=shared)
        except BlockingIOError as error:
            raise InputError(
                f"another process is using {folder}; wait until it has ended, or choose another "
                "folder"
            ) from error
    with file:
        yield


def acquire_lock(folder: Path, *, wait: bool = False, shared: bool = False) -> BinaryIO:
    """Return the lock file of a folder, locked until it is closed; see `locked`.

    Nothing is locked if the system or the disk does not support `flock`. Raises BlockingIOError if
    another process holds the lock, and OSError if the folder cannot be written.
    """
    path = folder / LOCK
    attempts = 0
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = path.open("a+b")  # NFS can lock only files that are open for writing
        except (FileExistsError, FileNotFoundError):
            # Another process removes the folder at the same time, or a link is broken
            attempts += 1
            if attempts == MOST_ATTEMPTS:
                raise
            continue
        try:
            _lock(file, wait=wait or shared, shared=shared)
            if _is_at(file, path):
                return file
        except BaseException:  # includes Ctrl-C while waiting
            file.close()
            raise
        file.close()


def _lock(file: BinaryIO, *, wait: bool, shared: bool) -> bool:
    """Lock an open file; return False if locks are not supported.

    Raises BlockingIOError if another process has locked the file.
    """
    if fcntl is None:
        return False
    operation = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, operation if wait else operation | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # a network disk without locks
        return False
    return True


def _is_at(file: BinaryIO, path: Path) -> bool:
    """Return whether a path refers to an open file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def remove_unused(folder: Path) -> None:
    """Remove a folder with its content, unless it is locked or locks are not supported."""
    removed = folder.parent / f"{PREFIX}{uuid4().hex}{SUFFIX}"
    with suppress(OSError):
        if fcntl is None:  # Windows cannot rename a folder with an open file
            folder.rename(removed)
        else:
            with (folder / LOCK).open("a+b") as file:
                # Rename first, so that a process that waits for the lock finds no folder
                if _lock(file, wait=False, shared=False) and _is_at(file, folder / LOCK):
                    folder.rename(removed)
    shutil.rmtree(removed, ignore_errors=True)


def cache_folder(chosen: str | os.PathLike[str] | None = None) -> Path:
    """Return `chosen`, else ``$HSTREE_CACHE``, ``$XDG_CACHE_HOME/hstree``, ``~/.cache/hstree``.

    A missing folder is created, if possible, with access for this user only.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(chosen or os.environ.get(CACHE_VARIABLE) or f"{base}/hstree")
    with suppress(OSError):
        make_private(folder)
    return folder


def make_private(folder: Path) -> None:
    """Create a folder and its parents if necessary, with access for this user only."""
    if not folder.is_dir():
        make_private(folder.parent)
        with suppress(FileExistsError):  # another process has created it
            folder.mkdir(stat.S_IRWXU)


def is_writable(folder: Path) -> bool:
    """Create a folder with `make_private` if necessary; return whether it is writable."""
    with suppress(OSError):
        make_private(folder)
    return os.access(folder, os.W_OK)

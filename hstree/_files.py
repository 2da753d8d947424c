"""Reading and writing of complete files: bounded, strict, and never half written.

Input files are regular files, and packed ones may unpack only to a bounded multiple of their size.
An output file is written in a temporary folder beside the old one, flushed, then renamed. A process
holds a lock on each folder that it uses and that others may remove. The lock ends with the process,
so that a later writer removes what a killed process left, and nothing else.
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

#: Environment variable that names the cache folder, whose files can be computed again.
CACHE_VARIABLE = "HSTREE_CACHE"
#: Maximum size that a file may unpack to, as a multiple of its size, and what any may, in bytes.
#: Trees and vectors unpack to 2 to 13 times their size, a compression bomb to 1,000 times.
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
#: First bytes of a zip, and of a pickle of protocol 2 to 5; no text begins with these.
_ZIP = b"PK\x03\x04"
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
#: Beginning and end of the names of temporary folders.
PREFIX = ".hstree-"
SUFFIX = ".tmp"
#: Folder of complete files that are still to be moved.
_COMPLETE = ".hstree-new"
#: File of a folder that is locked while the folder is used.
LOCK = ".lock"
#: Consecutive times that a folder which others remove is made before its lock is given up.
MOST_ATTEMPTS = 100


# Reading


def open_regular(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a regular file to read; OSError for pipes and devices, which may block or not end."""
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # `open` reports a folder itself
        what = "a pipe" if stat.S_ISFIFO(mode) else "a device or a socket"
        raise OSError(errno.EINVAL, f"it is {what}, not a regular file; give a file")
    return open(path, "rb")


def read_regular(
    path: str | os.PathLike[str], error: type[HstreeError] = InputError, remedy: str = ""
) -> bytes:
    """Read all bytes of a file; raises `error`."""
    with explained(f"read {path}", error, remedy), open_regular(path) as file:
        return file.read()


def refuse_containers(path: str | os.PathLike[str], start: bytes | None = None) -> None:
    """Raise InputError for a zip or a pickle, whose content is never read.

    `start` is the beginning of the file, unpacked; it is read where it is not given.
    """
    start = _read_start(path) if start is None else start
    if start.startswith(_ZIP):
        raise InputError(f"{path} is a zip; `unzip {path}` unpacks it, then give one of its files")
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
    """Return the first bytes of a file, unpacked; none where it cannot be read."""
    with suppress(OSError), open_regular(path) as file:
        return unpacking_reader(file, Path(path).suffix)(4)
    return b""


def read_text(path: str | os.PathLike[str], what: str = "") -> str:
    r"""Read UTF-8 text, unpacked, without a byte order mark, line ends as ``\n``.

    `what` names the kind of file in messages ("the labels"). Raises InputError.
    """
    return strict_text(read_unpacked(path, what), os.fspath(path)).replace("\r\n", "\n")


def read_unpacked(path: str | os.PathLike[str], what: str = "") -> bytes:
    """Read all bytes of a text, unpacked, without a byte order mark.

    Raises InputError, also for a pickle or a zip.
    """
    with explained(f"read {f'{what} {path}'.lstrip()}"), open_regular(path) as file:
        text = unpacking_reader(file, Path(path).suffix)(-1)
    refuse_containers(path, text)
    return text.removeprefix(BYTE_ORDER_MARK)


def largest_unpacked(size: int) -> int:
    """Return the maximum size that a packed file of `size` bytes may unpack to, in bytes."""
    return max(ALWAYS, MAX_RATIO * size)


def unpacking_reader(
    file: BinaryIO, ending: str, *, is_bounded: bool = True
) -> Callable[[int], bytes]:
    """Return a function that reads the next bytes of a file, all for -1.

    They are unpacked by the ending of its name. The function raises BadGzipFile where they are
    damaged, or if bounded more than `largest_unpacked`.
    """
    if ending not in UNPACK:
        return file.read
    stream = UNPACK[ending](file)
    left = largest_unpacked(os.fstat(file.fileno()).st_size) if is_bounded else sys.maxsize
    # Errors of the unpackers; of Zstandard, where its module is imported
    zstandard = [module.ZstdError] if (module := sys.modules.get(_ZSTANDARD)) else []
    damaged = (EOFError, OSError, zlib.error, lzma.LZMAError, *zstandard)

    def read(size: int) -> bytes:
        nonlocal left
        # One byte more than may follow tells that there is too much
        try:
            data: bytes = stream.read(left + 1 if size < 0 else min(size, left + 1))
        except damaged as error:
            raise gzip.BadGzipFile(f"{error}; make or fetch it again") from error
        left -= len(data)
        if left < 0:
            raise gzip.BadGzipFile(
                f"it unpacks to more than {MAX_RATIO} times its size; "
                "if that is right, unpack it (gunzip, unxz) and give the file without its ending"
            )
        return data

    return read


def json_hash(document: Mapping[str, Any]) -> str:
    """Return the sha256 of an object of JSON values, regardless of the order of its keys."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def read_json(path: str | os.PathLike[str], kind: type[T], remedy: str = "") -> T:
    """Read JSON of a type, such as a struct; FileFormatError when it is missing or damaged."""
    data = read_regular(path, FileFormatError, remedy)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        end = f"; {remedy}" if remedy else ""
        raise FileFormatError(f"{path} is damaged: {one_line(error)}{end}") from error


# Writing


def resolve_file(path: str | os.PathLike[str]) -> Path:
    """Follow links to the file of a path, which need not exist; FileFormatError if not a file."""
    target = Path(os.path.realpath(path))
    exists = os.path.exists(path) or os.path.islink(target)  # a circle of links ends in a link
    if exists and not os.path.isfile(path):
        raise FileFormatError(f"{path} is not a regular file; choose another place")
    return target


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file that replaces `path` on success.

    A reader never sees half a file. When the body raises, `path` stays as it was. Where it is a
    symbolic link, the file that it leads to is replaced. Raises FileFormatError.
    """
    target = resolve_file(path)
    with (
        explained(f"write {path}", FileFormatError, "choose another place"),
        temporary_folder(target.parent) as folder,
    ):
        new = folder / target.name
        with new.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # On disk, with the permissions of the old file, before it takes its place
        if target.exists():
            shutil.copymode(target, new)
        new.replace(target)


def write_json(path: str | os.PathLike[str], document: Mapping[str, Any]) -> None:
    """Write an object of JSON values; NaN becomes null, half a character an escape."""
    finite = json.loads(json.dumps(document), parse_constant=lambda _: None)
    text = json.dumps(finite, indent=2, ensure_ascii=False)
    with replacing(path) as file:
        file.write(f"{text}\n".encode("utf-8", "backslashreplace"))


@contextmanager
def replacing_together(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a temporary folder whose files replace those of `folder` on success, all at once.

    However the process ends, `current_file` finds either every old file or every new one: the
    temporary folder is renamed when its files are complete, and from then on they count, moved
    into `folder` or not. The folder is made if it is missing. Raises FileFormatError.
    """
    home = Path(folder)
    complete = home / _COMPLETE
    with explained(f"write {home}", FileFormatError, "choose another place"):
        home.mkdir(parents=True, exist_ok=True)
        with temporary_folder(home) as new_files:
            yield new_files
            # All files are on the disk before the folder is renamed
            for new in new_files.iterdir():
                with new.open("rb+") as file:
                    os.fsync(file.fileno())
                resolve_file(home / new.name)  # which refuses a folder
            while new_files.exists():
                # Files that a killed process left
                _move_complete(home)
                try:
                    new_files.rename(complete)
                except OSError as error:
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                        raise  # else another process has just renamed its files
            _move_complete(home)


def _move_complete(home: Path) -> None:
    """Move complete files into their folder; another process may do that at the same time."""
    complete = home / _COMPLETE
    with suppress(FileNotFoundError):
        for file in complete.iterdir():
            with suppress(FileNotFoundError):
                file.replace(home / file.name)
    with suppress(OSError):
        complete.rmdir()


def current_file(folder: str | os.PathLike[str], name: str) -> Path:
    """Return the path of a file that `replacing_together` wrote into a folder."""
    complete = Path(folder, _COMPLETE, name)
    return complete if complete.exists() else Path(folder, name)


# Folders and their locks


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with its content; do nothing where there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Make a folder that is removed after the body; remove those that killed processes left."""
    for abandoned in parent.glob(f"{PREFIX}*{SUFFIX}"):
        remove_unused(abandoned)
    # With the permissions of other folders; those of `tempfile` are closed to the group
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
    """Hold the lock of a folder, which is made if it is missing, while the body runs.

    Parameters
    ----------
    folder : Path
    wait : bool, default False
        Whether to wait until no other process holds the lock.
    shared : bool, default False
        Whether other processes may hold a shared lock at the same time. A shared lock waits for the
        end of an exclusive lock.

    Raises
    ------
    InputError
        If another process holds the lock, unless this waits.
    FileFormatError
        If the folder cannot be written.
    """
    with explained(f"write {folder / LOCK}", FileFormatError):
        try:
            file = acquire_lock(folder, wait=wait, shared=shared)
        except BlockingIOError as error:
            raise InputError(
                f"another process is at work in {folder}; "
                "wait until it has ended, or choose another folder"
            ) from error
    with file:
        yield


def acquire_lock(folder: Path, *, wait: bool = False, shared: bool = False) -> BinaryIO:
    """Return the lock file of a folder, locked until it is closed; see `locked`.

    Nothing is locked where the system or the disk has no `flock`. Raises BlockingIOError if
    another process holds the lock, and OSError if the folder cannot be written.
    """
    path = folder / LOCK
    attempts = 0
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = path.open("a+b")  # NFS locks only what is read and written
        except (FileExistsError, FileNotFoundError):
            # Another process removes the folder at the same time, or a link leads nowhere
            attempts += 1
            if attempts == MOST_ATTEMPTS:
                raise
            continue
        try:
            _lock(file, wait=wait or shared, shared=shared)
            if _is_at(file, path):
                return file
        except BaseException:  # Ctrl-C too, while this waits
            file.close()
            raise
        file.close()


def _lock(file: BinaryIO, *, wait: bool, shared: bool) -> bool:
    """Lock an open file; return False where files have no locks.

    Raises BlockingIOError if another process has locked it.
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
    """Return whether a path leads to an open file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def remove_unused(folder: Path) -> None:
    """Remove a folder with its content, unless a process holds its lock or files have no locks."""
    removed = folder.parent / f"{PREFIX}{uuid4().hex}{SUFFIX}"
    with suppress(OSError):
        if fcntl is None:  # Windows renames no folder in which a process has a file open
            folder.rename(removed)
        else:
            with (folder / LOCK).open("a+b") as file:
                # Renamed at once, so that a process which waits for the lock finds it gone
                if _lock(file, wait=False, shared=False) and _is_at(file, folder / LOCK):
                    folder.rename(removed)
    shutil.rmtree(removed, ignore_errors=True)


def cache_folder(chosen: str | os.PathLike[str] | None = None) -> Path:
    """Return `chosen`, else ``$HSTREE_CACHE``, ``$XDG_CACHE_HOME/hstree``, ``~/.cache/hstree``.

    A missing folder is made for this user alone, where that is possible.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(chosen or os.environ.get(CACHE_VARIABLE) or f"{base}/hstree")
    with suppress(OSError):
        make_private(folder)
    return folder


def make_private(folder: Path) -> None:
    """Make a folder and its parents where they are missing, for this user alone."""
    if not folder.is_dir():
        make_private(folder.parent)
        with suppress(FileExistsError):  # another process made it
            folder.mkdir(stat.S_IRWXU)


def is_writable(folder: Path) -> bool:
    """Make a folder if it is missing, as `make_private`; return whether it can be written to."""
    with suppress(OSError):
        make_private(folder)
    return os.access(folder, os.W_OK)

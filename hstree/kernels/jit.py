"""Decorators that compile functions with numba, and the folder of cached machine code."""

import atexit
import functools
import hashlib
import os
import shutil
import stat
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hstree import progress
from hstree._files import cache_folder, is_writable
from hstree._plugins import require

#: Oldest supported version of numba.
OLDEST = "0.61"
#: Optimisations that change the rounding of sums: reordering and fused multiply-add, for example.
FAST_MATH = frozenset({"reassoc", "contract", "nsz", "arcp"})
#: Options for numba: divisions follow NumPy, and there is no wrapper for calls from C.
OPTIONS = {"error_model": "numpy", "no_cfunc_wrapper": True}
#: Minimum number of free bytes on the disk for caching machine code.
MIN_FREE = 1 << 26
#: Write permissions of all users except the owner.
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@functools.cache
def numba() -> Any:
    """Return numba, or None if it is missing; warn if it is too old or broken."""
    try:
        import numba
    except Exception as error:  # numba refuses some versions of NumPy
        if isinstance(error, ModuleNotFoundError) and error.name == "numba":
            return None
        reason = str(error)
    else:
        if numba.version_info[:2] >= tuple(map(int, OLDEST.split("."))):
            return numba
        reason = f"version {numba.__version__} is older than {OLDEST}"
    warnings.warn(
        f"numba is installed but not used: {reason}; upgrade it, or set HSTREE_FAST=0",
        RuntimeWarning,
        stacklevel=3,
    )
    return None


def jit(function: Any, *, exact: bool = False) -> Any:
    """Compile a function when Python first calls it; it runs without the global interpreter lock.

    The machine code is kept in the cache folder. If `exact`, sums have the same order as in Python.
    """
    module = numba() or require("numba", at_least=OLDEST)
    folder = machine_code_folder()
    # numba reads the cache folder from its configuration when a function is decorated
    previous = module.config.CACHE_DIR
    module.config.CACHE_DIR = str(folder or "")
    try:
        return module.njit(
            function,
            nogil=True,
            cache=folder is not None,
            fastmath=False if exact else set(FAST_MATH),
            **OPTIONS,
        )
    finally:
        module.config.CACHE_DIR = previous


def inline(function: Any, *, exact: bool = False) -> Any:
    """Inline a function into the compiled functions that call it.

    Python can only call its `py_func`. Each caller compiles it again, so that a chain of such
    functions takes long to compile.
    """
    module = numba() or require("numba", at_least=OLDEST)
    return module.njit(
        function,
        forceinline=True,
        no_cpython_wrapper=True,
        fastmath=False if exact else set(FAST_MATH),
        **OPTIONS,
    )


@functools.cache
def machine_code_folder() -> Path | None:
    """Return the folder for machine code; None if machine code cannot be kept.

    The name depends on numba's version and on a hash of all sources in this package, since numba
    detects changes only in the file of the function itself.
    """
    module = numba()
    digest = hashlib.sha256(module.__version__.encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    parent = Path(module.config.CACHE_DIR or cache_folder() / "kernels")
    # Resolve links, which other users could change
    folder = parent.resolve() / f"hstree-{digest.hexdigest()[:16]}"
    if not is_writable(folder) or shutil.disk_usage(folder).free < MIN_FREE:
        return None
    if (changeable := changeable_by_others(folder)) is not None:
        warnings.warn(
            f"compiled kernels are not kept: others own {changeable} or can write to it, and could "
            "put their own code there; set NUMBA_CACHE_DIR to a folder that only you can write to",
            stacklevel=2,
        )
        return None
    # numba creates files with the permissions of the umask, so restrict them at exit
    atexit.register(lambda: deny_others(folder.rglob("*")))
    files = list(folder.rglob("*.nb?"))
    for file in files:
        if file.stat().st_size == 0:  # for example, after a power failure
            file.unlink()
    if not files:
        announce_compiling()
    return folder


def announce_compiling() -> None:
    """Report why the first use takes long."""
    progress.say("compiling kernels, once for this machine: up to half a minute")


def changeable_by_others(folder: Path) -> Path | None:
    """Return a path through which other users could change the content of a folder, or None.

    `folder` is a real path. The folder and its content must belong to this user, must not be
    writable by others and must not contain symbolic links. The folders above must belong to this
    user or to root. They must not be writable by others, unless they are sticky like ``/tmp``. On
    Windows the result is always None.
    """
    if os.name != "posix":
        return None
    user = os.geteuid()
    # root has another user id in some containers
    trusted = {user, 0, os.stat("/").st_uid}
    for path in reversed(folder.parents):
        info = path.stat()
        is_open = info.st_mode & _OTHERS_WRITE and not info.st_mode & stat.S_ISVTX
        if info.st_uid not in trusted or is_open:
            return path
    for path in (folder, *folder.rglob("*")):
        try:
            info = path.lstat()
        except FileNotFoundError:  # another process has renamed it
            continue
        is_link = stat.S_ISLNK(info.st_mode)
        if info.st_uid != user or info.st_mode & _OTHERS_WRITE or is_link:
            return path
    return None


def deny_others(paths: Iterable[Path]) -> None:
    """Remove write permissions of other users from files and folders."""
    for path in paths:
        mode = path.lstat().st_mode
        if mode & _OTHERS_WRITE:
            path.chmod(stat.S_IMODE(mode) & ~_OTHERS_WRITE)

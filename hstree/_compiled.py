"""Compiled twins of array functions, by numba, where the extra `fast` is installed.

A room of the house keeps its twins in a module ``compiled``, under the names of the functions in
NumPy that they replace. That module, and numba with it, is imported when the first twin is asked
for. The environment variable ``HSTREE_FAST=0`` and `numpy_alone` switch twins off.

Machine code is kept in the folder of `cache_folder`, so that a function is compiled once for each
version of numba and kind of processor; where nothing can be written there, once in each process.
numba compiles a function anew when its own file changes; a folder for each state of all files makes
it do so when functions and constants of other files change, which its machine code holds, too.
"""

from __future__ import annotations

import contextvars
import functools
import hashlib
import importlib
import os
import re
import shutil
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from hstree import progress
from hstree._files import cache_folder, is_writable
from hstree._optional import require
from hstree._typing import Bool, Int32

T = TypeVar("T")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

#: Environment variable that switches twins off when it is 0.
VARIABLE = "HSTREE_FAST"
#: Oldest numba that is used.
OLDEST = (0, 61)
_OLDEST_TEXT = ".".join(map(str, OLDEST))
#: What compiled sums may do that Python's may not: add in another order, and round once less.
FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}

#: Days after which machine code that no process used is removed.
UNUSED_DAYS = 30

#: Numbers that are not parted, so that vectorised loops begin at the same places.
STEP = 64

_stop: ContextVar[Bool] = ContextVar("hstree stop")
_go_on = np.zeros(1, np.bool_)
_alone: ContextVar[bool] = ContextVar("hstree numpy alone", default=False)


@contextmanager
def numpy_alone(alone: bool = True) -> Iterator[None]:
    """Compute without compiled twins while the body runs; `alone` False changes nothing."""
    token = _alone.set(alone or _alone.get())
    try:
        yield
    finally:
        _alone.reset(token)


def kernels() -> str:
    """Return what array functions are computed by: "numpy", or numba and its version."""
    numba = None if _is_off() else _numba()
    return "numpy" if numba is None else f"numba {numba.__version__}"


def n_threads() -> int:
    """Return the number of threads that may compute: cores of the process, or OMP_NUM_THREADS."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return min(cores, max(1, int(wanted))) if wanted.isdecimal() else cores


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads(), thread_name_prefix="hstree")


if hasattr(os, "register_at_fork"):
    # A forked process has none of the threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def in_parts(n: int, function: Callable[..., object], *args: Any, step: int = STEP) -> None:
    """Call ``function(first, stop, *args)`` for parts of range(n), in threads; wait for all.

    For compiled functions whose parts write to different places: the result does not depend on
    the number of threads. Parts begin at multiples of `step`.
    """
    step *= max(1, -(-n // (step * n_threads())))
    *others, last = [(first, min(first + step, n)) for first in range(0, max(n, 1), step)]
    futures = [_pool().submit(function, first, stop, *args) for first, stop in others]
    try:
        function(*last, *args)
    finally:
        for future in futures:
            future.result()


def in_threads(
    function: Callable[[T], R], items: Iterator[T], *, when: bool = True
) -> Iterator[tuple[T, R]]:
    """Yield the items with what a function returns for them, in order, computed in all threads.

    `when` False, or NumPy alone, computes each when it is asked for. A few items are in memory at a
    time; with one thread, one. This thread waits, so that Ctrl-C is answered, and sets `stop_flag`
    in the others when their results are not wanted any more.
    """
    if not when or kernels() == "numpy":
        yield from ((item, function(item)) for item in items)
        return
    waiting: deque[tuple[T, Future[R]]] = deque()
    n, stop = n_threads(), np.zeros(1, np.bool_)
    most = 2 * n if n > 1 else 0

    def run(item: T) -> R:
        _stop.set(stop)
        return function(item)

    with ThreadPoolExecutor(n) as pool:
        try:
            for item in items:
                waiting.append((item, pool.submit(contextvars.copy_context().run, run, item)))
                if len(waiting) > most:
                    first, result = waiting.popleft()
                    yield first, result.result()
            while waiting:
                first, result = waiting.popleft()
                yield first, result.result()
        finally:
            stop[0] = True
            pool.shutdown(cancel_futures=True)


def stop_flag() -> Bool:
    """Return a flag (1,), for kernels that run long: they return when it becomes True.

    It does where `in_threads` does not want the result any more.
    """
    return _stop.get(_go_on)


def twins(room: str) -> Any:
    """Return the module of a room's twins ("layers"); None where NumPy computes alone."""
    return None if _is_off() else _twins(room)


def twin(reference: F) -> F:
    """Decorate a function in NumPy so that its twin, of the same name, is called where there is."""
    room, name = reference.__module__.split(".")[1], reference.__name__

    @functools.wraps(reference)
    def either(*args: Any) -> Any:
        module = twins(room)
        if module is None or not takes(*args):
            return reference(*args)
        return getattr(module, name)(*args)

    return either  # type: ignore[return-value]


def takes(*args: Any) -> bool:
    """Return whether twins take these arguments: floats are C-contiguous arrays of float32.

    The float32 is the machine's own: in its byte order.
    """
    for arg in args:
        if (
            isinstance(arg, np.ndarray)
            and arg.dtype.kind == "f"
            and not (arg.dtype == np.float32 and arg.flags.c_contiguous)
        ):
            return False
    return True


def jit(function: F) -> F:
    """Compile a function when it is first called; it runs without the lock of the interpreter."""
    return _njit(function, fastmath=FAST_MATH)


def jit_exact(function: F) -> F:
    """Compile a function as `jit` does, but with the sums of Python, in its order."""
    return _njit(function)


def _njit(function: F, **options: Any) -> F:
    numba = _numba() or require("numba", "fast", at_least=_OLDEST_TEXT)
    of_others = numba.config.CACHE_DIR
    folder = _folder()
    numba.config.CACHE_DIR = str(folder or "")
    try:
        compiled = numba.njit(
            function,
            nogil=True,
            error_model="numpy",
            cache=folder is not None,
            forceinline=True,
            **options,
        )
    finally:
        numba.config.CACHE_DIR = of_others
    if folder is not None:
        _mend(compiled._cache)
    result: F = compiled
    return result


def _mend(cache: Any) -> None:
    """Have a cache of numba do without files that are damaged or cannot be written."""
    load, save = cache.load_overload, cache.save_overload

    def load_or_forget(*args: Any) -> Any:
        try:
            return load(*args)
        except Exception:  # what unpickling raises
            cache.flush()
            return None

    def save_or_not(*args: Any) -> None:
        with suppress(OSError):  # a full disk, say
            save(*args)

    cache.load_overload, cache.save_overload = load_or_forget, save_or_not


def _is_off() -> bool:
    return _alone.get() or not _is_wanted()


@functools.cache
def _is_wanted() -> bool:
    return os.environ.get(VARIABLE) != "0"


@functools.cache
def _twins(room: str) -> ModuleType | None:
    return None if _numba() is None else importlib.import_module(f"hstree.{room}.compiled")


@functools.cache
def _numba() -> Any:
    """Return numba, or None where it is not installed, too old or broken; says so in a warning."""
    try:
        import numba
    except ModuleNotFoundError as error:
        if error.name == "numba":
            return None
        why = str(error)
    except Exception as error:  # it refuses some versions of NumPy
        why = str(error)
    else:
        if numba.version_info[:2] >= OLDEST:
            _watch(numba.core.event)
            return numba
        why = f"version {numba.__version__} is older than {_OLDEST_TEXT}"
    warnings.warn(
        f"numba is installed but not used: {why}; upgrade it, or set {VARIABLE}=0",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def _watch(events: Any) -> None:
    """Report compilations to `hstree.progress`; `events` is numba's module of that."""
    running = threading.local()

    class Compilations(events.Listener):  # type: ignore[misc]
        """Shows one task while functions of hstree are compiled, which call each other."""

        def on_start(self, event: Any) -> None:
            if _is_ours(event):
                running.depth = getattr(running, "depth", 0) + 1
                if running.depth == 1:
                    running.task = progress.task("compiling kernels, once for this machine")
                    running.task.__enter__()

        def on_end(self, event: Any) -> None:
            if _is_ours(event):
                running.depth -= 1
                if running.depth == 0:
                    running.task.__exit__(None, None, None)

    events.register("numba:compile", Compilations())


def _is_ours(event: Any) -> bool:
    function = getattr((event.data or {}).get("dispatcher"), "py_func", None)
    return str(getattr(function, "__module__", "")).startswith("hstree.")


@functools.cache
def _folder() -> Path | None:
    """Return the folder of machine code; None where it cannot be kept.

    It is inside NUMBA_CACHE_DIR where that is set. Those of other states are removed when they have
    not been used for `UNUSED_DAYS`.
    """
    base = Path(_numba().config.CACHE_DIR or cache_folder() / "kernels")
    folder = base / f"hstree-{_digest(Path(__file__).parent)}"
    if not is_writable(folder):
        return None
    with suppress(OSError):
        os.utime(folder)  # the last time that it was used
        for other in base.iterdir():
            is_ours = re.fullmatch(r"hstree-[0-9a-f]{16}", other.name) is not None
            if is_ours and other.stat().st_mtime < time.time() - UNUSED_DAYS * 86400:
                shutil.rmtree(other, ignore_errors=True)
    return folder


def _digest(package: Path) -> str:
    """Return a hash of the modules `compiled` of a package, and of those that they import from."""
    rooms = sorted(package.glob("*/compiled.py"))
    imports = re.findall(
        r"^from hstree\.(\S+) import", "".join(file.read_text("utf-8") for file in rooms), re.M
    )
    others = (package / f"{name.replace('.', '/')}.py" for name in sorted(set(imports)))
    digest = hashlib.sha256()
    for file in (*rooms, *others):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


class Slots(threading.local):
    """Table of -1 of each thread, in which twins number the rows they touch.

    A function that takes one leaves it as it found it, which is faster than a new one.
    """

    def __init__(self) -> None:
        self._table: Int32 = np.empty(0, np.int32)

    def of(self, length: int) -> Int32:
        """Return a table (length,) of this thread."""
        if len(self._table) < length:
            self._table = np.full(length, -1, np.int32)
        return self._table[:length]


SLOTS = Slots()

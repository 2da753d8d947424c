"""Choice of the backend: array functions by NumPy, or compiled by numba (the extra `fast`).

A package keeps its compiled functions in a module ``compiled``, under the names of the functions in
NumPy that they replace, which are marked by `twin`. That module, and numba with it, is imported
when the first of them is called. ``HSTREE_FAST=0`` and `numpy_alone` switch them off, and
`if_it_pays` does for short work.
"""

import functools
import hashlib
import os
import re
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hstree import progress
from hstree._files import cache_folder, changeable_by_others, deny_others, is_writable
from hstree._plugins import require
from hstree._typing import Array, Bool

T = TypeVar("T")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

#: Environment variable that switches compiled functions off when it is 0, and has them do short
#: work, too, when it is 1.
VARIABLE = "HSTREE_FAST"
#: Tokens that a training or a score looks at in all, and seconds of a training in a bounded time,
#: from which compiling takes less time than it saves.
WORTH_TOKENS, WORTH_SECONDS = 1_000_000, 60.0
#: Oldest numba that is used.
OLDEST = "0.61"
#: What compiled sums may do that Python's may not: add in another order, and round once less.
FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}
#: A function for callers in C, which nobody is, would be compiled beside that for Python.
OPTIONS = {"error_model": "numpy", "no_cfunc_wrapper": True}
#: Numbers that are not parted, so that vectorised loops begin at the same places.
STEP = 64

#: Whether NumPy computes alone; None where nothing has decided.
_alone: ContextVar[bool | None] = ContextVar("hstree numpy alone", default=None)
_limit: ContextVar[int | None] = ContextVar("hstree threads", default=None)
_compiling: ContextVar[bool] = ContextVar("hstree compiling", default=False)
_go_on = np.zeros(1, np.bool_)
#: A flag (1,) that becomes True when `in_threads` wants a result no more.
stop_flag: ContextVar[Bool] = ContextVar("hstree stop", default=_go_on)


@contextmanager
def numpy_alone(alone: bool = True) -> Iterator[None]:
    """Compute without compiled functions while the body runs; `alone` False changes nothing."""
    token = _alone.set(alone or _alone.get())
    try:
        yield
    finally:
        _alone.reset(token)


@contextmanager
def if_it_pays(tokens: int, seconds: float | None = None, *, asked: bool = False) -> Iterator[None]:
    """Compute without compiled functions while the body runs if its work is short.

    The work is to look at some tokens, or takes some seconds. It depends on nothing else, not on
    what has been compiled before, so that results do not. What is within a body, or in one of
    `numpy_alone`, follows that. Kernels compute however short the work is where they are `asked`
    for, or ``HSTREE_FAST`` is 1.
    """
    is_short = tokens < WORTH_TOKENS if seconds is None else seconds < WORTH_SECONDS
    is_decided = asked or _alone.get() is not None or os.environ.get(VARIABLE) == "1"
    token = _alone.set(_alone.get() if is_decided else is_short)
    try:
        yield
    finally:
        _alone.reset(token)


def kernels() -> str:
    """Return what array functions are computed by: "numpy", or numba and its version."""
    is_off = _alone.get() or os.environ.get(VARIABLE) == "0"
    numba = None if is_off else _numba()
    return "numpy" if numba is None else f"numba {numba.__version__}"


def backend(package: str) -> Any:
    """Return the module of a package's compiled functions ("layers"); None where NumPy computes."""
    return None if kernels() == "numpy" else import_module(f"hstree.{package}.compiled")


def twin(reference: F) -> F:
    """Decorate a function in NumPy so that its compiled twin, of the same name, goes before it.

    A twin that is not for its arguments returns NotImplemented, and the reference is called.
    """
    package, name = reference.__module__.split(".")[1], reference.__name__

    @functools.wraps(reference)
    def either(*args: Any) -> Any:
        module = backend(package)
        result = NotImplemented if module is None else getattr(module, name)(*args)
        return reference(*args) if result is NotImplemented else result

    return either  # type: ignore[return-value]


def takes(*arrays: Array) -> bool:
    """Return whether arrays are C-contiguous float32 in the machine's own byte order."""
    return all(array.dtype == np.float32 and array.flags.c_contiguous for array in arrays)


def jit(function: F, *, fastmath: set[str] = FAST_MATH) -> F:
    """Compile a function when Python first calls it; it runs without the lock of the interpreter.

    Its machine code is kept, and a damaged file of it, or a full disk, is no fault.
    """
    numba = _numba() or require("numba", "fast", at_least=OLDEST)
    of_others, folder = numba.config.CACHE_DIR, _folder()
    numba.config.CACHE_DIR = str(folder or "")
    try:
        options = {"nogil": True, "cache": folder is not None, "fastmath": fastmath, **OPTIONS}
        compiled: Any = numba.njit(function, **options)
    finally:
        numba.config.CACHE_DIR = of_others
    cache, compile_ = compiled._cache, compiled._compiler.compile
    if folder is not None:
        with suppress(OSError):
            deny_others([Path(cache.cache_path)])  # numba makes it as the umask says

    @contextmanager
    def forgiving() -> Iterator[None]:
        with suppress(OSError):
            try:
                yield
            except Exception:  # what unpickling raises
                cache.flush()
            deny_others(Path(cache.cache_path).iterdir())

    def reported(*args: Any) -> Any:
        if _compiling.get():  # a function that another one calls
            return compile_(*args)
        token = _compiling.set(True)
        try:
            _say_once()
            with progress.task("compiling kernels", unit="kernels"):
                return compile_(*args)
        finally:
            _compiling.reset(token)

    # Where numba's cache reads and writes, and what compiles when it has nothing.
    cache._guard_against_spurious_io_errors, compiled._compiler.compile = forgiving, reported
    result: F = compiled
    return result


@functools.cache
def _say_once() -> None:
    progress.say("compiling kernels, once for this machine: up to half a minute")


def inlined(function: F, *, fastmath: set[str] = FAST_MATH) -> F:
    """Make a function part of the compiled functions that call it.

    Python may call its `py_func` alone: what is returned has no wrapper for calls from Python.
    Each of them compiles it anew with what it calls, so that a chain of such functions takes long.
    """
    numba = _numba() or require("numba", "fast", at_least=OLDEST)
    options = {"forceinline": True, "no_cpython_wrapper": True, "fastmath": fastmath, **OPTIONS}
    result: F = numba.njit(function, **options)
    return result


#: Compile as `jit` and `inlined` do, but with the sums of Python, in its order.
jit_exact = functools.partial(jit, fastmath=set())
inlined_exact = functools.partial(inlined, fastmath=set())


@functools.cache
def _folder() -> Path | None:
    """Return the folder of machine code; None where it cannot be kept.

    It is named by numba's version and by the modules ``compiled`` and those that they import
    constants from, since numba looks for changes in a function's own file alone.
    """
    numba, package = _numba(), Path(__file__).parent
    compiled = [*package.glob("*/compiled.py"), *package.glob("*/compiled/*.py")]
    sources = "".join(path.read_text("utf-8") for path in sorted(compiled))
    for name in sorted(set(re.findall(r"^from hstree\.(\S+) import", sources, re.M))):
        if (path := package / f"{name.replace('.', '/')}.py").is_file():
            sources += path.read_text("utf-8")
    digest = hashlib.sha256(f"{numba.__version__} {sources}".encode()).hexdigest()[:16]
    folder = Path(numba.config.CACHE_DIR or cache_folder() / "kernels") / f"hstree-{digest}"
    if not is_writable(folder):
        return None
    if (changeable := changeable_by_others(folder)) is not None:
        warnings.warn(
            f"compiled kernels are not kept: others own {changeable} or can write to it, and could "
            "put their own code there; set NUMBA_CACHE_DIR to a folder that only you can write to",
            stacklevel=2,
        )
        return None
    return folder


@functools.cache
def _numba() -> Any:
    """Return numba, or None where it is not installed, too old or broken; says so in a warning."""
    try:
        import numba
    except Exception as error:  # it refuses some versions of NumPy
        if isinstance(error, ModuleNotFoundError) and error.name == "numba":
            return None
        why = str(error)
    else:
        if numba.version_info[:2] >= tuple(map(int, OLDEST.split("."))):
            return numba
        why = f"version {numba.__version__} is older than {OLDEST}"
    warnings.warn(
        f"numba is installed but not used: {why}; upgrade it, or set {VARIABLE}=0",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


@contextmanager
def limited_threads(n: int) -> Iterator[None]:
    """Compute in at most n threads while the body runs."""
    token = _limit.set(n)
    try:
        yield
    finally:
        _limit.reset(token)


def n_threads() -> int:
    """Return the number of threads that may compute: cores of the process, or OMP_NUM_THREADS."""
    if (limit := _limit.get()) is not None:
        return limit
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    # A number of thousands of digits, which Python does not convert, is more than all cores.
    is_number = wanted.isdecimal() and len(wanted) < 10
    return min(cores or 1, max(1, int(wanted))) if is_number else cores or 1


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads(), thread_name_prefix="hstree")


if hasattr(os, "register_at_fork"):
    # A forked process has none of the threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def in_parts(n: int, function: Callable[..., object], *args: Any, step: int = STEP) -> None:
    """Call ``function(first, stop, *args)`` for parts of range(n), in threads; wait for all.

    The parts write to different places, so the result does not depend on the number of threads.
    """
    step *= max(1, -(-n // (step * n_threads())))
    *others, last = [(first, min(first + step, n)) for first in range(0, max(n, 1), step)]
    futures = [
        _pool().submit(copy_context().run, function, first, stop, *args) for first, stop in others
    ]
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
    time. This thread waits, so that Ctrl-C is answered, and sets `stop_flag` in the others when
    their results are not wanted any more.
    """
    if not when or kernels() == "numpy":
        yield from ((item, function(item)) for item in items)
        return
    waiting: deque[tuple[T, Future[R]]] = deque()
    n, stop, context = n_threads(), np.zeros(1, np.bool_), copy_context()
    most = 2 * n + 1 if n > 1 else 1
    context.run(stop_flag.set, stop)
    with ThreadPoolExecutor(n) as pool:
        try:
            while True:
                for item in islice(items, most - len(waiting)):
                    waiting.append((item, pool.submit(context.copy().run, function, item)))
                if not waiting:
                    return
                item, result = waiting.popleft()
                yield item, result.result()
        finally:
            stop[0] = True
            pool.shutdown(cancel_futures=True)

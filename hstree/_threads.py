"""Work shared by threads; no result depends on their number."""

import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from hstree._typing import Bool

T = TypeVar("T")
R = TypeVar("R")

#: Consecutive elements that stay in one thread, so that vectorised loops begin at the same places.
STEP = 64

_limit: ContextVar[int | None] = ContextVar("hstree threads", default=None)
_NEVER = np.zeros(1, np.bool_)
_NEVER.setflags(write=False)
#: A flag (1,) that becomes True when `in_threads` no longer needs a result.
stop_flag: ContextVar[Bool] = ContextVar("hstree stop", default=_NEVER)


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
    limit = _limit.get()
    if limit is not None:
        return limit
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    requested = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if not (requested.isdecimal() and len(requested) < 10):
        return cores
    return min(cores, max(1, int(requested)))


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
    parts = [(first, min(first + step, n)) for first in range(0, max(n, 1), step)]
    futures = [
        _pool().submit(copy_context().run, function, first, stop, *args)
        for first, stop in parts[:-1]
    ]
    try:
        function(*parts[-1], *args)
    finally:
        for future in futures:
            future.result()


def in_threads(
    function: Callable[[T], R], items: Iterator[T], *, when: bool
) -> Iterator[tuple[T, R]]:
    """Yield the items with what a function returns for them, in order, computed in all threads.

    Where `when` is False, each is computed when it is asked for. A few items are in memory at a
    time. This thread waits, so that Ctrl-C is answered, and sets `stop_flag` in the
    others when their results are no longer needed.
    """
    if not when:
        yield from ((item, function(item)) for item in items)
        return
    waiting: deque[tuple[T, Future[R]]] = deque()
    n = n_threads()
    most = 2 * n + 1 if n > 1 else 1
    stop = np.zeros(1, np.bool_)
    context = copy_context()
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


class _BlasLimit:
    """Holds BLAS to one thread while any thread of this process asks for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        self._limiter: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                self._limiter = _blas_libraries().limit(limits=1, user_api="blas")
            self._n_inside += 1

    def leave(self) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._limiter.restore_original_limits()


_blas_limit = _BlasLimit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold the products of compiled code to one BLAS thread each while the body runs.

    The rounding of a product depends on the number of its threads. Takes about 10 microseconds.
    """
    _blas_limit.enter()
    try:
        yield
    finally:
        _blas_limit.leave()


@functools.cache
def _blas_libraries() -> ThreadpoolController:
    """Return the loaded BLAS libraries, SciPy's among them, which compiled products call."""
    return ThreadpoolController()

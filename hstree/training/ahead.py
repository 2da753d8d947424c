"""Batches made in a second thread while a model trains on earlier ones, or scored in several."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from hstree._compiled import kernels, n_threads

T = TypeVar("T")
R = TypeVar("R")

#: Items that are handed over together at most, which costs less than each alone; ...
TOGETHER = 8
#: ... and seconds of making them after which no more are: large items are few in memory.
ENOUGH = 0.002
#: Hand-overs that wait at most.
WAITING = 2


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the items, made ahead in a second thread where compiled kernels leave it a core.

    The order is the same, and so is what an item draws from random generators that nothing else
    uses. An error is raised where the item would have been.
    """
    if kernels() == "numpy" or n_threads() == 1:
        return items
    return _in_thread(items)


def in_threads(
    function: Callable[[T], R], items: Iterator[T], *, when: bool = True
) -> Iterator[tuple[T, R]]:
    """Yield the items with what a function returns for them, in order, computed in all threads.

    `when` False computes each when it is asked for. A few items are in memory at a time.
    """
    if not when or kernels() == "numpy" or n_threads() == 1:
        yield from ((item, function(item)) for item in items)
        return
    waiting: deque[tuple[T, Future[R]]] = deque()
    with ThreadPoolExecutor(n_threads()) as pool:
        try:
            for item in items:
                run = contextvars.copy_context().run
                waiting.append((item, pool.submit(run, function, item)))
                if len(waiting) > 2 * n_threads():
                    first, result = waiting.popleft()
                    yield first, result.result()
            while waiting:
                first, result = waiting.popleft()
                yield first, result.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _together(items: Iterator[T]) -> list[T]:
    """Return the next items, as many as are handed over together; none at the end."""
    some, began = [], time.perf_counter()
    for item in items:
        some.append(item)
        if len(some) == TOGETHER or time.perf_counter() - began > ENOUGH:
            break
    return some


def _in_thread(items: Iterator[T]) -> Iterator[T]:
    made: queue.Queue[list[T] | BaseException | None] = queue.Queue(WAITING)
    stopped = threading.Event()

    def put(what: list[T] | BaseException | None) -> None:
        while not stopped.is_set():
            try:
                made.put(what, timeout=0.1)
            except queue.Full:
                continue
            return

    def make() -> None:
        try:
            while not stopped.is_set() and (some := _together(items)):
                put(some)
            put(None)
        except BaseException as error:
            put(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=[make], name="batches", daemon=True)
    thread.start()
    try:
        while (some := made.get()) is not None:
            if isinstance(some, BaseException):
                raise some
            yield from some
    finally:
        stopped.set()
        thread.join()

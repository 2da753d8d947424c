"""Batches made in a second thread while the model trains on earlier ones."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections.abc import Iterator
from typing import TypeVar

from hstree._compiled import kernels, n_threads

T = TypeVar("T")

#: Items that are handed over together at most, which costs less than each alone; ...
TOGETHER = 8
#: ... and seconds of making them after which no more are: large items are few in memory.
ENOUGH = 0.002
#: Hand-overs that wait at most; one more is in use, and one is being made.
WAITING = 1


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the items, made ahead in a second thread where compiled kernels leave it a core.

    The order is the same, and so is what an item draws from random generators that nothing else
    uses. An error is raised where the item would have been.
    """
    if kernels() == "numpy" or n_threads() == 1:
        return items
    return _in_thread(items)


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

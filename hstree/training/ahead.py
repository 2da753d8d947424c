"""Batches made in a second thread while the model trains on earlier ones."""

from __future__ import annotations

import contextvars
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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
        yield from items
        return

    def make() -> tuple[list[T], BaseException | None]:
        """Return the next items, none at the end, and the error that ended them."""
        some, began = list[T](), time.perf_counter()
        try:
            for item in items:
                some.append(item)
                if len(some) == TOGETHER or time.perf_counter() - began > ENOUGH:
                    break
        except BaseException as error:
            return some, error
        return some, None

    context = contextvars.copy_context()
    pool = ThreadPoolExecutor(1, thread_name_prefix="batches")
    try:
        made = deque(pool.submit(context.run, make) for _ in range(WAITING + 1))
        while True:
            some, error = made.popleft().result()
            made.append(pool.submit(context.run, make))
            yield from some
            if error is not None:
                raise error
            if not some:
                return
    finally:
        pool.shutdown(cancel_futures=True)

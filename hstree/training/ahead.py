"""Batches that a second thread prepares while the model trains on earlier batches."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import islice
from typing import TypeVar

from hstree._parallel import n_threads
from hstree.kernels import backend_name

T = TypeVar("T")

#: Maximum number of finished groups that wait; one more is in use, and one is being prepared.
WAITING = 1


def ahead(items: Iterator[T], together: int = 1) -> Iterator[T]:
    """Yield the items, which a second thread computes in advance if kernels leave a core idle.

    The order stays the same, and so do random numbers from generators that nothing else uses. The
    thread hands over groups of `together` items; an error in a group is raised before its first
    item.
    """
    if backend_name() == "numpy" or n_threads() == 1:
        yield from items
        return
    context = copy_context()
    pool = ThreadPoolExecutor(1, thread_name_prefix="batches")
    try:
        pending: deque[Future[list[T]]] = deque()
        while True:
            while len(pending) < WAITING + 2:
                pending.append(pool.submit(context.run, lambda: list(islice(items, together))))
            next_items = pending.popleft().result()
            if not next_items:
                return
            yield from next_items
    finally:
        pool.shutdown(cancel_futures=True)

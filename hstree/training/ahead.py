"""Batches made in a second thread while the model trains on earlier ones."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import islice
from typing import TypeVar

from hstree._parallel import n_threads
from hstree.kernels import backend_name

T = TypeVar("T")

#: Maximum number of finished hand-overs that wait; one more is in use, and one is being made.
WAITING = 1


def ahead(items: Iterator[T], together: int = 1) -> Iterator[T]:
    """Yield the items, made ahead in a second thread where compiled kernels leave it a core.

    The order is the same, and so is what an item draws from random generators that nothing else
    uses. `together` items are handed over at a time; an error of one is raised before the first.
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

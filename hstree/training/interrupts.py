"""Delay of Ctrl-C and SIGTERM until the end of a step, so that training stops in a valid state."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from types import FrameType

from hstree import progress

#: Seconds after a signal until `progress.say` explains why the program still runs.
PATIENCE = 0.5
_WAITING = "interrupted: the training ends after the batch that is being computed"


@contextmanager
def held_back() -> Iterator[Callable[[], bool]]:
    """Delay the first Ctrl-C or SIGTERM until the body has ended.

    Yields a function that returns whether a signal came. A second signal is handled at once.
    SIGTERM is delayed only if the program handles it. In other threads than the main thread,
    nothing is delayed.
    """
    came: list[tuple[int, FrameType | None]] = []
    before: dict[int, Callable[[int, FrameType | None], object]] = {}
    timer = threading.Timer(PATIENCE, copy_context().run, (progress.say, _WAITING))

    def note(number: int, frame: FrameType | None) -> None:
        if came:
            before[number](number, frame)
        else:
            timer.start()
        came.append((number, frame))

    if threading.current_thread() is threading.main_thread():
        for name in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(name)
            if callable(handler):
                before[name] = handler
                signal.signal(name, note)
    try:
        yield lambda: bool(came)
    finally:
        timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        first, frame = came[0]
        before[first](first, frame)

"""Ctrl-C and SIGTERM that wait for the end of a step, so that a training stops in a whole state."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from types import FrameType

from hstree import progress

#: Seconds that a body may continue after a signal before `progress.say` tells why.
PATIENCE = 0.5
_WAITING = "interrupted: the training ends after the batch that is being computed"


@contextmanager
def held_back() -> Iterator[Callable[[], bool]]:
    """Hold the first Ctrl-C or SIGTERM back while the body runs; raise it after the body.

    Yields a function that returns whether one came. A second one is handled at once. SIGTERM is
    held back only where the program handles it, and nothing is outside of the main thread.
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

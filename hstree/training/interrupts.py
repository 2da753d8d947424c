"""Ctrl-C and SIGTERM that wait for the end of a step, so that a training stops in a whole state."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def held_back() -> Iterator[Callable[[], bool]]:
    """Hold the first Ctrl-C or SIGTERM back while the body runs; raise it after the body.

    Yields a function that returns whether one came. A second one is handled at once. SIGTERM is
    held back only where the program handles it, and nothing is outside of the main thread.
    """
    came: list[tuple[int, FrameType | None]] = []
    before: dict[int, Callable[[int, FrameType | None], object]] = {}

    def note(number: int, frame: FrameType | None) -> None:
        if came:
            before[number](number, frame)
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
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        first, frame = came[0]
        before[first](first, frame)

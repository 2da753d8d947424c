"""Measure one piece of work in a process of its own, so that its seconds and memory are its own."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from typing import Any


def measured(
    prepare: Callable[..., Any], work: Callable[[Any], Any], *arguments: Any
) -> dict[str, float]:
    """Run ``work(prepare(*arguments))`` in a fresh process; only the work is timed.

    Both must be functions of a module. Returns {"seconds": ..., "peak_mib": ...}; the peak is
    that of the whole process, what was prepared and the interpreter included.
    """
    with multiprocessing.get_context("spawn").Pool(1) as process:
        return process.apply(_measure, (prepare, work, arguments))


def _measure(
    prepare: Callable[..., Any], work: Callable[[Any], Any], arguments: tuple[Any, ...]
) -> dict[str, float]:
    prepared = prepare(*arguments)
    began = time.perf_counter()
    work(prepared)
    seconds = time.perf_counter() - began
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return {
        "seconds": seconds,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit,
    }

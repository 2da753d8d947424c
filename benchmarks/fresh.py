"""Seconds and peak memory of one function, measured in a fresh process."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from typing import Any


def measured(
    prepare: Callable[..., Any],
    work: Callable[[Any], Any],
    *arguments: Any,
    describe: Callable[[Any], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Run ``work(prepare(*arguments))`` in a fresh process; only the work is timed.

    All must be functions of a module. Returns {"seconds": ..., "peak_mib": ...} and what `describe`
    returns for the work's result. The peak is of the whole process, preparation included.
    """
    with multiprocessing.get_context("spawn").Pool(1) as process:
        return process.apply(_measure, (prepare, work, arguments, describe))


def _measure(
    prepare: Callable[..., Any],
    work: Callable[[Any], Any],
    arguments: tuple[Any, ...],
    describe: Callable[[Any], dict[str, Any]] | None,
) -> dict[str, Any]:
    prepared = prepare(*arguments)
    began = time.perf_counter()
    result = work(prepared)
    seconds = time.perf_counter() - began
    unit = 2**20 if sys.platform == "darwin" else 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return {"seconds": seconds, "peak_mib": peak} | (describe(result) if describe else {})

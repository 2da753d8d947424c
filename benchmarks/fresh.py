"""One function in a process of its own: its seconds and peak memory, or what it returns."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
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


def in_fork(function: Callable[..., Any], *arguments: Any, limit: float | None = None) -> Any:
    """Return what a function returns in a process that is forked, with all data, from this one.

    None when it fails, which it prints, or takes longer than so many seconds.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(function(*arguments)))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(limit) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()


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
    return {"seconds": seconds, "peak_mib": _peak()} | (describe(result) if describe else {})


def _peak() -> float:
    """Return the peak memory of this process in MiB.

    On Linux `getrusage` would return that of the process that started this one, if it is more.
    """
    if sys.platform == "linux":
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 2**10
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit

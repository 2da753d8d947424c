"""Parallel work in threads and processes; results do not depend on their number.

Threads share the arrays of this process; NumPy and compiled code run in them.

joblib runs jobs in processes, on this machine (loky) or on a cluster (Dask). ``n_jobs`` is defined
as in scikit-learn: None means 1, or the active joblib configuration (``joblib.parallel_config``),
and -1 means all cores. If there is one job at a time, it runs in this process.
"""

import functools
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from importlib import import_module
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from hstree import progress
from hstree._arrays import Bool
from hstree._options import as_integer
from hstree._plugins import require
from hstree._text import brief
from hstree._version import __version__
from hstree.errors import OptionError, WorkerError

T = TypeVar("T")
R = TypeVar("R")

#: Number of consecutive elements in one thread, so that vectorised loops have the same bounds.
STEP = 64

_limit: ContextVar[int | None] = ContextVar("hstree threads", default=None)
_NEVER = np.zeros(1, np.bool_)
_NEVER.setflags(write=False)
#: A flag (1,) that becomes True when `in_threads` no longer needs a result.
stop_flag: ContextVar[Bool] = ContextVar("hstree stop", default=_NEVER)


@contextmanager
def limited_threads(n: int) -> Iterator[None]:
    """Limit computations to n threads while the body runs."""
    token = _limit.set(n)
    try:
        yield
    finally:
        _limit.reset(token)


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1


def n_threads() -> int:
    """Return the maximum number of threads: the cores of the process, or OMP_NUM_THREADS."""
    limit = _limit.get()
    if limit is not None:
        return limit
    cores = n_cores()
    # In a list of numbers for nested threads, the first is that of the outer threads
    requested = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if not (requested.isdecimal() and len(requested) < 10):
        return cores
    return min(cores, max(1, int(requested)))


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads(), thread_name_prefix="hstree")


if hasattr(os, "register_at_fork"):
    # A forked process does not inherit the threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def in_parts(n: int, function: Callable[..., object], *args: Any, step: int = STEP) -> None:
    """Call ``function(first, stop, *args)`` for parts of range(n) in threads; wait for all.

    The parts must write to different elements, so that the result does not depend on the threads.
    """
    step *= max(1, -(-n // (step * n_threads())))
    parts = [(first, min(first + step, n)) for first in range(0, max(n, 1), step)]
    futures = [
        _pool().submit(copy_context().run, function, first, stop, *args)
        for first, stop in parts[:-1]
    ]
    try:
        function(*parts[-1], *args)
    finally:
        for future in futures:
            future.result()


def in_threads(
    function: Callable[[T], R], items: Iterator[T], *, when: bool = True
) -> Iterator[tuple[T, R]]:
    """Yield each item, in order, with the result of a function that is computed in all threads.

    If `when` is False, each result is computed in this thread when it is requested. A few items are
    in memory at a time. This thread waits, so that it can react to Ctrl-C, and sets `stop_flag` in
    the other threads when their results are no longer needed.
    """
    if not when:
        yield from ((item, function(item)) for item in items)
        return
    # Items that are computed or wait for a thread: two per thread, and the next one to yield
    waiting: deque[tuple[T, Future[R]]] = deque()
    n = n_threads()
    n_waiting = 2 * n + 1 if n > 1 else 1
    stop = np.zeros(1, np.bool_)
    # Each thread has the context of the caller, such as its thread limit, and the flag
    context = copy_context()
    context.run(stop_flag.set, stop)
    with ThreadPoolExecutor(n) as pool:
        try:
            while True:
                for item in islice(items, n_waiting - len(waiting)):
                    waiting.append((item, pool.submit(context.copy().run, function, item)))
                if not waiting:
                    return
                item, result = waiting.popleft()
                yield item, result.result()
        finally:
            stop[0] = True
            pool.shutdown(cancel_futures=True)


_blas_lock = threading.Lock()
_n_blas_limits = 0
_blas_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit matrix products of compiled code to one BLAS thread each while the body runs.

    The rounding of a product depends on its number of threads. The call takes about 10
    microseconds. The limit ends when no thread of this process needs it.
    """
    global _blas_limit, _n_blas_limits
    with _blas_lock:
        if _n_blas_limits == 0:
            _blas_limit = _blas_libraries().limit(limits=1, user_api="blas")
        _n_blas_limits += 1
    try:
        yield
    finally:
        with _blas_lock:
            _n_blas_limits -= 1
            if _n_blas_limits == 0:
                _blas_limit.restore_original_limits()


@functools.cache
def _blas_libraries() -> ThreadpoolController:
    """Return the loaded BLAS libraries, including that of SciPy, which compiled products call."""
    return ThreadpoolController()


#: Maximum number of consecutive deaths of workers without a finished job in between.
MOST_DEATHS = 3
#: Maximum number of parallel jobs.
MOST_JOBS = 1 << 16
#: Maximum number of seconds until a scheduler answers.
PATIENCE = 10
#: Seconds between two checks of a worker whether its parent process is alive.
PARENT_POLL = 0.5


def n_parallel(n_jobs: int | None = None) -> int:
    """Return the number of parallel jobs."""
    if n_jobs is not None and not 0 < abs(as_integer(n_jobs) or 0) <= MOST_JOBS:
        limits = f"it must be from 1 to {MOST_JOBS:,}, or -1 for all cores"
        raise OptionError.about("n_jobs", f"is {brief(n_jobs)}; {limits}")
    if "joblib" not in sys.modules and (n_jobs is None or n_jobs > 0):  # no active configuration
        return n_jobs or 1
    import joblib

    return max(1, int(joblib.effective_n_jobs(n_jobs)))


def threads_of_job(n_jobs: int | None = None) -> int:
    """Return the number of threads of each job: cores divided by jobs, or 1 on a cluster."""
    n = n_parallel(n_jobs)
    if n == 1:
        return n_threads()
    if on_cluster():
        return 1
    return max(1, n_threads() // n)


def on_cluster() -> bool:
    """Return whether jobs run with a backend that is not part of joblib, such as Dask."""
    if "joblib" not in sys.modules:
        return False
    from joblib.parallel import get_active_backend

    return type(get_active_backend()[0]).__module__ != "joblib._parallel_backends"


def parallel(
    function: Callable[[T], R], jobs: Iterable[T], n_jobs: int | None = None
) -> Iterator[tuple[int, R]]:
    """Yield the number of each job with the result of a function, in the order of completion.

    The function must be defined in a module, or be a `partial` of such a function. Function, jobs
    and results must be picklable. The jobs of a worker that dies are repeated. An error or Ctrl-C
    ends all jobs; jobs on a cluster end at their next progress report.
    """
    if n_parallel(n_jobs) == 1:
        yield from ((number, function(job)) for number, job in enumerate(jobs))
        return
    from concurrent.futures.process import BrokenProcessPool

    import joblib

    # Jobs that are not started, and started jobs that are not finished and may be repeated
    rest = enumerate(jobs)
    pending = dict[int, T]()
    failed = list[Exception]()
    deaths = 0
    threads = threads_of_job(n_jobs)

    def calls() -> Iterator[Any]:
        """Yield pending jobs, then new jobs; joblib calls this in its threads."""
        for number, job in list(pending.items()):
            yield joblib.delayed(_done)(function, number, job, threads)
        try:
            for number, job in rest:
                pending[number] = job
                yield joblib.delayed(_done)(function, number, job, threads)
        except Exception as error:  # raised by the iterable of jobs
            failed.append(error)

    # loky replaces workers whose memory grew, for example by compiling kernels; after an error, the
    # other tasks are not finished
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
    warnings.filterwarnings("ignore", r"\d+ tasks which were still being processed")
    killed = _report_killed_workers()
    dead: tuple[type[Exception], ...] = (BrokenProcessPool, *killed)
    while True:
        run = joblib.Parallel(
            n_jobs, return_as="generator_unordered", batch_size=1, **_loky_options()
        )
        results: Any = ()
        try:
            with _ignoring_interrupts():
                results = run(calls())
            # A finished job shows that not every job kills its worker
            for number, result, warned in results:
                deaths = 0
                del pending[number]
                for message, category in warned:
                    warnings.warn(message, category, stacklevel=2)
                yield number, result
        except dead as error:
            deaths = MOST_DEATHS if isinstance(error, killed) else deaths + 1
            if deaths == MOST_DEATHS:
                reason = f"workers died {deaths} times without finishing a job"
                raise WorkerError(
                    f"{reason}, perhaps because they ran out of memory; run fewer jobs in parallel"
                ) from error
        else:
            break
        finally:
            if results:
                _close(results)
    if failed:
        raise failed[0]


def _close(results: Any) -> None:
    """Close a generator of joblib, and cancel the Dask jobs for which it waits."""
    from joblib.parallel import get_active_backend

    backend: Any = get_active_backend()[0]
    waiting = list(backend.waiting_futures.futures) if hasattr(backend, "waiting_futures") else []
    results.close()
    if waiting:
        backend.client.cancel(waiting)


def _report_killed_workers() -> tuple[type[Exception], ...]:
    """Return the error of Dask for a job whose workers were killed repeatedly.

    joblib waits for such a job forever, because its Dask backend does not report this error.
    """
    from joblib.parallel import get_active_backend

    backend: Any = get_active_backend()[0]
    if not hasattr(backend, "waiting_futures"):
        return ()
    submit = type(backend).submit

    def submit_with_errors(batch: Any, callback: Callable[[object], object]) -> Any:
        future = submit(backend, batch, callback)
        future.add_done_callback(lambda ended: ended.exception() and callback(ended.exception()))
        return future

    backend.submit = submit_with_errors
    return (sys.modules["distributed"].KilledWorker,)


def _loky_options() -> dict[str, Any]:
    """Return options of `joblib.Parallel` with which workers of loky end with this process.

    Otherwise they wait five minutes for another job if this process is killed.
    """
    from joblib.parallel import LokyBackend, get_active_backend

    backend: Any = get_active_backend()[0]
    if not isinstance(backend, LokyBackend) or "initializer" in backend.backend_kwargs:
        return {}
    return {"initializer": _exit_with_parent, "initargs": (os.getpid(),)}


def _exit_with_parent(parent: int) -> None:
    """Start a thread that ends this process when its parent has ended, even during a job.

    The parent-death signal of Linux cannot be used: it is sent when the thread that started this
    process ends. On Windows, `os.getppid` does not change, so this has no effect.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_POLL)
        os._exit(1)

    threading.Thread(target=watch, name="hstree parent", daemon=True).start()


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Make processes that the body starts ignore Ctrl-C; this process ends them.

    They inherit the blocked signals; the resource tracker of Python unblocks them when it starts.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _done(
    function: Callable[[T], R], number: int, job: T, threads: int
) -> tuple[int, R, list[tuple[str, type[Warning]]]]:
    """Run a job in a worker; return its number, its result and its warnings."""
    import joblib
    from threadpoolctl import threadpool_limits

    # Warnings are sent to the caller. Jobs share the cores and start no other jobs
    with (
        warnings.catch_warnings(record=True) as warned,
        limited_threads(threads),
        threadpool_limits(threads),
        joblib.parallel_config("sequential"),
        _cancellable(),
    ):
        try:
            result = function(job)
        except OSError as error:
            where = f"{error.filename or 'a job'} on {socket.gethostname()}"
            remedy = "fix this, then the same call continues"
            raise WorkerError(f"{where}: {error.strerror or error}; {remedy}") from error
    return number, result, [(str(warning.message), warning.category) for warning in warned]


class _Watch(progress.Silent):
    """A display that shows nothing, and interrupts a cancelled job when it reports progress."""

    def __init__(self, task: Any) -> None:
        self._task = task  # state of a task of a Dask worker

    def task(self, *_: object, **__: object) -> Any:
        if self._task.state == "cancelled":
            raise KeyboardInterrupt
        return nullcontext(self)

    advance = note = report = say = task


@contextmanager
def _cancellable() -> Iterator[None]:
    """Interrupt the body, in a worker of Dask, when its job is cancelled.

    A training then saves a checkpoint, as after Ctrl-C.
    """
    try:
        worker = sys.modules["distributed"].get_worker()
    except (KeyError, ValueError):  # no worker of Dask
        yield
        return
    try:
        with progress.shown_by(_Watch(worker.state.tasks[worker.get_current_task()])):
            yield
    except KeyboardInterrupt as error:  # it would end the worker
        raise CancelledError from error


@contextmanager
def doing_jobs(n_jobs: int | None = None, scheduler: str | None = None) -> Iterator[None]:
    """Set the default of ``n_jobs`` in the body: parallel processes or a Dask cluster."""
    if n_jobs is None and scheduler is None:
        yield
        return
    n_parallel(n_jobs)
    import joblib

    # Processes of joblib on this machine, or workers of a cluster
    if scheduler is None:
        with joblib.parallel_config(n_jobs=n_jobs):
            yield
        return
    with _client(scheduler) as client, joblib.parallel_config("dask", client=client):
        yield


def _client(scheduler: str) -> Any:
    """Return a client of a Dask cluster whose workers have this version of hstree."""
    distributed = require("distributed")
    try:
        client = distributed.Client(scheduler, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise WorkerError(
            f"no Dask scheduler answers at {scheduler}; start one with `dask scheduler`, and "
            f"workers with `dask worker {scheduler} --nthreads 1`"
        ) from error
    try:
        # A lambda is sent itself, not by the name of its module
        versions = client.run(
            lambda: import_module("hstree._version").__version__, on_error="return"
        )
        if not versions:
            raise WorkerError(
                f"the scheduler {scheduler} has no workers; start some with `dask worker "
                f"{scheduler} --nthreads 1`"
            )
        for worker, has in versions.items():
            if has != __version__:
                installed = "no hstree" if isinstance(has, ImportError) else f"hstree {has}"
                raise WorkerError(
                    f"the worker {worker} has {installed}; install hstree {__version__} there, as "
                    "here"
                )
    except BaseException:
        client.close()
        raise
    return client

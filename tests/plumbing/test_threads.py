"""Work shared by threads: results in order, errors raised, trees without a difference."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from hstree import build
from hstree._parallel import STEP, in_parts, in_threads
from hstree.data.vectors import WordVectors
from hstree.kernels import backend_name, numpy_only
from tests.limits import use_threads
from tests.needs import NUMBA
from tests.scripts import run_python


@pytest.fixture(params=[1, 2], ids=["one core", "two cores"])
def cores(request, monkeypatch):
    pytest.importorskip("numba", reason=NUMBA)
    use_threads(monkeypatch, request.param)
    return request.param


def test_results_come_in_the_order_of_their_items(cores):
    def slowest_first(n):
        time.sleep(0.002 * (n % 3 == 0))
        return n * n, threading.current_thread()

    found = list(in_threads(slowest_first, iter(range(40)), when=True))
    assert [(n, square) for n, (square, _) in found] == [(n, n * n) for n in range(40)]
    by = {thread for _, (_, thread) in found}
    assert threading.current_thread() not in by
    assert len(by) <= cores
    alone = list(in_threads(slowest_first, iter(range(4)), when=False))
    assert {thread for _, (_, thread) in alone} == {threading.current_thread()}


def test_few_items_wait_for_their_results(cores):
    read = []
    results = in_threads(lambda n: n, iter(read.append(n) or n for n in range(100)), when=True)
    assert next(results) == (0, 0)
    assert len(read) <= 1 + 2 * cores
    results.close()


def test_an_error_of_the_function_is_raised(cores):
    results = in_threads(lambda n: 1 / (n - 5), iter(range(20)), when=True)
    with pytest.raises(ZeroDivisionError):
        list(results)


def test_kernels_that_are_off_stay_off_in_threads(cores):
    with numpy_only():
        found = dict(in_threads(lambda _: backend_name(), iter(range(9)), when=True))
    assert set(found.values()) == {"numpy"}


@pytest.mark.skipif(os.name != "posix", reason="needs signals to threads")
@pytest.mark.parametrize("name", ["kmeans", "gmm"])
def test_an_interrupt_ends_the_building_of_a_large_node(name, monkeypatch):
    pytest.importorskip("numba", reason=NUMBA)
    use_threads(monkeypatch, 2)
    drawn = np.random.default_rng(0).standard_normal((60_000, 20)).astype(np.float32)
    words = [f"w{i}" for i in range(len(drawn))]
    # rounds that would take minutes
    options = {"iterations": 100_000} | ({"arity": 50} if name == "kmeans" else {})
    build(name, WordVectors(words[:99], drawn[:99]), **options | {"iterations": 2})
    main, began = threading.main_thread().ident, time.perf_counter()
    timer = threading.Timer(1, signal.pthread_kill, [main, signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        build(name, WordVectors(words, drawn), **options)
    timer.join()
    assert time.perf_counter() - began < 10


def test_parts_cover_a_range_once(monkeypatch):
    for threads in (1, 2, 5):
        use_threads(monkeypatch, threads)
        for n in (0, 1, STEP, 10 * STEP + 3):
            parts = []
            in_parts(n, lambda *part, parts=parts: parts.append(part), "given")
            covered = [i for first, stop, _ in sorted(parts) for i in range(first, stop)]
            assert covered == list(range(n))
            assert len(parts) <= threads
            assert {given for _, _, given in parts} == {"given"}


def test_an_error_in_a_part_is_raised(monkeypatch):
    use_threads(monkeypatch, 2)

    with pytest.raises(ZeroDivisionError):
        in_parts(2 * STEP, lambda first, stop: 1 / first)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_starts_threads_of_its_own(tmp_path):
    code = """
import os, signal
from hstree._parallel import in_parts
os.sched_getaffinity = lambda _: range(2)
def work():
    in_parts(1000, lambda first, stop: None)
work()
if (child := os.fork()) == 0:
    signal.alarm(10)
    work()
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
    assert run_python(["-c", code], tmp_path, OMP_NUM_THREADS="") == "0\n"

"""Batches made in a second thread: the same, in the same order, and stopped with their reader."""

import threading
import time

import pytest

from hstree.training import ahead
from hstree.training.ahead import WAITING

TOGETHER = 8


@pytest.fixture(params=[1, 2], ids=["one core", "two cores"])
def cores(request, monkeypatch):
    """Run with kernels on one core, where nothing is made ahead, and on two."""
    monkeypatch.setattr(ahead, "backend_name", lambda: "numba 1")
    monkeypatch.setattr(ahead, "n_threads", lambda: request.param)
    return request.param


def running():
    return [thread for thread in threading.enumerate() if thread.name.startswith("batches")]


@pytest.mark.parametrize("n", [0, 1, TOGETHER, 10 * TOGETHER + 3])
def test_the_order_is_the_same(cores, n):
    assert list(ahead.ahead(iter(range(n)), TOGETHER)) == list(range(n))
    assert not running()


def test_an_error_is_raised(cores):
    def faulty():
        yield from range(TOGETHER)
        raise ValueError("no more")

    items = ahead.ahead(faulty(), TOGETHER)
    assert [next(items) for _ in range(TOGETHER)] == list(range(TOGETHER))
    with pytest.raises(ValueError, match="no more"):
        next(items)
    assert not running()


@pytest.mark.parametrize("together", [1, TOGETHER])
def test_a_reader_that_leaves_stops_the_thread_and_the_items(cores, together):
    """Few items are in memory: those that wait, those at hand and the next."""
    made, closed = [], []

    def endless():
        try:
            while True:
                made.append(len(made))
                yield made[-1]
        finally:
            closed.append(True)

    items = ahead.ahead(endless(), together)
    assert next(items) == 0
    time.sleep(0.05)
    assert len(made) <= together * (WAITING + 2)
    items.close()
    assert not running()
    assert closed


def test_numpy_makes_nothing_ahead(monkeypatch):
    monkeypatch.setattr(ahead, "backend_name", lambda: "numpy")
    monkeypatch.setattr(ahead, "n_threads", lambda: 2)
    made = []
    items = ahead.ahead(made.append(n) or n for n in range(30))
    assert (next(items), made) == (0, [0])

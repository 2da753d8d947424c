"""Numbers of threads for tests."""

import os


def use_threads(monkeypatch, number):
    """Have the process see this number of cores, and use them all."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(number), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: number)
    monkeypatch.setenv("OMP_NUM_THREADS", str(number))

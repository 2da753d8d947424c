"""Cores and disks for tests."""

import os
from contextlib import contextmanager

import pytest


def use_threads(monkeypatch, number):
    """Have the process see this number of cores, and use them all."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(number), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: number)
    monkeypatch.setenv("OMP_NUM_THREADS", str(number))


@contextmanager
def full_disk(size):
    """Let this process write files of at most so many bytes, like a disk that is full."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def nested(depth, kind=list):
    """Return a list in a list in a list, and so on."""
    inner = kind()
    for _ in range(depth):
        inner = kind([inner])
    return inner

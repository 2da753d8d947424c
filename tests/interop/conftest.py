"""Fixtures that several files of tests use."""

from datetime import timedelta

import pytest


@pytest.fixture
def one_process():
    """A process group of this process alone."""
    from torch import distributed

    distributed.init_process_group(
        "gloo",
        store=distributed.HashStore(),
        rank=0,
        world_size=1,
        timeout=timedelta(minutes=1),
    )
    yield
    distributed.destroy_process_group()

"""What every test needs: a cache folder of its own, and as many threads as there is room for."""

import os

import pytest
from hypothesis import settings

if "PYTEST_XDIST_WORKER" in os.environ:
    # Each worker has a core; more threads than cores would make all of them slow.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A busy machine must not fail a test: what is too slow, the benchmarks tell.
settings.register_profile("hstree", deadline=None)
settings.load_profile("hstree")


@pytest.fixture(autouse=True, scope="session")
def cache_folder(tmp_path_factory):
    """Encoded texts go here, not into the home folder of whoever runs the tests."""
    folder = tmp_path_factory.mktemp("cache")
    os.environ["HSTREE_CACHE"] = str(folder)
    return folder

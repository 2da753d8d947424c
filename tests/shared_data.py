"""Data that does not belong to the project: a test that needs it skips where it is not."""

import os
from pathlib import Path

import pytest

from tests import needs


def shared(relative):
    """Return the path of a shared data file, or skip the test that asks for it."""
    folder = os.environ.get("HSTREE_TEST_DATA")
    if not folder:
        pytest.skip(needs.DATA)
    path = Path(folder, relative)
    if not path.exists():
        pytest.skip(f"{needs.DATA} (no {relative} there)")
    return path

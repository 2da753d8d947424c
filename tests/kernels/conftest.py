"""Compiled functions are tested here, regardless of the backend that the run asks for."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def compiled_backend(backend):
    """Use compiled functions for short texts, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HSTREE_FAST", "1")
        yield

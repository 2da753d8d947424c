"""Reasons to skip a test: a requirement and its installation. A run lists them at its end."""

import os
from pathlib import Path

import pytest

TORCH = "needs torch: pip install '.[torch]'"
TRANSFORMERS = "needs transformers and accelerate: pip install '.[transformers]'"
HATCHLING = "needs pip and hatchling: pip install '.[test]'"
ONNX = "needs ONNX: pip install onnx onnxscript onnxruntime"
GPU = "needs a GPU that torch can use"
CHROMIUM = "needs Chromium and its driver: apt-get install chromium chromium-driver"
WORDNET = "needs WordNet in /usr/share/wordnet: apt-get install wordnet-base"
NLTK = "needs NLTK's corpora: set NLTK_DATA to their folder"
DATA = "needs data that cannot be shipped: set HSTREE_TEST_DATA to its folder"
NUMBA = "needs numba: pip install '.[fast]'"
JOBQUEUE = "needs dask-jobqueue: pip install dask-jobqueue cryptography"
NOTEBOOK = "needs matplotlib, pandas and a kernel: pip install '.[notebook]'"


def shared(relative):
    """Return the path of a file of the test data, or skip the test."""
    folder = os.environ.get("HSTREE_TEST_DATA")
    if not folder:
        pytest.skip(DATA)
    path = Path(folder, relative)
    if not path.exists():
        pytest.skip(f"{DATA} (no {relative} there)")
    return path

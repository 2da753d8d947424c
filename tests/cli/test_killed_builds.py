"""`hstree build` killed at any moment: the same command goes on, and writes the same bytes."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import hstree as library
from hstree.data.vectors import WordVectors

#: Runs the program, which keeps a state at every step and kills itself at one of them.
KILLED = """
import os, runpy, signal, sys
from hstree.builders.shared import unfinished
from hstree.builders.word_classes import bigrams
bigrams._ENTRIES_AT_ONCE = 500
unfinished.MINUTES, at, steps, keep = 0, int(sys.argv.pop(1)), [], unfinished.Part.keep
def counted(part, state):
    steps.append(part)
    if len(steps) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    keep(part, state)
unfinished.Part.keep = counted
try:
    runpy.run_module("hstree_cli", run_name="__main__")
finally:
    print("steps", len(steps), file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be killed here")
@pytest.mark.parametrize(
    "build",
    ["classes --n-classes 9", "classes --cluster-by brown --n-classes 12", "gmm --trees 3"],
)
def test_a_killed_build_ends_in_the_same_bytes(program, corpus, tmp_path, build):
    _, environment = program
    cache = tmp_path / "cache"
    # A cache of its own would have kernels compiled anew for minutes.
    environment |= {"HSTREE_CACHE": str(cache), "HSTREE_FAST": "0"}
    method, *options = build.split()
    source = corpus
    if method == "gmm":
        source = tmp_path / "vectors.npy"
        words = library.Corpus.read(corpus).counted_vocabulary()
        rows = np.random.default_rng(0).normal(size=(len(words), 3))
        WordVectors(words.words, rows, counts=words.counts).save(source)

    def run(at, out):
        line = ["build", "-m", method, source, *options, "--force", "-q", "-o", tmp_path / out]
        command = [sys.executable, "-c", KILLED, *map(str, [at, *line])]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True)
        return ran.returncode, ran.stderr

    status, said = run(0, "whole.npz")
    assert status == 0, said
    steps = int(said.removeprefix("steps "))
    for at in (steps // 3, steps // 3 + 1, steps // 4):
        assert run(at, "part.npz") == (-signal.SIGKILL, "")
        assert len(list(cache.glob("checkpoints/*"))) == 1
        assert not (tmp_path / "part.npz").exists()
    status, said = run(0, "part.npz")
    assert status == 0, said
    # the first step of each start is one that was kept before
    assert int(said.removeprefix("steps ")) <= steps - (steps // 3 + steps // 3 + steps // 4) + 5
    assert not (cache / "checkpoints").exists()
    assert (tmp_path / "part.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()

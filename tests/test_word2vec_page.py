"""The page on CBOW and skip-gram runs as it stands: its Python, then its commands."""

import re
import shlex

import pytest

from tests import needs
from tests.scripts import ROOT, run_python, scripts_of

pytestmark = pytest.mark.slow


def test_the_scripts(tmp_path):
    pytest.importorskip("gensim", reason="gensim is not installed: hstree[gensim]")
    scripts = scripts_of("word2vec.md")
    assert len(scripts) == 4
    cache = {"HSTREE_CACHE": str(tmp_path / "cache")}
    printed = run_python(["-c", "\n".join(scripts)], tmp_path, **cache).splitlines()
    first, words, second, similar = printed
    assert first.startswith("word given window ")
    unigram = 606  # the perplexity of a model that learned nothing
    assert all(1 < float(line.split()[-1]) < unigram for line in (first, second))
    assert all(len(re.findall(r"\('[^']+', [\d.]+\)", line)) == 3 for line in (words, similar))


def test_the_commands(tmp_path):
    pytest.importorskip("numba", reason=needs.NUMBA)
    page = (ROOT / "docs" / "word2vec.md").read_text(encoding="utf-8")
    commands = "".join(re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S)).splitlines()
    assert len(commands) == 5
    cache = {"HSTREE_CACHE": str(tmp_path / "cache")}
    printed = [
        run_python(["-m", "hstree_cli", *shlex.split(line)[1:]], tmp_path, **cache)
        for line in commands
    ]
    written = {"tree.json", "cbow.vec", "skipgram.bin", "batches.vec"}
    assert written <= {path.name for path in tmp_path.iterdir()}
    assert "word given window" in printed[3]

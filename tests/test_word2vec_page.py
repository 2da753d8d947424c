"""The page on CBOW and skip-gram runs as it stands: its Python, then its commands."""

import re
import shlex

import pytest

from tests.scripts import ROOT, run_python

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "word2vec.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


def test_the_scripts(tmp_path):
    pytest.importorskip("gensim", reason="gensim is not installed: hstree[gensim]")
    scripts = blocks("python")
    assert len(scripts) == 4
    first, words, second, similar = run_python(
        ["-c", "\n".join(scripts)], tmp_path, HSTREE_CACHE=str(tmp_path / "cache")
    ).splitlines()
    assert first.startswith("word given window ")
    unigram = 606  # the perplexity of a model that learned nothing
    assert 1 < float(first.split()[-1]) < unigram
    assert 1 < float(second) < unigram
    assert len(pairs(words)) == len(pairs(similar)) == 3


def pairs(printed):
    return re.findall(r"\('[^']+', [\d.]+\)", printed)


def test_the_commands(tmp_path):
    pytest.importorskip("numba", reason="numba is not installed: hstree[fast]")
    commands = "".join(blocks("sh")).splitlines()
    assert len(commands) == 5
    printed = [
        run_python(
            ["-m", "hstree_cli", *shlex.split(line)[1:]],
            tmp_path,
            HSTREE_CACHE=str(tmp_path / "cache"),
        )
        for line in commands
    ]
    written = {"tree.json", "cbow.vec", "skipgram.bin", "online.vec"}
    assert written <= {path.name for path in tmp_path.iterdir()}
    assert "word given window" in printed[3]

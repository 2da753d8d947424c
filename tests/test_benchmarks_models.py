"""The benchmarks of models run, on small sizes."""

import importlib.util

import numpy as np
import pytest

from tests.test_benchmarks import run
from tests.texts import markov_lines, write_lines

pytestmark = pytest.mark.slow


def test_topk(monkeypatch, capsys, tmp_path):
    sizes = ("--labels", 300, "--dim", 4, "--contexts", 2, "--spread", 1)
    rows = run("topk", monkeypatch, capsys, tmp_path, *sizes)
    assert [row["tree"] for row in rows] == ["huffman", "random x 2", "random x 4", "flat"]
    assert all(row["agree"] == "yes" and row["top-k ms"] > 0 for row in rows)


def test_word2vec(monkeypatch, capsys, tmp_path):
    pytest.importorskip("gensim", reason="gensim is not installed")
    train = write_lines(tmp_path / "train.txt", markov_lines(6_000, 0)[0])
    test = write_lines(tmp_path / "test.txt", markov_lines(2_000, 1)[0])
    few = ("--dim", 8, "--window", 2, "--epochs", 2, "--sample", 0)
    rows = run("word2vec", monkeypatch, capsys, tmp_path, train, test, *few)
    contestants = ["gensim", "hstree"]
    if importlib.util.find_spec("numba") is not None:
        contestants.append("hstree, online")
    assert [(row["model"], row["by"]) for row in rows] == [
        (model, one) for model in ("cbow", "skipgram") for one in contestants
    ]
    # Both are far from a wrong tree or a wrong sign, which would cost more than equal shares do.
    assert all(row["held-out nll"] < np.log(7) for row in rows)

"""The benchmarks of classifiers run on small sets."""

import io
import json
import tarfile

import pytest

from tests.test_benchmarks import run
from tests.texts import markov_lines, write_lines


@pytest.fixture
def newsgroups(tmp_path):
    """An archive like that of the shared data, of twenty groups each with its words."""
    path = tmp_path / "news.tar.xz"
    with tarfile.open(path, "w:xz") as archive:
        for part, size in (("train", 200), ("test", 60)):
            records = [
                {
                    "group": f"{'ab'[i % 2]}.{i % 20}",
                    "id": i,
                    "text": f"the word{i % 20} is {'ab'[i % 2]} x{i}",
                }
                for i in range(size)
            ]
            data = "".join(json.dumps(record) + "\n" for record in records).encode()
            member = tarfile.TarInfo(f"20news/{part}.jsonl")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def test_classifiers(monkeypatch, capsys, tmp_path, newsgroups):
    models = ("LogisticRegression", "hstree default", "hstree taxonomy", "hstree label tree")
    chosen = ("--data", newsgroups, "--sets", "newsgroups", "planted-300", "--C", 1, 10)
    few = ("--samples", 2, "--models", *models)
    rows = run("classifiers", monkeypatch, capsys, tmp_path, *chosen, *few)
    of_news, of_planted = rows[:4], rows[4:]
    assert [row["model"] for row in of_news] == list(models)
    assert [row["model"] for row in of_planted] == [models[0], models[1], models[3]]
    theirs, default, *_ = of_news
    for name in ("log-loss", "log-loss at default"):
        assert default[name] == pytest.approx(theirs[name], abs=1e-2)
    assert all(row["P@1"] == 100 for row in of_news)
    assert all(1 < row["P@1"] < 100 for row in of_planted)
    assert all(row["fit s"] > 0 and row["MB"] >= 0 for row in rows)


def test_a_model_that_takes_too_long_has_no_figures(monkeypatch, capsys, tmp_path):
    few = ("--sets", "digits", "--models", "LogisticRegression", "--limit", 0.001)
    (row,) = run("classifiers", monkeypatch, capsys, tmp_path, *few)
    assert row["C"] == "failed, or over 0 s"
    assert "P@1" not in row


def test_context_words(monkeypatch, capsys, tmp_path):
    for number, part in enumerate(("train", "test")):
        write_lines(tmp_path / f"ptb.{part}.txt", markov_lines(3_000, number)[0])
    few = ("--ptb", tmp_path, "--samples", 500, "--epochs", 1)
    rows = run("context_words", monkeypatch, capsys, tmp_path, *few)
    assert len(rows) == 7
    assert all(row["fit s"] > 0 for row in rows)
    assert all(0 < row["log-loss"] < 3 for row in rows[:-1])


def test_class_search(monkeypatch, capsys, tmp_path):
    few = ("--classes", 1000, "--words", 200, "--train", 2000, "--samples", 60, "--epochs", 1)
    rows = run("class_search", monkeypatch, capsys, tmp_path, *few, "--builders", "huffman")
    assert [row["method"] for row in rows] == ["predict", "top_k(5)"] * 2
    assert all(row["differ"] == 0 for row in rows)

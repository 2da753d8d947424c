"""The page on scikit-learn, the example and the benchmarks run as printed."""

import io
import json
import tarfile

import pytest

from tests.scripts import ROOT, run_python, scripts_of
from tests.test_benchmarks import run
from tests.texts import markov_lines, write_lines


def test_the_page(tmp_path):
    run_python(["-c", "".join(scripts_of("scikit-learn.md"))], tmp_path)


@pytest.mark.slow
def test_the_example(tmp_path):
    printed = run_python([str(ROOT / "examples" / "sklearn_many_classes.py")], tmp_path)
    accuracy = {line.split()[0]: float(line.split()[2]) for line in printed.splitlines()[1:]}
    assert accuracy["flat"] == pytest.approx(accuracy["LogisticRegression"], abs=0.005)
    assert accuracy["random"] < accuracy["gmm"]


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


def test_newsgroups(monkeypatch, capsys, tmp_path, newsgroups):
    names = ("flat", "taxonomy", "gmm", "gmm epsilon=0.4 trees=4")
    chosen = ("--data", newsgroups, "--rows", *names)
    theirs, flat, taxonomy, *others = run("newsgroups", monkeypatch, capsys, tmp_path, *chosen)
    assert [row["model"] for row in (flat, taxonomy, *others)] == list(names)
    assert flat["log-loss"] == pytest.approx(theirs["log-loss"], abs=1e-3)
    assert flat["accuracy"] == theirs["accuracy"] == 100
    assert taxonomy["scores/target"] == 10 + 1  # the group's last name, and one of two first names
    assert flat["scores/target"] == 20 > others[0]["scores/target"]


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

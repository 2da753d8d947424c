"""The benchmarks run on small sizes, and print a table and write it as JSON."""

import importlib
import io
import json
import shlex
import sys
import tarfile
from argparse import Namespace
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks.fast import CANDIDATES
from hstree import LanguageModel
from tests import needs
from tests.texts import markov_lines, write_lines

pytestmark = pytest.mark.slow


def run(name, monkeypatch, capsys, tmp_path, *arguments):
    """Run a benchmark in this process; return the rows that it wrote."""
    file = tmp_path / "rows.json"
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments), "--json", str(file)])
    importlib.import_module(f"benchmarks.{name}").main()
    rows = json.loads(file.read_text())["rows"]
    printed = capsys.readouterr().out
    assert f"python -m benchmarks.{name}" in printed
    assert printed.count("\n|") == len(rows) + 2
    return rows


#: Benchmarks on random data: their options, and some of the names in their tables.
DRAWN = {
    "layer": (
        "--sizes 500 --dim 4 --batch-size 8 --rounds 1",
        {"huffman", "flat", "NumPy softmax"},
    ),
    "topk": (
        "--labels 300 --dim 4 --contexts 2 --spread 1",
        {"huffman", "random x 2", "random x 4", "flat"},
    ),
    "torch_heads": (
        "--sizes 200 --dim 4 --tokens 8 --rounds 1",
        {"Linear", "adaptive", "huffman", "gmm", "classes", "sampled"},
    ),
    "torch_topk": (
        "--sizes 200 --dim 4 --contexts 3 --spread 1 --rounds 1",
        {"Linear", "huffman", "huffman, all labels", "classes", "classes, all labels"},
    ),
    "torch_sharded": (
        "--sizes 200 --dim 4 --batch-size 8 --rounds 1",
        {"sub-trees", "vocabulary"},
    ),
}


@pytest.mark.filterwarnings("ignore:Sparse invariant checks", "ignore:Initializing zero-element")
@pytest.mark.parametrize("name", DRAWN)
def test_benchmarks_on_random_data(name, monkeypatch, capsys, tmp_path):
    if name.startswith("torch"):
        pytest.importorskip("torch", reason=needs.TORCH)
    options, expected = DRAWN[name]
    rows = run(name, monkeypatch, capsys, tmp_path, *options.split())
    assert expected <= {value for row in rows for value in row.values() if isinstance(value, str)}
    for row in rows:
        assert all(value > 0 for value in row.values() if isinstance(value, float))
        assert row.get("agree", "yes") == "yes"
        assert float(row.get("gradient error", 0)) < 1e-5


def test_fast_measures_numpy_and_compiled_functions(monkeypatch, capsys, tmp_path):
    lines = [" ".join(f"w{(7 * i + 3 * j) % 50}" for j in range(20)) for i in range(60)]
    corpus = write_lines(tmp_path / "text.txt", lines)
    sizes = ("--tokens", 300, "--rounds", 1, "--sizes", 400, "--words", 50, "--classes", 5)
    rows = run("fast", monkeypatch, capsys, tmp_path, corpus, *sizes)
    assert {row["work"] for row in rows} == {
        *(f"{work}, {candidate}" for work in ("lbl", "scoring") for candidate in CANDIDATES),
        "search, huffman, 400 labels",
        "building, kmeans, 50 vectors",
        "building, classes by exchange, 5 classes",
    }
    assert all(0 < row["lowest"] <= row["ratio"] <= row["highest"] for row in rows)


def ptb(folder):
    """Write the files of a small Penn Treebank."""
    for number, part in enumerate(("train", "valid", "test")):
        write_lines(folder / f"ptb.{part}.txt", markov_lines(3_000, number)[0])
    return folder


#: Benchmarks on texts: their options, a column, and its values.
ON_TEXTS = {
    "comparisons goodman": (
        "--candidates random 'classes cluster_by=vectors' flat",
        "candidate",
        ["random", "classes cluster_by=vectors", "flat"],
    ),
    "comparisons frontier": (
        "--candidates flat 'classes + ngrams' '2 x classes + ngrams'",
        "candidate",
        ["flat", "classes + ngrams", "2 x classes + ngrams"],
    ),
    "comparisons mnih_hinton": (
        "--seeds 2 --candidates random 'gmm epsilon=0.4 trees=2' flat",
        "n",
        [2, 2, 2],
    ),
    "tuned": (
        "--seeds 2 --pairs 14,0.2 56,0.2 --candidates huffman flat 'huffman + ngrams'",
        "like",
        ["huffman", "huffman", "huffman"],
    ),
}
QUICK = "--ptb . --folder runs --epochs 1"


@pytest.mark.usefixtures("short_turns")
@pytest.mark.parametrize("command", ON_TEXTS)
def test_every_candidate_is_measured_once(command, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(ptb(tmp_path))
    options, column, expected = ON_TEXTS[command]
    name, *table = command.split()
    arguments = [*table, *QUICK.split(), *shlex.split(options)]
    rows = run(name, monkeypatch, capsys, tmp_path, *arguments)
    assert [row[column] for row in rows] == expected
    assert all(value > 0 for row in rows for value in row.values() if isinstance(value, float))
    monkeypatch.setattr(LanguageModel, "fit", lambda *_, **options: pytest.fail("trained again"))
    again = run(name, monkeypatch, capsys, tmp_path, *arguments)
    assert [row["test"] for row in again] == [row["test"] for row in rows]


def test_grow_goes_on_with_old_rows(monkeypatch, capsys, tmp_path):
    few = ("--ptb", ptb(tmp_path), "--epochs", 1, "--dim", 4, "--shares", 0.5)
    (tmp_path / "ptb.train.txt").write_text("w0 w1 w2 <unk>\n" * 40 + "w3 w4 w5 w0\n" * 40)
    rows = run("grow", monkeypatch, capsys, tmp_path, *few)
    before, grown, after, *_ = (row for row in rows if row["tree"] == "huffman")
    assert before["perplexity"] is None
    assert (before["words"], grown["words"]) == (5, 8)
    assert after["perplexity"] < grown["perplexity"]


def test_word2vec(monkeypatch, capsys, tmp_path):
    pytest.importorskip("gensim", reason="gensim is not installed")
    train = write_lines(tmp_path / "train.txt", markov_lines(6_000, 0)[0])
    test = write_lines(tmp_path / "test.txt", markov_lines(2_000, 1)[0])
    few = ("--dim", 8, "--window", 2, "--epochs", 2, "--sample", 0)
    rows = run("word2vec", monkeypatch, capsys, tmp_path, train, test, *few)
    online = ["hstree, online"] if find_spec("numba") else []
    contestants = ["gensim", "gensim, from a file", "hstree", *online]
    assert [(row["model"], row["by"]) for row in rows] == [
        (model, one) for model in ("cbow", "skipgram") for one in contestants
    ]
    # Both are far from a wrong tree or a wrong sign, which would cost more than equal shares do.
    scored = [row for row in rows if row["by"] != "gensim, from a file"]
    assert all(row["held-out nll"] < np.log(7) for row in scored)


#: Benchmarks of networks: their options, and the candidates in their tables.
ON_NETWORKS = {
    "torch_perplexity": (
        ["--candidates", "adaptive cutoffs=5", "flat"],
        ["sampled samples=3", "adaptive cutoffs=5", "flat"],
    ),
    "short_lists": (
        ["--builders", "huffman", "--lengths", 0, 3, "--rates", 1e-9, 0.1],
        ["sampled samples=3", "huffman", "huffman short_list=3"],
    ),
}


@pytest.mark.parametrize("name", ON_NETWORKS)
def test_networks_are_compared_and_kept(name, monkeypatch, capsys, tmp_path):
    pytest.importorskip("torch", reason=needs.TORCH)
    options, expected = ON_NETWORKS[name]
    model = ("--model", "gru dim=8 length=8 batch_size=32", "--seconds", 0.6, "--seeds", 2)
    model += ("--reference", "sampled samples=3")
    folders = ("--ptb", ptb(tmp_path), "--folder", tmp_path / "runs")
    arguments = [*folders, *model, *options]
    rows = run(name, monkeypatch, capsys, tmp_path, *arguments)
    assert [row["candidate"] for row in rows] == expected
    assert all("\N{PLUS-MINUS SIGN}" in row["test"] and row["tokens/s"] > 0 for row in rows)
    assert rows[0]["ratio"] == 1
    roots = {row["candidate"]: row["at the root"] for row in rows}
    if name == "short_lists":
        assert roots["huffman"] < roots["huffman short_list=3"] < 1
    again = run(name, monkeypatch, capsys, tmp_path, *arguments)
    assert [row["test"] for row in again] == [row["test"] for row in rows]


def test_training_steps_are_timed(monkeypatch, capsys, tmp_path):
    pytest.importorskip("torch", reason=needs.TORCH)
    model = ("--model", "gru dim=8 length=8 batch_size=32", "--rounds", 1)
    candidates = ["sampled", "huffman short_list=3", "flat"]
    arguments = ("--ptb", ptb(tmp_path), *model, "--candidates", *candidates)
    rows = run("torch_training", monkeypatch, capsys, tmp_path, *arguments)
    assert [row["candidate"] for row in rows] == candidates
    assert all(row["hstree ms"] > 0 and row["plain loop ms"] > 0 for row in rows)


def test_networks_read_all_splits_alike(tmp_path):
    pytest.importorskip("torch", reason=needs.TORCH)
    from benchmarks.torch_perplexity import read_splits

    for part, line in (("train", "a a b"), ("valid", "b b a"), ("test", "c b a")):
        write_lines(tmp_path / f"ptb.{part}.txt", [line] * 8 + ["<unk>"])
    vocabulary = write_lines(tmp_path / "words.txt", ["<eos>\t9", "a\t16", "<unk>\t1"])
    names = {"text": None, "corpus": "ptb", "ptb": tmp_path}
    names |= {"words": None, "min_count": 1, "vocabulary": None}
    for chosen, expected in (
        ({}, ["a", "b", "<eos>", "<unk>"]),
        ({"words": 3}, ["a", "<eos>", "<unk>"]),
        ({"min_count": 9}, ["a", "<eos>", "<unk>"]),
        ({"vocabulary": vocabulary}, ["<eos>", "a", "<unk>"]),
    ):
        splits = read_splits(Namespace(**names | chosen))
        assert all(sorted(part.vocabulary.words) == sorted(expected) for part in splits), chosen


def test_scale(monkeypatch, capsys, tmp_path):
    folder = ("--folder", tmp_path / "runs")
    (row,) = run("scale", monkeypatch, capsys, tmp_path, "--tokens", 5000, *folder)
    assert row["tokens"] == 5000
    text = write_lines(tmp_path / "text.txt", markov_lines(500, 0)[0])
    few = ("--what", "jobs", "--corpus", text, *folder)
    one, two = run("scale", monkeypatch, capsys, tmp_path, *few)
    assert one["test perplexities"] == two["test perplexities"]


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
    news, planted = rows[:4], rows[4:]
    assert [row["model"] for row in news] == list(models)
    assert [row["model"] for row in planted] == [models[0], models[1], models[3]]
    theirs, default, *_ = news
    assert default["log-loss"] == pytest.approx(theirs["log-loss"], abs=1e-2)
    assert all(row["P@1"] == 100 for row in news)
    assert all(1 < row["P@1"] < 100 for row in planted)
    assert all(row["fit s"] > 0 and row["MB"] >= 0 for row in rows)


def test_classifiers_of_a_folder(monkeypatch, capsys, tmp_path):
    """Texts in the format of fastText, scored on held-out training samples."""
    folder = tmp_path / "set"
    folder.mkdir()
    for part in ("train", "test"):
        lines = (f"__label__{'ab'[i % 2]} word{i % 2} of text{i}\n" for i in range(40))
        (folder / f"{part}.txt").write_text("".join(lines))
    chosen = ("--sets", folder, "--models", "hstree label tree", "--C", 1, "--held-out")
    (row,) = run("classifiers", monkeypatch, capsys, tmp_path, *chosen)
    assert (row["set"], row["P@1"]) == ("set", 100)


def test_a_model_that_takes_too_long_has_no_figures(monkeypatch, capsys, tmp_path):
    few = ("--sets", "digits", "--models", "LogisticRegression", "--limit", 0.001)
    (row,) = run("classifiers", monkeypatch, capsys, tmp_path, *few)
    assert row["C"] == "failed, or over 0 s"
    assert "P@1" not in row

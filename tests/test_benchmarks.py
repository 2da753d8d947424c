"""The benchmarks run, on small sizes: what they print is a table, and the same as JSON."""

import importlib
import json
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks.fast import MEASURED, ROWS
from benchmarks.layer import take_turns, timed
from hstree import LanguageModel
from hstree.data.splits import Splits
from hstree.data.vocabulary import Vocabulary
from hstree.layers.registry import LAYERS
from hstree.ngrams.kneser_ney import KneserNey
from tests.texts import corpus_of, markov_lines, write_lines

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


def test_layer(monkeypatch, capsys, tmp_path):
    sizes = ("--sizes", 500, "--dim", 4, "--batch-size", 8, "--rounds", 1)
    rows = run("layer", monkeypatch, capsys, tmp_path, *sizes)
    assert {"huffman", "balanced", "flat", "NumPy softmax"} <= {row["layer"] for row in rows}
    assert all(row["targets/s"] > 0 for row in rows)


def test_approximations_measures_every_layer(monkeypatch, capsys, tmp_path):
    def one_step_each(steps, rounds):
        return {name: [timed(step, 1)] for name, step in steps.items()}

    sizes = ("--sizes", 300, "--dim", 4, "--batch-size", 64, "--rounds", 1)
    monkeypatch.setattr("benchmarks.approximations.TOKENS", 2_000)
    monkeypatch.setattr("benchmarks.approximations.take_turns", one_step_each)
    rows = run("approximations", monkeypatch, capsys, tmp_path, *sizes)
    layers = {name for name, kind in LAYERS.all().items() if kind.takes is Vocabulary}
    assert {row["layer"] for row in rows} == {"huffman", *layers}
    flat = next(row for row in rows if row["layer"] == "flat")
    for task in ("training", "one word", "all words", "top 10"):
        assert all(row[f"{task}, ms"] > 0 for row in rows)
        assert flat[f"{task}, times flat"] == 1
    assert flat["parameters, % of flat"] == 100


def test_fast_measures_both_kernels(monkeypatch, capsys, tmp_path):
    lines = [" ".join(f"w{(7 * i + 3 * j) % 50}" for j in range(20)) for i in range(60)]
    corpus = write_lines(tmp_path / "text.txt", lines)
    sizes = ("--tokens", 300, "--rounds", 1, "--sizes", 400, "--words", 50, "--classes", 5)
    for name, size in (("COPIED", 1 << 10), ("MULTIPLIED", 1 << 5), ("SAMPLES", 2_000)):
        monkeypatch.setattr(f"benchmarks.fast.{name}", size)
    everything = (*sizes, "--text", corpus, "--memory")
    rows = run("fast", monkeypatch, capsys, tmp_path, corpus, *everything)
    rows, peaks = rows[: -len(MEASURED)], rows[-len(MEASURED) :]
    assert all(row["work"].startswith("peak memory, ") and row["ratio"] > 0 for row in peaks)
    assert {row["work"] for row in rows} == {
        *(f"{work}, {tree}" for work in ("lbl", "scoring") for tree in ROWS),
        "cbow, huffman",
        "skipgram, huffman",
        "layer alone, huffman, 400 labels",
        "building, gmm, 50 vectors",
        "building, classes by exchange, 5 classes",
        "fitting, Kneser-Ney, order 5",
        "fitting, classifier by Adagrad, 2,000 classes",
        "reading text",
    }
    beside = ("--only", "cbow", "--busy", 1)
    (only,) = run("fast", monkeypatch, capsys, tmp_path, corpus, *sizes, *beside)
    assert only["work"] == "cbow, huffman"
    # What a token costs at least.
    limited = ("lbl", "cbow", "skipgram", "scoring", "layer alone")
    assert all(row["bytes/token"] > 0 for row in rows if row["work"].split(",")[0] in limited)
    assert all(row["lowest"] <= row["ratio"] <= row["highest"] for row in rows)


@pytest.fixture
def short_turns(monkeypatch):
    monkeypatch.setattr("hstree.experiments.speed.TURN", 0.01)
    monkeypatch.setattr(
        "benchmarks.compared.take_turns", lambda steps, rounds: take_turns(steps, 1)
    )


@pytest.mark.usefixtures("short_turns")
def test_training(monkeypatch, capsys, tmp_path):
    text = write_lines(tmp_path / "text.txt", markov_lines(6_000, 0)[0])
    few = ("--rounds", 1, "--batch-sizes", 4096)
    rows = run("training", monkeypatch, capsys, tmp_path, text, *few)
    assert [row["tree"] for row in rows] == ["huffman", "balanced", "random", "flat"]
    assert rows[-1]["times flat"] == 1


def ptb(folder):
    """Write the files of a small Penn Treebank."""
    for number, part in enumerate(("train", "valid", "test")):
        write_lines(folder / f"ptb.{part}.txt", markov_lines(3_000, number)[0])
    return folder


@pytest.mark.usefixtures("short_turns")
def test_mnih_hinton_goes_on_where_it_stopped(monkeypatch, capsys, tmp_path):
    few = ("--ptb", ptb(tmp_path), "--folder", tmp_path / "runs", "--epochs", 1, "--seeds", 2)
    rows = ("--rows", "random", "gmm epsilon=0.4 trees=2", "flat")
    first = run("mnih_hinton", monkeypatch, capsys, tmp_path, *few, *rows)
    assert [row["tree"] for row in first] == ["random", "gmm epsilon=0.4 trees=2", "flat"]
    assert all("±" in row["test"] and row["n"] == 2 for row in first)
    # One epoch of one at the most.
    assert {row["epochs"] for row in first} == {"1*"}
    random, mixture, flat = first
    assert random["parameters"] < mixture["parameters"]
    assert mixture["s from text"] > random["s from text"]
    ratio = flat["s from text"] / mixture["s from text"]
    assert mixture["from text, times flat"] == pytest.approx(ratio)
    monkeypatch.setattr(LanguageModel, "fit", lambda *_, **options: pytest.fail("trained again"))
    again = run("mnih_hinton", monkeypatch, capsys, tmp_path, *few, *rows)
    assert [row["test"] for row in again] == [row["test"] for row in first]


@pytest.mark.usefixtures("short_turns")
def test_goodman_measures_class_trees_beside_flat(monkeypatch, capsys, tmp_path):
    few = ("--ptb", ptb(tmp_path), "--folder", tmp_path / "runs", "--epochs", 1)
    kinds = ("random", "classes cluster_by=vectors", "flat")
    rows = run("goodman", monkeypatch, capsys, tmp_path, *few, "--rows", *kinds)
    assert [row["tree"] for row in rows] == list(kinds)
    flat = rows[-1]
    assert flat["above flat"] == "+0.0%"
    assert flat["training, times flat"] == flat["one word, times flat"] == 1
    assert all(row["training, times flat"] > 0 for row in rows)
    # The vectors' training is part of what classes by vectors take from the text on.
    random, by_vectors, _ = rows
    assert by_vectors["s from text"] > random["s from text"]
    assert all(row["parameters"] > 0 for row in rows)


def test_grow_goes_on_with_old_rows(monkeypatch, capsys, tmp_path):
    few = ("--ptb", ptb(tmp_path), "--epochs", 1, "--dim", 4, "--shares", 0.5)
    (tmp_path / "ptb.train.txt").write_text("w0 w1 w2 <unk>\n" * 40 + "w3 w4 w5 w0\n" * 40)
    rows = run("grow", monkeypatch, capsys, tmp_path, *few)
    models = [row["model"] for row in rows if row["tree"] == "huffman"]
    assert models == [
        "before, 1 epoch",
        "grown",
        "grown, 1 epoch more",
        "old rows, new tree",
        "old rows, new tree, 1 epoch more",
        "new tree, 1 epoch",
        "new tree, 2 epochs",
    ]
    before, grown, after, *_ = rows
    assert before["perplexity"] is None
    assert (before["words"], grown["words"]) == (5, 8)
    assert after["perplexity"] < grown["perplexity"]


@pytest.mark.usefixtures("short_turns")
def test_frontier_marks_the_rows_that_none_beats(monkeypatch, capsys, tmp_path):
    text = corpus_of(tmp_path, markov_lines(3_000, 0)[0])
    monkeypatch.setattr("benchmarks.frontier.brown_splits", lambda: Splits.of(text))
    chosen = ("--corpus", "brown", "--epochs", 1, "--folder", tmp_path / "runs")
    rows = run("frontier", monkeypatch, capsys, tmp_path, *chosen, "--rows", "gmm", "flat")
    assert [row["tree"] for row in rows] == ["gmm", "flat"]
    assert "yes" in {row["on the frontier"] for row in rows}
    for row in rows:
        assert row["ratio to flat"].startswith("1.000") == (row["tree"] == "flat")


@pytest.mark.usefixtures("short_turns")
def test_frontier_takes_another_text_and_ensembles(monkeypatch, capsys, tmp_path):
    files = [write_lines(tmp_path / f"{i}.txt", markov_lines(1_500, i)[0]) for i in range(3)]
    chosen = ("--text", *files, "--words", 5, "--epochs", 1, "--folder", tmp_path / "runs")
    names = ("classes + ngrams", "2 x classes + ngrams")
    one, two = run("frontier", monkeypatch, capsys, tmp_path, *chosen, "--rows", *names)
    assert [one["tree"], two["tree"]] == list(names)
    assert two["parameters"] == 2 * one["parameters"]
    results = json.loads((tmp_path / "runs" / "results.json").read_text())
    assert results["vocabulary"]["size"] == 5
    assert results["oov"]["train"] > 0


def test_morin_bengio_ends_with_a_trigram(monkeypatch, capsys, tmp_path):
    texts = [corpus_of(tmp_path, markov_lines(2_000, i)[0], name=f"{i}.txt") for i in range(3)]
    words = texts[0].vocabulary
    splits = Splits(*(text.with_vocabulary(words) for text in texts))
    monkeypatch.setattr("benchmarks.morin_bengio.brown_splits", lambda: splits)
    few = ("--folder", tmp_path / "runs", "--epochs", 1)
    few += ("--rows", "wordnet binarise=none", "flat", "kn3")
    *trees, trigram = run("morin_bengio", monkeypatch, capsys, tmp_path, *few)
    assert [row["tree"] for row in trees] == ["wordnet binarise=none", "flat"]
    assert [row["in WordNet"] for row in trees] == ["0%", None]
    assert trigram["tree"] == "kn3"
    model = KneserNey(order=3).fit(splits.train)
    assert trigram["valid"] == f"{model.perplexity(splits.valid):.1f}"
    assert trigram["test"] == f"{model.perplexity(splits.test):.1f}"
    assert trigram["above flat"].endswith("%")


def test_kneser_ney_measures_both_context_rules(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("benchmarks.kneser_ney.DISCOUNTS", ("modified",))
    few = ("--ptb", ptb(tmp_path), "--orders", 2)
    line, running = run("kneser_ney", monkeypatch, capsys, tmp_path, *few)
    assert (line["contexts"], running["contexts"]) == ("line", "running")
    assert line["test"] == running["test"]  # one word of context never reaches over a line end
    assert line["fit s"] > 0


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
    contestants = ["gensim", "hstree", *(["hstree, online"] if find_spec("numba") else [])]
    assert [(row["model"], row["by"]) for row in rows] == [
        (model, one) for model in ("cbow", "skipgram") for one in contestants
    ]
    # Both are far from a wrong tree or a wrong sign, which would cost more than equal shares do.
    assert all(row["held-out nll"] < np.log(7) for row in rows)


def test_scale_measures_texts(monkeypatch, capsys, tmp_path):
    few = ("--tokens", 5_000, "--folder", tmp_path / "texts")
    rows = run("scale", monkeypatch, capsys, tmp_path, *few)
    assert {row["tokens"] for row in rows} == {5_000}
    assert all(row["MB/s"] > 0 and row["peak MiB"] > 0 and row["words"] > 1 for row in rows)


def test_scale_measures_jobs(monkeypatch, capsys, tmp_path):
    text = tmp_path / "text.txt"
    write_lines(text, markov_lines(500, 0)[0])
    few = ("--what", "jobs", "--corpus", text, "--folder", tmp_path / "jobs")
    one, two = run("scale", monkeypatch, capsys, tmp_path, *few)
    assert one["test perplexities"] == two["test perplexities"]

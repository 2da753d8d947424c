"""`hstree build` and `hstree vocab`: every kind of input, every option, and what they refuse."""

import hashlib
import json
from unittest.mock import Mock

import numpy as np

import hstree as library


def test_vocab_counts_words(hstree, tmp_path):
    (tmp_path / "text.txt").write_text("The cat\nthe cat sat\n")
    hstree("vocab", "text.txt", "--lower", "--min-count", "2")
    lines = (tmp_path / "vocab.tsv").read_text().splitlines()
    assert lines[1:] == ["<eos>\t2", "cat\t2", "the\t2", "<unk>\t1"]


def test_the_text_is_named_with_its_hash(hstree, corpus, tmp_path):
    digest = hashlib.sha256(corpus.read_bytes()).hexdigest()[:16]
    for command in (["vocab"], ["build", "-m", "flat", "-o", f"{'long' * 30}.json"]):
        assert f"corpus.txt, sha256 {digest}" in hstree(*command, corpus).out


def test_options_of_the_method_reach_it(hstree, corpus, tmp_path):
    hstree("build", "--method=classes n_classes=3 tolerance=0", corpus)
    options = library.load(tmp_path / "tree.json").meta["options"]
    assert (options["n_classes"], options["tolerance"]) == (3, 0)
    hstree("build", corpus, "--seed", "7", "--force", "-m", "random")
    assert library.load(tmp_path / "tree.json").meta["random_state"] == 7


def test_labels_name_the_rows(hstree, tmp_path):
    np.save(tmp_path / "vectors.npy", np.eye(3, dtype=np.float32))
    (tmp_path / "words.txt").write_text("a\nb\nc\n")
    assert "named by index" in hstree("build", "-m", "gmm", "vectors.npy", "-o", "0.json").out
    ran = hstree("build", "-m", "gmm", "vectors.npy", "--labels", "words.txt")
    assert "named by index" not in ran.out
    assert library.load(tmp_path / "tree.json").labels == ("a", "b", "c")


def test_words_without_a_vector_are_counted(hstree, tmp_path):
    (tmp_path / "vectors.txt").write_text("a 1 0\nb 0 1\nc 1 1\n")
    (tmp_path / "vocab.tsv").write_text("a\t5\nb\t3\nc\t1\nd\t1\n<unk>\t10\n")
    ran = hstree("build", "-m", "gmm", "vectors.txt", "--vocabulary", "vocab.tsv")
    assert "2 words, 55.00% of the tokens" in " ".join(ran.out.split())
    assert set(library.load(tmp_path / "tree.json").labels) == {"a", "b", "c", "d", "<unk>"}


def test_holdout_reads_what_evaluate_trains_on(hstree, corpus, tmp_path):
    hstree("build", "-m", "huffman", corpus, "--train-split-only")
    tree = library.load(tmp_path / "tree.json")
    assert tree.meta["input"]["lines"] == [0, 160]
    assert "<unk>" in tree.labels
    train = library.Corpus.read(corpus).splits()[0]
    by_label = dict(zip(tree.labels, tree.counts.tolist(), strict=True))
    own = train.select_vocabulary()
    assert all(by_label[w] == n for w, n in zip(own.words, own.counts.tolist(), strict=True))
    hstree("evaluate", "tree.json", corpus, "--epochs", "0")


def test_an_existing_file_is_kept_without_force(refused, hstree, corpus, tmp_path):
    for name in ("tree.json", "vocab.tsv"):
        (tmp_path / name).write_text("mine")
    refused("vocab", corpus, saying="--force")
    refused("build", "-m", "huffman", corpus, saying="--force")
    hstree("build", "-m", "huffman", corpus, "--force")
    assert json.loads((tmp_path / "tree.json").read_text())["format"] == "hstree"


def test_a_place_is_refused_before_the_work(refused, corpus, monkeypatch):
    monkeypatch.setattr(library.Corpus, "read", Mock(side_effect=AssertionError("it was read")))
    refused("build", "-m", "huffman", corpus, "-o", "missing/tree.json", saying="missing")
    refused("vocab", corpus, "-o", "missing/vocab.tsv", saying="missing")


def test_a_table_of_counts_is_a_vocabulary_and_no_text(hstree, refused, tmp_path):
    (tmp_path / "other.csv").write_text("sku,title,units\n1,tea,60\n")
    refused("build", "-m", "huffman", "other.csv", saying="line 1: ")
    (tmp_path / "items.csv").write_text("item,count\nsku 1,60\nsku 2,5\n")
    hstree("build", "-m", "huffman", "items.csv")
    assert library.load(tmp_path / "tree.json").labels == ("sku 1", "sku 2")
    refused("vocab", "items.csv", saying=".csv")
    every = ("--text", "--min-count", "1")
    hstree("vocab", "items.csv", *every)
    hstree("build", "-m", "huffman", "items.csv", *every, "--force")
    assert "1,60" in library.load(tmp_path / "tree.json").labels


def test_a_tree_without_eos_is_refused_with_a_text(hstree, refused, corpus, tmp_path):
    (tmp_path / "glove.txt").write_text("w0 1.5 2\nw1 2.5 1\nw2 0.5 3\n")
    hstree("build", "-m", "gmm epsilon=0.3", "glove.txt")
    refused("evaluate", "tree.json", corpus, saying="from the words of a corpus (vocabulary=)")

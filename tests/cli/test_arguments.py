"""Vectors and texts that look alike, and vectors that lack the end of a line."""

import shlex

import numpy as np
import pytest


@pytest.fixture
def glove(tmp_path):
    """A file of GloVe text over most words of the corpus."""
    draw = np.random.default_rng(0).normal(size=(38, 6))
    lines = [f"w{i} " + " ".join(f"{x:.4f}" for x in row) for i, row in enumerate(draw)]
    (tmp_path / "glove.txt").write_text("".join(f"{line}\n" for line in lines))
    return "glove.txt"


@pytest.mark.parametrize("line", ["1.5 2.5", "a 1 2 3 4 5 6", "the 5.5 6.5 of 1.5 2.5 3.5 4.5"])
def test_numbers_in_a_text_do_not_make_it_vectors(hstree, tmp_path, line):
    (tmp_path / "text.txt").write_text(f"{line}\n" * 20)
    assert hstree("build", "-m", "huffman", "text.txt").status == 0


def test_vectors_without_eos_and_without_a_text_are_not_warned_of(hstree, corpus, glove, refused):
    assert hstree("build", "-m", "gmm epsilon=0.3", glove, "-o", "t.json").err == ""
    refused("evaluate", "t.json", corpus, saying="over the words of one (vocabulary=)")


def test_vectors_of_a_text_without_eos_are_warned_of_with_the_commands_that_mend_it(
    hstree, corpus, glove, tmp_path
):
    assert hstree("vocab", corpus, "-o", "words.tsv").status == 0
    lines = (tmp_path / "words.tsv").read_text().splitlines(keepends=True)
    (tmp_path / "words.tsv").write_text("".join(line for line in lines if "<eos>" not in line))
    ran = hstree(
        "build", "-m", "gmm epsilon=0.3", glove, "--vocabulary", "words.tsv", "-o", "t.json"
    )
    assert ran.status == 0
    (warning,) = ran.warnings
    assert "no <eos>" in warning
    first, second = (part.replace("CORPUS", corpus.name) for part in warning.split("`")[1::2])
    assert second.startswith("hstree build --method 'gmm epsilon=0.3' glove.txt --vocabulary ")
    for command in (first, second, "hstree evaluate t.json corpus.txt --epochs 0 --dim 4"):
        ran = hstree(*shlex.split(command)[1:])
        assert (ran.status, ran.err) == (0, "")


def test_vectors_with_eos_are_not_warned_of(hstree, corpus, tree):
    arguments = ["--epochs", 0, "--dim", 4, "--vectors-out", "v.npy"]
    assert hstree("evaluate", tree, corpus, *arguments).status == 0
    assert hstree("build", "-m", "gmm", "v.npy").err == ""

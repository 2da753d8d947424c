"""`hstree bootstrap`: the rounds, what is kept, and what it says of bad input."""

import pytest

import hstree as library
from hstree.experiments import results
from tests.texts import markov_lines, write_lines

SMALL = ("--dim", "8", "--context", "2", "--epochs", "1", "--batch-size", "64")


@pytest.fixture
def text(tmp_path):
    return write_lines(tmp_path / "text.txt", markov_lines(2_000, 0)[0])


def test_every_round_is_kept_and_shown(hstree, text, tmp_path):
    rounds = ("gmm epsilon=0.4", "--rounds", "2", "--first", "huffman")
    arguments = ("bootstrap", text, *rounds, "-o", "b", *SMALL)
    ran = hstree(*arguments)
    assert ran.status == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    first, *later = results.load(tmp_path / "b").rows
    assert first.name == "huffman"
    assert all(row.options["epsilon"] == 0.4 for row in later)
    files = {row.tree_file: (tmp_path / "b" / row.tree_file).stat().st_mtime_ns for row in later}
    assert hstree(*arguments).status == 0
    assert files == {name: (tmp_path / "b" / name).stat().st_mtime_ns for name in files}
    assert hstree("report", "b").status == 0


def test_later_rounds_begin_with_the_vectors_of_the_best_round(hstree, text, tmp_path):
    for name, options in (("cold", ()), ("warm", ("--warm-start",))):
        hstree("bootstrap", text, "-o", name, *SMALL, *options)
    cold, warm = (results.load(tmp_path / name).rows for name in ("cold", "warm"))
    trees = [
        library.load(tmp_path / n / r[1].tree_file) for n, r in (("cold", cold), ("warm", warm))
    ]
    assert trees[0] == trees[1]
    assert warm[0].perplexity == cold[0].perplexity
    assert warm[1].jobs[0].epochs[0].train < cold[1].jobs[0].epochs[0].train


@pytest.mark.parametrize(
    ("options", "saying"),
    [
        (("gmm epsilon=0.9",), "epsilon"),
        (("--rounds", "0"), "--rounds"),
        (("--first", "gmm"), "gmm needs word vectors"),
        (("--then", "gmm"), "rows are arguments"),
    ],
)
def test_wrong_options_are_one_line(refused, text, options, saying):
    refused("bootstrap", text, "-o", "b", *options, *SMALL, status=2, saying=saying)

"""`hstree bootstrap`: the rounds, what is kept, and what it says of bad input."""

import pytest

from hstree.experiments import results
from tests.texts import markov_lines, write_lines

SMALL = ("--dim", "8", "--context", "2", "--epochs", "1", "--batch-size", "64")


@pytest.fixture
def text(tmp_path):
    return write_lines(tmp_path / "text.txt", markov_lines(2_000, 0)[0])


def test_every_round_is_kept_and_shown(hstree, text, tmp_path):
    rounds = ("gmm epsilon=0.4", "--rounds", "2")
    arguments = ("bootstrap", text, *rounds, "-o", "b", *SMALL)
    hstree(*arguments)
    first, *later = results.load(tmp_path / "b").rows
    assert first.name == "random"
    assert all(row.options["epsilon"] == 0.4 for row in later)
    hstree("report", "b")


def test_wrong_options_are_one_line(refused, text):
    for options, saying in ((["gmm epsilon=0.9"], "epsilon"), (["--rounds", "0"], "--rounds")):
        refused("bootstrap", text, "-o", "b", *options, *SMALL, status=2, saying=saying)

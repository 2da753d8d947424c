"""A comparison that goes on without an option of its first command: the message names it."""

import re
import shlex
from functools import partial

import pytest

from hstree.experiments import results
from tests.texts import write_lines

QUICK = ("--dim", "8", "--context", "2", "--epochs", "1", "--batch-size", "64")


@pytest.fixture
def run(hstree):
    """Run the program, which says which words become ``<unk>``."""
    return partial(hstree, warns=True)


@pytest.fixture
def texts(tmp_path, corpus):
    """Names of a text in mixed case, of held-out texts and of a vocabulary, in this folder."""
    lines = corpus.read_text().splitlines()
    mixed = [line.replace("w1 ", "W1 ", 1) if i % 2 else line for i, line in enumerate(lines)]
    write_lines(tmp_path / "mixed.txt", [f"{line} once{i}" for i, line in enumerate(mixed)])
    write_lines(tmp_path / "valid.txt", lines[:20])
    write_lines(tmp_path / "test.txt", lines[20:40])
    words = ["<unk>", "<eos>", *(f"w{i}" for i in range(5, 40))]
    write_lines(tmp_path / "words.tsv", [f"{word}\t1" for word in words])
    return tmp_path


#: Options of the first command, of the second one, and what its message says to give.
CHANGES = [
    ("--min-count 30", "", r"--min-count \d+"),
    ("--vocabulary words.tsv", "", "the same --vocabulary or tree file"),
    ("--lower", "", "--lower"),
    ("--valid valid.txt", "", "--valid valid.txt"),
    ("--test test.txt", "", "--test test.txt"),
    ("--valid valid.txt --test test.txt", "", "--valid valid.txt, --test test.txt"),
    ("--learning-rate 0.2", "", "--learning-rate 0.2"),
    ("--dropout 0.1", "", "--dropout 0.1"),
    ("--model 'lbl full=true weight_decay=0.5'", "", "--model 'lbl full=true weight_decay=0.5'"),
    ("--min-count 30 --dropout 0.1", "", r"--min-count \d+, --dropout 0.1"),
    ("--min-count 1", "--min-count 3", "--min-count 1"),
    ("", "--lower", "no --lower"),
    ("", "--valid valid.txt", "no --valid"),
    ("", "--test test.txt", "no --test"),
    ("", "--dropout 0.1", "--dropout 0.35"),
    ("", "--model 'lbl weight_decay=0.5'", "--model lbl"),
    ("", "--dim 4", "--dim 8"),
    ("", "--context 1", "--context 2"),
    ("", "--batch-size 32", "--batch-size 64"),
    ("", "--epochs 2", "--epochs 1"),
]


@pytest.mark.parametrize(("first", "second", "saying"), CHANGES)
def test_an_option_that_differs_is_named_as_it_is_typed(run, texts, first, second, saying):
    usual = ("compare", "mixed.txt", "huffman", "-o", "c", *QUICK)
    run(*usual, *shlex.split(first))
    (line,) = run(*usual, *shlex.split(second), status=1).errors
    assert re.search(f"; give {saying}, choose another folder", line)
    # What the message says to give continues the comparison.
    given = re.search("; give (.*), choose another folder", line)[1]
    if first and not second and "the same" not in given:
        run(*usual, *shlex.split(given.replace(", ", " ")))
        assert len(results.load("c").candidates) == 1


@pytest.mark.parametrize("first", [("--epochs", "1"), ("--seconds", "0.2"), ("--minutes", "0.05")])
def test_another_rule_is_named(run, texts, first):
    usual = ("compare", "mixed.txt", "huffman", "-o", "c", "--dim", "8")
    run(*usual, *first)
    (line,) = run(*usual, "--epochs", "3", status=1).errors
    assert f"; give {' '.join(first)}, choose another folder" in line


def test_another_corpus_is_named(run, texts):
    run("compare", "mixed.txt", "huffman", "-o", "c", *QUICK)
    (line,) = run("compare", "corpus.txt", "huffman", "-o", "c", *QUICK, status=1).errors
    assert "; give the corpus mixed.txt, choose another folder" in line


def test_the_largest_size_of_a_vocabulary_is_named(run, texts):
    run("vocab", "mixed.txt", "--max-size", "20", "--train-split-only", "-o", "few.tsv")
    usual = ("compare", "mixed.txt", "huffman", "-o", "c", *QUICK)
    run(*usual, "--vocabulary", "few.tsv")
    (line,) = run(*usual, status=1).errors
    assert re.search(r"--min-count \d+|of max_size 20|the same --vocabulary", line)

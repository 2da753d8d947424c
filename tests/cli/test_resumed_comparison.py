"""A comparison that continues without an option of its first command: the message names it."""

import shlex

import pytest

from tests.texts import write_lines

QUICK = ("--dim", "8", "--context", "2", "--epochs", "1", "--batch-size", "64")


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


#: Options of a command, and how the message names what is different without them.
CHANGES = [
    ("--min-count 30", "its vocabulary is"),
    ("--vocabulary words.tsv", "its vocabulary is"),
    ("--lower", "in lower case"),
    ("--valid valid.txt", "its valid split is lines [0, 20] of valid.txt"),
    ("--test test.txt", "its test split is lines [0, 20] of test.txt"),
    ("--learning-rate 0.2", "its learning_rate is 0.2, here it is 0.1"),
    ("--dropout 0.1", "its dropout is 0.1, here it is 0.35"),
    ("--model 'lbl weight_decay=0.5'", "its weight_decay is 0.5, here it is None"),
    ("--dim 4", "its dim is 4, here it is 8"),
    ("--epochs 2", "its rule is at most 2 epochs, here it is at most 1 epoch"),
    ("--model cbow", "its model is cbow, here it is lbl"),
]


@pytest.mark.parametrize(("options", "difference"), CHANGES)
def test_an_option_that_differs_is_named(hstree, texts, options, difference):
    usual = ("compare", "mixed.txt", "huffman", "-o", "c", *QUICK)
    if "cbow" in options:
        usual = ("compare", "mixed.txt", "huffman", "-o", "c", "--epochs", "1")
    hstree(*usual, *shlex.split(options), warns=True)
    (line,) = hstree(*usual, status=1, warns=True).errors
    assert difference in line
    assert line.endswith("choose another folder, or force its replacement")


def test_another_corpus_is_named(hstree, texts):
    hstree("compare", "mixed.txt", "huffman", "-o", "c", *QUICK, warns=True)
    (line,) = hstree(
        "compare", "corpus.txt", "huffman", "-o", "c", *QUICK, status=1, warns=True
    ).errors
    assert "of mixed.txt" in line
    assert "of corpus.txt" in line

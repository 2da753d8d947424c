"""Input that is refused in one line, and output that no terminal acts on."""

import os

import pytest

from hstree._text import printable

TOO_LARGE = 2**32


def test_a_file_that_may_not_be_read_is_bad_input(refused, tree, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    monkeypatch.setattr("hstree._files.open", denied, raising=False)
    for command in (["check"], ["build", "-m", "huffman", "w.tsv", "--vocabulary"]):
        refused(*command, tree, status=1, saying="Permission denied")


#: Red, the title of a window, C1's version of the same, a bell, and a text from right to left.
EVIL = ["\x1b[31mred", "\x1b]0;title\x07", "\x9b31m", "\x7f", "a\u202etxt.exe"]


@pytest.fixture
def evil(hstree, tmp_path):
    (tmp_path / "evil.txt").write_text(f"{' '.join(EVIL)} plain\n" * 30)
    hstree("build", "-m", "huffman", "evil.txt", "-o", "evil.json")
    arguments = ["--epochs", 0, "--dim", 4, "--save", "model"]
    hstree("evaluate", "evil.json", "evil.txt", *arguments, warns=True)
    return tmp_path / "evil.txt"


def test_words_are_printed_without_control_characters(hstree, evil, tmp_path):
    commands = [
        ["sample", "model", "--words", 60],
        ["score", "model", evil],
        ["score", "model", evil, "--per-word"],
        ["predict", "model", EVIL[0], "-k", 7],
        ["show", "evil.json"],
        ["show", "evil.json", "--word", EVIL[1]],
    ]
    for arguments in commands:
        ran = hstree(*arguments, warns=True)
        assert printable(ran.out, keep="\n\t") == ran.out
        assert printable(ran.err, keep="\n") == ran.err
        assert "\\x1b" in ran.out
    hstree("score", "model", evil, "-o", "scores.tsv", warns=True)
    assert EVIL[0] in (tmp_path / "scores.tsv").read_text(), "a file has the words themselves"


def test_names_of_files_and_methods_are_printed_without_control_characters(hstree, evil):
    evil.rename(evil.with_name("\x1b[2J.txt"))
    ran = hstree("build", "-m", "flat", "\x1b[2J.txt", "-o", "\x1b[2J.json")
    assert "\x1b" not in ran.out
    assert "\\x1b[2J.json" in ran.out


def test_a_seed_out_of_range_is_refused_by_every_command(refused, tree, corpus):
    for command in (
        ["build", "-m", "random", corpus, "-o", "t.json"],
        ["evaluate", tree, corpus],
        ["embed", corpus, "-o", "v.vec"],
        ["bootstrap", corpus, "-o", "d"],
        ["compare", corpus, "flat", "-o", "d"],
    ):
        refused(*command, "--seed", -1, status=2, saying="--seed: ")
        refused(*command, "--seed", TOO_LARGE, status=2, saying="random_state is 4294967296")

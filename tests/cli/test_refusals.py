"""Input that is refused in one line, and output that no terminal acts on."""

import inspect
import os

import pytest

from hstree._text import printable
from hstree_cli.main import app

TOO_LARGE = 2**32


def test_a_file_that_may_not_be_read_is_bad_input(refused, tree, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    monkeypatch.setattr("hstree._files.open_regular", denied)
    for command in ("check", "stats", "show"):
        refused(command, tree, status=1, saying="Permission denied")


def test_no_command_leaves_it_to_typer_whether_a_file_can_be_read():
    described = [
        parameter.annotation.__metadata__[0]
        for command in app.registered_commands
        for parameter in inspect.signature(command.callback, eval_str=True).parameters.values()
        if "Path" in str(parameter.annotation)
    ]
    assert len(described) > 20
    assert not any(one.readable for one in described)


#: Red, the title of a window, C1's version of the same, a bell, and a text from right to left.
EVIL = ["\x1b[31mred", "\x1b]0;title\x07", "\x9b31m", "\x7f", "a\u202etxt.exe"]


@pytest.fixture
def evil(hstree, tmp_path):
    (tmp_path / "evil.txt").write_text(f"{' '.join(EVIL)} plain\n" * 30)
    assert hstree("build", "-m", "huffman", "evil.txt", "-o", "evil.json").status == 0
    arguments = ["--epochs", 0, "--dim", 4, "--save", "model"]
    assert hstree("evaluate", "evil.json", "evil.txt", *arguments).status == 0
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
        ran = hstree(*arguments)
        assert ran.status == 0
        assert printable(ran.out, keep="\n\t") == ran.out
        assert printable(ran.err, keep="\n") == ran.err
        assert "\\x1b" in ran.out
    ran = hstree("score", "model", evil, "-o", "scores.tsv")
    assert EVIL[0] in (tmp_path / "scores.tsv").read_text(), "a file has the words themselves"


def test_names_of_files_and_methods_are_printed_without_control_characters(hstree, evil):
    evil.rename(evil.with_name("\x1b[2J.txt"))
    ran = hstree("build", "-m", "flat", "\x1b[2J.txt", "-o", "\x1b[2J.json")
    assert ran.status == 0
    assert "\x1b" not in ran.out
    assert "\\x1b[2J.json" in ran.out


@pytest.mark.parametrize("seed", [-1, TOO_LARGE, 10**30])
def test_a_seed_out_of_range_is_refused_by_every_command(refused, tree, corpus, seed):
    commands = [
        *(["build", "-m", name, corpus, "-o", "t.json"] for name in ("wordnet", "random", "flat")),
        ["evaluate", tree, corpus],
        ["embed", corpus, "-o", "v.vec"],
        ["sample", "model"],
        ["bootstrap", corpus, "-o", "d"],
        ["compare", corpus, "flat", "-o", "d"],
    ]
    for command in commands:
        refused(*command, "--seed", seed, status=2, saying="--seed")


def test_the_last_random_state_of_a_comparison_is_in_range_too(refused, corpus):
    command = ["compare", corpus, "flat", "--seed", 2**32 - 1, "--seeds", 2, "-o", "d"]
    refused(*command, status=2, saying="4294967295")

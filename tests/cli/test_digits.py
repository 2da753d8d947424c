"""Options with numbers of thousands of digits, which Python does not convert."""

import typing

import pytest
import typer

from hstree_cli import start, train, trees, use
from hstree_cli.main import app, exit_status

#: The arguments of each command with options that are numbers.
COMMANDS = {
    trees.vocab: ["corpus.txt", "--force"],
    trees.build: ["-m", "huffman", "corpus.txt", "--force"],
    trees.show: ["huffman.json"],
    train.evaluate: ["huffman.json", "corpus.txt", "--force"],
    train.embed: ["corpus.txt", "-o", "v.vec", "--force"],
    start.compare: ["corpus.txt", "flat", "-o", "which"],
    train.bootstrap: ["corpus.txt", "-o", "rounds"],
    train.classify: ["samples.txt", "samples.txt", "--force"],
    use.predict: ["model", "w0"],
    use.sample: ["model"],
}
#: Options that end a training soon, unless another rule is typed.
QUICK = {"--epochs": "1", "--dim": "4"}
RULES = {"--seconds", "--minutes", "--epochs"}


def numeric_flags(command):
    """Return the flags of a command's options, and of those that are numbers."""
    params = typer.main.get_command(app).commands[command.__name__].params
    flags = {param.name: param.opts[0] for param in params if param.opts[0].startswith("-")}
    hints = typing.get_type_hints(command)
    numbers = [
        flag
        for name, flag in flags.items()
        if {int, float} & {hints.get(name), *typing.get_args(hints.get(name))}
    ]
    return list(flags.values()), numbers


@pytest.mark.parametrize("length", [25, 5000])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
@pytest.mark.usefixtures("hstree", "corpus", "tree", "model")
def test_options_with_long_numbers_are_used_or_refused_in_one_line(
    tmp_path, capsys, command, length
):
    (tmp_path / "samples.txt").write_text("2 2 2\n0 0:1\n1 1:1\n")
    flags, numbers = numeric_flags(command)
    assert numbers
    for flag in numbers:
        others = set(QUICK).intersection(flags) - {flag} - (RULES if flag in RULES else set())
        quick = [word for name in others for word in (name, QUICK[name])]
        line = ["-q", command.__name__, *COMMANDS[command], *quick, flag, "7" * length]
        status = exit_status(line)
        err = capsys.readouterr().err
        assert status in (0, 1, 2), flag
        assert not status or err.count("\n") == 1, err


@pytest.mark.parametrize(
    "line",
    [
        ["evaluate", "N x flat", "corpus.txt"],
        ["evaluate", "kN", "corpus.txt"],
        ["evaluate", "knN", "corpus.txt"],
        ["evaluate", "N", "corpus.txt"],
        ["evaluate", "flat", "corpus.txt", "--model", "lbl dim=N"],
        ["compare", "corpus.txt", "N x flat", "knN", "-o", "which"],
        ["bootstrap", "corpus.txt", "gmm trees=N", "-o", "rounds"],
        ["embed", "corpus.txt", "negative samples=N", "-o", "v.vec"],
        ["build", "-m", "huffman arity=N", "corpus.txt"],
        ["classify", "corpus.txt", "corpus.txt", "-m", "kmeans arity=N"],
        ["methods", "knN"],
        ["methods", "N"],
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("corpus")
def test_spellings_with_thousands_of_digits_are_refused_in_one_line(refused, line):
    refused(*(word.replace("N", "7" * 5000) for word in line), status=2)


@pytest.mark.usefixtures("corpus", "tree")
def test_threads_with_thousands_of_digits_are_refused_in_one_line(refused):
    refused("--threads", "7" * 5000, "stats", "huffman.json", status=2)


@pytest.mark.usefixtures("hstree")
def test_samples_with_thousands_of_digits_are_refused_in_one_line(refused, tmp_path):
    (tmp_path / "samples.txt").write_text(f"{'7' * 5000} 2 2\n0 0:1\n")
    refused("classify", "samples.txt", "samples.txt", saying="samples.txt: line 1 is '7777")

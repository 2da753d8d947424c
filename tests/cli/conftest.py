"""The program in this process, and small inputs for it."""

import io
import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from hstree_cli.main import exit_status
from tests.texts import contents, write_lines


@dataclass
class Ran:
    """Status, output and errors of one run of the program."""

    out: str
    err: str

    @property
    def errors(self):
        return [line for line in self.err.splitlines() if line.startswith("hstree: error: ")]

    @property
    def warnings(self):
        return [line for line in self.err.splitlines() if line.startswith("hstree: warning: ")]


def figures(path):
    """Return the results of the one candidate in a comparison's JSON, and those of its text."""
    document = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=pytest.fail)
    (candidate,) = document["candidates"]
    means = {split: spread["mean"] for split, spread in candidate["perplexity"].items()}
    text = {name: document[name] for name in ("tokens", "oov", "vocabulary", "unigram")}
    return {**candidate, **text, "perplexity": means, "epochs": candidate["jobs"][0]["epochs"]}


@pytest.fixture
def hstree(capsys, tmp_path, monkeypatch, short_turns):
    """Run the program in a folder of its own, 80 columns wide; by default it must do well."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    # A busy machine, or one that compiles, would otherwise add lines to standard error.
    monkeypatch.setattr("hstree.kernels.jit.announce_compiling", lambda: None)
    for patience in ("LINE_PATIENCE", "LONG_TASK"):
        monkeypatch.setattr(f"hstree._displays.{patience}", float("inf"))

    def run(*arguments, status=0, warns=False):
        capsys.readouterr()
        ended = exit_status([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert ended == status, err
        assert "Traceback" not in err
        assert warns or status or not err
        # Texts have lines of any length.
        widest = max(map(len, out.splitlines()), default=0)
        assert widest <= int(os.environ["COLUMNS"]) or {"sample", "score"} & set(arguments)
        return Ran(out, err)

    return run


@pytest.fixture
def refused(hstree, tmp_path):
    """Run the program on something that it must refuse: one clear line, and nothing changed."""

    def run(*arguments, status=1, saying=""):
        before = contents(tmp_path)
        ran = hstree(*arguments, status=status)
        assert ran.out == ""
        assert ran.err.count("\n") == 1, ran.err
        assert len(ran.errors) == 1, ran.err
        assert saying in ran.err
        assert contents(tmp_path) == before
        return ran

    return run


@pytest.fixture(scope="session")
def inputs(tmp_path_factory, short_turns):
    """The folder of a text, a tree and a model, which the fixtures of these names copy."""
    folder = tmp_path_factory.mktemp("inputs")
    draw = random.Random(0)
    words = [f"w{i}" for i in range(40)]
    weights = [1 / (i + 1) for i in range(40)]
    lines = [" ".join(draw.choices(words, weights, k=8)) for _ in range(200)]
    corpus = str(write_lines(folder / "corpus.txt", lines))
    tree, model = str(folder / "huffman.json"), str(folder / "model")
    build = ["build", "--method", "huffman", corpus, "--train-split-only", "-o", tree]
    assert exit_status(["-q", *build]) == 0
    train = ["evaluate", tree, corpus, "--epochs", "1", "--dim", "4", "--save", model]
    assert exit_status(["-q", *train]) == 0
    return folder


@pytest.fixture
def corpus(inputs, tmp_path):
    """A text of 200 lines over 40 words, the first of them the most frequent."""
    return Path(shutil.copy(inputs / "corpus.txt", tmp_path))


@pytest.fixture
def tree(inputs, tmp_path):
    """A Huffman tree over the first 80% of the corpus."""
    return Path(shutil.copy(inputs / "huffman.json", tmp_path))


@pytest.fixture
def model(inputs, tmp_path):
    """A trained model's folder; its words hold <unk>."""
    return Path(shutil.copytree(inputs / "model", tmp_path / "model"))


@pytest.fixture
def typed(monkeypatch):
    """Let the next run find this on standard input."""

    def type_(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return type_


@pytest.fixture
def program(tmp_path):
    """The command line of the program in a process of its own, and its environment."""
    import hstree
    import hstree_cli

    roots = [os.path.dirname(os.path.dirname(m.__file__)) for m in (hstree, hstree_cli)]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment = {**own, "PYTHONPATH": os.pathsep.join(roots), "COLUMNS": "80"}
    return [sys.executable, "-m", "hstree_cli"], environment


@pytest.fixture
def process(program, tmp_path):
    """Run the program, or another command instead, in a process of its own."""
    usual, environment = program

    def run(*arguments, command=usual, env=(), **how):
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | how
        line = [*command, *map(str, arguments)]
        return subprocess.run(line, cwd=tmp_path, env=environment | dict(env), **how)

    return run

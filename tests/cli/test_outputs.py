"""Outputs of commands: saved before anything is printed, each by itself, never over an input."""

import errno
import json
import os
import re
import shlex
import subprocess
from contextlib import suppress
from unittest.mock import Mock

import pytest

import hstree as library
from tests.cli.conftest import figures

QUICK = ["--epochs", "1", "--dim", "4", "--context", "2"]
FULL = "/dev/full"
needs_full = pytest.mark.skipif(not os.path.exists(FULL), reason="there is no /dev/full here")


@pytest.fixture
def piped(program, process):
    """Run the program with its standard output redirected as a shell does it."""
    command, _ = program

    def run(stdout, *arguments):
        line = shlex.join([*command, *map(str, arguments)])
        return process(command=["/bin/sh", "-c", f"{line} {stdout}"], stdout=subprocess.DEVNULL)

    return run


def test_a_closed_standard_output_loses_nothing_of_a_training(piped, tree, corpus, tmp_path):
    saved = ["--save", "m", "--json", "r.json", "--vectors-out", "v.npy"]
    ran = piped(">&-", "-q", "evaluate", tree, corpus, *QUICK, *saved)
    assert ran.returncode == 1
    assert ran.stderr == "hstree: error: standard output: Bad file descriptor\n"
    assert library.LanguageModel.load(tmp_path / "m").tree == library.load(tree)
    assert figures(tmp_path / "r.json")["perplexity"]
    assert len(library.WordVectors.read(tmp_path / "v.npy")) == library.load(tree).n_labels


FEW = "--epochs 1 --dim 4 --batch-size 256"
#: Command lines that write files, and all that they write.
WRITING = {
    "vocab corpus.txt": ["vocab.tsv"],
    "build -m huffman corpus.txt": ["tree.json"],
    "build -m huffman corpus.txt -o t.npz": ["t.npz"],
    "convert huffman.json tree.napkinxc": ["tree.napkinxc", "tree.labels.tsv"],
    "stats huffman.json --json stats.json": ["stats.json"],
    f"evaluate flat corpus.txt {FEW} --save m": ["m/config.json"],
    f"evaluate flat corpus.txt {FEW} --json r.json --vectors-out v.npy": ["r.json", "v.npy"],
    f"embed corpus.txt {FEW} -o v.vec": ["v.vec"],
    f"embed corpus.txt {FEW} -o w.npy": ["w.npy"],
    "classify samples.txt samples.txt -o c --json c.json": ["c/config.json", "c.json"],
    "predict model 'w0 w1' --json p.json": ["p.json"],
    "predict model - --json lines.json": ["lines.json"],
    "score model corpus.txt -o s.tsv --json s.json": ["s.tsv", "s.json"],
    "score model corpus.txt --per-word -o words.tsv": ["words.tsv"],
    "score model - -o i.tsv --json i.json": ["i.tsv", "i.json"],
    f"compare corpus.txt flat {FEW} -o which": ["which/report.html"],
    f"bootstrap corpus.txt {FEW} -o rounds": ["rounds/report.html"],
    "report finished": ["finished/report.html"],
}
ERRORS = {
    "memory": (MemoryError(), 1),
    "full disk": (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), 1),
    "closed pipe": (BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)), 1),
    "interrupt": (KeyboardInterrupt(), 130),
}


@pytest.fixture
def run_line(hstree, typed, corpus, tree, model, tmp_path):
    """Run a line of `WRITING` on its inputs."""
    (tmp_path / "samples.txt").write_text("2 2 2\n0 0:1\n1 1:1\n")
    hstree("compare", corpus, "flat", *QUICK, "-o", "finished")
    (tmp_path / "finished" / "report.html").unlink()

    def run(line, **expected):
        typed(b"w0 w1\nw2\n")
        return hstree(*shlex.split(line), **expected)

    return run


@pytest.mark.parametrize("error", ERRORS)
def test_no_command_names_a_file_that_was_not_written(run_line, tmp_path, monkeypatch, error):
    raised, status = ERRORS[error]
    run_line("score model corpus.txt", warns=True)  # the cache has the text
    for line, files in WRITING.items():
        with monkeypatch.context() as patch:
            patch.setattr("hstree._files.os.fsync", Mock(side_effect=raised))
            ran = run_line(line, status=status)
        assert ran.errors, line
        assert not re.search(r"^(written|saved|page)\b", ran.out, re.MULTILINE), line
        assert not [name for name in files if (tmp_path / name).exists()], line


def test_every_command_names_what_it_has_written(run_line, tmp_path):
    for line, files in WRITING.items():
        ran = run_line(line, warns=True)
        assert all((tmp_path / name).exists() for name in files), line
        if re.search(r"^written\b", ran.out, re.MULTILINE):
            assert files[0].split("/")[0] in ran.out, line


PRINTING = {
    **WRITING,
    "methods": [],
    "check huffman.json": [],
    "show huffman.json": [],
    "sample model": [],
    "score model corpus.txt": [],
    "score model corpus.txt --json lines-s.json": ["lines-s.json"],
}


@needs_full
def test_every_command_saves_before_a_full_standard_output_ends_it(run_line, monkeypatch, tmp_path):
    for line, files in PRINTING.items():
        with monkeypatch.context() as patch, open(FULL, "w") as stdout:
            patch.setattr("sys.stdout", stdout)
            ran = run_line(line, status=1)
            with suppress(OSError):
                stdout.close()
        assert ran.errors == ["hstree: error: standard output: No space left on device"], line
        assert all((tmp_path / name).exists() for name in files), line


def test_a_model_that_cannot_be_saved_loses_no_figures(hstree, tree, corpus, tmp_path, monkeypatch):
    full = Mock(side_effect=MemoryError)
    monkeypatch.setattr(library.LanguageModel, "mean_predicted_vectors", full)
    (tmp_path / "m" / "config.json").mkdir(parents=True)
    saved = ["--json", "r.json", "--save", "m", "--vectors-out", "v.npy", "--force"]
    ran = hstree("evaluate", tree, corpus, *QUICK, *saved, status=1)
    assert len(ran.errors) == 2
    assert "m/config.json is not a regular file" in ran.errors[0]
    assert ran.errors[1] == "hstree: error: cannot write v.npy: not enough memory"
    assert figures(tmp_path / "r.json")["perplexity"]
    assert re.findall(r"^written +(.*)$", ran.out, re.M) == ["r.json"]


LATIN = os.fsdecode(b"caf\xe9.txt")


@pytest.fixture
def latin(corpus, tmp_path):
    """A corpus whose file has a name that is not UTF-8."""
    if os.fsencode(LATIN) != b"caf\xe9.txt":
        pytest.skip("file names have another encoding here")
    try:
        (tmp_path / LATIN).write_bytes(corpus.read_bytes())
    except OSError:
        pytest.skip("this disk takes no such name")
    return LATIN


def test_names_of_files_need_not_be_utf8(hstree, latin, tmp_path):
    stem = latin.removesuffix(".txt")
    for arguments in (
        ["build", "-m", "huffman", latin, "--train-split-only", "-o", f"{stem}.json"],
        ["evaluate", f"{stem}.json", latin, *QUICK, "--json", "r.json", "--save", f"{stem}.m"],
        ["score", f"{stem}.m", latin, "--json", "s.json"],
    ):
        hstree(*arguments, warns=True)
    name = "caf\\xe9.txt"
    assert library.load(tmp_path / f"{stem}.json").meta["input"]["name"] == name
    found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert found["corpus"]["train"]["name"] == name
    assert json.loads((tmp_path / "s.json").read_text())["corpus"]["name"] == name


REPLACED = [
    "vocab corpus.txt -o link.txt --force",
    "vocab corpus.txt -o hard.txt --force",
    "build -m huffman words.json -o words.json --force",
    "build -m 'classes vectors_file=words.json' corpus.txt -o words.json --force",
    "build -m 'gmm from=words.json' words.npy -o words.json --force",
    "evaluate huffman.json corpus.txt --json corpus.txt",
    "evaluate flat corpus.txt --vectors-out words.npy --vocabulary words.labels.tsv --force",
    "evaluate m/tree.json corpus.txt --save m",
    "evaluate huffman.json corpus.txt --save m --json m/config.json --force",
    "bootstrap b/round-0/text.txt -o b",
    "compare corpus.txt flat -o c --vocabulary c/runs/flat/seed-0/vectors.labels.tsv",
    "compare corpus.txt c/runs/flat/seed-0/tree.json -o c",
    "compare corpus.txt 'classes cluster_by=vectors vectors_file=c/v.npy' -o c",
    "convert words.npy x.json --labels x.json --force",
    "embed corpus.txt -o v.npy --vocabulary v.labels.tsv --force",
    "stats huffman.json --json huffman.json",
    "score m corpus.txt -o x.tsv --json x.tsv",
    "predict m w0 --with d/m --json d/m/p.json",
    # An output inside a folder that is read, or in the folder that is written.
    "build -m 'classes vectors_file=linked.npy' corpus.txt -o alias.json --force",
    "score m corpus.txt -o model/lines.tsv",
    "score m corpus.txt -o weights",
    "evaluate flat corpus.txt --vocabulary mv/vocabulary.tsv --save mv",
    "evaluate huffman.json corpus.txt --save .",
    "compare corpus.txt d/tree.json -o d",
]


def test_an_input_is_never_replaced(refused, tree, corpus, tmp_path):
    files = [
        *("words.json", "words.npy", "words.tsv", "words.labels.tsv", "v.labels.tsv"),
        *("results.csv", "x.json", "linked.npy", "d/tree.json", "d/text.txt", "c/v.npy"),
        *("m/tree.json", "m/config.json", "m/weights.safetensors", "mv/vocabulary.tsv"),
        *("d/m/config.json", "d/m/weights.safetensors", "b/round-0/text.txt"),
        *("c/runs/flat/seed-0/tree.json", "c/runs/flat/seed-0/vectors.labels.tsv"),
    ]
    for name in [*files, "c/results.json"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(tree.read_bytes() if "tree" in name else b"w0\t1\n")
    for link, target in (
        ("link.txt", corpus),
        ("alias.json", "linked.npy"),
        ("model", "m"),
    ):
        (tmp_path / link).symlink_to(target)
    os.link(corpus, tmp_path / "hard.txt")
    os.link(tmp_path / "m" / "weights.safetensors", tmp_path / "weights")
    for line in REPLACED:
        refused(*shlex.split(line), saying="choose another path with ")


@pytest.mark.usefixtures("model", "corpus")
def test_redirected_standard_input_is_not_replaced(piped):
    ran = piped("< corpus.txt", "score", "model", "-", "--json", "corpus.txt")
    assert "--json corpus.txt overlaps with /dev/stdin" in ran.stderr


def test_models_of_a_comparison_are_read(hstree, corpus):
    hstree("compare", corpus, *QUICK, "-o", "which", "huffman")
    model = "which/runs/huffman/seed-0/model"
    for output in ("which/lines.tsv", f"{model}.tsv"):
        hstree("score", model, corpus, "-o", output, warns=True)

"""What commands write: saved before anything is printed, each output by itself, never an input."""

import errno
import json
import os
import re
import shlex
import subprocess
from contextlib import suppress

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


@pytest.mark.parametrize(
    ("stdout", "reason"),
    [
        pytest.param(">/dev/full", "No space left on device", id="full disk", marks=needs_full),
        pytest.param(">&-", "Bad file descriptor", id="closed"),
    ],
)
def test_standard_output_loses_nothing_of_a_training(piped, tree, corpus, tmp_path, stdout, reason):
    saved = ["--save", "m", "--json", "r.json", "--vectors-out", "v.npy"]
    ran = piped(stdout, "-q", "evaluate", tree, corpus, *QUICK, *saved)
    assert ran.returncode == 1
    assert ran.stderr == f"hstree: error: standard output: {reason}\n"
    assert library.LanguageModel.load(tmp_path / "m").tree == library.load(tree)
    assert figures(tmp_path / "r.json")["perplexity"]
    assert len(library.WordVectors.read(tmp_path / "v.npy")) == library.load(tree).n_labels


#: A command line for each command that writes files, and all that it writes.
WRITING = {
    "vocab": (["corpus.txt"], ["vocab.tsv"]),
    "build": (["-m", "huffman", "corpus.txt"], ["tree.json"]),
    "convert": (["huffman.json", "tree.napkinxc"], ["tree.napkinxc", "tree.labels.tsv"]),
    "stats": (["huffman.json", "--json", "stats.json"], ["stats.json"]),
    "evaluate": (
        ["flat", "corpus.txt", *QUICK, "--save", "m", "--json", "r.json", "--vectors-out", "v.npy"],
        ["m", "r.json", "v.npy"],
    ),
    "embed": (["corpus.txt", "--dim", "4", "--epochs", "1", "-o", "v.vec"], ["v.vec"]),
    "classify": (["samples.txt", "samples.txt", "-o", "c", "--json", "c.json"], ["c", "c.json"]),
    "predict": (["model", "w0 w1", "--json", "p.json"], ["p.json"]),
    "score": (["model", "corpus.txt", "-o", "s.tsv", "--json", "s.json"], ["s.tsv", "s.json"]),
    "compare": (["corpus.txt", "flat", *QUICK, "-o", "which"], ["which/report.html"]),
    "bootstrap": (["corpus.txt", *QUICK, "-o", "rounds"], ["rounds/report.html"]),
    "report": (["finished"], ["finished/report.html"]),
}


@pytest.fixture
def written_inputs(hstree, corpus, tree, model, tmp_path):
    """Files for the commands in `WRITING`."""
    (tmp_path / "samples.txt").write_text("2 2 2\n0 0:1\n1 1:1\n")
    hstree("compare", corpus, "flat", *QUICK, "-o", "finished")
    (tmp_path / "finished" / "report.html").unlink()


@pytest.mark.usefixtures("written_inputs")
@pytest.mark.parametrize("failing", ["os.fsync", "pathlib.Path.replace"])
def test_no_command_names_a_file_that_was_not_written(hstree, tmp_path, monkeypatch, failing):
    """On a full disk, or one that is full for the folder's entries alone."""

    def full(path, *_):
        if failing == "os.fsync" or ".hstree" in str(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise AssertionError(path)

    for command, (arguments, files) in WRITING.items():
        with monkeypatch.context() as patch:
            patch.setattr(failing, full)
            if failing != "os.fsync":
                patch.setattr("pathlib.Path.rename", full)
            ran = hstree(command, *arguments, status=1)
        assert ran.errors, command
        assert all("No space left on device" in line for line in ran.errors), command
        assert not re.search(r"^(written|saved|page)\b", ran.out, re.MULTILINE), command
        assert not [name for name in files if (tmp_path / name).is_file()], command


@pytest.mark.usefixtures("written_inputs")
def test_every_command_names_what_it_has_written(hstree, tmp_path):
    for command, (arguments, files) in WRITING.items():
        ran = hstree(command, *arguments, warns=True)
        assert all((tmp_path / name).exists() for name in files), command
        if re.search(r"^written\b", ran.out, re.MULTILINE):
            assert all(name in ran.out for name in files[:1]), command


PRINTING = {
    **WRITING,
    "methods": ([], []),
    "check": (["huffman.json"], []),
    "show": (["huffman.json"], []),
    "sample": (["model"], []),
    "score": (["model", "corpus.txt"], []),
}


@needs_full
@pytest.mark.usefixtures("written_inputs")
def test_every_command_saves_before_a_full_standard_output_ends_it(hstree, monkeypatch, tmp_path):
    for command, (arguments, files) in PRINTING.items():
        with monkeypatch.context() as patch, open(FULL, "w") as stdout:
            patch.setattr("sys.stdout", stdout)
            ran = hstree(command, *arguments, status=1)
            with suppress(OSError):
                stdout.close()
        assert ran.errors == ["hstree: error: standard output: No space left on device"], command
        assert all((tmp_path / name).exists() for name in files), command


def test_a_model_that_cannot_be_saved_loses_no_figures(hstree, tree, corpus, tmp_path, monkeypatch):
    from hstree.models.lbl import LanguageModel

    def full(*_):
        raise MemoryError

    monkeypatch.setattr(LanguageModel, "mean_predicted_vectors", full)
    (tmp_path / "m" / "config.json").mkdir(parents=True)
    saved = ["--json", "r.json", "--save", "m", "--vectors-out", "v.npy", "--force"]
    ran = hstree("evaluate", tree, corpus, *QUICK, *saved, status=1)
    assert len(ran.errors) == 2
    assert "m/config.json is not a regular file" in ran.errors[0]
    assert ran.errors[1] == "hstree: error: cannot write v.npy: there is not enough memory"
    assert figures(tmp_path / "r.json")["perplexity"]
    assert "perplexity" in ran.out
    assert [line.split() for line in ran.out.splitlines() if line.startswith("written")] == [
        ["written", "r.json"]
    ]


def test_the_vectors_which_take_longest_come_last(hstree, tree, corpus, tmp_path, monkeypatch):
    from hstree.models.lbl import LanguageModel

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(LanguageModel, "mean_predicted_vectors", interrupted)
    saved = ["--json", "r.json", "--save", "m", "--vectors-out", "v.npy"]
    hstree("evaluate", tree, corpus, *QUICK, *saved, status=130)
    assert library.LanguageModel.load(tmp_path / "m")
    assert figures(tmp_path / "r.json")["perplexity"]


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
    "vocab corpus.txt -o corpus.txt --force",
    "vocab corpus.txt -o link.txt --force",
    "vocab corpus.txt -o hard.txt --force",
    "build -m huffman words.json -o words.json --force",
    "build -m 'classes vectors_file=words.json' corpus.txt -o words.json --force",
    "build -m 'gmm from=words.json' words.npy -o words.json --force",
    "evaluate huffman.json corpus.txt --json corpus.txt",
    "evaluate huffman.json corpus.txt --json huffman.json",
    "evaluate flat corpus.txt --vectors-out words.npy --vocabulary words.labels.tsv --force",
    "evaluate m/tree.json corpus.txt --save m",
    "evaluate huffman.json corpus.txt --save m --json m/config.json --force",
    "bootstrap b/round-0/text.txt -o b",
    "compare corpus.txt flat -o c --vocabulary c/runs/flat/seed-0/vectors.labels.tsv",
    "compare corpus.txt c/runs/flat/seed-0/tree.json -o c",
    "compare corpus.txt 'classes cluster_by=vectors vectors_file=c/v.npy' -o c",
    "convert huffman.json huffman.json --force",
    "convert words.npy x.json --labels x.json --force",
    "embed corpus.txt -o v.npy --vocabulary v.labels.tsv --force",
    "stats huffman.json --json huffman.json",
    "score m corpus.txt -o corpus.txt",
    "score m corpus.txt -o x.tsv --json x.tsv",
    "predict m w0 --with d/m --json d/m/p.json",
    # What lies inside a folder that is read, or in the folder that is written.
    "build -m 'classes vectors_file=linked.npy' corpus.txt -o alias.json --force",
    "score m corpus.txt -o m/lines.tsv",
    "score m corpus.txt -o model/lines.tsv",
    "score m corpus.txt -o weights",
    "evaluate flat corpus.txt --vocabulary mv/vocabulary.tsv --save mv",
    "evaluate huffman.json corpus.txt --save .",
    "compare corpus.txt d/tree.json -o d",
    "compare d/text.txt flat -o d",
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
        refused(*shlex.split(line), saying="choose another place with ")


@pytest.mark.usefixtures("model", "corpus")
def test_redirected_standard_input_is_not_replaced(piped):
    ran = piped("< corpus.txt", "score", "model", "-", "--json", "corpus.txt")
    assert "--json corpus.txt is, contains or lies in /dev/stdin" in ran.stderr


def test_models_of_a_comparison_are_read(hstree, corpus):
    hstree("compare", corpus, *QUICK, "-o", "which", "huffman")
    model = "which/runs/huffman/seed-0/model"
    for output in ("which/lines.tsv", f"{model}.tsv"):
        hstree("score", model, corpus, "-o", output, warns=True)

"""Whatever goes wrong while an output is written, the exit status of the command says so."""

import errno
import os

import pytest

QUICK = ["--epochs", "0", "--dim", "2"]
COMMANDS = {
    "vocab": ["vocab", "corpus.txt"],
    "build": ["build", "-m", "huffman", "corpus.txt"],
    "build, packed": ["build", "-m", "huffman", "corpus.txt", "-o", "t.npz"],
    "convert": ["convert", "huffman.json", "huffman.dot"],
    "stats": ["stats", "huffman.json", "--json", "s.json"],
    "evaluate": ["evaluate", "huffman.json", "corpus.txt", *QUICK, "--json", "r.json"],
    "evaluate, model": ["evaluate", "huffman.json", "corpus.txt", *QUICK, "--save", "m"],
    "evaluate, vectors": ["evaluate", "flat", "corpus.txt", *QUICK, "--vectors-out", "v.npy"],
    "compare": ["compare", "corpus.txt", "huffman", *QUICK, "-o", "c"],
    "bootstrap": ["bootstrap", "corpus.txt", *QUICK, "-o", "b"],
    "embed": ["embed", "corpus.txt", "-o", "v.vec", "--dim", "2", "--epochs", "1"],
    "embed, arrays": ["embed", "corpus.txt", "-o", "v.npy", "--dim", "2", "--epochs", "1"],
    "classify": ["classify", "samples.txt", "samples.txt", "-o", "labels.model"],
    "predict": ["predict", "model", "w0", "--json", "p.json"],
    "predict lines": ["predict", "model", "-", "--json", "p.json"],
    "score": ["score", "model", "corpus.txt", "--json", "s.json"],
    "score, lines": ["score", "model", "corpus.txt", "-o", "s.tsv"],
    "score, words": ["score", "model", "corpus.txt", "--per-word", "-o", "s.tsv"],
    "score standard input": ["score", "model", "-", "-o", "s.tsv", "--json", "s.json"],
}
ERRORS = {
    "memory": (MemoryError(), 1),
    "full disk": (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), 1),
    "closed pipe": (BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)), 1),
    "interrupt": (KeyboardInterrupt(), 130),
}
SAMPLES = "".join(f"{i % 3} 0:{i % 3}.5 1:1.0\n" for i in range(12))


@pytest.mark.usefixtures("corpus", "tree", "model")
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_cannot_be_written_is_no_success(
    hstree, typed, tmp_path, monkeypatch, command, error
):
    (tmp_path / "samples.txt").write_text(f"12 2 3\n{SAMPLES}")
    typed(b"w0 w1\nw2\n")
    raised, status = ERRORS[error]
    hstree("score", "model", "corpus.txt", warns=True)  # the cache has the text
    calls = []

    def failing(*_):
        calls.append(1)
        raise raised

    monkeypatch.setattr("hstree._files.os.fsync", failing)
    ran = hstree(*COMMANDS[command], status=status)
    assert calls, "the command has written nothing"
    assert ran.errors

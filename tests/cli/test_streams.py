"""`score -` and `predict -`: none of standard input is kept, and `predict -` answers each line."""

import io
import json
import os
import random
import signal
import subprocess
import time
import tracemalloc

import pytest

import hstree as library
from hstree.models import streams
from tests.texts import write_lines

QUICK = ("--epochs", "1", "--dim", "4")


def lines(n):
    """Draw lines of all lengths, also empty ones, with unknown words and words of other scripts."""
    draw = random.Random(n)
    words = [*(f"w{i}" for i in range(40)), "zebra", "é", "a\u00a0b", "<eos>", "<unk>"]
    lengths = (0, 1, 2, 5, 9, 60)
    return [" ".join(draw.choices(words, k=draw.choice(lengths))) for _ in range(n)]


@pytest.fixture
def kinds(hstree, corpus, tree, model):
    """Models by their contexts: words before, words around, and ensembles of both kinds."""
    hstree("evaluate", tree, corpus, *QUICK, "--seed", "1", "--context", "9", "--save", "other")
    hstree("evaluate", tree, corpus, *QUICK, "--model", "cbow window=3", "--save", "cbow")
    return {"language model": [model], "several": [model, "--with", "other"], "cbow": ["cbow"]}


@pytest.mark.parametrize("kind", ["language model", "several", "cbow"])
def test_standard_input_is_scored_as_the_same_file(
    hstree, kinds, typed, tmp_path, monkeypatch, kind
):
    monkeypatch.setattr(streams, "CHUNK", 2 * streams.BATCH)
    monkeypatch.setattr("hstree.data.sources.BLOCK_BYTES", 5_000)
    text = write_lines(tmp_path / "text.txt", lines(1_500))
    for content in (text.read_bytes(), text.read_bytes()[:-1], "\ufeffw0 w1\n".encode(), b"w0"):
        text.write_bytes(content)
        for options in ([], ["--per-word"], ["-o", "lines.tsv"]):
            runs = []
            for file in (text, "-"):
                typed(content)
                score = ["score", *kinds[kind], file, *options]
                printed = hstree(*score, "--json", "score.json", warns=True).out
                result = json.loads((tmp_path / "score.json").read_text())
                del result["corpus"]["name"]
                written = (tmp_path / "lines.tsv").read_bytes() if "-o" in options else b""
                runs.append((printed, result, written))
            assert runs[0] == runs[1]


@pytest.mark.usefixtures("model")
def test_lines_that_were_read_before_are_called_out(hstree, typed, corpus):
    typed(corpus.read_bytes())
    ran = hstree("score", "model", "-", warns=True)
    assert any(
        "trained or validated on lines 1 to 180 of standard input" in w for w in ran.warnings
    )


class Endless(io.RawIOBase):
    """So many bytes of text, in small reads."""

    def __init__(self, n_bytes):
        self.left = n_bytes

    def readable(self):
        return True

    def readinto(self, buffer):
        block = b"w0 w1 zebra w2\n" * 200
        n = min(len(buffer), len(block), self.left)
        buffer[:n] = block[:n]
        self.left -= n
        return n


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("command", ["score", "predict"])
def test_memory_does_not_grow_with_the_lines(hstree, monkeypatch, command):
    monkeypatch.setattr(streams, "CHUNK", 2 * streams.BATCH)
    monkeypatch.setattr(streams.TextStream.look_ahead, "__defaults__", (5_000,))
    monkeypatch.setattr("hstree.data.sources.BLOCK_BYTES", 5_000)
    outputs = {"score": ["-o", "out.tsv"], "predict": ["-k", "1"]}
    peaks = []
    for n_lines in (1_500, 1_500, 10_000):  # what is loaded once is loaded
        raw = Endless(15 * n_lines)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(raw)))
        with monkeypatch.context() as patch, open(os.devnull, "w") as nowhere:
            patch.setattr("sys.stdout", nowhere)
            tracemalloc.start()
            hstree(command, "model", "-", *outputs[command], warns=True)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert raw.left == 0
    assert peaks[2] < 1.3 * peaks[1] + 500_000


def test_each_line_is_a_context(hstree, model, typed, tmp_path):
    typed(b'w0 w1\n\nw2 zebra zebra "')
    ran = hstree("predict", model, "-", "-k", "2", "--json", "a.json", warns=True)
    contexts = [["w0", "w1"], [], ["w2", "zebra", "zebra", '"']]
    expected = library.load_model(model).predict(contexts, 2)
    head, *rows = [line.split("\t") for line in ran.out.splitlines()]
    assert head == ["line", "rank", "word", "probability"]
    assert rows == [
        [str(line), str(rank), word, f"{probability:.6f}"]
        for line, answer in enumerate(expected, 1)
        for rank, (word, probability) in enumerate(answer, 1)
    ]
    found = json.loads((tmp_path / "a.json").read_text())
    assert [answer["context"] for answer in found["predictions"]] == contexts
    assert [answer["unknown"] for answer in found["predictions"]] == [[], [], ["zebra", '"']]
    answers = [[word["word"] for word in answer["words"]] for answer in found["predictions"]]
    assert answers == [[word for word, _ in answer] for answer in expected]
    assert ran.warnings == [
        "hstree: warning: not in the vocabulary of the model, read as <unk>: 2 words in the input"
    ]
    typed(b"")
    assert hstree("predict", model, "-").out == "line\trank\tword\tprobability\n"


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("content", "saying"),
    [
        (b"", "standard input is empty"),
        (b"x y\n", "no word of standard input is among the"),
        (b"w0\n\xff\n", "byte 0xff at line 2"),
        (b"w0\n" * 3_000 + b"w1 \0\n", "a NUL byte at line 3001"),
    ],
    ids=["empty", "unknown", "latin", "NUL"],
)
def test_what_is_no_text_is_refused(refused, typed, content, saying):
    typed(content)
    refused("score", "model", "-", "--json", "s.json", saying=saying)
    typed(content)
    refused("score", "model", "-", "-o", "s.tsv", saying=saying)


@pytest.fixture
def started(program, model, tmp_path):
    """Start the program with a pipe on its standard input, and wait for what it prints first."""
    command, environment = program

    def start(*arguments):
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen([*command, *arguments], cwd=tmp_path, env=environment, **pipes)

    return start


@pytest.mark.skipif(os.name == "nt", reason="signals of Windows differ")
@pytest.mark.parametrize("command", ["score", "predict"])
def test_ctrl_c_ends_a_command_that_waits_for_lines(started, command):
    running = started(command, "model", "-")
    if command == "predict":
        running.stdin.write(b"w0 w1\n")
        running.stdin.flush()
        assert running.stdout.readline() == b"line\trank\tword\tprobability\n"
        assert running.stdout.readline().startswith(b"1\t1\t")  # answered before the end of input
    else:
        time.sleep(3)
    began = time.monotonic()
    running.send_signal(signal.SIGINT)
    running.wait(timeout=20)
    assert time.monotonic() - began < 5  # it may still be loading
    assert running.returncode == 130
    assert running.stderr.read() == b"hstree: error: interrupted\n"
    running.stdin.close()


@pytest.mark.skipif(os.name == "nt", reason="pipes of Windows differ")
@pytest.mark.parametrize(
    "arguments",
    [["score", "model", "-"], ["score", "model", "-", "--per-word"], ["predict", "model", "-"]],
)
def test_a_reader_that_has_enough_ends_an_endless_input(started, arguments):
    running = started(*arguments)
    feeder = subprocess.Popen(["yes", "w0 w1 w2 w3 w4 w5 w6 w7 w8"], stdout=running.stdin)
    running.stdin.close()
    assert running.stdout.readline()
    running.stdout.close()
    assert running.wait(timeout=60) == 0
    assert running.stderr.read() == b""
    feeder.wait(timeout=20)

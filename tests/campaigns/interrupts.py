"""Ctrl-C at many moments of a command: how soon it ends, and with which lines.

A command is started again and again and gets SIGINT ever later, until it ends by itself before. It
must end with status 130 and one line beside those of its progress. Where other programs keep the
cores busy, seconds on the clock say little: an end is also soon if the process computed for less
than `LIMIT` after the signal.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hstree.data.vectors import WordVectors
from tests.texts import write_lines

#: Seconds within which a command must end.
LIMIT = 1.0
#: Seconds after which no further moment is tried.
LONGEST = 90.0
#: Seconds that a process is waited for.
PATIENCE = 120.0
#: Maximum number of signals to one command, one after each line that announces a delay.
SIGNALS = 3
#: Beginning of that line.
WARNING = "warning: interrupted"

TRAINING = "--epochs 3 --dim 50"
COMMANDS = {
    "vocab": "vocab text.txt -o v.tsv --force",
    "build huffman": "build -m huffman text.txt -o t.json.gz --force",
    "build gmm": "build -m gmm vectors.npy -o t.npz --force",
    "build gmm, several trees": "build -m 'gmm epsilon=0.4 trees=2' vectors.npy -o t.npz --force",
    "build kmeans": "build -m kmeans vectors.npy -o t.npz --force",
    "build semantic": "build -m semantic vectors.npy -o t.npz --force",
    "build linkage": "build -m linkage fewer.npy -o t.npz --force",
    "build wordnet": "build -m wordnet text.txt -o t.npz --force",
    "build classes": "build -m classes text.txt -o t.npz --force",
    "build classes, brown": (
        "build -m 'classes cluster_by=brown n_classes=500' text.txt -o t.npz --force"
    ),
    "build classes, vectors": (
        "build -m 'classes cluster_by=vectors vectors_file=vectors.npy' text.txt -o t.npz --force"
    ),
    "evaluate": f"evaluate tree.json text.txt {TRAINING} --save m --vectors-out w.npy",
    "evaluate flat": f"evaluate flat text.txt {TRAINING}",
    "embed": "embed text.txt --epochs 3 -o e.vec --force",
    "bootstrap": f"bootstrap text.txt {TRAINING} -o b",
    "compare": f"compare text.txt huffman gmm kn5 {TRAINING} -o d",
    "compare by halving": "compare text.txt --minutes 2 --dim 50 -o d",
    "report": "report compared",
    "predict": "predict model w7 -k 10",
    "sample": "sample model --words 100000",
    "score": "score model text.txt -o s.tsv",
    "check": "check tree.json",
    "stats": "stats tree.json",
    "demo": "demo",
    "convert .npz": "convert tree.json c.npz --force",
    "convert .graphml": "convert tree.json c.graphml --force",
}
#: Commands that prepare the inputs.
PREPARATIONS = (
    "vocab text.txt --train-split-only -o vocab.tsv",
    "build -m huffman vocab.tsv -o tree.json",
    "evaluate tree.json small.txt --epochs 1 --dim 50 --save model",
    "compare small.txt huffman random --epochs 1 --dim 4 -o compared",
)


class Answer(NamedTuple):
    """The end of a command after SIGINT."""

    command: str
    after: float  #: seconds from its start to the signal
    seconds: float  #: seconds on the clock from the signal to its end
    busy: float  #: seconds that its threads computed in this time
    fault: str  #: description; empty without a fault

    @property
    def is_slow(self):
        return min(self.seconds, self.busy) > LIMIT

    def __str__(self):
        fault = self.fault or ("SLOW" if self.is_slow else "")
        times = f"{self.after:6.1f} s: {self.seconds:5.2f} s, computing {self.busy:5.2f} s"
        return f"{times}  {self.command}  {fault}".rstrip()


def make_inputs(folder, n_words, tokens):
    """Write texts over many words by Zipf's law, vectors, a vocabulary, a tree and a model."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, n_words + 1)
    ids = np.concatenate([np.arange(n_words), rng.choice(n_words, tokens, p=share / share.sum())])
    words = [f"w{i}" for i in range(n_words)]
    lines = [" ".join(f"w{i}" for i in line.tolist()) for line in np.array_split(ids, 50_000)]
    write_lines(folder / "text.txt", lines)
    write_lines(folder / "small.txt", lines[-3000:])
    # vectors around 300 centres
    rows = rng.normal(size=(300, 100))[rng.integers(0, 300, n_words)]
    rows = (rows + rng.normal(size=(n_words, 100))).astype(np.float32)
    counts = np.bincount(ids, minlength=n_words)
    for name, n in (("vectors.npy", n_words), ("vectors.vec", n_words), ("fewer.npy", 20_000)):
        WordVectors(words[:n], rows[:n], counts=counts[:n]).save(folder / name)
    for line in PREPARATIONS:
        if start(folder, folder, line).wait() != 0:
            raise RuntimeError(f"{line}: {read_errors(folder)}")


def start(folder, work, line):
    """Start a command in the folder `work`; its streams go to files in `folder`."""
    kernels = os.environ.get("NUMBA_CACHE_DIR") or str(Path.home() / ".cache/hstree/kernels")
    return subprocess.Popen(
        [sys.executable, "-m", "hstree_cli", *shlex.split(line)],
        cwd=work,
        # a cache of its own, and kernels that were compiled before
        env=os.environ | {"HSTREE_CACHE": str(folder / "cache"), "NUMBA_CACHE_DIR": kernels},
        stdout=(folder / "output").open("w"),
        stderr=(folder / "errors").open("w"),
        # a job in the background ignores SIGINT
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def read_errors(folder):
    return (folder / "errors").read_text()


def answers(folder, command, ratio):
    """Interrupt a command ever later, until it ends by itself before."""
    after = 0.5
    while after < LONGEST and (answer := interrupt(folder, command, after)):
        yield answer
        after *= ratio


def interrupt(folder, command, after):
    """Start a command, interrupt it, and wait for its end; None if it had ended before."""
    work = folder / "work"
    # a stopped training would continue from these
    for leftover in (work, folder / "cache" / "evaluations", folder / "cache" / "checkpoints"):
        shutil.rmtree(leftover, ignore_errors=True)
    work.mkdir()
    for path in folder.iterdir():
        if path != work:
            (work / path.name).symlink_to(path)
    process = start(folder, work, COMMANDS[command])
    try:
        if process.wait(timeout=after) != 0:
            raise RuntimeError(f"{command}: {process.returncode}: {read_errors(folder)}")
        return None
    except subprocess.TimeoutExpired:
        pass
    # A training announces that it stops after a long batch, and that it scores what it has. The
    # next signal ends that.
    times = [send_signal(process, folder) for _ in range(SIGNALS) if process.poll() is None]
    process.kill()
    if process.wait() == 0 or not times:  # it was at its end
        return None
    seconds = max(seconds for seconds, _ in times)
    busy = max(busy for _, busy in times)
    return Answer(command, after, seconds, busy, find_fault(process.returncode, folder))


def find_fault(status, folder):
    """Return the fault in the status or the lines of an interrupted command."""
    text = read_errors(folder)
    # Before the program begins and after its end, the signal ends Python itself, without a line.
    # Results are the last output of a command.
    is_outside = not text or (folder / "output").stat().st_size > 0
    if status == -signal.SIGINT and "interrupted" not in text and is_outside:
        return ""
    if status != 130:
        return f"status {status}: {text.strip()}"
    if not 1 <= text.count("interrupted") <= SIGNALS:
        return f"not one line: {text.strip()!r}"
    return ""


def send_signal(process, folder):
    """Send SIGINT; return the seconds until a warning or the end, on the clock and computing."""
    before = computed(process.pid)
    began = time.perf_counter()
    warnings = read_errors(folder).count(WARNING)
    process.send_signal(signal.SIGINT)
    used = before
    while process.poll() is None and time.perf_counter() < began + PATIENCE:
        used = max(used, computed(process.pid))
        if read_errors(folder).count(WARNING) > warnings:
            break
        time.sleep(0.005)
    return time.perf_counter() - began, used - before


def computed(pid):
    """Return the seconds that a process has computed on Linux, elsewhere NaN."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0 if Path("/proc/self/stat").exists() else float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

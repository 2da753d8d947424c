"""Ctrl-C at many moments of every command, on 100,000 words: how long until it has ended.

Each command is started again and again and gets SIGINT ever later, until it ends by itself before.
It must end with status 130 and one line beside those of its progress. `python -m tests.campaigns
--only interrupts` takes an hour or two on two cores; `--commands NAME ...` picks some.
Where other programs keep the cores busy, the seconds on the clock say little: an answer is also
quick if the process computed for less than `LIMIT` after the signal.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hstree.data.vectors import WordVectors
from tests.texts import write_lines

#: Seconds within which a command must end.
LIMIT = 1.0
#: Seconds to the first signal, and the ratio of each moment to the one before.
FIRST, RATIO = 0.5, 1.4
#: Seconds after which no further moment is tried.
LONGEST = 90.0
#: Seconds that a process is waited for.
PATIENCE = 120.0

TRAINING = "--epochs 3 --dim 50"
#: Methods of trees, and what they are built from.
BUILDS = {
    "vocab.tsv": ("random", "balanced", "huffman", "flat"),
    "vectors.npy": (
        *("gmm", "gmm epsilon=0.4 trees=2", "kmeans", "kmeans arity=100", "kmeans balanced=true"),
        "semantic",
    ),
    "fewer.npy": ("linkage", "linkage criterion=centroid"),
    "text.txt": (
        *("wordnet", "classes", "classes cluster_by=brown n_classes=500"),
        "classes cluster_by=vectors vectors_file=vectors.npy",
        "classes cluster_by=frequency",
    ),
}
COMMANDS = {
    "vocab": "vocab text.txt -o v.tsv --force",
    **{
        f"build {method}": f"build -m '{method}' {source} -o t.npz --force"
        for source, methods in BUILDS.items()
        for method in methods
    },
    "build gmm, text vectors": "build -m gmm vectors.vec -o t.json --force",
    "build huffman, json": "build -m huffman text.txt -o t.json.gz --force",
    "evaluate": f"evaluate tree.json text.txt {TRAINING} --save m --vectors-out w.npy",
    "evaluate flat": f"evaluate flat text.txt {TRAINING}",
    "evaluate cnn": f"evaluate cnn text.txt {TRAINING}",
    "embed": "embed text.txt --epochs 3 -o e.vec --force",
    "bootstrap": f"bootstrap text.txt {TRAINING} -o b",
    "compare": f"compare text.txt huffman gmm kn5 {TRAINING} -o d",
    "compare by halving": "compare text.txt --minutes 2 --dim 50 -o d",
    "compare approximations": "compare text.txt approximations --seconds 20 --dim 50 -o s",
    "report": "report compared",
    "predict": "predict model w7 -k 10",
    "predict two": "predict model --with model w7",
    "sample": "sample model --words 100000",
    "score": "score model text.txt -o s.tsv",
    "check": "check tree.json",
    "stats": "stats tree.json",
    "show": "show tree.json --word w99000",
    "methods": "methods",
    "demo": "demo",
    **{
        f"convert .{ending}": f"convert tree.json c.{ending} --force"
        for ending in ("npz", "json.gz", "dot", "graphml", "nwk", "napkinxc")
    },
}
#: Most signals that a command is sent, one after each line that says so.
SIGNALS = 3
#: What a command says that goes on for a moment.
WARNED = "warning: interrupted"
#: What prepares the inputs.
PREPARATIONS = (
    "vocab text.txt --train-split-only -o vocab.tsv",
    "build -m huffman vocab.tsv -o tree.json",
    "evaluate tree.json small.txt --epochs 1 --dim 50 --save model",
    "compare small.txt huffman random --epochs 1 --dim 4 -o compared",
)


class Answer(NamedTuple):
    """What a command did after SIGINT."""

    command: str
    after: float  #: seconds from its start to the signal
    seconds: float  #: from the signal to its end, on the clock,
    busy: float  #: and computed by its threads
    fault: str  #: what was wrong; empty if nothing was

    @property
    def took(self):
        """Seconds to its end, without those in which it had to wait for a core."""
        return min(self.seconds, self.busy)

    @property
    def is_slow(self):
        return self.took > LIMIT

    def __str__(self):
        wrong = self.fault or ("SLOW" if self.is_slow else "")
        times = f"{self.after:6.1f} s: {self.seconds:5.2f} s, computing {self.busy:5.2f} s"
        return f"{times}  {self.command}  {wrong}".rstrip()


def inputs(folder, n_words=100_000, tokens=2_000_000):
    """Write texts over many words by Zipf's law, vectors, a vocabulary, a tree and a model."""
    rng = np.random.default_rng(0)
    chance = 1 / np.arange(1, n_words + 1)
    drawn = rng.choice(n_words, tokens, p=chance / chance.sum())
    ids = np.concatenate([np.arange(n_words), drawn])
    lines = [" ".join(f"w{i}" for i in line.tolist()) for line in np.array_split(ids, 50_000)]
    write_lines(folder / "text.txt", lines)
    write_lines(folder / "small.txt", lines[-3000:])
    kinds = rng.normal(size=(300, 100))[rng.integers(0, 300, n_words)]
    rows = (kinds + rng.normal(size=(n_words, 100))).astype(np.float32)
    words, counts = [f"w{i}" for i in range(n_words)], np.bincount(ids, minlength=n_words)
    for name, n in (("vectors.npy", n_words), ("vectors.vec", n_words), ("fewer.npy", 20_000)):
        WordVectors(words[:n], rows[:n], counts=counts[:n]).save(folder / name)
    for line in PREPARATIONS:
        ran = started(folder, folder, line)
        if ran.wait() != 0:
            raise RuntimeError(f"{line}: {said(folder)}")


def started(folder, work, line):
    """Start a command in the folder `work`; what it writes to its streams goes into `folder`."""
    kernels = os.environ.get("NUMBA_CACHE_DIR") or str(Path.home() / ".cache/hstree/kernels")
    return subprocess.Popen(
        [sys.executable, "-m", "hstree_cli", *shlex.split(line)],
        cwd=work,
        # a cache of its own, and kernels that were compiled before
        env=os.environ | {"HSTREE_CACHE": str(folder / "cache"), "NUMBA_CACHE_DIR": kernels},
        stdout=(folder / "printed").open("w"),
        stderr=(folder / "said").open("w"),
        # a job in the background ignores SIGINT
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def said(folder):
    return (folder / "said").read_text()


def answers(folder, command, *, first=FIRST, ratio=RATIO):
    """Interrupt a command ever later, until it ends by itself before."""
    after = first
    while after < LONGEST and (answer := interrupted(folder, command, after)):
        yield answer
        after *= ratio


def interrupted(folder, command, after):
    """Start a command, interrupt it, and wait for its end; None if it had ended before."""
    work = folder / "work"
    # What a stopped training would go on from
    for left in (work, folder / "cache" / "evaluations", folder / "cache" / "checkpoints"):
        shutil.rmtree(left, ignore_errors=True)
    work.mkdir()
    for path in folder.iterdir():
        if path != work:
            (work / path.name).symlink_to(path)
    process = started(folder, work, COMMANDS[command])
    try:
        if process.wait(timeout=after) != 0:
            raise RuntimeError(f"{command}: ended with {process.returncode}: {said(folder)}")
        return None
    except subprocess.TimeoutExpired:
        pass
    # A training says so that stops after a long batch, and one that was stopped, which scores what
    # it has; the next signal ends that.
    times = [signalled(process, folder) for _ in range(SIGNALS) if process.poll() is None]
    process.kill()
    if process.wait() == 0 or not times:  # it was at its end
        return None
    seconds, busy = map(max, zip(*times, strict=True))
    text, fault = said(folder), ""
    # Before the program begins and after its end, the signal ends Python itself, without a word.
    # Results are the last that a command prints.
    is_outside = not text or (folder / "printed").stat().st_size > 0
    outside = process.returncode == -signal.SIGINT and "interrupted" not in text and is_outside
    if process.returncode != 130 and not outside:
        fault = f"status {process.returncode}: {text.strip()}"
    elif not outside and not 1 <= text.count("interrupted") <= SIGNALS:
        fault = f"not one line: {text.strip()!r}"
    return Answer(command, after, seconds, busy, fault)


def signalled(process, folder):
    """Send SIGINT; return the seconds until another line says so or the process ends, as busy."""
    before, start, told = computed(process.pid), time.perf_counter(), said(folder)
    process.send_signal(signal.SIGINT)
    used = before
    while process.poll() is None and time.perf_counter() < start + PATIENCE:
        used = max(used, computed(process.pid))
        if said(folder).count(WARNED) > told.count(WARNED):
            break
        time.sleep(0.005)
    return time.perf_counter() - start, used - before


def computed(pid):
    """Return the seconds that a process has computed, as Linux counts them; else no number."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0 if Path("/proc/self/stat").exists() else float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(commands):
    """Interrupt commands, print how long they took to end; return how many were slow or wrong."""
    found = []
    with tempfile.TemporaryDirectory(prefix="hstree-interrupts-") as folder:
        inputs(Path(folder))
        for command in commands:
            for answer in answers(Path(folder), command):
                print(answer, flush=True)
                found.append(answer)
    bad = sum(bool(answer.fault or answer.is_slow) for answer in found)
    slowest = ", ".join(f"{s:.2f}" for s in sorted(answer.took for answer in found)[-5:])
    print(
        f"{len(found)} interrupts of {len({a.command for a in found})} commands: the slowest "
        f"answers took {slowest} s; {bad} slow or wrong"
    )
    return bad

"""Writing commands killed at random moments: what they leave is whole, and the rerun mends it.

A kill comes at a random operation on files (a file opened, renamed, removed, ...): between two of
them, nothing changes that stays.
"""

import csv
import io
import json
import multiprocessing
import os
import random
import re
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hstree import LanguageModel, WordVectors, formats
from hstree._files import PREFIX, current_file
from hstree.errors import HstreeError
from hstree.experiments import results
from hstree.experiments.run import CHECKPOINTS
from hstree.models.files import TREE_FILES
from tests.texts import markov_lines, write_lines

QUICK = "--epochs 1 --dim 4 --context 2 --force"
#: What is killed; the same of old.txt, old.json, ... has written to the same places before.
COMMANDS = {
    "vocab": "vocab new.txt -o v.tsv --force",
    "build": "build -m huffman new.txt -o t.npz --force",
    "build classes": "build -m classes new.txt -o t.npz --force",
    "build gmm": "build -m 'gmm trees=3' new.npy -o t.npz --force",
    "evaluate": f"evaluate new.json new.txt {QUICK} --save m --json r.json --vectors-out w.npy",
    "bootstrap": f"bootstrap new.txt kmeans {QUICK} -o b",
    "embed .vec": "embed new.txt --epochs 1 --dim 4 -o e.vec --force",
    "embed .npy": "embed new.txt --epochs 1 --dim 4 -o e.npy --force",
    "convert .napkinxc": "convert new.json c.napkinxc --force",
    "convert .npy": "convert new.json l.npy --to linkage --force",
    "convert .json.gz": "convert new.json c.json.gz --force",
    "score": "score model new.txt -o s.tsv --json s.json",
    "stats": "stats new.json --json st.json",
    "compare": f"compare new.txt huffman flat kn2 {QUICK} -o d",
}
#: Those that write files that belong together.
OF_SEVERAL_FILES = ("evaluate", "bootstrap", "embed .npy", "convert .napkinxc", "compare")

#: Values that differ each time: measured times, and what follows from them.
_TIMES = re.compile("seconds|times_flat|per_second|checksum|^(steps|vectors|choice|words)$")
#: Files that show measured times.
_SHOW_TIMES = ("report.html", "speeds.json")
#: Arrays that are not word vectors.
_NLLS = {"test_nll.npy", "valid_nll.npy"}
#: What a run removes first, so that it never speaks of the files of another one.
_REMOVED_FIRST = {"result.json", *_NLLS}
_EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "shutil.rmtree"}
#: What takes time to import.
_PRELOADED = [
    *("hstree_cli.main", "hstree_cli.inputs", "hstree_cli.results", "hstree.formats"),
    *("hstree.experiments.bootstrap", "hstree.builders.kmeans", "hstree.report"),
]


def run(kills: int, seed: int = 0, commands: Sequence[str] = OF_SEVERAL_FILES) -> list[str]:
    """Kill commands in turn; return the faults: what was lost, damaged, left behind, ..."""
    faults: list[str] = []
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="hstree-kills-") as folder:
        inputs = _inputs(Path(folder))
        subjects = [_Subject(name, inputs, Path(folder)) for name in commands]
        for number in range(kills):
            faults += _faults_of_kill(subjects[number % len(subjects)], draw)
    return faults


def _inputs(folder: Path) -> Path:
    """Make what the commands read: texts over other words, their trees, a model."""
    inputs = folder / "inputs"
    inputs.mkdir()
    for name, n_words in (("new", 12), ("old", 9)):
        lines, _ = markov_lines(1500, seed=n_words, n_words=n_words)
        write_lines(inputs / f"{name}.txt", lines)
        rows = np.random.default_rng(n_words).normal(size=(10 * n_words, 3))
        WordVectors([f"w{i}" for i in range(len(rows))], rows).save(inputs / f"{name}.npy")
        _must(inputs, f"build -m huffman {name}.txt -o {name}.json")
    _must(inputs, f"evaluate new.json new.txt {QUICK} --save model")
    shutil.rmtree(inputs / "cache")
    return inputs


class _Subject:
    """A command with what it writes, and what stood there before."""

    def __init__(self, name: str, inputs: Path, folder: Path) -> None:
        self.name, self.inputs = name, inputs
        self.line = COMMANDS[name]
        self.work, self.old_folder = folder / "work", folder / f"old-{name}"
        shutil.copytree(inputs, self.old_folder)
        _must(self.old_folder, self.line.replace("new", "old"))
        shutil.rmtree(self.old_folder / "cache", ignore_errors=True)
        self.known = set(_files(inputs))
        self.old = self.outputs(self.old_folder)
        self.prepare(over_old=False)
        self.operations = _must(self.work, self.line)
        self.new = self.outputs(self.work)

    def prepare(self, over_old: bool) -> None:
        """Lay out the folder that the command runs in."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.old_folder if over_old else self.inputs, self.work)

    def outputs(self, folder: Path) -> dict[str, tuple[bytes | None, ...]]:
        """Return the content of each output: of one file, or of those that belong together."""
        found: dict[str, tuple[bytes | None, ...]] = {}
        pair = ".napkinxc" if "napkinxc" in self.name else ".npy"
        for name in _files(folder):
            path = folder / name
            if name in self.known or name.startswith("cache") or path.name == ".lock":
                continue
            if _is_temporary(name) or path.is_dir():  # one that is still empty
                continue
            if path.name in TREE_FILES and path.parent.name == (
                "m" if self.name == "evaluate" else "model"
            ):
                model = tuple(_content(current_file(path.parent, file)) for file in TREE_FILES)
                found[f"{Path(name).parent}/"] = model
            elif name.endswith((".labels.tsv", pair)) and path.name not in _NLLS:
                stem = name.removesuffix(".labels.tsv").removesuffix(pair)
                both = (f"{stem}{pair}", f"{stem}.labels.tsv")
                found[both[0]] = tuple(_content(folder / file) for file in both)
            else:
                found[name] = (_content(path),)
        return found


def _faults_of_kill(subject: _Subject, draw: random.Random) -> Iterator[str]:
    """Kill a command once, look at what it left, run it again; yield what is wrong."""
    while True:  # until it was there to be killed
        over_old = draw.random() < 0.7
        subject.prepare(over_old)
        operation = draw.randint(1, subject.operations)
        if _run(subject.work, subject.line, operation)[0] == -signal.SIGKILL:
            break
    what = f"{subject.name}, {'over old' if over_old else 'anew'}, operation {operation}"
    old = subject.old if over_old else {}
    left = subject.outputs(subject.work)
    for name in sorted({*old, *left}):
        if CHECKPOINTS in Path(name).parts:  # the rerun goes on from there, and removes them
            continue
        if fault := _fault(subject, name, left.get(name), old.get(name)):
            yield f"{what}: {name}: {fault}"
    status, _, said = _run(subject.work, subject.line)
    if status != 0:
        yield f"{what}: the rerun ended with {status}: {said}"
    elif (again := subject.outputs(subject.work)) != subject.new:
        names = [n for n in {*again, *subject.new} if again.get(n) != subject.new.get(n)]
        yield f"{what}: after the rerun others than without a kill: {names}"
    for name in filter(_is_temporary, _files(subject.work)):
        if not name.startswith("cache"):  # removed when another text is encoded there
            yield f"{what}: {name} is left"


def _is_so_far(path: Path, new: bytes) -> bool:
    """Return whether a file has the results of finished rows, while others are to come."""
    if path.name == results.JSON:
        comparison = results.load(path)
        return bool(comparison.pending) or len(comparison.candidates) < len(
            json.loads(new)["candidates"]
        )
    if path.name != results.CSV:
        return False
    with path.open(newline="") as file:
        return len(list(csv.DictReader(file))) < len(json.loads(new))


def _fault(
    subject: _Subject,
    name: str,
    left: tuple[bytes | None, ...] | None,
    old: tuple[bytes | None, ...] | None,
) -> str:
    """Say what is wrong with what stands at an output's place; nothing where all is well."""
    if left is None:
        return "" if old is None or Path(name).name in _REMOVED_FIRST else "lost"
    unreadable = ""
    try:
        _read(subject.work / name)
    except HstreeError as error:
        unreadable = f"unreadable: {error}"
    if left in (old, subject.new.get(name)):
        return unreadable
    if _is_so_far(subject.work / name, (subject.new.get(name) or (b"",))[0] or b""):
        return ""
    if len(left) == 1 or name.endswith("/"):
        return "neither old nor new"
    if None in left:
        return "" if old is None else "half of a pair is lost"
    # Two files that are not of each other are refused.
    return "" if unreadable else "files of different runs, read as if they belonged together"


def _read(path: Path) -> None:
    """Read an output as the library does."""
    if path.is_dir():
        LanguageModel.load(path)
    elif path.suffix == ".napkinxc" or path.name == "l.npy":
        formats.read(path, "napkinxc" if path.suffix == ".napkinxc" else "linkage")
    elif path.suffix == ".npy" and path.name not in _NLLS:
        WordVectors.read(path)


def _content(path: Path) -> bytes | None:
    """Return the bytes of a file without the figures that are others each time."""
    if not path.exists():
        return None
    data = path.read_bytes()
    if path.name == results.CSV:
        rows = [_timeless(row) for row in csv.DictReader(io.StringIO(data.decode()))]
        return json.dumps(rows).encode()
    if path.name in _SHOW_TIMES:
        return data[-8:]
    if path.suffix == ".json":
        return json.dumps(_timeless(json.loads(data))).encode()
    return data


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        if "times_flat" in value:  # a measured speed
            return {}
        return {key: _timeless(inner) for key, inner in value.items() if not _TIMES.search(key)}
    return [_timeless(inner) for inner in value] if isinstance(value, list) else value


def _files(folder: Path) -> Iterator[str]:
    """Yield the files and empty folders below a folder, relative to it."""
    for home, folders, files in os.walk(folder):
        empty = [] if folders or files else [""]
        for name in [*files, *empty]:
            yield os.path.relpath(os.path.join(home, name), folder)


def _is_temporary(name: str) -> bool:
    return any(part.startswith(PREFIX) for part in Path(name).parts)


def _must(folder: Path, line: str) -> int:
    """Run a command to its end; return how many operations on files it did."""
    status, operations, said = _run(folder, line)
    if status != 0:
        raise RuntimeError(f"{line}: {said}")
    return operations


def _run(folder: Path, line: str, operation: int | None = None) -> tuple[int | None, int, str]:
    """Run a command in a process of its own; return its status, operations and what it said.

    It is killed at one of its operations on files, where that is given.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    operations = context.Value("l", 0)
    errors = folder.parent / "errors"
    process = context.Process(target=_child, args=(folder, line, operations, operation, errors))
    process.start()
    process.join()
    status = process.exitcode
    process.close()
    return status, operations.value, errors.read_text() if errors.exists() else ""


def _child(folder: Path, line: str, operations: Any, operation: int | None, errors: Path) -> None:
    """Be the program, and count operations on files."""
    os.chdir(folder)
    os.environ |= {"HSTREE_CACHE": "cache", "HSTREE_FAST": "0"}  # compiling takes longer
    for number, path in ((1, os.devnull), (2, errors)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _EVENTS:
            return
        if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
            return
        operations.value += 1
        if operations.value == operation:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    from hstree.training import checkpoints
    from hstree_cli.main import exit_status

    checkpoints.MINUTES = 0  # one after every step
    status = exit_status(shlex.split(line))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)

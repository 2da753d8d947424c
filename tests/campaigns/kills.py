"""Writing commands killed at random moments: all files are whole, and the rerun repairs the rest.

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
from pathlib import Path

import numpy as np

from hstree import LanguageModel, WordVectors, formats
from hstree._files import PREFIX, current_file
from hstree.errors import HstreeError
from hstree.experiments import results
from hstree.experiments.store import CHECKPOINTS
from hstree.layers.saved import TREE_FILES
from tests.texts import markov_lines, write_lines

QUICK = "--epochs 1 --dim 4 --context 2 --force"
#: Commands to kill. The same command on old.txt, old.json, ... has written the same files before.
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
SEVERAL_FILES = ("evaluate", "bootstrap", "embed .npy", "convert .napkinxc", "compare")

#: Keys of values that differ each time: measured times, and values that follow from them.
TIMES = re.compile(
    "timings|seconds|times_flat|per_second|checksum|^(vectors|choice|recommendation)$"
)
#: Files that contain measured times.
TIMED_FILES = ("report.html", "speeds.json")
#: Arrays that are not word vectors.
NLLS = {"test_nll.npy", "valid_nll.npy"}
#: Files that a run removes first, so that they never belong to another one.
REMOVED_FIRST = {"result.json", *NLLS}
#: Audit events of operations on files.
EVENTS = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "shutil.rmtree"}
#: Modules that take time to import.
PRELOADED = [
    "hstree_cli.main",
    "hstree_cli.inputs",
    "hstree_cli.results",
    "hstree.formats",
    "hstree.experiments.bootstrap",
    "hstree.builders.kmeans",
    "hstree.report",
]


def run(kills, commands):
    """Kill commands in turn; return the faults: files that are lost, damaged, left behind, ..."""
    faults = []
    draw = random.Random(0)
    with tempfile.TemporaryDirectory(prefix="hstree-kills-") as folder:
        inputs = make_inputs(Path(folder))
        subjects = [Subject(name, inputs, Path(folder)) for name in commands]
        for number in range(kills):
            faults += kill(subjects[number % len(subjects)], draw)
    return faults


def make_inputs(folder):
    """Make the inputs of the commands: texts over different words, their trees, a model."""
    inputs = folder / "inputs"
    inputs.mkdir()
    for name, n_words in (("new", 12), ("old", 9)):
        lines, _ = markov_lines(1500, seed=n_words, n_words=n_words)
        write_lines(inputs / f"{name}.txt", lines)
        rows = np.random.default_rng(n_words).normal(size=(10 * n_words, 3))
        WordVectors([f"w{i}" for i in range(len(rows))], rows).save(inputs / f"{name}.npy")
        run_to_end(inputs, f"build -m huffman {name}.txt -o {name}.json")
    run_to_end(inputs, f"evaluate new.json new.txt {QUICK} --save model")
    shutil.rmtree(inputs / "cache")
    return inputs


class Subject:
    """A command with its outputs, and those of an earlier run on other inputs."""

    def __init__(self, name, inputs, folder):
        self.name = name
        self.inputs = inputs
        self.line = COMMANDS[name]
        self.work = folder / "work"
        self.old_folder = folder / f"old-{name}"
        self.input_files = set(list_files(inputs))
        shutil.copytree(inputs, self.old_folder)
        run_to_end(self.old_folder, self.line.replace("new", "old"))
        shutil.rmtree(self.old_folder / "cache", ignore_errors=True)
        self.old = self.outputs(self.old_folder)
        self.prepare(is_over_old=False)
        self.operations = run_to_end(self.work, self.line)
        self.new = self.outputs(self.work)

    def prepare(self, is_over_old):
        """Make the folder that the command runs in."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.old_folder if is_over_old else self.inputs, self.work)

    def outputs(self, folder):
        """Return the contents of each output: of one file, or of files that belong together."""
        model = "m" if self.name == "evaluate" else "model"
        ending = ".napkinxc" if "napkinxc" in self.name else ".npy"
        outputs = {}
        for name in list_files(folder):
            path = folder / name
            is_other = name in self.input_files or name.startswith("cache") or is_temporary(name)
            if is_other or path.name == ".lock" or path.is_dir():
                continue
            if path.name in TREE_FILES and path.parent.name == model:
                files = [current_file(path.parent, file) for file in TREE_FILES]
                name = f"{Path(name).parent}/"
            elif name.endswith((".labels.tsv", ending)) and path.name not in NLLS:
                stem = name.removesuffix(".labels.tsv").removesuffix(ending)
                name = f"{stem}{ending}"
                files = [folder / name, folder / f"{stem}.labels.tsv"]
            else:
                files = [path]
            outputs[name] = tuple(map(read_timeless, files))
        return outputs


def kill(subject, draw):
    """Kill a command once, check the files that it left, run it again; yield the faults."""
    status = None
    while status != -signal.SIGKILL:  # it may end before
        is_over_old = draw.random() < 0.7
        subject.prepare(is_over_old)
        operation = draw.randint(1, subject.operations)
        status, _, _ = run_command(subject.work, subject.line, operation)
    title = f"{subject.name}, {'over old' if is_over_old else 'new'}, operation {operation}"
    old = subject.old if is_over_old else {}
    left = subject.outputs(subject.work)
    for name in sorted({*old, *left}):
        if CHECKPOINTS in Path(name).parts:  # the rerun continues from there, and removes them
            continue
        if fault := find_fault(subject, name, left.get(name), old.get(name)):
            yield f"{title}: {name}: {fault}"
    status, _, errors = run_command(subject.work, subject.line)
    if status != 0:
        yield f"{title}: the rerun ended with {status}: {errors}"
    elif (again := subject.outputs(subject.work)) != subject.new:
        names = [n for n in {*again, *subject.new} if again.get(n) != subject.new.get(n)]
        yield f"{title}: the rerun has other files than a run without a kill: {names}"
    for name in filter(is_temporary, list_files(subject.work)):
        if not name.startswith("cache"):  # removed when another text is encoded there
            yield f"{title}: {name} is left"


def find_fault(subject, name, left, old):
    """Return the fault in an output that was left, given the old one; empty without a fault."""
    new = subject.new.get(name)
    if left is None:
        return "" if old is None or Path(name).name in REMOVED_FIRST else "lost"
    unreadable = ""
    try:
        read_output(subject.work / name)
    except HstreeError as error:
        unreadable = f"unreadable: {error}"
    if left in (old, new):
        return unreadable
    if new is not None and is_partial(subject.work / name, new[0]):
        return ""
    if len(left) == 1 or name.endswith("/"):
        return "neither old nor new"
    if None in left:
        return "" if old is None else "half of a pair is lost"
    # two files that do not belong together must be refused
    return "" if unreadable else "files of different runs are read as a pair"


def is_partial(path, new):
    """Return whether a file has the results of some candidates, while others are pending."""
    if path.name == results.JSON:
        comparison = results.load(path)
        n_candidates = len(json.loads(new)["candidates"])
        return bool(comparison.pending) or len(comparison.candidates) < n_candidates
    if path.name != results.CSV:
        return False
    with path.open(newline="") as file:
        return len(list(csv.DictReader(file))) < len(json.loads(new))


def read_output(path):
    """Read an output as the library does."""
    if path.is_dir():
        LanguageModel.load(path)
    elif path.suffix == ".napkinxc" or path.name == "l.npy":
        formats.read(path, "napkinxc" if path.suffix == ".napkinxc" else "linkage")
    elif path.suffix == ".npy" and path.name not in NLLS:
        WordVectors.read(path)


def read_timeless(path):
    """Return the bytes of a file without measured times; None if there is no file."""
    if not path.exists():
        return None
    data = path.read_bytes()
    if path.name == results.CSV:
        rows = csv.DictReader(io.StringIO(data.decode()))
        return json.dumps([without_times(row) for row in rows]).encode()
    if path.name in TIMED_FILES:
        return data[-8:]
    if path.suffix == ".json":
        return json.dumps(without_times(json.loads(data))).encode()
    return data


def without_times(value):
    """Return a JSON value without measured times."""
    if isinstance(value, list):
        return [without_times(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if "times_flat" in value:  # a measured speed
        return {}
    return {key: without_times(inner) for key, inner in value.items() if not TIMES.search(key)}


def list_files(folder):
    """Yield the files and empty folders below a folder, relative to it."""
    for home, folders, files in os.walk(folder):
        for name in files or ([] if folders else [""]):
            yield os.path.relpath(os.path.join(home, name), folder)


def is_temporary(name):
    return any(part.startswith(PREFIX) for part in Path(name).parts)


def run_to_end(folder, line):
    """Run a command to its end; return its number of operations on files."""
    status, operations, errors = run_command(folder, line)
    if status != 0:
        raise RuntimeError(f"{line}: {errors}")
    return operations


def run_command(folder, line, operation=None):
    """Run a command in its own process; return its status, number of operations and stderr.

    It is killed at the given operation on files.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    operations = context.Value("l", 0)
    errors = folder.parent / "errors"
    process = context.Process(target=be_program, args=(folder, line, operations, operation, errors))
    process.start()
    process.join()
    status = process.exitcode
    process.close()
    return status, operations.value, errors.read_text() if errors.exists() else ""


def be_program(folder, line, operations, operation, errors):
    """Run the program in this process, and count its operations on files."""
    os.chdir(folder)
    os.environ |= {"HSTREE_CACHE": "cache", "HSTREE_FAST": "0"}  # compiling takes longer
    for number, path in ((1, os.devnull), (2, errors)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)

    def count(event, arguments):
        is_reading = event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if event in EVENTS and not is_reading:
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

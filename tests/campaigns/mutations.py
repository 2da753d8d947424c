"""Mutated files over all readers: each is read as a valid object or refused in one line, quickly.

Worker processes write a mutated file, read it and count the outcomes: a valid object, an
`HstreeError` of one line, or a fault. An alarm ends readers that compute longer than `PATIENCE`,
and the address space is limited to 1 GB more than the worker had before. File i of a reader depends
on the seed, the reader's name and i alone. A process that dies, or that no alarm reaches, ends the
campaign; the file that it read stays in the folder for faults.
"""

import faulthandler
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

from hstree.errors import HstreeError
from tests.campaigns.mutators import mutated
from tests.campaigns.readers import READERS, with_hashes

#: CPU seconds that a file may take.
PATIENCE = 5.0
#: Seconds on the clock after which a worker that no alarm has reached prints its position and ends.
LOST = 60.0
#: Bytes that a worker may need above those that it has when it begins.
MEMORY = 1 << 30
OUTCOMES = ("accepted", "refused", "tracebacks", "hangs", "above 1 GB")
FAULTS = OUTCOMES[2:]
#: Faults of a reader whose files are kept; further ones are only counted.
KEPT = 20
#: Files that a worker reads in one call.
PART = 500


class Hang(BaseException):
    """The alarm; no Exception, which readers may turn into an error of their own."""


def run(n_files, seed, keep, processes=1):
    """Read mutated files; return {reader: counts of outcomes}.

    Files of faults and their tracebacks go into the folder `keep`.
    """
    shares = sum(reader.share for reader in READERS.values())
    counts = {name: Counter() for name in READERS}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, limit_memory) as pool:
        parts = []
        for name, reader in READERS.items():
            n = max(1, round(n_files * reader.share / shares))
            for first in range(0, n, PART):
                numbers = range(first, min(first + PART, n))
                parts.append((name, pool.submit(read_part, name, numbers, seed, keep)))
        for name, part in parts:
            counts[name].update(part.result())
    return counts


def limit_memory():
    """Limit the address space to `MEMORY` more than it is, where the system has its size."""
    warnings.simplefilter("error", RuntimeWarning)
    statm = Path("/proc/self/statm")
    if statm.exists():
        size = int(statm.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))


def read_part(name, numbers, seed, keep):
    """Read some mutated files of a reader, and count the outcomes."""
    keep.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="running-", dir=keep))
    reader = READERS[name]
    valid = reader.seeds(folder)
    names = list(valid[0])
    counts = Counter()
    for number in numbers:
        for file in names:
            (folder / file).unlink(missing_ok=True)
        for file, content in mutated_files(Random(f"{seed} {name} {number}"), valid).items():
            (folder / file).write_bytes(content)
        faulthandler.dump_traceback_later(LOST, exit=True)
        result, text = outcome(reader, folder / names[0])
        counts[result] += 1
        if result in FAULTS and counts[result] <= KEPT:
            (folder / "raised").write_text(text, errors="backslashreplace")
            shutil.copytree(folder, keep / f"{name} {number}".replace(" ", "-"))
            last = (text.strip().splitlines() or [""])[-1]
            print(f"{name}, file {number}: {last[:200]}", file=sys.stderr)
    faulthandler.cancel_dump_traceback_later()
    shutil.rmtree(folder)
    return counts


def mutated_files(random, valid):
    """Return a set of valid files, one of them mutated."""
    files = random.choice(valid)
    name = random.choice(list(files))
    if random.random() < 0.005:  # one file instead of another
        content = random.choice(list(random.choice(valid).values()))
    else:
        content = mutated(random, name, files[name])
    files = {**files, name: content}
    if "weights.safetensors" in files and random.random() < 0.9:
        files = with_hashes(files)
    if len(files) > 1 and random.random() < 0.01:
        del files[name]
    return files


def outcome(reader, path):
    """Read a file; return one of `OUTCOMES` and the traceback of a fault."""

    def hang(*_):
        raise Hang

    before = signal.signal(signal.SIGPROF, hang)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        try:
            value = reader.read(path)
        except HstreeError as error:
            if ran_out_of_memory(error):
                raise
            if len(str(error).splitlines()) != 1:
                return "tracebacks", f"not one line: {error}"
            return "refused", ""
        reader.check(value)
        return "accepted", ""
    except Hang:
        return "hangs", traceback.format_exc()
    except Exception as error:
        fault = "above 1 GB" if ran_out_of_memory(error) else "tracebacks"
        return fault, traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def ran_out_of_memory(error):
    """Return whether an error, or one of its causes, is a MemoryError."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False

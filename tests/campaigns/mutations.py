"""Mutated files over all readers: each is read as a valid object or refused in one line, quickly.

Worker processes write a mutated file, read it and count what happens: a valid object, an
`HstreeError` of one line, or a fault. An alarm ends what computes longer than `PATIENCE`, the
address space is limited to 1 GB more than the worker had before. File i of a reader depends on the
seed, the reader's name and i alone. A process that dies, or that no alarm reaches, ends the
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
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

from hstree.errors import HstreeError
from tests.campaigns.mutators import mutated
from tests.campaigns.readers import READERS, Files, Reader, with_hashes

#: Seconds that a file may compute: a busy machine is no hang.
PATIENCE = 5.0
#: Seconds on the clock after which a worker ends that no alarm has reached, and says where it was.
LOST = 60.0
#: Bytes that a worker may need above what it has when it begins.
MEMORY = 1 << 30
COUNTS = ("accepted", "refused", "tracebacks", "hangs", "above 1 GB")
BAD = COUNTS[2:]
#: Faults of a reader that are kept; more are only counted.
KEPT = 20
#: Files that a worker reads in one go.
PART = 500


class Hang(BaseException):
    """The alarm; no Exception, which readers may turn into an error of their own."""


def run(n_files: int, seed: int, keep: Path, processes: int = 1) -> dict[str, Counter[str]]:
    """Read mutated files; return what happened by reader.

    Files of faults and what was raised go into the folder `keep`, made where there is a fault.
    """
    shares = sum(reader.share for reader in READERS.values())
    happened = {name: Counter[str]() for name in READERS}
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _begin)
    with pool:
        parts = []
        for name, reader in READERS.items():
            n = max(1, round(n_files * reader.share / shares))
            for first in range(0, n, PART):
                numbers = range(first, min(first + PART, n))
                parts.append((name, pool.submit(_read_part, name, numbers, seed, keep)))
        for name, part in parts:
            happened[name].update(part.result())
    return happened


def table(happened: dict[str, Counter[str]]) -> str:
    """Return the counts of each reader, and of all, as lines."""
    rows = happened | {"all": sum(happened.values(), Counter())}
    lines = ["".join(f"{title:>12}" for title in ("reader".ljust(20), *COUNTS, "seconds"))]
    for name, counts in rows.items():
        cells = [*(f"{counts[what]:,}" for what in COUNTS), f"{counts['ms'] / 1000:.1f}"]
        lines.append(name.ljust(20) + "".join(f"{cell:>12}" for cell in cells))
    return "\n".join(lines)


class Mutants:
    """The mutated files of a reader, by number."""

    def __init__(self, reader: Reader, seed: int, folder: Path) -> None:
        self.reader, self._seed = reader, seed
        self._seeds = reader.seeds(folder)
        self.names = list(self._seeds[0])

    def files(self, number: int) -> Files:
        random = Random(f"{self._seed} {self.reader.name} {number}")
        files = random.choice(self._seeds)
        name = random.choice(list(files))
        if random.random() < 0.005:  # one file in the place of another
            content = random.choice(list(random.choice(self._seeds).values()))
        else:
            content = mutated(random, name, files[name])
        files = {**files, name: content}
        if "weights.safetensors" in files and random.random() < 0.9:
            files = with_hashes(files)
        if len(files) > 1 and random.random() < 0.01:
            del files[name]
        return files


def _begin() -> None:
    """Limit the address space to `MEMORY` more than it is, where the system tells how much."""
    warnings.simplefilter("error", RuntimeWarning)
    if (told := Path("/proc/self/statm")).exists():
        size = int(told.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))


def _read_part(name: str, numbers: Sequence[int], seed: int, keep: Path) -> Counter[str]:
    """Read some mutated files of a reader, and count what happens."""
    keep.mkdir(parents=True, exist_ok=True)
    folder, counts = Path(tempfile.mkdtemp(prefix="running-", dir=keep)), Counter[str]()
    mutants = Mutants(READERS[name], seed, folder)
    for number in numbers:
        files = mutants.files(number)
        for file in mutants.names:
            (folder / file).unlink(missing_ok=True)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        faulthandler.dump_traceback_later(LOST, exit=True)
        began = time.process_time()
        what, text = outcome(mutants.reader, folder / mutants.names[0])
        counts.update({what: 1, "ms": 1000 * (time.process_time() - began)})
        if what in BAD and counts[what] <= KEPT:
            (folder / "raised").write_text(text, errors="backslashreplace")
            shutil.copytree(folder, keep / f"{name} {number}".replace(" ", "-"))
            last = (text.strip().splitlines() or [""])[-1]
            print(f"{name}, file {number}: {last[:200]}", file=sys.stderr)
    faulthandler.cancel_dump_traceback_later()
    shutil.rmtree(folder)
    return counts


def outcome(reader: Reader, path: Path) -> tuple[str, str]:
    """Read a file; return which of `COUNTS` that is, and what was raised."""

    def hang(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, hang)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        try:
            found = reader.read(path)
        except HstreeError as error:
            if _is_of_memory(error):
                raise
            if len(str(error).splitlines()) != 1:
                return "tracebacks", f"not one line: {error}"
            return "refused", ""
        reader.check(found)
        return "accepted", ""
    except Hang:
        return "hangs", traceback.format_exc()
    except Exception as error:
        return "above 1 GB" if _is_of_memory(error) else "tracebacks", traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _is_of_memory(error: BaseException | None) -> bool:
    """Say whether memory ran out, here or in what an error was made of."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False

"""Mutated files over all readers: each is read as a valid object or refused in one line, quickly.

Worker processes write a mutated file, read it and count what happens: a valid object, an
`HstreeError` of one line, or a fault. An alarm ends what computes longer than `PATIENCE`, the
address space is limited to 1 GB more than the worker had before, and where nothing comes back, the
parent kills the worker and goes on with the next file. File i of a reader depends on the seed, the
reader's name and i alone.
"""

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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from hstree.errors import HstreeError
from tests.campaigns.mutators import mutated
from tests.campaigns.readers import READERS, Files, Reader, with_hashes

FULL, SHORT = 1_000_000, 50_000
#: Seconds that a file may compute: a busy machine is no hang.
PATIENCE = 5.0
#: Seconds on the clock after which a worker is killed that no alarm has reached.
LOST = 60.0
#: Bytes that a worker may need above what it has when it begins.
MEMORY = 1 << 30
COUNTS = ("files", "accepted", "refused", "tracebacks", "hangs", "above 1 GB")
BAD = COUNTS[3:]
#: Faults of a reader that are kept; more are only counted.
KEPT = 20

_NANOSECONDS = len(COUNTS)
_WIDTH = len(COUNTS) + 1


@dataclass
class Row:
    """What happened to the files of a reader."""

    name: str
    counts: dict[str, int]
    seconds: float

    @property
    def bad(self) -> int:
        return sum(self.counts[name] for name in BAD)


class Hang(BaseException):
    """The alarm; no Exception, which readers may turn into an error of their own."""


def run(full: bool, seed: int, *, files: int = 0, processes: int = 1, keep: Path) -> list[Row]:
    """Read mutated files.

    Parameters
    ----------
    full : bool
        1,000,000 files, else 50,000.
    seed : int
    files : int, optional
        Another number of them.
    processes : int
    keep : path
        A folder for the files of faults and what was raised; made where there is a fault.
    """
    total = files or (FULL if full else SHORT)
    shares = sum(reader.share for reader in READERS.values())
    numbers = [max(1, round(total * reader.share / shares)) for reader in READERS.values()]
    workers = [Worker(k, processes, numbers, seed, keep) for k in range(processes)]
    while sum(worker.attend() for worker in workers):
        time.sleep(0.05)
    rows = []
    for place, name in enumerate(READERS):
        sums = [sum(worker.count(place, what) for worker in workers) for what in range(_WIDTH)]
        counts = dict(zip(COUNTS, sums, strict=False))
        rows.append(Row(name, counts, sums[_NANOSECONDS] / 1e9))
    return rows


def table(rows: list[Row]) -> str:
    """Return the counts of each reader, and of all, as lines."""
    names = ("reader", *COUNTS, "seconds")
    cells = [(row.name, *row.counts.values(), round(row.seconds, 1)) for row in rows]
    sums = [sum(column) for column in list(zip(*cells, strict=True))[1:]]
    cells.append(("all", *sums[:-1], round(sums[-1], 1)))
    text = [names, *([f"{cell:,}" if cell != line[0] else cell for cell in line] for line in cells)]
    width = [max(map(len, column)) for column in zip(*text, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(size) if place else cell.ljust(size)
            for place, (cell, size) in enumerate(zip(line, width, strict=True))
        )
        for line in text
    )


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


class Worker:
    """A process that reads every n-th file; started again behind a file that it did not survive."""

    def __init__(self, k: int, n: int, numbers: list[int], seed: int, keep: Path) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._counts = self._context.Array("q", len(READERS) * _WIDTH, lock=False)
        # The reader and the file that is read, and when it began; -1 before the first.
        self._at = self._context.Array("d", [0, k - n, -1.0], lock=False)
        self._arguments = (n, numbers, seed, keep)
        self._process = self._start()

    def count(self, reader: int, what: int) -> int:
        return self._counts[reader * _WIDTH + what]

    def attend(self) -> bool:
        """See to the process; False when it has read all files."""
        reader, number, began = int(self._at[0]), int(self._at[1]), self._at[2]
        if self._process.is_alive():
            if began < 0 or time.monotonic() - began < LOST:
                return True
            self._process.kill()
            self._process.join()
            self._lost(reader, number, COUNTS.index("hangs"), "did not come back")
        elif self._process.exitcode == 0:
            return False
        elif began < 0:
            raise RuntimeError("a worker ended before its first file")
        else:
            what = f"ended the process: exit code {self._process.exitcode}"
            self._lost(reader, number, COUNTS.index("tracebacks"), what)
        self._at[2] = -1.0
        self._process = self._start()
        return True

    def _lost(self, reader: int, number: int, what: int, text: str) -> None:
        self._counts[reader * _WIDTH] += 1
        self._counts[reader * _WIDTH + what] += 1
        _, _, seed, keep = self._arguments
        name = list(READERS)[reader]
        with tempfile.TemporaryDirectory() as folder:
            files = Mutants(READERS[name], seed, Path(folder)).files(number)
        _keep(keep, name, number, files, text)

    def _start(self):
        process = self._context.Process(
            target=_work, args=(self._counts, self._at, *self._arguments), daemon=True
        )
        process.start()
        return process


def _work(counts, at, n: int, numbers: list[int], seed: int, keep: Path) -> None:
    """Read this worker's files, from the one behind that in `at`."""
    home = Path(tempfile.mkdtemp(prefix="hstree-", dir=_memory_folder()))
    warnings.simplefilter("error", RuntimeWarning)
    try:
        mutants = [
            Mutants(reader, seed, _made(home / str(place)))
            for place, reader in enumerate(READERS.values())
        ]
        _limit_memory()
        first, number = int(at[0]), int(at[1]) + n
        with alarms():
            for place in range(first, len(mutants)):
                start = number if place == first else number % n
                for i in range(start, numbers[place], n):
                    at[:] = (place, i, time.monotonic())
                    of_reader = counts[place * _WIDTH : (place + 1) * _WIDTH]
                    _count(of_reader, mutants[place], i, home / str(place), keep)
                    counts[place * _WIDTH : (place + 1) * _WIDTH] = of_reader
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _count(counts: list[int], mutants: Mutants, number: int, folder: Path, keep: Path) -> None:
    """Make a file, read it and count what happened."""
    files = mutants.files(number)
    for name in mutants.names:
        if name in files:
            (folder / name).write_bytes(files[name])
        else:
            (folder / name).unlink(missing_ok=True)
    began = time.process_time_ns()
    what, text = outcome(mutants.reader, folder / mutants.names[0])
    counts[_NANOSECONDS] += time.process_time_ns() - began
    counts[0] += 1
    counts[COUNTS.index(what)] += 1
    if what in BAD:
        _keep(keep, mutants.reader.name, number, files, text)


def outcome(reader: Reader, path: Path) -> tuple[str, str]:
    """Read a file; return which of `COUNTS` that is, and what was raised."""
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


def _is_of_memory(error: BaseException | None) -> bool:
    """Say whether memory ran out, here or in what an error was made of."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _keep(keep: Path, name: str, number: int, files: Files, text: str) -> None:
    """Keep the files of a fault and what was raised, if there are not many already."""
    home = keep / name.replace(" ", "-").replace(".", "")
    if home.exists() and len(list(home.iterdir())) >= KEPT:
        return
    folder = _made(home / str(number))
    (folder / "raised").write_text(text, errors="backslashreplace")
    for file, content in files.items():
        (folder / file).write_bytes(content)
    print(
        f"{name}, file {number}: {(text.strip().splitlines() or [''])[-1][:200]}", file=sys.stderr
    )


def _limit_memory() -> None:
    """Limit the address space to `MEMORY` more than it is, where the system tells how much."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return
    limit = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _memory_folder() -> str | None:
    """Return a folder in memory where there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def alarms():
    """Let the alarm of `outcome` raise `Hang`."""

    def hang(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, hang)
    try:
        yield
    finally:
        signal.signal(signal.SIGPROF, before)

"""Seconds, peak memory of all processes and disk of large inputs: a table for each kind.

Every row is measured in a process of its own, with those that it starts. Inputs are made once, from
a seed, and kept in a folder beside the results (``--folder``).

    python -m benchmarks.scale --what texts --tokens 100000000 --jobs 1 2
    python -m benchmarks.scale --what jobs --corpus ptb.train.txt --jobs 1 2
"""

from __future__ import annotations

import multiprocessing
import resource
import shutil
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import table
from hstree._compiled import limited_threads
from hstree._files import replacing
from hstree.data.corpus import Corpus
from hstree.data.windows import Windows
from hstree.experiments.compare import compare
from hstree.experiments.results import Epochs

#: Different words of the text, its words a line, and words that are drawn at a time.
TYPES, LINE, DRAWN = 10**6, 20, 1 << 20
#: Rows of the comparison that jobs are measured by.
ROWS = ("huffman", "random", "gmm", "gmm epsilon=0.4", "huffman + ngrams", "sampled")
#: Seconds between two looks at the memory of the processes.
LOOK = 0.02


def main() -> None:
    parser = table.parser(__doc__)
    parser.add_argument("--what", choices=TABLES, default="texts")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--tokens", type=int, nargs="+", default=[10**7], metavar="N")
    parser.add_argument("--folder", type=Path, default=Path("scale"), metavar="DIR")
    parser.add_argument("--corpus", default="builtin:python", metavar="FILE", help="of jobs")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    table.report("scale", TABLES[options.what](options), options.json)


def texts(options: Namespace) -> Iterator[table.Row]:
    """Count and encode Zipf texts, from an empty cache folder; then read windows of them."""
    for tokens, jobs in product(options.tokens, options.jobs):
        path = zipf_text(options.folder / f"zipf-{tokens}.txt", tokens)
        cache = options.folder / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        read = cost(read_text, path, cache, jobs)
        megabytes = path.stat().st_size / 1e6
        disk = sum(file.stat().st_size for file in cache.iterdir()) / 2**20
        windows = cost(read_windows, path, cache)
        shutil.rmtree(cache)
        yield {
            "tokens": tokens,
            "jobs": jobs,
            "seconds": read["seconds"],
            "CPU s": read["CPU s"],
            "MB/s": megabytes / read["seconds"],
            "peak MiB": read["peak MiB"],
            "disk MiB": disk,
            "words": read["result"],
            "windows, peak MiB": windows["peak MiB"],
        }


def read_text(path: Path, cache: Path, jobs: int) -> int:
    """Count the words of a text, encode it and choose its vocabulary; return the words."""
    return len(Corpus.read(path, cache=cache, n_jobs=jobs).vocabulary)


def read_windows(path: Path, cache: Path) -> None:
    """Read windows of an encoded text in random order, as a training does; 20 million tokens."""
    batches = Windows(Corpus.read(path, cache=cache), 5).training_batches(
        10_000, np.random.default_rng(0)
    )
    for _ in islice(batches, 2_000):
        pass


def jobs(options: Namespace) -> Iterator[table.Row]:
    """Compare six rows on a text, with jobs of one thread each."""
    for n in options.jobs:
        folder = options.folder / "comparison"
        shutil.rmtree(folder, ignore_errors=True)
        spent = cost(compare_rows, options.corpus, folder, n)
        shutil.rmtree(folder)
        yield {
            "jobs": n,
            "seconds": spent["seconds"],
            "peak MiB": spent["peak MiB"],
            "test perplexities": spent["result"],
        }


def compare_rows(corpus: str, folder: Path, n_jobs: int) -> str:
    """Train six rows for two epochs; return their test perplexities."""
    how = {"stop": Epochs(2), "n_jobs": n_jobs, "speed_rounds": 0}
    with limited_threads(n_jobs), threadpool_limits(1):
        rows = compare(Corpus.read(corpus), ROWS, folder, **how).rows
    return " ".join(f"{row.test:.3f}" for row in rows)


def zipf_text(path: Path, tokens: int) -> Path:
    """Write a text of words drawn by Zipf's law, about 5.6 bytes each, unless it is there."""
    if path.exists():
        return path
    share = np.cumsum(1 / np.arange(1, TYPES + 1))
    words = np.char.add("w", np.arange(TYPES).astype("U")).astype("S")
    letters = np.char.add(words, b" ").view(np.uint8).reshape(TYPES, -1)  # padded by zeros
    ends = np.char.add(words, b"\n").view(np.uint8).reshape(TYPES, -1)
    rng = np.random.default_rng(0)
    with replacing(path) as file:
        for first in range(0, tokens, LINE * DRAWN):
            n = min(LINE * DRAWN, tokens - first)
            for a in range(0, n, DRAWN // LINE * LINE):
                drawn = rng.random(min(n - a, DRAWN // LINE * LINE)) * share[-1]
                rank = np.searchsorted(share, drawn)
                text = letters[rank]
                text[LINE - 1 :: LINE] = ends[rank[LINE - 1 :: LINE]]
                file.write(text[text != 0].tobytes())
    return path


def cost(work: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Run ``work(*arguments)``, a function of a module, in a process of its own.

    Returns its "result", its "seconds", its "CPU s" with those of all threads and ended children,
    and "peak MiB": the largest sum of what this process and those that it starts hold at one time,
    pages that they share counted once for each.
    """
    context = multiprocessing.get_context("spawn")
    answer, question = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(question, work, arguments))
    process.start()
    question.close()
    peak = 0
    while not answer.poll(LOOK):
        peak = max(peak, sum(map(_resident, _family(process.pid or 0))))
    try:
        return {**answer.recv(), "peak MiB": peak / 2**10}
    finally:
        process.join()


def _answer(pipe: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    began = time.perf_counter()
    result = work(*arguments)
    seconds = time.perf_counter() - began
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in used)
    pipe.send({"result": result, "seconds": seconds, "CPU s": cpu})


def _family(pid: int) -> list[int]:
    """Return a process and all that it started, and these; Linux alone."""
    children = [
        int(child)
        for task in Path(f"/proc/{pid}/task").glob("*/children")
        for child in _text(task).split()
    ]
    return [pid, *(one for child in children for one in _family(child))]


def _resident(pid: int) -> int:
    """Return the memory of a process in KiB, pages of libraries and mapped files included."""
    _, _, rest = _text(Path(f"/proc/{pid}/status")).partition("VmRSS:")
    return int(rest.split()[0]) if rest else 0


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # the process has ended
        return ""


#: What can be measured: a function of the options that yields rows.
TABLES: dict[str, Callable[[Namespace], Iterator[table.Row]]] = {"texts": texts, "jobs": jobs}

if __name__ == "__main__":
    main()

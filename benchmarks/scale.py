"""Seconds, peak memory of all processes and disk of large inputs: a table for each kind.

Every row is measured in its own process, with those that it starts. Such a process imports only
the modules that its row needs, since others would count as its memory. Inputs are made once, from a
seed, and kept in a folder (``--folder``).

    python -m benchmarks.scale --what texts --tokens 100000000
    python -m benchmarks.scale --what jobs --corpus ptb.train.txt --jobs 1 2
    python -m benchmarks.scale --what trees --labels 1000000 --jobs 2
"""

from __future__ import annotations

import multiprocessing
import resource
import shutil
import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

import hstree
from benchmarks import common
from hstree._files import replacing
from hstree.data.corpus import Corpus
from hstree.data.windows import ContextBatches

#: Different words of the text, its words a line, and words that are drawn at a time.
TYPES, LINE, DRAWN = 10**6, 20, 1 << 20
#: Candidates of the comparison that jobs are measured by.
CANDIDATES = ("huffman", "random", "gmm", "gmm epsilon=0.4", "huffman + ngrams", "sampled")
#: Seconds between two looks at the memory of the processes.
LOOK = 0.02


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--what", choices=TABLES, default="texts")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--tokens", type=int, nargs="+", default=[10**7], metavar="N")
    parser.add_argument("--labels", type=int, nargs="+", default=[10**5, 10**6], metavar="N")
    parser.add_argument("--dim", type=int, default=64, metavar="N", help="of vectors")
    parser.add_argument("--folder", type=Path, default=Path("scale"), metavar="DIR")
    parser.add_argument("--corpus", default="builtin:python", metavar="FILE", help="of jobs")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    common.report("scale", TABLES[options.what](options), options.json)


def texts(options: Namespace) -> Iterator[common.Row]:
    """Count and encode Zipf texts, from an empty cache folder; then read windows of them."""
    for tokens in options.tokens:
        path = zipf_text(options.folder / f"zipf-{tokens}.txt", tokens)
        cache = options.folder / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        read = cost(read_text, path, cache)
        megabytes = path.stat().st_size / 1e6
        disk = sum(file.stat().st_size for file in cache.iterdir()) / 2**20
        windows = cost(read_windows, path, cache)
        shutil.rmtree(cache)
        yield {
            "tokens": tokens,
            "seconds": read["seconds"],
            "CPU s": read["CPU s"],
            "MB/s": megabytes / read["seconds"],
            "peak MiB": read["peak MiB"],
            "disk MiB": disk,
            "words": read["result"],
            "windows, peak MiB": windows["peak MiB"],
        }


def read_text(path: Path, cache: Path) -> int:
    """Count the words of a text, encode it and choose its vocabulary; return the words."""
    return len(Corpus.read(path, min_count=1, cache=cache).vocabulary)


def read_windows(path: Path, cache: Path) -> None:
    """Read windows of an encoded text in random order, as a training does; 20 million tokens."""
    batches = ContextBatches(Corpus.read(path, min_count=1, cache=cache), 5).training_batches(
        10_000, np.random.default_rng(0)
    )
    for _ in islice(batches, 2_000):
        pass


def jobs(options: Namespace) -> Iterator[common.Row]:
    """Compare six candidates on a text, with jobs of one thread each."""
    for n in options.jobs:
        folder = options.folder / "comparison"
        shutil.rmtree(folder, ignore_errors=True)
        spent = cost(compare_candidates, options.corpus, folder, n)
        shutil.rmtree(folder)
        yield {
            "jobs": n,
            "seconds": spent["seconds"],
            "peak MiB": spent["peak MiB"],
            "test perplexities": spent["result"],
        }


def compare_candidates(corpus: str, folder: Path, n_jobs: int) -> str:
    """Train six candidates for two epochs; return their test perplexities."""
    from joblib.externals.loky import get_reusable_executor
    from threadpoolctl import threadpool_limits

    from hstree._parallel import limited_threads
    from hstree.experiments.compare import compare
    from hstree.experiments.results import Epochs

    options = {"stop": Epochs(2), "n_jobs": n_jobs, "speed_rounds": 0}
    with limited_threads(n_jobs), threadpool_limits(1):
        rows = compare(Corpus.read(corpus, min_count=1), CANDIDATES, folder, **options).candidates
    if n_jobs > 1:  # a process of multiprocessing waits for idle workers otherwise
        get_reusable_executor().shutdown(kill_workers=True)
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


def trees(options: Namespace) -> Iterator[common.Row]:
    """Build trees, write, read and check one, and train the layer of it."""
    for labels in options.labels:
        vectors = normal_vectors(options.folder, labels, options.dim)
        tree = options.folder / f"huffman-{labels}.npz"
        steps: list[tuple[str, int, Callable[..., Any], Any]] = [
            ("huffman", 1, build_huffman, (labels, tree)),
            ("write .npz", 1, write_tree, (tree, options.folder / "again.npz")),
            ("read and check .npz", 1, read_tree, (tree,)),
            ("targets/s of its layer", 1, layer_speed, (labels,)),
            *(
                (method, jobs, build_divided, (method, vectors, jobs))
                for method, jobs in product(("gmm", "kmeans"), options.jobs)
            ),
        ]
        for step, jobs, work, arguments in steps:
            measured = cost(work, *arguments)
            yield {
                "labels": labels,
                "step": step,
                "jobs": jobs,
                "seconds": measured["seconds" if work is build_divided else "result"],
                "CPU s": measured["CPU s"],
                "peak MiB": measured["peak MiB"],
                "disk MiB": tree.stat().st_size / 2**20,
            }


def normal_vectors(folder: Path, labels: int, dim: int) -> Path:
    """Write vectors around 1,000 centres, float32, unless they are there."""
    path = folder / f"vectors-{labels}-{dim}.npy"
    if not path.exists():
        rng = np.random.default_rng(0)
        centre = rng.standard_normal((1000, dim), np.float32)
        with replacing(path) as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (labels, dim)}
            np.lib.format.write_array_header_1_0(file, header)
            for first in range(0, labels, DRAWN):
                n = min(DRAWN, labels - first)
                rows = centre[rng.integers(1000, size=n)] + rng.standard_normal(
                    (n, dim), np.float32
                )
                file.write(rows.data)
    return path


def time_call(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call and its result."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def build_huffman(labels: int, path: Path) -> float:
    """Return the seconds of a tree over words whose counts follow Zipf's law; save it."""
    words = common.zipf_vocabulary(labels)
    seconds, tree = time_call(lambda: hstree.build("huffman", words))
    tree.save(path)
    return seconds


def write_tree(path: Path, again: Path) -> float:
    """Return the seconds of writing a tree."""
    tree = hstree.load(path)
    return time_call(lambda: tree.save(again))[0]


def read_tree(path: Path) -> float:
    """Return the seconds of reading a tree and checking it."""
    return time_call(lambda: hstree.load(path))[0]


def build_divided(method: str, path: Path, jobs: int) -> None:
    """Build a tree from the vectors of a file."""
    hstree.build(method, path, n_jobs=jobs)


def layer_speed(labels: int, batch: int = 4096, rounds: int = 7) -> float:
    """Return the targets a second of steps on a Huffman tree of row numbers; the median."""
    counts = common.zipf_counts(labels)
    rng, share = np.random.default_rng(0), counts / counts.sum()
    hidden = rng.standard_normal((batch, 100), np.float32)
    targets = rng.choice(labels, batch, p=share)
    step = common.tree_step(hstree.build("huffman", counts), hidden, targets)
    del counts, share
    step()  # compiles
    return batch / statistics.median(time_call(step)[0] for _ in range(rounds))


def cost(work: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Run ``work(*arguments)``, a function of a module, in a process of its own.

    Returns its "result", its "seconds", its "CPU s" with those of all threads and ended children,
    and "peak MiB": the largest memory of this process and those that it starts at one time,
    where pages that they share count once for each.
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
    if "joblib.externals.loky" in sys.modules:  # its idle workers would be waited for
        sys.modules["joblib.externals.loky"].get_reusable_executor().shutdown(wait=True)
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
    """Return the memory of a process in KiB, including pages of libraries and mapped files."""
    _, _, rest = _text(Path(f"/proc/{pid}/status")).partition("VmRSS:")
    return int(rest.split()[0]) if rest else 0


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # the process has ended
        return ""


#: Functions of the options, which measure and yield rows.
TABLES: dict[str, Callable[[Namespace], Iterator[common.Row]]] = {
    "texts": texts,
    "jobs": jobs,
    "trees": trees,
}

if __name__ == "__main__":
    main()

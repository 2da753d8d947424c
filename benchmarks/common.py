"""Code that the benchmarks share: tables, turns, processes, and labels by Zipf's law.

A benchmark prints its environment, then its rows as a markdown table, and writes them as JSON::

    options = common.parser(__doc__).parse_args()
    common.report("topk", rows, options.json)

Rows map columns to results. All have the columns of the first, or some of them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import hstree
from hstree._arrays import Int64, offsets
from hstree._files import write_json
from hstree._version import __version__
from hstree.data.vocabulary import Vocabulary

Row = Mapping[str, Any]
Step = Callable[[], object]
Clock = Callable[[], float]

#: Packages whose versions are printed.
PACKAGES = ("numpy", "scipy", "scikit-learn", "torch")


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a command line with ``--json FILE``, for a benchmark to add its own options to."""
    command = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write the rows as JSON too")
    return command


def environment() -> dict[str, Any]:
    """Return the versions and the number of cores of this process, on which results depend."""
    versions: dict[str, Any] = {"hstree": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions | {"cores": len(os.sched_getaffinity(0))}


def markdown(rows: Sequence[Row]) -> str:
    """Lay rows out as an aligned markdown table, with numbers to the right.

    >>> print(markdown([{"tree": "flat", "seconds": 1.5}, {"tree": "huffman", "seconds": 0.25}]))
    | tree    | seconds |
    |:--------|--------:|
    | flat    |    1.50 |
    | huffman |   0.250 |
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    numeric = [any(isinstance(row.get(column), int | float) for row in rows) for column in columns]

    def line(texts: Sequence[str]) -> str:
        padded = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(texts, widths, numeric, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    rule = (
        f"{'-' * (width + 1)}:" if right else f":{'-' * (width + 1)}"
        for width, right in zip(widths, numeric, strict=True)
    )
    return "\n".join([line(columns), f"|{'|'.join(rule)}|", *map(line, cells)])


def report(name: str, rows: Iterable[Row], json_path: Path | None = None) -> None:
    """Print a benchmark's table, and write it as JSON.

    Rows may be a generator that measures as it goes. Each is printed on standard error at once.
    """
    measured = []
    for row in rows:
        measured.append(row)
        print(", ".join(f"{key} {_cell(value)}" for key, value in row.items()), file=sys.stderr)
    where = environment()
    print(f"`python -m benchmarks.{name}`: {', '.join(f'{k} {v}' for k, v in where.items())}\n")
    print(markdown(measured))
    if json_path is not None:
        write_json(json_path, {"benchmark": name, "environment": where, "rows": measured})


def _cell(value: Any) -> str:
    """Write one cell, numbers with about three significant digits."""
    if value is None:
        return ""
    if not isinstance(value, float):
        return f"{value:,}" if type(value) is int else str(value)
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"


def take_turns(
    steps: Mapping[str, Step], rounds: int, clock: Clock = time.perf_counter
) -> dict[str, list[float]]:
    """Time one step of every contestant per round, after one that is not counted.

    A quick contestant takes several steps in a turn, for about a tenth of a second.
    """
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    repeats = {name: max(1, round(0.1 / timed(step, 1, clock))) for name, step in steps.items()}
    for _ in range(rounds):
        for name, step in steps.items():
            seconds[name].append(timed(step, repeats[name], clock))
    return seconds


def timed(step: Step, repeats: int, clock: Clock = time.perf_counter) -> float:
    """Return the mean seconds of a step."""
    start = clock()
    for _ in range(repeats):
        step()
    return (clock() - start) / repeats


def in_fork(function: Callable[..., Any], *arguments: Any, limit: float | None = None) -> Any:
    """Return the result of a function in a process that is forked, with all data, from this one.

    None when it fails, and prints its error, or takes longer than so many seconds.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(function(*arguments)))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(limit) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()


def zipf_counts(n_labels: int) -> Int64:
    """Return counts that follow Zipf's law, the largest first."""
    share = 1 / np.arange(1, n_labels + 1)
    return np.ceil(share * 1e8 / share.sum()).astype(np.int64)


def zipf_vocabulary(n_labels: int) -> Vocabulary:
    """Return labels whose counts follow Zipf's law, the most frequent first."""
    return Vocabulary([f"w{i}" for i in range(n_labels)], zipf_counts(n_labels))


def zipf_targets(vocabulary: Vocabulary, n: int, seed: int = 0) -> Int64:
    """Draw n targets by the labels' counts."""
    counts = vocabulary.counts
    return np.random.default_rng(seed).choice(len(counts), n, p=counts / counts.sum())


def class_tree(vocabulary: Vocabulary) -> hstree.Tree:
    """Return a two-level class tree: sqrt(V) classes of equal mass by the root of the counts."""
    from hstree.builders.classes.clustering import equal_mass_bins

    number = equal_mass_bins(np.sqrt(vocabulary.counts), round(len(vocabulary) ** 0.5))
    start = offsets(np.bincount(number))  # the words are in the order of their classes
    root: list[int] = []
    classes: list[Int64] = []
    for first, end in pairwise(start.tolist()):
        # a class of one word is that word
        root.append(~first if end == first + 1 else 1 + len(classes))
        if end > first + 1:
            classes.append(~np.arange(first, end))
    return hstree.Tree.from_children(vocabulary.words, [root, *classes], counts=vocabulary.counts)


def tree_step(tree: hstree.Tree, hidden: Any, targets: Any) -> Step:
    """Return one training step of hstree's layer on a tree."""
    from hstree.layers.hierarchical import HierarchicalSoftmax
    from hstree.training.adagrad import RowAdagrad

    layer = HierarchicalSoftmax(tree, hidden.shape[1])
    optimisers = {name: RowAdagrad(array) for name, array in layer.parameters().items()}

    def step() -> None:
        _, gradients = layer.loss(hidden, targets)
        for gradient in gradients.parameters:
            optimisers[gradient.name].step(gradient.rows, gradient.values, 0.1)

    return step

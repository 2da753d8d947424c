"""Seconds and peak memory to build, write, read and check a large tree.

    python -m benchmarks.trees [--labels 1000000] [--json FILE]

Counts fall as Zipf's law has them. Files are those of the Huffman tree. Every row is a separate
process, whose peak includes labels and interpreter.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.random  # NumPy loads it when it is first used, which would be timed

from benchmarks import table
from benchmarks.fresh import measured
from hstree.builders.balanced import balanced
from hstree.builders.flat import flat
from hstree.builders.huffman import huffman
from hstree.builders.random import random
from hstree.data.vocabulary import Vocabulary
from hstree.tree import Tree, load
from hstree.tree.codes import Codes
from hstree.tree.files import ENDINGS

BUILDERS: dict[str, Callable[[Vocabulary], Tree]] = {
    "huffman": huffman,
    "huffman, arity 4": partial(huffman, arity=4),
    "random": random,
    "balanced": balanced,
    "flat": flat,
}


def zipf_vocabulary(n_labels: int) -> Vocabulary:
    """Return words with counts 10^9 / rank."""
    words = [f"word{rank}" for rank in range(n_labels)]
    return Vocabulary(words, (1e9 / np.arange(1, n_labels + 1)).astype(np.int64))


def huffman_of(n_labels: int) -> Tree:
    return huffman(zipf_vocabulary(n_labels))


def save_into(folder: str, ending: str, tree: Tree) -> None:
    tree.save(Path(folder) / f"tree{ending}")


def rows(n_labels: int) -> Iterator[table.Row]:
    """Measure every step, each in a fresh process."""
    for name, builder in BUILDERS.items():
        yield {"step": f"build {name}"} | measured(zipf_vocabulary, builder, n_labels)
    with tempfile.TemporaryDirectory() as folder:
        for ending in ENDINGS:
            path = Path(folder) / f"tree{ending}"
            save = partial(save_into, folder, ending)
            yield {"step": f"write {ending}"} | measured(huffman_of, save, n_labels)
            size = path.stat().st_size / 1e6
            step = f"read and check {ending}"
            yield {"step": step} | measured(Path, load, path) | {"file_mb": size}
        yield {"step": "hash"} | measured(load, hash, path)
        yield {"step": "statistics"} | measured(load, Tree.stats, path)
        yield {"step": "codes"} | measured(load, Codes, path)


if __name__ == "__main__":
    command = table.parser(__doc__)
    command.add_argument("--labels", type=int, default=1_000_000, help="default 1,000,000")
    options = command.parse_args()
    table.report("trees", rows(options.labels), options.json)

"""A whole training step of the language model on real text, tree beside flat softmax.

The corpus is the Penn Treebank's training part under ``$HSTREE_TEST_DATA/ptb``, or any corpus
given. Medians over rounds in which the trees take turns.

    python -m benchmarks.training [CORPUS] [--json FILE]
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

import hstree
from benchmarks import table
from hstree.language_model import LanguageModel
from hstree.training import Trainer
from hstree.windows import Windows

#: Seconds that a tree trains for in one turn, about.
TURN = 1.0

METHODS = ("huffman", "balanced", "random", "flat")


def main() -> None:
    parser = table.parser(__doc__)
    ptb = os.path.join(os.environ.get("HSTREE_TEST_DATA", ""), "ptb", "ptb.train.txt")
    parser.add_argument("corpus", nargs="?", default=ptb)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[256, 4096])
    given = parser.parse_args()
    corpus = hstree.Corpus.read(given.corpus)
    rows = (row for size in given.batch_sizes for row in compare(corpus, size, given.rounds))
    table.report("training", rows, given.json)


def compare(corpus: hstree.Corpus, batch_size: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Measure the tokens a second of all trees at one batch size."""
    trees = {method: hstree.build(method, corpus) for method in METHODS}
    measured = speeds(trees, corpus, batch_size, rounds)
    for method in METHODS:
        ratios = [a / b for a, b in zip(measured[method], measured["flat"], strict=True)]
        yield {
            "batch": batch_size,
            "tree": method,
            "tokens/s": statistics.median(measured[method]),
            "times flat": statistics.median(ratios),
        }


def speeds(
    trees: Mapping[str, hstree.Tree], corpus: hstree.Corpus, batch_size: int, rounds: int
) -> dict[str, list[float]]:
    """Return the tokens a second of whole training steps, a figure a round for each tree.

    The trees take turns of `TURN` seconds, after a round that is not counted.
    """
    trainers = {}
    for name, tree in trees.items():
        model = LanguageModel(tree, batch_size=batch_size)
        batches = endless_batches(model.windows(corpus), batch_size)
        trainers[name] = (Trainer(model.model, model.layer, model.options), batches)
    steps = dict.fromkeys(trees, 2)
    found: dict[str, list[float]] = {name: [] for name in trees}
    for turn in range(rounds + 1):
        for name, (trainer, batches) in trainers.items():
            here = list(islice(batches, steps[name]))
            began = time.perf_counter()
            for contexts, targets, _ in here:
                trainer.step(contexts, targets, 0.1)
            seconds = time.perf_counter() - began
            if turn:
                found[name].append(sum(len(targets) for _, targets, _ in here) / seconds)
            else:
                steps[name] = max(2, int(len(here) / seconds * TURN))
    return found


def endless_batches(windows: Windows, size: int) -> Iterator[Any]:
    """Yield the batches of one shuffled epoch after the other."""
    rng = np.random.default_rng(0)
    while True:
        yield from windows.batches(size, rng)


if __name__ == "__main__":
    main()

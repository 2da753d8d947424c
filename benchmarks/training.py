"""A whole training step of the language model on real text, tree beside flat softmax.

The corpus is the Penn Treebank's training split under ``$HSTREE_TEST_DATA/ptb``, or any corpus
given. Medians over rounds in which the trees take turns.

    python -m benchmarks.training [CORPUS] [--json FILE]
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from typing import Any

import hstree
from benchmarks import table
from hstree.experiments.speed import training_turn

METHODS = ("huffman", "balanced", "random", "flat")


def main() -> None:
    parser = table.parser(__doc__)
    ptb = os.path.join(os.environ.get("HSTREE_TEST_DATA", ""), "ptb", "ptb.train.txt")
    parser.add_argument("corpus", nargs="?", default=ptb)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[256, 4096])
    options = parser.parse_args()
    corpus = hstree.Corpus.read(options.corpus)
    rows = (row for size in options.batch_sizes for row in compare(corpus, size, options.rounds))
    table.report("training", rows, options.json)


def compare(corpus: hstree.Corpus, batch_size: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Measure the tokens a second of all trees at one batch size."""
    trees = {method: hstree.build(method, corpus) for method in METHODS}
    measured: dict[str, list[float]] = {method: [] for method in METHODS}
    for _ in range(rounds):
        for method, tree in trees.items():
            measured[method].append(training_turn(tree, corpus, batch_size=batch_size))
    for method in METHODS:
        ratios = [a / b for a, b in zip(measured[method], measured["flat"], strict=True)]
        yield {
            "batch": batch_size,
            "tree": method,
            "tokens/s": statistics.median(measured[method]),
            "times flat": statistics.median(ratios),
        }


if __name__ == "__main__":
    main()

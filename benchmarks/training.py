"""A whole training step of the language model on real text, tree beside flat softmax.

The corpus is the Penn Treebank's training part under ``$HSTREE_TEST_DATA/ptb``, or any corpus
given. Medians over rounds in which the trees take turns.

    python -m benchmarks.training [CORPUS] [--json FILE]
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

import hstree
from benchmarks import table
from hstree.language_model import LanguageModel
from hstree.training import Trainer

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
    trainers = {}
    for method in METHODS:
        model = LanguageModel(hstree.build(method, corpus), batch_size=batch_size)
        windows = model.windows(corpus)
        batches = windows.batches(batch_size, np.random.default_rng(0))
        trainers[method] = (Trainer(model.model, model.layer, model.options), batches)
    speeds: dict[str, list[float]] = {method: [] for method in METHODS}
    for turn in range(rounds + 1):
        for method, (trainer, batches) in trainers.items():
            tokens = 20_480 if method == "flat" else 163_840
            here = list(islice(batches, max(2, tokens // 2 // batch_size)))
            began = time.perf_counter()
            for contexts, targets, _ in here:
                trainer.step(contexts, targets, 0.1)
            done = len(here) * batch_size / (time.perf_counter() - began)
            if turn:
                speeds[method].append(done)
    for method in METHODS:
        ratios = [a / b for a, b in zip(speeds[method], speeds["flat"], strict=True)]
        yield {
            "batch": batch_size,
            "tree": method,
            "tokens/s": statistics.median(speeds[method]),
            "times flat": statistics.median(ratios),
        }


if __name__ == "__main__":
    main()

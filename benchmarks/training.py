"""A whole training step of the language model on real text, rows beside the flat softmax.

The corpus is the Penn Treebank's training split under ``$HSTREE_TEST_DATA/ptb``, or any corpus
given. Medians over rounds in which the rows take turns; none may need vectors that are learned.
Batch size 0 is the default: word by word where the model can, else 256.

    python -m benchmarks.training [CORPUS] [--rows ROW ...] [--batch-sizes B ...] [--cpu]
                                  [--json FILE]
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import hstree
from benchmarks import table
from hstree.experiments.candidate import Candidate
from hstree.experiments.speed import training_turn

ROWS = ("huffman", "balanced", "random", "flat")


def main() -> None:
    parser = table.parser(__doc__)
    ptb = os.path.join(os.environ.get("HSTREE_TEST_DATA", ""), "ptb", "ptb.train.txt")
    parser.add_argument("corpus", nargs="?", default=ptb)
    parser.add_argument("--rows", nargs="+", default=ROWS, metavar="ROW")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[0, 256, 4096])
    parser.add_argument("--cpu", action="store_true", help="CPU time, for one thread")
    options = parser.parse_args()
    clock = time.process_time if options.cpu else time.perf_counter
    corpus = hstree.Corpus.read(options.corpus, min_count=1)
    rows = (
        row
        for size in options.batch_sizes
        for row in compare(corpus, options.rows, size, options.rounds, clock)
    )
    table.report("training", rows, options.json)


def compare(
    corpus: hstree.Corpus,
    rows: Sequence[str],
    batch_size: int,
    rounds: int,
    clock: Callable[[], float],
) -> Iterator[dict[str, Any]]:
    """Measure the tokens a second of all rows at one batch size."""
    words, specs = corpus.counted_vocabulary(), {}
    for row in map(Candidate.parse, rows):
        specs[str(row)] = row.spec(words, row.build(corpus, 0, None))
    measured: dict[str, list[float]] = {name: [] for name in specs}
    for _ in range(rounds):
        for name, spec in specs.items():
            measured[name].append(training_turn(spec, corpus, clock, batch_size=batch_size or None))
    flat = measured.get("flat", [])
    for name, speeds in measured.items():
        ratios = [a / b for a, b in zip(speeds, flat, strict=False)]
        yield {
            "batch": batch_size or "default",
            "tree": name,
            "tokens/s": statistics.median(speeds),
            "times flat": statistics.median(ratios) if ratios else None,
        }


if __name__ == "__main__":
    main()

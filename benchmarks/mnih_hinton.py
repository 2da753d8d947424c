"""The table of Mnih & Hinton (2008) on the Penn Treebank: trees learned from vectors, and flat.

For every random state a random tree is trained, its mean predicted vectors make the mixture trees,
and every row is trained under the same regime. Every finished run is kept in the folder, so that a
repeated command continues; `--rows` and `--seeds` choose some of the work. Speeds are measured at
the end, all trees in turns in one process.

    python -m benchmarks.mnih_hinton [--seeds 3] [--epochs 12] [--json FILE]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import table
from benchmarks.compared import compared, costs, parser, seconds_from_text
from benchmarks.texts import add_ptb, ptb_splits
from hstree.experiments.results import Comparison

ROWS = (
    "random",
    "huffman",
    "gmm split=balanced",
    "gmm",
    "gmm epsilon=0.25",
    "gmm epsilon=0.4",
    *(f"gmm epsilon=0.4 trees={n}" for n in (2, 4, 8, 12)),
    "semantic",
    "flat",
)


def main() -> None:
    command = parser(__doc__, ROWS, "runs/mnih_hinton", seeds=3)
    add_ptb(command)
    options = command.parse_args()
    comparison = compared(ptb_splits(options.ptb), options)
    table.report("mnih_hinton", rows(comparison), options.json)


def rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Lay out the table: costs of the first state's trees, perplexities over all states."""
    for row in comparison.candidates:
        speed = {"tokens/s": row.training and row.training.median}
        yield costs(row) | speed | seconds_from_text(row)


if __name__ == "__main__":
    main()

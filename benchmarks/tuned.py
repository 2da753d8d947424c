"""Rows tuned over one grid: weight decay and dropout of each, chosen on validation.

Every row has as many trials as every other, the flat softmax among them: all pairs of a weight
decay and a dropout, one random state each. The pair of the lowest validation perplexity is then
trained from further random states. The table has the test perplexity of the defaults, too, and both
ratios to the flat softmax, that of the tuned rows with its interval. Finished runs are kept in the
folder, so that a repeated command continues.

    python -m benchmarks.tuned [--corpus brown] [--lines 6000] [--rows ROW ...] [--json FILE]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import hstree
from benchmarks import table
from benchmarks.compared import add_ptb, parser, ptb_splits
from benchmarks.frontier import interval
from benchmarks.morin_bengio import brown_splits
from hstree import progress
from hstree.data.splits import Splits
from hstree.experiments.results import Comparison, RowResult
from hstree.experiments.row import Row
from hstree.experiments.significance import paired_ratio
from hstree.models.lbl import TEXT_DECAY

ROWS = (
    "flat",
    "huffman",
    "random",
    "gmm",
    "classes",
    "wordnet",
    "gmm epsilon=0.4 trees=4",
    "flat + ngrams",
    "huffman + ngrams",
    "gmm + ngrams",
    "classes + ngrams",
)
DECAYS = (0.75e-5, 1.5e-5, 3e-5, 6e-5, 12e-5)
DROPOUTS = (0.2, 0.35, 0.5)
#: The dropout of `hstree.compare` by default; its weight decay depends on the text.
DROPOUT = 0.35

#: A weight decay and a dropout.
Pair = tuple[float, float]


def main() -> None:
    command = parser(__doc__, ROWS, "runs/tuned", seeds=3, epochs=40)
    add_ptb(command)
    command.add_argument("--corpus", choices=("ptb", "brown"), default="ptb")
    command.add_argument("--lines", type=int, help="number of first lines to train on")
    command.add_argument("--decays", type=float, nargs="+", default=DECAYS)
    command.add_argument("--dropouts", type=float, nargs="+", default=DROPOUTS)
    options = command.parse_args()
    splits = brown_splits() if options.corpus == "brown" else ptb_splits(options.ptb)
    if options.lines:
        splits = splits._replace(train=splits.train.select_lines(0, options.lines))
    progress.enable()
    table.report("tuned", tuned(splits, options), options.json)


def tuned(splits: Splits, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Try every pair for all rows, then train each row's best from all random states."""
    tried: dict[Pair, dict[str, RowResult]] = {}
    default = (TEXT_DECAY / len(splits.train), DROPOUT)
    for pair in dict.fromkeys([*product(options.decays, options.dropouts), default]):
        tried[pair] = by_row(trained(splits, options, pair, options.rows, seeds=1))
    flat: tuple[float, list[Any]] | None = None
    for parsed in dict.fromkeys(map(Row.parse, options.rows)):
        name = str(parsed)
        grid = {pair: rows[name].perplexity["valid"].mean for pair, rows in tried.items()}
        best = min(grid, key=lambda pair: grid[pair] or np.inf)
        row = by_row(trained(splits, options, best, [name], seeds=options.seeds))[name]
        of_default = tried[default][name].perplexity["test"].mean
        runs = folder(options, best, name if options.seeds > 1 else "") / "runs" / parsed.folder
        nlls = [np.load(path) for path in sorted(runs.glob("seed-*/test_nll.npy"))]
        flat = flat or (of_default, nlls)
        spread = row.perplexity["test"]
        yield {
            "row": name,
            "weight decay": f"{best[0]:g}",
            "dropout": f"{best[1]:g}",
            "valid": row.perplexity["valid"].mean,
            "test": spread.mean,
            "sd": spread.sd,
            "ratio": interval(paired_ratio(nlls, flat[1])),
            "test, defaults": of_default,
            "ratio, defaults": f"{of_default / flat[0]:.3f}",
        }


def trained(
    splits: Splits, options: argparse.Namespace, pair: Pair, rows: list[str], seeds: int
) -> Comparison:
    """Train some rows with one pair; several random states in a folder of the row's own."""
    return hstree.compare(
        splits,
        rows,
        folder(options, pair, rows[0] if seeds > 1 else ""),
        stop=hstree.Epochs(options.epochs),
        seeds=seeds,
        speed_rounds=0,
        weight_decay=pair[0],
        dropout=pair[1],
    )


def folder(options: argparse.Namespace, pair: Pair, row: str) -> Path:
    """Return where the runs with a pair are, those of one row from several random states."""
    name = f"decay-{pair[0]:g}-dropout-{pair[1]:g}"
    return Path(options.folder, name, *([row.replace(" ", "_")] if row else ["grid"]))


def by_row(comparison: Comparison) -> dict[str, RowResult]:
    """Return the rows by their names."""
    return {row.name: row for row in comparison.rows}


if __name__ == "__main__":
    main()

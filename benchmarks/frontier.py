"""The frontier of perplexity against time: flat, trees by themselves, and several side by side.

Every row is trained until validation stops, or for 40 epochs, and every finished run is kept in the
folder, so that a repeated command continues. Ratios to flat have intervals over blocks of test
tokens. Rows that another beats in seconds from the text and in test perplexity are not on the
frontier.

    python -m benchmarks.frontier [--corpus brown] [--rows ROW ...] [--seeds 3] [--json FILE]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import table
from benchmarks.compared import add_ptb, compared, costs, parser, ptb_splits, seconds_from_text
from benchmarks.morin_bengio import brown_splits
from hstree.experiments.results import Comparison
from hstree.report.charts import pareto
from hstree_cli.method_strings import parse_method
from hstree_cli.result_tables import ratio_text

ROWS = tuple(
    parse_method(row)
    for row in (
        "semantic",
        "gmm",
        "gmm --epsilon 0.4 --trees 4",
        "classes",
        "classes --cluster-by vectors",
        "classes --short-list 1000 --n-classes 50",
        "classes --short-list 1000 --n-classes 50 --cluster-by vectors",
        "classes --short-list 1000 --n-classes 60 --trees 4 --shared-list --cluster-by vectors",
        "classes --short-list 1000 --n-classes 50 --trees 2 --cluster-by vectors",
        "classes --short-list 500 --n-classes 60 --trees 4 --cluster-by vectors",
        "classes --short-list 250 --n-classes 60 --trees 3 --cluster-by vectors",
        "classes --short-list 250 --n-classes 60 --trees 8 --cluster-by vectors",
        "huffman + ngrams",
        "semantic + ngrams",
        "gmm + ngrams",
        "classes + ngrams",
        "classes + ngrams --min-count 1",
        "classes --short-list 250 --n-classes 60 --trees 3 --cluster-by vectors + ngrams",
        "classes --short-list 500 --n-classes 60 --trees 4 --cluster-by vectors + ngrams",
        "classes --short-list 500 --n-classes 60 --trees 4 --cluster-by vectors + ngrams"
        " --min-count 1",
        "flat",
        "flat + ngrams",
    )
)


def main() -> None:
    command = parser(__doc__, ROWS, "runs/frontier", epochs=40)
    add_ptb(command)
    command.add_argument("--corpus", choices=("ptb", "brown"), default="ptb")
    options = command.parse_args()
    splits = brown_splits() if options.corpus == "brown" else ptb_splits(options.ptb)
    table.report("frontier", rows(compared(ROWS, splits, options)), options.json)


def rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Lay out the table, the rows on the frontier marked."""
    place = {
        row.name: (seconds_from_text(row)["s from text"], row.perplexity["test"].mean)
        for row in comparison.rows
    }
    known = [(x, y) for x, y in place.values() if x is not None and y is not None]
    front = pareto(known, "left")
    for row in comparison.rows:
        columns = {
            "ratio to flat": ratio_text(row.to_flat),
            "on the frontier": "yes" if place[row.name] in front else "no",
            "tokens/s": row.tokens_per_second,
        }
        yield costs(row) | columns | seconds_from_text(row)


if __name__ == "__main__":
    main()

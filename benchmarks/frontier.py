"""The frontier of perplexity against time: flat, trees, several side by side, and ensembles.

Every row is trained until validation stops, or for 40 epochs, and every finished run is kept in the
folder, so that a repeated command continues. Ratios to flat have intervals over blocks of test
tokens. Rows that another beats in seconds from the text and in test perplexity are not on the
frontier. ``--rows`` takes any row, written as for ``hstree compare``.

    python -m benchmarks.frontier [--corpus brown] [--rows ROW ...] [--seeds 3] [--json FILE]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import table
from benchmarks.compared import compared, costs, parser, seconds_from_text
from benchmarks.texts import TEXTS, add_ptb
from hstree.experiments.results import Comparison
from hstree.experiments.significance import Ratio

_THREE = "classes short_list=250 n_classes=60 trees=3 cluster_by=vectors + ngrams"
ROWS = (
    "semantic",
    "gmm",
    "gmm epsilon=0.4 trees=4",
    "classes",
    "classes cluster_by=vectors",
    "classes short_list=1000 n_classes=50",
    "classes short_list=1000 n_classes=50 cluster_by=vectors",
    "classes short_list=1000 n_classes=50 trees=2 cluster_by=vectors",
    "classes short_list=500 n_classes=60 trees=4 cluster_by=vectors",
    "classes short_list=250 n_classes=60 trees=3 cluster_by=vectors",
    "classes short_list=250 n_classes=60 trees=8 cluster_by=vectors",
    "huffman + ngrams",
    "semantic + ngrams",
    "gmm + ngrams",
    "classes + ngrams",
    "classes + ngrams min_count=1",
    _THREE,
    "classes short_list=500 n_classes=60 trees=4 cluster_by=vectors + ngrams",
    "classes short_list=500 n_classes=60 trees=4 cluster_by=vectors + ngrams min_count=1",
    "2 x classes + ngrams",
    "3 x gmm + ngrams",
    f"2 x {_THREE}",
    f"3 x {_THREE}",
    f"4 x {_THREE}",
    "flat",
    "flat + ngrams",
    "3 x flat",
)


def main() -> None:
    command = parser(__doc__, ROWS, "runs/frontier", epochs=40)
    add_ptb(command)
    command.add_argument("--corpus", choices=TEXTS, default="ptb")
    options = command.parse_args()
    splits = TEXTS[options.corpus](options.ptb)
    table.report("frontier", rows(compared(splits, options)), options.json)


def rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Lay out the table, the rows on the frontier marked."""
    place = {
        row.name: (seconds_from_text(row)["s from text"], row.perplexity["test"].mean)
        for row in comparison.candidates
    }
    known = [(x, y) for x, y in place.values() if x is not None and y is not None]
    front = [(x, y) for x, y in known if not any(a <= x and b < y for a, b in known)]
    for row in comparison.candidates:
        columns = {
            "ratio to flat": interval(row.to_flat),
            "on the frontier": "yes" if place[row.name] in front else "no",
            "tokens/s": row.training and row.training.median,
        }
        yield costs(row) | columns | seconds_from_text(row)


def interval(ratio: Ratio | None) -> str | None:
    """Write a ratio with its interval, if there is one."""
    if ratio is None or ratio.low is None:
        return ratio and f"{ratio.ratio:.3f}"
    return f"{ratio.ratio:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


if __name__ == "__main__":
    main()

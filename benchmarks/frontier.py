"""The frontier of perplexity against time: flat, trees, several side by side, and ensembles.

Every row is trained until validation stops, or for 40 epochs, and every finished run is kept in the
folder, so that a repeated command continues. Ratios to flat have intervals over blocks of test
tokens. Rows that another beats in seconds from the text and in test perplexity are not on the
frontier. ``--rows`` takes any row, written as for ``hstree compare``.

    python -m benchmarks.frontier [--corpus brown] [--rows ROW ...] [--seeds 3] [--json FILE]
    python -m benchmarks.frontier --text train.txt valid.txt test.txt [--words 10000] ...
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hstree
from benchmarks import table
from benchmarks.compared import add_ptb, compared, costs, parser, ptb_splits, seconds_from_text
from benchmarks.morin_bengio import brown_splits
from hstree.data.splits import Splits
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
    command.add_argument("--corpus", choices=("ptb", "brown"), default="ptb")
    command.add_argument(
        "--text", type=Path, nargs=3, metavar="FILE", help="training, validation and test text"
    )
    command.add_argument("--words", type=int, help="with --text: number of words, others <unk>")
    options = command.parse_args()
    if options.text is not None:
        splits = splits_of(options.text, options.words)
    else:
        splits = brown_splits() if options.corpus == "brown" else ptb_splits(options.ptb)
    table.report("frontier", rows(compared(splits, options)), options.json)


def splits_of(files: list[Path], words: int | None) -> Splits:
    """Read three texts over the most frequent words of the first."""
    parts = [hstree.Corpus.read(file) for file in files]
    vocabulary = parts[0].select_vocabulary(max_size=words, unk=True)
    return Splits(*(part.with_vocabulary(vocabulary) for part in parts))


def rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Lay out the table, the rows on the frontier marked."""
    place = {
        row.name: (seconds_from_text(row)["s from text"], row.perplexity["test"].mean)
        for row in comparison.rows
    }
    known = [(x, y) for x, y in place.values() if x is not None and y is not None]
    front = [(x, y) for x, y in known if not any(a <= x and b < y for a, b in known)]
    for row in comparison.rows:
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

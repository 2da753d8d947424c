"""Class trees (Goodman 2001) on the Penn Treebank: classes of every kind, and other trees.

Every row is trained under the same regime and every finished run is kept, so that a repeated
command continues.

    python -m benchmarks.goodman [--rows ROW ...] [--json FILE]
"""

from __future__ import annotations

from benchmarks import table
from benchmarks.compared import beside_flat, compared, parser
from benchmarks.texts import add_ptb, ptb_splits

ROWS = (
    "random",
    "huffman",
    "gmm",
    "classes cluster_by=frequency",
    "classes cluster_by=vectors",
    "classes",
    "classes cluster_by=brown",
    "flat",
)


def main() -> None:
    command = parser(__doc__, ROWS, "runs/goodman")
    add_ptb(command)
    options = command.parse_args()
    splits = ptb_splits(options.ptb)
    comparison = compared(splits, options)
    table.report("goodman", beside_flat(comparison, splits, options.folder), options.json)


if __name__ == "__main__":
    main()

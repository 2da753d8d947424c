"""Class trees (Goodman 2001) on the Penn Treebank: classes of every kind, and other trees.

Every row is trained under the same regime and every finished run is kept, so that a repeated
command continues.

    python -m benchmarks.goodman [--rows ROW ...] [--json FILE]
"""

from __future__ import annotations

from benchmarks import table
from benchmarks.compared import add_ptb, beside_flat, compared, parser, ptb_splits
from hstree.experiments.entries import Method

ROWS = (
    Method("random"),
    Method("huffman"),
    Method("gmm"),
    Method("classes", {"cluster_by": "frequency"}, "classes frequency"),
    Method("classes", {"cluster_by": "sqrt-frequency"}, "classes sqrt-frequency"),
    Method("classes", {"cluster_by": "vectors"}, "classes vectors"),
    Method("classes", {"cluster_by": "adaptive"}, "classes adaptive"),
    Method("classes", {}, "classes exchange"),
    Method("classes", {"levels": 3}, "classes exchange, 3 levels"),
    Method("classes", {"binary": True}, "classes exchange, binary"),
    Method("classes", {"cluster_by": "brown"}, "classes brown"),
    Method("flat"),
)


def main() -> None:
    command = parser(__doc__, ROWS, "runs/goodman")
    add_ptb(command)
    options = command.parse_args()
    splits = ptb_splits(options.ptb)
    comparison = compared(ROWS, splits, options)
    table.report("goodman", beside_flat(comparison, splits, options.folder), options.json)


if __name__ == "__main__":
    main()

"""Class trees (Goodman 2001) on the Penn Treebank: classes of every kind beside other trees.

Every row is trained under the same regime and every finished run is kept, so that the command
goes on where it stopped.

    python -m benchmarks.goodman [--rows ROW ...] [--json FILE]
"""

from __future__ import annotations

from benchmarks import study, table
from benchmarks.study import Row, Study

ROWS = {
    "random": Row("random"),
    "huffman": Row("huffman"),
    "gmm": Row("gmm", source="random"),
    "classes frequency": Row("classes", {"cluster_by": "frequency"}),
    "classes sqrt-frequency": Row("classes", {"cluster_by": "sqrt-frequency"}),
    "classes vectors": Row("classes", {"cluster_by": "vectors"}, source="random"),
    "classes adaptive": Row("classes", {"cluster_by": "adaptive"}),
    "classes exchange": Row("classes"),
    "classes exchange, 3 levels": Row("classes", {"levels": 3}),
    "classes exchange, binary": Row("classes", {"binary": True}),
    "classes brown": Row("classes", {"cluster_by": "brown"}),
    "flat": Row("flat"),
}


def main() -> None:
    parser = study.parser(__doc__, ROWS, "runs/goodman")
    study.add_ptb(parser)
    given = parser.parse_args()
    ptb = Study(ROWS, study.ptb_splits(given.ptb), given.folder, given.epochs)
    results = ptb.results(given.rows, given.states)
    if not given.no_speeds:
        rows = study.rows_of(ptb, results, given.states[0])
        table.report("goodman", rows, given.json)


if __name__ == "__main__":
    main()

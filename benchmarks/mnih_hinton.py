"""The table of Mnih & Hinton (2008) on the Penn Treebank: trees learned from vectors, and flat.

For every random state a random tree is trained, its mean predicted vectors make the mixture
trees, and every row is trained under the same regime. Every finished run is kept in the folder,
so that the command goes on where it stopped; `--rows` and `--states` choose some of the work.
Perplexities are means over random states, with the sample standard deviation. Speeds are measured
at the end, all trees in turns in one process.

    python -m benchmarks.mnih_hinton [--states 3] [--epochs 12] [--json FILE]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks import study, table
from benchmarks.study import Row, Study
from hstree.experiments.runs import Result

ROWS = {
    "RANDOM": Row("random"),
    "HUFFMAN": Row("huffman"),
    "BALANCED": Row("gmm", {"split": "balanced"}, "RANDOM"),
    "ADAPTIVE": Row("gmm", {}, "RANDOM"),
    "ADAPTIVE(0.25)": Row("gmm", {"epsilon": 0.25}, "RANDOM"),
    "ADAPTIVE(0.4)": Row("gmm", {"epsilon": 0.4}, "RANDOM"),
    "ADAPTIVE(0.4) x 2": Row("gmm", {"epsilon": 0.4, "trees": 2}, "RANDOM"),
    "ADAPTIVE(0.4) x 4": Row("gmm", {"epsilon": 0.4, "trees": 4}, "RANDOM"),
    "Huffman over semantics": Row("semantic", {}, "RANDOM"),
    "ADAPTIVE(0.4) x 4, round 2": Row("gmm", {"epsilon": 0.4, "trees": 4}, "ADAPTIVE(0.4) x 4"),
    "ADAPTIVE(0.4) x 8, round 2": Row("gmm", {"epsilon": 0.4, "trees": 8}, "ADAPTIVE(0.4) x 4"),
    "ADAPTIVE(0.4) x 12, round 2": Row("gmm", {"epsilon": 0.4, "trees": 12}, "ADAPTIVE(0.4) x 4"),
    "flat": Row("flat"),
}


def main() -> None:
    parser = study.parser(__doc__, ROWS, "runs/mnih_hinton")
    study.add_ptb(parser)
    parser.set_defaults(states=[0, 1, 2])
    given = parser.parse_args()
    ptb = Study(ROWS, study.ptb_splits(given.ptb), given.folder, given.epochs)
    results = ptb.results(given.rows, given.states)
    if not given.no_speeds:
        table.report("mnih_hinton", rows_of(ptb, results, given.states[0]), given.json)


def rows_of(
    ptb: Study, results: Mapping[str, list[Result]], state: int
) -> Iterator[dict[str, Any]]:
    """Lay out the table: costs of one state's trees, perplexities over all states."""
    timed = study.times(ptb, results, state, rounds=5)
    for row, found in results.items():
        yield {
            "tree": row,
            **study.cost(ptb, row, state),
            **study.perplexities(found),
            **timed[row],
        }


if __name__ == "__main__":
    main()

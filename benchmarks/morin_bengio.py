"""The comparison of Morin & Bengio (2005) on Brown's corpus: is-a trees, others, and flat.

The first 900,000 tokens train, the next 100,000 validate, the rest test, each up to the next end of
a line; the words are the 10,000 most frequent of the training split. Every row is trained under the
same regime and every finished run is kept, so that a repeated command continues. The last
row is a Kneser-Ney trigram, whose contexts begin anew at every line.

    python -m benchmarks.morin_bengio [--rows ROW ...] [--json FILE]
"""

from __future__ import annotations

from benchmarks import table
from benchmarks.compared import beside_flat, compared, parser
from benchmarks.texts import brown_splits

ROWS = (
    "random",
    "huffman",
    *(
        f"wordnet{senses}{binarise}"
        for senses in ("", " senses=all")
        for binarise in ("", " binarise=none")
    ),
    "gmm",
    "gmm epsilon=0.4 trees=4",
    "classes",
    "classes cluster_by=brown",
    "classes cluster_by=frequency",
    "classes cluster_by=vectors",
    "flat",
    "kn3",
)


def main() -> None:
    options = parser(__doc__, ROWS, "runs/morin_bengio").parse_args()
    splits = brown_splits()
    comparison = compared(splits, options)
    table.report("morin_bengio", beside_flat(comparison, splits, options.folder), options.json)


if __name__ == "__main__":
    main()

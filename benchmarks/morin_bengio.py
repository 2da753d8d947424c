"""The comparison of Morin & Bengio (2005) on Brown's corpus: is-a trees, others, and flat.

The first 900,000 tokens train, the next 100,000 validate, the rest test, each up to the next end of
a line; the words are the 10,000 most frequent of the training split. Every row is trained under the
same regime and every finished run is kept, so that a repeated command continues. The last
row is a Kneser-Ney trigram, whose contexts begin anew at every line.

    python -m benchmarks.morin_bengio [--rows ROW ...] [--json FILE]
"""

from __future__ import annotations

import hstree
from benchmarks import table
from benchmarks.compared import beside_flat, compared, cut, parser
from hstree.data.splits import Splits

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

#: Tokens after which the training and the validation split end.
ENDS = (900_000, 1_000_000)


def main() -> None:
    options = parser(__doc__, ROWS, "runs/morin_bengio").parse_args()
    splits = brown_splits()
    comparison = compared(splits, options)
    table.report("morin_bengio", beside_flat(comparison, splits, options.folder), options.json)


def brown_splits() -> Splits:
    """Read Brown's corpus through NLTK, and split it."""
    text = hstree.Corpus.read("nltk:brown")
    return cut(text, *ENDS, len(text))


if __name__ == "__main__":
    main()

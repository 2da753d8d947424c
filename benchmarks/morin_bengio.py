"""The comparison of Morin & Bengio (2005) on Brown's corpus: is-a trees beside others, and flat.

The first 900,000 tokens train, the next 100,000 validate, the rest test (cut at the next end of a
line); the words are the 10,000 most frequent of the training part. Every row is trained under the
same regime and every finished run is kept, so that the command goes on where it stopped. Below them
stands a Kneser-Ney trigram, whose contexts begin anew at every line.

    python -m benchmarks.morin_bengio [--rows ROW ...] [--json FILE]
"""

from __future__ import annotations

from itertools import chain

import numpy as np

import hstree
from benchmarks import study, table
from benchmarks.study import Row, Study
from hstree.experiments.evaluation import Splits

ROWS = {
    "random": Row("random"),
    "huffman": Row("huffman"),
    "wordnet first, tfidf": Row("wordnet"),
    "wordnet first, huffman": Row("wordnet", {"binarise": "huffman"}),
    "wordnet first, none": Row("wordnet", {"binarise": "none"}),
    "wordnet all, tfidf": Row("wordnet", {"senses": "all"}),
    "wordnet all, huffman": Row("wordnet", {"senses": "all", "binarise": "huffman"}),
    "wordnet all, none": Row("wordnet", {"senses": "all", "binarise": "none"}),
    "gmm": Row("gmm", source="random"),
    "gmm --epsilon 0.4 --trees 4": Row("gmm", {"epsilon": 0.4, "trees": 4}, source="random"),
    "classes exchange": Row("classes"),
    "classes exchange, 3 levels": Row("classes", {"levels": 3}),
    "classes exchange, binary": Row("classes", {"binary": True}),
    "classes brown": Row("classes", {"cluster_by": "brown"}),
    "classes frequency": Row("classes", {"cluster_by": "frequency"}),
    "classes sqrt-frequency": Row("classes", {"cluster_by": "sqrt-frequency"}),
    "classes vectors": Row("classes", {"cluster_by": "vectors"}, source="random"),
    "classes adaptive": Row("classes", {"cluster_by": "adaptive"}),
    "flat": Row("flat"),
}

#: Tokens after which the training and the validation part end.
ENDS = (900_000, 1_000_000)
N_WORDS = 10_000


def main() -> None:
    given = study.parser(__doc__, ROWS, "runs/morin_bengio").parse_args()
    brown = Study(ROWS, brown_parts(), given.folder, given.epochs)
    results = brown.results(given.rows, given.states)
    if not given.no_speeds:
        rows = chain(
            study.rows_of(brown, results, given.states[0]),
            [study.trigram_row(brown, results)],
        )
        table.report("morin_bengio", rows, given.json)


def brown_parts() -> Splits:
    """Read Brown's corpus through NLTK, cut in three."""
    text = hstree.Corpus.read("nltk:brown")
    first, second = (int(np.searchsorted(text.line_start, end)) for end in ENDS)
    train = text.select_lines(0, first)
    words = train.select_vocabulary(max_size=N_WORDS, unk=True)
    cut = (train, text.select_lines(first, second), text.select_lines(second, text.n_lines))
    return Splits(*(part.with_vocabulary(words) for part in cut))


if __name__ == "__main__":
    main()

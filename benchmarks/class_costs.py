"""Measured and estimated costs of class trees with short lists, and what the estimate is made of.

Trees over classes of equal size, drawn at random, train the log-bilinear model in turns. Seconds
of a batch are fitted by those of its scores, of the rows that it updates and of the nodes that it
visits; the estimate is that of `hstree.builders.word_classes.costs`. One thread.

    OMP_NUM_THREADS=1 python -m benchmarks.class_costs [CORPUS] [--rounds N] [--json FILE]
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import nnls

import hstree
from benchmarks import table
from hstree._typing import Int64
from hstree.builders.word_classes.costs import BATCH, class_cost, work_of
from hstree.data.vocabulary import Vocabulary
from hstree.experiments.speed import training_turn
from hstree.tree import Tree

LISTS, CLASSES = (0, 250, 1000, 2500), (25, 60, 150, 400)


def main() -> None:
    parser = table.parser(__doc__)
    ptb = os.path.join(os.environ.get("HSTREE_TEST_DATA", ""), "ptb", "ptb.train.txt")
    parser.add_argument("corpus", nargs="?", default=ptb)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    corpus = hstree.Corpus.read(options.corpus)
    table.report("class_costs", measured(corpus, options.rounds), options.json)


def measured(corpus: hstree.Corpus, rounds: int) -> Iterator[dict[str, Any]]:
    words = corpus.counted_vocabulary()
    most = len(words) // 3
    shapes = [(n, c) for n, c in product(LISTS, CLASSES) if n <= most and c <= most]
    trees = {f"{n} {c}": drawn_classes(words, n, c) for n, c in shapes}
    speeds: dict[str, list[float]] = {name: [] for name in trees}
    for _ in range(rounds):
        for name, tree in trees.items():
            speeds[name].append(training_turn(tree, corpus, batch_size=BATCH))
    seconds = np.array([BATCH / statistics.median(speeds[name]) for name in trees])
    counts = np.sort(words.counts)[::-1]
    work = np.array([batch_work(counts, n, c) for n, c in shapes])
    fit, _ = nnls(work / seconds[:, None], np.ones(len(seconds)))
    score, row, node, _ = fit
    for (n, c), took, parts in zip(shapes, seconds, work, strict=True):
        yield {
            "short list": n,
            "classes": c,
            "ms/batch": 1000 * took,
            "fitted, ms": 1000 * float(parts @ fit),
            "estimate, scores": class_cost(counts, n, c),
        }
    print(f"a row costs {row / score:.3g} scores, a node {node / score:.3g}")


def batch_work(counts: Int64, short_list: int, n_classes: int) -> list[float]:
    """Return the scores, rows and nodes of a batch, and 1 for what every batch takes."""
    scores, rows, nodes = work_of(counts, short_list, n_classes)
    return [BATCH * scores, rows, nodes, 1.0]


def drawn_classes(words: Vocabulary, short_list: int, n_classes: int) -> Tree:
    """Return a tree with the most frequent words in its root beside classes of the others."""
    order = np.argsort(-words.counts, kind="stable")
    rest = np.random.default_rng(0).permutation(order[short_list:])
    root = [*(~order[:short_list]).tolist(), *range(1, n_classes + 1)]
    groups = [(~some).tolist() for some in np.array_split(rest, n_classes)]
    return Tree.from_children(words.words, [root, *groups], counts=words.counts)


if __name__ == "__main__":
    main()

"""Exact top-k: best-first search beside one dense pass and a sort, a context at a time.

Node vectors are drawn so that a decision's score has a given spread: at 0.5 all words are about
as likely as their counts say, at 8 nearly every decision is certain. The search reads fewer nodes
the more certain the decisions are; the dense pass reads all. "top-k" is `layer.top_k`: the search,
replaced by the dense pass where that is cheaper. Medians over contexts.

    python -m benchmarks.topk [--labels 100000] [--k 10] [--json FILE]
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import hstree
from benchmarks import common
from benchmarks.common import zipf_vocabulary
from hstree.builders.shared.join import join_under_root
from hstree.data.vocabulary import Vocabulary
from hstree.layers.hierarchical import HierarchicalSoftmax

TopK = Callable[[Any, int], tuple[Any, Any]]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--labels", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--contexts", type=int, default=50)
    parser.add_argument("--spread", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0, 8.0])
    options = parser.parse_args()
    rows = (
        measure(name, tree, spread, options)
        for name, tree in trees(options.labels)
        for spread in options.spread
    )
    common.report("topk", rows, options.json)


def trees(n_labels: int) -> Iterator[tuple[str, hstree.Tree]]:
    """Make a binary tree, two with several codes per label, and the flat one."""
    vocabulary = zipf_vocabulary(n_labels)
    yield "huffman", hstree.build("huffman", vocabulary)
    for n in (2, 4):
        yield f"random x {n}", several_codes(vocabulary, n)
    yield "flat", hstree.build("flat", vocabulary)


def several_codes(vocabulary: Vocabulary, n: int) -> hstree.Tree:
    """Hang random trees over the same labels under one root, as `gmm --trees` does with its own."""
    trees = [hstree.build("random", vocabulary, random_state=i) for i in range(n)]
    return join_under_root(trees, vocabulary.words, counts=vocabulary.counts)


def measure(tree_name: str, tree: hstree.Tree, spread: float, options: Any) -> dict[str, Any]:
    """Time search and dense pass on the same contexts, and compare their answers."""
    rng = np.random.default_rng(0)
    layer = HierarchicalSoftmax(tree, options.dim)
    layer.weight[...] = rng.standard_normal(layer.weight.shape, np.float32)
    layer.weight *= spread / np.sqrt(options.dim)
    hidden = rng.standard_normal((options.contexts, options.dim), np.float32)
    milliseconds: dict[str, list[float]] = {"search": [], "dense": []}
    methods: dict[str, TopK] = {"search": layer.top_k, "dense": dense(layer)}
    likeliest = []
    agree = True
    for i in range(options.contexts):
        answers = {}
        for name, top_k in methods.items():
            start = time.perf_counter()
            answers[name] = top_k(hidden[i : i + 1], options.k)
            milliseconds[name].append(1e3 * (time.perf_counter() - start))
        agree &= np.allclose(answers["search"][1], answers["dense"][1], rtol=1e-4, atol=1e-4)
        likeliest.append(float(np.exp(answers["dense"][1][0, 0])))
    return {
        "tree": tree_name,
        "labels": tree.n_labels,
        "spread": spread,
        "P(best)": statistics.median(likeliest),
        "top-k ms": statistics.median(milliseconds["search"]),
        "worst ms": max(milliseconds["search"]),
        "dense ms": statistics.median(milliseconds["dense"]),
        "agree": "yes" if agree else "NO",
    }


def dense(layer: HierarchicalSoftmax) -> TopK:
    """Return a top-k by all labels' log-probabilities and a partial sort."""

    def top_k(hidden: Any, k: int) -> tuple[Any, Any]:
        log_prob = layer.log_prob(hidden)
        best = np.argpartition(-log_prob, k - 1)[:, :k]
        order = np.argsort(-np.take_along_axis(log_prob, best, 1))
        best = np.take_along_axis(best, order, 1)
        return best, np.take_along_axis(log_prob, best, 1)

    return top_k


if __name__ == "__main__":
    main()

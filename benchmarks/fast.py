"""Compiled functions beside NumPy's, in one process: training, scoring, search, building.

Both do the same work for each row, alternately. Speeds and ratios are medians over rounds. Training
is a whole loop over batches, which a second thread lays out ahead where there is a core for it.
``--candidates`` are candidates whose trees need no vectors, or tree files. With a small vocabulary,
at most half of the words are in a short list, or classes.

    python -m benchmarks.fast [CORPUS] [--candidates CANDIDATE ...] [--only TEXT] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, count, islice
from typing import Any

import numpy as np

import hstree
from benchmarks import common
from benchmarks.common import zipf_vocabulary
from hstree._parallel import in_threads, n_threads
from hstree.data.vectors import WordVectors
from hstree.experiments.candidate import Candidate
from hstree.kernels import backend_name, numpy_only
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.models import new_model
from hstree.tree import Tree

CANDIDATES = (
    "huffman",
    "classes",
    "classes short_list=1000 n_classes=50",
    "classes short_list=500 n_classes=60 trees=4",
)
#: Does the work once; returns the number of tokens, words or samples.
Work = Callable[[], int]
#: Length of hidden vectors and of word vectors.
DIM = 100


def main() -> None:
    parser = common.parser(__doc__)
    ptb = os.path.join(os.environ.get("HSTREE_TEST_DATA", ""), "ptb", "ptb.train.txt")
    parser.add_argument("corpus", nargs="?", default=ptb)
    parser.add_argument("--candidates", nargs="+", default=CANDIDATES, metavar="CANDIDATE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=100_000, help="tokens of a turn")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--words", type=int, default=100_000, help="vectors for kmeans")
    parser.add_argument("--classes", type=int, default=100, help="classes of the exchange")
    parser.add_argument("--only", default="", help="only the work whose name contains this text")
    options = parser.parse_args()
    print(f"kernels: {backend_name()}, threads: {n_threads()}")
    common.report("fast", rows(options), options.json)


def rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measure the chosen work: repeated steps in all rounds, builders in half as many."""
    corpus = hstree.Corpus.read(options.corpus, min_count=1)
    trees = {candidate: build_tree(candidate, corpus) for candidate in options.candidates}
    steps = training(trees, corpus, options.tokens) | scoring(trees, corpus, options.tokens)
    steps |= searches(options.sizes)
    longer = builders(options.words, corpus, options.classes)
    for work, rounds in ((steps, options.rounds), (longer, max(1, options.rounds // 2))):
        chosen = {name: once for name, once in work.items() if options.only in name}
        yield from compare(chosen, rounds)


def compare(work: Mapping[str, Work], rounds: int) -> Iterator[dict[str, Any]]:
    """Let NumPy and the compiled functions take turns at each piece of work."""
    for name, once in work.items():
        speeds: dict[bool, list[float]] = {True: [], False: []}
        for number in range(rounds + 1):
            for is_numpy in (True, False):
                with numpy_only(is_numpy):
                    start = time.perf_counter()
                    done = once()
                    speed = done / (time.perf_counter() - start)
                if number > 0:  # the first turn loads and compiles
                    speeds[is_numpy].append(speed)
        ratios = [b / a for a, b in zip(speeds[True], speeds[False], strict=True)]
        yield {
            "work": name,
            "NumPy, /s": statistics.median(speeds[True]),
            "compiled, /s": statistics.median(speeds[False]),
            "ratio": statistics.median(ratios),
            "lowest": min(ratios),
            "highest": max(ratios),
        }


def build_tree(text: str, corpus: hstree.Corpus) -> Tree:
    """Return the tree of a candidate; at most half of a small vocabulary is listed, or classes."""
    candidate = Candidate.parse(text)
    limit = len(corpus.vocabulary) // 2
    for option in ("short_list", "n_classes"):
        if (candidate.options.get(option) or 0) > limit:
            text = re.sub(rf"{option}=\d+", f"{option}={limit}", text)
            candidate = Candidate.parse(text)
    return candidate.build(corpus, 0, None)


def training(trees: Mapping[str, Tree], corpus: hstree.Corpus, tokens: int) -> dict[str, Work]:
    """Return a training loop for each tree, in batches, which continues from turn to turn."""

    def loop(tree: Tree) -> Work:
        # {backend: (trainer, batches)}, made in the turn that is not timed
        running: dict[str, tuple[Any, Any]] = {}

        def train() -> int:
            if backend_name() not in running:
                model = new_model(tree, model="lbl")
                windows = model.windows(corpus)
                trainer = model.trainer(windows)
                epochs = map(partial(trainer.epoch_batches, windows), count(1))
                running[backend_name()] = trainer, chain.from_iterable(epochs)
            trainer, batches = running[backend_name()]
            done = 0
            while done < tokens:
                contexts, targets, prepared = next(batches)
                trainer.step(contexts, targets, trainer.learning_rate(0), prepared)
                done += len(targets)
            return done

        return train

    return {f"lbl, {label}": loop(tree) for label, tree in trees.items()}


def scoring(trees: Mapping[str, Tree], corpus: hstree.Corpus, tokens: int) -> dict[str, Work]:
    """Return one pass of scoring for each tree, with random weights."""

    def score(model: Any, batches: Any) -> int:
        def nll(batch: Any) -> Any:
            return model.context_model.nll(model.layer, *batch[:2])

        scored = in_threads(nll, iter(batches), when=model.layer.scores_in_threads)
        return sum(len(nll) for _, nll in scored)

    work: dict[str, Work] = {}
    for label, tree in trees.items():
        model = new_model(tree, model="lbl")
        draw_weights(model.layer)
        batches = list(islice(model.windows(corpus).batches(1024), tokens // 1024 + 1))
        work[f"scoring, {label}"] = partial(score, model, batches)
    return work


def draw_weights(layer: HierarchicalSoftmax) -> None:
    """Add random numbers to the weights of a layer."""
    for parameter in layer.parameters().values():
        parameter += np.random.default_rng(0).normal(0, 0.1, parameter.shape)


def searches(sizes: list[int]) -> dict[str, Work]:
    """Return the search of the ten most probable labels of 20 contexts, one at a time."""

    def search(layer: HierarchicalSoftmax, hidden: Any) -> int:
        for i in range(len(hidden)):
            layer.top_k(hidden[i : i + 1], 10)
        return len(hidden)

    work: dict[str, Work] = {}
    for size in sizes:
        layer = HierarchicalSoftmax(hstree.build("huffman", zipf_vocabulary(size)), DIM)
        draw_weights(layer)
        hidden = np.random.default_rng(0).standard_normal((20, DIM), np.float32)
        work[f"search, huffman, {size:,} labels"] = partial(search, layer, hidden)
    return work


def builders(n_words: int, corpus: hstree.Corpus, n_classes: int) -> dict[str, Work]:
    """Return longer work: trees by k-means and by exchange."""
    vectors = clustered_vectors(n_words)
    classes = min(n_classes, len(corpus.vocabulary) // 2)

    def kmeans() -> int:
        return hstree.build("kmeans", vectors).n_labels

    def exchange() -> int:
        return hstree.build("classes", corpus, n_classes=classes).n_labels

    return {
        f"building, kmeans, {n_words:,} vectors": kmeans,
        f"building, classes by exchange, {classes} classes": exchange,
    }


def clustered_vectors(n_words: int) -> WordVectors:
    """Return vectors around a thousand centres."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((1000, DIM), np.float32)
    vectors = rng.standard_normal((n_words, DIM), np.float32)
    vectors += centres[rng.integers(0, 1000, n_words)]
    return WordVectors([f"w{i}" for i in range(n_words)], vectors)


if __name__ == "__main__":
    main()

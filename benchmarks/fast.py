"""Compiled kernels beside NumPy's, in one process: training, scoring and the layer alone.

Each row is the same work by both, in turns; speeds and ratios are medians over rounds. Training is
a whole loop over batches, made ahead in a second thread where there is a core for it. "Short list"
is a tree with 1,000 frequent words in its root beside 50 classes. Tree files are measured too.

    python -m benchmarks.fast [CORPUS] [--trees TREE ...] [--json FILE]
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import hstree
from benchmarks import table
from benchmarks.layer import tree_step
from hstree._compiled import kernels, n_threads, numpy_alone
from hstree.data.vocabulary import Vocabulary
from hstree.experiments.throughput import endless_batches
from hstree.models import new_model
from hstree.tree import Tree

#: Words of the root of a short-list tree, and its classes.
SHORT_LIST, CLASSES = 1000, 50

#: Does the work once; returns the number of tokens.
Work = Callable[[], int]


def main() -> None:
    parser = table.parser(__doc__)
    ptb = os.path.join(os.environ.get("HSTREE_TEST_DATA", ""), "ptb", "ptb.train.txt")
    parser.add_argument("corpus", nargs="?", default=ptb)
    parser.add_argument("--trees", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=100_000, help="trained on in a turn")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    options = parser.parse_args()
    print(f"kernels: {kernels()}, threads: {n_threads()}")
    table.report("fast", measured(options), options.json)


def measured(options: Any) -> Iterator[dict[str, Any]]:
    corpus = hstree.Corpus.read(options.corpus)
    trees = {name: hstree.build(name, corpus) for name in ("huffman", "classes")}
    trees["short list"] = short_list(corpus.vocabulary)
    trees |= {Path(name).name: hstree.load(name) for name in options.trees}
    yield from compare(training(trees, corpus, options.tokens, "lbl"), options.rounds)
    huffman = {"huffman": trees["huffman"]}
    for model in ("cbow", "skipgram"):
        yield from compare(training(huffman, corpus, options.tokens, model), options.rounds)
    yield from compare(scoring(trees, corpus, options.tokens), options.rounds)
    yield from compare(layers(options.sizes), options.rounds)


def compare(work: Mapping[str, Work], rounds: int) -> Iterator[dict[str, Any]]:
    """Let NumPy and the compiled kernels take turns at each piece of work."""
    for name, once in work.items():
        speeds: dict[bool, list[float]] = {True: [], False: []}
        for number in range(rounds + 1):
            for alone in (True, False):
                with numpy_alone(alone):
                    began = time.perf_counter()
                    tokens = once()
                    speed = tokens / (time.perf_counter() - began)
                if number > 0:  # the first turn loads and compiles
                    speeds[alone].append(speed)
        ratios = [b / a for a, b in zip(speeds[True], speeds[False], strict=True)]
        yield {
            "work": name,
            "NumPy, tokens/s": statistics.median(speeds[True]),
            "compiled, tokens/s": statistics.median(speeds[False]),
            "ratio": statistics.median(ratios),
            "lowest": min(ratios),
            "highest": max(ratios),
        }


def training(
    trees: Mapping[str, Tree], corpus: hstree.Corpus, tokens: int, name: str
) -> dict[str, Work]:
    """Return a training loop for each tree, which goes on from turn to turn."""

    def work(tree: Tree) -> Work:
        running: dict[str, tuple[Any, Any]] = {}  # by kernels; made in the turn that is not timed

        def loop() -> int:
            if kernels() not in running:
                model = new_model(tree, model=name)
                windows = model.windows(corpus)
                trainer = model.trainer(windows)
                running[kernels()] = trainer, endless_batches(trainer, windows)
            (trainer, batches), done = running[kernels()], 0
            while done < tokens:
                contexts, targets, _ = next(batches)
                trainer.step(contexts, targets, trainer.learning_rate(0))
                done += len(targets)
            return done

        return loop

    return {f"{name}, {label}": work(tree) for label, tree in trees.items()}


def scoring(trees: Mapping[str, Tree], corpus: hstree.Corpus, tokens: int) -> dict[str, Work]:
    """Return one pass of scoring for each tree, with drawn weights."""

    def once(model: Any, batches: Any) -> int:
        for contexts, targets, _ in batches:
            model.context_model.nll(model.layer, contexts, targets)
        return sum(len(targets) for _, targets, _ in batches)

    work = {}
    for label, tree in trees.items():
        model = new_model(tree, model="lbl")
        for parameter in model.layer.parameters().values():
            parameter += np.random.default_rng(0).normal(0, 0.1, parameter.shape)
        batches = list(islice(model.windows(corpus).batches(1024), tokens // 1024 + 1))
        work[f"scoring, {label}"] = lambda model=model, batches=batches: once(model, batches)
    return work


def layers(sizes: list[int], dim: int = 100, batch: int = 4096) -> dict[str, Work]:
    """Return a step of the layer and its optimiser alone, over Huffman trees of some sizes."""
    work = {}
    for size in sizes:
        share = 1 / np.arange(1, size + 1)
        counts = np.ceil(share * 1e8 / share.sum()).astype(np.int64)
        rng = np.random.default_rng(0)
        hidden = rng.standard_normal((batch, dim), np.float32)
        targets = rng.choice(size, batch, p=counts / counts.sum())
        tree = hstree.build("huffman", Vocabulary([f"w{i}" for i in range(size)], counts))
        step = tree_step(tree, hidden, targets)

        def steps(step: Callable[[], None] = step) -> int:
            for _ in range(5):
                step()
            return 5 * batch

        work[f"layer alone, huffman, {size:,} labels"] = steps
    return work


def short_list(vocabulary: Vocabulary) -> Tree:
    """Return a tree with the most frequent words in its root beside classes of the others."""
    order = np.argsort(-vocabulary.counts, kind="stable")
    n_short = min(SHORT_LIST, len(order) // 2)
    rest = np.random.default_rng(0).permutation(order[n_short:])
    classes = np.array_split(rest, min(CLASSES, max(1, len(rest) // 2)))
    root = [*(~order[:n_short]).tolist(), *range(1, len(classes) + 1)]
    children = [root, *((~some).tolist() for some in classes)]
    return Tree.from_children(vocabulary.words, children, counts=vocabulary.counts)


if __name__ == "__main__":
    main()

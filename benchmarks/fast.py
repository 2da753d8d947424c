"""Compiled kernels beside NumPy's, in one process: training, scoring, the layer, fitting.

Each row is the same work by both, in turns; speeds and ratios are medians over rounds. Training is
a whole loop over batches, made ahead in a second thread where there is a core for it. ``--rows``
are trees of rows that need no vectors, or tree files. Of a small text at most half of the words are
listed in a root, or classes.

Rows of training and scoring have what a token costs at least: the bytes of each row that a batch
touches, read once and in training written once, and the floating-point operations of its products.
The share of the limit is the time that these take at this machine's rates, whichever is longer,
over the time that was measured. ``--busy 1`` keeps another process busy meanwhile.

    python -m benchmarks.fast [CORPUS] [--rows ROW ...] [--text FILE] [--only TEXT] [--memory]
                              [--busy N] [--json FILE]
"""

from __future__ import annotations

import multiprocessing
import os
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

import hstree
from benchmarks import fresh, table
from benchmarks.layer import timed, tree_step, zipf_vocabulary
from hstree._arrays import Int64, Integer
from hstree._parallel import in_threads, n_threads
from hstree.data.encoding import encode
from hstree.data.sources import open_source
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.experiments.candidate import Candidate
from hstree.interop.sklearn import HierarchicalSoftmaxClassifier
from hstree.kernels import backend_name, numpy_only
from hstree.layers.hooks import hooks_of
from hstree.models import new_model
from hstree.models.lbl import LanguageModel
from hstree.ngrams.kneser_ney import KneserNey
from hstree.tree import Tree
from hstree.tree.codes import Codes

_SHORT_LIST = "classes short_list=1000 n_classes=50"
ROWS = ("huffman", "classes", _SHORT_LIST, "classes short_list=500 n_classes=60 trees=4")

#: Work whose peak memory is measured.
MEASURED = (
    *("lbl, huffman", f"lbl, {_SHORT_LIST}", "cbow, huffman", "skipgram, huffman"),
    *("scoring, huffman", "building, gmm", "building, classes"),
)

#: Does the work once; returns the number of tokens, or of words of a builder.
Work = Callable[[], int]
#: Elements of the arrays that this machine's rates are measured with: far more than its caches.
COPIED, MULTIPLIED = 1 << 26, 1 << 11
#: Targets of a batch, and length of hidden vectors, of the layer alone.
LAYER_BATCH, DIM = 4096, 100
#: Samples that the classifier is fitted to.
SAMPLES = 40_000


def main() -> None:
    parser = table.parser(__doc__)
    ptb = os.path.join(os.environ.get("HSTREE_TEST_DATA", ""), "ptb", "ptb.train.txt")
    parser.add_argument("corpus", nargs="?", default=ptb)
    parser.add_argument("--rows", nargs="+", default=ROWS, metavar="ROW")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=100_000, help="trained on in a turn")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--words", type=int, default=100_000, help="words that gmm splits")
    parser.add_argument("--classes", type=int, default=100, help="classes of the exchange")
    parser.add_argument("--text", help="a plain text to be read, each time without a cache")
    parser.add_argument("--only", default="", help="only the work whose name has this text")
    parser.add_argument(
        "--memory", action="store_true", help="measure peak memory too, each in a fresh process"
    )
    parser.add_argument("--busy", type=int, default=0, help="processes that compute beside it")
    options = parser.parse_args()
    print(f"kernels: {backend_name()}, threads: {n_threads()}, busy processes: {options.busy}")
    with busy(options.busy):
        table.report("fast", measured(options), options.json)


@contextmanager
def busy(number: int) -> Iterator[None]:
    """Keep some processes busy with arithmetic while the body runs."""
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=_compute, daemon=True) for _ in range(number)]
    for process in others:
        process.start()
    try:
        yield
    finally:
        for process in others:
            process.terminate()
            process.join()


def _compute() -> None:
    number = 0
    while True:
        number = (number + 1) % 1_000_003


def measured(options: Any) -> Iterator[dict[str, Any]]:
    corpus = hstree.Corpus.read(options.corpus, min_count=1)
    trees = {
        row: tree_of(row, corpus)
        for row in dict.fromkeys(["huffman", *options.rows])
        if row == "huffman" or options.only in f"lbl, {row} scoring, {row}"
    }
    rates = copy_rate(), product_rate()
    print(f"one core copies {rates[0] / 1e9:.1f} GB/s; {rates[1] / 1e9:.0f} GFLOPS in products")
    work = training(trees, corpus, options.tokens, "lbl")
    for model in ("cbow", "skipgram"):
        work |= training({"huffman": trees["huffman"]}, corpus, options.tokens, model)
    work |= scoring(trees, corpus, options.tokens) | layers(options.sizes)
    once = builders(options.words, corpus, options.classes)
    if options.text is not None:
        once["reading text"] = partial(read, Path(options.text))
    for chosen, rounds in ((work, options.rounds), (once, max(1, options.rounds // 2))):
        chosen = {name: one for name, one in chosen.items() if options.only in name}
        for row in compare(chosen, rounds):
            batch = batch_of(row["work"], trees, corpus)
            least = {} if batch is None else least_cost(batch, rates, row["compiled, /s"])
            yield row | least
    if options.memory:
        yield from memory(options)


def copy_rate() -> float:
    """Return the bytes per second that one core reads and writes when it copies an array."""
    source, copy = np.ones(COPIED, np.float32), np.empty(COPIED, np.float32)
    return max(2 * source.nbytes / timed(lambda: np.copyto(copy, source), 1) for _ in range(5))


def product_rate() -> float:
    """Return the floating-point operations per second of a matrix product in float32."""
    left, right = np.ones((2, MULTIPLIED, MULTIPLIED), np.float32)
    return max(2 * MULTIPLIED**3 / timed(lambda: left @ right, 1) for _ in range(5))


class Batch(NamedTuple):
    """What a batch of some work computes with."""

    tree: Tree
    dim: int
    contexts: Integer  # any shape, the words of its windows
    targets: Integer  # (P,) of each prediction
    tokens: int
    is_training: bool


def batch_of(work: str, trees: Mapping[str, Tree], corpus: hstree.Corpus) -> Batch | None:
    """Return a batch of training, scoring or the layer alone; None for other work."""
    kind, _, label = work.partition(", ")
    rng = np.random.default_rng(0)
    if kind == "layer alone":
        vocabulary = zipf_vocabulary(int(label.split()[1].replace(",", "")))
        tree, targets = hstree.build("huffman", vocabulary), drawn_targets(vocabulary)
        return Batch(tree, DIM, targets[:0], targets, len(targets), is_training=True)
    if kind not in ("lbl", "cbow", "skipgram", "scoring"):
        return None
    model = new_model(trees[label], model="lbl" if kind == "scoring" else kind)
    windows = model.windows(corpus)
    if kind in ("lbl", "scoring"):
        size = 1024 if kind == "scoring" else LanguageModel.batch_size
        contexts, targets, _ = next(windows.batches(size, rng))
        return Batch(trees[label], model.dim, contexts, targets, size, kind != "scoring")
    contexts, targets, _ = next(model.trainer(windows).epoch_batches(windows))
    item, words = model.context_model.predictions(contexts)
    return Batch(trees[label], model.dim, words[words >= 0], targets[item], len(targets), True)


def least_cost(batch: Batch, rates: tuple[float, float], speed: float) -> dict[str, float]:
    """Return what a token costs at least, and the share of that in its time."""
    tree, edge = batch.tree, Codes(batch.tree).expand(batch.targets).edge
    scores = np.where(tree.edge_width == 2, 1, tree.edge_width)
    nodes = np.unique(tree.edge_node[edge], return_index=True)[1]
    rows = len(np.unique(batch.contexts)) + int(scores[edge[nodes]].sum())
    # in training three products each: forward, and the gradients of both sides
    accesses, products = (2, 3) if batch.is_training else (1, 1)
    products *= int(scores[edge].sum()) + batch.contexts.size
    bytes_of_token = accesses * 4 * batch.dim * rows / batch.tokens
    operations = 2 * batch.dim * products / batch.tokens
    least = max(bytes_of_token / rates[0], operations / rates[1])
    return {
        "bytes/token": bytes_of_token,
        "flops/token": operations,
        "% of the limit": 100 * least * speed,
    }


def builders(n_words: int, corpus: hstree.Corpus, n_classes: int) -> dict[str, Work]:
    """Return what is done once: trees by gmm and by exchange, n-gram counts, a classifier."""
    vectors = drawn_vectors(n_words)
    classes = min(n_classes, len(corpus.vocabulary) // 2)

    def by_gmm() -> int:
        return hstree.build("gmm", vectors).n_labels

    def by_exchange() -> int:
        return hstree.build("classes", corpus, n_classes=classes).n_labels

    def by_counting() -> int:
        KneserNey(5).fit(corpus)
        return len(corpus)

    X, labels = drawn_samples()

    def by_adagrad() -> int:
        options = {"builder": "huffman", "solver": "adagrad", "max_iter": 2}
        HierarchicalSoftmaxClassifier(**options).fit(X, labels)
        return len(labels)

    return {
        f"building, gmm, {n_words:,} vectors": by_gmm,
        f"building, classes by exchange, {classes} classes": by_exchange,
        "fitting, Kneser-Ney, order 5": by_counting,
        "fitting, classifier by Adagrad, 2,000 classes": by_adagrad,
    }


def drawn_samples() -> tuple[Any, Int64]:
    """Return sparse samples of 20 of 20,000 features, and classes by Zipf that two depend on."""
    rng, n, n_features = np.random.default_rng(0), SAMPLES, 20_000
    labels = rng.zipf(1.3, n) % 2000
    told = labels[:, None] * [7, 13] % n_features
    columns = np.hstack([told, rng.integers(0, n_features, (n, 18))])
    start = np.arange(0, columns.size + 1, columns.shape[1])
    ones = np.ones(columns.size, np.float32)
    return scipy.sparse.csr_array((ones, columns.ravel(), start), (n, n_features)), labels


def drawn_vectors(n_words: int, dim: int = 100) -> WordVectors:
    """Return vectors around a thousand centres."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((n_words, dim), np.float32)
    centres = rng.standard_normal((1000, dim), np.float32)
    for some in np.array_split(np.arange(n_words), 1 + n_words // 10_000):
        vectors[some] += centres[rng.integers(0, 1000, len(some))]
    return WordVectors([f"w{i}" for i in range(n_words)], vectors)


def memory(options: Any) -> Iterator[dict[str, Any]]:
    """Measure the peak memory of some of the work, each by each kernels in a fresh process."""
    for work in MEASURED:
        peak = {
            alone: fresh.measured(_prepared, _done, work, vars(options), alone)["peak_mib"]
            for alone in (True, False)
        }
        yield {
            "work": f"peak memory, {work}",
            "NumPy, MiB": peak[True],
            "compiled, MiB": peak[False],
            "ratio": peak[False] / peak[True],
        }


def _prepared(work: str, options: dict[str, Any], alone: bool) -> tuple[Work, bool]:
    kind, _, label = work.partition(", ")
    if label == "gmm":
        vectors = drawn_vectors(options["words"])
        return lambda: hstree.build("gmm", vectors).n_labels, alone
    corpus = hstree.Corpus.read(options["corpus"], min_count=1)
    if kind == "building":
        n_classes = min(options["classes"], len(corpus.vocabulary) // 2)
        return lambda: hstree.build("classes", corpus, n_classes=n_classes).n_labels, alone
    by_kind = scoring if kind == "scoring" else partial(training, name=kind)
    return by_kind({label: tree_of(label, corpus)}, corpus, options["tokens"])[work], alone


def _done(prepared: tuple[Work, bool]) -> None:
    work, alone = prepared
    with numpy_only(alone):
        work()


def compare(work: Mapping[str, Work], rounds: int) -> Iterator[dict[str, Any]]:
    """Let NumPy and the compiled kernels take turns at each piece of work."""
    for name, once in work.items():
        speeds: dict[bool, list[float]] = {True: [], False: []}
        for number in range(rounds + 1):
            for alone in (True, False):
                with numpy_only(alone):
                    began = time.perf_counter()
                    tokens = once()
                    speed = tokens / (time.perf_counter() - began)
                if number > 0:  # the first turn loads and compiles
                    speeds[alone].append(speed)
        ratios = [b / a for a, b in zip(speeds[True], speeds[False], strict=True)]
        yield {
            "work": name,
            "NumPy, /s": statistics.median(speeds[True]),
            "compiled, /s": statistics.median(speeds[False]),
            "ratio": statistics.median(ratios),
            "lowest": min(ratios),
            "highest": max(ratios),
        }


def training(
    trees: Mapping[str, Tree], corpus: hstree.Corpus, tokens: int, name: str
) -> dict[str, Work]:
    """Return a training loop for each tree, in batches, which goes on from turn to turn."""

    def work(tree: Tree) -> Work:
        running: dict[str, tuple[Any, Any]] = {}  # by kernels; made in the turn that is not timed

        def loop() -> int:
            if backend_name() not in running:
                model = new_model(tree, model=name)
                windows = model.windows(corpus)
                trainer = model.trainer(windows)
                epochs = map(partial(trainer.epoch_batches, windows), count(1))
                running[backend_name()] = trainer, chain.from_iterable(epochs)
            (trainer, batches), done = running[backend_name()], 0
            while done < tokens:
                contexts, targets, prepared = next(batches)
                trainer.step(contexts, targets, trainer.learning_rate(0), prepared)
                done += len(targets)
            return done

        return loop

    return {f"{name}, {label}": work(tree) for label, tree in trees.items()}


def scoring(trees: Mapping[str, Tree], corpus: hstree.Corpus, tokens: int) -> dict[str, Work]:
    """Return one pass of scoring for each tree, with drawn weights."""

    def once(model: Any, batches: Any) -> int:
        def nll(batch: Any) -> Any:
            return model.context_model.nll(model.layer, *batch[:2])

        scored = in_threads(nll, iter(batches), when=hooks_of(model.layer).scores_in_threads)
        return sum(len(nll) for _, nll in scored)

    work = {}
    for label, tree in trees.items():
        model = new_model(tree, model="lbl")
        for parameter in model.layer.parameters().values():
            parameter += np.random.default_rng(0).normal(0, 0.1, parameter.shape)
        batches = list(islice(model.windows(corpus).batches(1024), tokens // 1024 + 1))
        work[f"scoring, {label}"] = lambda model=model, batches=batches: once(model, batches)
    return work


def layers(sizes: list[int]) -> dict[str, Work]:
    """Return a step of the layer and its optimiser alone, over Huffman trees of some sizes."""
    work = {}
    for size in sizes:
        vocabulary = zipf_vocabulary(size)
        targets = drawn_targets(vocabulary)
        hidden = np.random.default_rng(0).standard_normal((LAYER_BATCH, DIM), np.float32)
        step = tree_step(hstree.build("huffman", vocabulary), hidden, targets)

        def steps(step: Callable[[], None] = step) -> int:
            for _ in range(5):
                step()
            return 5 * LAYER_BATCH

        work[f"layer alone, huffman, {size:,} labels"] = steps
    return work


def drawn_targets(vocabulary: Vocabulary) -> Int64:
    """Return the targets of a batch of the layer alone, drawn by the words' counts."""
    counts = vocabulary.counts
    return np.random.default_rng(0).choice(len(counts), LAYER_BATCH, p=counts / counts.sum())


def tree_of(text: str, corpus: hstree.Corpus) -> Tree:
    """Return the tree of a row; of a small vocabulary, at most half is listed, or classes."""
    most, row = len(corpus.vocabulary) // 2, Candidate.parse(text)
    for option in ("short_list", "n_classes"):
        if (row.options.get(option) or 0) > most:
            row = Candidate.parse(text := re.sub(rf"{option}=\d+", f"{option}={most}", text))
    return row.build(corpus, 0, None)


def read(text: Path) -> int:
    """Read a text and number its words, as a first reading does; return its tokens."""
    with TemporaryDirectory() as cache:
        return len(encode(open_source(text), cache=cache).ids)


if __name__ == "__main__":
    main()

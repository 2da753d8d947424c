"""Speed and loss of CBOW and skip-gram in hstree and gensim, alternately in one process.

Both train on the same lines (``<eos>`` is the last word of each) with hierarchical softmax over the
Huffman tree, the same dimension, window, epochs and sub-sampling. hstree trains in batches and,
where numba is installed, word by word (``online``), as gensim does. gensim has as many workers as
hstree has threads (OMP_NUM_THREADS). Learning rates are the defaults of each. Then both predict the
same held-out text, every word given its whole window. gensim's weights are scored by hstree's layer
on gensim's own tree, without biases. `nll` is the mean over tokens, in nats. Every round has its
own seed. ``--fasttext PROGRAM`` adds fastText (hierarchical softmax, no subwords), which is not
scored. Its CPU seconds are measured, so use ``--cpu`` and one thread.

    python -m benchmarks.word2vec train.txt held-out.txt [--epochs 5] [--sample 0.001 0]
"""

from __future__ import annotations

import math
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import hstree
from benchmarks import common
from hstree._parallel import n_threads
from hstree.data.windows import SymmetricWindows
from hstree.interop.gensim import layer_of
from hstree.kernels import backend_name
from hstree.models import new_model
from hstree.models.word2vec import WindowModel
from hstree.training.scoring import score

#: Trains by a random seed; returns the seconds that it took and the mean nll of the held-out text.
Contestant = Callable[[int], tuple[float, float]]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--models", nargs="+", default=["cbow", "skipgram"])
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--window", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--sample", type=float, nargs="+", default=[1e-3, 0.0])
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--by", nargs="+", metavar="NAME", help='only these, as "hstree, online"')
    parser.add_argument("--fasttext", metavar="PROGRAM", help="also this build of fastText")
    parser.add_argument("--cpu", action="store_true", help="CPU time, for one thread")
    options = parser.parse_args()
    if options.fasttext and options.epochs < 2:
        parser.error("--fasttext takes two epochs or more: one is for reading and writing")
    options.clock = time.process_time if options.cpu else time.perf_counter
    train = hstree.Corpus.read(options.train, min_count=1)
    test = hstree.Corpus.read(options.test, vocabulary=train.vocabulary)
    rows = (
        row
        for model in options.models
        for sample in options.sample
        for row in compare(model, sample, train, test, options)
    )
    common.report("word2vec", rows, options.json)


def compare(
    model: str, sample: float, train: hstree.Corpus, test: hstree.Corpus, options: Any
) -> Iterator[dict[str, Any]]:
    """Let both train alternately; speeds are medians over rounds, and so is their ratio."""
    makers = {
        "gensim": train_gensim,
        "gensim, from a file": partial(train_gensim, is_from_file=True),
        "hstree": train_hstree,
        "hstree, online": partial(train_hstree, online=True),
    }
    if options.fasttext:
        makers["fastText"] = train_fasttext
    if backend_name() == "numpy":
        del makers["hstree, online"]
    names = [name for name in makers if options.by is None or name in options.by]
    contestants: dict[str, Contestant] = {
        name: makers[name](model, sample, train, test, options) for name in names
    }
    speeds: dict[str, list[float]] = {name: [] for name in contestants}
    nlls: dict[str, list[float]] = {name: [] for name in contestants}
    for seed in range(options.rounds):
        for name, contestant in contestants.items():
            seconds, nll = contestant(seed)
            speeds[name].append(options.epochs * len(train) / seconds)
            nlls[name].append(nll)
    for name, measured in speeds.items():
        nll = statistics.mean(nlls[name])
        is_scored = not math.isnan(nll)
        ratios = [a / b for a, b in zip(measured, speeds.get("gensim", []), strict=False)]
        yield {
            "model": model,
            "sample": f"{sample:g}",
            "by": name,
            "threads": 1 if name == "fastText" else n_threads(),
            "epochs": options.epochs,
            "words/s": statistics.median(measured),
            "times gensim": statistics.median(ratios) if ratios else None,
            "held-out nll": nll if is_scored else None,
            "sd": statistics.stdev(nlls[name]) if is_scored and options.rounds > 1 else None,
            "perplexity": math.exp(nll) if is_scored else None,
        }


def train_hstree(
    model: Any,
    sample: float,
    train: hstree.Corpus,
    test: hstree.Corpus,
    options: Any,
    online: bool = False,
) -> Contestant:
    """Return hstree's training over Huffman's tree."""
    tree = hstree.build("huffman", train)

    def contestant(seed: int) -> tuple[float, float]:
        untrained = new_model(
            tree,
            random_state=seed,
            model=model,
            dim=options.dim,
            window=options.window,
            sample=sample,
            epochs=options.epochs,
            batch_size=options.batch_size,
            online=online,
        )
        began = options.clock()
        trained = untrained.fit(train, fast=True)
        seconds = options.clock() - began
        result = trained.score(test)
        return seconds, result.nll / result.tokens

    return contestant


def train_gensim(
    model: Any,
    sample: float,
    train: hstree.Corpus,
    test: hstree.Corpus,
    options: Any,
    is_from_file: bool = False,
) -> Contestant:
    """Return gensim's training over its own Huffman tree; a file's lines have no ``<eos>``."""
    from gensim.models import Word2Vec as Gensim

    words, start = train.words(), train.line_start.tolist()
    lines = [words[a:b] for a, b in pairwise(start)]

    def contestant(seed: int) -> tuple[float, float]:
        trained = Gensim(
            vector_size=options.dim,
            window=options.window,
            sg=int(model == "skipgram"),
            hs=1,
            negative=0,
            min_count=1,
            sample=sample,
            workers=n_threads(),
            seed=seed,
        )
        source: dict[str, Any] = (
            {"corpus_file": options.train} if is_from_file else {"corpus_iterable": lines}
        )
        trained.build_vocab(**source)
        more = {"total_examples": len(lines), "total_words": trained.corpus_total_words}
        began = options.clock()
        trained.train(**source, **more, epochs=options.epochs)
        seconds = options.clock() - began
        if is_from_file:  # it has fewer tokens, and no vector of <eos>
            return seconds * len(train) / (len(train) - len(lines)), math.nan
        return seconds, score_gensim(trained, model, test, options.window)

    return contestant


def train_fasttext(
    model: Any, sample: float, train: hstree.Corpus, test: hstree.Corpus, options: Any
) -> Contestant:
    """Return fastText's training; a run of one epoch gives the time of reading and writing."""
    sizes = ["-dim", options.dim, "-ws", options.window, "-minCount", 1, "-maxn", 0, "-bucket", 0]
    training = ["-loss", "hs", "-t", sample or 1, "-thread", 1]

    def seconds(epochs: int) -> float:
        before = cpu_of_children()
        with tempfile.TemporaryDirectory() as folder:
            files = ["-input", options.train, "-output", f"{folder}/model", "-epoch", epochs]
            command = [options.fasttext, model, *files, *sizes, *training]
            subprocess.run([str(word) for word in command], check=True, capture_output=True)
        return cpu_of_children() - before

    def contestant(seed: int) -> tuple[float, float]:
        per_epoch = (seconds(options.epochs) - seconds(1)) / (options.epochs - 1)
        return options.epochs * per_epoch, math.nan

    return contestant


def cpu_of_children() -> float:
    """Return the CPU seconds of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def score_gensim(trained: Any, model: Any, test: hstree.Corpus, window: int) -> float:
    """Return the mean nll of a text under gensim's weights."""
    layer = layer_of(trained)
    frame = new_model(layer.tree, model=model, dim=layer.dim, window=window)
    context_model: WindowModel = frame.context_model
    context_model.embedding[...] = trained.wv.vectors
    result = score(context_model, layer, SymmetricWindows(frame.reencode(test), window))
    return result.nll / result.tokens


if __name__ == "__main__":
    main()

"""Every output layer in training and in testing, side by side in one process.

The rows are by default the hierarchical softmax over a Huffman tree and all layers over a
vocabulary. Words and contexts are drawn by Zipf's law. Measured are a whole training step of the
log-bilinear model, the drawing of its batch included, and for the hidden vectors of a batch the nll
of one target each, the log-probabilities of all words, and the 10 most probable words.
Medians over rounds in which the layers take turns; ratios to flat are of the same round.

    python -m benchmarks.approximations [--sizes 10000 100000] [--rows ROW ...] [--json FILE]
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np

from benchmarks import table
from benchmarks.layer import Step, take_turns, zipf_counts
from hstree.data.corpus import Corpus
from hstree.data.encoding import EncodedText
from hstree.data.vocabulary import EOS, Vocabulary
from hstree.experiments.candidate import Candidate
from hstree.layers.hooks import hooks_of
from hstree.layers.registry import LAYERS, LayerSpec
from hstree.models import new_model

#: Tokens of the text that is trained on.
TOKENS = 200_000
#: Log-probabilities of all words that are computed at a time.
TABLE = 1 << 24


def main() -> None:
    parser = table.parser(__doc__)
    layers = [name for name, kind in LAYERS.all().items() if kind.takes is Vocabulary]
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--rows", nargs="+", default=["huffman", *layers], metavar="ROW")
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows = (
        row
        for size in options.sizes
        for row in compare(size, options.rows, options.dim, options.batch_size, options.rounds)
    )
    table.report("approximations", rows, options.json)


def compare(
    n_words: int, rows: Sequence[str], dim: int, batch_size: int, rounds: int
) -> Iterator[table.Row]:
    """Measure the rows, and flat, at one size of vocabulary."""
    corpus = zipf_corpus(n_words)
    words, specs = corpus.vocabulary, {}
    for row in map(Candidate.parse, dict.fromkeys([*rows, "flat"])):
        tree = row.build(words, 0, None) if row.kind == "tree" else None
        specs[str(row)] = row.spec(words, tree)
    steps = {name: steps_of(spec, corpus, dim, batch_size) for name, spec in specs.items()}
    # {what is measured: {layer: seconds of each round}}
    seconds = {
        task: take_turns({name: of[task] for name, of in steps.items()}, rounds)
        for task in ("training", "one word", "all words", "top 10")
    }
    sizes = {name: n_parameters(spec, dim) for name, spec in specs.items()}
    for name in specs:
        figures: dict[str, object] = {"words": n_words, "layer": name}
        for task, taken in seconds.items():
            ratios = [a / b for a, b in zip(taken["flat"], taken[name], strict=True)]
            figures[f"{task}, ms"] = 1e3 * statistics.median(taken[name])
            figures[f"{task}, times flat"] = statistics.median(ratios)
        figures["parameters, % of flat"] = 100 * sizes[name] / sizes["flat"]
        yield figures


def zipf_corpus(n_words: int) -> Corpus:
    """Return a text of words that are drawn by Zipf's law."""
    counts = zipf_counts(n_words)
    types = [EOS, *(f"w{i}" for i in range(1, n_words))]
    rng = np.random.default_rng(0)
    ids = rng.choice(n_words, TOKENS, p=counts / counts.sum()).astype(np.int32)
    ids[-1] = 0
    line_start = np.append(0, np.flatnonzero(ids == 0) + 1)
    occurring = np.bincount(ids, minlength=n_words)
    text = EncodedText("Zipf", "", False, types, occurring, ids, line_start)
    return Corpus(text, Vocabulary(types, counts))


def steps_of(spec: LayerSpec, corpus: Corpus, dim: int, batch_size: int) -> dict[str, Step]:
    """Return what is measured of a layer, by name."""
    model = new_model(spec, dim=dim, batch_size=batch_size)
    windows = model.windows(corpus)
    layer = model.layer
    if (prepare := hooks_of(layer).prepare) is not None:
        prepare(windows)
    trainer = model.trainer(windows)
    batches = (batch for epoch in count(1) for batch in trainer.epoch_batches(windows, epoch))
    hidden = np.random.default_rng(1).standard_normal((batch_size, dim), np.float32)
    targets = next(windows.batches(batch_size))[1]
    per_part = max(1, TABLE // len(corpus.vocabulary))
    parts = np.split(hidden, range(per_part, batch_size, per_part))

    def train() -> None:
        contexts, of_contexts, prepared = next(batches)
        trainer.step(contexts, of_contexts, 0.1, prepared)

    def all_words() -> None:
        for part in parts:
            layer.log_prob(part)

    return {
        "training": train,
        "one word": lambda: layer.nll(hidden[: len(targets)], targets),
        "all words": all_words,
        "top 10": lambda: layer.top_k(hidden, 10),
    }


def n_parameters(spec: LayerSpec, dim: int) -> int:
    """Return the number of a layer's parameters."""
    shapes = spec.kind.layer.shapes(spec.source, dim, **spec.options)
    return sum(math.prod(shape) for shape in shapes.values())


if __name__ == "__main__":
    main()

"""Perplexity of a language model in torch after equal seconds, by its output layer.

`hstree.compare` trains the model with each candidate for the same time, including
word vectors and trees. Results are means over random seeds with their standard deviation. Finished
runs are kept in the folder, so that a repeated command continues. With several rates, each
candidate has the best of them on validation (the option `rates` of the model).

    python -m benchmarks.torch_perplexity [--model "transformer dim=128"] [--candidates flat]
                                          [--corpus brown | --text FILE --words 50000]
                                          [--seconds 120] [--rates 0.1 0.3] [--device cuda]
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import hstree
from benchmarks import common
from benchmarks.comparisons import write_spread
from benchmarks.texts import TEXTS, add_texts
from hstree import progress
from hstree.data.splits import Splits
from hstree.data.vocabulary import Vocabulary
from hstree.experiments.results import CandidateResult

CANDIDATES = (
    "adaptive",
    "flat",
    "classes",
    "huffman",
    "huffman short_list=250",
    "gmm short_list=250",
    "semantic short_list=250",
    "sampled samples=1000",
)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--candidates", nargs="+", default=CANDIDATES, metavar="CANDIDATE")
    parser.add_argument("--folder", type=Path, default=Path("runs/torch_perplexity"))
    options = parse(parser)
    common.report("torch_perplexity", rows(options.candidates, options), options.json)


def add_model(parser: ArgumentParser) -> None:
    """Add the options of a text and a model."""
    add_texts(parser)
    parser.add_argument("--text", type=Path, help="a file in place of a corpus")
    parser.add_argument("--words", type=int, help="number of its most frequent words to keep")
    parser.add_argument(
        "--min-count", type=int, default=1, help="of its words; 2 or more trains <unk>"
    )
    parser.add_argument("--vocabulary", type=Path, help="its words, as `hstree vocab` writes them")
    parser.add_argument("--model", default="gru", help='model and options, as "gru dim=256"')


def parse(parser: ArgumentParser) -> Namespace:
    """Parse a command line with the options of a text, a model and its training."""
    add_model(parser)
    parser.add_argument("--reference", default="sampled", help="has the ratio 1")
    parser.add_argument("--rates", type=float, nargs="+", help="learning rates of the heads")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seeds", type=int, default=3)
    return parser.parse_args()


def rows(candidates: Sequence[str], options: Namespace) -> Iterator[dict[str, Any]]:
    """Train the reference and the candidates, and lay out the table."""
    progress.enable()
    training: dict[str, Any] = {"model": options.model, "device": options.device}
    if options.rates:
        training["learning_rate"] = options.rates[0]
    if len(options.rates or []) > 1:
        training["rates"] = ",".join(map(str, options.rates))
    comparison = hstree.compare(
        read_splits(options),
        [options.reference, *(name for name in candidates if name != options.reference)],
        options.folder,
        stop=hstree.Seconds(options.seconds),
        seeds=options.seeds,
        speed_rounds=0,
        only=True,
        **training,
    )
    reference = comparison.candidates[0].test
    for result in comparison.candidates:
        row = columns(result, options.folder, comparison.tokens["train"])
        ratio = result.test / reference if result.test and reference else None
        yield row | {"ratio": ratio}


def columns(result: CandidateResult, folder: Path, n_tokens: int) -> dict[str, Any]:
    """Return the columns of a candidate that was trained on `n_tokens` tokens per epoch."""
    at_root = None
    if result.tree_file is not None:
        at_root = hstree.load(folder / result.tree_file).stats().root_fraction
    seconds = result.timings.training
    trained = result.trained_epochs * n_tokens
    return {
        "candidate": result.name,
        "short list": result.options.get("short_list"),
        "at the root": at_root,
        "vectors s": result.timings.vectors,
        "tree s": result.timings.tree,
        "tokens/s": trained / seconds if seconds else None,
        "epochs": result.trained_epochs,
        "valid": "failed" if result.failed else write_spread(result.perplexity["valid"]),
        "test": "failed" if result.failed else write_spread(result.perplexity["test"]),
    }


def read_splits(options: Namespace) -> Splits:
    """Read the text; all splits have the words of the file, or the most frequent ones."""
    if options.text is None:
        parts = TEXTS[options.corpus](options.ptb)
    else:
        parts = Splits.of(hstree.Corpus.read(options.text))
    if options.vocabulary is not None:
        words = Vocabulary.from_file(options.vocabulary)
    else:
        words = parts.train.select_vocabulary(
            min_count=options.min_count, max_size=options.words, unk=True
        )
    return Splits(*(part.with_vocabulary(words) for part in parts))


if __name__ == "__main__":
    main()

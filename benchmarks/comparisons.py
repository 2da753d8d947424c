"""Comparisons of output layers on a text: the tables of three papers, and others of docs/results/.

Every candidate is trained under the same regime, and every finished job is kept in the folder, so
that a repeated command continues. Perplexities are means over random seeds, with the sample
standard deviation. Speeds are measured at the end, all candidates alternately in one process.
Candidates are written as for ``hstree compare``.

frontier      README's table: perplexity and total seconds, until validation stops.
mnih_hinton   Mnih & Hinton (2008): trees learned from vectors, on the Penn Treebank.
goodman       Goodman (2001): class trees, on the Penn Treebank.
morin_bengio  Morin & Bengio (2005): is-a trees, on Brown's corpus.

    python -m benchmarks.comparisons frontier [--corpus brown] [--candidates CANDIDATE ...]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import hstree
from benchmarks import common
from benchmarks.texts import TEXTS, add_texts
from hstree import progress
from hstree.experiments.results import CandidateResult, Ratio, Scored, Spread

SPLITS: tuple[Scored, ...] = ("valid", "test")


class Table(NamedTuple):
    """Defaults of a table: candidates, text, epochs and seeds."""

    candidates: tuple[str, ...]
    corpus: str = "ptb"
    epochs: int = 12
    seeds: int = 1


TABLES = {
    "frontier": Table(
        (
            "flat",
            "huffman",
            "gmm",
            "gmm epsilon=0.4 trees=4",
            "classes",
            "flat + ngrams",
            "gmm + ngrams",
            "classes + ngrams",
        ),
        epochs=40,
    ),
    "mnih_hinton": Table(
        (
            "random",
            "huffman",
            "gmm split=balanced",
            "gmm",
            "gmm epsilon=0.25",
            "gmm epsilon=0.4",
            "gmm epsilon=0.4 trees=2",
            "gmm epsilon=0.4 trees=4",
            "gmm epsilon=0.4 trees=8",
            "gmm epsilon=0.4 trees=12",
            "semantic",
            "flat",
        ),
        seeds=3,
    ),
    "goodman": Table(
        (
            "random",
            "huffman",
            "gmm",
            "classes cluster_by=frequency",
            "classes cluster_by=vectors",
            "classes",
            "classes cluster_by=brown",
            "flat",
        ),
    ),
    "morin_bengio": Table(
        (
            "random",
            "huffman",
            "wordnet",
            "wordnet binarise=none",
            "wordnet senses=all",
            "wordnet senses=all binarise=none",
            "gmm",
            "gmm epsilon=0.4 trees=4",
            "classes",
            "classes cluster_by=brown",
            "classes cluster_by=frequency",
            "classes cluster_by=vectors",
            "flat",
            "kn3",
        ),
        corpus="brown",
    ),
}


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--candidates", nargs="+", metavar="CANDIDATE")
    parser.add_argument("--folder", type=Path, help="folder of the jobs (default: runs/TABLE)")
    parser.add_argument("--seeds", type=int, help="number of random seeds")
    parser.add_argument("--epochs", type=int)
    add_texts(parser, default=None)
    options = parser.parse_args()
    table = TABLES[options.table]
    for name in ("candidates", "corpus", "epochs", "seeds"):
        if getattr(options, name) is None:
            setattr(options, name, getattr(table, name))
    options.folder = options.folder or Path("runs", options.table)
    common.report("comparisons", rows(options), options.json)


def rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Train the candidates, and lay out the table."""
    progress.enable()
    splits = TEXTS[options.corpus](options.ptb)
    comparison = hstree.compare(
        splits,
        options.candidates,
        options.folder,
        stop=hstree.Epochs(options.epochs),
        seeds=options.seeds,
        only=True,
    )
    for result in comparison.candidates:
        yield costs(result) | seconds_from_text(result)


def costs(result: CandidateResult) -> dict[str, Any]:
    """Return the columns of a candidate's costs and perplexities.

    Epochs are the maximum over random seeds. An asterisk marks candidates that stopped at the
    limit, before the validation perplexity had stopped falling.
    """
    columns: dict[str, Any] = {"candidate": result.name}
    if result.tree is not None:
        columns |= {
            "codes/word": result.tree.codes_per_label,
            "code length": result.tree.code_length.weighted,
            "scores/target": result.tree.scores_per_target,
            "parameters": result.parameters,
        }
    columns |= {split: write_spread(result.perplexity[split]) for split in SPLITS}
    columns["ratio to flat"] = write_ratio(result.to_flat)
    if result.tree is not None:
        epochs = max(len(job.epochs) for job in result.jobs)
        mark = "*" if result.at_epoch_limit else ""
        columns |= {"n": result.perplexity["test"].n, "epochs": f"{epochs}{mark}"}
    return columns


def seconds_from_text(result: CandidateResult) -> dict[str, float | None]:
    """Return the columns of training speed, and of the total seconds."""
    if result.tree is None:
        return {}
    return {
        "tokens/s": result.training and result.training.median,
        "total s": result.timings.total,
        "total s, times flat": result.from_text_times_flat,
    }


def write_spread(spread: Spread) -> str:
    """Write the mean over random seeds, with the standard deviation where there are several."""
    return f"{spread.mean:.1f}" + ("" if spread.sd is None else f" ± {spread.sd:.1f}")


def write_ratio(ratio: Ratio | None) -> str | None:
    """Write a ratio with its interval, if there is one."""
    if ratio is None or ratio.low is None:
        return ratio and f"{ratio.ratio:.3f}"
    return f"{ratio.ratio:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


if __name__ == "__main__":
    main()

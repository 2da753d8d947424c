"""Rows tuned over one grid: weight decay and dropout of each, chosen on validation.

Every row has as many trials as every other, the flat softmax among them: the same pairs of a weight
decay, times the number of training tokens, and a dropout, one random state each. The pair of the
lowest validation perplexity is then trained from further random states. Test perplexities are those
of one model, of two that predict together (of each two random states), and of one and two mixed
with a Kneser-Ney model of order 5. Ratios are to the first row, and of rows with n-gram features to
`flat + ngrams`, where it is among them. Every training is a process; finished ones are kept in the
folder, so that a repeated command continues.

    python -m benchmarks.tuned [--corpus brown] [--rows ROW ...] [--pairs 14,0.35 ...] [--json FILE]
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import hstree
from benchmarks import table
from benchmarks.compared import parser, write_spread
from benchmarks.frontier import interval
from benchmarks.texts import TEXTS, add_ptb
from hstree import progress
from hstree._arrays import Float64
from hstree.data.splits import Splits
from hstree.experiments.candidate import Candidate
from hstree.experiments.compare import best_weight, mixed_nll
from hstree.experiments.results import CandidateResult, Spread
from hstree.experiments.significance import paired_ratio
from hstree.models.lbl import TEXT_DECAY

ROWS = (
    "flat",
    "flat + ngrams",
    "huffman",
    "random",
    "gmm",
    "classes",
    "wordnet",
    "gmm epsilon=0.4 trees=4",
    "huffman + ngrams",
    "gmm + ngrams",
    "classes + ngrams",
)
NGRAMS = "kn5"
DECAYS = (7, 14, 28, 56, 112)
DROPOUTS = (0.2, 0.35, 0.5)
#: The weight decay, times tokens, and the dropout of `hstree.compare` by default.
DEFAULT = (TEXT_DECAY, 0.35)


class Job(NamedTuple):
    """A training: row, weight decay times tokens, dropout and random state."""

    row: str
    decay: float
    dropout: float
    seed: int


class Scores(NamedTuple):
    """Negative log-likelihoods of each token of a split, by random state."""

    valid: list[Float64]
    test: list[Float64]


def main() -> None:
    command = parser(__doc__, ROWS, "runs/tuned", seeds=3, epochs=40)
    add_ptb(command)
    command.add_argument("--corpus", choices=TEXTS, default="ptb")
    command.add_argument("--lines", type=int, help="number of first lines to train on")
    command.add_argument(
        "--pairs",
        nargs="+",
        type=lambda pair: tuple(map(float, pair.split(","))),
        default=list(product(DECAYS, DROPOUTS)),
        metavar="DECAY,DROPOUT",
    )
    command.add_argument("--workers", type=int, default=1, help="number of processes")
    options = command.parse_args()
    read(options.corpus, options.ptb, options.lines)  # a missing text ends it here
    table.report("tuned", tuned(options), options.json)


def tuned(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Try every pair for all rows, then train each row's best from all random states."""
    rows = [str(Candidate.parse(row)) for row in options.rows]
    pairs = dict.fromkeys([*options.pairs, DEFAULT])
    grid = [Job(row, *pair, seed=0) for row in rows for pair in pairs]
    of_ngrams = Job(NGRAMS, *DEFAULT, seed=0)
    results = dict(zip([*grid, of_ngrams], trained([*grid, of_ngrams], options), strict=True))
    valid = {job: results[job].perplexity["valid"].mean or np.inf for job in grid}
    best = {}
    for row in rows:
        best[row] = min((job for job in grid if job.row == row), key=valid.__getitem__)
    seeds = range(options.seeds)
    chosen = {row: [job._replace(seed=seed) for seed in seeds] for row, job in best.items()}
    trained([job for jobs in chosen.values() for job in jobs], options)

    ngrams = scores(options, [of_ngrams])
    all_figures = {row: figures(scores(options, jobs), ngrams) for row, jobs in chosen.items()}
    for row, job in best.items():
        like = "flat + ngrams" if "+ ngrams" in row and "flat + ngrams" in best else rows[0]
        default = scores(options, [Job(row, *DEFAULT, seed=0)]).test
        of_like = scores(options, [Job(like, *DEFAULT, seed=0)]).test
        columns = {
            "row": row,
            "decay": f"{job.decay:g} / tokens",
            "dropout": f"{job.dropout:g}",
            "valid": f"{valid[job]:.1f}",
            "test, defaults": perplexity(default),
            "ratio, defaults": ratio(default, of_like),
            "like": like,
        }
        for name, nlls in all_figures[row].items():
            columns[name] = perplexity(nlls)
            columns[f"{name}, ratio"] = ratio(nlls, all_figures[like][name])
        yield columns


def figures(scores: Scores, ngrams: Scores) -> dict[str, list[Float64]]:
    """Return the nll of test tokens of one model and of two, alone and mixed with n-grams."""
    two = Scores(*([mixed_nll(0.5, *pair) for pair in combinations(part, 2)] for part in scores))
    some = {"test": scores, "two models": two}
    all_nlls: dict[str, list[Float64]] = {}
    for name, (valid, test) in some.items():
        if test:
            weights = [best_weight(nll, ngrams.valid[0]) for nll in valid]
            mixed = [mixed_nll(*pair, ngrams.test[0]) for pair in zip(weights, test, strict=True)]
            all_nlls |= {name: test, f"{name} and {NGRAMS}": mixed}
    return all_nlls


def ratio(nlls: list[Float64], others: list[Float64]) -> str | None:
    """Write the ratio of two perplexities with its interval."""
    return interval(paired_ratio(nlls, others))


def perplexity(nlls: list[Float64]) -> str:
    """Write the perplexity over random states."""
    return write_spread(Spread.of([float(np.exp(nll.mean())) for nll in nlls]))


def trained(jobs: list[Job], options: argparse.Namespace) -> list[CandidateResult]:
    """Do jobs, with several workers each in a process of its own."""
    if options.workers == 1:
        progress.enable()
        return [train(job, options) for job in jobs]
    with ProcessPoolExecutor(options.workers, max_tasks_per_child=1) as pool:
        return list(pool.map(train, jobs, [options] * len(jobs)))


def train(job: Job, options: argparse.Namespace) -> CandidateResult:
    """Train a row with a pair from one random state; a finished training is read."""
    splits = read(options.corpus, options.ptb, options.lines)
    comparison = hstree.compare(
        splits,
        [job.row],
        folder(job, options),
        stop=hstree.Epochs(options.epochs),
        speed_rounds=0,
        weight_decay=job.decay / len(splits.train),
        dropout=job.dropout,
        random_state=job.seed,
    )
    return comparison.candidates[0]


def scores(options: argparse.Namespace, jobs: list[Job]) -> Scores:
    """Read the scores of finished trainings."""
    runs = [folder(job, options) / "runs" / Candidate.parse(job.row).folder for job in jobs]
    parts = (
        [np.load(file) for run in runs for file in sorted(run.rglob(f"{part}_nll.npy"))]
        for part in Scores._fields
    )
    return Scores(*parts)


def folder(job: Job, options: argparse.Namespace) -> Path:
    """Return where a training is kept."""
    name = re.sub(r"[^\w.=]+", "-", job.row)
    pair = f"decay-{job.decay:g}-dropout-{job.dropout:g}"
    return Path(options.folder, options.corpus, name, f"{pair}-seed-{job.seed}")


@cache
def read(corpus: str, ptb: Path | None, lines: int | None) -> Splits:
    """Read a text, of which the first lines train."""
    splits = TEXTS[corpus](ptb)
    return splits._replace(train=splits.train.select_lines(0, lines)) if lines else splits


if __name__ == "__main__":
    main()

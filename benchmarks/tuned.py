"""Candidates tuned over one grid: weight decay and dropout of each, chosen on validation.

Every candidate has as many trials as every other, the flat softmax among them: the same pairs of a
weight decay, times the number of training tokens, and a dropout, with one random seed each. The
pair of the lowest validation perplexity is then trained with further random seeds. Test
perplexities are those of one model, of two that predict together (of each two random seeds), and of
one and two mixed with a Kneser-Ney model of order 5. Ratios are to the first candidate, and for
candidates with n-gram features to `flat + ngrams`, where it is among them. Every training run is
a process. Finished ones are kept in the folder, so that a repeated command continues.

    python -m benchmarks.tuned [--corpus brown] [--candidates CANDIDATE ...] [--pairs 14,0.35 ...]
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
from benchmarks import common
from benchmarks.comparisons import write_ratio, write_spread
from benchmarks.texts import TEXTS, add_texts
from hstree import progress
from hstree._arrays import Float64
from hstree.data.splits import Splits
from hstree.experiments.candidate import Candidate
from hstree.experiments.results import CandidateResult, Spread
from hstree.experiments.statistics import best_weight, mixed_nll, paired_ratio
from hstree.experiments.store import folder_name
from hstree.models.lbl import TEXT_DECAY

CANDIDATES = (
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
    """A training run: candidate, weight decay times tokens, dropout and random seed."""

    candidate: str
    decay: float
    dropout: float
    seed: int


class Scores(NamedTuple):
    """Negative log-likelihoods of each token of a split, by random seed."""

    valid: list[Float64]
    test: list[Float64]


def main() -> None:
    command = common.parser(__doc__)
    add_texts(command)
    command.add_argument("--candidates", nargs="+", default=CANDIDATES, metavar="CANDIDATE")
    command.add_argument("--folder", type=Path, default=Path("runs/tuned"))
    command.add_argument("--seeds", type=int, default=3, help="number of random seeds")
    command.add_argument("--epochs", type=int, default=40)
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
    read(options.corpus, options.ptb, options.lines)  # fails here where a text is missing
    common.report("tuned", tuned(options), options.json)


def tuned(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Try every pair for all candidates, then train each one's best with all random seeds."""
    candidates = [str(Candidate.parse(candidate)) for candidate in options.candidates]
    pairs = dict.fromkeys([*options.pairs, DEFAULT])
    grid = [Job(candidate, *pair, seed=0) for candidate in candidates for pair in pairs]
    ngram_job = Job(NGRAMS, *DEFAULT, seed=0)
    trials = [*grid, ngram_job]
    results = dict(zip(trials, train_all(trials, options), strict=True))
    valid = {job: results[job].perplexity["valid"].mean or np.inf for job in grid}
    best = {
        candidate: min((job for job in grid if job.candidate == candidate), key=valid.__getitem__)
        for candidate in candidates
    }
    chosen = {
        candidate: [job._replace(seed=seed) for seed in range(options.seeds)]
        for candidate, job in best.items()
    }
    train_all([job for jobs in chosen.values() for job in jobs], options)

    ngrams = read_scores(options, [ngram_job])
    # {candidate: {column: nll of test tokens, by random seed}}
    columns = {
        candidate: mixtures(read_scores(options, jobs), ngrams)
        for candidate, jobs in chosen.items()
    }
    for candidate, job in best.items():
        has_features = "+ ngrams" in candidate and "flat + ngrams" in best
        baseline = "flat + ngrams" if has_features else candidates[0]
        default = read_scores(options, [Job(candidate, *DEFAULT, seed=0)]).test
        baseline_default = read_scores(options, [Job(baseline, *DEFAULT, seed=0)]).test
        row = {
            "candidate": candidate,
            "decay": f"{job.decay:g} / tokens",
            "dropout": f"{job.dropout:g}",
            "valid": f"{valid[job]:.1f}",
            "test, defaults": perplexity(default),
            "ratio, defaults": ratio(default, baseline_default),
            "like": baseline,
        }
        for name, nlls in columns[candidate].items():
            row[name] = perplexity(nlls)
            row[f"{name}, ratio"] = ratio(nlls, columns[baseline][name])
        yield row


def mixtures(scores: Scores, ngrams: Scores) -> dict[str, list[Float64]]:
    """Return the nll of test tokens of one model and of two, alone and mixed with n-grams."""
    two = Scores(
        [mixed_nll(0.5, *pair) for pair in combinations(scores.valid, 2)],
        [mixed_nll(0.5, *pair) for pair in combinations(scores.test, 2)],
    )
    columns: dict[str, list[Float64]] = {}
    for name, (valid, test) in {"test": scores, "two models": two}.items():
        if test:
            weights = [best_weight(nll, ngrams.valid[0]) for nll in valid]
            columns[name] = test
            columns[f"{name} and {NGRAMS}"] = [
                mixed_nll(weight, nll, ngrams.test[0])
                for weight, nll in zip(weights, test, strict=True)
            ]
    return columns


def ratio(nlls: list[Float64], others: list[Float64]) -> str | None:
    """Write the ratio of two perplexities with its interval."""
    return write_ratio(paired_ratio(nlls, others))


def perplexity(nlls: list[Float64]) -> str:
    """Write the perplexity over random seeds."""
    return write_spread(Spread.of([float(np.exp(nll.mean())) for nll in nlls]))


def train_all(jobs: list[Job], options: argparse.Namespace) -> list[CandidateResult]:
    """Run jobs, with several workers each in its own process."""
    if options.workers == 1:
        progress.enable()
        return [train(job, options) for job in jobs]
    with ProcessPoolExecutor(options.workers, max_tasks_per_child=1) as pool:
        return list(pool.map(train, jobs, [options] * len(jobs)))


def train(job: Job, options: argparse.Namespace) -> CandidateResult:
    """Train a candidate with a pair and a random seed, or read the finished training."""
    splits = read(options.corpus, options.ptb, options.lines)
    comparison = hstree.compare(
        splits,
        [job.candidate],
        folder(job, options),
        stop=hstree.Epochs(options.epochs),
        speed_rounds=0,
        weight_decay=job.decay / len(splits.train),
        dropout=job.dropout,
        random_state=job.seed,
    )
    return comparison.candidates[0]


def read_scores(options: argparse.Namespace, jobs: list[Job]) -> Scores:
    """Read the scores of finished training runs."""
    scores = Scores([], [])
    for job in jobs:
        run = folder(job, options) / "runs" / folder_name(Candidate.parse(job.candidate))
        scores.valid.extend(np.load(file) for file in sorted(run.rglob("valid_nll.npy")))
        scores.test.extend(np.load(file) for file in sorted(run.rglob("test_nll.npy")))
    return scores


def folder(job: Job, options: argparse.Namespace) -> Path:
    """Return the folder of a training run."""
    name = re.sub(r"[^\w.=]+", "-", job.candidate)
    pair = f"decay-{job.decay:g}-dropout-{job.dropout:g}"
    return Path(options.folder, options.corpus, name, f"{pair}-seed-{job.seed}")


@cache
def read(corpus: str, ptb: Path | None, lines: int | None) -> Splits:
    """Read a text, with its first lines as the training split."""
    splits = TEXTS[corpus](ptb)
    return splits._replace(train=splits.train.select_lines(0, lines)) if lines else splits


if __name__ == "__main__":
    main()

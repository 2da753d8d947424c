"""Predicted and real seconds of the runs of a comparison.

    python -m benchmarks.plans corpus.txt --epochs 3 --folder runs/plans

The real seconds of a run are those of building its tree, training and scoring. Finished runs are
kept: delete the folder to measure again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hstree
from benchmarks import table
from hstree import progress
from hstree.experiments import compare
from hstree.experiments.entries import Baseline, as_entries
from hstree.experiments.evaluation import corpus_splits
from hstree.experiments.planning import Plan
from hstree.experiments.runs import BUILD, RESULT
from hstree.experiments.work import Work

ROWS = ("huffman", "gmm", ("gmm", {"epsilon": 0.4, "trees": 4}), "classes", "flat", "kn5")


def main() -> None:
    """Compare the rows and print the table."""
    command = table.parser(__doc__)
    command.add_argument("text", help="a corpus")
    command.add_argument("--folder", type=Path, default=Path("runs/plans"))
    command.add_argument("--epochs", type=int, default=3)
    command.add_argument("--max-size", type=int, help="size of the vocabulary")
    command.add_argument(
        "--without", nargs="*", default=[], metavar="ROW", help="rows to leave out"
    )
    options = command.parse_args()
    table.report("plans", rows(options), options.json)


def rows(options: Any) -> Iterator[dict[str, Any]]:
    """Yield a row for each run that was planned, then one for all of them."""
    corpus = hstree.Corpus.read(options.text)
    words = corpus.splits()[0].select_vocabulary(max_size=options.max_size, unk=True)
    splits = corpus_splits(corpus.with_vocabulary(words))
    entries = [entry for entry in as_entries(ROWS) if entry.name not in options.without]
    plans: list[Plan] = []
    progress.enable()
    compare(splits, entries, options.folder, epochs=options.epochs, planned=plans.append)
    work = Work.of(splits, entries, options.folder, 1, {"epochs": options.epochs})
    predicted, real = 0.0, 0.0
    for run in plans[0].runs:
        folder = work.folder(run.entry, run.seed)
        seconds = json.loads((folder / RESULT).read_bytes())["seconds"]
        if run.building and not isinstance(run.entry, Baseline):
            seconds += json.loads((folder / BUILD).read_bytes())["seconds"]
        if run.finished:
            continue
        predicted, real = predicted + run.seconds, real + seconds
        yield _row(run.entry.name, run.seconds, seconds)
    if real:
        yield _row("all", predicted, real)


def _row(name: str, predicted: float, real: float) -> dict[str, Any]:
    return {"run": name, "predicted": predicted, "real": real, "ratio": predicted / real}


if __name__ == "__main__":
    main()

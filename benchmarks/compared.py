"""Tables of trees compared by `hstree.compare`: command line, texts and columns.

Finished runs are kept in the folder, so that a repeated command continues. Perplexities are
means over random states, with the sample standard deviation.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import hstree
from benchmarks import table
from benchmarks.layer import Step, take_turns, tree_step
from hstree import progress
from hstree.data.splits import Splits
from hstree.experiments.results import CandidateResult, Comparison, Scored, Spread
from hstree.layers.hierarchical import HierarchicalSoftmax

#: Targets of one call where more than one word is scored.
MANY = 1024
PARTS: tuple[Scored, ...] = ("valid", "test")


def parser(
    description: str | None,
    rows: Sequence[str],
    folder: str,
    seeds: int = 1,
    epochs: int = 12,
) -> argparse.ArgumentParser:
    """Return the command line: folder, rows as `hstree compare` takes them, seeds and epochs."""
    command = table.parser(description)
    command.add_argument("--folder", type=Path, default=Path(folder), help="where runs are kept")
    command.add_argument("--rows", nargs="+", default=list(rows), metavar="ROW")
    command.add_argument("--seeds", type=int, default=seeds, help="number of random states")
    command.add_argument("--epochs", type=int, default=epochs)
    return command


def compared(splits: Splits, options: argparse.Namespace) -> Comparison:
    """Train the rows, with the folder, seeds and epochs, of the command line."""
    progress.enable()
    stop = hstree.Epochs(options.epochs)
    return hstree.compare(
        splits, options.rows, options.folder, stop=stop, seeds=options.seeds, only=True
    )


def costs(row: CandidateResult) -> dict[str, Any]:
    """Return the columns of a tree's costs and perplexities; an n-gram model has no costs.

    Epochs are the maximum over random states; an asterisk marks rows that stopped at the limit,
    before the validation perplexity had stopped falling.
    """
    columns: dict[str, Any] = {"tree": row.name}
    if row.tree is not None:
        columns |= {
            "codes/word": row.tree.codes_per_label,
            "code length": row.tree.code_length.weighted,
            "scores/target": row.tree.scores_per_target,
            "parameters": row.parameters,
        }
    columns |= {part: write_spread(row.perplexity[part]) for part in PARTS}
    if row.tree is not None:
        epochs = max(len(job.epochs) for job in row.jobs)
        mark = "*" if row.at_epoch_limit else ""
        columns |= {"n": row.perplexity["test"].n, "epochs": f"{epochs}{mark}"}
    return columns


def seconds_from_text(row: CandidateResult) -> dict[str, float | None]:
    """Return the columns of the seconds from the text to the trained model."""
    return {
        "s from text": row.steps.total,
        "from text, times flat": row.from_text_times_flat,
    }


def beside_flat(comparison: Comparison, splits: Splits, folder: Path) -> Iterator[dict[str, Any]]:
    """Lay out a table: costs, perplexities and speeds, beside those of the row "flat"."""
    by_name = {row.name: row for row in comparison.candidates}
    flat, faster = by_name.get("flat"), {}
    if flat is not None:
        trees = {
            name: hstree.load(folder / row.tree_file)
            for name, row in by_name.items()
            if row.tree_file is not None
        }
        faster = layer_speed_ups(trees, splits)
    for row in comparison.candidates:
        columns = costs(row)
        if flat is not None:
            ratio = _test(row) / _test(flat)
            columns["above flat"] = f"{100 * (ratio - 1):+.1f}%"
        columns |= faster.get(row.name, {})
        yield columns | (seconds_from_text(row) if row.tree else {})


def layer_speed_ups(
    trees: Mapping[str, hstree.Tree], splits: Splits, *, batch: int = 4096, rounds: int = 5
) -> dict[str, dict[str, float]]:
    """Measure the layer of every tree against that of the tree called "flat".

    Each trains on the same batch of the text's targets, and scores the same words, one at a time
    and `MANY` at a time; all take turns.

    Returns
    -------
    dict
        Row -> column -> how many times as fast as flat; the median of ratios round by round.
    """
    rng = np.random.default_rng(0)
    targets = {name: _targets(tree, splits, batch) for name, tree in trees.items()}
    hidden = rng.standard_normal((batch, 100), np.float32)
    layers = {name: HierarchicalSoftmax(tree, 100) for name, tree in trees.items()}
    jobs: dict[str, dict[str, Step]] = {
        "training, times flat": {
            name: tree_step(tree, hidden, targets[name]) for name, tree in trees.items()
        },
        "one word, times flat": {
            name: _scoring(layer, hidden, targets[name], 1) for name, layer in layers.items()
        },
        f"{MANY:,} words, times flat": {
            name: _scoring(layer, hidden, targets[name], MANY) for name, layer in layers.items()
        },
    }
    columns: dict[str, dict[str, float]] = {name: {} for name in trees}
    for column, steps in jobs.items():
        seconds = take_turns(steps, rounds)
        for name, taken in seconds.items():
            ratios = [a / b for a, b in zip(seconds["flat"], taken, strict=True)]
            columns[name][column] = statistics.median(ratios)
    return columns


def _targets(tree: hstree.Tree, splits: Splits, n: int) -> Any:
    """Return the label ids of the same n words of the text for every tree."""
    label = {word: i for i, word in enumerate(tree.labels)}
    label_of_word = np.array([label[word] for word in splits.train.vocabulary.words])
    ids = splits.train.ids(slice(0, 1 << 20))
    ids = ids[ids >= 0]
    return label_of_word[ids[np.random.default_rng(0).integers(0, len(ids), n)]]


def _scoring(layer: HierarchicalSoftmax, hidden: Any, targets: Any, n: int) -> Step:
    """Return a step that scores n words after n others, from the start again at the end."""
    at = 0

    def step() -> None:
        nonlocal at
        layer.nll(hidden[at : at + n], targets[at : at + n])
        at = (at + n) % (len(targets) - n + 1)

    return step


def write_spread(spread: Spread) -> str:
    """Write the mean over random states, with the standard deviation where there are several."""
    return f"{spread.mean:.1f}" + ("" if spread.sd is None else f" ± {spread.sd:.1f}")


def _test(row: CandidateResult) -> float:
    return row.perplexity["test"].mean or float("nan")

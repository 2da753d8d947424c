"""Trees trained under one regime on one corpus, each run kept: what the large tables share.

A study is a table of rows: how a tree is built, and where its vectors come from if it needs
some. Every finished run is kept in the study's folder, so that a command goes on where it
stopped; perplexities are over random states. What the layer costs is measured at the end.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import hstree
from benchmarks import table
from benchmarks.layer import take_turns, tree_step
from hstree.builders import builder
from hstree.experiments.baselines import run_baseline
from hstree.experiments.bootstrap import build_seconds, grown
from hstree.experiments.entries import Baseline
from hstree.experiments.evaluation import Splits
from hstree.experiments.rows import at_epoch_limit, in_wordnet, parameters_of
from hstree.experiments.runs import Result, run, vectors_of
from hstree.experiments.speeds import speeds
from hstree.layers.hierarchical import HierarchicalSoftmax

#: Targets scored in one call where "one word" is not measured alone.
MANY = 1024


@dataclass(frozen=True)
class Row:
    """How the tree of a row is made.

    Attributes
    ----------
    method : str
        A builder's name.
    options : mapping
        The builder's; its random state is the study's.
    source : str, optional
        The row whose mean predicted vectors it takes: as its input where the builder takes
        vectors, as the option `vectors` where it takes a corpus.
    """

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None


@dataclass(frozen=True)
class Study:
    """Rows, the text that they are trained on, and the folder where runs are kept."""

    rows: Mapping[str, Row]
    splits: Splits
    folder: Path
    epochs: int

    def train(self, row: str, state: int) -> Result:
        """Train one row for one random state, and what it grows from before it."""
        tree = self.tree(row, state)
        return run(
            tree, self.splits, self.place(row, state), epochs=self.epochs, random_state=state
        )

    def tree(self, row: str, state: int) -> hstree.Tree:
        """Return the tree of a row, built if it is not there."""
        made = self.rows[row]
        chosen = builder(made.method)
        options = dict(made.options)
        if any(option.name == "random_state" for option in chosen.options):
            options["random_state"] = state
        own = self.place(row, state)
        if made.source is None:
            return grown(self.splits.train, own, made.method, options)
        self.train(made.source, state)
        source = self.place(made.source, state)
        if chosen.takes is hstree.WordVectors:
            return grown(vectors_of(source), own, made.method, options)
        options["vectors_file"] = source / "vectors.npy"
        return grown(self.splits.train, own, made.method, options)

    def place(self, row: str, state: int) -> Path:
        """Return the folder of a run."""
        plain = "".join(c if c.isalnum() or c == "." else "-" for c in row).strip("-").lower()
        return self.folder / f"state-{state}" / plain

    def results(self, rows: Sequence[str], states: Sequence[int]) -> dict[str, list[Result]]:
        """Train rows for all states; tell each figure as it comes."""
        found: dict[str, list[Result]] = {}
        for state in states:
            for row in rows:
                result = self.train(row, state)
                found.setdefault(row, []).append(result)
                told = ", ".join(f"{p} {result['perplexity'][p]:.1f}" for p in ("valid", "test"))
                print(f"{row}, state {state}: {told}", file=sys.stderr, flush=True)
        return found

    def trees(self, rows: Iterable[str], state: int) -> dict[str, hstree.Tree]:
        """Return the trees of finished runs."""
        return {row: hstree.load(self.place(row, state) / "tree.json") for row in rows}

    def chain(self, row: str) -> list[str]:
        """Return a row, the row whose vectors it is built from, and so on."""
        source = self.rows[row].source
        return [row] if source is None else [row, *self.chain(source)]

    def seconds_from_text(self, row: str, state: int, per_epoch: Mapping[str, float]) -> float:
        """Return the seconds from the text to a row's trained model; NaN where nobody timed them.

        Every tree of `chain` is built and trained on, for the epochs that it took; `per_epoch`
        has the seconds of one.
        """
        total = 0.0
        for one in self.chain(row):
            result = self.train(one, state)
            built = build_seconds(self.place(one, state), result["tree"]["sha256"])
            total += math.nan if built is None else built
            total += len(result["epochs"]) * per_epoch[one]
        return total


def parser(description: str | None, rows: Mapping[str, Row], folder: str) -> Any:
    """Return the command line that studies share."""
    found = table.parser(description)
    found.add_argument("--folder", type=Path, default=Path(folder))
    found.add_argument("--states", type=int, nargs="+", default=[0])
    found.add_argument("--rows", nargs="+", choices=rows, default=list(rows), metavar="ROW")
    found.add_argument("--epochs", type=int, default=12)
    found.add_argument("--no-speeds", action="store_true", help="train only; no table")
    return found


def add_ptb(found: argparse.ArgumentParser) -> None:
    """Add ``--ptb DIR``, by default where the tests look for it."""
    data = os.environ.get("HSTREE_TEST_DATA")
    found.add_argument("--ptb", type=Path, default=Path(data, "ptb") if data else None)


def ptb_splits(folder: Path | None) -> Splits:
    """Read the Penn Treebank's three splits, or end with a line that says where to put them."""
    if folder is None:
        sys.exit("set HSTREE_TEST_DATA, or give --ptb: ptb.train.txt, .valid.txt and .test.txt")
    return Splits(
        *(hstree.Corpus.read(folder / f"ptb.{part}.txt") for part in ("train", "valid", "test"))
    )


def spread(results: Sequence[Result], part: str) -> str:
    """Return the mean over states, with the sample standard deviation where there are several."""
    values = [result["perplexity"][part] for result in results]
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"


def rows_of(
    made: Study, results: Mapping[str, list[Result]], state: int
) -> Iterator[dict[str, Any]]:
    """Lay out a table: costs of one state's trees, perplexities, and ratios to the row "flat".

    Seconds are those of `times`, for the same state.
    """
    flat = results.get("flat")
    faster = {} if flat is None else layer_speed_ups(made.trees(results, state), made.splits)
    timed = times(made, results, state)
    for row, found in results.items():
        yield {
            "tree": row,
            **cost(made, row, state),
            **perplexities(found),
            **_above(found, flat),
            **faster.get(row, {}),
            **{column: timed[row][column] for column in ("s from text", "from text, times flat")},
        }


def trigram_row(made: Study, results: Mapping[str, list[Result]]) -> dict[str, Any]:
    """Return the row of an interpolated Kneser-Ney trigram model, which is no tree."""
    found = run_baseline(Baseline("kn3", 3), made.splits, made.folder / "kn3")
    columns = {part: spread([found], part) for part in ("valid", "test")}
    return {"tree": "Kneser-Ney trigram", **columns, **_above([found], results.get("flat"))}


def perplexities(results: Sequence[Result]) -> dict[str, Any]:
    """Return the columns that say how well a row predicts, over n states, after how many epochs.

    Epochs are the most of all states; an asterisk marks rows that stopped at the limit, before
    the validation perplexity had stopped falling.
    """
    epochs = max(len(result["epochs"]) for result in results)
    return {
        **{part: spread(results, part) for part in ("valid", "test")},
        "n": len(results),
        "epochs": f"{epochs}{'*' if at_epoch_limit(results) else ''}",
    }


def times(
    made: Study, rows: Iterable[str], state: int, rounds: int = 3
) -> dict[str, dict[str, float | None]]:
    """Measure whole training steps of every row, and add up what each takes from the text on.

    Returns
    -------
    dict
        Row -> column -> figure: tokens a second, seconds of an epoch, seconds from the text to
        the trained model, and how many times as fast as flat that is; None where that is not known.
    """
    rows = list(rows)
    chains = dict.fromkeys(one for row in rows for one in made.chain(row))
    measured = speeds(made.trees(chains, state), made.splits.train, rounds=rounds)
    speed = {row: statistics.median(of_row) for row, of_row in measured.items()}
    per_epoch = {row: len(made.splits.train) / of_row for row, of_row in speed.items()}
    total = {row: made.seconds_from_text(row, state, per_epoch) for row in rows}
    return {
        row: {
            "s/epoch": per_epoch[row],
            "tokens/s": speed[row],
            "s from text": _known(total[row]),
            "from text, times flat": _known(total.get("flat", math.nan) / total[row]),
        }
        for row in rows
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _above(results: Sequence[Result], flat: Sequence[Result] | None) -> dict[str, str]:
    """Return the column that says how far a row is above flat, where there is one."""
    return {} if flat is None else {"above flat": f"{_percent_above(results, flat):+.1f}%"}


def _percent_above(results: Sequence[Result], flat: Sequence[Result]) -> float:
    """Return how far the mean test perplexity is above another."""
    own, other = (
        statistics.mean(result["perplexity"]["test"] for result in found)
        for found in (results, flat)
    )
    return 100 * (own / other - 1)


def cost(made: Study, row: str, state: int) -> dict[str, Any]:
    """Return the columns that say what a tree costs.

    Beside rows of WordNet's trees stands the share of the training tokens that WordNet has.
    """
    tree = made.train(row, state)["tree"]
    coverage = {}
    if any(one.method == "wordnet" for one in made.rows.values()):
        share = in_wordnet(made.trees([row], state)[row])
        coverage["in WordNet"] = None if share is None else f"{share:.0%}"
    return {
        "codes/word": tree["codes_per_label"],
        "code length": tree["code_length"]["weighted"],
        "scores/target": tree["scores_per_target"],
        "parameters": parameters_of(made.place(row, state) / "model"),
        **coverage,
    }


def layer_speed_ups(
    trees: Mapping[str, hstree.Tree], splits: Splits, *, batch: int = 4096, rounds: int = 5
) -> dict[str, dict[str, float]]:
    """Measure the layer of every tree against that of the tree called "flat".

    Each trains on the same batch of the text's targets, and scores the same test words, one at a
    time and `MANY` at a time; all take turns.

    Returns
    -------
    dict
        Row -> column -> how many times as fast as flat; the median of ratios round by round.
    """
    rng = np.random.default_rng(0)
    targets = {name: _targets(tree, splits, batch) for name, tree in trees.items()}
    hidden = rng.standard_normal((batch, 100), np.float32)
    layers = {name: HierarchicalSoftmax(tree, 100) for name, tree in trees.items()}
    jobs = {
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
    found: dict[str, dict[str, float]] = {name: {} for name in trees}
    for column, steps in jobs.items():
        seconds = take_turns(steps, rounds)
        for name, taken in seconds.items():
            ratios = [a / b for a, b in zip(seconds["flat"], taken, strict=True)]
            found[name][column] = statistics.median(ratios)
    return found


def _targets(tree: hstree.Tree, splits: Splits, n: int) -> Any:
    """Return the label ids of the same words of the text for every tree."""
    vocabulary = splits.train.vocabulary
    label = {word: i for i, word in enumerate(tree.labels)}
    of_word = np.array([label[word] for word in vocabulary.words])
    ids = splits.train.ids(slice(0, 1 << 20))
    drawn = ids[ids >= 0][np.random.default_rng(0).integers(0, (ids >= 0).sum(), n)]
    return of_word[drawn]


def _scoring(layer: HierarchicalSoftmax, hidden: Any, targets: Any, n: int) -> Any:
    """Return a step that scores n words after n others, from the start again at the end."""
    at = 0

    def step() -> None:
        nonlocal at
        layer.nll(hidden[at : at + n], targets[at : at + n])
        at = (at + n) % (len(targets) - n + 1)

    return step

"""A comparison from its beginning to its results: check, build, train, measure, lay out.

What is done and kept is in `work`, what a row says in `rows`.
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hstree import progress
from hstree._options import RandomState, check_value
from hstree.data.overlap import overlap
from hstree.data.text_score import unigram_score
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError, OptionError
from hstree.experiments import results, rows
from hstree.experiments.bands import frequency_bands
from hstree.experiments.baselines import as_run
from hstree.experiments.choice import choice
from hstree.experiments.entries import Baseline, Entry, MadeTree, Method, entries
from hstree.experiments.evaluation import Splits, seen, versions
from hstree.experiments.locking import locked
from hstree.experiments.runs import Result
from hstree.experiments.speeds import speeds
from hstree.experiments.work import SOURCE, Work
from hstree.models import config_of, predicts
from hstree.tree import Tree, load

#: Turns of each tree when speeds are measured.
ROUNDS = 3
#: Random states of one comparison; all their trees are built before the first is trained.
MOST_SEEDS = 100


def compare(
    splits: Splits,
    folder: str | os.PathLike[str],
    *,
    methods: Sequence[str] = (),
    trees: Mapping[str, Tree] | None = None,
    baselines: Sequence[str] = (),
    seeds: int = 1,
    **options: Any,
) -> dict[str, Any]:
    """Train the same model on several trees, and lay out what each costs and buys.

    Parameters
    ----------
    splits : Splits
        All seen through one vocabulary. Trees are built from the training part alone.
    folder : path
        Made if it is missing; nobody else may work in it meanwhile. Gets ``runs``, a folder for
        each run as `hstree.experiments.runs.run` leaves it, ``results.json`` and ``results.csv``.
    methods : sequence of str
        As in "gmm --epsilon 0.4". Those that take vectors grow from the mean predicted vectors
        of a model on a random tree, trained once for each random state.
    trees : mapping of str to Tree, optional
        Trees that are there already, by name.
    baselines : sequence of str
        "kn2" to "kn7": interpolated modified Kneser-Ney.
    seeds : int, default 1
        Random states, at most `MOST_SEEDS`: `random_state` and those after it. Each has its own
        random trees, starting vectors and batches, the same for all rows.
    **options
        Those of `hstree.models.new_model`; baselines are for the log-bilinear model alone.

    Returns
    -------
    dict
        What ``results.json`` holds; rows in the order methods, trees, baselines.

    Raises
    ------
    OptionError
        When an option, a method or a baseline cannot be; before anything is trained.
    InputError
        Likewise when a tree is over other words than the text's vocabulary, or another process
        works in the folder.
    KeyboardInterrupt
        When it was interrupted; what is finished is kept.
    """
    if not 1 <= seeds <= MOST_SEEDS:
        raise OptionError(f"seeds is {seeds}; it must be 1 to {MOST_SEEDS}")
    compared = entries(methods, trees or {}, baselines)
    config = config_of(options)
    if baselines and config.get("model", "lbl") != "lbl":
        raise OptionError(
            f"{baselines[0]} gives the perplexity of a word given the words before it, "
            f"{config['model']} that of a {predicts(config)}; leave out the baselines"
        )
    for part in (splits.train, splits.valid, splits.test):
        overlap(part)
    _check_words(compared, splits.train.vocabulary)
    first = config.pop("random_state")
    check_value("random_state", first + seeds - 1, RandomState)
    work = Work(splits, Path(folder), config, range(first, first + seeds))
    with locked(work.home):
        work.build(compared)
        trained = work.train_all(compared)
        laid_out = _rows(work, compared, trained)
        found = {**_conditions(work), **laid_out, "choice": choice(laid_out["rows"])}
        results.save(found, work.home)
    return found


def _check_words(compared: Sequence[Entry], vocabulary: Vocabulary) -> None:
    """Refuse trees over other words: their perplexities could not be compared."""
    for entry in compared:
        if not isinstance(entry, MadeTree):
            continue
        labels = entry.tree.labels
        own = Vocabulary(labels, [0] * len(labels)).sha256
        if own != vocabulary.sha256:
            raise InputError(
                f"{entry.name} is over {len(labels):,} words (sha256 {own[:16]}), the comparison "
                f"over {len(vocabulary):,} others (sha256 {vocabulary.sha256[:16]}); perplexities "
                "can be compared over the same words only: build it over those"
            )


def _rows(
    work: Work, compared: Sequence[Entry], trained: Mapping[str, list[Result]]
) -> dict[str, Any]:
    """Return the rows, and the bands that they have perplexities in."""
    trees = {
        entry.name: load(work.folder(entry, work.seeds[0]) / "tree.json")
        for entry in compared
        if not isinstance(entry, Baseline)
    }
    flat = next((entry for entry in compared if _is_flat(trees.get(entry.name))), None)
    flat_name = None if flat is None else flat.name
    flat_nlls = None if flat is None else work.nlls(flat)
    bands = frequency_bands(work.splits)
    tokens = len(work.splits.train)
    timed = dict(trees)
    if any(isinstance(entry, Method) and entry.needs_vectors for entry in compared):
        timed.setdefault(SOURCE.name, load(work.folder(SOURCE, work.seeds[0]) / "tree.json"))
    measured = speeds(timed, work.splits.train, rounds=ROUNDS, **work.config)
    per_epoch = {name: tokens / statistics.median(of_tree) for name, of_tree in measured.items()}
    found = []
    with progress.task("laying out the table", len(compared)) as task:
        for entry in compared:
            if isinstance(entry, Baseline):
                row = _baseline_row(work, entry, trained[entry.name][0])
            else:
                row = _tree_row(work, entry, trained[entry.name], trees[entry.name])
                row |= rows.speed_figures(measured, entry.name, flat_name, tokens)
                costs = [work.from_text(entry, seed, per_epoch) for seed in work.seeds]
                row["from_text"] = rows.from_text(costs)
            nlls = work.nlls(entry)
            row["seen"] = seen(work.splits, _tree_of(entry, trees))
            row |= {"to_flat": rows.to_flat(nlls, flat_nlls), "by_band": bands.perplexities(nlls)}
            found.append(row)
            task.advance()
    rows.add_speed_ups(found, flat_name)
    return {"bands": bands.bands, "rows": found}


def _tree_of(entry: Entry, trees: Mapping[str, Tree]) -> Tree | None:
    """Return an entry's tree with its own meta, which the run of an equal tree may not have."""
    return entry.tree if isinstance(entry, MadeTree) else trees.get(entry.name)


def _tree_row(work: Work, entry: Entry, trained: Sequence[Result], tree: Tree) -> dict[str, Any]:
    places = [work.place(entry, seed) for seed in work.seeds]
    return {
        "name": entry.name,
        "kind": "tree",
        "tree_file": f"{places[0]}/tree.json",
        **rows.tree_costs(tree, work.splits.train, work.home / places[0] / "model"),
        "runs": [
            rows.tree_run(seed, place, result)
            for seed, place, result in zip(work.seeds, places, trained, strict=True)
        ],
        "perplexity": rows.over_seeds(trained),
        "at_epoch_limit": rows.at_epoch_limit(trained),
    }


def _baseline_row(work: Work, entry: Baseline, result: Result) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": "baseline",
        "tree_file": None,
        "method": entry.name,
        "options": result["options"],
        "tree": None,
        "code_lengths": None,
        "parameters": result["parameters"],
        "in_wordnet": None,
        "runs": [as_run(result, work.place(entry, 0))],
        "perplexity": rows.over_seeds([result]),
        "at_epoch_limit": 0,
        **rows.NO_SPEED,
        "from_text": rows.from_text(
            [{"vectors": 0.0, "tree": 0.0, "training": result["fit_seconds"]}]
        ),
    }


def _conditions(work: Work) -> dict[str, Any]:
    """Return what the figures of all rows depend on."""
    splits = {name: getattr(work.splits, name) for name in ("train", "valid", "test")}
    vocabulary = work.splits.train.vocabulary
    test = work.splits.test.with_vocabulary(vocabulary)
    return {
        "predicts": predicts(work.config),
        "corpus": {name: part.source for name, part in splits.items()},
        "tokens": {name: len(part) for name, part in splits.items()},
        "oov": {name: part.n_oov for name, part in splits.items()},
        "vocabulary": {"size": len(vocabulary), "sha256": vocabulary.sha256},
        "options": {**work.config, "seeds": list(work.seeds)},
        "versions": versions(),
        "machine": {
            "cores": _cores(),
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
        },
        "unigram": unigram_score(test, work.splits.train.counts).perplexity,
    }


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _is_flat(tree: Tree | None) -> bool:
    """Tell the flat softmax: all labels under the root."""
    return tree is not None and tree.n_nodes == 1

"""The work of a comparison, in its order: build, train, score, measure, lay out.

Every finished run is kept in the comparison's folder (`hstree.runs`), so that the work goes on
where it stopped, and a new method costs only its own training.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hstree import progress, results
from hstree.bootstrap import grown
from hstree.comparison import rows
from hstree.comparison.bands import Bands, frequency_bands
from hstree.comparison.baselines import as_run, run_baseline
from hstree.comparison.choice import choice
from hstree.comparison.entries import Baseline, Entry, MadeTree, Method, entries, parse_method
from hstree.errors import InputError, OptionError
from hstree.evaluation import Parts, versions
from hstree.locking import locked
from hstree.overlap import overlap
from hstree.runs import Result, config_of, kept_nll, nll_of, run, vectors_of
from hstree.scoring import unigram_score
from hstree.speeds import speeds
from hstree.tree import Tree
from hstree.treefile import load
from hstree.vocabulary import Vocabulary

#: Turns of each tree when speeds are measured.
ROUNDS = 3


def compare(
    parts: Parts,
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
    parts : Parts
        All seen through one vocabulary. Trees are built from the training part alone.
    folder : path
        Made if it is missing; nobody else may work in it meanwhile. Gets ``runs``, a folder for
        each run as `hstree.runs.run` leaves it, ``results.json`` and ``results.csv``.
    methods : sequence of str
        As in "gmm --epsilon 0.4". Those that take vectors grow from the mean predicted vectors
        of a model on a random tree, trained once for each random state.
    trees : mapping of str to Tree, optional
        Trees that are there already, by name.
    baselines : sequence of str
        "kn2" to "kn7": interpolated modified Kneser-Ney.
    seeds : int, default 1
        Random states: `random_state` and those after it. Each has its own random trees, starting
        vectors and batches, the same for all rows.
    **options
        Those of `LanguageModel`.

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
    if seeds < 1:
        raise OptionError(f"seeds is {seeds}; it must be 1 or more")
    compared = entries(methods, trees or {}, baselines)
    config = config_of(options)
    for part in (parts.train, parts.valid, parts.test):
        overlap(part)
    _check_words(compared, parts.train.vocabulary)
    first = config.pop("random_state")
    work = _Work(parts, Path(folder), config, range(first, first + seeds))
    with locked(work.home):
        work.build(compared)
        found = work.results(compared, work.train_all(compared))
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


@dataclass(frozen=True)
class _Work:
    """A comparison's text, folder, budget and random states."""

    parts: Parts
    home: Path
    config: Mapping[str, Any]
    seeds: range

    def place(self, entry: Entry, seed: int) -> str:
        """Return the folder of a run, relative to the comparison's."""
        own = f"runs/{entry.slug}"
        return own if isinstance(entry, Baseline) else f"{own}/seed-{seed}"

    def folder(self, entry: Entry, seed: int) -> Path:
        return self.home / self.place(entry, seed)

    def build(self, compared: Sequence[Entry]) -> None:
        """Build what needs no training, so that what a builder refuses is refused at once."""
        for entry in compared:
            if isinstance(entry, Method) and not entry.needs_vectors:
                for seed in self.seeds:
                    self.tree(entry, seed)

    def train_all(self, compared: Sequence[Entry]) -> dict[str, list[Result]]:
        """Return the results of each entry, one for each random state, one for a baseline."""
        found: dict[str, list[Result]] = {entry.name: [] for entry in compared}
        with progress.task("comparing", len(self.seeds) * len(compared)) as task:
            for seed in self.seeds:
                for entry in compared:
                    task.note(f"{entry.name}, seed {seed}")
                    if not isinstance(entry, Baseline):
                        found[entry.name].append(self.train(entry, seed))
                    elif seed == self.seeds[0]:
                        folder = self.folder(entry, seed)
                        found[entry.name].append(run_baseline(entry, self.parts, folder))
                    task.advance()
        return found

    def train(self, entry: Method | MadeTree, seed: int) -> Result:
        """Train and score one tree, if that is not done."""
        budget = {**self.config, "random_state": seed}
        return run(self.tree(entry, seed), self.parts, self.folder(entry, seed), **budget)

    def tree(self, entry: Method | MadeTree, seed: int) -> Tree:
        """Return a tree, built if it is not there."""
        if isinstance(entry, MadeTree):
            return entry.tree
        options, method = entry.options(seed), entry.builder.name
        folder = self.folder(entry, seed)
        if not entry.needs_vectors:
            return grown(self.parts.train, folder, method, options)
        learned = self.learned(seed)
        if entry.takes_vectors:
            return grown(vectors_of(learned), folder, method, options)
        options["vectors"] = learned / "vectors.npy"
        return grown(self.parts.train, folder, method, options)

    def learned(self, seed: int) -> Path:
        """Return the folder of the random tree's run, whose model's vectors others grow from."""
        random = parse_method("random")
        self.train(random, seed)
        return self.folder(random, seed)

    def results(
        self, compared: Sequence[Entry], trained: Mapping[str, list[Result]]
    ) -> dict[str, Any]:
        """Lay everything out as results.json holds it."""
        seed = self.seeds[0]
        trees = {
            entry.name: load(self.folder(entry, seed) / "tree.json")
            for entry in compared
            if not isinstance(entry, Baseline)
        }
        flat = next((entry for entry in compared if _is_flat(trees.get(entry.name))), None)
        flat_nlls = None if flat is None else self.nlls(flat)
        bands = frequency_bands(self.parts)
        measured = speeds(trees, self.parts.train, rounds=ROUNDS, **self.config)
        found: list[dict[str, Any]] = []
        with progress.task("laying out the table", len(compared)) as task:
            for entry in compared:
                own = trained[entry.name]
                if isinstance(entry, Baseline):
                    row = self._baseline_row(entry, own[0])
                else:
                    flat_name = None if flat is None else flat.name
                    speed = rows.speed_figures(
                        measured, entry.name, flat_name, len(self.parts.train)
                    )
                    row = self._tree_row(entry, own, trees[entry.name]) | speed
                nlls = self.nlls(entry)
                row |= self._compared(nlls, flat_nlls, bands)
                found.append(row)
                task.advance()
        return {**self._conditions(), "bands": bands.bands, "choice": choice(found), "rows": found}

    def nlls(self, entry: Entry) -> list[rows.Float64]:
        """Return what an entry gives every test token, for each random state."""
        if isinstance(entry, Baseline):
            kept = kept_nll(self.folder(entry, 0), len(self.parts.test))
            return [] if kept is None else [kept]
        return [nll_of(self.folder(entry, seed), self.parts) for seed in self.seeds]

    def _tree_row(
        self, entry: Method | MadeTree, trained: Sequence[Result], tree: Tree
    ) -> dict[str, Any]:
        places = [self.place(entry, seed) for seed in self.seeds]
        runs = [
            rows.tree_run(seed, place, result)
            for seed, place, result in zip(self.seeds, places, trained, strict=True)
        ]
        return {
            "name": entry.name,
            "kind": "tree",
            "tree_file": f"{places[0]}/tree.json",
            **rows.tree_costs(tree, self.home / places[0] / "model"),
            "runs": runs,
            "perplexity": rows.over_seeds(trained),
        }

    def _baseline_row(self, entry: Baseline, result: Result) -> dict[str, Any]:
        return {
            "name": entry.name,
            "kind": "baseline",
            "tree_file": None,
            "method": entry.name,
            "options": result["options"],
            "tree": None,
            "code_lengths": None,
            "parameters": result["parameters"],
            "runs": [as_run(result, self.place(entry, 0))],
            "perplexity": rows.over_seeds([result]),
            **rows.NO_SPEED,
            "fit_seconds": result["fit_seconds"],
        }

    def _compared(
        self, nlls: Sequence[rows.Float64], flat: Sequence[rows.Float64] | None, bands: Bands
    ) -> dict[str, Any]:
        return {"to_flat": rows.to_flat(nlls, flat), "by_band": bands.perplexities(nlls)}

    def _conditions(self) -> dict[str, Any]:
        """Return what the figures of all rows depend on."""
        parts = {name: getattr(self.parts, name) for name in ("train", "valid", "test")}
        vocabulary = self.parts.train.vocabulary
        test = self.parts.test.with_vocabulary(vocabulary)
        return {
            "corpus": {name: part.source for name, part in parts.items()},
            "tokens": {name: len(part) for name, part in parts.items()},
            "oov": {name: part.n_oov for name, part in parts.items()},
            "vocabulary": {"size": len(vocabulary), "sha256": vocabulary.sha256},
            "options": {**self.config, "seeds": list(self.seeds)},
            "versions": versions(),
            "machine": {
                "cores": os.cpu_count(),
                "system": platform.platform(),
                "processor": platform.processor() or platform.machine(),
            },
            "unigram": unigram_score(test, self.parts.train.counts).perplexity,
        }


def _is_flat(tree: Tree | None) -> bool:
    """Tell the flat softmax: all labels under the root."""
    return tree is not None and tree.n_nodes == 1

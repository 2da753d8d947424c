"""The work of a comparison: trees built, models trained, test tokens scored, each of it once.

Every finished run is kept in the comparison's folder (`runs`), so that the work goes on where it
stopped, and a new method costs only its own training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hstree import progress
from hstree._typing import Float64
from hstree.experiments.baselines import run_baseline
from hstree.experiments.bootstrap import build_seconds, grown
from hstree.experiments.entries import Baseline, Entry, MadeTree, Method, parse_method
from hstree.experiments.evaluation import Splits
from hstree.experiments.runs import Result, kept_nll, nll_of, run, vectors_of
from hstree.tree import Tree

#: The tree whose model learns the vectors that other trees are built from.
SOURCE = parse_method("random")


@dataclass(frozen=True)
class Work:
    """A comparison's text, folder, budget and random states.

    Attributes
    ----------
    splits : Splits
    home : Path
    config : mapping
        The options of every `LanguageModel`, but for its random state.
    seeds : range
    """

    splits: Splits
    home: Path
    config: Mapping[str, Any]
    seeds: range

    def place(self, entry: Entry, seed: int) -> str:
        """Return the folder of a run, relative to the comparison's."""
        own = f"runs/{entry.slug}"
        return own if isinstance(entry, Baseline) else f"{own}/seed-{seed}"

    def folder(self, entry: Entry, seed: int) -> Path:
        """Return the folder of a run."""
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
                        found[entry.name].append(run_baseline(entry, self.splits, folder))
                    task.advance()
        return found

    def train(self, entry: Method | MadeTree, seed: int) -> Result:
        """Train and score one tree, if that is not done."""
        budget = {**self.config, "random_state": seed}
        return run(self.tree(entry, seed), self.splits, self.folder(entry, seed), **budget)

    def tree(self, entry: Method | MadeTree, seed: int) -> Tree:
        """Return a tree, built if it is not there."""
        if isinstance(entry, MadeTree):
            return entry.tree
        options, method = entry.options(seed), entry.builder.name
        folder = self.folder(entry, seed)
        if not entry.needs_vectors:
            return grown(self.splits.train, folder, method, options)
        learned = self.learned(seed)
        if entry.takes_vectors:
            return grown(vectors_of(learned), folder, method, options)
        options["vectors_file"] = learned / "vectors.npy"
        return grown(self.splits.train, folder, method, options)

    def learned(self, seed: int) -> Path:
        """Return the folder of the random tree's run, whose model's vectors others grow from."""
        self.train(SOURCE, seed)
        return self.folder(SOURCE, seed)

    def from_text(
        self, entry: Method | MadeTree, seed: int, per_epoch: Mapping[str, float]
    ) -> dict[str, float] | None:
        """Return the seconds from the text to the trained model of a finished run.

        Parameters
        ----------
        entry : Method or MadeTree
        seed : int
        per_epoch : mapping of str to float
            Seconds of an epoch for every tree, by name; `SOURCE` among them where trees are built
            from vectors.

        Returns
        -------
        dict or None
            ``vectors``, from the text to the vectors that the tree was built from; ``tree``, to
            build it; ``training``, the epochs. None where the tree or its vectors came from a
            file, or nobody timed the building.
        """
        result = self.train(entry, seed)
        built = build_seconds(self.folder(entry, seed), result["tree"]["sha256"])
        if built is None or (isinstance(entry, Method) and entry.reads_vectors):
            return None
        vectors = 0.0
        if isinstance(entry, Method) and entry.needs_vectors:
            learned = self.from_text(SOURCE, seed, per_epoch)
            if learned is None:
                return None
            vectors = sum(learned.values())
        training = len(result["epochs"]) * per_epoch[entry.name]
        return {"vectors": vectors, "tree": built, "training": training}

    def nlls(self, entry: Entry) -> list[Float64]:
        """Return what an entry gives every test token, for each random state."""
        if isinstance(entry, Baseline):
            kept = kept_nll(self.folder(entry, 0), len(self.splits.test))
            return [] if kept is None else [kept]
        return [nll_of(self.folder(entry, seed), self.splits) for seed in self.seeds]

"""Comparison of output layers: the same model trained with each, under the same budget.

Every layer gets the same text, starting vectors, batches and schedule, so that what differs is the
layer. Finished runs are kept (`runs`), so that a comparison goes on where it stopped, and a new
entry costs only its own training.
"""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from hstree import progress
from hstree._options import RandomState, check_value
from hstree._typing import Float64
from hstree.data.corpus import Corpus
from hstree.data.overlap import overlap
from hstree.data.text_score import unigram_score
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError, OptionError, owned_by
from hstree.experiments import results, rows
from hstree.experiments.entries import (
    Baseline,
    Entry,
    EntryLike,
    Layer,
    Method,
    NamedOutput,
    Trained,
    as_entries,
)
from hstree.experiments.evaluation import Splits, seen, versions
from hstree.experiments.results import (
    BaselineResult,
    Comparison,
    Machine,
    Row,
    RowRun,
    RunResult,
    Split,
    TreeFigures,
    VocabularyFigures,
    finite,
)
from hstree.experiments.runs import (
    build_seconds,
    built_tree,
    kept_nll,
    locked,
    nll_of,
    run,
    run_baseline,
    vectors_of,
)
from hstree.experiments.significance import paired_ratio
from hstree.experiments.throughput import throughput
from hstree.layers.registry import LayerSpec, layer_spec
from hstree.models import config_of, kind_of, predicts
from hstree.tree import Tree, load
from hstree.tree.statistics import tree_statistics

#: Number of turns of each row when speeds are measured.
ROUNDS = 3
#: Maximum number of random states; all their trees are built before the first is trained.
MAX_SEEDS = 100
#: The tree whose model learns the vectors that other trees are built from by default.
RANDOM = Method("random")
#: Fields of a row that are measured when all rows are trained; a baseline has no speeds.
_NOT_YET: dict[str, Any] = dict.fromkeys(
    [
        *("seconds_per_epoch", "tokens_per_second", "speed_up"),
        *("from_text", "seen", "to_flat", "by_band"),
    ]
)

Seconds = dict[str, float]


def compare(
    text: Splits | Corpus,
    entries: Sequence[EntryLike],
    folder: str | os.PathLike[str],
    *,
    seeds: int = 1,
    compared: Callable[[Comparison], object] | None = None,
    **options: Any,
) -> Comparison:
    """Train the same model with several output layers; report costs and perplexities of each.

    Parameters
    ----------
    text : Splits or Corpus
        Splits over one vocabulary, or a corpus to split by `corpus_splits`. Trees are built from
        the training split alone.
    entries : sequence
        Rows of the comparison: a method or an output layer ("huffman", "sampled"), one with its
        options (("gmm", {"epsilon": 0.4})), a `Tree` or `LayerSpec`, a Kneser-Ney baseline ("kn2"
        to "kn7"), or an object of `hstree.experiments.entries`, which has a name. Methods that
        take vectors are built from the mean predicted vectors of a model on a random tree, trained
        once per random state.
    folder : path
        Made if it is missing; locked during the comparison. Gets ``runs``, a folder for each run as
        `hstree.experiments.runs.run` leaves it, ``results.json`` and ``results.csv``.
    seeds : int, default 1
        Number of random states, at most `MAX_SEEDS`: `random_state` and those after it. Each has
        its own random trees, starting vectors and batches, the same for all rows.
    compared : callable, optional
        Called with the comparison before its files are written, which may fail.
    **options
        Options of `hstree.models.new_model`; baselines are for the log-bilinear model alone.

    Returns
    -------
    Comparison
        The content of ``results.json``.

    Raises
    ------
    OptionError
        Before anything is trained, for an invalid entry or option.
    InputError
        Likewise when a tree or layer is over other words than the text's vocabulary, or another
        process works in the folder.
    KeyboardInterrupt
        When it was interrupted; finished runs are kept.

    Examples
    --------
    >>> entries = ["huffman", ("gmm", {"epsilon": 0.4, "trees": 4}), "flat", "kn5"]
    >>> compare(corpus, entries, "runs", epochs=3).choice.best             # doctest: +SKIP
    'gmm epsilon=0.4 trees=4'
    """
    checked_entries = as_entries(entries)
    work = Work.of(text, checked_entries, folder, seeds, options)
    with locked(work.home):
        work.build_trees(checked_entries)
        trained, fitted = work.train_all(checked_entries)
        comparison = work.comparison(checked_entries, trained, fitted, work.speeds(checked_entries))
        if compared is not None:
            compared(comparison)
        results.save(comparison, work.home)
    return comparison


def check_language_model(config: Mapping[str, Any], name: str) -> None:
    """Refuse a Kneser-Ney model beside models whose perplexities are of other events."""
    model = kind_of(config).model
    if not model.is_language_model:
        raise OptionError(
            f"{name} gives the perplexity of a word given the words before it, "
            f"{model.name} that of a {model.predicts}; leave out the baselines"
        )


def _check_layer(name: str, spec: LayerSpec, config: Mapping[str, Any]) -> None:
    """Refuse a layer whose files cannot be read, or that the model gives no contexts to."""
    layer = spec.new(config["dim"])
    with owned_by(spec.kind.name):
        layer.check()
    model = kind_of(config).model
    if layer.needs_contexts and not model.is_language_model:
        raise OptionError(
            f"{name} needs the words before each target; {model.name} predicts a "
            f"{model.predicts}: train a language model, or leave the row out"
        )


def _check_words(entries: Sequence[Entry], vocabulary: Vocabulary) -> None:
    """Refuse layers over other words: their perplexities could not be compared."""
    for entry in entries:
        if not isinstance(entry, NamedOutput):
            continue
        labels = entry.spec.labels
        of_labels = Vocabulary(labels, [0] * len(labels)).sha256
        if of_labels != vocabulary.sha256:
            raise InputError(
                f"{entry.name} is over {len(labels):,} words (sha256 {of_labels[:16]}), the "
                f"comparison over {len(vocabulary):,} others (sha256 {vocabulary.sha256[:16]}); "
                "perplexities can be compared over the same words only: build it over those"
            )


@dataclass(frozen=True)
class Work:
    """Builds trees, trains models and scores test tokens, each once.

    Attributes
    ----------
    splits : Splits
    home : Path
        Folder of the comparison.
    config : mapping
        Options of every model but its random state.
    seeds : range
    runs : str
        Name of the folder of the runs in `home`.
    trees : Work or None
        The work whose trees these models are trained on; None to build them here.
    score_train : bool
        Whether to score the training split.
    """

    splits: Splits
    home: Path
    config: Mapping[str, Any]
    seeds: range
    runs: str = "runs"
    trees: Work | None = None
    score_train: bool = True

    @classmethod
    def of(
        cls,
        text: Splits | Corpus,
        entries: Sequence[Entry],
        folder: str | os.PathLike[str],
        seeds: int,
        options: Mapping[str, Any],
    ) -> Self:
        """Return the work of a comparison, its arguments checked; raises as `compare` does."""
        if not 1 <= seeds <= MAX_SEEDS:
            raise OptionError(f"seeds is {seeds}; it must be 1 to {MAX_SEEDS}")
        splits, config = Splits.of(text), config_of(options)
        baselines = [entry.name for entry in entries if isinstance(entry, Baseline)]
        if baselines:
            check_language_model(config, baselines[0])
        for split in splits.as_dict().values():
            overlap(split)
        _check_words(entries, splits.train.vocabulary)
        first = config.pop("random_state")
        check_value("random_state", first + seeds - 1, RandomState)
        work = cls(splits, Path(folder), config, range(first, first + seeds))
        for entry in entries:
            if isinstance(entry, Layer | NamedOutput):
                _check_layer(entry.name, work.spec(entry, first), config)
        return work

    def build_trees(self, entries: Sequence[Entry]) -> None:
        """Build the trees that need no training, so that bad options are refused at once."""
        for entry in entries:
            if isinstance(entry, Method) and not entry.needs_vectors:
                for seed in self.seeds:
                    self.tree(entry, seed)

    def comparison(
        self,
        entries: Sequence[Entry],
        trained: Mapping[str, Sequence[RunResult]],
        fitted: Mapping[str, BaselineResult],
        speeds: Mapping[str, Sequence[float]],
    ) -> Comparison:
        """Return all figures; `speeds` are those of `speeds`."""
        bands = rows.frequency_bands(self.splits)
        table = self._rows(entries, trained, fitted, speeds, bands)
        corpora = self.splits.as_dict()
        vocabulary = self.splits.train.vocabulary
        test = self.splits.test.with_vocabulary(vocabulary)
        return Comparison(
            predicts=predicts(self.config),
            corpus={name: part.source for name, part in corpora.items()},
            tokens={name: len(part) for name, part in corpora.items()},
            oov={name: part.n_oov for name, part in corpora.items()},
            vocabulary=VocabularyFigures.of(vocabulary),
            options={**self.config, "seeds": list(self.seeds)},
            versions=versions(),
            machine=_machine(),
            unigram=finite(unigram_score(test, self.splits.train.counts).perplexity),
            bands=bands.bands,
            rows=table,
            choice=rows.choice(table),
        )

    def train_all(
        self, entries: Sequence[Entry]
    ) -> tuple[dict[str, list[RunResult]], dict[str, BaselineResult]]:
        """Return the results of each layer, one per random state, and of each baseline."""
        trained: dict[str, list[RunResult]] = {entry.name: [] for entry in entries}
        fitted = {}
        with progress.task("comparing", len(self.seeds) * len(entries)) as task:
            for seed in self.seeds:
                for entry in entries:
                    task.note(f"{entry.name}, seed {seed}")
                    if not isinstance(entry, Baseline):
                        trained[entry.name].append(self.train(entry, seed))
                    elif seed == self.seeds[0]:
                        folder = self.folder(entry, seed)
                        fitted[entry.name] = run_baseline(entry.order, self.splits, folder)
                    task.advance()
        return trained, fitted

    def train(self, entry: Trained, seed: int) -> RunResult:
        """Train and score one output layer, if that is not done."""
        budget = {**self.config, "random_state": seed}
        spec, folder = self.spec(entry, seed), self.folder(entry, seed)
        return run(spec, self.splits, folder, score_train=self.score_train, **budget)

    def spec(self, entry: Trained, seed: int) -> LayerSpec:
        """Return the output layer of a row; its tree is built if it is not there."""
        if isinstance(entry, NamedOutput):
            return entry.spec
        if isinstance(entry, Layer):
            return layer_spec(self._vocabulary, entry.layer, **entry.options)
        return layer_spec(self.tree(entry, seed))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        """The words of the training split with its counts."""
        return self.splits.train.counted_vocabulary()

    def tree(self, entry: Method, seed: int) -> Tree:
        """Return a tree, built if it is not there."""
        if self.trees is not None:
            return self.trees.tree(entry, seed)
        options, folder = entry.seeded(seed), self.folder(entry, seed)
        if not entry.needs_vectors:
            return built_tree(self.splits.train, folder, entry.method, options)
        source = entry.vectors_from or RANDOM
        self.train(source, seed)
        learned = self.folder(source, seed)
        if entry.takes_vectors:
            return built_tree(vectors_of(learned), folder, entry.method, options)
        options["vectors_file"] = learned / "vectors.npy"
        return built_tree(self.splits.train, folder, entry.method, options)

    def relative_folder(self, entry: Entry, seed: int) -> str:
        """Return the folder of a run, relative to the comparison's."""
        folder = f"{self.runs}/{entry.slug}"
        return folder if isinstance(entry, Baseline) else f"{folder}/seed-{seed}"

    def folder(self, entry: Entry, seed: int) -> Path:
        """Return the folder of a run."""
        return self.home / self.relative_folder(entry, seed)

    def nlls(self, entry: Entry, split: Split = "test") -> list[Float64]:
        """Return the negative log-likelihood of every token of a split, per random state."""
        if isinstance(entry, Baseline):
            kept = kept_nll(self.folder(entry, 0), len(self.splits.as_dict()[split]), split)
            return [] if kept is None else [kept]
        return [nll_of(self.folder(entry, seed), self.splits, split) for seed in self.seeds]

    def kept_spec(self, entry: Trained) -> LayerSpec:
        """Return the output layer of the first random state; a tree as its file has it."""
        if self.trees is not None:
            return self.trees.kept_spec(entry)
        if isinstance(entry, Method):
            return layer_spec(load(self.folder(entry, self.seeds[0]) / "tree.json"))
        return self.spec(entry, self.seeds[0])

    def kept_specs(self, entries: Sequence[Entry]) -> dict[str, LayerSpec]:
        """Return the output layers of the first random state of trained entries, by row."""
        return {e.name: self.kept_spec(e) for e in entries if not isinstance(e, Baseline)}

    def speeds(self, entries: Sequence[Entry]) -> dict[str, list[float]]:
        """Measure the tokens per second in training, of the rows and of what they learn from.

        Their trained models go on training, as the cost of a step may depend on what is learned.
        """
        trained = [entry for entry in entries if not isinstance(entry, Baseline)]
        timed = {
            entry.name: self.folder(entry, self.seeds[0]) / "model"
            for entry in [*trained, *sources(entries)]
        }
        return throughput(timed, self.splits.train, rounds=ROUNDS, **self.config)

    def _rows(
        self,
        entries: Sequence[Entry],
        trained: Mapping[str, Sequence[RunResult]],
        fitted: Mapping[str, BaselineResult],
        measured: Mapping[str, Sequence[float]],
        bands: rows.Bands,
    ) -> list[Row]:
        """Return a row for each entry."""
        specs = self.kept_specs(entries)
        flat = next((e for e in entries if e.name in specs and specs[e.name].is_flat), None)
        flat_name = None if flat is None else flat.name
        flat_nlls = None if flat is None else self.nlls(flat)
        tokens = len(self.splits.train)
        per_epoch = {name: tokens / statistics.median(of) for name, of in measured.items()}
        from_text = rows.seconds_from_text(
            {entry.name: self._seconds(entry, per_epoch, fitted) for entry in entries}, flat_name
        )
        table = []
        with progress.task("laying out the table", len(entries)) as task:
            for entry in entries:
                if isinstance(entry, Baseline):
                    row, spec = self._baseline_row(entry, fitted[entry.name]), None
                else:
                    spec = specs[entry.name]
                    row = replace(
                        self._trained_row(entry, trained[entry.name], spec),
                        seconds_per_epoch=per_epoch[entry.name],
                        tokens_per_second=statistics.median(measured[entry.name]),
                        speed_up=rows.speed_up(measured, entry.name, flat_name)
                        if flat_name
                        else None,
                    )
                nlls = self.nlls(entry)
                table.append(
                    replace(
                        row,
                        from_text=from_text[entry.name],
                        seen=seen(self.splits, spec),
                        to_flat=None if flat_nlls is None else paired_ratio(nlls, flat_nlls),
                        by_band=bands.perplexities(nlls),
                    )
                )
                task.advance()
        return table

    def _trained_row(self, entry: Trained, trained: Sequence[RunResult], spec: LayerSpec) -> Row:
        """Return the row of an output layer without speeds and ratios."""
        folders = [self.relative_folder(entry, seed) for seed in self.seeds]
        of_tree = dict.fromkeys(["tree_file", "tree", "code_lengths", "in_wordnet"])
        return Row(
            name=entry.name,
            **{
                "kind": "layer",
                "method": spec.kind.name,
                "options": dict(spec.options),
                **of_tree,
                **(self._tree_figures(spec.tree, folders[0]) if spec.tree else {}),
            },
            parameters=rows.parameters_of(self.home / folders[0] / "model"),
            runs=[
                RowRun(
                    seed=seed,
                    folder=folder,
                    perplexity=result.perplexity,
                    epochs=result.epochs,
                    seconds=result.seconds,
                )
                for seed, folder, result in zip(self.seeds, folders, trained, strict=True)
            ],
            perplexity=rows.spreads(trained),
            at_epoch_limit=rows.at_epoch_limit(trained),
            out_of_time=sum(bool(result.out_of_time) for result in trained),
            log_normaliser=rows.log_normaliser(trained),
            **_NOT_YET,
        )

    def _tree_figures(self, tree: Tree, folder: str) -> dict[str, Any]:
        """Return the fields of a row that are of its tree.

        Costs are weighted by the counts of the training split; the tree may have other counts.
        """
        vocabulary = Vocabulary(tree.labels, [0] * tree.n_labels)
        counts = self.splits.train.with_vocabulary(vocabulary).counts
        statistics_of_tree = tree_statistics(tree, counts)
        options = tree.meta.get("options")
        return {
            "kind": "tree",
            "tree_file": f"{folder}/tree.json",
            "method": statistics_of_tree.method,
            "options": options if isinstance(options, dict) else {},
            "tree": TreeFigures.of(statistics_of_tree),
            "code_lengths": rows.code_lengths(tree, counts),
            "in_wordnet": rows.in_wordnet(tree),
        }

    def _baseline_row(self, entry: Baseline, result: BaselineResult) -> Row:
        """Return a baseline's row without ratios."""
        run_of_row = RowRun(
            seed=None,
            folder=self.relative_folder(entry, 0),
            perplexity=result.perplexity,
            seconds=result.seconds,
        )
        return Row(
            name=entry.name,
            kind="baseline",
            tree_file=None,
            method=entry.name,
            options=result.options,
            tree=None,
            code_lengths=None,
            parameters=result.parameters,
            in_wordnet=None,
            runs=[run_of_row],
            perplexity=rows.spreads([result]),
            at_epoch_limit=0,
            **_NOT_YET,
        )

    def _seconds(
        self,
        entry: Entry,
        per_epoch: Mapping[str, float],
        fitted: Mapping[str, BaselineResult],
    ) -> Seconds | None:
        """Return the seconds of each step from the text to the model, the mean over seeds."""
        if isinstance(entry, Baseline):
            steps = dict.fromkeys(("vectors", "tree", "preparation"), 0.0)
            return steps | {"training": fitted[entry.name].fit_seconds}
        return rows.mean_seconds([self._seconds_of_run(entry, s, per_epoch) for s in self.seeds])

    def _seconds_of_run(
        self, entry: Trained, seed: int, per_epoch: Mapping[str, float]
    ) -> Seconds | None:
        """Return the seconds of each step from the text to the model of a finished run.

        They are ``vectors`` (until the vectors that the tree is built from are learned), ``tree``
        (to build it), ``preparation`` (of the output layer before its first batch) and ``training``
        (the epochs, at `per_epoch` seconds of each row). None where the tree or its vectors came
        from a file, or the building was not timed.
        """
        result = self.train(entry, seed)
        trees = self.trees or self
        built: float | None = 0.0
        if result.tree is not None:
            built = build_seconds(trees.folder(entry, seed), result.tree.sha256)
        if built is None or (isinstance(entry, Method) and entry.reads_vectors):
            return None
        vectors = 0.0
        if isinstance(entry, Method) and entry.needs_vectors:
            learned = trees._seconds_of_run(entry.vectors_from or RANDOM, seed, per_epoch)
            if learned is None:
                return None
            vectors = sum(learned.values())
        training = sum(epoch.share for epoch in result.epochs or []) * per_epoch[entry.name]
        preparation = result.preparation
        if preparation is None:  # measured by an earlier version
            if result.layer is not None:
                return None
            preparation = 0.0
        return {
            "vectors": vectors,
            "tree": built,
            "preparation": preparation,
            "training": training,
        }


def sources(entries: Sequence[Entry]) -> list[Method]:
    """Return the rows whose models learn vectors for others, and those for these in turn."""
    sources: list[Method] = []
    waiting = [entry for entry in entries if isinstance(entry, Method) and entry.needs_vectors]
    for entry in waiting:
        source = entry.vectors_from or RANDOM
        sources.append(source)
        if source.needs_vectors:
            waiting.append(source)
    return sources


def _machine() -> Machine:
    affinity = getattr(os, "sched_getaffinity", None)
    return Machine(
        cores=len(affinity(0)) if affinity else os.cpu_count() or 1,
        system=platform.platform(),
        processor=platform.processor() or platform.machine(),
    )

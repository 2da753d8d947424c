"""Work of a comparison: trees, trainings, speeds and the figures of all rows, each done once."""

from __future__ import annotations

import os
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from hstree import progress
from hstree._options import RandomState, check_value
from hstree._typing import Bool, Float64, Int64
from hstree.builders import BuilderInput
from hstree.data.corpus import Corpus
from hstree.data.overlap import overlap
from hstree.data.text_score import perplexity, unigram_score
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError, OptionError, owned_by
from hstree.experiments import rows
from hstree.experiments.entries import (
    Baseline,
    Ensemble,
    Entry,
    Layer,
    Method,
    NamedOutput,
    Trained,
    model_of,
    n_models,
    record_of,
    states_of,
    trained_of,
)
from hstree.experiments.evaluation import Splits, seen, versions
from hstree.experiments.results import (
    BaselineResult,
    Choice,
    Comparison,
    LayerFigures,
    Row,
    RowRun,
    RunResult,
    ScoringSpeed,
    Split,
    TreeFigures,
    VocabularyFigures,
    finite,
)
from hstree.experiments.runs import (
    build_seconds,
    built_tree,
    copy_tree,
    kept_nll,
    kept_result,
    nll_of,
    run,
    run_baseline,
    vectors_of,
)
from hstree.experiments.significance import paired_ratio
from hstree.experiments.speeds import SPEEDS, KeptSpeeds, Speeds, machine
from hstree.experiments.throughput import scoring_throughput, throughput
from hstree.experiments.words import Words, words_of
from hstree.layers.hooks import hooks_of
from hstree.layers.registry import TREE_LAYER, LayerSpec, layer_spec
from hstree.models import config_of, kind_of, predicts
from hstree.models.ensemble import mean_probability
from hstree.tree import Tree, load
from hstree.tree.statistics import tree_statistics

#: Number of turns of each row when speeds are measured.
ROUNDS = 3
#: Maximum number of random states; all their trees are built before the first is trained.
MAX_SEEDS = 100
#: The tree whose model learns the vectors that other trees are built from by default.
RANDOM = Method("random")
#: A tree over which layers of trees that are not built yet are checked.
_SMALLEST = Tree.from_children(["a", "b"], [[~0, ~1]])
#: Fields of a row that are measured when all rows are trained; a baseline has no speeds.
_NOT_YET: dict[str, Any] = dict.fromkeys(
    [
        *("seconds_per_epoch", "tokens_per_second", "speed_up"),
        *("from_text", "seen", "to_flat", "by_band"),
    ]
)

Seconds = dict[str, float]
#: Results of finished runs: slug of what was trained -> random state -> result.
Done = dict[str, dict[int, RunResult]]


def check_language_model(config: Mapping[str, Any], name: str) -> None:
    """Refuse a Kneser-Ney model beside models whose perplexities are of other events."""
    model = kind_of(config).model
    if not model.is_language_model:
        raise OptionError(
            f"{name} gives the perplexity of a word given the words before it, "
            f"{model.name} that of a {model.predicts}; leave out the baselines"
        )


def _need_language_model(config: Mapping[str, Any], why: str, instead: str) -> None:
    """Refuse a model that does not predict each word of a text from the words before it."""
    model = kind_of(config).model
    if not model.is_language_model:
        raise OptionError(f"{why}; {model.name} predicts a {model.predicts}: {instead}")


def _check_layer(name: str, spec: LayerSpec, config: Mapping[str, Any]) -> None:
    """Refuse a layer whose files cannot be read, or that the model gives no contexts to."""
    layer = spec.new(config["dim"])
    with owned_by(spec.kind.name):
        hooks_of(layer).check()
    if hooks_of(layer).needs_contexts:
        why = f"{name} needs the words before each target"
        _need_language_model(config, why, "train a language model, or leave the row out")


def _check_words(entries: Sequence[Entry], vocabulary: Vocabulary) -> None:
    """Refuse layers over other words: their perplexities could not be compared."""
    for entry in trained_of(entries):
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
        for entry in entries:
            if isinstance(entry, Baseline):
                check_language_model(config, entry.name)
            elif isinstance(entry, Ensemble):
                why = f"{entry.name} is an ensemble, which is of language models"
                _need_language_model(config, why, "leave it out")
        for split in splits.as_dict().values():
            overlap(split)
        _check_words(entries, splits.train.vocabulary)
        first = config.pop("random_state")
        work = cls(splits, Path(folder), config, range(first, first + seeds))
        last = [states_of(e, work.seeds)[-1] for e in entries if not isinstance(e, Baseline)]
        check_value("random_state", max(last, default=first), RandomState)
        for entry in trained_of(entries):
            if isinstance(entry, Method):
                _check_layer(entry.name, entry.over(_SMALLEST), config)
            else:
                _check_layer(entry.name, work.spec(entry, first), config)
        return work

    def with_options(self, options: Mapping[str, Any]) -> Self:
        """Return the work of models with other values of some options."""
        return replace(self, config={**self.config, **options})

    def build_trees(self, entries: Sequence[Entry]) -> None:
        """Build the trees that need no training, so that bad options are refused at once."""
        for entry in entries:
            if isinstance(entry, Baseline):
                continue
            model = model_of(entry)
            if isinstance(model, Method) and not model.needs_vectors:
                for state in states_of(entry, self.seeds):
                    self.tree(model, state)

    def states(self, entry: Trained | Ensemble, seed: int) -> range:
        """Return the random states of the models of a row for one of `seeds`."""
        start = self.seeds.index(seed) * n_models(entry)
        return states_of(entry, self.seeds)[start : start + n_models(entry)]

    def comparison(
        self,
        entries: Sequence[Entry],
        trained: Mapping[str, Sequence[RunResult]],
        speeds: Speeds,
        within: float = rows.TOLERANCE,
        **more: Any,
    ) -> Comparison:
        """Return the figures of finished entries.

        Parameters
        ----------
        entries : sequence of Entry
        trained : mapping of str to sequence of RunResult
            Results of each trained row, one per random state and model, as `finished` returns them.
        speeds : Speeds
            As `speeds` returns them; figures that need others are None.
        within : float
            For `hstree.experiments.rows.choice`.
        **more
            Fields of `Comparison`: pending, left_out.
        """
        bands = rows.frequency_bands(self.splits)
        table = self._rows(entries, trained, speeds, bands)
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
            machine=machine(),
            unigram=finite(unigram_score(test, self.splits.train.counts).perplexity),
            bands=bands.bands,
            rows=table,
            choice=self._with_ratio(rows.choice(table, within), entries),
            **more,
        )

    def finished(self, entries: Sequence[Entry], done: Done) -> dict[str, list[RunResult]]:
        """Return the results of the rows, by name, whose models are all trained."""
        finished: dict[str, list[RunResult]] = {}
        for entry in entries:
            if isinstance(entry, Baseline) or self._n_finished(entry, done) < len(self.seeds):
                continue
            of_states = done[model_of(entry).slug]
            finished[entry.name] = [of_states[state] for state in states_of(entry, self.seeds)]
        return finished

    def _n_finished(self, entry: Trained | Ensemble, done: Done) -> int:
        """Return the number of seeds, from the first on, whose models of a row are trained."""
        of_states = done.get(model_of(entry).slug, {})
        is_done = (all(s in of_states for s in self.states(entry, seed)) for seed in self.seeds)
        return next((n for n, one in enumerate(is_done) if not one), len(self.seeds))

    def so_far(
        self,
        entries: Sequence[Entry],
        done: Done,
        fitted: Collection[str] = (),
        **more: Any,
    ) -> Comparison:
        """Return the figures of the finished entries; the others are pending.

        `done` has the results of the finished runs and `fitted` the finished baselines, by slug.
        All rows are of the random states that every trained entry has finished, one at least.
        """
        rows_of_models = [entry for entry in entries if not isinstance(entry, Baseline)]
        seeds = max(1, min((self._n_finished(e, done) for e in rows_of_models), default=1))
        work = replace(self, seeds=self.seeds[:seeds])
        of_rows = work.finished(entries, done)
        ended = [e for e in entries if e.name in of_rows or e.slug in fitted]
        pending = [entry.name for entry in entries if entry not in ended]
        speeds = work.speeds(ended, rounds=0)
        return work.comparison(ended, of_rows, speeds, pending=pending, **more)

    def fit_baseline(self, entry: Baseline) -> BaselineResult:
        """Fit and score a baseline, if that is not done."""
        return run_baseline(entry.order, self.splits, self.folder(entry, self.seeds[0]))

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
        return entry.over(self.tree(entry, seed))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        """The words of the training split with its counts."""
        return self.splits.train.counted_vocabulary()

    def tree(self, entry: Method, seed: int) -> Tree:
        """Return a tree, built if it is not there."""
        if self.trees is not None:
            return self.trees.tree(entry, seed)
        source = entry.vectors_from or RANDOM
        if entry.needs_vectors:
            self.train(source, seed)
        learned = self.folder(source, seed)
        input, options = builder_input(entry, entry.seeded(seed), self.splits.train, learned)
        if entry.layer != TREE_LAYER:
            plain = replace(entry, layer=TREE_LAYER, layer_options={}, name="")
            copy_tree(self.folder(plain, seed), self.folder(entry, seed))
        return built_tree(input, self.folder(entry, seed), entry.method, options)

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
        model = model_of(entry)
        of_seeds = [
            [
                nll_of(self.folder(model, state), self.splits, split)
                for state in self.states(entry, seed)
            ]
            for seed in self.seeds
        ]
        return [nlls[0] if len(nlls) == 1 else mean_probability(nlls) for nlls in of_seeds]

    def words(self, entries: Sequence[Entry], comparison: Comparison) -> Words:
        """Compare the test tokens of the rows word by word: with flat, else the best, and rival."""
        by_name = {entry.name: entry for entry in entries}
        trained = [row for row in comparison.rows if row.kind != "baseline"]
        choice = comparison.choice
        best = None if choice is None else choice.best
        flat = next((row.name for row in trained if row.is_flat), best)
        wanted = [(row.name, flat) for row in trained if flat is not None and row.name != flat]
        if choice is not None and choice.rival is not None:
            wanted.insert(0, (choice.chosen, choice.rival))

        def nll_of_row(name: str) -> Float64:
            mean: Float64 = np.mean(self.nlls(by_name[name]), axis=0)
            return mean

        test = self.splits.test.with_vocabulary(self.splits.train.vocabulary)
        return words_of(test, nll_of_row, list(dict.fromkeys(wanted)))

    def kept_spec(self, entry: Trained, state: int) -> LayerSpec:
        """Return the output layer of a random state; a tree as its file has it."""
        if self.trees is not None:
            return self.trees.kept_spec(entry, state)
        if isinstance(entry, Method):
            return entry.over(load(self.folder(entry, state) / "tree.json"))
        return self.spec(entry, state)

    def kept_specs(self, entries: Sequence[Entry]) -> dict[str, LayerSpec]:
        """Return the output layers of the first random state of trained entries, by row."""
        return {entry.name: self.kept_spec(entry, self.seeds[0]) for entry in trained_of(entries)}

    def speeds(self, entries: Sequence[Entry], rounds: int = ROUNDS) -> Speeds:
        """Return the speeds of the rows in training and testing, and of what they learn from.

        Rounds are kept with the runs; those that are missing of `rounds` are measured and added.
        With 0 rounds nothing is measured, and only rows that were measured before have speeds.
        Trained models go on training, as the cost of a step may depend on what is learned.
        """
        trained, timed = _timed(entries)
        first, keys = self.seeds[0], self._keys(timed)
        kept = KeptSpeeds(self.home / self.runs / SPEEDS)
        if (missing := rounds - _rounds_of(kept.common(keys), trained, timed)) > 0 and timed:
            models = {name: self.folder(entry, first) / "model" for name, entry in timed.items()}
            new = throughput(models, self.splits.train, rounds=missing, **self.config)
            tested = {entry.name: models[entry.name] for entry in trained}
            scored = scoring_throughput(tested, self.splits.test, rounds=missing)
            kept.add(keys, {"training": new, **scored})
        return kept.common(keys)

    def kept_rounds(self, entries: Sequence[Entry]) -> int:
        """Return the number of rounds in which finished rows took turns, and what they learn from.

        Rows take part in training and testing, what they learn from in training alone.
        """
        trained, timed = _timed(entries)
        kept = KeptSpeeds(self.home / self.runs / SPEEDS)
        return _rounds_of(kept.common(self._keys(timed)), trained, timed)

    def _keys(self, timed: Mapping[str, Trained]) -> dict[str, str]:
        """Return the keys of finished runs of the first random state, by row."""
        return {name: str(self._result(e, self.seeds[0]).key) for name, e in timed.items()}

    def _result(self, entry: Trained, seed: int) -> RunResult:
        """Return the result of a run that was finished before; its tree is not read again."""
        kept = kept_result(self.folder(entry, seed))
        return self.train(entry, seed) if kept is None else kept

    def _rows(
        self,
        entries: Sequence[Entry],
        trained: Mapping[str, Sequence[RunResult]],
        speeds: Speeds,
        bands: rows.Bands,
    ) -> list[Row]:
        """Return a row for each entry."""
        speeds = _with_ensembles(speeds, entries)
        measured = speeds.get("training", {})
        specs = self.kept_specs(entries)
        flat = next((e for e in entries if e.name in specs and specs[e.name].is_flat), None)
        flat_name = None if flat is None else flat.name
        flat_nlls = None if flat is None else self.nlls(flat)
        covered = self._covered(specs.values())
        tokens = len(self.splits.train)
        per_epoch = {name: tokens / statistics.median(of) for name, of in measured.items()}
        from_text = rows.seconds_from_text(
            {entry.name: self._seconds(entry, per_epoch) for entry in entries}, flat_name
        )
        table = []
        with progress.task("laying out the table", len(entries)) as task:
            for entry in entries:
                if isinstance(entry, Baseline):
                    row, spec = self._baseline_row(entry, self.fit_baseline(entry)), None
                else:
                    spec = specs[model_of(entry).name]
                    row = replace(
                        self._trained_row(entry, trained[entry.name], spec),
                        **_speeds_of(entry.name, flat_name, speeds),
                        seconds_per_epoch=per_epoch.get(entry.name),
                    )
                nlls = self.nlls(entry)
                table.append(
                    replace(
                        row,
                        from_text=from_text[entry.name],
                        seen=seen(self.splits, spec),
                        to_flat=None if flat_nlls is None else paired_ratio(nlls, flat_nlls),
                        by_band=bands.perplexities(nlls),
                        covered=None if covered is None else rows.mean_perplexity(nlls, covered),
                    )
                )
                task.advance()
        return table

    def _covered(self, specs: Iterable[LayerSpec]) -> Bool | None:
        """Return whether WordNet has the word of each test token (T,), if a tree is built of it."""
        masks = (rows.covered_tokens(s.tree, self.splits) for s in specs if s.tree is not None)
        return next((mask for mask in masks if mask is not None), None)

    def _with_ratio(self, choice: Choice | None, entries: Sequence[Entry]) -> Choice | None:
        """Return a choice with its comparison to the rival on the same test tokens."""
        if choice is None or choice.rival is None:
            return choice
        nlls = {e.name: self.nlls(e) for e in entries if e.name in (choice.chosen, choice.rival)}
        return replace(choice, to_rival=paired_ratio(nlls[choice.chosen], nlls[choice.rival]))

    def _trained_row(
        self, entry: Trained | Ensemble, trained: Sequence[RunResult], spec: LayerSpec
    ) -> Row:
        """Return the row of an output layer, or of an ensemble, without speeds and ratios."""
        model, models, states = model_of(entry), n_models(entry), states_of(entry, self.seeds)
        folders = [self.relative_folder(model, state) for state in states]
        others = [self.kept_spec(model, state).tree for state in states[1:models]]
        trees = [tree for tree in (spec.tree, *others) if tree is not None]
        of_tree = dict.fromkeys(["tree_file", "tree", "code_lengths", "in_wordnet"])
        return Row(
            name=entry.name,
            entry=record_of(entry),
            **{
                "kind": "layer",
                "method": spec.kind.name,
                "options": spec.set_options,
                **of_tree,
                **(self._tree_figures(trees, folders[0]) if trees else {}),
            },
            layer=LayerFigures.of(spec) if spec.tree else None,
            models=models,
            parameters=sum(
                rows.parameters_of(self.home / folder / "model") for folder in folders[:models]
            ),
            runs=[
                RowRun(
                    seed=state,
                    folder=folder,
                    perplexity=result.perplexity,
                    epochs=result.epochs,
                    seconds=result.seconds,
                )
                for state, folder, result in zip(states, folders, trained, strict=True)
            ],
            perplexity=rows.spreads(
                [result.perplexity for result in trained]
                if isinstance(entry, Trained)
                else self._perplexities(entry)
            ),
            at_epoch_limit=rows.at_epoch_limit(trained),
            out_of_time=sum(bool(result.out_of_time) for result in trained),
            log_normaliser=rows.log_normaliser(trained) if models == 1 else None,
            **_NOT_YET,
        )

    def _perplexities(self, entry: Ensemble) -> list[dict[str, float | None]]:
        """Return the perplexities of an ensemble per seed, as those of a run."""
        known = self.splits.test.with_vocabulary(self.splits.train.vocabulary).ids(slice(None)) >= 0
        per_seed = zip(self.nlls(entry, "valid"), self.nlls(entry, "test"), strict=True)
        scored = [
            {"valid": valid, "test": test, "test_without_oov": test[known]}
            for valid, test in per_seed
        ]
        return [
            {name: finite(perplexity(float(nll.sum()), len(nll))) for name, nll in of_seed.items()}
            for of_seed in scored
        ]

    def _tree_figures(self, trees: Sequence[Tree], folder: str) -> dict[str, Any]:
        """Return the fields of a row that are of its tree; costs are of all trees of an ensemble.

        Costs are weighted by the counts of the training split; a tree may have other counts.
        """
        tree = trees[0]
        counts = [self._counts_of(one) for one in trees]
        of_trees = [tree_statistics(*pair) for pair in zip(trees, counts, strict=True)]
        options = tree.meta.get("options")
        return {
            "kind": "tree",
            "tree_file": f"{folder}/tree.json",
            "method": of_trees[0].method,
            "options": options if isinstance(options, dict) else {},
            "tree": TreeFigures.of_ensemble([TreeFigures.of(one) for one in of_trees]),
            "code_lengths": rows.code_lengths(tree, counts[0]),
            "in_wordnet": rows.in_wordnet(tree),
        }

    def _counts_of(self, tree: Tree) -> Int64:
        """Return the counts of a tree's labels (V,) in the training split."""
        vocabulary = Vocabulary(tree.labels, [0] * tree.n_labels)
        return self.splits.train.with_vocabulary(vocabulary).counts

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
            entry=record_of(entry),
            kind="baseline",
            tree_file=None,
            method=entry.name,
            options=result.options,
            tree=None,
            code_lengths=None,
            parameters=result.parameters,
            in_wordnet=None,
            runs=[run_of_row],
            perplexity=rows.spreads([result.perplexity]),
            at_epoch_limit=0,
            **_NOT_YET,
        )

    def _seconds(
        self,
        entry: Entry,
        per_epoch: Mapping[str, float],
    ) -> Seconds | None:
        """Return the seconds of each step from the text to the model, the mean over seeds."""
        if isinstance(entry, Baseline):
            steps = dict.fromkeys(("vectors", "tree", "preparation"), 0.0)
            return steps | {"training": self.fit_baseline(entry).fit_seconds}
        model, states = model_of(entry), states_of(entry, self.seeds)
        mean = rows.mean_seconds([self._seconds_of_run(model, s, per_epoch) for s in states])
        return mean and {step: n_models(entry) * seconds for step, seconds in mean.items()}

    def _seconds_of_run(
        self, entry: Trained, seed: int, per_epoch: Mapping[str, float]
    ) -> Seconds | None:
        """Return the seconds of each step from the text to the model of a finished run.

        They are ``vectors`` (until the vectors that the tree is built from are learned), ``tree``
        (to build it), ``preparation`` (of the output layer before its first batch) and ``training``
        (the epochs, at `per_epoch` seconds of each row). None where the tree or its vectors came
        from a file, or the building was not timed.
        """
        result = self._result(entry, seed)
        trees = self.trees or self
        if entry.name not in per_epoch or (isinstance(entry, Method) and entry.reads_vectors):
            return None
        built: float | None = 0.0
        if result.tree is not None:
            built = build_seconds(trees.folder(entry, seed), result.tree.sha256)
        if built is None:
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


def builder_input(
    entry: Method, options: Mapping[str, Any], train: Corpus, learned: Path
) -> tuple[BuilderInput, dict[str, Any]]:
    """Return the input and the options to build a tree with.

    The vectors of the run in `learned` are the input or a file among the options, if they are
    needed; a tree that needs none is built from the training split.
    """
    if entry.takes_vectors:
        return vectors_of(learned), dict(options)
    if entry.needs_vectors:
        return train, {**options, "vectors_file": learned / "vectors.npy"}
    return train, dict(options)


def _timed(entries: Sequence[Entry]) -> tuple[list[Trained], dict[str, Trained]]:
    """Return the rows that are trained, and by name these and what they learn vectors from."""
    trained = trained_of(entries)
    return trained, {entry.name: entry for entry in [*trained, *sources(entries)]}


def _rounds_of(known: Speeds, trained: Sequence[Trained], timed: Mapping[str, Trained]) -> int:
    """Return the number of rounds of known speeds, in training and of the rows in testing, too."""
    of_rows = [known.get("training", {}).get(name, []) for name in timed]
    of_rows += [known.get("nll", {}).get(entry.name, []) for entry in trained]
    return min(map(len, of_rows), default=0)


def _speeds_of(name: str, flat: str | None, speeds: Speeds) -> dict[str, Any]:
    """Return the fields of a row that are its speeds; those that are not known are missing."""
    training = speeds.get("training", {})
    figures: dict[str, Any] = {}
    if name in training:
        figures["tokens_per_second"] = statistics.median(training[name])
        figures["speed_rounds"] = training[name]
        if flat in training:
            figures["speed_up"] = rows.speed_up(training, name, flat)
    if name in speeds.get("nll", {}):
        medians = {m: statistics.median(speeds[m][name]) for m in ("nll", "top_k")}
        figures["scoring"] = ScoringSpeed(**medians)
    return figures


def _with_ensembles(speeds: Speeds, entries: Sequence[Entry]) -> Speeds:
    """Return speeds with those of ensembles, whose models train and score one after another.

    The most probable words of an ensemble are found among all words.
    """
    added: Speeds = {measure: dict(of_rows) for measure, of_rows in speeds.items()}
    for entry in entries:
        if not isinstance(entry, Ensemble):
            continue
        for measure, of_rows in added.items():
            of_model = speeds["log_prob" if measure == "top_k" else measure].get(entry.of.name)
            if of_model is not None:
                of_rows[entry.name] = [speed / entry.models for speed in of_model]
    return added


def sources(entries: Sequence[Entry]) -> list[Method]:
    """Return the rows whose models learn vectors for others, and those for these in turn."""
    sources: list[Method] = []
    trained = trained_of(entries)
    waiting = [entry for entry in trained if isinstance(entry, Method) and entry.needs_vectors]
    for entry in waiting:
        source = entry.vectors_from or RANDOM
        sources.append(source)
        if source.needs_vectors:
            waiting.append(source)
    return sources

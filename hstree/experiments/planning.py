"""Plan of a comparison or survey: the predicted seconds of every run, and runs that fit a budget.

A few batches of each row are measured before anything is trained, and each builder on a part of
the words. Predictions are for all epochs: a training that converges before takes less.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from hstree import progress
from hstree._compiled import n_threads
from hstree._files import read_json, write_json
from hstree._options import Range, check_value
from hstree._text import duration, plural
from hstree.builders import build
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.errors import HstreeError, OptionError
from hstree.experiments import throughput
from hstree.experiments.entries import (
    Baseline,
    Ensemble,
    Entry,
    Layer,
    Method,
    Trained,
    model_of,
    n_models,
    states_of,
    trained_of,
)
from hstree.experiments.evaluation import Splits
from hstree.experiments.results import RunResult, decode
from hstree.experiments.runs import finished, finished_baseline, key_of, run_baseline
from hstree.experiments.work import RANDOM, ROUNDS, Work, sources
from hstree.layers.hooks import TrainingHooks, hooks_of
from hstree.layers.registry import LayerSpec
from hstree.models import Model, new_model
from hstree.models.base import MOST_EPOCHS
from hstree.tree import load as load_tree

Regime = Literal["equal_epochs", "equal_seconds"]
#: Returns the vectors that stand in for those of a trained model.
Vectors = Callable[[], WordVectors]

#: File of the predicted seconds of each run.
PLAN = "plan.json"
#: Tokens that a Kneser-Ney model is measured on.
SAMPLE_TOKENS = 3_000_000
#: Tokens that a model learns from whose vectors stand in for those of a trained one.
LEARNING_TOKENS = 500_000
#: Turns that the training of a row is measured in, fewer once this many seconds have passed.
TURNS, LONGEST_TURNS = 3, 3.0
#: Rows are left out, the slowest first, until this many epochs of the others fit a budget.
FEWEST_EPOCHS = 3
#: Number of rows that are kept, however slow.
FEWEST_ROWS = 2
#: Row that stands in for the flat softmax where that is too slow.
REFERENCE = Layer("sampled")


@dataclass(frozen=True)
class PlannedRun:
    """Training of one row with one random state, and the seconds of its parts.

    Attributes
    ----------
    entry : Method, Layer, NamedOutput or Baseline
    regime : {"equal_epochs", "equal_seconds"}
    seed : int
        Random state; a baseline has the first.
    finished : bool
        Whether it is kept from before, and takes no time.
    building : float
        Seconds to build its tree, and in which its layer reads the training text.
    epoch, validation : float
        Seconds of an epoch of training, and of scoring the validation split once.
    scoring : float
        Seconds of what is done at the end: scoring all splits, and mean predicted vectors.
    epochs : int
    budget : float or None
        Seconds of training that end it before its epochs do.
    """

    entry: Trained | Baseline
    regime: Regime
    seed: int
    finished: bool = False
    building: float = 0.0
    epoch: float = 0.0
    validation: float = 0.0
    scoring: float = 0.0
    epochs: int = 0
    budget: float | None = None

    @property
    def passes(self) -> float:
        """Number of epochs, the last by its share."""
        if self.budget is None or self.epochs * self.epoch <= self.budget:
            return float(self.epochs)
        return self.budget / self.epoch

    @property
    def training(self) -> float:
        """Seconds of training and of validations."""
        return self.passes * self.epoch + math.ceil(self.passes) * self.validation

    @property
    def seconds(self) -> float:
        """Predicted seconds of the run; 0 for a finished one."""
        return 0.0 if self.finished else self.building + self.training + self.scoring


@dataclass(frozen=True)
class Fit:
    """How runs were fitted to a budget.

    Attributes
    ----------
    minutes : float
    equal_seconds : bool
    options : dict of str to Any
        "epochs", and "seconds" with equal seconds: options of the models.
    left_out : dict of str to str
        Rows that do not fit, and why.
    """

    minutes: float
    equal_seconds: bool
    options: dict[str, Any]
    left_out: dict[str, str]


@dataclass(frozen=True)
class Plan:
    """The runs of a comparison or survey in their order, and what else takes time.

    Attributes
    ----------
    runs : list of PlannedRun
    measuring : float
        Seconds of measuring speeds at the end.
    fit : Fit or None
        How they were fitted to a budget; None without one.
    seeds : range
        Seeds of the rows; those of the runs are `states_of` each row.
    """

    runs: list[PlannedRun]
    measuring: float
    fit: Fit | None = None
    seeds: range = range(1)

    @property
    def seconds(self) -> float:
        """Predicted seconds of everything."""
        return self.measuring + sum(run.seconds for run in self.runs)

    @property
    def left_out(self) -> dict[str, str]:
        """Rows that do not fit the budget, and why."""
        return self.fit.left_out if self.fit is not None else {}

    @property
    def options(self) -> dict[str, Any]:
        """Options of the models that were fitted to the budget; none without one."""
        return self.fit.options if self.fit is not None else {}

    def save(self, folder: Path) -> None:
        """Write ``plan.json``, to be compared with the seconds of the runs."""
        runs = [
            {
                "name": run.entry.name,
                "regime": run.regime,
                "seed": run.seed,
                "finished": run.finished,
                "seconds": run.seconds,
            }
            for run in self.runs
        ]
        document = {
            "seconds": self.seconds,
            "measuring": self.measuring,
            "fit": None if self.fit is None else asdict(self.fit),
            "runs": runs,
        }
        write_json(folder / PLAN, document)


class Speeds(NamedTuple):
    """Measured speeds of an untrained row.

    `training`, `scoring` and `vectors` (the mean predicted ones) are in tokens per second;
    `building` is the seconds of building its tree, `preparation` those in which its layer reads the
    text, and `round` those of one round of measuring its
    speeds.
    """

    training: float
    scoring: float
    vectors: float
    building: float
    preparation: float
    round: float


def plan(
    works: Mapping[Regime, Work],
    entries: Sequence[Entry],
    measured: dict[str, Speeds] | None = None,
) -> Plan:
    """Predict the seconds of every run from a few batches of each row.

    Parameters
    ----------
    works : mapping of str to Work
        The work of each regime.
    entries : sequence of Entry
        Rows; those that learn vectors for them are planned before them.
    measured : dict of str to Speeds, optional
        Speeds by slug that are known; those that are measured are added.
    """
    measured = {} if measured is None else measured
    to_do = [
        (regime, work, entry, state)
        for regime, work in works.items()
        for entry, state in in_order(work, entries)
        if not isinstance(entry, Baseline) or regime == "equal_epochs"
    ]
    runs: list[PlannedRun] = []
    vectors = cache(partial(_first_vectors, next(iter(works.values()))))
    with progress.task("planning", len(to_do)) as task:
        for regime, work, entry, seed in to_do:
            task.note(entry.name)
            if isinstance(entry, Baseline):
                runs.append(_planned_baseline(work, entry))
            elif _is_finished(work, entry, seed):
                runs.append(PlannedRun(entry, regime, seed, finished=True))
            else:
                if entry.slug not in measured:
                    measured[entry.slug] = _measured(work, entry, seed, vectors)
                runs.append(_planned(work, entry, regime, seed, measured[entry.slug]))
            task.advance()
    turns = throughput.TURN + 4 * throughput.TESTING_TURN  # of rows that are not measured here
    of_rows = [measured[e.slug].round if e.slug in measured else turns for e in trained_of(entries)]
    rounds = ROUNDS
    if all(run.finished for run in runs):
        rounds -= min(ROUNDS, next(iter(works.values())).kept_rounds(entries))
    return Plan(runs, rounds * sum(of_rows), seeds=next(iter(works.values())).seeds)


def in_order(work: Work, entries: Sequence[Entry]) -> list[tuple[Trained | Baseline, int]]:
    """Return what is trained with its random state, each once: seed by seed, row by row.

    Before a row come those that learn vectors for it. Baselines have the first seed alone.
    """
    learned: list[Entry] = [] if work.trees else list(reversed(sources(entries)))
    rows = list({entry.slug: entry for entry in [*learned, *entries]}.values())
    runs: dict[tuple[str, int], tuple[Trained | Baseline, int]] = {}
    for seed in work.seeds:
        for row in rows:
            if isinstance(row, Baseline):
                runs.setdefault((row.slug, work.seeds[0]), (row, work.seeds[0]))
                continue
            for state in work.states(row, seed):
                before = [] if work.trees else list(reversed(sources([row])))
                for entry in [*before, model_of(row)]:
                    runs.setdefault((entry.slug, state), (entry, state))
    return list(runs.values())


def _kept_layer(work: Work, entry: Trained, seed: int) -> LayerSpec | None:
    """Return the output layer of a row; None for a tree whose vectors are not learned yet."""
    if not isinstance(entry, Method) or not entry.needs_vectors:
        return work.spec(entry, seed)
    try:
        tree = load_tree((work.trees or work).folder(entry, seed) / "tree.json")
    except HstreeError:
        return None
    return entry.over(tree)


def _is_finished(work: Work, entry: Trained, seed: int) -> bool:
    spec = _kept_layer(work, entry, seed)
    if spec is None:
        return False
    key = key_of(spec, work.splits, **work.config, random_state=seed)
    return finished(work.folder(entry, seed), key) is not None


def _measured(work: Work, entry: Trained, seed: int, vectors: Vectors) -> Speeds:
    """Return the speeds of a row from a few batches of a new model.

    A tree that cannot be built yet is as fast as the same method's over vectors that stand in.
    """
    building, spec = 0.0, _kept_layer(work, entry, seed)
    if spec is None:
        building, spec = _trial(work, entry, seed, vectors)
    began, speeds = time.perf_counter(), list[float]()
    while len(speeds) < TURNS and time.perf_counter() - began < LONGEST_TURNS:
        turn = throughput.throughput({entry.name: spec}, work.splits.train, rounds=1, **work.config)
        speeds += turn[entry.name]
    one_turn = (time.perf_counter() - began) / len(speeds)
    began = time.perf_counter()
    model = new_model(spec, **work.config)
    preparation = _preparation(model, work.splits.train)
    throughput.map_memory(model)
    measures = "nll", "unnormalised", "vectors"
    in_testing = throughput.scoring_turn(model, work.splits.valid, measures)
    others = 2 * throughput.TESTING_TURN  # all words, and top 10
    seconds = one_turn + time.perf_counter() - began + others
    scoring = in_testing["nll"] / (2 if "unnormalised" in in_testing else 1)
    if hooks_of(model.layer).scores_in_threads:
        scoring *= n_threads()
    return Speeds(
        training=float(np.median(speeds)),
        scoring=scoring,
        vectors=in_testing["vectors"],
        building=building,
        preparation=preparation,
        round=seconds,
    )


def _preparation(model: Model[Any], train: Corpus) -> float:
    """Return the seconds in which an output layer reads the training text, from its first lines."""
    if type(hooks_of(model.layer)).prepare is TrainingHooks.prepare:
        return 0.0
    some = model.windows(first_lines(train, LEARNING_TOKENS))
    began = time.perf_counter()
    hooks_of(model.layer).prepare(some)
    return (time.perf_counter() - began) * len(train) / len(some)


def _trial(work: Work, entry: Trained, seed: int, vectors: Vectors) -> tuple[float, LayerSpec]:
    """Return the seconds to build a tree over vectors that stand in, and the layer over it.

    A layer that needs none is returned as it is.
    """
    if not isinstance(entry, Method):
        return 0.0, work.spec(entry, seed)
    of_words, options = vectors(), entry.seeded(seed)
    began = time.perf_counter()
    if entry.takes_vectors:
        tree = build(entry.method, of_words, **options)
    else:
        with TemporaryDirectory() as folder:
            file = Path(folder) / "vectors.npy"
            of_words.save(file)
            tree = build(entry.method, work.splits.train, **{**options, "vectors_file": file})
    return time.perf_counter() - began, entry.over(tree)


def _first_vectors(work: Work) -> WordVectors:
    """Return vectors of a model on a random tree after one epoch of the first lines.

    They are means over the whole training split, so that every word has one. A tree of these is
    about as large as one of a trained model's.
    """
    train = work.splits.train
    model = new_model(work.spec(RANDOM, work.seeds[0]), **work.config)
    some = model.windows(first_lines(train, LEARNING_TOKENS))
    hooks_of(model.layer).prepare(some)
    trainer = model.trainer(some)
    for contexts, targets, _ in trainer.epoch_batches(some):
        trainer.step(contexts, targets, trainer.learning_rate(0))
    return model.mean_predicted_vectors(train)


def _planned(work: Work, entry: Trained, regime: Regime, seed: int, speeds: Speeds) -> PlannedRun:
    """Return the run of a row of these speeds."""
    tokens = {split: len(text) for split, text in work.splits.as_dict().items()}
    scored = tokens["valid"] + tokens["test"] + (tokens["train"] if work.score_train else 0)
    return PlannedRun(
        entry,
        regime,
        seed,
        building=speeds.preparation + (0.0 if work.trees else speeds.building),
        epoch=tokens["train"] / speeds.training,
        validation=tokens["valid"] / speeds.scoring,
        scoring=scored / speeds.scoring + tokens["train"] / speeds.vectors,
        epochs=work.config["epochs"],
        budget=work.config.get("seconds"),
    )


def _planned_baseline(work: Work, entry: Baseline) -> PlannedRun:
    """Return the run of a baseline, from one that is fitted and scored on the first lines."""
    first = work.seeds[0]
    if finished_baseline(entry.order, work.splits, work.folder(entry, first)) is not None:
        return PlannedRun(entry, "equal_epochs", first, finished=True)
    for tokens in (SAMPLE_TOKENS // 100, SAMPLE_TOKENS):  # the first loads the kernels
        parts = work.splits.as_dict().values()
        sample = Splits(*(first_lines(text, tokens) for text in parts))
        with TemporaryDirectory() as folder:
            result = run_baseline(entry.order, sample, Path(folder))
    share = len(work.splits.train) / len(sample.train)
    held_out = len(work.splits.valid) + len(work.splits.test)
    scored = held_out / max(1, len(sample.valid) + len(sample.test))
    return PlannedRun(
        entry,
        "equal_epochs",
        first,
        building=share * result.fit_seconds,
        scoring=scored * (result.seconds - result.fit_seconds),
    )


def first_lines(text: Corpus, tokens: int) -> Corpus:
    """Return the first lines of a text, at least one, of some tokens or all."""
    lines = text.n_lines * tokens // max(tokens, len(text))
    return text.select_lines(0, max(1, lines))


# Fitting to a budget


def fitted(
    planned: Plan,
    entries: Sequence[Entry],
    minutes: float,
    *,
    equal_seconds: bool,
    spent: float,
    all_rows: bool = False,
) -> Plan:
    """Fit the runs of a plan to a budget.

    With equal epochs, all rows train for the greatest number of epochs that fits, at most that of
    the plan; rows are left out, the slowest first, until `FEWEST_EPOCHS` fit or `FEWEST_ROWS` rows
    are left. With equal seconds, all train for the same number of seconds.

    Parameters
    ----------
    planned : Plan
    entries : sequence of Entry
        The rows; other runs of the plan learn vectors for them.
    minutes : float
        For everything: building, training, validation, scoring, measuring speeds.
    equal_seconds : bool
    spent : float
        Seconds of the budget that are spent already.
    all_rows : bool, default False
        Whether no row may be left out.

    Returns
    -------
    Plan
        The runs that are not left out, and their fit.

    Raises
    ------
    OptionError
        When not one epoch fits, or less than a second.
    """
    total = 60 * minutes - spent - planned.measuring
    rows, runs = list(entries), list(planned.runs)
    left_out: dict[str, str] = {}
    if equal_seconds:
        seconds = _equal_seconds(runs, total)
        if seconds < 1:
            raise _too_short(minutes, runs, planned.measuring + spent)
        runs = [_limited(run, epochs=MOST_EPOCHS, budget=seconds) for run in runs]
        options: dict[str, Any] = {"epochs": MOST_EPOCHS, "seconds": seconds}
        fit = Fit(minutes, equal_seconds, options, left_out)
        return replace(planned, runs=runs, fit=fit)
    while (fitting := _epochs_within(runs, total)) < FEWEST_EPOCHS:
        slowest = None if all_rows else _slowest(runs, rows, planned.seeds)
        if slowest is None:
            break
        of_model = _runs_of(slowest, runs, planned.seeds)[0]
        seconds = n_models(slowest) * (of_model.epoch + of_model.validation)
        left_out[slowest.name] = f"an epoch takes {seconds:,.0f} seconds"
        rows.remove(slowest)
        needed = [run for row in rows for run in _runs_of(row, runs, planned.seeds, learned=True)]
        runs = [run for run in runs if run in needed]
    if fitting < 1:
        raise _too_short(minutes, runs, planned.measuring + spent)
    limit = max((run.epochs for run in runs if run.budget is None), default=0)
    epochs = min(math.floor(min(fitting, MOST_EPOCHS)), limit)
    runs = [_limited(run, epochs=epochs) if run.budget is None else run for run in runs]
    fit = Fit(minutes, equal_seconds, {"epochs": epochs}, left_out)
    return replace(planned, runs=runs, fit=fit)


def check_minutes(minutes: float, options: Mapping[str, Any]) -> None:
    """Refuse a budget that is not above 0, or two of them; raises OptionError."""
    check_value("minutes", minutes, Annotated[float, Range(0, exclude_min=True)])
    if options.get("seconds") is not None:
        raise OptionError("seconds and minutes are two budgets; give one of them")


def kept_fit(folder: Path, minutes: float | None, *, equal_seconds: bool) -> Fit | None:
    """Return how the same budget was fitted before, by the ``plan.json`` of a folder; or None."""
    try:
        fit = decode(read_json(folder / PLAN, "").get("fit"), Fit, "fit")
    except HstreeError:
        return None
    return fit if (fit.minutes, fit.equal_seconds) == (minutes, equal_seconds) else None


def _limited(run: PlannedRun, *, epochs: int, budget: float | None = None) -> PlannedRun:
    if isinstance(run.entry, Baseline):
        return run
    return replace(run, epochs=epochs, budget=budget)


def _epochs_within(runs: Sequence[PlannedRun], total: float) -> float:
    """Return the number of epochs, maybe a fraction, whose runs take `total` seconds."""
    open_runs = [run for run in runs if not run.finished]
    fixed = sum(
        run.building + run.scoring if run.budget is None else run.seconds for run in open_runs
    )
    per_epoch = sum(run.epoch + run.validation for run in open_runs if run.budget is None)
    return math.inf if per_epoch == 0 else (total - fixed) / per_epoch


def _equal_seconds(runs: Sequence[PlannedRun], total: float) -> float:
    """Return the whole seconds of training, the same for all, whose runs take `total` seconds."""
    open_runs = [run for run in runs if not run.finished and run.epoch > 0]

    def needed(seconds: float) -> float:
        return sum(_limited(r, epochs=MOST_EPOCHS, budget=seconds).seconds for r in open_runs)

    low, high = 0.0, max(total, 0.0)
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if needed(middle) <= total else (low, middle)
    return float(math.floor(low + 1e-6))


def _runs_of(
    row: Entry, runs: Sequence[PlannedRun], seeds: range, *, learned: bool = False
) -> list[PlannedRun]:
    """Return the runs of a row; with `learned` those of its vectors, too."""
    if isinstance(row, Baseline):
        return [run for run in runs if run.entry.slug == row.slug]
    states = states_of(row, seeds)
    slugs = {entry.slug for entry in [model_of(row), *(sources([row]) if learned else [])]}
    return [run for run in runs if run.entry.slug in slugs and run.seed in states]


def _slowest(
    runs: Sequence[PlannedRun], rows: Sequence[Entry], seeds: range
) -> Trained | Ensemble | None:
    """Return the row whose fewest epochs take longest; None if too few rows are left."""
    seconds: dict[str, float] = {}
    trained = {row.slug: row for row in rows if not isinstance(row, Baseline)}
    for slug, row in trained.items():
        of_row = [run for run in _runs_of(row, runs, seeds) if run.epoch > 0]
        if of_row:
            limited = (_limited(run, epochs=FEWEST_EPOCHS, budget=run.budget) for run in of_row)
            seconds[slug] = sum(run.seconds for run in limited)
    if len(seconds) <= FEWEST_ROWS:
        return None
    return trained[max(seconds, key=lambda slug: seconds[slug])]


def _too_short(minutes: float, runs: Sequence[PlannedRun], measuring: float) -> OptionError:
    least = measuring + sum(_limited(run, epochs=1).seconds for run in runs)
    return OptionError(
        f"minutes is {minutes:g}: one epoch of {plural(len(runs), 'run')} takes "
        f"{duration(least)}; give more minutes, fewer rows or a part of the text"
    )


# Doing what is planned


def carry_out(
    planned: Plan,
    works: Mapping[Regime, Work],
    ended: Callable[[PlannedRun, RunResult | None], object],
) -> None:
    """Do the runs of a plan, and show the time left, which the plan weights.

    Parameters
    ----------
    planned : Plan
    works : mapping of str to Work
    ended : callable
        Called after every run with its result; None for a baseline.
    """
    total = sum(run.seconds for run in planned.runs)
    with progress.task("all runs", total, "s") as task:
        for run in planned.runs:
            work = works[run.regime]
            is_baseline = isinstance(run.entry, Baseline)
            task.note(run.entry.name if is_baseline else f"{run.entry.name}, seed {run.seed}")
            if isinstance(run.entry, Baseline):
                work.fit_baseline(run.entry)
                task.advance(run.seconds)
                ended(run, None)
            else:
                tokens = len(work.splits.train) * max(run.passes, 1e-9)
                with progress.counted(task, run.seconds, run.training / tokens):
                    result = work.train(run.entry, run.seed)
                ended(run, result)

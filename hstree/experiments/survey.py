"""Survey: trees and every approximation of the softmax, measured in training and in testing.

Each row trains the same model twice: for the same number of epochs, and for the same number of
seconds. Runs are those of `hstree.experiments.comparison`, kept in the same way, so that a survey
goes on where it stopped; before the first training it predicts how long all of them take.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.optimize import minimize_scalar

from hstree import progress
from hstree._files import DEEPEST, nested_too_deep, read_json, write_json
from hstree._options import check_value
from hstree._typing import Float64
from hstree.builders import builder
from hstree.data.corpus import Corpus
from hstree.data.text_score import perplexity
from hstree.data.vocabulary import EOS, Vocabulary
from hstree.errors import FileFormatError, HstreeError, OptionError
from hstree.experiments import results, throughput
from hstree.experiments.comparison import RANDOM, ROUNDS, Work, check_language_model, sources
from hstree.experiments.entries import (
    FLAT,
    Baseline,
    EntryLike,
    Layer,
    Method,
    Trained,
    as_entries,
)
from hstree.experiments.evaluation import Splits
from hstree.experiments.published import Published, published
from hstree.experiments.results import Comparison, Row, RunResult, finite
from hstree.experiments.rows import speed_up
from hstree.experiments.runs import finished, key_of, locked, run_baseline
from hstree.layers.registry import LAYERS, LayerSpec, layer_spec
from hstree.models import config_of, kind_of, new_model
from hstree.models.base import MOST_EPOCHS, Seconds
from hstree.tree import load as load_tree

FORMAT, VERSION = "hstree survey", 1
JSON, CSV = "survey.json", "survey.csv"
#: Trees of a survey by default: fixed codes, learned ones and word classes.
TREES: tuple[EntryLike, ...] = (
    "huffman",
    "gmm",
    ("gmm", {"epsilon": 0.4, "trees": 4}),
    "classes",
)

Regime = Literal["equal_epochs", "equal_seconds"]
REGIMES: tuple[Regime, ...] = get_args(Regime)


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Speed over rounds of measurements.

    Attributes
    ----------
    tokens_per_second : float
        The median.
    times_flat : float
        The median divided by that of the flat softmax.
    low, high : float
        Lowest and highest quotient of a round.
    """

    tokens_per_second: float
    times_flat: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Mixture of a row's model with a Kneser-Ney model: ``weight * P + (1 - weight) * P_KN``.

    `weight` has the lowest validation perplexity; all are means over the random states.
    """

    weight: float
    valid: float | None
    test: float | None


@dataclass(frozen=True, kw_only=True)
class SurveyRow:
    """What a survey adds to the rows of its comparisons.

    Attributes
    ----------
    name : str
    approach : str
        One sentence: what the layer does, or how the tree is built.
    is_flat : bool
    parameters : int
    parameters_to_flat : float
        Divided by those of the flat softmax.
    training : Speed
        Speed of training, the drawing of batches included.
    nll, log_prob, top_k : Speed
        Speed of computing the probability of one word in its context, of all words, and of the
        10 most probable words.
    unnormalised : Speed or None
        Speed of the unnormalised score of one word, over that of `nll` under the flat softmax; None
        for layers that are not trained to have ln Z at 0.
    published : Published or None
        Published ratio of perplexities to the flat softmax.
    with_kneser_ney : dict of str to Mixture
        By regime; empty without a Kneser-Ney model.
    """

    name: str
    approach: str
    is_flat: bool
    parameters: int
    parameters_to_flat: float
    training: Speed
    nll: Speed
    log_prob: Speed
    top_k: Speed
    unnormalised: Speed | None = None
    published: Published | None
    with_kneser_ney: dict[str, Mixture]


@dataclass(frozen=True, kw_only=True)
class NGram:
    """The Kneser-Ney model that rows are mixed with."""

    order: int
    perplexity: dict[str, float | None]


@dataclass(frozen=True, kw_only=True)
class Survey:
    """All figures of a survey, as ``survey.json`` holds them.

    Attributes
    ----------
    budget : float or None
        Seconds of training of each row in the regime of equal seconds.
    rows : list of SurveyRow
    equal_epochs, equal_seconds : Comparison or None
        The comparison of all rows in each regime; None where it was not asked for.
    kneser_ney : NGram or None
    """

    budget: float | None
    rows: list[SurveyRow]
    equal_epochs: Comparison | None
    equal_seconds: Comparison | None
    kneser_ney: NGram | None

    def regimes(self) -> dict[Regime, Comparison]:
        """Return the comparisons that there are, one at least."""
        both: dict[Regime, Comparison | None] = {
            "equal_epochs": self.equal_epochs,
            "equal_seconds": self.equal_seconds,
        }
        return {regime: one for regime, one in both.items() if one is not None}

    def row(self, regime: Regime, name: str) -> Row:
        """Return the row of a comparison."""
        return next(row for row in self.regimes()[regime].rows if row.name == name)


@dataclass(frozen=True)
class PlannedRun:
    """One training of a survey; `seconds` is its predicted time, 0 if it is finished."""

    entry: Trained
    regime: Regime
    seed: int
    seconds: float
    finished: bool


@dataclass(frozen=True)
class Plan:
    """The trainings of a survey in their order, and the seconds that measuring speeds takes.

    Predictions are upper bounds of trainings that may converge; trees are built on top of them.
    They are of untrained models: importance sampling becomes slower while it learns.
    """

    runs: list[PlannedRun]
    measuring: float

    @property
    def seconds(self) -> float:
        """Predicted seconds of everything."""
        return self.measuring + sum(run.seconds for run in self.runs)


def default_rows(config: Mapping[str, Any] | None = None) -> list[EntryLike]:
    """Return the rows of a survey by default: `TREES`, every layer over a vocabulary, flat last.

    Layers that need the words before each target are left out for models that have none; `config`
    are the options of the model, by default a language model.
    """
    has_contexts = kind_of(config or {}).model.is_language_model
    two_words = Vocabulary([EOS, "a"], [1, 1])
    layers = [
        name
        for name, kind in LAYERS.all().items()
        if kind.takes is Vocabulary
        and (has_contexts or not layer_spec(two_words, name).new(1).needs_contexts)
    ]
    rows = [("cnn", {"delay": 32}) if name == "cnn" else name for name in layers if name != FLAT]
    return [*TREES, *rows, FLAT]


def survey(
    text: Splits | Corpus,
    entries: Sequence[EntryLike] | None,
    folder: str | os.PathLike[str],
    *,
    budget: float | None = None,
    equal_epochs: bool = True,
    kneser_ney: int | None = None,
    seeds: int = 1,
    planned: Callable[[Plan], object] | None = None,
    surveyed: Callable[[Survey], object] | None = None,
    **options: Any,
) -> Survey:
    """Measure output layers: speeds, sizes, and perplexities after equal epochs and equal seconds.

    Parameters
    ----------
    text : Splits or Corpus
    entries : sequence or None
        Rows, as `compare` takes them, without baselines; the flat softmax is added if it is not
        among them. None means `default_rows`.
    folder : path
        Gets ``survey.json``, ``survey.csv``, the runs after equal epochs as ``runs``, which
        `compare` shares, and those after S seconds as ``runs-Ss``.
    budget : float, optional
        Seconds of training of each row; without it there is no regime of equal seconds. Building
        trees and learning their vectors is not counted, nor are validations.
    equal_epochs : bool, default True
        Whether to train every row for the epochs of `options`. Otherwise trees are built from
        vectors that a model learned within the budget.
    kneser_ney : int, optional
        Order of a Kneser-Ney model that every row is mixed with.
    seeds : int, default 1
    planned : callable, optional
        Called with the plan before the first training.
    surveyed : callable, optional
        Called with the survey before its files are written, which may fail.
    **options
        Options of `hstree.models.new_model`.

    Returns
    -------
    Survey

    Raises
    ------
    OptionError, InputError
        Before anything is trained, as `compare` does.
    KeyboardInterrupt
        When it was interrupted; finished runs are kept.
    """
    works, rows_of_survey = _checked(text, entries, folder, budget, equal_epochs, seeds, options)
    first = works[next(iter(works))]
    if kneser_ney is not None:
        check_language_model(first.config, f"kn{kneser_ney}")
    mixed_with = None if kneser_ney is None else Baseline.named(f"kn{kneser_ney}")
    with locked(first.home):
        first.build_trees(rows_of_survey)
        plan = _plan(works, rows_of_survey)
        if planned is not None:
            planned(plan)
        trained = _train(works, plan)
        found = _survey(works, rows_of_survey, trained, mixed_with)
        found = replace(found, budget=budget)
        if surveyed is not None:
            surveyed(found)
        save(found, first.home)
    return found


def _checked(
    text: Splits | Corpus,
    entries: Sequence[EntryLike] | None,
    folder: str | os.PathLike[str],
    budget: float | None,
    equal_epochs: bool,
    seeds: int,
    options: Mapping[str, Any],
) -> tuple[dict[Regime, Work], list[Trained]]:
    """Return the work of each regime and the rows, the arguments checked."""
    if options.get("seconds") is not None:
        raise OptionError("seconds is the model's own budget; a survey takes budget")
    if budget is None and not equal_epochs:
        raise OptionError("there is nothing to survey; give a budget or train for equal epochs")
    given = as_entries(default_rows(config_of(options)) if entries is None else entries)
    checked: list[Trained] = []
    for entry in given:
        if isinstance(entry, Baseline):
            raise OptionError(f"{entry.name} is not an output layer; mix rows with it instead")
        checked.append(entry)
    if not any(_is_flat(entry) for entry in checked):
        checked.append(Method(FLAT))
    work = replace(Work.of(text, checked, folder, seeds, options), score_train=False)
    works: dict[Regime, Work] = {"equal_epochs": work} if equal_epochs else {}
    if budget is not None:
        check_value("budget", budget, Seconds)
        model = kind_of(work.config)
        if not any(option.name == "seconds" for option in model.options):
            raise OptionError(f"the model {model.name} has no option 'seconds', which budgets need")
        limited = {**work.config, "epochs": MOST_EPOCHS, "seconds": float(budget)}
        works["equal_seconds"] = replace(
            work,
            config=limited,
            runs=f"runs-{budget:g}s",
            trees=work if equal_epochs else None,
        )
    return works, checked


def _is_flat(entry: Trained) -> bool:
    if isinstance(entry, Method):
        return entry.method == FLAT
    return not isinstance(entry, Layer) and entry.spec.is_flat


# The plan


def _plan(works: Mapping[Regime, Work], entries: Sequence[Trained]) -> Plan:
    """Predict the seconds of every training from a few batches of each row."""
    to_train = [
        (regime, work, entry, seed)
        for regime, work in works.items()
        for seed in work.seeds
        for entry in _in_order(work, entries)
    ]
    speeds: dict[str, SpeedsBefore] = {}
    runs = []
    with progress.task("measuring some batches of each row", len(to_train)) as task:
        for regime, work, entry, seed in to_train:
            task.note(entry.name)
            is_finished = _is_finished(work, entry, seed)
            seconds = 0.0
            if not is_finished:
                if entry.slug not in speeds:
                    speeds[entry.slug] = _speeds_before(work, entry, seed)
                seconds = _predicted(work, speeds[entry.slug])
            runs.append(PlannedRun(entry, regime, seed, seconds, is_finished))
            task.advance()
    turns = throughput.TURN + 4 * throughput.TESTING_TURN  # of rows that are not measured here
    rounds = [speeds[e.slug].round if e.slug in speeds else turns for e in entries]
    return Plan(runs, ROUNDS * sum(rounds))


class SpeedsBefore(NamedTuple):
    """Tokens per second of an untrained row, and the seconds of one round of measuring it."""

    training: float
    scoring: float
    round: float


def _in_order(work: Work, entries: Sequence[Trained]) -> list[Trained]:
    """Return what is trained: the rows, and before them those that learn vectors for others."""
    learned: list[Trained] = [] if work.trees else list(reversed(sources(entries)))
    unique = {entry.slug: entry for entry in [*learned, *entries]}
    return list(unique.values())


def _kept_layer(work: Work, entry: Trained, seed: int) -> LayerSpec | None:
    """Return the output layer of a row; None for a tree whose vectors are not learned yet."""
    if not isinstance(entry, Method) or not entry.needs_vectors:
        return work.spec(entry, seed)
    try:
        tree = load_tree((work.trees or work).folder(entry, seed) / "tree.json")
    except HstreeError:
        return None
    return LayerSpec(LAYERS.get("tree"), tree)


def _is_finished(work: Work, entry: Trained, seed: int) -> bool:
    spec = _kept_layer(work, entry, seed)
    if spec is None:
        return False
    key = key_of(spec, work.splits, **work.config, random_state=seed)
    return finished(work.folder(entry, seed), key) is not None


def _speeds_before(work: Work, entry: Trained, seed: int) -> SpeedsBefore:
    """Return the speeds of a row from a few batches of a new model.

    A tree that cannot be built yet is as fast as a random one, about.
    """
    spec = _kept_layer(work, entry, seed) or work.spec(RANDOM, seed)
    began = time.perf_counter()
    measured = throughput.throughput({entry.name: spec}, work.splits.train, rounds=1, **work.config)
    in_testing = throughput.scoring_turn(new_model(spec, **work.config), work.splits.valid)
    seconds = time.perf_counter() - began
    scoring = in_testing["nll"] / (2 if "unnormalised" in in_testing else 1)
    return SpeedsBefore(measured[entry.name][0], scoring, seconds)


def _predicted(work: Work, speeds: SpeedsBefore) -> float:
    """Return the seconds of a run."""
    tokens = {split: len(text) for split, text in work.splits.as_dict().items()}
    budget, epochs = work.config.get("seconds"), work.config["epochs"]
    per_epoch = tokens["train"] / speeds.training
    if budget is not None:
        epochs = min(epochs, math.ceil(budget / per_epoch))
    in_training = epochs * per_epoch if budget is None else budget
    scored = (epochs + 1) * tokens["valid"] + tokens["test"]
    return float(in_training + scored / speeds.scoring)


def _train(works: Mapping[Regime, Work], plan: Plan) -> dict[Regime, dict[str, list[RunResult]]]:
    """Do the trainings of a plan; return the results of each row, one per random state."""
    trained: dict[Regime, dict[str, list[RunResult]]] = {regime: {} for regime in works}
    with progress.task("surveying", max(plan.seconds, 1), "s") as task:
        for run in plan.runs:
            task.note(f"{run.entry.name}, {run.regime.replace('_', ' ')}, seed {run.seed}")
            result = works[run.regime].train(run.entry, run.seed)
            trained[run.regime].setdefault(run.entry.name, []).append(result)
            task.advance(run.seconds)
    return trained


# The figures


def _survey(
    works: Mapping[Regime, Work],
    entries: Sequence[Trained],
    trained: Mapping[Regime, Mapping[str, Sequence[RunResult]]],
    mixed_with: Baseline | None,
) -> Survey:
    """Measure speeds, and return the figures of all rows."""
    first = works[next(iter(works))]
    in_training = first.speeds(entries)
    models = {e.name: first.folder(e, first.seeds[0]) / "model" for e in entries}
    in_testing = throughput.scoring_throughput(models, first.splits.test, rounds=ROUNDS)
    compared = {
        regime: work.comparison(entries, trained[regime], {}, in_training)
        for regime, work in works.items()
    }
    mixtures, ngram = {}, None
    if mixed_with is not None:
        home = first.folder(mixed_with, 0)
        baseline = run_baseline(mixed_with.order, first.splits, home)
        ngram = NGram(order=mixed_with.order, perplexity=baseline.perplexity)
        mixtures = {
            (regime, entry.name): _mixture(works[regime], entry, first, mixed_with)
            for regime, entry in product(works, entries)
        }
    specs = first.kept_specs(entries)
    flat = next(name for name, spec in specs.items() if spec.is_flat)
    parameters = {row.name: row.parameters or 0 for row in compared[next(iter(works))].rows}

    def speed(name: str, measured: Mapping[str, Sequence[float]]) -> Speed:
        ratios = [a / b for a, b in zip(measured[name], measured[flat], strict=True)]
        return Speed(
            tokens_per_second=statistics.median(measured[name]),
            times_flat=speed_up(measured, name, flat),
            low=min(ratios),
            high=max(ratios),
        )

    unnormalised = in_testing.get("unnormalised", {})
    one_word = {flat: in_testing["nll"][flat], **unnormalised}
    rows = [
        SurveyRow(
            name=name,
            approach=_approach(spec),
            is_flat=spec.is_flat,
            parameters=parameters[name],
            parameters_to_flat=parameters[name] / parameters[flat],
            training=speed(name, in_training),
            **{what: speed(name, in_testing[what]) for what in ("nll", "log_prob", "top_k")},
            unnormalised=speed(name, one_word) if name in unnormalised else None,
            published=published(spec.kind.name, spec.options),
            with_kneser_ney={r: m for (r, of), m in mixtures.items() if of == name},
        )
        for name, spec in specs.items()
    ]
    return Survey(
        budget=None,
        rows=rows,
        equal_epochs=compared.get("equal_epochs"),
        equal_seconds=compared.get("equal_seconds"),
        kneser_ney=ngram,
    )


def _approach(spec: LayerSpec) -> str:
    """Describe a row in one sentence."""
    if spec.tree is None:
        return spec.kind.summary
    method = spec.tree.meta.get("method")
    try:
        return builder(str(method)).summary
    except HstreeError:
        return spec.kind.summary if method is None else f"A tree built by {method}."


def _mixture(work: Work, entry: Trained, first: Work, ngram: Baseline) -> Mixture:
    """Return the mixture of a row with a Kneser-Ney model, the mean over random states."""
    (other_valid,), (other_test,) = first.nlls(ngram, "valid"), first.nlls(ngram, "test")
    figures = []
    for valid, test in zip(work.nlls(entry, "valid"), work.nlls(entry, "test"), strict=True):
        weight = best_weight(valid, other_valid)
        nlls = (mixed_nll(weight, valid, other_valid), mixed_nll(weight, test, other_test))
        figures.append((weight, *(perplexity(float(nll.sum()), len(nll)) for nll in nlls)))
    weight, valid_mean, test_mean = (
        float(np.mean(column)) for column in zip(*figures, strict=True)
    )
    return Mixture(weight=weight, valid=finite(valid_mean), test=finite(test_mean))


def mixed_nll(weight: float, nll: Float64, other: Float64) -> Float64:
    """Return the nll (T,) of the mixture of two models' probabilities, the first by `weight`."""
    with np.errstate(divide="ignore"):
        mixed: Float64 = -np.logaddexp(np.log(weight) - nll, np.log1p(-weight) - other)
    return mixed


def best_weight(nll: Float64, other: Float64) -> float:
    """Return the weight of the first model whose mixture has the lowest total nll, from 0 to 1.

    The total is convex in the weight.
    """
    if not len(nll):
        return 1.0
    fitted = minimize_scalar(
        lambda weight: float(mixed_nll(weight, nll, other).sum()),
        bounds=(0, 1),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(fitted.x)


# Files


def save(found: Survey, folder: Path) -> None:
    """Write ``survey.json`` and ``survey.csv``; FileFormatError when they cannot be written."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        **asdict(found),
        **{regime: one.as_dict() for regime, one in found.regimes().items()},
    }
    write_json(folder / JSON, document)
    results.write_csv(folder / CSV, [_csv_line(found, row) for row in found.rows])


def _csv_line(found: Survey, row: SurveyRow) -> dict[str, Any]:
    """Return the plain figures of a row."""
    line: dict[str, Any] = {
        "name": row.name,
        "approach": row.approach,
        "parameters": row.parameters,
        "parameters_to_flat": row.parameters_to_flat,
    }
    for what in ("training", "nll", "log_prob", "top_k", "unnormalised"):
        speed: Speed | None = getattr(row, what)
        line |= {f"{what}_tokens_per_second": speed and speed.tokens_per_second}
        line |= {f"{what}_times_flat": speed and speed.times_flat}
    line |= {
        "published_low": row.published and row.published.low,
        "published_high": row.published and row.published.high,
        "published_source": row.published and row.published.source,
    }
    for regime in REGIMES:
        of_row = found.row(regime, row.name) if regime in found.regimes() else None
        ratio, log_z = of_row and of_row.to_flat, of_row and of_row.log_normaliser
        mixture = row.with_kneser_ney.get(regime)
        figures = {
            "valid": of_row and of_row.perplexity["valid"].mean,
            "test": of_row and of_row.perplexity["test"].mean,
            "test_sd": of_row and of_row.perplexity["test"].sd,
            "epochs": of_row and epochs_of(of_row),
            "seconds": of_row and seconds_of(of_row),
            "to_flat": ratio and ratio.ratio,
            "to_flat_low": ratio and ratio.low,
            "to_flat_high": ratio and ratio.high,
            "ln_z_mean": log_z and log_z.mean,
            "ln_z_sd": log_z and log_z.sd,
            "unnormalised_perplexity": log_z and log_z.unnormalised_perplexity,
            "kneser_ney_weight": mixture and mixture.weight,
            "test_with_kneser_ney": mixture and mixture.test,
        }
        line |= {f"{regime}_{name}": figure for name, figure in figures.items()}
    return line


def epochs_of(row: Row) -> float:
    """Return the number of epochs of a row's trainings, the last by its share: the mean."""
    return _mean_over_runs(row, "share")


def seconds_of(row: Row) -> float:
    """Return the seconds of a row's trainings without validation: the mean over its runs."""
    return _mean_over_runs(row, "seconds")


def _mean_over_runs(row: Row, figure: Literal["share", "seconds"]) -> float:
    totals = [sum(getattr(epoch, figure) for epoch in run.epochs or []) for run in row.runs]
    return float(np.mean(totals))


def load(path: str | os.PathLike[str]) -> Survey:
    """Read a survey: its folder, or its ``survey.json``; FileFormatError as `results.load`."""
    file = Path(path)
    if file.is_dir():
        file /= JSON
    document = read_json(file, "make it with `hstree survey`")
    if nested_too_deep(document):
        raise FileFormatError(f"{file} is nested more than {DEEPEST} deep; survey again")
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        raise FileFormatError(f"{file} is not what `hstree survey` of this version leaves")
    try:
        found = results.decode(document, Survey)
        _check(found)
    except FileFormatError as error:
        raise FileFormatError(f"{file}: {error}; survey again") from error
    return found


def _check(found: Survey) -> None:
    """Check that the comparisons are whole and have the rows of the survey."""
    names = [row.name for row in found.rows]
    if not names or not found.regimes():
        raise FileFormatError("it has no rows")
    for regime, comparison in found.regimes().items():
        results.check(comparison)
        if [row.name for row in comparison.rows] != names:
            raise FileFormatError(f'"{regime}" has other rows than the survey')
        if not all(row.runs for row in comparison.rows):
            raise FileFormatError(f'"{regime}" has a row without runs')

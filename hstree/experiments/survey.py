"""Survey: trees and every approximation of the softmax, measured in training and in testing.

Each row trains the same model twice: for the same number of epochs, and for the same number of
seconds. Runs are those of `hstree.experiments.comparison`, kept in the same way, so that a survey
goes on where it stopped; before the first training it predicts how long all of them take.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.optimize import minimize_scalar

from hstree._files import DEEPEST, nested_too_deep, read_json, write_json
from hstree._options import check_value
from hstree._typing import Float64
from hstree.builders import builder
from hstree.data.corpus import Corpus
from hstree.data.text_score import perplexity
from hstree.data.vocabulary import EOS, Vocabulary
from hstree.errors import FileFormatError, HstreeError, InputError, OptionError
from hstree.experiments import results
from hstree.experiments.entries import (
    FLAT,
    Baseline,
    Ensemble,
    EntryLike,
    Layer,
    Method,
    Trained,
    as_entries,
)
from hstree.experiments.evaluation import Splits
from hstree.experiments.planning import (
    Fit,
    Plan,
    PlannedRun,
    Regime,
    Speeds,
    carry_out,
    check_minutes,
    fitted,
    kept_fit,
    plan,
)
from hstree.experiments.previous import may_share, with_kept
from hstree.experiments.published import Published, published
from hstree.experiments.results import Comparison, Row, RunResult, finite
from hstree.experiments.runs import locked, run_baseline
from hstree.experiments.speeds import Speeds as RowSpeeds
from hstree.experiments.work import Done, Work, check_language_model
from hstree.layers.hooks import hooks_of
from hstree.layers.registry import LAYERS, TREE_LAYER, LayerSpec, layer_spec
from hstree.models import config_of, kind_of
from hstree.models.base import MOST_EPOCHS, Seconds

FORMAT, VERSION = "hstree survey", 3
JSON, CSV = "survey.json", "survey.csv"
#: Trees of a survey by default: fixed codes, learned ones and word classes.
TREES: tuple[EntryLike, ...] = (
    "huffman",
    "gmm",
    ("gmm", {"epsilon": 0.4, "trees": 4}),
    "classes",
)

REGIMES: tuple[Regime, ...] = get_args(Regime)
#: Measures of a row's speed in training and testing.
_SPEEDS = ("training", "nll", "log_prob", "top_k")
#: Results of finished runs of each regime.
DoneByRegime = dict[Regime, Done]


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
    parameters_to_flat : float or None
        Divided by those of the flat softmax; None until flat is trained.
    training : Speed or None
        Speed of training, the drawing of batches included. All speeds are None until the last row
        is trained, when rows take turns.
    nll, log_prob, top_k : Speed or None
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
    parameters_to_flat: float | None
    training: Speed | None
    nll: Speed | None
    log_prob: Speed | None
    top_k: Speed | None
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
        Rows that are trained in the first regime.
    equal_epochs, equal_seconds : Comparison or None
        The comparison of all rows in each regime, some of them pending while the survey runs; None
        where it was not asked for, or no row is trained.
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

    @property
    def pending(self) -> list[str]:
        """Names of the rows that are not trained in every regime."""
        if self.budget is not None and self.equal_seconds is None:
            return [row.name for row in self.rows] + next(iter(self.regimes().values())).pending
        return list(dict.fromkeys(name for one in self.regimes().values() for name in one.pending))

    def row(self, regime: Regime, name: str) -> Row | None:
        """Return the row of a comparison; None where there is none yet."""
        one = self.regimes().get(regime)
        return next((row for row in one.rows if row.name == name), None) if one else None


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
        and (has_contexts or not hooks_of(layer_spec(two_words, name).new(1)).needs_contexts)
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
    minutes: float | None = None,
    only: bool = False,
    force: bool = False,
    planned: Callable[[Plan], object] | None = None,
    updated: Callable[[Path], object] | None = None,
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
    minutes : float, optional
        Budget of the whole survey, to which the epochs are fitted or, without `equal_epochs`, the
        seconds of each row; see `hstree.experiments.planning.fitted`. No row is left out.
    only, force : bool, default False
        As in `compare`, of a survey that the folder holds.
    planned : callable, optional
        Called with the plan before the first training.
    updated : callable, optional
        Called with the folder when its files have got another row, while others are pending.
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
    mixed_with = None
    if kneser_ney is not None:
        check_language_model(config_of(options), f"kn{kneser_ney}")
        mixed_with = Baseline.named(f"kn{kneser_ney}")
    arguments = (text, entries, folder, budget, equal_epochs, seeds, minutes)
    with _job(*arguments, only=only, force=force, options=options) as job:
        if planned is not None:
            planned(job.plan)
        found = job.measured(job.train(updated), mixed_with)
        if surveyed is not None:
            surveyed(found)
        save(found, job.home)
    return found


def plan_of(
    text: Splits | Corpus,
    entries: Sequence[EntryLike] | None,
    folder: str | os.PathLike[str],
    *,
    budget: float | None = None,
    equal_epochs: bool = True,
    seeds: int = 1,
    minutes: float | None = None,
    only: bool = False,
    force: bool = False,
    **options: Any,
) -> Plan:
    """Return the plan of a survey; parameters and errors are those of `survey`."""
    arguments = (text, entries, folder, budget, equal_epochs, seeds, minutes)
    with _job(*arguments, only=only, force=force, options=options) as job:
        return job.plan


class _Job(NamedTuple):
    """What is to do for a survey."""

    works: dict[Regime, Work]
    rows: list[Trained]
    plan: Plan
    budget: float | None

    @property
    def first(self) -> Work:
        """The work of the first regime."""
        return self.works[next(iter(self.works))]

    @property
    def home(self) -> Path:
        """The folder of the survey."""
        return self.first.home

    def train(self, updated: Callable[[Path], object] | None) -> DoneByRegime:
        """Do the planned runs; write the survey of finished rows when there is another."""
        self.plan.save(self.home)
        done: DoneByRegime = {regime: {} for regime in self.works}

        def ended(run: PlannedRun, result: RunResult | None) -> None:
            if result is None:
                return
            done[run.regime].setdefault(run.entry.slug, {})[run.seed] = result
            is_row = any(entry.slug == run.entry.slug for entry in self.rows)
            if is_row and not run.finished and run is not self.plan.runs[-1]:
                save(self._so_far(done), self.home)
                if updated is not None:
                    updated(self.home)

        carry_out(self.plan, self.works, ended)
        return done

    def _so_far(self, done: DoneByRegime) -> Survey:
        """Return the figures of the rows that are finished; speeds are those of an earlier run."""
        compared = {
            regime: work.so_far(self.rows, done[regime])
            for regime, work in self.works.items()
            if any(entry.slug in done[regime] for entry in self.rows)
        }
        ended = {row.name for row in next(iter(compared.values())).rows}
        rows = [entry for entry in self.rows if entry.name in ended]
        return self._figures(rows, compared, self.first.speeds(rows, rounds=0), {})

    def measured(self, done: DoneByRegime, mixed_with: Baseline | None) -> Survey:
        """Return the figures of all rows; measure speeds and mix rows with a Kneser-Ney model."""
        speeds = self.first.speeds(self.rows)
        compared = {
            regime: work.comparison(self.rows, work.finished(self.rows, done[regime]), speeds)
            for regime, work in self.works.items()
        }
        if mixed_with is None:
            return self._figures(self.rows, compared, speeds, {})
        home = self.first.folder(mixed_with, 0)
        baseline = run_baseline(mixed_with.order, self.first.splits, home)
        mixtures = {
            (regime, entry.name): _mixture(self.works[regime], entry, self.first, mixed_with)
            for regime, entry in product(self.works, self.rows)
        }
        found = self._figures(self.rows, compared, speeds, mixtures)
        ngram = NGram(order=mixed_with.order, perplexity=baseline.perplexity)
        return replace(found, kneser_ney=ngram)

    def _figures(
        self,
        rows: Sequence[Trained],
        compared: Mapping[Regime, Comparison],
        speeds: RowSpeeds,
        mixtures: Mapping[tuple[Regime, str], Mixture],
    ) -> Survey:
        """Return the survey of some rows; a figure whose speeds are missing is None."""
        specs = self.first.kept_specs(rows)
        flat = next((name for name, spec in specs.items() if spec.is_flat), None)
        table = next(iter(compared.values())).rows
        parameters = {row.name: row.parameters or 0 for row in table}

        def speed(name: str, measure: str, of_flat: str | None = None) -> Speed | None:
            of_rows, of_reference = speeds.get(measure, {}), speeds.get(of_flat or measure, {})
            if name not in of_rows or flat not in of_reference:
                return None
            rounds, reference = of_rows[name], of_reference[flat]
            ratios = [a / b for a, b in zip(rounds, reference, strict=True)]
            median = statistics.median(rounds)
            return Speed(
                tokens_per_second=median,
                times_flat=median / statistics.median(reference),
                low=min(ratios),
                high=max(ratios),
            )

        return Survey(
            budget=self.budget,
            rows=[
                SurveyRow(
                    name=name,
                    approach=_approach(spec),
                    is_flat=spec.is_flat,
                    parameters=parameters[name],
                    parameters_to_flat=parameters[name] / parameters[flat] if flat else None,
                    **{what: speed(name, what) for what in _SPEEDS},
                    unnormalised=speed(name, "unnormalised", "nll"),
                    published=published(spec.kind.name, spec.options),
                    with_kneser_ney={r: m for (r, of), m in mixtures.items() if of == name},
                )
                for name, spec in specs.items()
            ],
            equal_epochs=compared.get("equal_epochs"),
            equal_seconds=compared.get("equal_seconds"),
            kneser_ney=None,
        )


@contextmanager
def _job(
    text: Splits | Corpus,
    entries: Sequence[EntryLike] | None,
    folder: str | os.PathLike[str],
    budget: float | None,
    equal_epochs: bool,
    seeds: int,
    minutes: float | None,
    *,
    only: bool,
    force: bool,
    options: Mapping[str, Any],
) -> Iterator[_Job]:
    """Plan a survey, fitted to a budget of minutes; the folder is locked while the body runs."""
    began = time.perf_counter()
    fits_seconds = minutes is not None and not equal_epochs
    if minutes is not None:
        check_minutes(minutes, options)
        if fits_seconds and budget is not None:
            raise OptionError("budget and minutes are two budgets of seconds; give one of them")
    fit = None if force else kept_fit(Path(folder), minutes, equal_seconds=not equal_epochs)

    def checked(fit: Fit | None) -> tuple[dict[Regime, Work], list[Trained], float | None]:
        seconds, config = budget, dict(options)
        if fit is not None and equal_epochs:
            config["epochs"] = fit.options["epochs"]
        elif fits_seconds:
            seconds = fit.options["seconds"] if fit is not None else 60 * (minutes or 0.0)
        return *_checked(text, entries, folder, seconds, equal_epochs, seeds, config), seconds

    works, rows, seconds = checked(fit)
    with locked(Path(folder)):
        first = works[next(iter(works))]
        measured: dict[str, Speeds] = {}
        if minutes is not None and fit is None:
            first.build_trees(rows)
            spent = time.perf_counter() - began
            fit = fitted(
                plan(works, rows, measured), rows, minutes,
                equal_seconds=fits_seconds, spent=spent, all_rows=True,
            ).fit  # fmt: skip
            works, rows, seconds = checked(fit)
            first = works[next(iter(works))]
        rows = _with_kept(first, rows, seconds, only=only, force=force)
        first.build_trees(rows)
        yield _Job(works, rows, replace(plan(works, rows, measured), fit=fit), seconds)


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
        if isinstance(entry, Ensemble):
            raise OptionError(f"{entry.name} is an ensemble of output layers; compare takes them")
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


def _with_kept(
    work: Work, named: Sequence[Trained], budget: float | None, *, only: bool, force: bool
) -> list[Trained]:
    """Return the rows of the survey in the folder with those named.

    Raises InputError when it is of another text, model or budget, unless `force`.
    """
    is_same = may_share(work.home, work.splits, work.config, force=force)
    try:
        kept = load(work.home)
    except HstreeError:
        return list(named)
    if kept.budget != budget and not force:
        raise InputError(
            f"{work.home} holds a survey whose budget is {kept.budget} seconds, this one's "
            f"{budget}; choose another folder, or force its replacement"
        )
    if only or not is_same or kept.budget != budget:
        return list(named)
    rows = next(iter(kept.regimes().values())).rows
    return with_kept(named, rows, work.home)


def _is_flat(entry: Trained) -> bool:
    if isinstance(entry, Method):
        return entry.method == FLAT and entry.layer == TREE_LAYER
    return not isinstance(entry, Layer) and entry.spec.is_flat


def _approach(spec: LayerSpec) -> str:
    """Describe a row in one sentence."""
    if spec.tree is None:
        return spec.kind.summary
    method, over = spec.tree.meta.get("method"), ""
    if not spec.is_plain_tree:
        over = f" Over it: {spec.kind.summary}"
    try:
        return builder(str(method)).summary + over
    except HstreeError:
        return spec.kind.summary if method is None else f"A tree built by {method}.{over}"


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
    for what in (*_SPEEDS, "unnormalised"):
        speed: Speed | None = getattr(row, what)
        line |= {f"{what}_tokens_per_second": speed and speed.tokens_per_second}
        line |= {f"{what}_times_flat": speed and speed.times_flat}
    line |= {
        "published_low": row.published and row.published.low,
        "published_high": row.published and row.published.high,
        "published_source": row.published and row.published.source,
    }
    for regime in REGIMES:
        of_row = found.row(regime, row.name)
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
    document = read_json(file, "make it with `hstree.experiments.survey.survey`")
    if nested_too_deep(document):
        raise FileFormatError(f"{file} is nested more than {DEEPEST} deep; survey again")
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        raise FileFormatError(
            f"{file} is not what `hstree.experiments.survey.survey` of this version leaves"
        )
    try:
        found = results.decode(document, Survey)
        _check(found)
    except FileFormatError as error:
        raise FileFormatError(f"{file}: {error}; survey again") from error
    return found


def _check(found: Survey) -> None:
    """Check that the comparisons are whole and have the rows of the survey, the first all."""
    names = [row.name for row in found.rows]
    if not names or not found.regimes():
        raise FileFormatError("it has no rows")
    first = next(iter(found.regimes()))
    for regime, comparison in found.regimes().items():
        results.check(comparison)
        of_rows = [row.name for row in comparison.rows]
        pending = () if regime == first else comparison.pending
        if of_rows != [name for name in names if name not in pending]:
            raise FileFormatError(f'"{regime}" has other rows than the survey')
        if not all(row.runs for row in comparison.rows):
            raise FileFormatError(f'"{regime}" has a row without runs')

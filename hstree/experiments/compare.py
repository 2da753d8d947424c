"""Comparison of rows: the same model trained with each, under the same stopping rule.

Every row gets the same text in the same order, starting vectors and schedule, so that what differs
is the output layer. `hstree.experiments.run` keeps finished jobs, so that a comparison goes on
where it stopped, and a new row costs only its own training; by halving, where rows share the time,
all train anew with it.
"""

from __future__ import annotations

import itertools
import math
import os
import platform
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from hstree import progress
from hstree._arrays import Float64, Int64, offsets
from hstree._files import hash_of, locked
from hstree._parallel import limited_threads, n_parallel, threads_of_job
from hstree._text import plural
from hstree._version import __version__
from hstree.data.corpus import Corpus
from hstree.data.splits import SPLITS, SplitName, Splits
from hstree.data.text_score import perplexity, unigram_score
from hstree.data.vocabulary import Vocabulary
from hstree.errors import HstreeError, OptionError
from hstree.experiments import results, speed
from hstree.experiments.parallel import jobs_done
from hstree.experiments.results import (
    Comparison,
    Epochs,
    Halving,
    JobResult,
    RowResult,
    Seconds,
    Stop,
)
from hstree.experiments.row import Job, Row, TreeRow
from hstree.experiments.run import ALL, MODEL, NLL, Held, NotFinishedError, Runner
from hstree.experiments.significance import Ratio, paired_ratio
from hstree.kernels import backend_name
from hstree.models import Model, kind_of, load_model
from hstree.models.ensemble import mean_probability
from hstree.tree import Tree, load
from hstree.tree.statistics import tree_statistics

#: Share of the minutes of `Halving` that training may take in the first round's reckoning; scoring,
#: speeds and n-gram models take the rest.
_SHARE = 0.75
#: Fraction of the time of all jobs that scoring all held-out tokens may take.
_SCORING_SHARE = 0.1
#: Share of these minutes that measuring speeds may take, and seconds of one row's turn in it.
_SPEEDS_SHARE, _TURN = 1 / 4, 2.0
#: Fewest seconds of a row's first round, and most models of the last; how many times the seconds of
#: the round before it another one has at least.
_LEAST, _LAST, _LEAST_MORE = 0.5, 2, 1.1
#: Seconds that writing the results of an unfinished comparison may take, and beside these the share
#: of all its time.
_WRITING_SECONDS, _WRITING_SHARE = 5.0, 0.1
#: Smallest training count of each band; a first band has the words that never occur.
_BAND_STARTS = 10 ** np.arange(18)
#: Name of the test tokens that are out of vocabulary, which are one word to the models.
OOV = "out of vocabulary"
#: Number of words at either end, of contexts of each, and of words in a context; places looked at.
_MOST_WORDS, _CONTEXTS, _BEFORE, _TRIED = 10, 2, 6, 50


def compare(
    text: Any,
    rows: Iterable[Row | str | Tree] | None,
    folder: str | os.PathLike[str],
    *,
    stop: Stop | None = None,
    seeds: int = 1,
    speed_rounds: int = speed.ROUNDS,
    only: bool = False,
    force: bool = False,
    updated: Callable[[Comparison], object] | None = None,
    n_jobs: int | None = None,
    is_shared: bool = True,
    **options: Any,
) -> Comparison:
    """Train the same model with several output layers; report costs and perplexities of each.

    Parameters
    ----------
    text : Splits, Corpus, or what `Corpus.of` takes
        Splits over one vocabulary, or a text to split by `Splits.of`. Trees are built from
        the training split alone.
    rows : iterable of str, Row or Tree, optional
        Rows as `Row.parse` reads them: "huffman", "gmm epsilon=0.4", "classes + ngrams",
        "2 x flat", "kn5", a tree's file, or a named set, "trees" or "approximations"; by default
        `hstree.experiments.row.DEFAULT`.
    folder : path
        Made if it is missing; locked during the comparison. Gets ``trees``, ``runs``,
        ``words.tsv``, ``results.json`` and ``results.csv``.
    stop : Epochs, Seconds or Halving, optional
        When trainings stop; ten minutes by halving by default. Where the time is bounded, rows are
        scored on the first 50,000 tokens of a split, and at the end on all of them as far as that
        takes a tenth of the time: the rows that trained longest first.
    seeds : int, default 1
        Number of random states, from `random_state` on. Each has its own random trees, starting
        vectors and order of the text, the same for all rows.
    speed_rounds : int, default 3
        Number of turns of each row in which speeds are measured; 0 for none. Rows of an earlier
        comparison in the folder keep the speeds that were measured then.
    only : bool, default False
        Whether to leave out the other rows of a comparison that the folder holds.
    force : bool, default False
        Whether to replace a comparison of another text, model or rule that the folder holds.
    updated : callable, optional
        Called with the comparison so far when its files have got another row.
    n_jobs : int, optional
        Number of jobs at a time, in other processes; -1 for all cores. By default 1, or what an
        ambient ``joblib.parallel_config`` says, which may also name a cluster. Each job has its
        share of the threads; speeds are measured afterwards, in this process.
    is_shared : bool, default True
        Whether all processes of jobs see `folder`; else jobs send their files.
    **options
        Options of `hstree.models.new_model` but `epochs` and `seconds`, which are rules.

    Returns
    -------
    Comparison
        The content of ``results.json``, with `best`, `show`, `frame` and `to_html`.

    Raises
    ------
    OptionError
        Before anything is trained, for an invalid row or option.
    InputError
        Likewise when a tree is over other words than the text's vocabulary, the folder holds a
        comparison of another text, model or rule, or another process works in it.
    KeyboardInterrupt
        When it was interrupted; finished jobs are kept, and the others go on.

    Examples
    --------
    >>> rows = ["huffman", "gmm epsilon=0.4", "flat", "kn5"]
    >>> compare(corpus, rows, "which", stop=hstree.Epochs(3)).best.name    # doctest: +SKIP
    'gmm epsilon=0.4'
    """
    runner, began = Runner.of(text, rows, folder, stop, seeds, options), time.perf_counter()
    with locked(runner.home), runner.backend(), ExitStack() as stack:
        runner = runner.with_kept(only=only, force=force)
        runner.splits.train.counted_vocabulary().save(runner.home / results.WORDS)
        table = Table(runner, updated, how={"n_jobs": n_jobs, "is_shared": is_shared})
        stack.enter_context(table.saved_when_interrupted())
        if isinstance(runner.stop, Halving):
            speed_rounds = _speed_rounds(runner, speed_rounds)
        with limited_threads(threads_of_job(n_jobs)):
            if isinstance(runner.stop, Halving):
                with progress.task("all rows", runner.stop.total_seconds, "seconds"):
                    finalists = _halve(table, began, speed_rounds)
            else:
                finalists = [row for row in runner.rows if row.is_trained]
                table.finish(runner.rows, runner.first_seconds)
            jobs = {row.name: runner.jobs_of(row)[0][0] for row in runner.rows if row.is_trained}
            keys = {job.row.name: table.done[name][0][0].key for name, job in jobs.items()}
            table.score_all(finalists)
        models = {job.row.name: runner.folder(job) / MODEL for job in jobs.values()}
        file = runner.home / speed.FILE
        kept = speed.kept_speeds(file, keys, models, runner.splits, speed_rounds)
        # Several models are as fast as one of them by their number; together they have no top k.
        table.speeds = {
            measure: {
                row.name: [one / row.models for one in rounds[row.single.name]]
                for row in runner.rows
                if row.single.name in rounds and (row.models == 1 or measure != "top_k")
            }
            for measure, rounds in kept.items()
        }
        return table.save(words=True)


@dataclass(frozen=True)
class PlannedJob:
    """A job of a plan.

    Attributes
    ----------
    is_finished : bool
        Whether it is finished and will not be done again.
    seconds : float or None
        Seconds that a finished job took, or that the stopping rule gives one that is to do: by
        halving at least, which are those of the first round. None where they are not known.
    most_seconds : float or None
        By halving, the seconds in all of a job that stays until the last round.
    """

    is_finished: bool
    seconds: float | None
    most_seconds: float | None = None


class PlannedRound(NamedTuple):
    """A round of halving: its number of rows, and the seconds of each from the text."""

    rows: int
    seconds: float


@dataclass(frozen=True)
class Plan:
    """The jobs of a comparison, and by halving its rounds, if all takes the time that it should."""

    jobs: dict[Job, PlannedJob]
    rounds: list[PlannedRound]


def plan_of(
    text: Any,
    rows: Iterable[Row | str | Tree] | None,
    folder: str | os.PathLike[str],
    *,
    stop: Stop | None = None,
    seeds: int = 1,
    speed_rounds: int = speed.ROUNDS,
    only: bool = False,
    force: bool = False,
    n_jobs: int | None = None,
    **options: Any,
) -> Plan:
    """Return the plan of a comparison; nothing is trained or written.

    Parameters and errors are those of `compare`.
    """
    runner = Runner.of(text, rows, folder, stop, seeds, options)
    runner, last = runner.with_kept(only=only, force=force), dict[str, float]()
    rounds: list[PlannedRound] = []
    if isinstance(runner.stop, Halving):
        kept = _rounds_in(runner, n_parallel(n_jobs)).rounds
        if kept:
            runner = replace(runner, first_seconds=kept[0].seconds)
            last = {row: one.seconds for one in kept for row in one.rows}
        speed_rounds = _speed_rounds(runner, speed_rounds)
        rounds = _planned_rounds(runner, kept, n_parallel(n_jobs), speed_rounds)
    reader, jobs = replace(runner, makes=False), dict[Job, PlannedJob]()
    # on which bounded trainings depend
    with limited_threads(threads_of_job(n_jobs)), runner.backend():
        for row in runner.rows:
            for job in runner.all_jobs(row):
                try:
                    done = reader.run(job, seconds=last.get(row.name, runner.first_seconds))
                except NotFinishedError:
                    jobs[job] = _planned_job(runner, job, rounds)
                else:
                    steps = msgspec.structs.astuple(done.steps)
                    jobs[job] = PlannedJob(True, sum(step or 0.0 for step in steps))
    return Plan(jobs, rounds)


def _planned_job(runner: Runner, job: Job, rounds: Sequence[PlannedRound]) -> PlannedJob:
    """Return the plan of a job that is to do."""
    if not job.row.is_trained:
        return PlannedJob(False, None)
    if rounds:
        return PlannedJob(False, rounds[0].seconds, rounds[-1].seconds)
    return PlannedJob(False, runner.stop.total_seconds)


@dataclass(frozen=True)
class Evaluation:
    """A trained model, and the comparison of its one row.

    Attributes
    ----------
    model : Model
    comparison : Comparison
    train : float or None
        Perplexity of the first 50,000 training tokens.
    interrupted : bool
        Whether Ctrl-C ended the training; the figures are of the best weights until then.
    """

    model: Model[Any]
    comparison: Comparison
    train: float | None
    interrupted: bool

    @property
    def row(self) -> RowResult:
        """The figures of the row."""
        return self.comparison.rows[0]

    @property
    def perplexity(self) -> float | None:
        """Test perplexity."""
        return self.row.test


def evaluate(
    row: Row | str | Tree,
    text: Any,
    *,
    stop: Stop | None = None,
    folder: str | os.PathLike[str] | None = None,
    trained: Callable[[Model[Any]], object] | None = None,
    **options: Any,
) -> Evaluation:
    """Train a model with one output layer and score it: a comparison of one row, without speeds.

    Parameters
    ----------
    row : str, Row or Tree
        As `compare` takes them; not several models, nor an n-gram model.
    text : Splits, Corpus, or what `Corpus.of` takes
    stop : Epochs or Seconds, optional
        At most 20 epochs by default.
    folder : path, optional
        Keeps the comparison, and checkpoints of an interrupted training; a temporary one by
        default.
    trained : callable, optional
        Called with the trained model before it is scored. An interrupted training is scored too.
    **options
        As in `compare`.

    Examples
    --------
    >>> hstree.evaluate("huffman", corpus, stop=hstree.Epochs(1)).perplexity    # doctest: +SKIP
    312.4
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="hstree-") as temporary:
            return evaluate(row, text, stop=stop, folder=temporary, trained=trained, **options)
    one = Row.parse(row)
    if one.models > 1 or not one.is_trained:
        raise OptionError(f"{one} is not one model to train; compare takes it")
    splits = Splits.of(text)
    if isinstance(one, TreeRow):  # its labels are the vocabulary
        of_tree: dict[str, object] = {"kind": "tree", "sha256": one.tree.sha256}
        words = Vocabulary(one.tree.labels, [0] * one.tree.n_labels, source=of_tree)
        splits = Splits(*(part.with_vocabulary(words) for part in splits))
    runner = Runner.of(splits, [one], folder, stop or Epochs(), 1, options)
    runner = replace(runner, first_seconds=runner.stop.total_seconds, score_train=True)
    trainings: list[Model[Any]] = []
    calls = [trainings.append, *([] if trained is None else [trained])]
    with locked(runner.home), runner.backend():
        job = runner.jobs_of(one)[0][0]
        result = runner.run(job, trained=calls, seconds=runner.first_seconds)
        table = Table(runner, done={one.name: [[result]]}, seconds={one.name: runner.first_seconds})
        if not result.interrupted:
            table.score_all([one])
        comparison = table.comparison()
        model = trainings[0] if trainings else load_model(runner.folder(job) / MODEL)
    return Evaluation(model, comparison, result.train, result.interrupted)


# Halving


def _speed_rounds(runner: Runner, speed_rounds: int) -> int:
    """Return the number of turns of speeds by halving: one at least, more while there is time."""
    turn = _TURN * max(1, sum(row.is_trained for row in runner.rows))
    turns = int(_SPEEDS_SHARE * (runner.stop.total_seconds or 0.0) / turn)
    return min(speed_rounds, max(1, turns))


class _Round(results.Figures, frozen=True):
    """A round of halving: rows that train until some seconds from the text, and their scores."""

    seconds: results.Positive
    rows: list[str]
    valid: dict[str, float] = msgspec.field(default_factory=dict)


class _Rounds(results.Figures, frozen=True):
    """Rounds of halving, as ``rounds.json`` holds them; `key` is a hash of what they are of.

    Scores are validation perplexities of the first `valid_tokens` tokens.
    """

    key: str
    valid_tokens: results.Count
    rounds: list[_Round] = msgspec.field(default_factory=list)


def _halve(table: Table, began: float, speed_rounds: int) -> list[Row]:
    """Train all rows equally long, then the better half twice as long, until two are left.

    It ends earlier where scoring leaves no time for another round. The halves are of models: rows
    of one or several of the same share trainings, and go on together. Rounds are kept in
    ``rounds.json``, so that the same comparison goes on with the same seconds. Returns the rows of
    the last round.
    """
    runner, n_jobs = table.runner, n_parallel(table.how["n_jobs"])
    file, rounds = runner.home / "rounds.json", _rounds_in(runner, n_jobs)
    active = [row for row in runner.rows if row.is_trained]
    total, seconds, title = runner.stop.total_seconds or 0.0, 0.0, "rows"
    reserve = _reserve(runner, speed_rounds)
    table.finish(row for row in runner.rows if not row.is_trained)
    for number in itertools.count() if active else ():
        if number == len(rounds.rounds):
            left = max(total - (time.perf_counter() - began) - reserve, 0.0)
            target = _next_seconds(runner, active, seconds, left, n_jobs)
            rounds.rounds.append(_Round(target, [row.name for row in active]))
            results.write_kept(file, rounds)
        this = rounds.rounds[number]
        is_last = this.seconds == seconds or len({row.single for row in active}) <= _LAST
        seconds = this.seconds
        table.runner = runner = replace(runner, first_seconds=rounds.rounds[0].seconds)
        n_rounds = number + (1 if is_last else _n_rounds(active))
        title = f"round {number + 1} of {n_rounds}, {seconds:,.0f} s a row"
        if is_last:
            break
        waiting = [row for row in active if row.name not in this.valid]
        started, n_trained = time.perf_counter(), 0
        for row, scores in table.together(waiting, title=title, step="advance", seconds=seconds):
            this.valid[row.name] = statistics.fmean(scores)
            results.write_kept(file, rounds)
            n_trained += len(scores)
        # What is not training, validation above all, comes again at the end.
        spent = time.perf_counter() - started - n_trained * seconds / n_jobs
        reserve += max(0.0, spent) if number == 0 else 0.0
        ranked = sorted(active, key=lambda row: this.valid[row.name])
        models = list(dict.fromkeys(row.single for row in ranked))
        better = models[: math.ceil(len(models) / 2)]
        worse = [row for row in ranked if row.single not in better]
        table.finish(worse, seconds, title=f"scoring after round {number + 1} of {n_rounds}")
        active = [row for row in ranked if row.single in better]
    table.finish(active, seconds, title=title)
    return active


def _rounds_in(runner: Runner, n_jobs: int) -> _Rounds:
    """Return the rounds that the folder keeps of the same comparison; none without them.

    Warns where they are of other rows, with which these would share the time otherwise. Raises
    OptionError when the minutes are too few for the first round.
    """
    key = hash_of(
        {
            "rule": str(runner.stop),
            "text": runner.content,
            "model": runner.config,
            "seeds": list(runner.seeds),
        }
    )
    valid_tokens = len(runner.sample.valid)
    kept = results.kept_struct(runner.home / "rounds.json", _Rounds)
    rows = [row for row in runner.rows if row.is_trained]
    before = kept.rounds if kept is not None and kept.key == key else []
    differ = sorted({row.name for row in rows} ^ set(before[0].rows)) if before else []
    if before and not differ:
        return _Rounds(key, valid_tokens, before)
    steps, total = _n_steps(runner, rows, 0.0, n_jobs), runner.stop.total_seconds
    needed = _LEAST * steps / (_SHARE * (1 - _SPEEDS_SHARE))
    if total is not None and total < needed:
        raise OptionError(
            f"{total / 60:g} minutes are too few for {plural(len(rows), 'row')}; give "
            f"{math.ceil(needed / 0.6) / 100:g} or more, or fewer rows"
        )
    if differ:
        warnings.warn(
            f"the rows share {total:g} s, so that other rows ("
            f"{', '.join(differ)}) change the seconds of each: all train anew; "
            "under a rule of seconds or epochs a new row only adds itself",
            stacklevel=2,
        )
    return _Rounds(key, valid_tokens)


def _reserve(runner: Runner, speed_rounds: int) -> float:
    """Return the seconds of all that measuring speeds and scoring all held-out tokens may take."""
    total = runner.stop.total_seconds or 0.0
    n_trained = sum(row.is_trained for row in runner.rows)
    reserve = min(_TURN * speed_rounds * n_trained, _SPEEDS_SHARE * total)
    return reserve + _SCORING_SHARE * total if runner.is_sampling else reserve


def _planned_rounds(
    runner: Runner, kept: Sequence[_Round], n_jobs: int, speed_rounds: int
) -> list[PlannedRound]:
    """Return the rounds that are kept, and those to come if nothing but training takes time."""
    active = [row for row in runner.rows if row.is_trained]
    left = max((runner.stop.total_seconds or 0.0) - _reserve(runner, speed_rounds), 0.0)
    rounds: list[PlannedRound] = []
    seconds = 0.0
    for number in itertools.count() if active else ():
        if number < len(kept):
            target = kept[number].seconds
        else:
            target = _next_seconds(runner, active, seconds, left, n_jobs)
            n_trained = len(runner.all_jobs(*active))
            left = max(left - math.ceil(n_trained / n_jobs) * (target - seconds), 0.0)
        rounds.append(PlannedRound(len(active), target))
        models = list(dict.fromkeys(row.single for row in active))
        if target == seconds or len(models) <= _LAST:
            break
        seconds = target
        # which rows go on is not known yet
        better = models[: math.ceil(len(models) / 2)]
        active = [row for row in active if row.single in better]
    return rounds


def _next_seconds(
    runner: Runner, active: Sequence[Row], seconds: float, left: float, n_jobs: int
) -> float:
    """Return the seconds of each row of the next round, of the seconds that are left for all.

    As much again as before, so that a row's seconds double; less where the rounds to come would
    take more than what is left, of which the first takes its share. The same as before where what
    takes minutes beside training, scoring above all, leaves no time for it.
    """
    step = left / _n_steps(runner, active, seconds, n_jobs)
    target = max(seconds + (min(step, seconds) if seconds else _SHARE * step), _LEAST)
    return seconds if target < _LEAST_MORE * seconds else target


def _n_rounds(active: Sequence[Row]) -> int:
    """Return the number of rounds until the models of these rows are halved to the last ones."""
    models, n_rounds = len({row.single for row in active}), 1
    while models > _LAST:
        models = math.ceil(models / 2)
        n_rounds += 1
    return n_rounds


def _n_steps(runner: Runner, rows: Sequence[Row], done: float, n_jobs: int) -> float:
    """Return for how many times the next step of a row the rows train in all rounds to come."""
    models = len({row.single for row in rows})
    jobs = len(runner.all_jobs(*rows))
    units, weight, of_model = math.ceil(jobs / n_jobs), 1 + bool(done), jobs / max(models, 1)
    while models > _LAST:
        models = math.ceil(models / 2)
        units += math.ceil(models * of_model / n_jobs) * weight
        weight *= 2  # each round adds as much as there was before
    return units


# The figures of all rows


@dataclass
class Table:
    """Makes the rows of a comparison from finished jobs and measured speeds.

    `done` has the results of each finished row by its name, for each seed those of its models,
    `seconds` those that a row trained for, where its time is bounded, and `speeds` the tokens per
    second by measure and row; figures that need others are None. `how` has `n_jobs` and
    `is_shared`, as `compare` takes them.
    """

    runner: Runner
    updated: Callable[[Comparison], object] | None = None
    done: dict[str, list[list[JobResult]]] = field(default_factory=dict)
    seconds: dict[str, float | None] = field(default_factory=dict)
    speeds: speed.Speeds = field(default_factory=dict)
    how: Mapping[str, Any] = field(default_factory=lambda: {"n_jobs": 1, "is_shared": True})
    _n_written: int = -1  #: number of finished rows in the results that this has written
    _began: float = field(default_factory=time.monotonic)
    _writing_seconds: float = 0.0  #: that writing results has taken
    _nlls: dict[tuple[str, Held], list[Float64]] = field(default_factory=dict)
    _of_trees: dict[str, dict[str, Any]] = field(default_factory=dict)

    def finish(
        self, rows: Iterable[Row], seconds: float | None = None, title: str = "rows"
    ) -> None:
        """Do the jobs of rows; write the results so far when a row is finished that was not before.

        Rows whose jobs the folder keeps are read first. Results are written less often where that
        takes much of the time.
        """
        rows = list(rows)
        self.seconds |= {row.name: seconds for row in rows}
        waiting = self._take_kept(rows, seconds)
        if not waiting:
            return
        if self._n_written < len(self.done):
            self.save()
        with self._budget(waiting, seconds):
            for row, done in self.together(waiting, title=title, step="run", seconds=seconds):
                self._add(row, done)
                elapsed = time.monotonic() - self._began
                may_write = self._writing_seconds < _WRITING_SECONDS + _WRITING_SHARE * elapsed
                if may_write and len(self.done) < len(self.runner.rows):
                    self.save()

    def _budget(self, rows: Sequence[Row], seconds: float | None) -> AbstractContextManager[object]:
        """Show the time of all jobs of rows, where each has its own seconds."""
        if seconds is None or not isinstance(self.runner.stop, Seconds):
            return nullcontext()
        jobs = [job for job in self.runner.all_jobs(*rows) if job.row.is_trained]
        n_turns = math.ceil(len(jobs) / n_parallel(self.how["n_jobs"]))
        return progress.task("all rows", n_turns * seconds, "seconds")

    @contextmanager
    def saved_when_interrupted(self) -> Iterator[None]:
        """Write the results of all finished rows when an exception or Ctrl-C ends the body."""
        try:
            yield
        except BaseException:
            is_missing = not (self.runner.home / results.JSON).exists()
            if is_missing or 0 <= self._n_written < len(self.done):
                # a failure to write must not hide what ended the body
                with suppress(HstreeError, OSError):
                    self.save()
            raise

    def _take_kept(self, rows: Sequence[Row], seconds: float | None) -> list[Row]:
        """Take the results of rows whose jobs are all finished in the folder; return the others."""
        reader, waiting = replace(self.runner, makes=False), []
        with progress.task("reading finished jobs", len(rows), "rows") as bar:
            for row in rows:
                bar.advance()
                try:
                    jobs = self.runner.all_jobs(row)
                    self._add(row, [reader.run(job, seconds=seconds) for job in jobs])
                except NotFinishedError:
                    waiting.append(row)
        return waiting

    def _add(self, row: Row, done: Sequence[JobResult]) -> None:
        """Add a finished row: the results of its jobs, for each seed those of its models."""
        starts = range(0, len(done), row.models)
        self.done[row.name] = [list(done[i : i + row.models]) for i in starts]

    def score_all(self, finalists: Sequence[Row]) -> None:
        """Score rows on all held-out tokens where jobs scored a sample and the time allows it.

        The results take the place of those of the sample.
        """
        rows = self._rows_in_time(finalists) if self.runner.is_sampling else []
        if rows and 0 <= self._n_written < len(self.done):
            self.save()
        # rows that trained equally long go together
        for seconds in dict.fromkeys(self.seconds[row.name] for row in rows):
            alike = [row for row in rows if self.seconds[row.name] == seconds]
            for row, done in self.together(
                alike, title="scoring all held-out tokens", step="score_all", seconds=seconds
            ):
                self._add(row, done)
                for split in NLL:
                    self._nlls.pop((row.name, split), None)

    def _rows_in_time(self, finalists: Sequence[Row]) -> list[Row]:
        """Return the rows whose scoring takes at most a tenth of the time of all jobs.

        All of the finalists come first, or none do; then other trained rows, the cheapest first.
        """
        runner, trained = self.runner, [row for row in self.runner.rows if row.is_trained]

        # seconds of each job, by the time that its sample took
        cost: dict[Job, float] = {}
        for row in trained:
            done = itertools.chain.from_iterable(self.done[row.name])
            for job, result in zip(runner.all_jobs(row), done, strict=True):
                per_token = result.scoring_seconds / max(
                    result.scored.valid + result.scored.test, 1
                )
                cost[job] = per_token * (self._all_tokens.valid + self._all_tokens.test)

        def cost_of(rows: Sequence[Row]) -> float:
            """Return the cost of rows, which may share jobs."""
            return sum(cost[job] for job in runner.all_jobs(*rows))

        n_budgets = 1 if isinstance(runner.stop, Halving) else len(cost)
        left = _SCORING_SHARE * n_budgets * (runner.stop.total_seconds or 0.0)
        others = [row for row in trained if row not in finalists]
        others.sort(key=lambda row: cost_of([row]))
        rows: list[Row] = []
        for group in [list(finalists), *([row] for row in others)]:
            if cost_of([*rows, *group]) > left:
                break
            rows += group
        return rows

    @property
    def _all_tokens(self) -> results.TokenCounts:
        """Numbers of all held-out tokens."""
        return results.TokenCounts(len(self.runner.splits.valid), len(self.runner.splits.test))

    def together(self, rows: Iterable[Row], **step: Any) -> Iterator[tuple[Row, list[Any]]]:
        """Do a step of the jobs of rows; yield each row with what its jobs return."""
        jobs_of_row = {row: self.runner.all_jobs(row) for row in rows}
        rows_of_job: dict[Job, list[Row]] = {}
        for row, jobs in jobs_of_row.items():
            for job in jobs:
                rows_of_job.setdefault(job, []).append(row)
        n_left = {row: len(jobs) for row, jobs in jobs_of_row.items()}
        done: dict[Job, JobResult | float] = {}
        for job, result in jobs_done(self.runner, rows_of_job, **step, **self.how):
            done[job] = result
            for row in rows_of_job[job]:
                n_left[row] -= 1
                if n_left[row] == 0:
                    yield row, [done[job] for job in jobs_of_row[row]]

    def save(self, *, words: bool = False) -> Comparison:
        """Write and return all figures so far."""
        began = time.monotonic()
        comparison = self.comparison(words=words)
        results.save(comparison, self.runner.home)
        comparison = comparison.in_folder(self.runner.home)
        if self.updated is not None and comparison.rows:
            self.updated(comparison)
        self._n_written = len(self.done)
        self._writing_seconds += time.monotonic() - began
        return comparison

    def comparison(self, *, words: bool = False) -> Comparison:
        """Return all figures, those of single words if they are asked for."""
        runner, splits = self.runner, self.runner.splits
        vocabulary = splits.train.vocabulary
        parts: dict[SplitName, Corpus] = dict(zip(SPLITS, splits, strict=True))
        done = [row for row in runner.rows if row.name in self.done]
        bands = frequency_bands(splits)
        rows = [self._row(row, done, bands) for row in done]
        choice = results.choose(rows)
        if choice is not None and choice.rival is not None:
            by_name = {row.name: row for row in done}
            ratio = self._ratio(by_name[choice.chosen], by_name[choice.rival])
            choice = msgspec.structs.replace(choice, to_rival=ratio)
        test = splits.test.with_vocabulary(vocabulary)
        unigram = unigram_score(test, splits.train.counts).perplexity
        comparison = Comparison(
            predicts=kind_of(runner.config).model.predicts,
            corpus={name: dict(part.source) for name, part in parts.items()},
            tokens={name: len(part) for name, part in parts.items()},
            oov={name: part.n_oov for name, part in parts.items()},
            vocabulary=results.VocabularyFigures(len(vocabulary), vocabulary.sha256),
            options=dict(runner.config),
            stop=runner.stop,
            seeds=list(runner.seeds),
            versions={
                "python": platform.python_version(),
                "numpy": np.__version__,
                "hstree": __version__,
                "kernels": backend_name(),
            },
            machine=speed.machine(),
            unigram=unigram if math.isfinite(unigram) else None,
            bands=bands[0],
            rows=rows,
            choice=choice,
            pending=[row.name for row in runner.rows if row.name not in self.done],
        )
        if words:
            tables = self._words(comparison)
            comparison = msgspec.structs.replace(comparison, words=tables)
        return comparison

    def nlls(self, row: Row, split: Held = "test") -> list[Float64]:
        """Return the nll of every scored token of a split for each seed, of its models' mean."""
        if (row.name, split) not in self._nlls:
            of_seeds = [
                [
                    np.load(self._folder(job, result) / NLL[split], allow_pickle=False)
                    for job, result in zip(jobs, done, strict=True)
                ]
                for jobs, done in zip(self.runner.jobs_of(row), self.done[row.name], strict=True)
            ]
            self._nlls[row.name, split] = [
                nlls[0] if len(nlls) == 1 else mean_probability(nlls) for nlls in of_seeds
            ]
        return self._nlls[row.name, split]

    def _folder(self, job: Job, result: JobResult) -> Path:
        """Return the folder with the scores of a job's result."""
        folder = self.runner.folder(job)
        is_sampling = self.runner.is_sampling and job.row.is_trained
        return folder / ALL if is_sampling and result.scored == self._all_tokens else folder

    def _ratio(self, row: Row, other: Row) -> Ratio | None:
        """Compare the perplexities of two rows on the test tokens that both scored."""
        return paired_ratio(*_common(self.nlls(row), self.nlls(other)))

    def _row(
        self, row: Row, rows: Sequence[Row], bands: tuple[list[results.Band], Int64]
    ) -> RowResult:
        """Return the figures of a row beside all finished ones.

        Ratios are to flat, and to flat with the same layer; a mixture is one with the first n-gram
        model.
        """
        nlls, of_jobs = self.nlls(row), self._of_jobs(row)
        band_of_token = bands[1][: len(nlls[0])]
        # the test tokens that the row scored
        splits = self.runner.splits
        scored = splits.test if len(nlls[0]) == len(splits.test) else self.runner.sample.test
        fields: dict[str, Any] = {}
        for other in rows:
            if other.is_flat and "to_flat" not in fields:
                fields["to_flat"] = self._ratio(row, other)
                flat, total = self._of_jobs(other)["steps"].total, of_jobs["steps"].total
                fields["from_text_times_flat"] = flat / total if flat and total else None
            if other.name == f"flat + {row.layer}" != row.name:
                fields["like"], fields["to_like"] = other.name, self._ratio(row, other)
        flat_name = next((other.name for other in rows if other.is_flat), "")
        for measure, rounds in self.speeds.items():
            if row.name in rounds:
                of_flat = self.speeds["nll" if measure == "unnormalised" else measure]
                fields[measure] = results.Speed.of(rounds[row.name], of_flat.get(flat_name))
        ngram = next((one for one in rows if not one.is_trained), row)
        if ngram is not row:
            valid, other_valid = _common(self.nlls(row, "valid"), self.nlls(ngram, "valid"))
            test, other_test = _common(nlls, self.nlls(ngram))
            weights = [best_weight(nll, other_valid[0]) for nll in valid]
            pairs = zip(weights, test, strict=True)
            mixed = [mixed_nll(weight, nll, other_test[0]) for weight, nll in pairs]
            fields["mixture"] = results.Mixture(
                ngram=ngram.name,
                weight=statistics.fmean(weights),
                test=_spread(mixed).mean,
            )
        return RowResult(
            name=row.name,
            kind=row.kind,
            method=row.method,
            summary=row.summary,
            options=msgspec.to_builtins(row.options, enc_hook=str),
            layer=row.layer,
            is_flat=row.is_flat,
            models=row.models,
            **self._tree_figures(row),
            **of_jobs,
            test_oov=scored.n_oov / len(scored),
            by_band=[_spread(nlls, band_of_token == i).mean for i in range(len(bands[0]))],
            **fields,
        )

    def _of_jobs(self, row: Row) -> dict[str, Any]:
        """Return the fields of a row that are of its finished jobs, by themselves.

        The steps are means over the seeds, those of all models of a seed together. Without a bound
        on the time, epochs are counted at the speed that was measured in turns.
        """
        jobs = self.runner.all_jobs(row)
        done = [result for of_seed in self.done[row.name] for result in of_seed]
        nlls, splits = self.nlls(row), self.runner.splits
        spreads = {
            name: results.Spread.of([one.perplexity[name] for one in done])
            for name in results.SCORED
        }
        if row.models > 1:
            known = splits.test.with_vocabulary(splits.train.vocabulary).ids(slice(None)) >= 0
            spreads["valid"], spreads["test"] = _spread(self.nlls(row, "valid")), _spread(nlls)
            spreads["test_without_oov"] = _spread(nlls, known[: len(nlls[0])])
        rounds, steps = self.speeds.get("training", {}).get(row.single.name), []
        for result in done:
            training = result.steps.training
            if rounds and self.runner.stop.total_seconds is None:
                tokens = sum(epoch.share for epoch in result.epochs) * len(splits.train)
                training = tokens / statistics.median(rounds)
            steps.append(msgspec.structs.replace(result.steps, training=training))
        normalisers = [result.log_normaliser for result in done if result.log_normaliser]
        is_normalised = len(normalisers) < len(done) or row.models > 1
        return {
            "parameters": sum(result.parameters for result in done[: row.models]),
            "jobs": [
                results.JobFigures(
                    seed=result.seed,
                    folder=self.runner.folder(job).relative_to(self.runner.home).as_posix(),
                    perplexity=result.perplexity,
                    epochs=result.epochs,
                )
                for job, result in zip(jobs, done, strict=True)
            ],
            "perplexity": spreads,
            # Trainings whose schedule ends with their epochs, as word2vec's do, never converge.
            "at_epoch_limit": sum(
                kind_of(self.runner.config).model.converges
                and not result.converged
                and not result.out_of_time
                and 0 < self.runner.max_epochs == len(result.epochs)
                for result in done
            ),
            "sample": None if done[0].scored == self._all_tokens else done[0].scored,
            "steps": results.mean_of(steps, row.models),
            "seen": next((result.seen for result in done if result.seen), None),
            "log_normaliser": None if is_normalised else results.mean_of(normalisers),
        }

    def _tree_figures(self, row: Row) -> dict[str, Any]:
        """Return the fields of a row that are of its tree; costs are of the trees of all models.

        Costs are weighted by the counts of the training split; a tree may have other counts.
        """
        if row.kind != "tree":
            return {"tree": None, "tree_file": None}
        if row.name in self._of_trees:
            return self._of_trees[row.name]
        jobs = self.runner.jobs_of(row)[0]
        files = [self.runner.folder(job, "trees") / "tree.json" for job in jobs]
        trees, train = [load(file) for file in files], self.runner.splits.train
        counts = [train.counts[train.vocabulary.ids(tree.labels)] for tree in trees]
        first, *_ = of_trees = list(map(tree_statistics, trees, counts))
        weighted = [one.length_weighted for one in of_trees if one.length_weighted is not None]
        self._of_trees[row.name] = {
            "tree": results.TreeFigures(
                nodes=first.nodes,
                codes_per_label=sum(one.codes_per_label for one in of_trees),
                code_length=results.CodeLength(
                    uniform=sum(one.length_uniform for one in of_trees),
                    weighted=sum(weighted) if weighted else None,
                ),
                scores_per_target=sum(one.scores_per_target for one in of_trees),
                depth=first.depth,
                sha256=first.sha256,
            ),
            "tree_file": files[0].relative_to(self.runner.home).as_posix(),
        }
        return self._of_trees[row.name]

    def _words(self, comparison: Comparison) -> list[results.WordTable]:
        """Compare rows word by word: with flat, else the best; the chosen one with its rival."""
        rows, choice = {row.name: row for row in self.runner.rows}, comparison.choice
        best = choice.chosen if choice else ""
        level = next((row.name for row in comparison.rows if row.is_flat), best)
        trained = [row.name for row in comparison.rows if row.kind != "ngram"]
        pairs = [(name, level) for name in trained if level and name != level]
        if choice is not None and choice.rival is not None:
            pairs.insert(0, (choice.chosen, choice.rival))
        splits = self.runner.splits
        test = splits.test.with_vocabulary(splits.train.vocabulary)
        # (T,) OOV tokens are the word 0
        group_of_token = test.ids(slice(None)).astype(np.int64) + 1
        n_words = len(test.vocabulary) + 1
        tables = []
        for row, against in dict.fromkeys(pairs):
            both = _common(self.nlls(rows[row]), self.nlls(rows[against]))
            nll, other = (np.mean(nlls, axis=0) for nlls in both)
            group = group_of_token[: len(nll)]
            # positions by word, and where each word's begin
            order = np.argsort(group, kind="stable")
            start = offsets(np.bincount(group, minlength=n_words))
            with np.errstate(invalid="ignore"):
                gained = other - nll
            gained = np.where(np.isfinite(gained), gained, 0.0)
            # (V + 1,) nats gained at each word
            total = np.bincount(group, gained, minlength=n_words)
            ends = []
            for sign in (1.0, -1.0):
                signed = sign * total
                whole = float(signed[signed > 0].sum())
                most = np.argsort(-signed, kind="stable")[:_MOST_WORDS]
                words = [
                    _word_figures(test, word, order[start[word] : start[word + 1]], gained, whole)
                    for word in most[signed[most] > 0].tolist()
                ]
                ends.append((whole, words))
            (gain, helped), (loss, hurt) = ends
            tables.append(results.WordTable(row, against, gain, loss, helped, hurt))
        return tables


def _word_figures(
    test: Corpus, word: int, places: Int64, gained: Float64, whole: float
) -> results.WordFigures:
    """Return the gain or loss of a word that occurs at some places, its number plus one.

    Contexts are those of the greatest gains or losses, each once: texts repeat themselves.
    """
    total = float(gained[places].sum())
    most = places[np.argsort(-np.sign(total) * gained[places], kind="stable")][:_TRIED]
    contexts: dict[tuple[str, str], results.Context] = {}
    for place in most.tolist():
        *before, token = test.words(slice(max(place - _BEFORE, 0), place + 1))
        context = results.Context(" ".join(before), token, float(gained[place]))
        contexts.setdefault((context.before, token), context)
    return results.WordFigures(
        word=test.vocabulary.words[word - 1] if word else OOV,
        count=len(places),
        gained=total / len(places),
        share=abs(total) / whole,
        contexts=list(contexts.values())[:_CONTEXTS],
    )


def _common(
    nlls: Sequence[Float64], others: Sequence[Float64]
) -> tuple[list[Float64], list[Float64]]:
    """Return the nll of the first tokens, which two rows both scored."""
    n = min(len(nlls[0]), len(others[0]))
    return [nll[:n] for nll in nlls], [nll[:n] for nll in others]


def _spread(nlls: Sequence[Float64], tokens: Any = slice(None)) -> results.Spread:
    """Return the spread over seeds of the perplexity of some tokens (T,)."""
    some = [nll[tokens] for nll in nlls]
    return results.Spread.of([perplexity(float(nll.sum()), len(nll)) for nll in some])


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
    from scipy.optimize import minimize_scalar  # takes a third of a second to import

    fitted = minimize_scalar(
        lambda weight: float(mixed_nll(weight, nll, other).sum()),
        bounds=(0, 1),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(fitted.x)


def frequency_bands(splits: Splits) -> tuple[list[results.Band], Int64]:
    """Group the words of the vocabulary by powers of ten of their training counts.

    Counts are 0, 1 to 9, 10 to 99 and so on; test tokens out of the vocabulary are a band of
    their own. Bands without a word and without a token are left out. Returns the bands, and the
    index of each test token's band (T,).
    """
    # (V,) band of each word
    band_of_word = np.searchsorted(_BAND_STARTS, splits.train.counts, side="right")
    # (T,) band of each test token
    ids = splits.test.with_vocabulary(splits.train.vocabulary).ids(slice(None))
    outside = len(_BAND_STARTS) + 1
    band_of_token = np.where(ids < 0, outside, band_of_word[ids])
    words = np.bincount(band_of_word, minlength=outside + 1)
    tokens = np.bincount(band_of_token, minlength=outside + 1)
    used = np.flatnonzero(words + tokens)
    bands = [
        results.Band(
            least=None if band == outside else 10 ** (band - 1) if band else 0,
            most=None if band == outside else 10**band - 1,
            words=int(words[band]),
            tokens=int(tokens[band]),
        )
        for band in used.tolist()
    ]
    return bands, np.searchsorted(used, band_of_token)

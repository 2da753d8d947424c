"""Comparison of candidates: the same model trained with each, under the same stopping rule.

Every candidate gets the same text in the same order, starting vectors and schedule, so that what
differs is the output layer. `hstree.experiments.run` keeps finished jobs, so that a comparison goes
on where it stopped, and a new candidate costs only its own training; by halving, where candidates
share the time, all train anew with it.
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
from hstree._arrays import Float64, Int64
from hstree._files import json_hash, locked
from hstree._parallel import limited_threads, n_parallel, threads_of_job
from hstree._text import plural
from hstree._version import __version__
from hstree.data.corpus import Corpus
from hstree.data.splits import SPLITS, SplitName, Splits
from hstree.data.text_score import perplexity, unigram_score
from hstree.data.vocabulary import Vocabulary
from hstree.errors import HstreeError, OptionError
from hstree.experiments import results, speed
from hstree.experiments.candidate import Candidate, Job, TreeCandidate
from hstree.experiments.parallel import jobs_done
from hstree.experiments.recommendation import recommendation_sentences
from hstree.experiments.results import (
    CandidateResult,
    Comparison,
    Epochs,
    Halving,
    JobResult,
    Seconds,
    Stop,
)
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
#: Share of these minutes that measuring speeds may take, and seconds of one candidate's turn in it.
_SPEEDS_SHARE, _TURN = 1 / 4, 2.0
#: Fewest seconds of a candidate's first round, and most models of the last; how many times the
#: seconds of the round before it another one has at least.
_LEAST, _LAST, _LEAST_MORE = 0.5, 2, 1.1
#: Seconds that writing the results of an unfinished comparison may take, and beside these the share
#: of all its time.
_WRITING_SECONDS, _WRITING_SHARE = 5.0, 0.1
#: Smallest training count of each band; a first band has the words that never occur.
_BAND_STARTS = 10 ** np.arange(18)


def compare(
    text: Any,
    candidates: Iterable[Candidate | str | Tree] | None,
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
    candidates : iterable of str, Candidate or Tree, optional
        Candidates as `Candidate.parse` reads them: "huffman", "gmm epsilon=0.4", "classes +
        ngrams", "2 x flat", "kn5", a tree's file, or a named set, "trees" or "approximations"; by
        default `hstree.experiments.candidate.DEFAULT`.
    folder : path
        Made if it is missing; locked during the comparison. Gets ``trees``, ``runs``,
        ``words.tsv``, ``results.json`` and ``results.csv``.
    stop : Epochs, Seconds or Halving, optional
        When trainings stop; ten minutes by halving by default. Where the time is bounded,
        candidates are scored on the first 50,000 tokens of a split, and at the end on all of them
        as far as that takes a tenth of the time: the candidates that trained longest first.
    seeds : int, default 1
        Number of random states, from `random_state` on. Each has its own random trees, starting
        vectors and order of the text, the same for all candidates.
    speed_rounds : int, default 3
        Number of turns of each candidate in which speeds are measured; 0 for none. Candidates of an
        earlier comparison in the folder keep the speeds that were measured then.
    only : bool, default False
        Whether to leave out the other candidates of a comparison that the folder holds.
    force : bool, default False
        Whether to replace a comparison of another text, model or rule that the folder holds.
    updated : callable, optional
        Called with the comparison so far when its files have got another candidate.
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
        The content of ``results.json``, with `best`, `show` and `frame`.

    Raises
    ------
    OptionError
        Before anything is trained, for an invalid candidate or option.
    InputError
        Likewise when a tree is over other words than the text's vocabulary, the folder holds a
        comparison of another text, model or rule, or another process works in it.
    KeyboardInterrupt
        When it was interrupted; finished jobs are kept, and the others go on.

    Examples
    --------
    >>> candidates = ["huffman", "gmm epsilon=0.4", "flat", "kn5"]
    >>> compare(corpus, candidates, "which", stop=hstree.Epochs(3)).best.name    # doctest: +SKIP
    'gmm epsilon=0.4'
    """
    runner, began = Runner.of(text, candidates, folder, stop, seeds, options), time.perf_counter()
    with locked(runner.home), runner.backend(), ExitStack() as stack:
        runner = runner.with_kept(only=only, force=force)
        runner.splits.train.counted_vocabulary().save(runner.home / results.WORDS)
        table = Table(runner, updated, how={"n_jobs": n_jobs, "is_shared": is_shared})
        stack.enter_context(table.saved_when_interrupted())
        if isinstance(runner.stop, Halving):
            speed_rounds = _speed_rounds(runner, speed_rounds)
        with limited_threads(threads_of_job(n_jobs)):
            if isinstance(runner.stop, Halving):
                with progress.task("all candidates", runner.stop.total_seconds, "seconds"):
                    finalists = _halve(table, began, speed_rounds)
            else:
                finalists = [candidate for candidate in runner.candidates if candidate.is_trained]
                table.finish(runner.candidates, runner.first_seconds)
            jobs = {
                candidate.name: runner.jobs_of(candidate)[0][0]
                for candidate in runner.candidates
                if candidate.is_trained
            }
            keys = {job.candidate.name: table.done[name][0][0].key for name, job in jobs.items()}
            table.score_all(finalists)
        models = {job.candidate.name: runner.folder(job) / MODEL for job in jobs.values()}
        file = runner.home / speed.FILE
        kept = speed.kept_speeds(file, keys, models, runner.splits, speed_rounds)
        # Several models are as fast as one of them by their number; together they have no top k.
        table.speeds = {
            measure: {
                candidate.name: [one / candidate.models for one in rounds[candidate.single.name]]
                for candidate in runner.candidates
                if candidate.single.name in rounds and (candidate.models == 1 or measure != "top_k")
            }
            for measure, rounds in kept.items()
        }
        return table.save()


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
    """A round of halving: its number of candidates, and the seconds of each from the text."""

    candidates: int
    seconds: float


@dataclass(frozen=True)
class Plan:
    """The jobs of a comparison, and by halving its rounds, if all takes the time that it should."""

    jobs: dict[Job, PlannedJob]
    rounds: list[PlannedRound]


def plan_of(
    text: Any,
    candidates: Iterable[Candidate | str | Tree] | None,
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
    runner = Runner.of(text, candidates, folder, stop, seeds, options)
    runner, last = runner.with_kept(only=only, force=force), dict[str, float]()
    rounds: list[PlannedRound] = []
    if isinstance(runner.stop, Halving):
        kept = _rounds_in(runner, n_parallel(n_jobs)).rounds
        if kept:
            runner = replace(runner, first_seconds=kept[0].seconds)
            last = {candidate: one.seconds for one in kept for candidate in one.candidates}
        speed_rounds = _speed_rounds(runner, speed_rounds)
        rounds = _planned_rounds(runner, kept, n_parallel(n_jobs), speed_rounds)
    reader, jobs = replace(runner, makes=False), dict[Job, PlannedJob]()
    # on which bounded trainings depend
    with limited_threads(threads_of_job(n_jobs)), runner.backend():
        for candidate in runner.candidates:
            for job in runner.all_jobs(candidate):
                try:
                    done = reader.run(job, seconds=last.get(candidate.name, runner.first_seconds))
                except NotFinishedError:
                    jobs[job] = _planned_job(runner, job, rounds)
                else:
                    steps = msgspec.structs.astuple(done.steps)
                    jobs[job] = PlannedJob(True, sum(step or 0.0 for step in steps))
    return Plan(jobs, rounds)


def _planned_job(runner: Runner, job: Job, rounds: Sequence[PlannedRound]) -> PlannedJob:
    """Return the plan of a job that is to do."""
    if not job.candidate.is_trained:
        return PlannedJob(False, None)
    if rounds:
        return PlannedJob(False, rounds[0].seconds, rounds[-1].seconds)
    return PlannedJob(False, runner.stop.total_seconds)


@dataclass(frozen=True)
class Evaluation:
    """A trained model, and the comparison of its one candidate.

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
    def candidate(self) -> CandidateResult:
        """The figures of the candidate."""
        return self.comparison.candidates[0]

    @property
    def perplexity(self) -> float | None:
        """Test perplexity."""
        return self.candidate.test


def evaluate(
    candidate: Candidate | str | Tree,
    text: Any,
    *,
    stop: Stop | None = None,
    folder: str | os.PathLike[str] | None = None,
    trained: Callable[[Model[Any]], object] | None = None,
    **options: Any,
) -> Evaluation:
    """Train and score a model with one output layer: a comparison of one candidate.

    No speeds are measured.

    Parameters
    ----------
    candidate : str, Candidate or Tree
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
            return evaluate(
                candidate, text, stop=stop, folder=temporary, trained=trained, **options
            )
    one = Candidate.parse(candidate)
    if one.models > 1 or not one.is_trained:
        raise OptionError(f"{one} is not one model to train; compare takes it")
    splits = Splits.of(text)
    if isinstance(one, TreeCandidate):  # its labels are the vocabulary
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
    turn = _TURN * max(1, sum(candidate.is_trained for candidate in runner.candidates))
    turns = int(_SPEEDS_SHARE * (runner.stop.total_seconds or 0.0) / turn)
    return min(speed_rounds, max(1, turns))


class _Round(results.Figures, frozen=True):
    """A round of halving: its candidates, their seconds from the text, and their scores."""

    seconds: results.Positive
    candidates: list[str]
    valid: dict[str, float] = msgspec.field(default_factory=dict)


class _Rounds(results.Figures, frozen=True):
    """Rounds of halving, as ``rounds.json`` holds them; `key` is a hash of what they are of.

    Scores are validation perplexities of the first `valid_tokens` tokens.
    """

    key: str
    valid_tokens: results.Count
    rounds: list[_Round] = msgspec.field(default_factory=list)


def _halve(table: Table, began: float, speed_rounds: int) -> list[Candidate]:
    """Train all candidates equally long, then the better half twice as long, until two are left.

    It ends earlier where scoring leaves no time for another round. The halves are of models:
    candidates of one or several of the same share trainings, and go on together. Rounds are kept in
    ``rounds.json``, so that the same comparison goes on with the same seconds. Returns the
    candidates of the last round.
    """
    runner, n_jobs = table.runner, n_parallel(table.how["n_jobs"])
    file, rounds = runner.home / "rounds.json", _rounds_in(runner, n_jobs)
    active = [candidate for candidate in runner.candidates if candidate.is_trained]
    total, seconds, title = runner.stop.total_seconds or 0.0, 0.0, "candidates"
    reserve = _reserve(runner, speed_rounds)
    table.finish(candidate for candidate in runner.candidates if not candidate.is_trained)
    for number in itertools.count() if active else ():
        if number == len(rounds.rounds):
            left = max(total - (time.perf_counter() - began) - reserve, 0.0)
            target = _next_seconds(runner, active, seconds, left, n_jobs)
            rounds.rounds.append(_Round(target, [candidate.name for candidate in active]))
            results.write_kept(file, rounds)
        this = rounds.rounds[number]
        is_last = (
            this.seconds == seconds or len({candidate.single for candidate in active}) <= _LAST
        )
        seconds = this.seconds
        table.runner = runner = replace(runner, first_seconds=rounds.rounds[0].seconds)
        n_rounds = number + (1 if is_last else _n_rounds(active))
        title = f"round {number + 1} of {n_rounds}, {seconds:,.0f} s a candidate"
        if is_last:
            break
        waiting = [candidate for candidate in active if candidate.name not in this.valid]
        started, n_trained = time.perf_counter(), 0
        for candidate, scores in table.together(
            waiting, title=title, step="advance", seconds=seconds
        ):
            this.valid[candidate.name] = statistics.fmean(scores)
            results.write_kept(file, rounds)
            n_trained += len(scores)
        # What is not training, validation above all, comes again at the end.
        spent = time.perf_counter() - started - n_trained * seconds / n_jobs
        reserve += max(0.0, spent) if number == 0 else 0.0
        ranked = sorted(active, key=lambda candidate: this.valid[candidate.name])
        models = list(dict.fromkeys(candidate.single for candidate in ranked))
        better = models[: math.ceil(len(models) / 2)]
        worse = [candidate for candidate in ranked if candidate.single not in better]
        table.finish(worse, seconds, title=f"scoring after round {number + 1} of {n_rounds}")
        active = [candidate for candidate in ranked if candidate.single in better]
    table.finish(active, seconds, title=title)
    return active


def _rounds_in(runner: Runner, n_jobs: int) -> _Rounds:
    """Return the rounds that the folder keeps of the same comparison; none without them.

    Warns where they are of other candidates, with which these would share the time otherwise.
    Raises OptionError when the minutes are too few for the first round.
    """
    key = json_hash(
        {
            "rule": str(runner.stop),
            "text": runner.content,
            "model": runner.config,
            "seeds": list(runner.seeds),
        }
    )
    valid_tokens = len(runner.sample.valid)
    kept = results.kept_struct(runner.home / "rounds.json", _Rounds)
    candidates = [candidate for candidate in runner.candidates if candidate.is_trained]
    before = kept.rounds if kept is not None and kept.key == key else []
    differ = (
        sorted({candidate.name for candidate in candidates} ^ set(before[0].candidates))
        if before
        else []
    )
    if before and not differ:
        return _Rounds(key, valid_tokens, before)
    steps, total = _n_steps(runner, candidates, 0.0, n_jobs), runner.stop.total_seconds
    needed = _LEAST * steps / (_SHARE * (1 - _SPEEDS_SHARE))
    if total is not None and total < needed:
        raise OptionError(
            f"{total / 60:g} minutes are too few for {plural(len(candidates), 'candidate')}; give "
            f"{math.ceil(needed / 0.6) / 100:g} or more, or fewer candidates"
        )
    if differ:
        warnings.warn(
            f"the candidates share {total:g} s, so that other candidates ("
            f"{', '.join(differ)}) change the seconds of each: all train anew; "
            "under a rule of seconds or epochs a new candidate only adds itself",
            stacklevel=2,
        )
    return _Rounds(key, valid_tokens)


def _reserve(runner: Runner, speed_rounds: int) -> float:
    """Return the seconds of all that measuring speeds and scoring all held-out tokens may take."""
    total = runner.stop.total_seconds or 0.0
    n_trained = sum(candidate.is_trained for candidate in runner.candidates)
    reserve = min(_TURN * speed_rounds * n_trained, _SPEEDS_SHARE * total)
    return reserve + _SCORING_SHARE * total if runner.is_sampling else reserve


def _planned_rounds(
    runner: Runner, kept: Sequence[_Round], n_jobs: int, speed_rounds: int
) -> list[PlannedRound]:
    """Return the rounds that are kept, and those to come if nothing but training takes time."""
    active = [candidate for candidate in runner.candidates if candidate.is_trained]
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
        models = list(dict.fromkeys(candidate.single for candidate in active))
        if target == seconds or len(models) <= _LAST:
            break
        seconds = target
        # which candidates go on is not known yet
        better = models[: math.ceil(len(models) / 2)]
        active = [candidate for candidate in active if candidate.single in better]
    return rounds


def _next_seconds(
    runner: Runner, active: Sequence[Candidate], seconds: float, left: float, n_jobs: int
) -> float:
    """Return the seconds of each candidate of the next round, of the seconds that are left for all.

    As much again as before, so that a candidate's seconds double; less where the rounds to come
    would take more than what is left, of which the first takes its share. The same as before where
    what takes minutes beside training, scoring above all, leaves no time for it.
    """
    step = left / _n_steps(runner, active, seconds, n_jobs)
    target = max(seconds + (min(step, seconds) if seconds else _SHARE * step), _LEAST)
    return seconds if target < _LEAST_MORE * seconds else target


def _n_rounds(active: Sequence[Candidate]) -> int:
    """Return the number of rounds until the models are halved to the last ones."""
    models, n_rounds = len({candidate.single for candidate in active}), 1
    while models > _LAST:
        models = math.ceil(models / 2)
        n_rounds += 1
    return n_rounds


def _n_steps(runner: Runner, candidates: Sequence[Candidate], done: float, n_jobs: int) -> float:
    """Return the training of all rounds to come, in units of the next step of a candidate."""
    models = len({candidate.single for candidate in candidates})
    jobs = len(runner.all_jobs(*candidates))
    units, weight, of_model = math.ceil(jobs / n_jobs), 1 + bool(done), jobs / max(models, 1)
    while models > _LAST:
        models = math.ceil(models / 2)
        units += math.ceil(models * of_model / n_jobs) * weight
        weight *= 2  # each round adds as much as there was before
    return units


# The figures of all candidates


@dataclass
class Table:
    """Makes the candidates of a comparison from finished jobs and measured speeds.

    `done` has the results of each finished candidate by its name, for each seed those of its
    models, `seconds` those that a candidate trained for, where its time is bounded, and `speeds`
    the tokens per second by measure and candidate; figures that need others are None. `how` has
    `n_jobs` and `is_shared`, as `compare` takes them.
    """

    runner: Runner
    updated: Callable[[Comparison], object] | None = None
    done: dict[str, list[list[JobResult]]] = field(default_factory=dict)
    seconds: dict[str, float | None] = field(default_factory=dict)
    speeds: speed.Speeds = field(default_factory=dict)
    how: Mapping[str, Any] = field(default_factory=lambda: {"n_jobs": 1, "is_shared": True})
    _n_written: int = -1  #: number of finished candidates in the results that this has written
    _began: float = field(default_factory=time.monotonic)
    _writing_seconds: float = 0.0  #: that writing results has taken
    _nlls: dict[tuple[str, Held], list[Float64]] = field(default_factory=dict)
    _of_trees: dict[str, dict[str, Any]] = field(default_factory=dict)

    def finish(
        self,
        candidates: Iterable[Candidate],
        seconds: float | None = None,
        title: str = "candidates",
    ) -> None:
        """Do the jobs of candidates; write the results so far after each that is new.

        Candidates whose jobs the folder keeps are read first. Results are written less often where
        that takes much of the time.
        """
        candidates = list(candidates)
        self.seconds |= {candidate.name: seconds for candidate in candidates}
        waiting = self._take_kept(candidates, seconds)
        if not waiting:
            return
        if self._n_written < len(self.done):
            self.save()
        with self._budget(waiting, seconds):
            for candidate, done in self.together(waiting, title=title, step="run", seconds=seconds):
                self._add(candidate, done)
                elapsed = time.monotonic() - self._began
                may_write = self._writing_seconds < _WRITING_SECONDS + _WRITING_SHARE * elapsed
                if may_write and len(self.done) < len(self.runner.candidates):
                    self.save()

    def _budget(
        self, candidates: Sequence[Candidate], seconds: float | None
    ) -> AbstractContextManager[object]:
        """Show the time of all jobs of candidates, where each has its own seconds."""
        if seconds is None or not isinstance(self.runner.stop, Seconds):
            return nullcontext()
        jobs = [job for job in self.runner.all_jobs(*candidates) if job.candidate.is_trained]
        n_turns = math.ceil(len(jobs) / n_parallel(self.how["n_jobs"]))
        return progress.task("all candidates", n_turns * seconds, "seconds")

    @contextmanager
    def saved_when_interrupted(self) -> Iterator[None]:
        """Write the results of all finished candidates when an exception ends the body."""
        try:
            yield
        except BaseException:
            is_missing = not (self.runner.home / results.JSON).exists()
            if is_missing or 0 <= self._n_written < len(self.done):
                # a failure to write must not hide what ended the body
                with suppress(HstreeError, OSError):
                    self.save()
            raise

    def _take_kept(self, candidates: Sequence[Candidate], seconds: float | None) -> list[Candidate]:
        """Take the results of candidates that are finished in the folder; return the others."""
        reader, waiting = replace(self.runner, makes=False), []
        with progress.task("reading finished jobs", len(candidates), "candidates") as bar:
            for candidate in candidates:
                bar.advance()
                try:
                    jobs = self.runner.all_jobs(candidate)
                    self._add(candidate, [reader.run(job, seconds=seconds) for job in jobs])
                except NotFinishedError:
                    waiting.append(candidate)
        return waiting

    def _add(self, candidate: Candidate, done: Sequence[JobResult]) -> None:
        """Add a finished candidate: the results of its jobs, for each seed those of its models."""
        starts = range(0, len(done), candidate.models)
        self.done[candidate.name] = [list(done[i : i + candidate.models]) for i in starts]

    def score_all(self, finalists: Sequence[Candidate]) -> None:
        """Score candidates on all held-out tokens where the time allows it.

        Others keep the scores of the sample.
        The results take the place of those of the sample.
        """
        candidates = self._candidates_in_time(finalists) if self.runner.is_sampling else []
        if candidates and 0 <= self._n_written < len(self.done):
            self.save()
        # candidates that trained equally long go together
        for seconds in dict.fromkeys(self.seconds[candidate.name] for candidate in candidates):
            alike = [
                candidate for candidate in candidates if self.seconds[candidate.name] == seconds
            ]
            for candidate, done in self.together(
                alike, title="scoring all held-out tokens", step="score_all", seconds=seconds
            ):
                self._add(candidate, done)
                for split in NLL:
                    self._nlls.pop((candidate.name, split), None)

    def _candidates_in_time(self, finalists: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates whose scoring takes at most a tenth of the time of all jobs.

        All of the finalists come first, or none do; then other trained candidates, the cheapest
        first.
        """
        runner, trained = (
            self.runner,
            [candidate for candidate in self.runner.candidates if candidate.is_trained],
        )

        # seconds of each job, by the time that its sample took
        cost: dict[Job, float] = {}
        for candidate in trained:
            done = itertools.chain.from_iterable(self.done[candidate.name])
            for job, result in zip(runner.all_jobs(candidate), done, strict=True):
                per_token = result.scoring_seconds / max(
                    result.scored.valid + result.scored.test, 1
                )
                cost[job] = per_token * (self._all_tokens.valid + self._all_tokens.test)

        def cost_of(candidates: Sequence[Candidate]) -> float:
            """Return the cost of candidates, which may share jobs."""
            return sum(cost[job] for job in runner.all_jobs(*candidates))

        n_budgets = 1 if isinstance(runner.stop, Halving) else len(cost)
        left = _SCORING_SHARE * n_budgets * (runner.stop.total_seconds or 0.0)
        others = [candidate for candidate in trained if candidate not in finalists]
        others.sort(key=lambda candidate: cost_of([candidate]))
        candidates: list[Candidate] = []
        for group in [list(finalists), *([candidate] for candidate in others)]:
            if cost_of([*candidates, *group]) > left:
                break
            candidates += group
        return candidates

    @property
    def _all_tokens(self) -> results.TokenCounts:
        """Numbers of all held-out tokens."""
        return results.TokenCounts(len(self.runner.splits.valid), len(self.runner.splits.test))

    def together(
        self, candidates: Iterable[Candidate], **step: Any
    ) -> Iterator[tuple[Candidate, list[Any]]]:
        """Do a step of the jobs of candidates; yield each candidate with what its jobs return."""
        jobs_by_candidate = {candidate: self.runner.all_jobs(candidate) for candidate in candidates}
        candidates_by_job: dict[Job, list[Candidate]] = {}
        for candidate, jobs in jobs_by_candidate.items():
            for job in jobs:
                candidates_by_job.setdefault(job, []).append(candidate)
        n_left = {candidate: len(jobs) for candidate, jobs in jobs_by_candidate.items()}
        done: dict[Job, JobResult | float] = {}
        for job, result in jobs_done(self.runner, candidates_by_job, **step, **self.how):
            done[job] = result
            for candidate in candidates_by_job[job]:
                n_left[candidate] -= 1
                if n_left[candidate] == 0:
                    yield candidate, [done[job] for job in jobs_by_candidate[candidate]]

    def save(self) -> Comparison:
        """Write and return all figures so far."""
        began = time.monotonic()
        comparison = self.comparison()
        results.save(comparison, self.runner.home)
        comparison = comparison.in_folder(self.runner.home)
        if self.updated is not None and comparison.candidates:
            self.updated(comparison)
        self._n_written = len(self.done)
        self._writing_seconds += time.monotonic() - began
        return comparison

    def comparison(self) -> Comparison:
        """Return all figures."""
        runner, splits = self.runner, self.runner.splits
        vocabulary = splits.train.vocabulary
        parts: dict[SplitName, Corpus] = dict(zip(SPLITS, splits, strict=True))
        done = [candidate for candidate in runner.candidates if candidate.name in self.done]
        bands = frequency_bands(splits)
        candidates = [self._candidate(candidate, done, bands) for candidate in done]
        choice = results.choose(candidates)
        if choice is not None and choice.rival is not None:
            by_name = {candidate.name: candidate for candidate in done}
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
            candidates=candidates,
            choice=choice,
            pending=[
                candidate.name for candidate in runner.candidates if candidate.name not in self.done
            ],
        )
        sentences = recommendation_sentences(comparison)
        return msgspec.structs.replace(comparison, recommendation=sentences)

    def nlls(self, candidate: Candidate, split: Held = "test") -> list[Float64]:
        """Return the nll of every scored token of a split for each seed, of its models' mean."""
        if (candidate.name, split) not in self._nlls:
            of_seeds = [
                [
                    np.load(self._folder(job, result) / NLL[split], allow_pickle=False)
                    for job, result in zip(jobs, done, strict=True)
                ]
                for jobs, done in zip(
                    self.runner.jobs_of(candidate), self.done[candidate.name], strict=True
                )
            ]
            self._nlls[candidate.name, split] = [
                nlls[0] if len(nlls) == 1 else mean_probability(nlls) for nlls in of_seeds
            ]
        return self._nlls[candidate.name, split]

    def _folder(self, job: Job, result: JobResult) -> Path:
        """Return the folder with the scores of a job's result."""
        folder = self.runner.folder(job)
        is_sampling = self.runner.is_sampling and job.candidate.is_trained
        return folder / ALL if is_sampling and result.scored == self._all_tokens else folder

    def _ratio(self, candidate: Candidate, other: Candidate) -> Ratio | None:
        """Compare the perplexities of two candidates on the test tokens that both scored."""
        return paired_ratio(*_common(self.nlls(candidate), self.nlls(other)))

    def _candidate(
        self,
        candidate: Candidate,
        candidates: Sequence[Candidate],
        bands: tuple[list[results.Band], Int64],
    ) -> CandidateResult:
        """Return the figures of a candidate beside all finished ones.

        Ratios are to flat, and to flat with the same layer; a mixture is one with the first n-gram
        model.
        """
        nlls, of_jobs = self.nlls(candidate), self._of_jobs(candidate)
        band_of_token = bands[1][: len(nlls[0])]
        # the test tokens that the candidate scored
        splits = self.runner.splits
        scored = splits.test if len(nlls[0]) == len(splits.test) else self.runner.sample.test
        fields: dict[str, Any] = {}
        for other in candidates:
            if other.is_flat and "to_flat" not in fields:
                fields["to_flat"] = self._ratio(candidate, other)
                flat, total = self._of_jobs(other)["steps"].total, of_jobs["steps"].total
                fields["from_text_times_flat"] = flat / total if flat and total else None
            if other.name == f"flat + {candidate.layer}" != candidate.name:
                fields["like"], fields["to_like"] = other.name, self._ratio(candidate, other)
        flat_name = next((other.name for other in candidates if other.is_flat), "")
        for measure, rounds in self.speeds.items():
            if candidate.name in rounds:
                of_flat = self.speeds["nll" if measure == "unnormalised" else measure]
                fields[measure] = results.Speed.of(rounds[candidate.name], of_flat.get(flat_name))
        ngram = next((one for one in candidates if not one.is_trained), candidate)
        if ngram is not candidate:
            valid, other_valid = _common(self.nlls(candidate, "valid"), self.nlls(ngram, "valid"))
            test, other_test = _common(nlls, self.nlls(ngram))
            weights = [best_weight(nll, other_valid[0]) for nll in valid]
            pairs = zip(weights, test, strict=True)
            mixed = [mixed_nll(weight, nll, other_test[0]) for weight, nll in pairs]
            fields["mixture"] = results.Mixture(
                ngram=ngram.name,
                weight=statistics.fmean(weights),
                test=_spread(mixed).mean,
            )
        return CandidateResult(
            name=candidate.name,
            kind=candidate.kind,
            method=candidate.method,
            summary=candidate.summary,
            options=msgspec.to_builtins(candidate.options, enc_hook=str),
            layer=candidate.layer,
            is_flat=candidate.is_flat,
            models=candidate.models,
            **self._tree_figures(candidate),
            **of_jobs,
            test_oov=scored.n_oov / len(scored),
            by_band=[_spread(nlls, band_of_token == i).mean for i in range(len(bands[0]))],
            **fields,
        )

    def _of_jobs(self, candidate: Candidate) -> dict[str, Any]:
        """Return the fields of a candidate that are of its finished jobs, by themselves.

        The steps are means over the seeds, those of all models of a seed together. Without a bound
        on the time, epochs are counted at the speed that was measured in turns.
        """
        jobs = self.runner.all_jobs(candidate)
        done = [result for of_seed in self.done[candidate.name] for result in of_seed]
        nlls, splits = self.nlls(candidate), self.runner.splits
        spreads = {
            name: results.Spread.of([one.perplexity[name] for one in done])
            for name in results.SCORED
        }
        if candidate.models > 1:
            known = splits.test.with_vocabulary(splits.train.vocabulary).ids(slice(None)) >= 0
            spreads["valid"], spreads["test"] = (
                _spread(self.nlls(candidate, "valid")),
                _spread(nlls),
            )
            spreads["test_without_oov"] = _spread(nlls, known[: len(nlls[0])])
        rounds, steps = self.speeds.get("training", {}).get(candidate.single.name), []
        for result in done:
            training = result.steps.training
            if rounds and self.runner.stop.total_seconds is None:
                tokens = sum(epoch.share for epoch in result.epochs) * len(splits.train)
                training = tokens / statistics.median(rounds)
            steps.append(msgspec.structs.replace(result.steps, training=training))
        normalisers = [result.log_normaliser for result in done if result.log_normaliser]
        is_normalised = len(normalisers) < len(done) or candidate.models > 1
        return {
            "parameters": sum(result.parameters for result in done[: candidate.models]),
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
            "steps": results.mean_of(steps, candidate.models),
            "seen": next((result.seen for result in done if result.seen), None),
            "log_normaliser": None if is_normalised else results.mean_of(normalisers),
        }

    def _tree_figures(self, candidate: Candidate) -> dict[str, Any]:
        """Return the fields of a candidate that describe its tree.

        Costs are those of the trees of all models, weighted by the counts of the training split; a
        tree may have other counts.
        """
        if candidate.kind != "tree":
            return {"tree": None, "tree_file": None}
        if candidate.name in self._of_trees:
            return self._of_trees[candidate.name]
        jobs = self.runner.jobs_of(candidate)[0]
        files = [self.runner.folder(job, "trees") / "tree.json" for job in jobs]
        trees, train = [load(file) for file in files], self.runner.splits.train
        counts = [train.counts[train.vocabulary.ids(tree.labels)] for tree in trees]
        first, *_ = of_trees = list(map(tree_statistics, trees, counts))
        weighted = [one.length_weighted for one in of_trees if one.length_weighted is not None]
        self._of_trees[candidate.name] = {
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
        return self._of_trees[candidate.name]


def _common(
    nlls: Sequence[Float64], others: Sequence[Float64]
) -> tuple[list[Float64], list[Float64]]:
    """Return the nll of the first tokens, which two candidates both scored."""
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

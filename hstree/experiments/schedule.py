"""The order of jobs under each stopping rule.

Other modules write results and measure speeds.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from hstree import progress
from hstree._parallel import n_parallel
from hstree.experiments.candidate import Candidate, Job
from hstree.experiments.halving import (
    SCORING_FRACTION,
    PlannedRound,
    Round,
    RoundTimes,
    better_half,
    load_rounds,
    n_rounds,
)
from hstree.experiments.job import FAILED, continue_job, find_result, run_job, score_all_tokens
from hstree.experiments.parallel import Stage, run_stage
from hstree.experiments.results import JobResult
from hstree.experiments.setting import Budget, Setting
from hstree.experiments.store import ROUNDS, Store


class Finished(NamedTuple):
    """A candidate with finished jobs, their results, and whether the folder contained them."""

    candidate: Candidate
    results: list[JobResult]
    is_kept: bool = False


@dataclass(frozen=True)
class PlannedJob:
    """A job in a plan.

    Attributes
    ----------
    is_finished : bool
        Whether the job is finished and will not run again.
    seconds : float or None
        Seconds that a finished job took, or that the stopping rule allows for a job to do; with
        halving, the seconds of the first round. None if they are unknown.
    max_seconds : float or None
        With halving, the total seconds of a job that continues until the last round.
    """

    is_finished: bool
    seconds: float | None
    max_seconds: float | None = None


@dataclass(frozen=True)
class Plan:
    """The jobs of a comparison, and with halving its planned rounds."""

    jobs: dict[Job, PlannedJob]
    rounds: list[PlannedRound]


class Schedule:
    """Execution of the jobs of candidates under the stopping rule of a setting.

    Parameters
    ----------
    candidates : sequence of Candidate
    setting : Setting
    store : Store
    n_jobs : int, optional
        Number of parallel jobs, as in `hstree.compare`.
    speed_rounds : int
        Number of rounds in which speeds are measured later; halving reserves time for them.

    Attributes
    ----------
    finalists : list of Candidate
        Candidates that are trained longest.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        setting: Setting,
        store: Store,
        *,
        n_jobs: int | None = None,
        speed_rounds: int = 0,
    ) -> None:
        self.candidates = candidates
        self.setting = setting
        self.store = store
        self.n_jobs = n_jobs
        self.trained = [candidate for candidate in candidates if candidate.is_trained]
        self.finalists = self.trained
        self._times = RoundTimes(setting, self.trained, n_parallel(n_jobs), speed_rounds)
        self._began = time.perf_counter()

    def train_all(self) -> Iterator[Finished]:
        """Yield each candidate when its jobs are finished, beginning with those in the folder."""
        if self.setting.stop.is_shared:
            with progress.task("all candidates", self.setting.stop.total_seconds, "seconds"):
                yield from self._halve()
        else:
            yield from self._finish(self.candidates, self.setting.budget, "candidates")

    def plan(self) -> Plan:
        """Return all jobs, finished or to do, and the rounds."""
        # With halving, the budget of each candidate is that of its last round
        first_budget = self.setting.budget
        budgets: dict[str, Budget] = {}
        rounds: list[PlannedRound] = []
        if self.setting.stop.is_shared:
            kept = load_rounds(self._times, self.store).rounds
            budgets = {
                name: Budget(kept_round.seconds, kept[0].seconds)
                for kept_round in kept
                for name in kept_round.candidates
            }
            first_budget = None
            rounds = self._times.planned_rounds(kept)

        # Seconds of finished jobs, or planned seconds from the first round to the last
        jobs: dict[Job, PlannedJob] = {}
        for candidate in self.candidates:
            for job in self.setting.jobs(candidate):
                budget = budgets.get(candidate.name, first_budget)
                result = find_result(job, self.setting, self.store, budget)
                if result is not None:
                    taken = msgspec.structs.astuple(result.timings)
                    jobs[job] = PlannedJob(True, sum(step or 0.0 for step in taken))
                elif not candidate.is_trained:
                    jobs[job] = PlannedJob(False, None)
                elif rounds:
                    jobs[job] = PlannedJob(False, rounds[0].seconds, rounds[-1].seconds)
                else:
                    jobs[job] = PlannedJob(False, self.setting.stop.total_seconds)
        return Plan(jobs, rounds)

    def without_failures(
        self, finished: Mapping[Candidate, Sequence[JobResult]]
    ) -> list[Candidate]:
        """Return the trained candidates without failed jobs."""
        return [
            candidate
            for candidate in self.trained
            if all(result.failed is None for result in finished[candidate])
        ]

    # Scores of all held-out tokens, if jobs score a sample

    def candidates_to_rescore(
        self, finished: Mapping[Candidate, Sequence[JobResult]]
    ) -> list[Candidate]:
        """Return the candidates that can be scored on all tokens within a tenth of the time.

        Either all finalists are included or none. Other trained candidates follow, the cheapest
        first. The list is empty if jobs already score all tokens.
        """
        if not self.setting.is_sampling:
            return []
        all_tokens = self.setting.all_tokens
        n_all = all_tokens.valid + all_tokens.test

        # Seconds of each job, estimated from the time for its sample
        trained = self.without_failures(finished)
        cost: dict[Job, float] = {}
        for candidate in trained:
            jobs = self.setting.jobs(candidate)
            for job, result in zip(jobs, finished[candidate], strict=True):
                n_scored = max(result.scored.valid + result.scored.test, 1)
                cost[job] = result.scoring_seconds / n_scored * n_all

        def cost_of(*candidates: Candidate) -> float:
            """Return the seconds of candidates; shared jobs count once."""
            return sum(cost[job] for job in self.setting.jobs(*candidates))

        n_budgets = 1 if self.setting.stop.is_shared else len(cost)
        left = SCORING_FRACTION * n_budgets * (self.setting.stop.total_seconds or 0.0)
        finalists = [candidate for candidate in trained if candidate in self.finalists]
        others = [candidate for candidate in trained if candidate not in finalists]
        chosen: list[Candidate] = []
        for group in [finalists, *([other] for other in sorted(others, key=cost_of))]:
            if cost_of(*chosen, *group) > left:
                break
            chosen += group
        return chosen

    def score_all(self, candidates: Sequence[Candidate]) -> Iterator[Finished]:
        """Score finished candidates on all held-out tokens; yield each with its new results."""
        title = "scoring all held-out tokens"
        for candidate, done in self._together(score_all_tokens, candidates, None, title):
            yield Finished(candidate, done)

    # Groups of candidates

    def _finish(
        self, candidates: Sequence[Candidate], budget: Budget | None, title: str
    ) -> Iterator[Finished]:
        """Yield candidates with one budget when they are finished."""
        # Candidates whose jobs are all in the folder come first
        waiting: list[Candidate] = []
        with progress.task("reading finished jobs", len(candidates), "candidates") as bar:
            for candidate in candidates:
                bar.advance()
                jobs = self.setting.jobs(candidate)
                results = (find_result(job, self.setting, self.store, budget) for job in jobs)
                kept = [result for result in results if result is not None]
                if len(kept) == len(jobs):
                    yield Finished(candidate, kept, is_kept=True)
                else:
                    waiting.append(candidate)

        # With a limit of seconds, the remaining time is known
        time_left: AbstractContextManager[object] = nullcontext()
        if waiting and budget is not None and not self.setting.stop.is_shared:
            trained = [candidate for candidate in waiting if candidate.is_trained]
            n_turns = math.ceil(len(self.setting.jobs(*trained)) / n_parallel(self.n_jobs))
            time_left = progress.task("all candidates", n_turns * budget.seconds, "seconds")
        with time_left:
            finished = self._together(run_job, waiting, budget, title, builds_trees_first=True)
            for candidate, done in finished:
                yield Finished(candidate, done)

    def _together(
        self,
        stage: Stage,
        candidates: Sequence[Candidate],
        budget: Budget | None,
        title: str,
        *,
        builds_trees_first: bool = False,
    ) -> Iterator[tuple[Candidate, list[Any]]]:
        """Run a stage of the jobs of candidates; yield each candidate with its results."""
        if not candidates:
            return
        # A job may belong to several candidates, such as a model and an ensemble of it
        waiting = {candidate: self.setting.jobs(candidate) for candidate in candidates}
        done: dict[Job, JobResult | float] = {}
        finished_jobs = run_stage(
            stage,
            self.setting.jobs(*candidates),
            self.setting,
            self.store,
            budget,
            title=title,
            n_jobs=self.n_jobs,
            builds_trees_first=builds_trees_first,
        )
        for finished_job, result in finished_jobs:
            done[finished_job] = result
            for candidate, jobs in list(waiting.items()):
                if all(job in done for job in jobs):
                    del waiting[candidate]
                    yield candidate, [done[job] for job in jobs]

    # Halving

    def _halve(self) -> Iterator[Finished]:
        """Train all candidates for the same time, then the better half, until two models are left.

        Training ends earlier if scoring leaves no time for another round. Rounds are kept in the
        folder, so that the same comparison continues with the same seconds.
        """
        times = self._times
        rounds = load_rounds(times, self.store)
        untrained = [candidate for candidate in self.candidates if not candidate.is_trained]
        yield from self._finish(untrained, None, "candidates")
        if not self.trained:
            return

        active = self.trained
        reserve = times.reserve
        seconds = 0.0
        for number in itertools.count():
            # Total seconds of the candidates in this round
            if number == len(rounds.rounds):
                elapsed = time.perf_counter() - self._began
                left = max(times.total - elapsed - reserve, 0.0)
                target = times.next_seconds(active, seconds, left)
                rounds.rounds.append(Round(target, [candidate.name for candidate in active]))
                self.store.save(ROUNDS, rounds)
            current = rounds.rounds[number]
            left_rounds = 1 if current.seconds == seconds else n_rounds(active)
            seconds = current.seconds
            budget = Budget(seconds, rounds.rounds[0].seconds)
            position = f"round {number + 1} of {number + left_rounds}"
            title = f"{position}, {seconds:,.0f} s per candidate"
            if left_rounds == 1:
                break

            # Train the candidates and record their validation perplexities
            waiting = [candidate for candidate in active if candidate.name not in current.valid]
            started = time.perf_counter()
            n_trained = 0
            for candidate, scores in self._together(continue_job, waiting, budget, title):
                has_failed = FAILED in scores
                current.valid[candidate.name] = FAILED if has_failed else statistics.fmean(scores)
                self.store.save(ROUNDS, rounds)
                n_trained += len(scores)
            if number == 0:
                # The time outside training, mostly validation, is needed again at the end
                spent = time.perf_counter() - started - n_trained * seconds / times.n_jobs
                reserve += max(0.0, spent)

            # The better half continues, unless it has failed; the other candidates are scored
            ranked = sorted(active, key=lambda candidate: current.valid[candidate.name])
            active = [
                candidate
                for candidate in better_half(ranked)
                if current.valid[candidate.name] < FAILED
            ]
            worse = [candidate for candidate in ranked if candidate not in active]
            yield from self._finish(worse, budget, f"scoring after {position}")
            if not active:
                break
        self.finalists = active
        yield from self._finish(active, budget, title)

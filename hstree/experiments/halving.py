"""Successive halving: which candidates train in a round, and for how many seconds.

All candidates train equally long, then the better half continues for as long again, until two
models are left. The halves are of models: candidates of one or several of the same share trainings,
and continue together.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from hstree._text import plural
from hstree.errors import OptionError
from hstree.experiments.candidate import Candidate
from hstree.experiments.results import Count, Positive, Record
from hstree.experiments.setting import Setting
from hstree.experiments.store import ROUNDS, Store, rounds_key

#: Fraction of the time that training may take in the first round's reckoning. Scoring, speeds and
#: n-gram models take the rest.
TRAINING_FRACTION = 0.75
#: Fraction of the time that scoring all held-out tokens may take.
SCORING_FRACTION = 0.1
#: Fraction of the time that measuring speeds may take, and seconds of one turn in it.
SPEEDS_FRACTION = 1 / 4
TURN_SECONDS = 2.0
#: Minimum seconds of a candidate's first round.
MIN_SECONDS = 0.5
#: Maximum number of models in the last round.
LAST_MODELS = 2
#: A further round has at least this many times the seconds of the round before it.
MIN_GROWTH = 1.1


class Round(Record, frozen=True):
    """A round: its candidates, their seconds from the text, and their validation perplexities."""

    seconds: Positive
    candidates: list[str]
    valid: dict[str, float] = msgspec.field(default_factory=dict)


class Rounds(Record, frozen=True):
    """The content of ``rounds.json``; `key` is a hash of what the rounds depend on.

    Validation perplexities are those of the first `valid_tokens` tokens.
    """

    key: str
    valid_tokens: Count
    rounds: list[Round] = msgspec.field(default_factory=list)


class PlannedRound(NamedTuple):
    """A round to come: its number of candidates, and the seconds of each from the text."""

    candidates: int
    seconds: float


def distinct_models(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the single candidates that candidates are one or several models of."""
    return list(dict.fromkeys(candidate.single for candidate in candidates))


def better_half(ranked: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates of the better half of the models, which are ranked by the first."""
    models = distinct_models(ranked)
    better = models[: math.ceil(len(models) / 2)]
    return [candidate for candidate in ranked if candidate.single in better]


def n_rounds(active: Sequence[Candidate]) -> int:
    """Return the number of rounds until the models are halved to the last ones."""
    models = len(distinct_models(active))
    rounds = 1
    while models > LAST_MODELS:
        models = math.ceil(models / 2)
        rounds += 1
    return rounds


def affordable_speed_rounds(setting: Setting, candidates: Sequence[Candidate], wanted: int) -> int:
    """Return the number of turns in which speeds are measured; by halving, time limits it.

    There is one turn at least, and `wanted` at most.
    """
    seconds = setting.stop.total_seconds
    if seconds is None or not setting.stop.is_shared:
        return wanted
    n_trained = sum(candidate.is_trained for candidate in candidates)
    turn_seconds = TURN_SECONDS * max(1, n_trained)
    return min(wanted, max(1, int(SPEEDS_FRACTION * seconds / turn_seconds)))


class RoundTimes:
    """Divides the minutes of a comparison among its rounds.

    Parameters
    ----------
    setting : Setting
    trained : sequence of Candidate
        All candidates that train.
    n_jobs : int
        Number of jobs at a time.
    speed_rounds : int
        Number of turns in which speeds are measured at the end.
    """

    def __init__(
        self, setting: Setting, trained: Sequence[Candidate], n_jobs: int, speed_rounds: int
    ) -> None:
        self.setting = setting
        self.trained = trained
        self.n_jobs = n_jobs
        self.total = setting.stop.total_seconds or 0.0
        #: Seconds that measuring speeds and scoring all held-out tokens may take.
        self.reserve = min(TURN_SECONDS * speed_rounds * len(trained), SPEEDS_FRACTION * self.total)
        if setting.is_sampling:
            self.reserve += SCORING_FRACTION * self.total

    def next_seconds(self, active: Sequence[Candidate], seconds: float, left: float) -> float:
        """Return the seconds of each candidate of the next round, after `seconds` so far.

        They double; less where the rounds to come would take more than the seconds `left`, of which
        the first round takes its fraction. They remain the same where scoring and the like leave
        no time for another round.
        """
        step = left / self._n_steps(active, is_first=not seconds)
        step = min(step, seconds) if seconds else TRAINING_FRACTION * step
        target = max(seconds + step, MIN_SECONDS)
        return seconds if target < MIN_GROWTH * seconds else target

    def planned_rounds(self, kept: Sequence[Round]) -> list[PlannedRound]:
        """Return the rounds that are kept, and those to come if only training takes time."""
        active = list(self.trained)
        left = max(self.total - self.reserve, 0.0)
        rounds: list[PlannedRound] = []
        seconds = 0.0
        for number in itertools.count() if active else ():
            # rounds that are kept, then those that the time allows
            if number < len(kept):
                target = kept[number].seconds
            else:
                target = self.next_seconds(active, seconds, left)
                n_turns = math.ceil(len(self.setting.jobs(*active)) / self.n_jobs)
                left = max(left - n_turns * (target - seconds), 0.0)
            rounds.append(PlannedRound(len(active), target))
            if target == seconds or n_rounds(active) == 1:
                break
            seconds = target
            # which candidates continue is not known yet
            active = better_half(active)
        return rounds

    def needed_seconds(self) -> float:
        """Return the minimum seconds of the comparison in which the first round has enough."""
        needed = MIN_SECONDS * self._n_steps(self.trained, is_first=True)
        return needed / (TRAINING_FRACTION * (1 - SPEEDS_FRACTION))

    def _n_steps(self, active: Sequence[Candidate], *, is_first: bool) -> float:
        """Return the training of all rounds to come, in units of a candidate's next step."""
        n_models = len(distinct_models(active))
        n_active_jobs = len(self.setting.jobs(*active))
        jobs_per_model = n_active_jobs / max(n_models, 1)
        steps = math.ceil(n_active_jobs / self.n_jobs)
        # each round adds as much as there was before
        weight = 1 if is_first else 2
        while n_models > LAST_MODELS:
            n_models = math.ceil(n_models / 2)
            steps += math.ceil(n_models * jobs_per_model / self.n_jobs) * weight
            weight *= 2
        return steps


def load_rounds(times: RoundTimes, store: Store) -> Rounds:
    """Return the rounds that the folder keeps of the same comparison; none without them.

    Warns where they are of other candidates, with which these would share the time otherwise.
    Raises OptionError when the minutes are too few for the first round.
    """
    key = rounds_key(times.setting)
    valid_tokens = times.setting.sample_tokens.valid

    # the rounds of the same comparison, which continue if their candidates are the same
    kept = store.load(ROUNDS, Rounds)
    before = kept.rounds if kept is not None and kept.key == key else []
    differing: list[str] = []
    if before:
        names = {candidate.name for candidate in times.trained}
        differing = sorted(names ^ set(before[0].candidates))
        if not differing:
            return Rounds(key, valid_tokens, before)

    # other rounds: the time must be enough for all candidates
    needed = times.needed_seconds()
    if times.total < needed:
        raise OptionError(
            f"{times.total / 60:g} minutes are too few for "
            f"{plural(len(times.trained), 'candidate')}; give "
            f"{math.ceil(needed / 0.6) / 100:g} or more, or fewer candidates"
        )
    if differing:
        warnings.warn(
            f"the candidates share {times.total:g} s, so that other candidates ("
            f"{', '.join(differing)}) change the seconds of each: all train again; "
            "under a rule of seconds or epochs a new candidate only adds itself",
            stacklevel=2,
        )
    return Rounds(key, valid_tokens)

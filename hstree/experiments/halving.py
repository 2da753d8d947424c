"""Successive halving: the candidates and the seconds of each round.

All candidates train for the same time. Then the better half continues until its time has doubled,
round after round, until two models are left. An ensemble uses the same models as its single
candidate, so that both continue together.
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

#: Fraction of the time that is planned for training in the first round. Scoring, speeds and n-gram
#: models take the rest.
TRAINING_FRACTION = 0.75
#: Fraction of the time that scoring all held-out tokens may take.
SCORING_FRACTION = 0.1
#: Fraction of the time that measuring speeds may take, and seconds of one measurement.
SPEEDS_FRACTION = 1 / 4
TURN_SECONDS = 2.0
#: Minimum seconds of a candidate in the first round.
MIN_SECONDS = 0.5
#: Maximum number of models in the last round.
LAST_MODELS = 2
#: Minimum ratio of the seconds of a round to those of the round before it.
MIN_GROWTH = 1.1


class Round(Record, frozen=True):
    """A round: its candidates, their total seconds, and their validation perplexities."""

    seconds: Positive
    candidates: list[str]
    valid: dict[str, float] = msgspec.field(default_factory=dict)


class Rounds(Record, frozen=True):
    """The content of ``rounds.json``; `key` is a hash of all conditions of the rounds.

    Validation perplexities were measured on the first `valid_tokens` tokens.
    """

    key: str
    valid_tokens: Count
    rounds: list[Round] = msgspec.field(default_factory=list)


class PlannedRound(NamedTuple):
    """A planned round: its number of candidates, and the total seconds of each."""

    candidates: int
    seconds: float


def distinct_models(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the distinct single candidates, each model of an ensemble included."""
    return list(dict.fromkeys(candidate.single for candidate in candidates))


def better_half(ranked: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates whose model is in the better half of the models."""
    models = distinct_models(ranked)
    better = models[: math.ceil(len(models) / 2)]
    return [candidate for candidate in ranked if candidate.single in better]


def n_rounds(active: Sequence[Candidate]) -> int:
    """Return the number of rounds until at most `LAST_MODELS` models are left."""
    models = len(distinct_models(active))
    rounds = 1
    while models > LAST_MODELS:
        models = math.ceil(models / 2)
        rounds += 1
    return rounds


def affordable_speed_rounds(setting: Setting, candidates: Sequence[Candidate], wanted: int) -> int:
    """Return the number of rounds in which speeds are measured: 1 to `wanted`.

    With halving, it depends on the time limit.
    """
    seconds = setting.stop.total_seconds
    if seconds is None or not setting.stop.is_shared:
        return wanted
    n_trained = sum(candidate.is_trained for candidate in candidates)
    turn_seconds = TURN_SECONDS * max(1, n_trained)
    return min(wanted, max(1, int(SPEEDS_FRACTION * seconds / turn_seconds)))


class RoundTimes:
    """Division of the minutes of a comparison into rounds.

    Parameters
    ----------
    setting : Setting
    trained : sequence of Candidate
        All candidates that are trained.
    n_jobs : int
        Number of parallel jobs.
    speed_rounds : int
        Number of rounds in which speeds are measured at the end.
    """

    def __init__(
        self, setting: Setting, trained: Sequence[Candidate], n_jobs: int, speed_rounds: int
    ) -> None:
        self.setting = setting
        self.trained = trained
        self.n_jobs = n_jobs
        self.total = setting.stop.total_seconds or 0.0
        #: Seconds reserved for measuring speeds and for scoring all held-out tokens.
        self.reserve = min(TURN_SECONDS * speed_rounds * len(trained), SPEEDS_FRACTION * self.total)
        if setting.is_sampling:
            self.reserve += SCORING_FRACTION * self.total

    def next_seconds(self, active: Sequence[Candidate], seconds: float, left: float) -> float:
        """Return the total seconds of each candidate after the next round, from `seconds` so far.

        The seconds double, or increase by less if the remaining rounds would take more than the
        seconds `left`. The first round gets its fraction of them. The seconds stay the same if
        there is no time for another round.
        """
        step = left / self._n_steps(active, is_first=not seconds)
        step = min(step, seconds) if seconds else TRAINING_FRACTION * step
        target = max(seconds + step, MIN_SECONDS)
        return seconds if target < MIN_GROWTH * seconds else target

    def planned_rounds(self, kept: Sequence[Round]) -> list[PlannedRound]:
        """Return the kept rounds, and the rounds to come if only training takes time."""
        active = list(self.trained)
        left = max(self.total - self.reserve, 0.0)
        rounds: list[PlannedRound] = []
        seconds = 0.0
        for number in itertools.count() if active else ():
            # Kept rounds, then rounds that the remaining time allows
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
            # The candidates that will continue are unknown, but not their number
            active = better_half(active)
        return rounds

    def needed_seconds(self) -> float:
        """Return the minimum seconds of a comparison with a first round of `MIN_SECONDS`."""
        needed = MIN_SECONDS * self._n_steps(self.trained, is_first=True)
        return needed / (TRAINING_FRACTION * (1 - SPEEDS_FRACTION))

    def _n_steps(self, active: Sequence[Candidate], *, is_first: bool) -> float:
        """Return the training time of all remaining rounds, in units of a candidate's next step."""
        n_models = len(distinct_models(active))
        n_active_jobs = len(self.setting.jobs(*active))
        jobs_per_model = n_active_jobs / max(n_models, 1)
        steps = math.ceil(n_active_jobs / self.n_jobs)
        # Each round doubles the seconds so far
        weight = 1 if is_first else 2
        while n_models > LAST_MODELS:
            n_models = math.ceil(n_models / 2)
            steps += math.ceil(n_models * jobs_per_model / self.n_jobs) * weight
            weight *= 2
        return steps


def load_rounds(times: RoundTimes, store: Store) -> Rounds:
    """Return the rounds of the same comparison that the folder contains, if any.

    Warns if the folder contains rounds of other candidates, since all candidates share the time.
    Raises OptionError if the minutes are too few for the first round.
    """
    key = rounds_key(times.setting)
    valid_tokens = times.setting.sample_tokens.valid

    # Rounds of the same comparison continue if their candidates are the same
    kept = store.load(ROUNDS, Rounds)
    before = kept.rounds if kept is not None and kept.key == key else []
    differing: list[str] = []
    if before:
        names = {candidate.name for candidate in times.trained}
        differing = sorted(names ^ set(before[0].candidates))
        if not differing:
            return Rounds(key, valid_tokens, before)

    # New rounds need enough time for all candidates
    needed = times.needed_seconds()
    if times.total < needed:
        raise OptionError(
            f"{times.total / 60:g} minutes are too few for "
            f"{plural(len(times.trained), 'candidate')}; give "
            f"{math.ceil(needed / 0.6) / 100:g} or more, or fewer candidates"
        )
    if differing:
        warnings.warn(
            f"the candidates share {times.total:g} s, so all of them train again, because these "
            f"were added or removed: {', '.join(differing)}; with a limit of seconds or epochs, a "
            "new candidate would train alone",
            stacklevel=2,
        )
    return Rounds(key, valid_tokens)

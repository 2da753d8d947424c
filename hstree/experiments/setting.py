"""The setting of a comparison: the conditions that all its candidates share."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from operator import methodcaller
from typing import Any, NamedTuple

import msgspec

from hstree._files import json_hash
from hstree._options import RANDOM_STATE, checked_count
from hstree._text import brief, one_line
from hstree.data.splits import Splits, overlap, untrained_unk
from hstree.errors import OptionError
from hstree.experiments.candidate import Candidate, Job, parse_candidates
from hstree.experiments.results import Halving, Stop, TokenCounts
from hstree.kernels import numpy_for_short_runs
from hstree.models import BaseModel, config_of, kind_of
from hstree.tree import Tree

#: Maximum number of seeds.
MAX_SEEDS = 100
#: Maximum number of tokens that a job scores of the validation and of the test split with a time
#: limit, and of the training split under every rule.
SAMPLE = 50_000
#: Maximum product of words and tokens that a candidate scores in a split with a time limit, and
#: the minimum number of tokens.
_MAX_SCORES = 2_000_000_000
_MIN_SAMPLE = 5_000


class Budget(NamedTuple):
    """Total seconds of a candidate, and its seconds in the first round."""

    seconds: float
    first_round: float


@dataclass(frozen=True, eq=False)
class Setting:
    """Texts, model, stopping rule and seeds of a comparison.

    `read_setting` creates a setting from the arguments of `hstree.compare` and checks it.

    Attributes
    ----------
    splits : Splits
        Texts over one vocabulary.
    options : dict
        All options of the models except the random state, the epochs and the seconds.
    stop : Epochs, Seconds or Halving
    seeds : range
        Random state of the first model for each seed.
    sample_size : int or None
        Maximum number of tokens that every job scores in a held-out split; None for all tokens.
    """

    splits: Splits
    options: dict[str, Any]
    stop: Stop
    seeds: range
    sample_size: int | None

    @cached_property
    def sample(self) -> Splits:
        """The splits that every job reads, with held-out splits cut to the sample size."""
        if self.sample_size is None:
            return self.splits
        train, valid, test = self.splits
        n = self.sample_size
        return Splits(train, valid.first_tokens(n), test.first_tokens(n))

    @cached_property
    def text_record(self) -> list[Any]:
        """Hashes and lines of `sample`, on which all work in the folder depends."""
        words = json_hash({"words": list(self.splits.train.vocabulary.words)})
        return [
            [part.sha256, list(part.lines), bool(part.source.get("lower")), words]
            for part in self.sample
        ]

    @property
    def sample_tokens(self) -> TokenCounts:
        """Number of tokens in the held-out splits of `sample`."""
        return TokenCounts(len(self.sample.valid), len(self.sample.test))

    @property
    def all_tokens(self) -> TokenCounts:
        """Number of tokens in the held-out splits."""
        return TokenCounts(len(self.splits.valid), len(self.splits.test))

    @property
    def is_sampling(self) -> bool:
        """Whether `sample` excludes held-out tokens."""
        return self.sample_tokens != self.all_tokens

    @property
    def budget(self) -> Budget | None:
        """Budget of a candidate that has all seconds of the rule; None without a time limit."""
        seconds = self.stop.total_seconds
        return None if seconds is None else Budget(seconds, seconds)

    def backend(self) -> AbstractContextManager[None]:
        """Return a context in which all jobs use kernels, or NumPy if the text is short."""
        n_tokens = len(self.splits.train) * self.stop.max_epochs
        # Only kernels can train online
        is_online = bool(self.options.get("online"))
        return numpy_for_short_runs(n_tokens, self.stop.total_seconds, always=is_online)

    def jobs(self, *candidates: Candidate) -> list[Job]:
        """Return the distinct jobs of candidates: for each seed, one job per model.

        An n-gram model has one job for all seeds.
        """
        jobs: dict[Job, None] = {}
        for candidate in candidates:
            n_seeds = len(self.seeds) if candidate.is_trained else 1
            first = self.seeds[0]
            states = range(first, first + n_seeds * candidate.models)
            jobs |= dict.fromkeys(Job(candidate.single, state) for state in states)
        return list(jobs)


def read_setting(
    text: Any,
    candidates: Iterable[Candidate | str | Tree] | None,
    stop: Stop | None,
    seeds: int,
    options: Mapping[str, Any],
) -> tuple[Setting, list[Candidate]]:
    """Check the arguments of `hstree.compare`; return the setting and the candidates.

    Raises OptionError and InputError, as `hstree.compare` does.
    """
    rule = _stopping_rule(stop, options)
    seeds = checked_count("seeds", seeds)
    if seeds > MAX_SEEDS:
        raise OptionError(f"seeds is {brief(seeds)}; it must be 1 to {MAX_SEEDS}")

    # The stopping rule contains the epochs, and the jobs contain the random states
    model_options = config_of(options)
    first_seed = model_options.pop("random_state")
    model_options.pop("epochs")
    parsed = parse_candidates(candidates, model_options)
    last_seed = first_seed + seeds * max(candidate.models for candidate in parsed) - 1
    RANDOM_STATE.checked(last_seed)

    splits = _splits_over_one_vocabulary(text, parsed, kind_of(model_options).model)
    words = splits.train.vocabulary
    for candidate in parsed:
        candidate.check(words, model_options)

    sample_size: int | None = None
    kind = kind_of(model_options)
    kind.model.check_setup(words, model_options | {"seconds": rule.total_seconds})
    if rule.total_seconds is not None:
        if not any(option.name == "seconds" for option in kind.options):
            raise OptionError(
                f"the model {kind.name} cannot be trained with a time limit; use --epochs"
            )
        sample_size = min(SAMPLE, max(_MAX_SCORES // len(words), _MIN_SAMPLE))

    seed_range = range(first_seed, first_seed + seeds)
    return Setting(splits, model_options, rule, seed_range, sample_size), parsed


def _stopping_rule(stop: Stop | None, options: Mapping[str, Any]) -> Stop:
    """Return a checked stopping rule with Python numbers."""
    for name in ("epochs", "seconds", "minutes"):
        if (value := options.get(name)) is not None:
            rule_name = "Halving" if name == "minutes" else name.capitalize()
            raise OptionError(f"{name} is a stopping rule; give stop=hstree.{rule_name}({value})")
    try:
        # Conversion to builtins and back checks the ranges and converts NumPy numbers
        fields = msgspec.to_builtins(
            Halving() if stop is None else stop, enc_hook=methodcaller("item")
        )
        rule: Stop = msgspec.convert(fields, Stop)
    except (msgspec.MsgspecError, AttributeError) as error:
        rules = "hstree.Epochs(20), hstree.Seconds(240) or hstree.Halving(10)"
        raise OptionError(f"stop is {brief(stop)}; give {rules}: {one_line(error)}") from error
    return rule


def _splits_over_one_vocabulary(
    text: Any, candidates: Iterable[Candidate], model: type[BaseModel]
) -> Splits:
    """Return the splits over the training words, or over the labels of the first given tree.

    The splits contain only tokens that the model reads.
    """
    splits = Splits.of(text)
    # A given tree determines the words, unless the user selected them
    trees = [tree for candidate in candidates if (tree := candidate.single.tree) is not None]
    if trees and splits.train.has_automatic_words:
        splits = splits.over_labels(trees[0])
    words = splits.train.vocabulary
    splits = Splits(*(part.with_vocabulary(words) for part in splits))

    for split in splits:
        overlap(split)
    splits = Splits(*map(model.select_tokens, splits))
    if (untrained := untrained_unk(*splits)) is not None:
        warnings.warn(untrained, stacklevel=5)
    return splits

"""Recommendation: the tree, or none, that is expected to be best after some seconds of training.

Candidates are trained for small shares of the budget, those that promise less for fewer of them
(successive halving), and their validation perplexities are extrapolated to the whole budget.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any

from hstree import progress
from hstree._compiled import kernels, n_threads
from hstree._files import hash_of, read_json, write_json
from hstree._options import Range, check_value
from hstree._version import __version__
from hstree.data.corpus import Corpus
from hstree.data.text_score import perplexity
from hstree.errors import FileFormatError, InputError, OptionError, TrainingError
from hstree.experiments.entries import EntryLike, Method, Trained, as_entries
from hstree.experiments.evaluation import Splits
from hstree.experiments.planning import first_lines
from hstree.experiments.results import RunResult, decode
from hstree.experiments.runs import (
    CHECKPOINTS,
    build_seconds,
    content_of,
    kept_result,
    locked,
)
from hstree.experiments.work import Work, sources
from hstree.layers.registry import LayerSpec
from hstree.models import config_of, kind_of, new_model
from hstree.models.base import MOST_EPOCHS
from hstree.tree.statistics import tree_statistics

FORMAT, VERSION = "hstree recommendation", 1
JSON = "recommendation.json"
#: Shares of the budget that candidates are trained for, and how many of them; all at first.
SHARES: tuple[tuple[float, int | None], ...] = (
    (1 / 64, None),
    (1 / 32, None),
    (1 / 16, 3),
    (1 / 8, 2),
)
#: Share of the budget in which a model on a random tree learns vectors.
LEARNING = 0.1
#: Exponent of the learning curve. It predicted the lowest validation perplexities of 89 trainings
#: of 12 to 40 epochs, on the Penn Treebank and Brown's corpus, from those after two and four
#: epochs; 0.8 and 0.9 predict them about as well, smaller ones worse.
EXPONENT = 0.7
#: Standard deviation of the error of those predictions in nats, and the doublings of time that
#: they were over; epochs that they were up to.
ERROR, DOUBLINGS, FARTHEST = 0.01, 2.3, 20
#: Standard deviation over seeds, in nats.
SEEDS = 0.005
#: Tokens of the validation split that trials are scored on.
SCORED = 100_000


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A small training.

    Attributes
    ----------
    share : float
        Share of the budget that it was given.
    seconds, epochs : float
        Length of the training without validations, the last epoch by its share.
    valid : float
        Lowest validation perplexity.
    converged : bool
        Whether it stopped before its time.
    preparation : float
        Seconds in which the layer read the training text before.
    """

    share: float
    seconds: float
    epochs: float
    valid: float
    converged: bool
    preparation: float = 0.0


@dataclass(kw_only=True)
class Candidate:
    """An output layer that may be recommended.

    Attributes
    ----------
    name : str
    key : str
        Hash of the layer, tree and options; trials are kept with it.
    scores : float or None
        Mean number of scores of a target; None where the layer has no tree.
    building : float
        Seconds to build its tree, those of learning vectors included.
    tree : str or None
        File of the tree that was built for it, relative to the folder.
    trials : list of Trial
        The longest last.
    """

    name: str
    key: str
    scores: float | None
    building: float
    tree: str | None = None
    trials: list[Trial] = field(default_factory=list)

    @property
    def before(self) -> float:
        """Seconds before the first batch: of building, and of reading the text for the layer."""
        return self.building + max((trial.preparation for trial in self.trials), default=0.0)

    @property
    def has_converged(self) -> bool:
        """Whether its training stopped by itself."""
        return bool(self.trials) and self.trials[-1].converged

    @property
    def curve(self) -> tuple[float, float]:
        """The curve ``a + b t**-EXPONENT`` of nats after t seconds, through the last two trials."""
        if self.has_converged:
            return math.log(self.trials[-1].valid), 0.0
        level, slope = _through(self.trials[-2:])
        lowest = math.log(min(trial.valid for trial in self.trials))
        return (level, slope) if slope > 0 else (lowest, 0.0)

    def expected(self, seconds: float) -> float:
        """Return the validation perplexity expected after some seconds from the text.

        Nothing more is expected of the epochs after `FARTHEST`.
        """
        level, slope = self.curve
        return math.exp(level + slope * math.pow(self._ahead(seconds), -EXPONENT))

    def seconds_to(self, perplexity: float) -> float:
        """Return the seconds from the text until a perplexity is expected; infinity if never."""
        reached = [trial.seconds for trial in self.trials if trial.valid <= perplexity]
        if reached:
            return self.before + min(reached)
        level, slope = self.curve
        above = math.log(perplexity) - level
        if slope == 0 or above <= 0:
            return math.inf
        ahead = math.pow(slope / above, 1 / EXPONENT)
        return self.before + ahead if ahead <= self._ahead(math.inf) else math.inf

    def error(self, seconds: float) -> float:
        """Return the standard deviation of the error of `expected`, in nats.

        At least that of other seeds, half of what the perplexity is expected to fall from now on,
        and the error of predicting the last trial from the two before it.
        """
        last = self.trials[-1]
        if last.converged:
            return SEEDS
        doublings = math.log2(max(self._ahead(seconds) / last.seconds, 1.0))
        fall = max(0.0, math.log(last.valid / self.expected(seconds)))
        errors = [SEEDS, ERROR * doublings / DOUBLINGS, fall / 2]
        if len(self.trials) > 2:
            level, slope = _through(self.trials[-3:-1])
            predicted = level + slope * math.pow(last.seconds, -EXPONENT)
            errors.append(abs(predicted - math.log(last.valid)))
        return max(errors)

    def _ahead(self, seconds: float) -> float:
        """Return the seconds of training in some seconds from the text, at most `FARTHEST`."""
        last = self.trials[-1]
        farthest = FARTHEST * last.seconds / last.epochs
        return max(min(seconds - self.before, farthest), last.seconds)


def _through(trials: Sequence[Trial]) -> tuple[float, float]:
    """Return a and b of the curve ``a + b t**-EXPONENT`` through two trials.

    b is 0 for a single trial, and where the second is hardly longer than the first.
    """
    last = trials[-1]
    if len(trials) < 2 or last.seconds < 1.5 * trials[0].seconds:
        return math.log(last.valid), 0.0
    before, at_last = (math.pow(trial.seconds, -EXPONENT) for trial in trials)
    slope = (math.log(trials[0].valid) - math.log(last.valid)) / (before - at_last)
    return math.log(last.valid) - slope * at_last, slope


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came true: the recommended layer, trained for the whole budget.

    `seconds` is from the text to the model, `valid` over the tokens that trials were scored on,
    `test` over the whole test split; `model` is its folder, relative to the recommendation's.
    """

    name: str
    key: str
    seconds: float
    valid: float
    test: float | None
    model: str


@dataclass(kw_only=True)
class Recommendation:
    """What to build, what to expect of it, and how sure that is.

    Attributes
    ----------
    seconds : float
        Budget from the text to the trained model.
    key : str
        Hash of the texts, the model, the budget, kernels and threads.
    scored : int
        Tokens of the validation split that trials are scored on: the first ones.
    scores, target_ppl : float or None
        Most scores of a target, and the wanted validation perplexity, where they were given.
    candidates : list of Candidate
        The recommended one first, then those that were tried for as long or converged, in the
        order of their promise, then the others.
    left_out : dict of str to str
        Candidates that were not tried, or not to the end, and why.
    outcome : Outcome or None
        None before the recommended layer is trained.
    """

    seconds: float
    key: str
    scored: int = 0
    scores: float | None = None
    target_ppl: float | None = None
    candidates: list[Candidate] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    outcome: Outcome | None = None

    @property
    def best(self) -> Candidate:
        """The recommended candidate."""
        return self.candidates[0]

    @property
    def expected(self) -> float:
        """Validation perplexity that is expected of it at the end of the budget."""
        return self.best.expected(self.seconds)

    @property
    def interval(self) -> tuple[float, float]:
        """Two standard deviations of the error below and above the expected perplexity."""
        factor = math.exp(2 * self.best.error(self.seconds))
        return self.expected / factor, self.expected * factor

    @property
    def rival(self) -> tuple[Candidate, float] | None:
        """The candidate that is most likely better after all, and the chance that it is not.

        None where there is no other.
        """
        chances = [(self._chance(other), number) for number, other in enumerate(self.candidates)]
        if len(chances) < 2:
            return None
        chance, number = min(chances[1:])
        return self.candidates[number], chance

    def _chance(self, other: Candidate) -> float:
        error = math.hypot(self.best.error(self.seconds), other.error(self.seconds))
        gain = math.log(other.expected(self.seconds) / self.expected)
        return NormalDist(0, error).cdf(gain)

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``recommendation.json``: these fields, and what they come to."""
        document = {"format": FORMAT, "version": VERSION, **asdict(self)}
        if not all(candidate.trials for candidate in self.candidates) or not self.candidates:
            return document
        for record, candidate in zip(document["candidates"], self.candidates, strict=True):
            record["expected"] = candidate.expected(self.seconds)
        rival = self.rival
        return {
            **document,
            "expected": self.expected,
            "interval": list(self.interval),
            "rival": None if rival is None else {"name": rival[0].name, "chance": rival[1]},
        }

    def save(self, folder: Path) -> None:
        """Write ``recommendation.json``."""
        write_json(folder / JSON, self.as_dict())


def default_candidates(n_words: int, *, with_contexts: bool = True) -> list[Method]:
    """Return the candidates for a vocabulary: codes, learned trees, classes, mixtures, and flat.

    `with_contexts` is whether the model gives layers the words before a target, for n-gram
    features.
    """
    root = math.sqrt(n_words)
    four = {
        "cluster_by": "vectors",
        "short_list": min(int(5 * root), n_words // 4),
        "n_classes": max(2, int(0.6 * root)),
        "trees": 4,
    }
    plain = [
        Method("huffman"),
        Method("gmm"),
        Method("gmm", {"epsilon": 0.4, "trees": 4}),
        Method("classes"),
        Method("classes", four),
        Method("flat"),
    ]
    of_both = (Method("classes", options, layer="ngrams") for options in ({}, four))
    return [*plain, *of_both] if with_contexts else plain


def recommend(
    text: Splits | Corpus,
    folder: str | os.PathLike[str],
    *,
    seconds: float = 600.0,
    scores: float | None = None,
    target_ppl: float | None = None,
    candidates: Sequence[EntryLike] | None = None,
    train: bool = False,
    updated: Callable[[Recommendation], object] | None = None,
    **options: Any,
) -> Recommendation:
    """Find out by small trainings which output layer to train.

    Every candidate is trained for 1/64 and 1/32 of the budget, the three that promise most for
    1/16, the two that still do for 1/8. Finished trials are kept.

    Parameters
    ----------
    text : Splits or Corpus
        A corpus is split by `hstree.experiments.evaluation.corpus_splits`.
    folder : path
        Gets ``recommendation.json``, the trees, and the vectors' model.
    seconds : float, default 600
        Budget from the text to the trained model: learning vectors, building, training.
    scores : float, optional
        Leave out candidates with more scores of a target.
    target_ppl : float, optional
        Recommend what is expected to reach this validation perplexity first, if any does within
        the budget, instead of what is expected to be best at its end.
    candidates : sequence, optional
        Entries as those of `hstree.compare`, but no baselines; by default `default_candidates`.
    train : bool, default False
        Whether to train the recommended layer for the rest of the budget, and report what came
        true.
    updated : callable, optional
        Called with the recommendation so far after every trial.
    **options
        Options of `hstree.models.new_model` but `epochs` and `seconds`.

    Returns
    -------
    Recommendation

    Raises
    ------
    OptionError
        When an option is invalid, or no candidate has so few scores.
    InputError
        When another process works in the folder, or it has a recommendation of something else.

    Notes
    -----
    The negative log-likelihood after t seconds of training is taken as ``a + b t**-0.7``, through
    a candidate's last two trials.

    References
    ----------
    K. Jamieson & A. Talwalkar, "Non-stochastic best arm identification and hyperparameter
    optimization", AISTATS 2016 (successive halving).
    """
    above_zero = Annotated[float, Range(0, exclude_min=True)]
    check_value("seconds", seconds, above_zero)
    for name, value in (("scores", scores), ("target_ppl", target_ppl)):
        if value is not None:
            check_value(name, value, above_zero)
    splits = Splits.of(text)
    if candidates is None:
        with_contexts = kind_of(config_of(options)).model.is_language_model
        candidates = default_candidates(len(splits.train.vocabulary), with_contexts=with_contexts)
    named = as_entries(candidates)
    entries = [entry for entry in named if isinstance(entry, Trained)]
    for entry in named:
        if not isinstance(entry, Trained):
            raise OptionError(
                f"{entry.name} is not one output layer; name methods, trees and layers alone"
            )
    learning = {**options, "epochs": MOST_EPOCHS, "seconds": LEARNING * seconds}
    work = replace(Work.of(splits, entries, folder, 1, learning), score_train=False)
    record = {
        "hstree": __version__, "model": work.config, "seed": work.seeds[0], "seconds": seconds,
        "parts": content_of(splits), "kernels": kernels(), "threads": n_threads(),
    }  # fmt: skip
    with locked(work.home):
        kept = _kept(work.home, hash_of(record))
        new = Recommendation(
            seconds=seconds, key=hash_of(record), scores=scores, target_ppl=target_ppl
        )
        search = _Search(work, entries, new, [] if kept is None else kept.candidates, updated)
        search.run()
        if kept is not None and kept.outcome is not None:
            search.keep(kept.outcome)
        if train:
            search.train()
    return new


def _kept(folder: Path, key: str) -> Recommendation | None:
    """Return the recommendation in a folder, None without one; InputError if it is another."""
    file = folder / JSON
    if not file.exists():
        return None
    try:
        kept = decode(read_json(file, "remove it"), Recommendation)
    except FileFormatError as error:
        said = f"{error}" if f"{error}".startswith(f"{file}") else f"{file}: {error}; remove it"
        raise FileFormatError(said) from error
    trials = [trial for candidate in kept.candidates for trial in candidate.trials]
    if any(min(trial.valid, trial.seconds, trial.epochs) <= 0 for trial in trials):
        raise FileFormatError(f"{file} has a trial whose figures are not above 0; remove it")
    if kept.key != key:
        raise InputError(
            f"{folder} has a recommendation for another text, model, budget, version or number of "
            "threads; choose another folder, or remove it"
        )
    return kept


@dataclass
class _Search:
    """The trials of the candidates."""

    work: Work
    entries: Sequence[Trained]
    found: Recommendation
    kept: Sequence[Candidate]  #: with trials that were done before
    updated: Callable[[Recommendation], object] | None

    @cached_property
    def specs(self) -> dict[str, LayerSpec]:
        """The output layers by name; trees are built, and vectors learned for them."""
        with progress.task("building", len(self.entries)) as task:
            specs = {}
            for entry in self.entries:
                task.note(entry.name)
                specs[entry.name] = self.work.spec(entry, self.work.seeds[0])
                task.advance()
        return specs

    @cached_property
    def scored(self) -> Corpus:
        """The part of the validation split that trials are scored on."""
        return first_lines(self.work.splits.valid, SCORED)

    def run(self) -> None:
        """Do the trials that are missing; put the candidates in the order of their promise."""
        found, n = self.found, len(self.entries)
        self._add_candidates()
        found.scored = len(self.scored)
        sizes = [n if most is None else min(n, most) for _, most in SHARES]
        shares = sum(size * share for size, (share, _) in zip(sizes, SHARES, strict=True))
        with progress.task("trials", shares * found.seconds, "s") as task:
            for (share, _), size in zip(SHARES, sizes, strict=True):
                for candidate in self._chosen(share, size):
                    task.note(candidate.name)
                    self._try(candidate, share)
                    task.advance(share * found.seconds)
        longest = SHARES[-1][0]

        def order(candidate: Candidate) -> tuple[bool, float, float]:
            last = candidate.trials[-1]
            was_left = last.share < longest and not last.converged
            return was_left, *self._promise(candidate, longest)

        found.candidates.sort(key=order)
        found.save(self.work.home)

    def keep(self, outcome: Outcome) -> None:
        """Keep what came true before, if the same layer is recommended."""
        if (outcome.name, outcome.key) == (self.found.best.name, self.found.best.key):
            self.found.outcome = outcome
            self.found.save(self.work.home)

    def train(self) -> None:
        """Train the recommended layer for the rest of the budget, if that is not done."""
        found, seed = self.found, self.work.seeds[0]
        best = found.best
        entry = next(entry for entry in self.entries if entry.name == best.name)
        left = {"seconds": found.seconds - best.before}
        work = replace(self.work, runs="trained", trees=self.work).with_options(left)
        result = work.train(entry, seed)
        of_tokens = work.nlls(entry, "valid")[0][: len(self.scored)]
        found.outcome = Outcome(
            name=best.name,
            key=best.key,
            seconds=best.building + _training_seconds(result),
            valid=perplexity(float(of_tokens.sum()), len(of_tokens)),
            test=result.perplexity["test"],
            model=f"{work.relative_folder(entry, seed)}/model",
        )
        found.save(self.work.home)

    def _add_candidates(self) -> None:
        """Add the candidates within the limits, with the trials that are kept of them."""
        found = self.found
        trials = {(one.name, one.key): one.trials for one in self.kept}
        for entry in self.entries:
            one = self._candidate(entry)
            if one.building >= found.seconds:
                found.left_out[one.name] = f"building takes {one.building:,.1f} s"
            elif found.scores is not None and one.scores is None:
                found.left_out[one.name] = "it has no tree whose scores could be counted"
            elif found.scores is not None and (one.scores or 0) > found.scores:
                found.left_out[one.name] = f"it computes {one.scores:,.1f} scores a target"
            else:
                found.candidates.append(replace(one, trials=trials.get((one.name, one.key), [])))
        self._check_left()

    def _check_left(self) -> None:
        """Refuse to go on without a candidate; raises OptionError."""
        if not self.found.candidates:
            reasons = "; ".join(f"{name}: {why}" for name, why in self.found.left_out.items())
            raise OptionError(f"no candidate is left: {reasons}")

    def _candidate(self, entry: Trained) -> Candidate:
        spec, seed = self.specs[entry.name], self.work.seeds[0]
        key, building = hash_of(spec.key()), self._building(entry)
        if spec.tree is None:
            return Candidate(name=entry.name, key=key, scores=None, building=building)
        counts = self.work.splits.train.with_vocabulary(spec.vocabulary).counts
        scores = tree_statistics(spec.tree, counts).scores_per_target
        is_built = isinstance(entry, Method)
        file = f"{self.work.relative_folder(entry, seed)}/tree.json" if is_built else None
        return Candidate(name=entry.name, key=key, scores=scores, building=building, tree=file)

    def _building(self, entry: Trained) -> float:
        """Return the seconds to build a tree, those of learning vectors included."""
        if not isinstance(entry, Method):
            return 0.0
        folder = self.work.folder(entry, self.work.seeds[0])
        seconds = build_seconds(folder, self.specs[entry.name].sha256) or 0.0
        for source in sources([entry]):
            folder = self.work.folder(source, self.work.seeds[0])
            learned = kept_result(folder)
            if learned is not None and learned.tree is not None:
                seconds += build_seconds(folder, learned.tree.sha256) or 0.0
                seconds += _training_seconds(learned)
        return seconds

    def _chosen(self, share: float, size: int) -> list[Candidate]:
        """Return the candidates of most promise so far that have not converged."""
        candidates, before = self.found.candidates, share / 2
        if all(_known(candidate, before).trials for candidate in candidates):
            candidates = sorted(candidates, key=lambda one: self._promise(one, before))
        return [one for one in candidates if not _known(one, before).has_converged][:size]

    def _try(self, candidate: Candidate, share: float) -> None:
        """Train a candidate for a share of the budget, unless that is done."""
        if any(trial.share >= share for trial in candidate.trials):
            return
        home = self.work.home
        seconds = share * self.found.seconds
        options = {**self.work.config, "seconds": seconds, "random_state": self.work.seeds[0]}
        model = new_model(self.specs[candidate.name], **options)
        folder = home / CHECKPOINTS / f"{candidate.key[:16]}-{share:g}"
        try:
            history = model.fit(self.work.splits.train, self.scored, checkpoints=folder).history_
        except TrainingError as error:
            self.found.candidates.remove(candidate)
            self.found.left_out[candidate.name] = f"{error}"
            self._check_left()
            return
        if history.interrupted:
            raise KeyboardInterrupt
        valid = min(epoch.valid for epoch in history.epochs if epoch.valid is not None)
        candidate.trials.append(
            Trial(
                share=share,
                seconds=history.seconds,
                epochs=sum(epoch.share for epoch in history.epochs),
                valid=valid,
                converged=history.converged,
                preparation=history.preparation,
            )
        )
        self.found.save(home)
        model.remove_checkpoints()
        if self.updated is not None:
            self.updated(self.found)

    def _promise(self, candidate: Candidate, share: float) -> tuple[float, float]:
        """Return what candidates are ordered by, as far as trials of up to a share tell."""
        known, found = _known(candidate, share), self.found
        expected = known.expected(found.seconds)
        if found.target_ppl is None:
            return 0.0, expected
        reached = known.seconds_to(found.target_ppl)
        return (reached if reached <= found.seconds else math.inf), expected


def _known(candidate: Candidate, share: float) -> Candidate:
    """Return a candidate with its trials of up to a share of the budget."""
    return replace(candidate, trials=[t for t in candidate.trials if t.share <= share])


def _training_seconds(result: RunResult) -> float:
    """Return the seconds of a training and of its preparation, without validation and scoring."""
    return (result.preparation or 0.0) + sum(epoch.seconds for epoch in result.epochs or [])

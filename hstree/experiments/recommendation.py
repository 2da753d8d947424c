"""Recommendation: the tree, or none, that is expected to be best after some seconds of training.

Candidates are trained for small shares of the budget, those that promise less for fewer of them
(successive halving), and their validation perplexities are extrapolated to the whole budget.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any

from hstree import progress
from hstree._files import hash_of, read_json, write_json
from hstree._options import Range, check_value
from hstree._version import __version__
from hstree.data.corpus import Corpus
from hstree.data.text_score import perplexity
from hstree.errors import InputError, OptionError
from hstree.experiments.entries import EntryLike, Method, Trained, as_entries, trained_of
from hstree.experiments.evaluation import Splits
from hstree.experiments.results import decode
from hstree.experiments.runs import build_seconds, kept_result, locked
from hstree.experiments.work import RANDOM, Work
from hstree.layers.registry import LayerSpec
from hstree.models import new_model
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
#: Exponent of the learning curve: of 174 trainings of 12 to 40 epochs on three corpora, this one
#: predicted the lowest validation perplexity best from those after two and four epochs.
EXPONENT = 0.7
#: Standard deviation of the error of those predictions in nats, and the doublings of time that
#: they were over.
ERROR, DOUBLINGS = 0.01, 2.3
#: Tokens of the validation split that trials are scored on.
SCORED = 100_000


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A small training.

    Attributes
    ----------
    share : float
        Of the budget.
    seconds : float
        Of training, without validations.
    valid : float
        Lowest validation perplexity.
    converged : bool
        Whether it stopped before its time.
    """

    share: float
    seconds: float
    valid: float
    converged: bool


@dataclass(kw_only=True)
class Candidate:
    """An output layer that may be recommended.

    Attributes
    ----------
    name : str
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
    scores: float | None
    building: float
    tree: str | None = None
    trials: list[Trial] = field(default_factory=list)

    @property
    def curve(self) -> tuple[float, float]:
        """The curve ``a + b t**-EXPONENT`` of nats after t seconds, through the last two trials."""
        lowest = math.log(min(trial.valid for trial in self.trials))
        if len(self.trials) < 2 or self.trials[-1].converged:
            return lowest, 0.0
        level, slope = _through(*self.trials[-2:])
        return (level, slope) if math.isfinite(slope) and slope > 0 else (lowest, 0.0)

    def expected(self, seconds: float) -> float:
        """Return the validation perplexity expected after some seconds from the text."""
        left = max(seconds - self.building, self.trials[-1].seconds)
        level, slope = self.curve
        return math.exp(level + slope * math.pow(left, -EXPONENT))

    def seconds_to(self, perplexity: float) -> float:
        """Return the seconds from the text until a perplexity is expected; infinity if never."""
        level, slope = self.curve
        above = math.log(perplexity) - level
        if slope == 0:
            reached = [t.seconds for t in self.trials if t.valid <= perplexity]
            return self.building + min(reached) if reached else math.inf
        return self.building + math.pow(slope / above, 1 / EXPONENT) if above > 0 else math.inf

    def error(self, seconds: float) -> float:
        """Return the standard deviation of the error of `expected`, in nats.

        At least as large as the error of predicting the last trial from the two before it.
        """
        last = self.trials[-1]
        if last.converged:
            return 0.0
        doublings = math.log2(max((seconds - self.building) / last.seconds, 1.0))
        usual = ERROR * doublings / DOUBLINGS
        if len(self.trials) < 3:
            return usual
        level, slope = _through(*self.trials[-3:-1])
        return max(
            usual, abs(level + slope * math.pow(last.seconds, -EXPONENT) - math.log(last.valid))
        )


def _through(one: Trial, two: Trial) -> tuple[float, float]:
    """Return a and b of the curve ``a + b t**-EXPONENT`` through two trials."""
    at_one, at_two = (math.pow(trial.seconds, -EXPONENT) for trial in (one, two))
    slope = (math.log(one.valid) - math.log(two.valid)) / (at_one - at_two)
    return math.log(two.valid) - slope * at_two, slope


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came true: the recommended layer, trained for the whole budget.

    `valid` is over the tokens that trials were scored on, `test` over the whole test split.
    """

    seconds: float
    valid: float
    test: float | None


@dataclass(kw_only=True)
class Recommendation:
    """What to build, what to expect of it, and how sure that is.

    Attributes
    ----------
    seconds : float
        Budget from the text to the trained model.
    scores, target : float or None
        Most scores of a target, and the wanted validation perplexity, where they were given.
    candidates : list of Candidate
        In the order of their promise, the recommended one first.
    outcome : Outcome or None
    model : str or None
        Folder of the trained model, relative to that of the recommendation. Both are None before
        the recommended layer is trained.
    """

    seconds: float
    scores: float | None = None
    target: float | None = None
    candidates: list[Candidate] = field(default_factory=list)
    outcome: Outcome | None = None
    model: str | None = None
    key: str = ""

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
        """Limits between which 95% of such predictions were: two standard deviations."""
        factor = math.exp(2 * self.best.error(self.seconds))
        return self.expected / factor, self.expected * factor

    @property
    def chance(self) -> float | None:
        """Chance that it is better than the next candidate; None where there is no other."""
        if len(self.candidates) < 2:
            return None
        one, two = self.candidates[:2]
        error = math.hypot(one.error(self.seconds), two.error(self.seconds))
        gain = math.log(two.expected(self.seconds) / one.expected(self.seconds))
        return NormalDist(0, max(error, 1e-9)).cdf(gain)

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``recommendation.json``."""
        return {"format": FORMAT, "version": VERSION, **asdict(self)}

    def save(self, folder: Path) -> None:
        """Write ``recommendation.json``."""
        write_json(folder / JSON, self.as_dict())


def default_candidates(n_words: int) -> list[tuple[str, dict[str, Any]]]:
    """Return the candidates for a vocabulary: codes, learned trees, classes, mixtures, and flat."""
    root = math.sqrt(n_words)

    def listed(words: float, classes: float) -> dict[str, Any]:
        short_list = min(int(words * root), n_words // 4)
        return {
            "cluster_by": "vectors",
            "short_list": short_list,
            "n_classes": max(2, int(classes * root)),
        }

    wide, half = listed(10, 0.5), listed(5, 0.6)
    return [
        ("huffman", {}),
        ("gmm", {}),
        ("gmm", {"epsilon": 0.4, "trees": 4}),
        ("classes", {}),
        ("classes", wide),
        ("classes", half | {"trees": 2}),
        ("classes", half | {"trees": 4}),
        ("flat", {}),
    ]


def recommend(
    text: Splits | Corpus,
    folder: str | os.PathLike[str],
    *,
    seconds: float = 600.0,
    scores: float | None = None,
    target: float | None = None,
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
    target : float, optional
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
    for name, value in (("scores", scores), ("target", target)):
        if value is not None:
            check_value(name, value, above_zero)
    splits = Splits.of(text)
    given = default_candidates(len(splits.train.vocabulary)) if candidates is None else candidates
    named = as_entries(given)
    entries = trained_of(named)
    if len(entries) < len(named):
        raise OptionError("a baseline is no output layer; name methods, trees and layers alone")
    learning = {**options, "epochs": MOST_EPOCHS, "seconds": LEARNING * seconds}
    work = replace(Work.of(splits, entries, folder, 1, learning), score_train=False)
    record = {
        "hstree": __version__, "model": work.config, "seed": work.seeds[0],
        "texts": [[part.sha256, list(part.lines)] for part in splits.as_dict().values()],
        "words": splits.train.vocabulary.sha256, "candidates": [e.slug for e in entries],
        "limits": [seconds, scores, target],
    }  # fmt: skip
    new = Recommendation(seconds=seconds, scores=scores, target=target, key=hash_of(record))
    with locked(work.home):
        kept = _kept(work.home, new)
        found = _Search(work, entries, kept, updated)
        found.run()
        if train:
            found.train()
    return found.recommendation


def _kept(folder: Path, new: Recommendation) -> Recommendation:
    """Return what a folder holds of a recommendation; InputError if it is another one."""
    if not (folder / JSON).exists():
        return new
    kept = decode(read_json(folder / JSON, "remove it"), Recommendation)
    if kept.key != new.key:
        raise InputError(
            f"{folder} has a recommendation for another text, budget, model or version; choose "
            "another folder, or remove it"
        )
    return kept


@dataclass
class _Search:
    """The trials of the candidates."""

    work: Work
    entries: Sequence[Trained]
    recommendation: Recommendation
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
        valid = self.work.splits.valid
        lines = valid.n_lines * SCORED // max(SCORED, len(valid))
        return valid.select_lines(0, max(1, lines))

    def run(self) -> None:
        """Do the trials that are missing; put the candidates in the order of their promise."""
        found = self.recommendation
        candidates = self._candidates()
        done = {candidate.name: candidate.trials for candidate in found.candidates}
        candidates = [replace(c, trials=done.get(c.name, [])) for c in candidates]
        found.candidates = candidates
        sizes = [len(candidates[:most]) for _, most in SHARES]
        shares = sum(size * share for size, (share, _) in zip(sizes, SHARES, strict=True))
        with progress.task("trials", shares * found.seconds, "s") as task:
            for (share, _), size in zip(SHARES, sizes, strict=True):
                for candidate in found.candidates[:size]:
                    task.note(candidate.name)
                    self._try(candidate, share)
                    task.advance(share * found.seconds)
                promise = partial(self._promise, share=share)
                found.candidates[:size] = sorted(found.candidates[:size], key=promise)
        found.save(self.work.home)

    def train(self) -> None:
        """Train the recommended layer for the rest of the budget, if that is not done."""
        found, seed = self.recommendation, self.work.seeds[0]
        entry = next(entry for entry in self.entries if entry.name == found.best.name)
        left = max(found.seconds - found.best.building, 1.0)
        work = replace(self.work, runs="trained", trees=self.work).with_options({"seconds": left})
        result = work.train(entry, seed)
        of_tokens = work.nlls(entry, "valid")[0][: len(self.scored)]
        valid = perplexity(float(of_tokens.sum()), len(of_tokens))
        trained = result.seconds + found.best.building
        found.outcome = Outcome(seconds=trained, valid=valid, test=result.perplexity["test"])
        found.model = work.relative_folder(entry, seed) + "/model"
        found.save(self.work.home)

    def _candidates(self) -> list[Candidate]:
        """Return the candidates within the limit of scores, without trials."""
        every = [self._candidate(entry) for entry in self.entries]
        limit = self.recommendation.scores
        within = [c for c in every if limit is None or (c.scores is not None and c.scores <= limit)]
        if not within:
            least = min((c.scores for c in every if c.scores is not None), default=math.nan)
            raise OptionError.about(
                "scores", f"is {limit:g}; the least that a candidate has is {least:,.1f}"
            )
        return within

    def _candidate(self, entry: Trained) -> Candidate:
        spec, folder = self.specs[entry.name], self.work.folder(entry, self.work.seeds[0])
        if spec.tree is None:
            return Candidate(name=entry.name, scores=None, building=0.0)
        counts = self.work.splits.train.with_vocabulary(spec.vocabulary).counts
        scores = tree_statistics(spec.tree, counts).scores_per_target
        building = build_seconds(folder, spec.tree.sha256) or 0.0
        if isinstance(entry, Method) and entry.needs_vectors:
            source = entry.vectors_from or RANDOM
            learned = kept_result(self.work.folder(source, self.work.seeds[0]))
            building += 0.0 if learned is None else learned.seconds
        file = None
        if isinstance(entry, Method):
            file = self.work.relative_folder(entry, self.work.seeds[0]) + "/tree.json"
        return Candidate(name=entry.name, scores=scores, building=building, tree=file)

    def _try(self, candidate: Candidate, share: float) -> None:
        """Train a candidate for a share of the budget, unless that is done or it converged."""
        done = any(trial.share >= share or trial.converged for trial in candidate.trials)
        if done:
            return
        seconds = share * self.recommendation.seconds
        options = {**self.work.config, "seconds": seconds, "random_state": self.work.seeds[0]}
        model = new_model(self.specs[candidate.name], **options)
        history = model.fit(self.work.splits.train, self.scored).history_
        if history.interrupted:
            raise KeyboardInterrupt
        valid = min(epoch.valid for epoch in history.epochs if epoch.valid is not None)
        candidate.trials.append(
            Trial(share=share, seconds=history.seconds, valid=valid, converged=history.converged)
        )
        self.recommendation.save(self.work.home)
        if self.updated is not None:
            self.updated(self.recommendation)

    def _promise(self, candidate: Candidate, share: float) -> tuple[float, float]:
        """Return what candidates are ordered by, as far as trials of up to a share tell."""
        found = self.recommendation
        known = [trial for trial in candidate.trials if trial.share <= share]
        candidate = replace(candidate, trials=known)
        expected = candidate.expected(found.seconds)
        if found.target is None:
            return 0.0, expected
        reached = candidate.seconds_to(found.target)
        return (reached if reached <= found.seconds else math.inf), expected

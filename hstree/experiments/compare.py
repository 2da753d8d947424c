"""Comparison of rows: the same model trained with each, under the same stopping rule.

Every row gets the same text, starting vectors, batches and schedule, so that what differs is the
output layer. `hstree.experiments.run` keeps finished jobs, so that a comparison goes on where it
stopped, and a new row costs only its own training.
"""

from __future__ import annotations

import math
import os
import platform
import shlex
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from scipy.optimize import minimize_scalar

from hstree import progress
from hstree._compiled import kernels
from hstree._files import hash_of
from hstree._options import Option, RandomState, Range
from hstree._typing import Bool, Float64, Int64
from hstree._version import __version__
from hstree.data.corpus import Corpus
from hstree.data.splits import SPLITS, Split, Splits, overlap
from hstree.data.text_score import perplexity, unigram_score
from hstree.data.vocabulary import Vocabulary
from hstree.errors import HstreeError, InputError, OptionError
from hstree.experiments import results, speed
from hstree.experiments.results import (
    SAMPLE,
    SCORED,
    Band,
    Choice,
    Comparison,
    Context,
    Count,
    Epochs,
    Figures,
    Halving,
    JobFigures,
    JobResult,
    LengthCount,
    Mixture,
    NormaliserFigures,
    Positive,
    Published,
    RowResult,
    Scored,
    Speed,
    Spread,
    Steps,
    Stop,
    TreeFigures,
    VocabularyFigures,
    WordFigures,
    WordTable,
    finite,
)
from hstree.experiments.row import DEFAULT, Job, Row, TreeRow, parse_rows
from hstree.experiments.run import MODEL, Held, Runner, content_of, locked
from hstree.experiments.significance import paired_ratio
from hstree.models import Model, config_of, kind_of
from hstree.models import load as load_model
from hstree.models.ensemble import mean_probability
from hstree.tree import Tree, load
from hstree.tree.codes import Codes
from hstree.tree.files import ENDINGS
from hstree.tree.statistics import tree_statistics

#: Greatest relative distance to the lowest validation perplexity of a row that is nearly as good.
WITHIN = 0.03
#: Maximum number of seeds.
MAX_SEEDS = 100
#: Share of the minutes of `Halving` that training may take in the first round's reckoning; scoring,
#: speeds and n-gram models take the rest.
_SHARE = 0.75
#: Greatest product of words and tokens that a row scores of a held-out split in a bounded time.
_MOST_SCORES = 2_000_000_000
#: Smallest training count of each band; a first band has the words that never occur.
_BAND_STARTS = 10 ** np.arange(18)
#: Name of the test tokens that are out of vocabulary, which are one word to the models.
OOV = "out of vocabulary"
#: Number of words at either end, of contexts of each, and of words in a context; places looked at.
_MOST_WORDS, _CONTEXTS, _BEFORE, _TRIED = 10, 2, 6, 50

#: Published ratios to the full softmax by layer: of other texts, models and budgets.
_PUBLISHED = {
    "adaptive": Published(low=0.99, high=1.02, source="Grave et al. 2017"),
    "differentiated": Published(low=0.98, high=1.02, source="Chen et al. 2016"),
    "target": Published(low=1.0, high=1.01, source="Jean et al. 2015"),
    "sampled": Published(low=1.0, high=1.01, source="Jean et al. 2015"),
    "nce": Published(
        low=1.045, high=1.045, source="Mnih & Teh 2012", remark="others report 1.10 to 1.19"
    ),
    "self-normalised": Published(low=1.005, high=1.005, source="Devlin et al. 2014"),
    "infrequent": Published(low=1.005, high=1.005, source="Andreas & Klein 2015"),
}


def compare(
    text: Splits | Corpus,
    rows: Iterable[Row | str | Tree] | None,
    folder: str | os.PathLike[str],
    *,
    stop: Stop | None = None,
    seeds: int = 1,
    within: float = WITHIN,
    speed_rounds: int = speed.ROUNDS,
    only: bool = False,
    force: bool = False,
    updated: Callable[[Comparison], object] | None = None,
    **options: Any,
) -> Comparison:
    """Train the same model with several output layers; report costs and perplexities of each.

    Parameters
    ----------
    text : Splits or Corpus
        Splits over one vocabulary, or a corpus to split by `Splits.of`. Trees are built from
        the training split alone.
    rows : iterable of str, Row or Tree, optional
        Rows as `Row.parse` reads them: "huffman", "gmm epsilon=0.4", "classes + ngrams",
        "2 x flat", "kn5", a tree's file, or a named set, "trees" or "approximations"; by default
        `hstree.experiments.row.DEFAULT`.
    folder : path
        Made if it is missing; locked during the comparison. Gets ``trees``, ``runs``,
        ``words.tsv``, ``results.json`` and ``results.csv``.
    stop : Epochs, Seconds or Halving, optional
        When trainings stop; ten minutes by halving by default. Where the time is bounded,
        validation and test are samples of at most 50,000 tokens.
    seeds : int, default 1
        Number of random states, from `random_state` on. Each has its own random trees, starting
        vectors and batches, the same for all rows.
    within : float, default 0.03
        How far above the lowest validation perplexity the chosen row may be, as a share of it.
    speed_rounds : int, default 3
        Number of turns of each row in which speeds are measured; 0 for none.
    only : bool, default False
        Whether to leave out the other rows of a comparison that the folder holds.
    force : bool, default False
        Whether to replace a comparison of another text, model or rule that the folder holds.
    updated : callable, optional
        Called with the comparison so far when its files have got another row.
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
    Option.of("within", Annotated[float, Range(0)]).checked(within)
    subject = Subject.of(text, rows, folder, stop, seeds, options)
    with locked(subject.home):
        subject = subject.with_kept(only=only, force=force)
        subject.splits.train.counted_vocabulary().save(subject.home / results.WORDS)
        return subject.compared(within, speed_rounds, updated)


class PlannedJob(NamedTuple):
    """A job of a comparison, and the seconds that it took if it is finished."""

    row: str
    seed: int
    seconds: float | None


def plan_of(
    text: Splits | Corpus,
    rows: Iterable[Row | str | Tree] | None,
    folder: str | os.PathLike[str],
    *,
    stop: Stop | None = None,
    seeds: int = 1,
    only: bool = False,
    force: bool = False,
    **options: Any,
) -> list[PlannedJob]:
    """Return the jobs of a comparison; parameters and errors are those of `compare`."""
    subject = Subject.of(text, rows, folder, stop, seeds, options)
    subject = subject.with_kept(only=only, force=force)
    runner, planned = subject.runner(None), []
    for job in subject.jobs():
        result = runner.kept(runner.folder(job))
        steps = () if result is None else msgspec.structs.astuple(result.steps)
        seconds = None if result is None else sum(step or 0.0 for step in steps)
        planned.append(PlannedJob(str(job.row), job.seed, seconds))
    return planned


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
    text: Splits | Corpus,
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
    text : Splits or Corpus
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
    one = Row.of(row)
    if one.models > 1 or not one.is_trained:
        raise OptionError(f"{one} is not one model to train; compare takes it")
    splits = Splits.of(text)
    if isinstance(one, TreeRow):  # its labels are the vocabulary
        words = Vocabulary(one.tree.labels, [0] * one.tree.n_labels)
        splits = Splits(*(part.with_vocabulary(words) for part in splits))
    subject = Subject.of(splits, [one], folder, stop or Epochs(), 1, options)
    trainings: list[Model[Any]] = []

    def keep(model: Model[Any]) -> None:
        trainings.append(model)
        if trained is not None:
            trained(model)

    with locked(subject.home):
        runner = subject.runner(subject.stop.total_seconds, score_train=True)
        job = Job(one, subject.seeds[0])
        result = runner.run(job, trained=keep, **subject.limit(runner.first_seconds))
        comparison = Table(subject, runner, {one: [[result]]}, {}).comparison([one], WITHIN)
        model = trainings[0] if trainings else load_model(runner.folder(job) / MODEL)
    return Evaluation(model, comparison, result.train, result.interrupted)


# What is compared


class _Kept(Figures, frozen=True):
    """What tells whether another comparison may go on in a folder."""

    corpus: dict[str, dict[str, Any]]
    vocabulary: VocabularyFigures
    options: dict[str, Any]
    stop: Stop
    seeds: list[Count]


class _Round(Figures, frozen=True):
    """A round of halving: rows that train until some seconds from the text, and their scores."""

    seconds: Positive
    rows: list[str]
    valid: dict[str, float] = msgspec.field(default_factory=dict)


class _Rounds(Figures, frozen=True):
    """Rounds of halving, as ``rounds.json`` holds them; `key` is a hash of what they are of."""

    key: str
    rounds: list[_Round] = msgspec.field(default_factory=list)


@dataclass(frozen=True)
class Subject:
    """What a comparison is of: its text, rows, rule, seeds and model, all checked."""

    splits: Splits
    home: Path
    rows: list[Row]
    stop: Stop
    seeds: range
    config: dict[str, Any]

    @classmethod
    def of(
        cls,
        text: Splits | Corpus,
        rows: Iterable[Row | str | Tree] | None,
        folder: str | os.PathLike[str],
        stop: Stop | None,
        seeds: int,
        options: Mapping[str, Any],
    ) -> Subject:
        """Return the subject of the arguments of `compare`; raises as that does."""
        for name in ("epochs", "seconds", "minutes"):
            if options.get(name) is not None:
                rule = "Halving(10)" if name == "minutes" else f"{name.capitalize()}(20)"
                raise OptionError(f"{name} is a rule of when to stop: stop=hstree.{rule}")
        if not 1 <= seeds <= MAX_SEEDS:
            raise OptionError(f"seeds is {seeds}; it must be 1 to {MAX_SEEDS}")
        config = config_of(options)
        first = config.pop("random_state")
        config.pop("epochs")
        stop = Halving() if stop is None else stop
        parts = Splits.of(text)
        words = parts.train.vocabulary
        splits = Splits(*(part.with_vocabulary(words) for part in parts))
        if stop.total_seconds is not None:
            if not any(option.name == "seconds" for option in kind_of(config).options):
                raise OptionError(f"the model {kind_of(config).name} has no budget of seconds")
            splits = splits.held_out_sample(min(SAMPLE, max(_MOST_SCORES // len(words), 5_000)))
        for split in splits:
            overlap(split)
        parsed = parse_rows(_default(config) if rows is None else rows, config)
        subject = cls(splits, Path(folder), parsed, stop, range(first, first + seeds), config)
        last = max(states[-1] for row in parsed for states in subject.states(row))
        Option.of("random_state", RandomState).checked(last)
        for row in parsed:
            row.check(words, config)
        return subject

    def with_kept(self, *, only: bool, force: bool) -> Subject:
        """Return the subject with the rows that the folder holds, if they can share a table.

        Raises InputError when the folder holds a comparison of something else, unless `force`.
        """
        file = self.home / results.JSON
        if not file.exists():
            return self
        try:
            kept, rows = results.read_struct(file, _Kept, ""), results.load(self.home).rows
        except HstreeError as error:
            warnings.warn(f"{error}; its rows are left out".replace("; ;", ";"), stacklevel=4)
            return self
        if (difference := self._difference(kept)) is not None:
            if force:
                return self
            raise InputError(
                f"{self.home} holds a comparison that cannot share a table with this one: "
                f"{difference}; choose another folder, or force its replacement"
            )
        if only:
            return self
        named = {str(row): row for row in self.rows}
        others: dict[str, Row] = {}
        for figures in rows:
            try:
                row = named.pop(figures.name) if figures.name in named else self._again(figures)
                others[figures.name] = row
            except HstreeError:
                continue  # its file is gone
        rows_of_both = [*others.values(), *named.values()]
        return replace(self, rows=rows_of_both)

    def _again(self, figures: RowResult) -> Row:
        """Return a row of the folder, its tree from there if its own file is gone."""
        name, *over = shlex.split(figures.name)
        if name.endswith(ENDINGS) and not Path(name).exists():
            return TreeRow(name, load(self.home / str(figures.tree_file)), *over[1:])
        return Row.parse(figures.name)

    def _difference(self, kept: _Kept) -> str | None:
        """Return the first difference to the comparison in the folder."""
        words = VocabularyFigures.of(self.splits.train.vocabulary)
        if kept.vocabulary != words:
            return f"it is over {kept.vocabulary.size:,} words, this one over {words.size:,} others"
        for split, part in zip(SPLITS, self.splits, strict=True):
            source = kept.corpus[split]
            if (source.get("sha256"), source.get("lines")) != (part.sha256, list(part.lines)):
                return (
                    f"its {split} split is of {source.get('name')}, lines {source.get('lines')}, "
                    f"this one's of {part.name}, lines {list(part.lines)}"
                )
        if kept.stop != self.stop:
            return f"its rule is {kept.stop}, this one's {self.stop}"
        for name in {**kept.options, **self.config}:
            if kept.options.get(name) != self.config.get(name):
                return f"its {name} is {kept.options.get(name)}, this one's {self.config.get(name)}"
        return None

    def states(self, row: Row) -> list[range]:
        """Return the random states of the models of a row, for each seed."""
        return [row.states(number, self.seeds[0]) for number in range(len(self.seeds))]

    def jobs_of(self, row: Row) -> list[list[Job]]:
        """Return the jobs of a row for each seed; an n-gram model has one for all."""
        jobs = [[Job(row.single, state) for state in states] for states in self.states(row)]
        return jobs if row.is_trained else jobs[:1]

    def jobs(self) -> list[Job]:
        """Return all jobs, each once, in the order of the rows."""
        of_rows = [job for row in self.rows for jobs in self.jobs_of(row) for job in jobs]
        return list(dict.fromkeys(of_rows))

    def runner(self, first_seconds: float | None, **more: Any) -> Runner:
        """Return the runner of the jobs."""
        return Runner(self.splits, self.home, self.config, self.stop, first_seconds, **more)

    def limit(self, seconds: float | None) -> dict[str, Any]:
        """Return the limit of a job, as `Runner.run` takes it."""
        return {} if seconds is None else {"seconds": seconds}

    def compared(
        self,
        within: float,
        speed_rounds: int,
        updated: Callable[[Comparison], object] | None,
    ) -> Comparison:
        """Do all jobs, write the results after each row, and return all figures."""
        began = time.perf_counter()
        done: dict[Row, list[list[JobResult]]] = {}
        finalists = [str(row) for row in self.rows]

        def finish(row: Row, runner: Runner, seconds: float | None) -> None:
            limit = self.limit(seconds if row.is_trained else None)
            done[row] = [[runner.run(job, **limit) for job in jobs] for jobs in self.jobs_of(row)]
            if len(done) < len(self.rows):
                in_order = {one: done[one] for one in self.rows if one in done}
                so_far = Table(self, runner, in_order, {}).comparison(finalists, within)
                results.save(so_far, self.home)
                if updated is not None:
                    updated(so_far.in_folder(self.home))

        if isinstance(self.stop, Halving):
            runner, finalists = _halve(self, began, speed_rounds, finish)
        else:
            runner = self.runner(self.stop.total_seconds)
            for row in self.rows:  # bad options are refused before anything is trained
                if row.source is None:
                    runner.tree(self.jobs_of(row)[0][0])
            for row in self.rows:
                finish(row, runner, runner.first_seconds)
        in_order = {row: done[row] for row in self.rows}
        speeds = _speeds(self, runner, in_order, speed_rounds)
        comparison = Table(self, runner, in_order, speeds).comparison(finalists, within, words=True)
        results.save(comparison, self.home)
        comparison = comparison.in_folder(self.home)
        if updated is not None:
            updated(comparison)
        return comparison


def _default(config: Mapping[str, Any]) -> list[str]:
    """Return the rows of a comparison that names none."""
    is_language_model = kind_of(config).model.is_language_model
    return [row for row in DEFAULT if is_language_model or not row.endswith(("ngrams", "kn5"))]


def _halve(
    subject: Subject,
    began: float,
    speed_rounds: int,
    finish: Callable[[Row, Runner, float | None], None],
) -> tuple[Runner, list[str]]:
    """Train all rows equally long, then the better half twice as long, until two are left.

    Rounds are kept in ``rounds.json``, so that the same comparison goes on with the same seconds.
    Returns the runner, and the names of the rows that trained longest.
    """
    file, rounds = subject.home / "rounds.json", _rounds_in(subject)
    active = [row for row in subject.rows if row.is_trained]
    total, n_rounds = subject.stop.total_seconds or 0.0, _n_rounds(len(active))
    seconds, reserve = 0.0, 2.0 * speed_rounds * len(active)
    runner = subject.runner(None)
    for row in subject.rows:
        if not row.is_trained:
            finish(row, runner, None)
    for number in range(n_rounds):
        if number == len(rounds.rounds):
            left = total - (time.perf_counter() - began) - reserve
            step = _next_step(left, len(active), len(subject.seeds), seconds)
            target = max(seconds + (step if number else _SHARE * step), 1.0)
            rounds.rounds.append(_Round(seconds=target, rows=[str(row) for row in active]))
            results.write_struct(file, rounds)
        this = rounds.rounds[number]
        seconds = this.seconds
        runner = subject.runner(rounds.rounds[0].seconds)
        if number == n_rounds - 1:
            break
        with progress.task(f"round {number + 1}, {seconds:,.0f} s a row", len(active)) as task:
            for row in active:
                task.note(str(row))
                if str(row) not in this.valid:
                    started = time.perf_counter()
                    jobs = [job for jobs in subject.jobs_of(row) for job in jobs]
                    valid = statistics.fmean(runner.advance(job, seconds) for job in jobs)
                    this.valid[str(row)] = valid
                    results.write_struct(file, rounds)
                    # What is not training, validation above all, comes again at the end.
                    spent = time.perf_counter() - started - len(jobs) * seconds
                    reserve += max(0.0, spent) if number == 0 else 0.0
                task.advance()
        ranked = sorted(active, key=lambda row: this.valid[str(row)])
        for row in ranked[math.ceil(len(ranked) / 2) :]:
            finish(row, runner, seconds)
            active.remove(row)
    for row in active:
        finish(row, runner, seconds)
    return runner, [str(row) for row in active]


def _rounds_in(subject: Subject) -> _Rounds:
    """Return the rounds that the folder keeps of the same comparison; none without them."""
    names = sorted(str(row) for row in subject.rows)
    key = hash_of(
        {
            "rule": str(subject.stop),
            "rows": names,
            "text": content_of(subject.splits),
            "model": subject.config,
            "seeds": list(subject.seeds),
        }
    )
    try:
        kept = results.read_struct(subject.home / "rounds.json", _Rounds, "")
    except HstreeError:
        kept = _Rounds(key="")
    return kept if kept.key == key else _Rounds(key=key)


def _n_rounds(n: int) -> int:
    """Return the number of rounds of halving until two rows are left, 1 at least."""
    rounds = 1
    while n > 2:
        n, rounds = math.ceil(n / 2), rounds + 1
    return rounds


def _next_step(left: float, n: int, seeds: int, done: float) -> float:
    """Return the seconds that each row trains in the next round.

    As much again as before, so that a row's seconds double; less where the rounds to come would
    take more than the seconds that are left. The first round takes what they leave.
    """
    units, weight = 0.0, 1.0
    for number in range(_n_rounds(n)):
        units += n * weight
        # after the first round, which is all of a row's seconds, a round adds as much again
        weight = weight if number == 0 and not done else 2 * weight
        n = math.ceil(n / 2)
    step = max(left, 0.0) / (units * seeds)
    return min(step, done) if done else step


def _speeds(
    subject: Subject,
    runner: Runner,
    done: Mapping[Row, Sequence[Sequence[JobResult]]],
    rounds: int,
) -> speed.Speeds:
    """Return the measured speeds by the names of the rows; several models take turns."""
    first = {row: subject.jobs_of(row)[0][0] for row in done if row.is_trained}
    keys = {str(job.row): done[row][0][0].key for row, job in first.items()}
    models = {str(job.row): runner.folder(job) / MODEL for job in first.values()}
    kept = speed.kept_speeds(subject.home / speed.FILE, keys, models, subject.splits, rounds)
    return {
        measure: {
            str(row): [one / row.models for one in of[str(row.single)]]
            for row in first
            if str(row.single) in of and (row.models == 1 or measure != "top_k")
        }
        for measure, of in kept.items()
    }


# The figures of all rows


class _Bands(NamedTuple):
    """Bands of training counts, and the index of each test token's band, int64 (T,)."""

    bands: list[Band]
    band_of_token: Int64


class Table:
    """Makes the rows of a comparison from finished jobs and measured speeds.

    Parameters
    ----------
    subject : Subject
    runner : Runner
    done : mapping of Row to list of list of JobResult
        The results of each finished row, for each seed those of its models.
    speeds : Speeds
        By measure and row; figures that need others are None.
    """

    def __init__(
        self,
        subject: Subject,
        runner: Runner,
        done: Mapping[Row, Sequence[Sequence[JobResult]]],
        speeds: speed.Speeds,
    ) -> None:
        self.subject, self.runner, self.done, self.speeds = subject, runner, done, speeds
        self.flat = next((row for row in done if row.is_flat), None)
        self.ngram = next((row for row in done if not row.is_trained), None)
        self._nlls: dict[tuple[Row, Held], list[Float64]] = {}

    def comparison(
        self, finalists: Sequence[str | Row], within: float, *, words: bool = False
    ) -> Comparison:
        """Return all figures; the row to use is chosen among the finalists."""
        subject, splits = self.subject, self.subject.splits
        vocabulary = splits.train.vocabulary
        bands = frequency_bands(splits)
        covered = self._covered()
        with progress.task("laying out the table", len(self.done)) as task:
            rows = []
            for row in self.done:
                rows.append(self._row(row, bands, covered))
                task.advance()
        names = {str(row) for row in finalists}
        choice = results.choose([row for row in rows if row.name in names], within)
        parts: dict[Split, Corpus] = dict(zip(SPLITS, splits, strict=True))
        test = splits.test.with_vocabulary(vocabulary)
        comparison = Comparison(
            predicts=kind_of(subject.config).model.predicts,
            corpus={name: dict(part.source) for name, part in parts.items()},
            tokens={name: len(part) for name, part in parts.items()},
            oov={name: part.n_oov for name, part in parts.items()},
            vocabulary=VocabularyFigures.of(vocabulary),
            options=dict(subject.config),
            stop=subject.stop,
            seeds=list(subject.seeds),
            versions=versions(),
            machine=speed.machine(),
            unigram=finite(unigram_score(test, splits.train.counts).perplexity),
            bands=bands.bands,
            rows=rows,
            choice=self._with_ratio(choice),
            pending=[str(row) for row in subject.rows if row not in self.done],
        )
        if not words:
            return comparison
        return msgspec.structs.replace(comparison, words=self._words(comparison))

    def nlls(self, row: Row, split: Held = "test") -> list[Float64]:
        """Return the nll of every token of a split for each seed, of the mean of its models."""
        if (row, split) not in self._nlls:
            of_seeds = [
                [self.runner.nll(job, split) for job in jobs] for jobs in self.subject.jobs_of(row)
            ]
            self._nlls[row, split] = [
                nlls[0] if len(nlls) == 1 else mean_probability(nlls) for nlls in of_seeds
            ]
        return self._nlls[row, split]

    def _row(self, row: Row, bands: _Bands, covered: Bool | None) -> RowResult:
        """Return the figures of a row."""
        jobs = [job for jobs in self.subject.jobs_of(row) for job in jobs]
        done = [result for of_seed in self.done[row] for result in of_seed]
        nlls, name = self.nlls(row), str(row)
        steps = self._steps(row)
        flat = self.flat
        like = self._like(row)
        of_flat = None if flat is None else self._steps(flat).total
        return RowResult(
            name=name,
            kind=row.kind,
            method=row.method,
            summary=row.summary,
            options=msgspec.to_builtins(row.options, enc_hook=str),
            layer=row.layer,
            is_flat=row.is_flat,
            models=row.models,
            **self._tree_figures(row, jobs[: row.models]),
            covered=None if covered is None else _mean_perplexity(nlls, covered),
            parameters=sum(result.parameters for result in done[: row.models]),
            jobs=[
                JobFigures(
                    seed=result.seed,
                    folder=self.runner.relative(self.runner.folder(job)),
                    perplexity=result.perplexity,
                    epochs=result.epochs,
                )
                for job, result in zip(jobs, done, strict=True)
            ],
            perplexity=self._perplexities(row),
            at_epoch_limit=sum(map(_is_at_limit, done)),
            steps=steps,
            by_band=[
                _mean_perplexity(nlls, bands.band_of_token == i) for i in range(len(bands.bands))
            ],
            seen=next((result.seen for result in done if result.seen), None),
            training=self._speed(name, "training"),
            nll=self._speed(name, "nll"),
            top_k=self._speed(name, "top_k"),
            unnormalised=self._speed(name, "unnormalised", "nll"),
            from_text_times_flat=of_flat / steps.total if of_flat and steps.total else None,
            to_flat=None if flat is None else paired_ratio(nlls, self.nlls(flat)),
            like=None if like is None else str(like),
            to_like=None if like is None else paired_ratio(nlls, self.nlls(like)),
            log_normaliser=_mean_normaliser(done) if row.models == 1 else None,
            mixture=self._mixture(row),
            published=_published(row),
        )

    def _like(self, row: Row) -> Row | None:
        """Return the flat row with the same layer, where it is another than plain flat."""
        if row.layer is None:
            return None
        same = [one for one in self.done if str(one) == f"flat + {row.layer}"]
        return same[0] if same and same[0] != row else None

    def _perplexities(self, row: Row) -> dict[Scored, Spread]:
        """Return the spread over seeds of each perplexity."""
        if row.models == 1:
            of_seeds = [of_seed[0].perplexity for of_seed in self.done[row]]
        else:
            test = self.subject.splits.test.with_vocabulary(self.subject.splits.train.vocabulary)
            known = test.ids(slice(None)) >= 0
            of_seeds = [
                {
                    "valid": _perplexity(v),
                    "test": _perplexity(t),
                    "test_without_oov": _perplexity(t[known]),
                }
                for v, t in zip(self.nlls(row, "valid"), self.nlls(row), strict=True)
            ]
        return {split: Spread.of([of_seed[split] for of_seed in of_seeds]) for split in SCORED}

    def _steps(self, row: Row) -> Steps:
        """Return the mean seconds of each step over the seeds, all models of a seed together.

        Without a bound on the time, epochs are counted at the speed that was measured in turns.
        """
        rounds = self.speeds.get("training", {}).get(str(row.single))
        steps = []
        for of_seed in self.done[row]:
            for result in of_seed:
                training = result.steps.training
                if rounds and self.subject.stop.total_seconds is None and row.is_trained:
                    epochs = sum(epoch.share for epoch in result.epochs)
                    tokens = len(self.subject.splits.train)
                    training = epochs * tokens / statistics.median(rounds)
                steps.append(msgspec.structs.replace(result.steps, training=training))

        def mean(name: str) -> float | None:
            values = [getattr(step, name) for step in steps]
            return None if None in values else row.models * statistics.fmean(values)

        return Steps(**{name: mean(name) for name in Steps.__struct_fields__})

    def _speed(self, name: str, measure: str, of_flat: str | None = None) -> Speed | None:
        rounds = self.speeds.get(measure, {}).get(name)
        flat = self.speeds.get(of_flat or measure, {}).get(str(self.flat))
        return None if rounds is None else Speed.of(rounds, flat)

    def _tree_figures(self, row: Row, jobs: Sequence[Job]) -> dict[str, Any]:
        """Return the fields of a row that are of its tree; costs are of the trees of all models.

        Costs are weighted by the counts of the training split; a tree may have other counts.
        """
        if row.kind != "tree":
            return dict.fromkeys(["tree", "tree_file", "code_lengths", "in_wordnet"])
        runner, train = self.runner, self.subject.splits.train
        folders = [runner.folder(Job(job.row.tree_row, job.seed), "trees") for job in jobs]
        trees = [load(folder / "tree.json") for folder in folders]
        counts = [
            train.with_vocabulary(Vocabulary(tree.labels, [0] * tree.n_labels)).counts
            for tree in trees
        ]
        figures = [
            TreeFigures.of(tree_statistics(*pair)) for pair in zip(trees, counts, strict=True)
        ]
        return {
            "tree": TreeFigures.of_all(figures),
            "tree_file": f"{runner.relative(folders[0])}/tree.json",
            "code_lengths": _code_lengths(trees[0], counts[0]),
            "in_wordnet": _in_wordnet(trees[0]),
        }

    def _covered(self) -> Bool | None:
        """Return whether WordNet has the word of each test token (T,), if a tree is built of it."""
        for row in self.done:
            if row.kind == "tree" and row.method == "wordnet":
                job = self.subject.jobs_of(row)[0][0]
                folder = self.runner.folder(Job(job.row.tree_row, job.seed), "trees")
                return _covered_tokens(load(folder / "tree.json"), self.subject.splits)
        return None

    def _mixture(self, row: Row) -> Mixture | None:
        """Return the mixture of a row with the n-gram model, the mean over the seeds."""
        if self.ngram is None or row == self.ngram:
            return None
        (other_valid,), (other_test,) = self.nlls(self.ngram, "valid"), self.nlls(self.ngram)
        figures = []
        for valid, test in zip(self.nlls(row, "valid"), self.nlls(row), strict=True):
            weight = best_weight(valid, other_valid)
            mixed = (mixed_nll(weight, valid, other_valid), mixed_nll(weight, test, other_test))
            figures.append((weight, *map(_perplexity, mixed)))
        weights, valids, tests = zip(*figures, strict=True)
        return Mixture(
            weight=statistics.fmean(weights),
            valid=Spread.of(valids).mean,
            test=Spread.of(tests).mean,
        )

    def _with_ratio(self, choice: Choice | None) -> Choice | None:
        """Return a choice with its comparison to the rival on the same test tokens."""
        if choice is None or choice.rival is None:
            return choice
        by_name = {str(row): row for row in self.done}
        chosen, rival = (self.nlls(by_name[name]) for name in (choice.chosen, choice.rival))
        return msgspec.structs.replace(choice, to_rival=paired_ratio(chosen, rival))

    def _words(self, comparison: Comparison) -> list[WordTable]:
        """Compare rows word by word: with flat, else the best; the chosen one with its rival."""
        by_name = {str(row): row for row in self.done}
        choice = comparison.choice
        flat = str(self.flat) if self.flat else choice.best if choice else ""
        trained = [row.name for row in comparison.rows if row.is_trained]
        pairs = [(name, flat) for name in trained if flat and name != flat]
        if choice is not None and choice.rival is not None:
            pairs.insert(0, (choice.chosen, choice.rival))
        test = self.subject.splits.test.with_vocabulary(self.subject.splits.train.vocabulary)
        return word_tables(
            test,
            lambda name: np.mean(self.nlls(by_name[name]), axis=0),
            list(dict.fromkeys(pairs)),
        )


def _published(row: Row) -> Published | None:
    """Return the published ratio of a layer with these options, or None."""
    # The figures are of binary NCE, and of bands that are projections of the whole hidden vector.
    if row.kind != "layer" or row.options.get("ranking") or row.options.get("projected") is False:
        return None
    return _PUBLISHED.get(row.method)


def _is_at_limit(result: JobResult) -> bool:
    """Return whether a training stopped at the limit of epochs, before it had converged.

    Trainings whose schedule ends with their epochs, as word2vec's do, never converge.
    """
    return (
        result.seed is not None
        and kind_of(result.options).model.converges
        and not result.converged
        and not result.out_of_time
        and 0 < result.options["epochs"] == len(result.epochs)
    )


def _mean_normaliser(done: Sequence[JobResult]) -> NormaliserFigures | None:
    """Return the means over the seeds; None for layers that are normalised by design."""
    known = [result.log_normaliser for result in done if result.log_normaliser is not None]
    if len(known) < len(done):
        return None

    def mean(name: str) -> float | None:
        values = [getattr(one, name) for one in known]
        return None if None in values else statistics.fmean(values)

    return NormaliserFigures(**{name: mean(name) for name in NormaliserFigures.__struct_fields__})


def _perplexity(nll: Float64) -> float | None:
    return finite(perplexity(float(nll.sum()), len(nll)))


def _mean_perplexity(nlls: Sequence[Float64], some: Bool) -> float | None:
    """Return the mean perplexity of some tokens (T,) over the seeds; None without tokens."""
    return Spread.of([_perplexity(nll[some]) for nll in nlls]).mean if some.any() else None


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


def frequency_bands(splits: Splits) -> _Bands:
    """Group the words of the vocabulary by powers of ten of their training counts.

    Counts are 0, 1 to 9, 10 to 99 and so on; test tokens out of the vocabulary are a band of
    their own. Bands without a word and without a token are left out.
    """
    vocabulary = splits.train.vocabulary
    # (V,) band of each word
    band_of_word = np.searchsorted(_BAND_STARTS, splits.train.counts, side="right")
    # (T,) band of each test token
    ids = splits.test.with_vocabulary(vocabulary).ids(slice(None))
    outside = len(_BAND_STARTS) + 1
    band_of_token = np.where(ids < 0, outside, band_of_word[ids])
    words = np.bincount(band_of_word, minlength=outside + 1)
    tokens = np.bincount(band_of_token, minlength=outside + 1)
    used = np.flatnonzero(words + tokens)

    def bounds(band: int) -> dict[str, Any]:
        if band == outside:
            return {"least": None, "most": None}
        return {"least": 10 ** (band - 1) if band else 0, "most": 10**band - 1}

    bands = [
        Band(**bounds(band), words=int(words[band]), tokens=int(tokens[band]))
        for band in used.tolist()
    ]
    return _Bands(bands, np.searchsorted(used, band_of_token))


def _code_lengths(tree: Tree, counts: Int64) -> list[LengthCount]:
    """Return the number of codes and of tokens per code length, without unused lengths.

    A label's count is divided evenly among its codes.
    """
    codes = Codes(tree, cache_limit=0)
    # (codes,) tokens of each code; the one label of a tree without nodes has no code
    share = (counts / np.maximum(tree.codes_per_label, 1))[codes.label]
    number, tokens = np.bincount(codes.length), np.bincount(codes.length, share)
    return [
        LengthCount(length=length, codes=int(number[length]), tokens=float(tokens[length]))
        for length in np.flatnonzero(number).tolist()
    ]


def _in_wordnet(tree: Tree) -> float | None:
    """Return the share of the tokens that WordNet has; None for a tree not built from WordNet."""
    match tree.meta.get("method"), tree.meta.get("coverage"):
        case "wordnet", {"tokens_in_wordnet": float(share)}:
            return share
    return None


def _covered_tokens(tree: Tree, splits: Splits) -> Bool | None:
    """Return whether WordNet has the word of each test token (T,); None if the tree tells not.

    The words that it has not are below the last child of the root.
    """
    match tree.meta.get("coverage"):
        case {"words": int(words), "words_in_wordnet": int(inside)}:
            pass
        case _:
            return None
    has = np.full(tree.n_labels, inside > 0)
    if inside not in (0, words):
        is_outside = np.zeros(len(tree.child), np.int64)
        is_outside[tree.child_start[1] - 1] = 1
        tree.sum_down(is_outside)
        to_label = tree.child < 0
        has[~tree.child[to_label]] = is_outside[to_label] == 0
    vocabulary = splits.train.vocabulary
    number = {word: i for i, word in enumerate(tree.labels)}
    of_word = has[[number[word] for word in vocabulary.words]]
    ids = splits.test.with_vocabulary(vocabulary).ids(slice(None))
    covered: Bool = (ids >= 0) & of_word[ids]
    return covered


def word_tables(
    test: Corpus, nll_of: Callable[[str], Float64], pairs: Sequence[tuple[str, str]]
) -> list[WordTable]:
    """Compare rows word by word: the words that one predicts better and worse than another.

    Parameters
    ----------
    test : Corpus
        The test split, over the vocabulary of the models.
    nll_of : callable
        From the name of a row to the nll in nats of every test token, float64 array (T,).
    pairs : sequence of (str, str)
        Names of a row, and of the row that it is compared with.
    """
    # (T,) OOV tokens are the word 0
    group = test.ids(slice(None)).astype(np.int64) + 1
    counts = np.bincount(group, minlength=len(test.vocabulary) + 1)
    # (T,) positions by word, and where each word's begin
    order = np.argsort(group, kind="stable")
    start = np.concatenate([[0], np.cumsum(counts)])

    def figures(word: int, sign: float, gained: Float64, whole: float) -> WordFigures:
        places = order[start[word] : start[word + 1]]
        most = places[np.argsort(-sign * gained[places], kind="stable")][:_TRIED]
        total = float(gained[places].sum())
        return WordFigures(
            word=test.vocabulary.words[word - 1] if word else OOV,
            count=int(counts[word]),
            gained=total / int(counts[word]),
            share=sign * total / whole,
            contexts=_contexts(test, most.tolist(), gained),
        )

    tables = []
    for row, against in pairs:
        with np.errstate(invalid="ignore"):
            gained = nll_of(against) - nll_of(row)
        gained = np.where(np.isfinite(gained), gained, 0.0)
        total = np.bincount(group, gained, minlength=len(counts))
        wholes = float(total[total > 0].sum()), float(-total[total < 0].sum())
        helped, hurt = (
            [
                figures(word, sign, gained, whole)
                for word in np.argsort(-sign * total, kind="stable")[:_MOST_WORDS].tolist()
                if sign * total[word] > 0
            ]
            for sign, whole in zip((1.0, -1.0), wholes, strict=True)
        )
        gain, loss = wholes
        tables.append(
            WordTable(row=row, against=against, gained=gain, lost=loss, helped=helped, hurt=hurt)
        )
    return tables


def _contexts(test: Corpus, places: Sequence[int], gained: Float64) -> list[Context]:
    """Return the contexts at the first places, each once: texts repeat themselves."""
    contexts: dict[tuple[str, str], Context] = {}
    for place in places:
        *before, word = test.words(slice(max(place - _BEFORE, 0), place + 1))
        context = Context(before=" ".join(before), word=word, gained=float(gained[place]))
        contexts.setdefault((context.before, context.word), context)
    return list(contexts.values())[:_CONTEXTS]


def versions() -> dict[str, str]:
    """Return the versions that a figure depends on, and what computes here (`kernels`)."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "hstree": __version__,
        "kernels": kernels(),
    }

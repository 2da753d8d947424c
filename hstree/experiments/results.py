"""Figures of a comparison: typed structs, their files, and one list of columns for all tables.

The fields of the structs are the keys of the JSON documents; msgspec writes, reads and checks
them. ``docs/results-format.md`` describes every key.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import msgspec
from msgspec import Meta, Struct

from hstree._files import read_regular, replacing
from hstree._plugins import require
from hstree._tables import TextTable, figure, show
from hstree._text import one_line, plural
from hstree.data.splits import Split
from hstree.data.text_score import LogNormaliser
from hstree.data.vocabulary import Vocabulary
from hstree.errors import FileFormatError, InputError
from hstree.experiments.significance import Ratio
from hstree.models.base import MOST_EPOCHS
from hstree.training.trainer import Epoch
from hstree.tree.statistics import TreeStatistics

if TYPE_CHECKING:
    from pandas import DataFrame

FORMAT, VERSION = "hstree results", 4
JSON, CSV = "results.json", "results.csv"
#: File of the words with their training counts, from which trees can be built again.
WORDS = "words.tsv"
#: Tokens of the validation and the test split under a rule that bounds the time, at most; and of
#: the training split wherever it is scored.
SAMPLE = 50_000

Scored = Literal["valid", "test", "test_without_oov"]
SCORED: tuple[Scored, ...] = ("valid", "test", "test_without_oov")
# Bounds far from every real figure, within which nothing overflows on the page.
Amount = Annotated[float, Meta(ge=0, le=1e100)]
Positive = Annotated[float, Meta(ge=1e-100, le=1e100)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Signed = Annotated[float, Meta(ge=-1e100, le=1e100)]

T = TypeVar("T", bound=Struct)


class Figures(Struct, frozen=True, kw_only=True):
    """Base of all structs here."""


# Stopping rules


class Epochs(Figures, tag="epochs", tag_field="rule", frozen=True):
    """Train every row until validation stops, for at most so many epochs."""

    epochs: Annotated[int, Meta(ge=0, le=MOST_EPOCHS)] = 20

    @property
    def max_epochs(self) -> int:
        """Maximum number of epochs of a training."""
        return self.epochs

    @property
    def total_seconds(self) -> float | None:
        """Seconds of a row, or of all rows; None where the time is not bounded."""
        return None

    def __str__(self) -> str:
        return f"at most {plural(self.epochs, 'epoch')}"


class Seconds(Figures, tag="seconds", tag_field="rule", frozen=True):
    """Train every row until so many seconds after the text: vectors and building are counted."""

    seconds: Positive

    max_epochs: ClassVar[int] = MOST_EPOCHS

    @property
    def total_seconds(self) -> float | None:
        """Seconds of a row."""
        return self.seconds

    def __str__(self) -> str:
        return f"{self.seconds:g} seconds from the text for each row"


class Halving(Figures, tag="halving", tag_field="rule", frozen=True):
    """Train all rows equally long, then the better half twice as long, until the minutes end."""

    minutes: Positive = 10.0

    max_epochs: ClassVar[int] = MOST_EPOCHS

    @property
    def total_seconds(self) -> float | None:
        """Seconds of all rows."""
        return 60 * self.minutes

    def __str__(self) -> str:
        return f"{self.minutes:g} minutes for all rows, by halving"


Stop = Epochs | Seconds | Halving


# Figures of a job


class CodeLength(Figures, frozen=True):
    """Mean code length in decisions, unweighted and weighted by the labels' counts."""

    uniform: Amount | None
    weighted: Amount | None


class TreeFigures(Figures, frozen=True):
    """Statistics of a tree, under the names of `hstree.tree.statistics.TreeStatistics`."""

    nodes: Count
    codes_per_label: Amount | None
    code_length: CodeLength
    scores_per_target: Amount | None
    sha256: str
    method: str | None = None
    labels: Count | None = None
    entropy: Amount | None = None
    huffman_length: Amount | None = None
    depth: Count | None = None

    @classmethod
    def of(cls, statistics: TreeStatistics) -> Self:
        """Return the figures of a tree."""
        return msgspec.convert(statistics.as_dict(), cls)

    @classmethod
    def of_all(cls, trees: Sequence[Self]) -> Self:
        """Return the first tree's figures, its codes, their length and scores summed over all."""
        lengths = [tree.code_length for tree in trees]
        return msgspec.structs.replace(
            trees[0],
            codes_per_label=_sum(tree.codes_per_label for tree in trees),
            code_length=CodeLength(
                uniform=_sum(length.uniform for length in lengths),
                weighted=_sum(length.weighted for length in lengths),
            ),
            scores_per_target=_sum(tree.scores_per_target for tree in trees),
        )


def _sum(values: Iterable[float | None]) -> float | None:
    """Return the sum of figures; None if one is not known."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


class NormaliserFigures(Figures, frozen=True):
    """Figures of ln Z over the test tokens, under a layer that is trained towards Z = 1.

    `mean` and `sd` are in nats; ``unnormalised_perplexity`` is ``exp(mean(nll - ln Z))``, which is
    no perplexity of a distribution. None where they are not finite.
    """

    mean: Signed | None
    sd: Amount | None
    unnormalised_perplexity: Amount | None

    @classmethod
    def of(cls, score: LogNormaliser | None) -> Self | None:
        """Return the figures of a text; None without any."""
        if score is None:
            return None
        figures = (score.mean, score.sd, score.unnormalised_perplexity)
        mean, sd, unnormalised = map(finite, figures)
        return cls(mean=mean, sd=sd, unnormalised_perplexity=unnormalised)


class Steps(Figures, frozen=True):
    """Seconds of each step from the text to a trained model.

    The steps are the vectors of a tree, the tree, the preparation of the output layer (n-grams to
    draw noise from, say) and the training. None where a step was not timed.
    """

    vectors: Amount | None = 0.0
    tree: Amount | None = 0.0
    preparation: Amount | None = 0.0
    training: Amount | None = 0.0

    @property
    def total(self) -> float | None:
        """Sum of the steps; None if one is not known."""
        return _sum((self.vectors, self.tree, self.preparation, self.training))


class JobResult(Figures, frozen=True):
    """Figures of one finished job, as ``result.json`` of its folder holds them.

    Attributes
    ----------
    key : str
        Hash of all that the result depends on.
    row : str
    seed : int or None
        None for an n-gram model, which has no random state.
    perplexity : dict of str to float or None
        By split; ``test_without_oov`` is of the test split. None where it is not a finite number.
    parameters : int
        Number of trained parameters, or of distinct n-grams.
    options : dict
        Every option of the model.
    steps : Steps
    epochs : list of Epoch
    converged, out_of_time, interrupted : bool
        How the training ended.
    tree : TreeFigures or None
        None for an output layer without a tree.
    log_normaliser : NormaliserFigures or None
        On the test split; None for layers that are normalised by design.
    train : float or None
        Perplexity of the first `SAMPLE` training tokens, where it was asked for.
    seen : str or None
        One sentence that names the test lines that were read before, if any.
    kernels : str
    """

    key: str
    row: str
    seed: Count | None
    perplexity: dict[Scored, Positive | None]
    parameters: Count
    options: dict[str, Any]
    steps: Steps
    epochs: list[Epoch] = []
    converged: bool = False
    out_of_time: bool = False
    interrupted: bool = False
    tree: TreeFigures | None = None
    log_normaliser: NormaliserFigures | None = None
    train: Positive | None = None
    seen: str | None = None
    kernels: str = ""

    @property
    def valid(self) -> float:
        """Validation perplexity; infinity where it is not a finite number."""
        return math.inf if (value := self.perplexity["valid"]) is None else value


# Figures of a row


class Spread(Figures, frozen=True):
    """Mean and sample standard deviation of n values; `sd` is None for one value."""

    mean: Positive | None
    sd: Amount | None
    n: Annotated[int, Meta(ge=1)]

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Self:
        """Return the spread of figures; without mean if one of them is not known."""
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return cls(mean=None, sd=None, n=len(values))
        sd = statistics.stdev(known) if len(known) > 1 else None
        return cls(mean=statistics.fmean(known), sd=sd, n=len(known))


class Speed(Figures, frozen=True):
    """Tokens per second in each round of measurements, in which rows took turns.

    `times_flat` is the median divided by that of the flat softmax, `low` and `high` the lowest and
    highest quotient of a round; None without a flat softmax.
    """

    rounds: Annotated[list[Positive], Meta(min_length=1)]
    times_flat: Positive | None = None
    low: Positive | None = None
    high: Positive | None = None

    @property
    def median(self) -> float:
        """Median tokens per second."""
        return statistics.median(self.rounds)

    @classmethod
    def of(cls, rounds: Sequence[float], flat: Sequence[float] | None) -> Self:
        """Return the speed of a row beside that of the flat softmax in the same rounds."""
        if not flat:
            return cls(rounds=list(rounds))
        ratios = [a / b for a, b in zip(rounds, flat, strict=True)]
        times = statistics.median(rounds) / statistics.median(flat)
        return cls(rounds=list(rounds), times_flat=times, low=min(ratios), high=max(ratios))


class Mixture(Figures, frozen=True):
    """Mixture of a row with an n-gram model: ``weight * P + (1 - weight) * P_KN``.

    `weight` has the lowest validation perplexity; all are means over the seeds.
    """

    weight: Annotated[float, Meta(ge=0, le=1)]
    valid: Positive | None
    test: Positive | None


class Published(Figures, frozen=True):
    """Published test perplexity divided by that of the full softmax: equal bounds or a range.

    It is of another text, model and budget: a figure to look at, none to compare with exactly.
    """

    low: Positive
    high: Positive
    source: str
    remark: str = ""


class LengthCount(Figures, frozen=True):
    """Number of codes of one length, and of training tokens that have them."""

    length: Count
    codes: Count
    tokens: Amount


class JobFigures(Figures, frozen=True):
    """One job of a row: its seed, its folder in the comparison's, and its figures."""

    seed: Count | None
    folder: str
    perplexity: dict[Scored, Positive | None]
    epochs: list[Epoch] = []


class RowResult(Figures, frozen=True):
    """One row of a comparison.

    Attributes
    ----------
    name : str
        The row as it is typed; `hstree.experiments.row.Row.parse` reads it.
    kind : {"tree", "layer", "ngram"}
    method : str
        Name of the builder, of the layer or of the n-gram model.
    summary : str
        One sentence: how the tree is built, or what the layer does.
    options : dict
        Options of the builder, of the layer or of the n-gram model, by their Python names.
    layer : str or None
        Layer over the tree that is not the hierarchical softmax, with its options.
    is_flat : bool
        Whether it is one plain flat softmax.
    models : int
        Number of models whose probabilities are averaged. Codes, scores, parameters and seconds
        are those of all models; tree file and code lengths are of the first.
    tree : TreeFigures or None
        None without a tree, as are `tree_file`, `code_lengths`.
    tree_file : str or None
        Path of the first seed's tree, relative to the comparison's folder.
    in_wordnet, covered : float or None
        Share of the training tokens that WordNet has, for a tree built from it; test perplexity
        over the tokens that WordNet has, in a comparison with such a tree.
    jobs : list of JobFigures
        One for each seed and model.
    perplexity : dict of str to Spread
        Over the seeds.
    at_epoch_limit : int
        Number of jobs that stopped at the limit of epochs, before they had converged.
    steps : Steps
        Seconds from the text to the model, the mean over the seeds.
    from_text_times_flat : float or None
        Seconds from the text of the flat row divided by those of this row.
    training, nll, top_k, unnormalised : Speed or None
        Speed of training; in testing, of the probability of one word, of the 10 most probable
        words, and of one word's unnormalised score (over `nll` of flat).
    to_flat : Ratio or None
        Test perplexity divided by that of the plain flat softmax.
    like, to_like : str, Ratio or None
        The flat row with the same layer, if that is another one, and the ratio to it.
    by_band : list of float or None
        Test perplexity in each band of the comparison; None for a band without tokens.
    mixture : Mixture or None
        With the n-gram model of the comparison, where there is one.
    seen : str or None
        One sentence that names the test lines that were read before, if any.
    """

    name: str
    kind: Literal["tree", "layer", "ngram"]
    method: str
    summary: str
    options: dict[str, Any]
    layer: str | None
    models: Annotated[int, Meta(ge=1, le=1000)]
    is_flat: bool
    tree: TreeFigures | None
    tree_file: str | None
    code_lengths: list[LengthCount] | None
    in_wordnet: Amount | None
    covered: Positive | None
    parameters: Count
    jobs: Annotated[list[JobFigures], Meta(min_length=1)]
    perplexity: dict[Scored, Spread]
    at_epoch_limit: Count
    steps: Steps
    by_band: list[Positive | None]
    seen: str | None = None
    training: Speed | None = None
    nll: Speed | None = None
    top_k: Speed | None = None
    unnormalised: Speed | None = None
    from_text_times_flat: Positive | None = None
    to_flat: Ratio | None = None
    like: str | None = None
    to_like: Ratio | None = None
    log_normaliser: NormaliserFigures | None = None
    mixture: Mixture | None = None
    published: Published | None = None

    def __post_init__(self) -> None:
        """Refuse a row that is not whole: a page could not be made of it."""
        if set(self.perplexity) != set(SCORED):
            raise ValueError(f"the row {self.name!r} lacks a perplexity")
        if (self.kind == "tree") != (self.tree is not None and self.tree_file is not None):
            raise ValueError(f"the row {self.name!r} lacks a tree, or has one")

    @property
    def is_trained(self) -> bool:
        """Whether it is an output layer, not an n-gram model."""
        return self.kind != "ngram"

    @property
    def scores_per_target(self) -> float:
        """Scores that one target costs; infinity where they are not counted."""
        scores = None if self.tree is None else self.tree.scores_per_target
        return math.inf if scores is None else scores

    @property
    def valid(self) -> float:
        """Mean validation perplexity; infinity where there is none."""
        mean = self.perplexity["valid"].mean
        return math.inf if mean is None else mean

    @property
    def test(self) -> float | None:
        """Mean test perplexity."""
        return self.perplexity["test"].mean

    @property
    def trained_seconds(self) -> float:
        """Wall-clock seconds of the training alone: the mean over the jobs."""
        return statistics.fmean(sum(e.seconds for e in job.epochs) for job in self.jobs)

    @property
    def trained_epochs(self) -> float:
        """Epochs of the training, the last by its share: the mean over the jobs."""
        return statistics.fmean(sum(e.share for e in job.epochs) for job in self.jobs)


class Choice(Figures, frozen=True):
    """The row to use, by the rule of `choose`.

    Attributes
    ----------
    among : int
        Number of rows that can be chosen.
    best : str
        Name of the row of lowest validation perplexity.
    within : float
        How far above the lowest perplexity the chosen row may be, as a share of it.
    chosen : str
    tied : list of str
        Names of the other rows within it that are as fast as the fastest.
    rival : str or None
        Name of the best other row.
    to_rival : Ratio or None
        Test perplexity of the chosen row divided by that of its rival.
    """

    among: int
    best: str
    within: Amount
    chosen: str
    tied: list[str] = []
    rival: str | None = None
    to_rival: Ratio | None = None


# Words that a row helps and hurts


class Context(Figures, frozen=True):
    """One occurrence of a word in the test split, the words before it, and the nats gained."""

    before: str
    word: str
    gained: Signed


class WordFigures(Figures, frozen=True):
    """What a row gains at one word.

    `gained` is the mean difference in nats per occurrence, `share` the share of this word in all
    that is gained at words that are helped, or lost at words that are hurt.
    """

    word: str
    count: Count
    gained: Signed
    share: Amount
    contexts: list[Context]


class WordTable(Figures, frozen=True):
    """The words that a row helps and hurts most against another row; `gained`, `lost` in nats."""

    row: str
    against: str
    gained: Amount
    lost: Amount
    helped: list[WordFigures]
    hurt: list[WordFigures]


# A comparison


class VocabularyFigures(Figures, frozen=True):
    """Size and hash of a vocabulary."""

    size: Count
    sha256: str

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Self:
        """Return the figures of a vocabulary."""
        return cls(size=len(vocabulary), sha256=vocabulary.sha256)


class Machine(Figures, frozen=True):
    """Computer that speeds were measured on; `cores` is the number that the process may use."""

    cores: Count
    system: str
    processor: str


class Band(Figures, frozen=True):
    """Words whose training count is `least` to `most`; both are None for words out of vocabulary.

    `words` is the number of such words in the vocabulary, `tokens` of test tokens.
    """

    least: Count | None
    most: Count | None
    words: Count
    tokens: Count


class Comparison(Figures, weakref=True, dict=True, frozen=True):
    """All figures of a comparison, as ``results.json`` holds them.

    A notebook shows its table; `print` and `show` print it.

    Attributes
    ----------
    predicts : str
        Predicted event that perplexities measure: "word given the words before it".
    corpus : dict of str to dict
        Source of the text of each split.
    tokens, oov : dict of str to int
        By split; of validation and test, those that were scored.
    vocabulary : VocabularyFigures
    options : dict
        Every option of the models.
    stop : Epochs, Seconds or Halving
    seeds : list of int
    versions : dict of str to str
    machine : Machine
    unigram : float or None
        Test perplexity of the training split's unigram distribution.
    bands : list of Band
    rows : list of RowResult
    choice : Choice or None
        None without a trained row whose test split is unseen.
    pending : list of str
        Names of rows that are not finished yet; figures are of the others.
    words : list of WordTable
        What rows gain word by word against the flat row; for the chosen row, against its rival too.
    """

    predicts: str
    corpus: dict[Split, dict[str, Any]]
    tokens: dict[Split, Count]
    oov: dict[Split, Count]
    vocabulary: VocabularyFigures
    options: dict[str, Any]
    stop: Stop
    seeds: Annotated[list[Count], Meta(min_length=1)]
    versions: dict[str, str]
    machine: Machine
    unigram: Positive | None
    bands: list[Band]
    rows: list[RowResult]
    choice: Choice | None = None
    pending: list[str] = []
    words: list[WordTable] = []

    def __post_init__(self) -> None:
        """Refuse figures that do not fit together."""
        names = [row.name for row in self.rows]
        if len(set(names)) < len(names):
            raise ValueError("two rows have the same name")
        if any(len(row.by_band) != len(self.bands) for row in self.rows):
            raise ValueError("a row has perplexities for other bands")
        named = [*(name for table in self.words for name in (table.row, table.against))]
        if (choice := self.choice) is not None:
            named += [choice.best, choice.chosen, choice.rival or choice.chosen, *choice.tied]
        if not set(named) <= set(names):
            raise ValueError("a row is named that is not in the table")
        if not set(self.corpus) == set(self.tokens) == set(self.oov) == {"train", "valid", "test"}:
            raise ValueError("a split is missing")

    def __repr__(self) -> str:
        best = "" if self.best is None else f", best {self.best.name!r}"
        return f"{type(self).__name__}({plural(len(self.rows), 'row')}{best})"

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    @property
    def best(self) -> RowResult | None:
        """The row to use: the chosen one; None where there is none to choose."""
        return None if self.choice is None else self.row(self.choice.chosen)

    @property
    def flat(self) -> RowResult | None:
        """The row of the flat softmax."""
        return next((row for row in self.rows if row.is_flat), None)

    def row(self, name: str) -> RowResult:
        """Return the row of a name; InputError when there is none."""
        for row in self.rows:
            if row.name == name:
                return row
        known = ", ".join(row.name for row in self.rows)
        raise InputError(f"the comparison has no row {name!r}; it has {known}")

    @property
    def folder(self) -> Path | None:
        """Folder that holds the comparison's files; None if it was not read from one."""
        folder: Path | None = self.__dict__.get("folder_")
        return folder

    def in_folder(self, folder: str | os.PathLike[str]) -> Self:
        """Return the same figures with the folder that their trees are in."""
        copy = msgspec.structs.replace(self)
        copy.__dict__["folder_"] = Path(folder).absolute()
        return copy

    def show(self) -> None:
        """Display the table in a notebook; print it anywhere else."""
        show(self)

    def frame(self) -> DataFrame:
        """Return the columns of ``results.csv`` as a pandas DataFrame, a row per row.

        Raises MissingExtraError when pandas is not installed.
        """
        pandas: Any = require("pandas", "notebook")
        lines = [csv_line(row) for row in self.rows]
        return pandas.DataFrame(lines)

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the page of the comparison: one file, which needs no network.

        Raises InputError when the comparison has no `folder`, where its trees are, and
        FileFormatError when the page cannot be written.
        """
        if self.folder is None:
            raise InputError(
                "this comparison has no folder, where its trees are; name it with in_folder(...)"
            )
        report = import_module("hstree.report")  # it draws what this package makes
        written: Path = report.write_comparison(self, self.folder, path)
        return written

    def table(self) -> TextTable:
        """Return the main figures of each row, and which row to use."""
        columns = [c for c in shown_columns(self.rows) if c.title]
        cells = [[column.text(row) for column in columns] for row in self.rows]
        return TextTable([c.title for c in columns], cells, self.answer())

    def answer(self) -> str:
        """Return one sentence that names the row to use; "" where there is none."""
        if self.best is None or (choice := self.choice) is None:
            return ""
        if choice.chosen == choice.best:
            return (
                f"Use {choice.chosen}: the lowest validation perplexity, and no row within "
                f"{choice.within:.0%} of it is faster"
            )
        fastest = "one of the fastest" if choice.tied else "the fastest"
        return (
            f"Use {choice.chosen}: {fastest} within {choice.within:.0%} of the lowest validation "
            f"perplexity, that of {choice.best}"
        )

    def read_before(self) -> list[str]:
        """Return a sentence, with the rows it is of, for each set of test lines read before."""
        names: dict[str, list[str]] = {}
        for row in self.rows:
            if row.seen is not None:
                names.setdefault(row.seen, []).append(row.name)
        return [f"{', '.join(of_rows)}: {sentence}" for sentence, of_rows in names.items()]


def finite(value: float) -> float | None:
    """Return a figure, or None where it is not a finite number, as in JSON."""
    return value if math.isfinite(value) else None


def choose(rows: Sequence[RowResult], within: float) -> Choice | None:
    """Choose the fastest of the rows whose validation perplexity is nearly the lowest.

    A row is as fast as the fastest unless it was slower in every round that they took turns in. Of
    rows as fast, the one of lower validation perplexity is chosen, then the one of fewer scores per
    target, then the first. Validation decides, so that the choice does not lower the test
    perplexity of the chosen row. N-gram models, and rows whose test split was read before, take no
    part.

    Parameters
    ----------
    rows : sequence of RowResult
        Those that had the same seconds, or the same epochs.
    within : float
        How far above the lowest validation perplexity the chosen row may be, as a share of it.

    Returns
    -------
    Choice or None
        Without its comparison to the rival; None without any row to choose.
    """

    def preference(row: RowResult) -> tuple[float, float]:
        return row.valid, row.scores_per_target

    eligible = [row for row in rows if row.is_trained and row.seen is None]
    if not eligible:
        return None
    best = min(eligible, key=preference)
    near = [row for row in eligible if row.valid <= (1 + within) * best.valid]
    fastest = max(near, key=lambda row: row.training.median if row.training else 0.0)
    tied = [row for row in near if not _is_slower(row, fastest)]
    chosen = min(tied, key=preference)
    rival = min((row for row in eligible if row is not chosen), key=preference, default=None)
    return Choice(
        among=len(eligible),
        best=best.name,
        within=within,
        chosen=chosen.name,
        tied=[row.name for row in tied if row is not chosen],
        rival=None if rival is None else rival.name,
    )


def _is_slower(row: RowResult, fastest: RowResult) -> bool:
    """Return whether a row was slower than the fastest in every round; one without speeds is."""
    if row is fastest or fastest.training is None:
        return False
    if row.training is None:
        return True
    pairs = zip(row.training.rounds, fastest.training.rounds, strict=True)
    return all(speed < highest for speed, highest in pairs)


# Columns


class Column(NamedTuple):
    """One figure of a row, in ``results.csv`` and, where it has a title, in tables."""

    key: str
    value: Callable[[RowResult], Any]
    title: str = ""
    form: Callable[[Any], str] = str

    def text(self, row: RowResult) -> str:
        """Return the figure as tables show it."""
        return self.form(self.value(row))


def _inside(value: Callable[[RowResult], Any], *names: str) -> Callable[[RowResult], Any]:
    """Return a function to an attribute of an attribute, None where one of them is None."""

    def inner(row: RowResult) -> Any:
        result = value(row)
        for name in names:
            result = None if result is None else getattr(result, name)
        return result

    return inner


_one = partial(figure, digits=1)
_ratio = partial(figure, digits=3)
_whole = partial(figure, digits=0)


def _speed_columns(name: str, title: str, times: str) -> list[Column]:
    def speed(row: RowResult) -> Any:
        return getattr(row, name)

    return [
        Column(f"{name}_tokens_per_second", _inside(speed, "median"), title, _whole),
        Column(f"{name}_times_flat", _inside(speed, "times_flat"), times, _one),
        Column(f"{name}_times_flat_low", _inside(speed, "low")),
        Column(f"{name}_times_flat_high", _inside(speed, "high")),
    ]


def _ratio_columns(name: str, title: str) -> list[Column]:
    def ratio(row: RowResult) -> Any:
        return getattr(row, name)

    parts = ("low", "high", "p", "blocks")
    return [
        Column(name, _inside(ratio, "ratio"), title, _ratio),
        *(Column(f"{name}_{part}", _inside(ratio, part)) for part in parts),
    ]


#: All figures of a row, in the order of ``results.csv``.
COLUMNS: list[Column] = [
    Column("name", lambda row: row.name, "row"),
    Column("kind", lambda row: row.kind),
    Column("method", lambda row: row.method),
    Column("layer", lambda row: row.layer),
    Column("models", lambda row: row.models),
    Column("seeds", lambda row: row.perplexity["test"].n),
    Column("valid", lambda row: row.perplexity["valid"].mean, "valid", _one),
    Column("valid_sd", lambda row: row.perplexity["valid"].sd),
    Column("test", lambda row: row.perplexity["test"].mean, "test", _one),
    Column("test_sd", lambda row: row.perplexity["test"].sd),
    Column("test_without_oov", lambda row: row.perplexity["test_without_oov"].mean),
    Column("covered", lambda row: row.covered),
    *_ratio_columns("to_flat", "ratio to flat"),
    Column("like", lambda row: row.like),
    *_ratio_columns("to_like", "to flat alike"),
    Column("mixed_test", _inside(lambda row: row.mixture, "test"), "with n-grams", _one),
    Column("mixed_weight", _inside(lambda row: row.mixture, "weight")),
    Column("codes_per_label", _inside(lambda row: row.tree, "codes_per_label")),
    Column("code_length", _inside(lambda row: row.tree, "code_length", "weighted")),
    Column(
        "scores_per_target",
        _inside(lambda row: row.tree, "scores_per_target"),
        "scores/target",
        _one,
    ),
    Column("depth", _inside(lambda row: row.tree, "depth")),
    Column("in_wordnet", lambda row: row.in_wordnet),
    Column("parameters", lambda row: row.parameters, "parameters", _whole),
    *_speed_columns("training", "tokens/s", "times flat"),
    *_speed_columns("nll", "", "one word, times flat"),
    *_speed_columns("top_k", "", "top 10, times flat"),
    *_speed_columns("unnormalised", "", "unnormalised, times flat"),
    Column("seconds_from_text", lambda row: row.steps.total, "s from text", _one),
    Column("from_text_times_flat", lambda row: row.from_text_times_flat),
    *(
        Column(f"seconds_{step}", _inside(lambda row: row.steps, step))
        for step in ("vectors", "tree", "preparation", "training")
    ),
    Column("epochs", lambda row: row.trained_epochs),
    Column("at_epoch_limit", lambda row: row.at_epoch_limit),
    Column("ln_z_mean", _inside(lambda row: row.log_normaliser, "mean"), "ln Z", _ratio),
    Column("ln_z_sd", _inside(lambda row: row.log_normaliser, "sd")),
    Column(
        "unnormalised_perplexity",
        _inside(lambda row: row.log_normaliser, "unnormalised_perplexity"),
    ),
    Column("published_low", _inside(lambda row: row.published, "low")),
    Column("published_high", _inside(lambda row: row.published, "high"), "published", _ratio),
    Column("published_source", _inside(lambda row: row.published, "source")),
    Column("seen", lambda row: row.seen),
]
#: Columns that are always shown; others are shown when a row has the figure.
_ALWAYS = {"name", "valid", "test", "parameters", "seconds_from_text"}


def shown_columns(rows: Sequence[RowResult]) -> list[Column]:
    """Return the columns with a title that at least one row has a figure for."""
    return [
        column
        for column in COLUMNS
        if column.title
        and (column.key in _ALWAYS or any(column.value(row) is not None for row in rows))
    ]


# Files


def csv_line(row: RowResult) -> dict[str, Any]:
    """Return the figures of a row by their columns."""
    return {column.key: column.value(row) for column in COLUMNS}


def write_csv(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Write lines with the same keys, below these; FileFormatError when it cannot be written.

    A text that a spreadsheet would take as a formula begins with an apostrophe.
    """
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(lines[0]) if lines else [], lineterminator="\n")
    writer.writeheader()
    for line in lines:
        writer.writerow({key: _as_cell(value) for key, value in line.items()})
    with replacing(path) as file:
        file.write(text.getvalue().encode("utf-8", "backslashreplace"))


def _as_cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and re.match(r"[=+\-@\t\r]", value) else value


def save(comparison: Comparison, folder: Path) -> None:
    """Write ``results.json`` and ``results.csv`` into a folder; FileFormatError if that fails."""
    write_struct(folder / JSON, comparison, format=FORMAT, version=VERSION)
    write_csv(folder / CSV, [csv_line(row) for row in comparison.rows])


def write_struct(path: Path, struct: Struct, **header: Any) -> None:
    """Write a struct as JSON, behind the keys of `header`; FileFormatError if that fails."""
    document = header | msgspec.to_builtins(struct)
    with replacing(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")


def read_struct(path: Path, kind: type[T], remedy: str) -> T:
    """Read a struct from JSON; FileFormatError when it is missing, damaged or of another shape."""
    data = read_regular(path, FileFormatError, remedy)
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        end = f"; {remedy}" if remedy else ""
        raise FileFormatError(f"{path} is damaged: {one_line(error)}{end}") from error


class _Header(Struct):
    format: str = ""
    version: Any = None


def load(path: str | os.PathLike[str]) -> Comparison:
    """Read the results of a comparison from its folder, or its ``results.json``.

    Raises
    ------
    FileFormatError
        When there are none, or they are damaged or of another version.
    """
    file = Path(path)
    if file.is_dir():
        file /= JSON
    header = read_struct(file, _Header, "make it with `hstree.compare`")
    if header.format != FORMAT:
        raise FileFormatError(f"{file} is not what `hstree.compare` leaves")
    if header.version != VERSION:
        raise FileFormatError(
            f"{file}: version {repr(header.version)[:40]}; this hstree reads version {VERSION}; "
            "compare again"
        )
    return read_struct(file, Comparison, "compare again").in_folder(file.parent)

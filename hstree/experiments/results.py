"""Results of a comparison: typed structs, their files, and one list of columns for all tables.

The fields of the structs are the keys of the JSON documents, which msgspec writes, reads and
checks. ``docs/results-format.md`` describes every key.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import msgspec
from msgspec import Meta, Struct

from hstree._files import read_json, replacing
from hstree._plugins import require
from hstree._text import TextTable, format_change, format_number, plural, show
from hstree.data.splits import SplitName
from hstree.errors import FileFormatError, InputError
from hstree.models.base import MAX_EPOCHS
from hstree.training.trainer import Epoch

if TYPE_CHECKING:
    from pandas import DataFrame

FORMAT = "hstree results"
VERSION = 6
JSON = "results.json"
CSV = "results.csv"
#: File with the words and their training counts, from which trees can be built again.
WORDS = "words.tsv"
#: Mark of a result that was measured on a sample of the held-out tokens.
SAMPLED = "\N{DAGGER}"

Scored = Literal["valid", "test", "test_without_oov"]
SCORED: tuple[Scored, ...] = ("valid", "test", "test_without_oov")
#: A dict with a value for each split, or for each of `SCORED`.
_ALL_THREE = Meta(min_length=3)
# No real result is near these bounds, and no value within them overflows on the page.
Amount = Annotated[float, Meta(ge=0, le=1e100)]
Positive = Annotated[float, Meta(ge=1e-100, le=1e100)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Signed = Annotated[float, Meta(ge=-1e100, le=1e100)]

T = TypeVar("T", bound=Struct)


class Record(Struct, frozen=True, kw_only=True):
    """Base class of all structs in this module."""


# Stopping rules


class Epochs(Record, tag="epochs", tag_field="rule", frozen=True):
    """Train every candidate until its validation perplexity stops falling, for at most `epochs`."""

    epochs: Annotated[int, Meta(ge=0, le=MAX_EPOCHS)] = 20

    #: Maximum seconds of a candidate, or of all candidates; None if the time is not limited.
    total_seconds: ClassVar[None] = None
    #: Whether all candidates share the time.
    is_shared: ClassVar[bool] = False

    @property
    def max_epochs(self) -> int:
        """Maximum number of epochs of a training run."""
        return self.epochs

    def __str__(self) -> str:
        return f"at most {plural(self.epochs, 'epoch')}"


class Seconds(Record, tag="seconds", tag_field="rule", frozen=True):
    """Train every candidate for the same time, including vectors and tree construction."""

    seconds: Positive

    max_epochs: ClassVar[int] = MAX_EPOCHS
    is_shared: ClassVar[bool] = False

    @property
    def total_seconds(self) -> float:
        """Seconds of a candidate."""
        return self.seconds

    def __str__(self) -> str:
        return f"{self.seconds:g} seconds per candidate"


class Halving(Record, tag="halving", tag_field="rule", frozen=True):
    """Train all candidates for the same time, then the better half for twice as long, and so on."""

    minutes: Positive = 10.0

    max_epochs: ClassVar[int] = MAX_EPOCHS
    is_shared: ClassVar[bool] = True

    @property
    def total_seconds(self) -> float:
        """Seconds of all candidates."""
        return 60 * self.minutes

    def __str__(self) -> str:
        minutes = "1 minute" if self.minutes == 1 else f"{self.minutes:g} minutes"
        return f"{minutes} for all candidates, with successive halving"


Stop = Epochs | Seconds | Halving


def mean_record(structs: Sequence[T], times: int = 1) -> T:
    """Return the mean of each field of structs times `times`; None if a value is None."""
    kind = type(structs[0])
    means: dict[str, float | None] = {}
    for name in kind.__struct_fields__:
        values = [getattr(struct, name) for struct in structs]
        means[name] = None if None in values else times * statistics.fmean(values)
    return kind(**means)


# Results of a job


class CodeLength(Record, frozen=True):
    """Mean code length in decisions, unweighted and weighted by the counts of the labels."""

    uniform: Amount | None
    weighted: Amount | None


class TreeRecord(Record, frozen=True):
    """Statistics of a tree, named as in `hstree.tree.statistics.TreeStatistics`."""

    nodes: Count
    codes_per_label: Amount | None
    code_length: CodeLength
    scores_per_target: Amount | None
    depth: Count
    sha256: str


class NormaliserRecord(Record, frozen=True):
    """Statistics of ln Z over the test tokens, for a layer that is trained towards Z = 1.

    `mean` and `sd` are in nats. ``unnormalised_perplexity`` is ``exp(mean(nll - ln Z))``, which is
    not the perplexity of a distribution. A value that is not finite is None.
    """

    mean: Signed | None
    sd: Amount | None
    unnormalised_perplexity: Amount | None


class Timings(Record, frozen=True):
    """Seconds of each step from a text to a trained model.

    The steps are training vectors for the tree, building the tree, preparing the output layer (for
    example, counting n-grams) and training the model. A step that was not timed is None.
    """

    vectors: Amount | None = 0.0
    tree: Amount | None = 0.0
    preparation: Amount | None = 0.0
    training: Amount | None = 0.0

    @property
    def total(self) -> float | None:
        """Sum over all steps; None if a step was not timed."""
        steps = [self.vectors, self.tree, self.preparation, self.training]
        return None if None in steps else sum(step for step in steps if step is not None)


class TokenCounts(Record, frozen=True):
    """Numbers of scored tokens at the beginning of the validation and of the test split."""

    valid: Count
    test: Count


class JobResult(Record, frozen=True):
    """Results of one finished job, the content of ``result.json`` in its folder.

    `files` contains the sha256 of each nll file in the folder. `scored` contains the numbers of
    scored tokens, and `scoring_seconds` the time for scoring them. `train` is the perplexity of the
    first training tokens, if it was computed. `seen` names test lines that the job has seen, if
    any. An n-gram model has no seed and no epochs; its parameters are its distinct n-grams. Numbers
    that are not finite are None. If the job failed, `failed` is the error; it has scores only if
    measuring its speed failed.
    """

    key: str
    files: dict[str, str]
    candidate: str
    seed: Count | None
    perplexity: Annotated[dict[Scored, Positive | None], _ALL_THREE]
    parameters: Count
    options: dict[str, Any]
    timings: Timings
    scored: TokenCounts
    scoring_seconds: Amount = 0.0
    epochs: list[Epoch] = []
    converged: bool = False
    out_of_time: bool = False
    interrupted: bool = False
    log_normaliser: NormaliserRecord | None = None
    train: Positive | None = None
    seen: str | None = None
    failed: str | None = None

    @property
    def valid(self) -> float:
        """Validation perplexity; infinity if it is not finite."""
        return math.inf if (value := self.perplexity["valid"]) is None else value


# Results of a candidate


class Spread(Record, frozen=True):
    """Mean and sample standard deviation of n values; `sd` is None for one value."""

    mean: Positive | None
    sd: Amount | None
    n: Annotated[int, Meta(ge=1)]

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Self:
        """Return the spread of values; the mean is None if a value is None or not finite."""
        known = [value for value in values if value is not None and math.isfinite(value)]
        if len(known) < len(values):
            return cls(mean=None, sd=None, n=len(values))
        sd = statistics.stdev(known) if len(known) > 1 else None
        return cls(mean=statistics.fmean(known), sd=sd, n=len(known))


@dataclass(frozen=True)
class Ratio:
    """Ratio of the perplexities of two models.

    Attributes
    ----------
    ratio : float
        Exponential of the mean difference in nll per token over blocks.
    low, high : float or None
        95% interval; None if there are too few blocks.
    p : float or None
        p value of the two-sided paired t-test of the hypothesis that the ratio is 1; None if there
        are too few blocks, or if all differ by the same amount.
    blocks : int
        Number of blocks.
    """

    ratio: float
    low: float | None
    high: float | None
    p: float | None
    blocks: int

    def __post_init__(self) -> None:
        """Refuse an interval with one bound, which a damaged file may contain."""
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval has only one bound")


class Speed(Record, frozen=True):
    """Tokens per second in each round of measurements; in a round, candidates take turns.

    `times_flat` is the median divided by the median of the flat softmax. `low` and `high` are the
    slowest and the fastest round divided by it. All three are None without a flat softmax.
    Candidates that were added later may have been measured in other rounds than flat.
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
        """Return the speed of a candidate relative to the rounds of the flat softmax."""
        if not flat:
            return cls(rounds=list(rounds))
        level = statistics.median(flat)
        return cls(
            rounds=list(rounds),
            times_flat=statistics.median(rounds) / level,
            low=min(rounds) / level,
            high=max(rounds) / level,
        )


class Mixture(Record, frozen=True):
    """Mixture of a candidate with the model `ngram`: ``weight * P + (1 - weight) * P_KN``.

    `weight` minimises the validation perplexity. `weight` and `test` are means over the seeds.
    """

    ngram: str
    weight: Annotated[float, Meta(ge=0, le=1)]
    test: Positive | None


class JobRecord(Record, frozen=True):
    """One job of a candidate: its seed, its results and its folder, relative to the comparison."""

    seed: Count | None
    folder: str
    perplexity: Annotated[dict[Scored, Positive | None], _ALL_THREE]
    epochs: list[Epoch] = []


class CandidateResult(Record, frozen=True):
    """One candidate of a comparison; ``docs/results-format.md`` describes every field.

    `name` is the candidate as `hstree.experiments.candidate.Candidate.parse` reads it. Results are
    means over the seeds. Results of an ensemble include all its models, but the tree file is that
    of the first model. A result that does not apply or was not measured is None. `sample` is None
    if all held-out tokens were scored, and `failed` is None if no job failed.
    """

    name: str
    kind: Literal["tree", "layer", "ngram"]
    method: str
    summary: str
    options: dict[str, Any]
    layer: str | None
    models: Annotated[int, Meta(ge=1, le=1000)]
    is_flat: bool
    tree: TreeRecord | None
    tree_file: str | None
    parameters: Count
    jobs: Annotated[list[JobRecord], Meta(min_length=1)]
    perplexity: Annotated[dict[Scored, Spread], _ALL_THREE]
    at_epoch_limit: Count
    timings: Timings
    by_band: list[Positive | None]
    test_oov: Annotated[float, Meta(ge=0, le=1)] | None = None
    sample: TokenCounts | None = None
    seen: str | None = None
    failed: str | None = None
    training: Speed | None = None
    nll: Speed | None = None
    top_k: Speed | None = None
    unnormalised: Speed | None = None
    from_text_times_flat: Positive | None = None
    to_flat: Ratio | None = None
    like: str | None = None
    to_like: Ratio | None = None
    log_normaliser: NormaliserRecord | None = None
    mixture: Mixture | None = None

    @property
    def valid(self) -> float:
        """Mean validation perplexity; infinity if it is unknown."""
        mean = self.perplexity["valid"].mean
        return math.inf if mean is None else mean

    @property
    def test(self) -> float | None:
        """Mean test perplexity."""
        return self.perplexity["test"].mean

    @property
    def is_trained(self) -> bool:
        """Whether it is an output layer, not an n-gram model."""
        return self.kind != "ngram"

    @property
    def has_tree(self) -> bool:
        """Whether it is an output layer over a tree."""
        return self.kind == "tree"

    @property
    def trained_epochs(self) -> float:
        """Mean number of epochs over the jobs; an unfinished epoch counts as a fraction."""
        return statistics.fmean(sum(epoch.share for epoch in job.epochs) for job in self.jobs)


class Choice(Record, frozen=True):
    """The recommendation among `candidates`, made by `recommendation.choose`.

    `chosen` has the lowest validation perplexity. `cheaper` is the fastest candidate whose
    validation perplexity is at most the fraction `tolerance` higher; it is None unless it takes
    less time than `chosen`. `rival` is the best other candidate, and `to_rival` is the test
    perplexity of `chosen` divided by that of `rival`.
    """

    chosen: str
    tolerance: Amount
    candidates: list[str]
    cheaper: str | None = None
    rival: str | None = None
    to_rival: Ratio | None = None


# A comparison


class VocabularyRecord(Record, frozen=True):
    """Size and hash of a vocabulary."""

    size: Count
    sha256: str


class Machine(Record, frozen=True):
    """Computer on which speeds were measured; `cores` is the number that the process may use."""

    cores: Count
    system: str
    processor: str


class Band(Record, frozen=True):
    """Words with training counts from `least` to `most`; both are None for unknown words.

    `words` is the number of these words in the vocabulary, and `tokens` the number of test tokens.
    """

    least: Count | None
    most: Count | None
    words: Count
    tokens: Count


class Comparison(Record, weakref=True, dict=True, frozen=True):
    """All results of a comparison, the content of ``results.json``.

    A notebook displays the table; `print` and `show` print it. ``docs/results-format.md`` describes
    every field.

    Attributes
    ----------
    candidates : list of CandidateResult
    choice : Choice or None
        The recommendation; None if no candidate can be recommended.
    recommendation : list of str
        Sentences that state the recommendation, or the reason why there is none.
    pending : list of str
        Names of unfinished candidates, which have no results yet.
    """

    predicts: str
    corpus: Annotated[dict[SplitName, dict[str, Any]], _ALL_THREE]
    tokens: Annotated[dict[SplitName, Count], _ALL_THREE]
    oov: Annotated[dict[SplitName, Count], _ALL_THREE]
    vocabulary: VocabularyRecord
    options: dict[str, Any]
    stop: Stop
    seeds: Annotated[list[Count], Meta(min_length=1)]
    versions: dict[str, str]
    machine: Machine
    unigram: Positive | None
    bands: list[Band]
    candidates: list[CandidateResult]
    choice: Choice | None = None
    recommendation: list[str] = []
    pending: list[str] = []

    #: Folder with the files of the comparison; None if it was not read from a folder.
    folder: ClassVar[Path | None] = None

    def __repr__(self) -> str:
        best = "" if self.best is None else f", best {self.best.name!r}"
        return f"{type(self).__name__}({plural(len(self.candidates), 'candidate')}{best})"

    def __str__(self) -> str:
        return str(self.table("\n".join(self.recommendation)))

    def _repr_html_(self) -> str:
        sentences = "<br>".join(map(escape, self.recommendation))
        return f"<p>{sentences}</p>{self.table()._repr_html_()}"

    @property
    def best(self) -> CandidateResult | None:
        """The recommended candidate, or None."""
        return None if self.choice is None else self.candidate(self.choice.chosen)

    def candidate(self, name: str) -> CandidateResult:
        """Return the candidate with a name. Raises InputError if there is none."""
        for candidate in self.candidates:
            if candidate.name == name:
                return candidate
        known = ", ".join(candidate.name for candidate in self.candidates)
        raise InputError(f"the comparison has no candidate {name!r}; it has {known}")

    def in_folder(self, folder: str | os.PathLike[str]) -> Self:
        """Return a copy of the results with the folder that contains their trees."""
        copy = msgspec.structs.replace(self)
        # The folder is not a field, since files do not record it; a frozen struct refuses setattr
        copy.__dict__["folder"] = Path(folder).absolute()
        return copy

    def show(self) -> None:
        """Display the table in a notebook; print it anywhere else."""
        show(self)

    def to_frame(self) -> DataFrame:
        """Return the columns of ``results.csv`` as a pandas DataFrame with one row per candidate.

        Raises MissingExtraError if pandas is not installed.
        """
        pandas: Any = require("pandas")
        return pandas.DataFrame({column.key: self.values(column) for column in COLUMNS})

    def table(self, note: str = "") -> TextTable:
        """Return a table of all titled columns that have a value, above a note.

        Perplexities are shown with their standard deviation over seeds. A star means that training
        stopped at the maximum number of epochs, a dagger that the value was measured on a sample.
        Ratios are shown with their intervals. The note begins with the fraction of test tokens that
        are out of vocabulary.
        """
        columns = [
            column
            for column in COLUMNS
            if column.title
            and (column.key in _ALWAYS or any(value is not None for value in self.values(column)))
        ]
        titles = {column.key: column.title for column in columns}
        for candidate in self.candidates:
            if candidate.mixture is not None:
                titles["mixed_test"] = f"mixed with {candidate.mixture.ngram}"
                break
        lines = [self._cells(columns, candidate) for candidate in self.candidates]
        oov = f"Out of vocabulary: {self.oov_rate('test'):.2%} of test tokens."
        return TextTable(list(titles.values()), lines, f"{oov}\n{note}" if note else oov)

    def values(self, column: Column) -> list[Any]:
        """Return the value of each candidate in a column; None for a missing value."""
        return [value_at(column.path, candidate) for candidate in self.candidates]

    def _cells(self, columns: Sequence[Column], candidate: CandidateResult) -> list[str]:
        """Return the cells of a candidate in the table."""
        cells = {column.key: column.form(value_at(column.path, candidate)) for column in columns}
        for split in ("valid", "test"):
            if (sd := candidate.perplexity[split].sd) is not None:
                cells[split] += f" ± {format_number(sd, 1)}"
        if candidate.at_epoch_limit:
            cells["test"] += "*"
        # No space inside the brackets, so that a narrow table breaks the line before them
        for key, ratio in {"to_flat": candidate.to_flat, "to_like": candidate.to_like}.items():
            if ratio is not None and ratio.low is not None and ratio.low != ratio.high:
                cells[key] += f" [{format_change(ratio.low)},{format_change(ratio.high)}]"
        for column in columns:
            if cells[column.key] != "-" and self.sample(column.path, candidate) is not None:
                cells[column.key] += SAMPLED
        return list(cells.values())

    def oov_rate(self, split: SplitName) -> float:
        """Return the fraction of a split's tokens that are out of vocabulary."""
        return self.oov[split] / self.tokens[split] if self.tokens[split] else 0.0

    def sample(self, path: str, candidate: CandidateResult) -> TokenCounts | None:
        """Return the sample on which a value was measured; None if it was measured on all tokens.

        Ratios and mixtures are measured on the tokens that both candidates have scored. `path`
        leads to the value, as in `COLUMNS`.
        """
        part = path.partition(".")[0]
        others = {
            "perplexity": None,
            "to_flat": next((other.name for other in self.candidates if other.is_flat), None),
            "to_like": candidate.like,
            "mixture": None if candidate.mixture is None else candidate.mixture.ngram,
        }
        if part not in others:
            return None
        both = [other for other in self.candidates if other.name in (candidate.name, others[part])]
        return next((other.sample for other in both if other.sample is not None), None)

    def samples(self) -> list[str]:
        """Return one sentence per sample that lists the candidates scored on it."""
        return [
            f"scored on the first {sample.valid:,} tokens of the validation split and the first "
            f"{sample.test:,} of the test split: {names}"
            for sample, names in self._names_by("sample").items()
        ]

    def read_before(self) -> list[str]:
        """Return one sentence per set of test lines that candidates have seen."""
        return [f"{names}: {sentence}" for sentence, names in self._names_by("seen").items()]

    def failures(self) -> list[str]:
        """Return one sentence per error, with the candidates that failed."""
        return [f"Failed: {names}: {error}." for error, names in self._names_by("failed").items()]

    def _names_by(self, field: str) -> dict[Any, str]:
        """Group the names of candidates by the value of a field; skip candidates with None."""
        names: dict[Any, str] = {}
        for candidate in self.candidates:
            value = getattr(candidate, field)
            if value is not None:
                before = f"{names[value]}, " if value in names else ""
                names[value] = before + candidate.name
        return names


# Columns


class Column(NamedTuple):
    """One column of ``results.csv``; if it has a title, also of tables."""

    key: str
    path: str  #: attributes and keys that lead from a candidate to the value
    title: str = ""
    form: Callable[[Any], str] = str


def value_at(path: str, candidate: CandidateResult) -> Any:
    """Return the value at a path, such as ``tree.depth``; None if a part of the path is None."""
    value: Any = candidate
    for name in path.split("."):
        if value is not None:
            value = value[name] if isinstance(value, dict) else getattr(value, name)
    return value


_to_tenths = partial(format_number, digits=1)
_to_thousandths = partial(format_number, digits=3)
_whole_number = partial(format_number, digits=0)


def _ratio_columns(key: str, title: str) -> list[Column]:
    """Return the columns for a ratio of perplexities and its interval."""
    return [
        Column(key, f"{key}.ratio", title, format_change),
        Column(f"{key}_low", f"{key}.low"),
        Column(f"{key}_high", f"{key}.high"),
        Column(f"{key}_p", f"{key}.p"),
        Column(f"{key}_blocks", f"{key}.blocks"),
    ]


def _speed_columns(key: str, title_times_flat: str, title: str = "") -> list[Column]:
    """Return the columns for a speed and its ratio to the speed of flat."""
    return [
        Column(f"{key}_tokens_per_second", f"{key}.median", title, _whole_number),
        Column(f"{key}_times_flat", f"{key}.times_flat", title_times_flat, _to_tenths),
        Column(f"{key}_times_flat_low", f"{key}.low"),
        Column(f"{key}_times_flat_high", f"{key}.high"),
    ]


#: All values of a candidate, in the order of ``results.csv``.
COLUMNS: list[Column] = [
    Column("name", "name", "candidate"),
    Column("kind", "kind"),
    Column("method", "method"),
    Column("layer", "layer"),
    Column("models", "models"),
    Column("seeds", "perplexity.test.n"),
    Column("failed", "failed", "failed", lambda error: "-" if error is None else "yes"),
    Column("valid", "perplexity.valid.mean", "valid", _to_tenths),
    Column("valid_sd", "perplexity.valid.sd"),
    Column("test", "perplexity.test.mean", "test", _to_tenths),
    Column("test_sd", "perplexity.test.sd"),
    Column("test_without_oov", "perplexity.test_without_oov.mean"),
    Column("test_oov", "test_oov"),
    Column("valid_sample", "sample.valid"),
    Column("test_sample", "sample.test"),
    *_ratio_columns("to_flat", "vs flat"),
    Column("like", "like"),
    *_ratio_columns("to_like", "vs flat, same layer"),
    Column("mixed_test", "mixture.test", "mixed with", _to_tenths),
    Column("mixed_weight", "mixture.weight"),
    Column("mixed_with", "mixture.ngram"),
    Column("codes_per_label", "tree.codes_per_label"),
    Column("code_length", "tree.code_length.weighted"),
    Column("scores_per_target", "tree.scores_per_target", "scores/target", _to_tenths),
    Column("depth", "tree.depth"),
    Column("parameters", "parameters", "parameters", _whole_number),
    *_speed_columns("training", "speed vs flat", "tokens/s"),
    *_speed_columns("nll", "one-word speed vs flat"),
    *_speed_columns("top_k", "top-10 speed vs flat"),
    *_speed_columns("unnormalised", "unnormalised speed vs flat"),
    Column("seconds_from_text", "timings.total", "total s", _to_tenths),
    Column("from_text_times_flat", "from_text_times_flat"),
    Column("seconds_vectors", "timings.vectors"),
    Column("seconds_tree", "timings.tree"),
    Column("seconds_preparation", "timings.preparation"),
    Column("seconds_training", "timings.training", "training s", _to_tenths),
    Column("epochs", "trained_epochs"),
    Column("at_epoch_limit", "at_epoch_limit"),
    Column("ln_z_mean", "log_normaliser.mean", "ln Z", _to_thousandths),
    Column("ln_z_sd", "log_normaliser.sd"),
    Column("unnormalised_perplexity", "log_normaliser.unnormalised_perplexity"),
    Column("seen", "seen"),
]
#: Columns that are always shown; other columns are shown if a candidate has the value.
_ALWAYS = {"name", "valid", "test", "parameters", "seconds_from_text"}


# Files


def save(comparison: Comparison, folder: Path) -> None:
    """Write ``results.json`` and ``results.csv`` to a folder. Raises FileFormatError on failure."""
    write_struct(folder / JSON, comparison, format=FORMAT, version=VERSION)
    with replacing(folder / CSV) as file:
        file.write(csv_text(comparison))


def csv_text(comparison: Comparison) -> bytes:
    """Return the content of ``results.csv``."""
    columns = [comparison.values(column) for column in COLUMNS]
    return csv_bytes([column.key for column in COLUMNS], zip(*columns, strict=True))


def csv_bytes(titles: Sequence[str], lines: Iterable[Sequence[Any]]) -> bytes:
    """Return titles and lines of cells as CSV.

    A text that a spreadsheet would read as a formula is prefixed with an apostrophe.
    """
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(
        [
            f"'{cell}" if isinstance(cell, str) and re.match(r"[=+\-@\t\r]", cell) else cell
            for cell in line
        ]
        for line in (titles, *lines)
    )
    return text.getvalue().encode("utf-8", "backslashreplace")


def write_struct(path: Path, struct: Struct, **header: Any) -> None:
    """Write the keys of `header` and a struct as JSON. Raises FileFormatError on failure."""
    document = header | msgspec.to_builtins(struct)
    with replacing(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")


class _Header(Struct):
    format: str = ""
    version: Any = None


def load(path: str | os.PathLike[str]) -> Comparison:
    """Read the results of a comparison from its folder or from its ``results.json``.

    Raises
    ------
    FileFormatError
        If there are no results, or if they are damaged or have another version.
    """
    file = Path(path)
    if file.is_dir():
        file /= JSON
    if not file.exists():
        raise FileFormatError(f"there is no comparison in {path}; create one with compare")
    header = read_json(file, _Header, "create it with compare")
    if header.format != FORMAT:
        raise FileFormatError(f"{file} is not a results file of compare")
    if header.version != VERSION:
        raise FileFormatError(
            f"{file} has version {repr(header.version)[:40]}, and this hstree reads version "
            f"{VERSION}; compare again"
        )
    comparison = read_json(file, Comparison, "compare again")
    if (wrong := _misfit(comparison)) is not None:
        raise FileFormatError(f"{file} is damaged: {wrong}; compare again")
    return comparison.in_folder(file.parent)


def _misfit(comparison: Comparison) -> str | None:
    """Return a description of parts of a file that contradict each other, or None."""
    if not comparison.recommendation:
        return "it has no recommendation"
    names = [candidate.name for candidate in comparison.candidates]
    if len(set(names)) < len(names):
        return "two candidates have the same name"
    for candidate in comparison.candidates:
        describes_tree = candidate.tree is not None and candidate.tree_file is not None
        # The tree of a failed candidate may have failed
        may_lack_tree = candidate.has_tree and candidate.failed is not None
        if describes_tree != candidate.has_tree and not may_lack_tree:
            return f"the tree of the candidate {candidate.name!r} is missing or unexpected"
        if len(candidate.by_band) != len(comparison.bands):
            return "the number of bands differs between candidates"
    # The choice may name only candidates in the table
    named: set[str] = set()
    if (choice := comparison.choice) is not None:
        alternatives = {choice.chosen, choice.cheaper, choice.rival, *choice.candidates}
        named = {name for name in alternatives if name is not None}
    return None if named <= set(names) else "the recommendation names an unknown candidate"

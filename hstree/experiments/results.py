"""Results as typed figures, and the files that keep them: ``results.json`` and ``results.csv``.

The fields of the dataclasses are the keys of the JSON documents, in their order, so that writing
is `dataclasses.asdict` and reading follows the type hints. ``docs/results-format.md`` describes
every key.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from reprlib import repr as brief
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Self,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from hstree._files import DEEPEST, nested_too_deep, read_json, replacing, write_json
from hstree._plugins import require
from hstree._tables import TextTable, figure, show
from hstree._text import plural
from hstree.data.text_score import LogNormaliser
from hstree.data.vocabulary import Vocabulary
from hstree.errors import FileFormatError, InputError, OptionError, PluginError
from hstree.experiments.significance import Ratio
from hstree.layers.registry import LayerSpec
from hstree.models import config_of, kind_of
from hstree.training.trainer import Epoch
from hstree.tree.statistics import TreeStatistics

if TYPE_CHECKING:
    from pandas import DataFrame

FORMAT, VERSION = "hstree results", 3
JSON, CSV = "results.json", "results.csv"

Split = Literal["train", "valid", "test"]
Scored = Literal["valid", "test", "test_without_oov"]
#: A number that may be negative; all others of the results may not.
Signed = Annotated[float, "signed"]
SPLITS: tuple[Split, ...] = get_args(Split)
SCORED: tuple[Scored, ...] = get_args(Scored)

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class VocabularyFigures:
    """Size and hash of a vocabulary."""

    size: int
    sha256: str

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Self:
        """Return the figures of a vocabulary."""
        return cls(size=len(vocabulary), sha256=vocabulary.sha256)


@dataclass(frozen=True, kw_only=True)
class CodeLength:
    """Mean code length in decisions, unweighted and weighted by the labels' counts."""

    uniform: float | None
    weighted: float | None

    @property
    def mean(self) -> float | None:
        """The weighted mean if there are counts, else the unweighted one."""
        return self.uniform if self.weighted is None else self.weighted


@dataclass(frozen=True, kw_only=True)
class TreeFigures:
    """Statistics of a tree, under the names of `hstree.tree.statistics.TreeStatistics`."""

    method: str | None = None
    nodes: int
    labels: int | None = None
    codes_per_label: float | None
    code_length: CodeLength
    scores_per_target: float | None
    entropy: float | None = None
    huffman_length: float | None = None
    depth: int | None = None
    sha256: str

    @classmethod
    def of(cls, statistics: TreeStatistics) -> Self:
        """Return the figures of a tree."""
        document = statistics.as_dict()
        return cls(**document | {"code_length": CodeLength(**document["code_length"])})

    @classmethod
    def of_ensemble(cls, trees: Sequence[Self]) -> Self:
        """Return the first tree's figures, its codes, their length and scores summed over all."""
        return replace(
            trees[0],
            codes_per_label=_sum(tree.codes_per_label for tree in trees),
            code_length=CodeLength(
                uniform=_sum(tree.code_length.uniform for tree in trees),
                weighted=_sum(tree.code_length.weighted for tree in trees),
            ),
            scores_per_target=_sum(tree.scores_per_target for tree in trees),
        )


def _sum(values: Iterable[float | None]) -> float | None:
    """Return the sum of figures; None if one is not known."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)


@dataclass(frozen=True, kw_only=True)
class LayerFigures:
    """Name and options of an output layer that is not the hierarchical softmax of a tree."""

    name: str
    options: dict[str, Any]

    @classmethod
    def of(cls, spec: LayerSpec) -> Self | None:
        """Return those of a specified layer; None for the hierarchical softmax."""
        return None if spec.is_plain_tree else cls(name=spec.kind.name, options=spec.set_options)


@dataclass(frozen=True, kw_only=True)
class NormaliserFigures:
    """Figures of ln Z over the test tokens, under a layer that is trained towards Z = 1.

    Attributes
    ----------
    mean, sd : float or None
        Mean and standard deviation in nats; in a row, means over the runs. None where they are not
        finite, as the others.
    unnormalised_perplexity : float or None
        ``exp(mean(nll - ln Z))``: without normalising. It is no perplexity of a distribution.
    """

    mean: Signed | None
    sd: float | None
    unnormalised_perplexity: float | None

    @classmethod
    def of(cls, score: LogNormaliser | None) -> Self | None:
        """Return the figures of a text; None without any."""
        if score is None:
            return None
        return cls(
            mean=finite(score.mean),
            sd=finite(score.sd),
            unnormalised_perplexity=finite(score.unnormalised_perplexity),
        )


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """Figures of one evaluation, as ``result.json`` of a run holds them.

    Attributes
    ----------
    predicts : str
        Predicted event that perplexities measure: "word given the words before it".
    perplexity : dict of str to float or None
        By split; ``test_without_oov`` and ``unigram`` are of the test split. None where it is not
        a finite number.
    tokens, oov : dict of str to int
        By split.
    vocabulary : VocabularyFigures
    tree : TreeFigures or None
        None for an output layer without a tree.
    layer : LayerFigures or None
        None for the hierarchical softmax.
    epochs : list of Epoch or None
        None for a saved model that is scored, as are `interrupted` and `converged`.
    interrupted, converged : bool or None
    out_of_time : bool or None
        Whether the budget of seconds ended the training; None without such a budget.
    preparation : float or None
        Seconds of the output layer before its first batch; None where they were not measured.
    seconds : float
        Wall-clock time of training and scoring.
    options : dict
        Every option of the model.
    corpus : dict of str to dict
        Source of the text of each split.
    seen : str or None
        One sentence that names the test lines that were read before, if any.
    versions : dict of str to str
    key : str or None
        Hash of all that a kept run depends on; None for an evaluation that is not kept.
    log_normaliser : NormaliserFigures or None
        On the test split; None for layers that are normalised by design.
    warm_start : bool or None
        True for a training that began with the word vectors of another model; else None.
    """

    predicts: str
    perplexity: dict[str, float | None]
    tokens: dict[str, int]
    oov: dict[str, int]
    vocabulary: VocabularyFigures
    tree: TreeFigures | None
    layer: LayerFigures | None = None
    epochs: list[Epoch] | None = None
    interrupted: bool | None = None
    converged: bool | None = None
    out_of_time: bool | None = None
    preparation: float | None = None
    seconds: float
    options: dict[str, Any]
    corpus: dict[str, dict[str, Any]]
    seen: str | None
    versions: dict[str, str]
    key: str | None = None
    log_normaliser: NormaliserFigures | None = None
    warm_start: bool | None = None

    @property
    def valid(self) -> float:
        """Validation perplexity; infinity where it is not a finite number."""
        perplexity = self.perplexity["valid"]
        return math.inf if perplexity is None else perplexity

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object, without what is not known."""
        optional = (
            *("layer", "epochs", "interrupted", "converged", "out_of_time"),
            *("preparation", "key", "log_normaliser", "warm_start"),
        )
        return _without_none(asdict(self), *optional)


@dataclass(frozen=True, kw_only=True)
class BaselineResult:
    """Figures of one n-gram model, as its ``result.json`` holds them.

    Attributes
    ----------
    perplexity : dict of str to float or None
        By split; ``test_without_oov`` is of the test split.
    options : dict
    parameters : int
        Number of distinct n-grams of all orders.
    fit_seconds, seconds : float
        Time to count and smooth, and the same with scoring.
    key : str
        Hash of all that the result depends on.
    """

    perplexity: dict[str, float | None]
    options: dict[str, Any]
    parameters: int
    fit_seconds: float
    seconds: float
    key: str


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Computer that speeds were measured on; `cores` is the number that the process may use."""

    cores: int
    system: str
    processor: str


@dataclass(frozen=True, kw_only=True)
class Band:
    """Words whose training count is `least` to `most`; both are None for words out of vocabulary.

    `words` is the number of such words in the vocabulary, `tokens` of test tokens.
    """

    least: int | None
    most: int | None
    words: int
    tokens: int


@dataclass(frozen=True, kw_only=True)
class LengthCount:
    """Number of codes of one length, and of training tokens that have them."""

    length: int
    codes: int
    tokens: float


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Mean and sample standard deviation of n values; `sd` is None for one value."""

    mean: float | None
    sd: float | None
    n: int


@dataclass(frozen=True, kw_only=True)
class SecondsFromText:
    """Seconds from the text to a trained model: its steps and their sum.

    The steps are the vectors of a tree, the tree, the preparation of the output layer (n-grams to
    draw noise from, say) and the training. `speed_up` is the seconds of the flat row divided by
    those of this row.
    """

    seconds: float | None
    vectors: float | None
    tree: float | None
    preparation: float | None = None
    training: float | None
    speed_up: float | None


@dataclass(frozen=True, kw_only=True)
class ScoringSpeed:
    """Words per second in testing: the probability of one (`nll`), and the 10 most probable."""

    nll: float
    top_k: float


@dataclass(frozen=True, kw_only=True)
class RowRun:
    """One run of a row; a baseline has no seed and no epochs."""

    seed: int | None
    folder: str
    perplexity: dict[str, float | None]
    epochs: list[Epoch] | None = None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a comparison. ``docs/results-format.md`` describes the fields in full.

    Attributes
    ----------
    name : str
    kind : {"tree", "layer", "baseline"}
    tree_file : str or None
        Path of the first random state's tree, relative to the comparison's folder.
    entry : dict of str to Any
        Record of `hstree.experiments.entries.record_of`.
    method : str or None
        Builder of the tree, None if its file does not say; name of another layer or a baseline.
    options : dict
        Options of the builder, the layer or the baseline.
    tree : TreeFigures or None
        None without a tree, as are `tree_file` and `code_lengths`. Baselines have no speeds.
    layer : LayerFigures or None
        Layer over the tree that is not the hierarchical softmax, as one with n-gram features.
    models : int
        Number of models of an ensemble, the mean of whose probabilities is reported; else 1. Its
        codes, scores, parameters and seconds are those of all models, `runs` one for each; its tree
        file and code lengths are of the first.
    code_lengths : list of LengthCount or None
    parameters : int or None
        Number of trained parameters.
    in_wordnet : float or None
        Share of the training tokens that WordNet has; None unless built from WordNet.
    runs : list of RowRun
    perplexity : dict of str to Spread
        ``valid``, ``test`` and ``test_without_oov``, over the runs.
    at_epoch_limit : int
        Number of runs that stopped at the limit of epochs, before they had converged.
    out_of_time : int
        Number of runs that a budget of seconds ended.
    seconds_per_epoch, tokens_per_second : float or None
        At the median speed of the rounds.
    speed_rounds : list of float or None
        Tokens per second in training of each round that all rows took part in.
    scoring : ScoringSpeed or None
    speed_up : float or None
        Training speed divided by that of the flat row; None without one.
    from_text : SecondsFromText or None
    seen : str or None
        One sentence that names the test lines that were read before, if any.
    to_flat : Ratio or None
        Test perplexity divided by that of the flat row.
    by_band : list of float or None
        Test perplexity in each band of the comparison; None for a band without tokens.
    log_normaliser : NormaliserFigures or None
        Means over the runs; None for layers that are normalised by design.
    covered : float or None
        Test perplexity over the tokens of words that WordNet has, the mean over the runs; None in a
        comparison without a tree built from WordNet.
    """

    name: str
    entry: dict[str, Any]
    kind: Literal["tree", "layer", "baseline"]
    tree_file: str | None
    method: str | None
    options: dict[str, Any]
    tree: TreeFigures | None
    code_lengths: list[LengthCount] | None
    parameters: int | None
    in_wordnet: float | None
    runs: list[RowRun]
    perplexity: dict[Scored, Spread]
    at_epoch_limit: int
    seconds_per_epoch: float | None
    tokens_per_second: float | None
    speed_up: float | None
    from_text: SecondsFromText | None
    seen: str | None
    to_flat: Ratio | None
    by_band: list[float | None] | None
    out_of_time: int = 0
    log_normaliser: NormaliserFigures | None = None
    speed_rounds: list[float] | None = None
    scoring: ScoringSpeed | None = None
    covered: float | None = None
    layer: LayerFigures | None = None
    models: int = 1

    @property
    def is_flat(self) -> bool:
        """Whether it is one flat softmax: all labels under the root."""
        if self.models > 1:
            return False
        if self.tree is None:
            return self.kind == "layer" and self.method == "flat"
        return self.tree.nodes == 1 and self.layer is None

    @property
    def scores_per_target(self) -> float:
        """Scores that one target costs; infinity where they are not counted."""
        scores = None if self.tree is None else self.tree.scores_per_target
        return math.inf if scores is None else scores

    @property
    def validation_perplexity(self) -> float:
        """Mean validation perplexity; infinity where there is none."""
        mean = self.perplexity["valid"].mean
        return math.inf if mean is None else mean


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The row to use, by the rule of `hstree.experiments.rows.choice`.

    Attributes
    ----------
    by : str
        Split whose perplexity decides.
    among : int
        Number of rows that can be chosen.
    best : str
        Name of the row of lowest perplexity.
    within : float
        How far above the lowest perplexity the chosen row may be, as a share of it.
    chosen : str
        Name of the fastest of the rows within it, or of the one that is preferred among those
        as fast.
    tied : list of str
        Names of the other rows within it that are as fast as the fastest.
    rival : str or None
        Name of the best other row.
    to_rival : Ratio or None
        Test perplexity of the chosen row divided by that of its rival.
    """

    by: str
    among: int
    best: str
    within: float
    chosen: str
    tied: list[str]
    rival: str | None = None
    to_rival: Ratio | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """All figures of a comparison, as ``results.json`` holds them.

    A notebook shows its table; `print` and `show` print it.

    Attributes
    ----------
    predicts : str
        Predicted event that perplexities measure: "word given the words before it".
    corpus : dict of str to dict
        Source of the text of each split.
    tokens, oov : dict of str to int
        By split.
    vocabulary : VocabularyFigures
    options : dict
        Every option of the models, and ``seeds``, the random states.
    versions : dict of str to str
    machine : Machine
    unigram : float or None
        Test perplexity of the training split's unigram distribution.
    bands : list of Band
    rows : list of Row
    choice : Choice or None
        None without a trained row whose test split is unseen.
    pending : list of str
        Names of rows that are not finished yet; figures are of the others.
    left_out : dict of str to str
        Names of rows that do not fit the budget of minutes, and why.
    """

    predicts: str = "word given the words before it"
    corpus: dict[Split, dict[str, Any]]
    tokens: dict[Split, int]
    oov: dict[Split, int]
    vocabulary: VocabularyFigures
    options: dict[str, Any]
    versions: dict[str, str]
    machine: Machine
    unigram: float | None
    bands: list[Band]
    rows: list[Row]
    choice: Choice | None
    pending: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        best = "" if self.best is None else f", best {self.best.name!r}"
        return f"{type(self).__name__}({plural(len(self.rows), 'row')}{best})"

    def __str__(self) -> str:
        return str(self._table())

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()

    @property
    def best(self) -> Row | None:
        """Row to use: the one that `choice` names; None where it names none."""
        chosen = None if self.choice is None else self.choice.chosen
        return next((row for row in self.rows if row.name == chosen), None)

    @property
    def folder(self) -> Path | None:
        """Folder of the comparison, which has its trees; None where it is not known."""
        return vars(self).get("_folder")

    def in_folder(self, folder: str | os.PathLike[str]) -> Self:
        """Return the same comparison with its folder, which is no figure of ``results.json``."""
        other = copy(self)
        vars(other)["_folder"] = Path(folder).absolute()
        return other

    def show(self) -> None:
        """Print the table; in a notebook, display it."""
        show(self)

    def frame(self) -> DataFrame:
        """Return a pandas ``DataFrame`` with a row per row and the columns of ``results.csv``.

        Raises
        ------
        MissingExtraError
            When pandas is not installed.
        """
        pandas = require("pandas", "notebook")
        frame: DataFrame = pandas.DataFrame(list(map(_csv_line, self.rows)))
        figures = frame.columns.difference(_CSV_TEXTS, sort=False)
        frame[figures] = frame[figures].apply(pandas.to_numeric)  # None is NaN
        return frame

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the page of plots and trees to a file, and return its path.

        The page is one HTML file, which needs no network; see `hstree.report.write`.

        Raises
        ------
        InputError
            When the comparison has no `folder`, where its trees are.
        MissingExtraError
            When the plotting library is not installed.
        FileFormatError
            When the folder lacks a tree, or the page cannot be written.
        """
        if self.folder is None:
            raise InputError(
                "this comparison has no folder, where its trees are; name it with in_folder(...)"
            )
        report = import_module("hstree.report")  # it draws what this package makes
        written: Path = report.write_comparison(self, self.folder, path)
        return written

    def _table(self) -> TextTable:
        """Return the main figures of each row, and which row to use."""
        lines = map(_csv_line, self.rows)
        cells = [[shown(line[key]) for key, shown in _SHORT.values()] for line in lines]
        note = ""
        if self.best is not None and (choice := self.choice) is not None:
            fastest = "one of the fastest" if choice.tied else "the fastest"
            note = f"Use {choice.chosen}: {fastest} within {choice.within:.0%} of the lowest "
            note += f"validation perplexity, that of {choice.best}"
        return TextTable(list(_SHORT), cells, note)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        document = asdict(self)
        for row in document["rows"]:
            row["runs"] = [_without_none(run, "epochs") for run in row["runs"]]
        document["rows"] = [_without_none(row, "log_normaliser") for row in document["rows"]]
        return document

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


def _without_none(document: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return an object without those of `keys` whose value is None."""
    return {k: value for k, value in document.items() if value is not None or k not in keys}


def save(comparison: Comparison, folder: Path) -> None:
    """Write ``results.json`` and ``results.csv`` into a folder.

    Raises
    ------
    FileFormatError
        When they cannot be written.
    """
    document = {"format": FORMAT, "version": VERSION, **comparison.as_dict()}
    write_json(folder / JSON, document)
    write_csv(folder / CSV, [_csv_line(row) for row in comparison.rows])


def write_csv(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Write lines with the same keys, below these; FileFormatError when it cannot be written."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(lines[0]) if lines else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _as_cell(value) for key, value in line.items()} for line in lines)
    with replacing(path) as file:
        file.write(text.getvalue().encode())


def _as_cell(value: Any) -> Any:
    """Value of a cell; text that spreadsheets would compute begins with an apostrophe."""
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if is_formula else value


def _csv_line(row: Row) -> dict[str, Any]:
    """Return the plain figures of a row."""
    tree, ratio, from_text, log_z = row.tree, row.to_flat, row.from_text, row.log_normaliser
    return {
        "name": row.name,
        "kind": row.kind,
        "method": row.method,
        "codes_per_label": tree and tree.codes_per_label,
        "code_length": tree and tree.code_length.weighted,
        "scores_per_target": tree and tree.scores_per_target,
        "depth": tree and tree.depth,
        "parameters": row.parameters,
        "in_wordnet": row.in_wordnet,
        "covered": row.covered,
        "models": row.models,
        "seeds": row.perplexity["test"].n,
        "at_epoch_limit": row.at_epoch_limit,
        **{part: row.perplexity[part].mean for part in SCORED},
        **{f"{part}_sd": row.perplexity[part].sd for part in SCORED[:2]},
        **{
            f"to_flat{suffix}": ratio and getattr(ratio, name)
            for suffix, name in _RATIO_COLUMNS.items()
        },
        "seconds_per_epoch": row.seconds_per_epoch,
        "tokens_per_second": row.tokens_per_second,
        "speed_low": row.speed_rounds and min(row.speed_rounds),
        "speed_high": row.speed_rounds and max(row.speed_rounds),
        "speed_up": row.speed_up,
        "nll_per_second": row.scoring and row.scoring.nll,
        "top_k_per_second": row.scoring and row.scoring.top_k,
        "seconds_from_text": from_text and from_text.seconds,
        "speed_up_from_text": from_text and from_text.speed_up,
        "ln_z_mean": log_z and log_z.mean,
        "ln_z_sd": log_z and log_z.sd,
        "unnormalised_perplexity": log_z and log_z.unnormalised_perplexity,
        "seen": row.seen,
    }


#: Columns of ``results.csv`` that are not numbers.
_CSV_TEXTS = ["name", "kind", "method", "seen"]
#: Columns of the table of a comparison: title -> column of ``results.csv`` and its format.
_SHORT: dict[str, tuple[str, Callable[[Any], str]]] = {
    "row": ("name", str),
    "valid": ("valid", partial(figure, digits=1)),
    "test": ("test", partial(figure, digits=1)),
    "ratio to flat": ("to_flat", partial(figure, digits=3)),
    "scores/target": ("scores_per_target", partial(figure, digits=1)),
    "parameters": ("parameters", partial(figure, digits=0)),
    "tokens/s": ("tokens_per_second", partial(figure, digits=0)),
    "times flat": ("speed_up", partial(figure, digits=1)),
    "s from text": ("seconds_from_text", partial(figure, digits=1)),
}
_RATIO_COLUMNS = {"": "ratio", "_low": "low", "_high": "high", "_p": "p", "_blocks": "blocks"}


def load(path: str | os.PathLike[str]) -> Comparison:
    """Read the results of a comparison.

    Parameters
    ----------
    path : path
        The comparison's folder, or its ``results.json``.

    Returns
    -------
    Comparison

    Raises
    ------
    FileFormatError
        When there are none, or they are damaged or of another version.
    """
    file = Path(path)
    if file.is_dir():
        file /= JSON
    document = read_json(file, "make it with `hstree.compare`")
    if nested_too_deep(document):
        raise FileFormatError(f"{file} is nested more than {DEEPEST} deep; compare again")
    if document.get("format") != FORMAT:
        raise FileFormatError(f"{file} is not what `hstree.compare` leaves")
    if (version := document.get("version")) != VERSION:
        raise FileFormatError(
            f"{file}: version {brief(version)}; this hstree reads version {VERSION}; compare again"
        )
    try:
        comparison = decode(document, Comparison)
        check(comparison)
    except FileFormatError as error:
        raise FileFormatError(f"{file}: {error}; compare again") from error
    return comparison.in_folder(file.parent)


#: Bounds far from every real figure, within which nothing overflows on the page.
_SMALLEST, _LARGEST, _LARGEST_INT = 1e-100, 1e100, 2**53
#: Characters that neither a page nor a path can hold.
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")


def decode(value: Any, kind: type[T], where: str = "") -> T:
    """Return a JSON value as an object of a type, checked.

    Parameters
    ----------
    value
        As `json.loads` returns it.
    kind : type
        A dataclass, ``list``, ``dict``, ``Literal``, ``X | None``, ``Any``, str, bool, int or
        float. Keys that a dataclass does not have are ignored, those with a default may be
        missing. Null is NaN where the type is float.
    where : str
        Name of the value in messages.

    Raises
    ------
    FileFormatError
        When it has another type, lacks a key, or is a number or text that no page can show.
    """
    result: T = _decoded(value, kind, where)
    return result


def _decoded(value: Any, kind: Any, where: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if NoneType in arguments:
        if value is None:
            return None
        (kind,) = (one for one in arguments if one is not NoneType)
        return _decoded(value, kind, where)
    if origin is Annotated:  # Signed
        _check_type(value, arguments[0], where)
        _check_range(abs(value), where)
        return value
    if is_dataclass(kind):
        _check_type(value, dict, where)
        return _decoded_fields(value, kind, where)
    if origin is list:
        _check_type(value, list, where)
        return [_decoded(one, arguments[0], f"{where} {i}") for i, one in enumerate(value)]
    if origin is dict:
        _check_type(value, dict, where)
        keys = get_args(arguments[0]) or value
        return {
            _decoded(key, str, where): _decoded(
                _value_of(value, key, where), arguments[1], _inside(where, key)
            )
            for key in keys
        }
    if origin is Literal:
        if value not in arguments:
            raise FileFormatError(f"{where} is {brief(value)}, not {' or '.join(arguments)}")
        return value
    if kind is float and value is None:
        return math.nan
    _check_type(value, kind, where)
    _check_range(value, where)
    return value


def _decoded_fields(value: Mapping[str, Any], kind: Any, where: str) -> Any:
    """Return an object of a dataclass; a missing key takes the field's default."""
    hints = _hints(kind)
    return kind(
        **{
            field.name: _decoded(
                _value_of(value, field.name, where), hints[field.name], _inside(where, field.name)
            )
            for field in fields(kind)
            if field.name in value or field.default is field.default_factory is MISSING
        }
    )


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _inside(where: str, key: str) -> str:
    return f'{where}: "{key}"' if where else f'"{key}"'


def _value_of(value: Mapping[str, Any], key: str, where: str) -> Any:
    if key not in value:
        raise FileFormatError(f'{where} has no "{key}"'.lstrip())
    return value[key]


def _check_type(value: Any, kind: type, where: str) -> None:
    """Refuse a value of another type; a whole number is a float too, a bool is neither."""
    accepted = (int, float) if kind is float else (kind,)
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        wanted = {"dict": "an object", "list": "a list", "str": "a text", "bool": "true or false"}
        expected = wanted.get(kind.__name__, "a number")
        raise FileFormatError(f"{where} holds {brief(value)}, not {expected}".lstrip())


def _check_range(value: Any, where: str) -> None:
    largest = _LARGEST if isinstance(value, float) else _LARGEST_INT
    if isinstance(value, int | float) and not 0 <= value <= largest:
        raise FileFormatError(f"{where} is {brief(value)}, out of range")
    if isinstance(value, str) and _UNWRITABLE.search(value):
        raise FileFormatError(f"{where} is {brief(value)}, which no page can hold")


@dataclass(frozen=True, kw_only=True)
class _Source:
    """Keys of a split's text that the page shows; each may be missing."""

    name: str | None = None
    sha256: str | None = None
    lower: bool | None = None
    lines: list[int] | None = None


def check(comparison: Comparison) -> None:
    """Check what the types do not: texts, options, and that rows and choice fit together.

    Raises FileFormatError where they do not.
    """
    for split, source in comparison.corpus.items():
        lines = decode(source, _Source, f'"corpus": "{split}"').lines
        if lines is not None and len(lines) != 2:
            raise FileFormatError(f'"corpus": "{split}": "lines" wants two numbers')
    _check_options(comparison.options)
    for number, row in enumerate(comparison.rows):
        _check_row(row, len(comparison.bands), f'"rows" {number}')
    if len({row.name for row in comparison.rows}) < len(comparison.rows):
        raise FileFormatError("two rows have the same name")
    trained = {row.name for row in comparison.rows if row.kind != "baseline"}
    choice = comparison.choice
    if choice is None and any(row.seen is None for row in comparison.rows if row.name in trained):
        raise FileFormatError('"choice" is null')
    if choice is not None:
        named = {choice.best, choice.chosen, choice.rival or choice.chosen, *choice.tied}
        if not named <= trained:
            raise FileFormatError('"choice" does not name trained rows of the table')


def _check_options(options: Mapping[str, Any]) -> None:
    """Check that the options describe a model and its budget."""
    _decoded(_value_of(options, "seeds", '"options"'), list[int], '"options": "seeds"')
    try:
        for option in kind_of(options).options:
            if option.name != "random_state" and option.default is not None:
                _value_of(options, option.name, '"options"')
        config_of({name: value for name, value in options.items() if name != "seeds"})
    except (TypeError, OptionError, PluginError) as error:
        raise FileFormatError(f'"options": {error}') from error


def _check_row(row: Row, n_bands: int, where: str) -> None:
    """Check that a row is whole, and that divisors and figures on log axes are not zero."""
    if {row.tree is None, row.tree_file is None} != {row.kind != "tree"}:
        raise FileFormatError(f"{where} lacks a tree, or has one that it should not")
    if row.by_band and len(row.by_band) < n_bands:
        raise FileFormatError(
            f"{where} has perplexities for {len(row.by_band)} of the {n_bands} bands"
        )
    if row.to_flat and (row.to_flat.low is None) != (row.to_flat.high is None):
        raise FileFormatError(f"{where}: its ratio to flat lacks a figure")
    for part, spread in row.perplexity.items():
        if spread.sd is not None and (spread.mean is None or spread.n < 2):
            raise FileFormatError(f'{where}: "{part}" has the spread of a single perplexity')
    epochs = [epoch for run in row.runs for epoch in run.epochs or []]
    ratio = [row.to_flat.ratio, row.to_flat.low, row.to_flat.high] if row.to_flat else []
    positive = [
        *(spread.mean for spread in row.perplexity.values()),
        *ratio,
        *(epoch.seconds for epoch in epochs),
        *(epoch.valid for epoch in epochs),
        *(row.by_band or []),
        *(row.seconds_per_epoch, row.tokens_per_second, row.speed_up),
        *(row.speed_rounds or []),
        *((row.scoring.nll, row.scoring.top_k) if row.scoring else ()),
    ]
    if not all(figure is None or figure >= _SMALLEST for figure in positive):
        raise FileFormatError(f"{where} has a perplexity, ratio, time or speed of 0")
    if any(math.isnan(band.tokens) for band in row.code_lengths or []):
        raise FileFormatError(f'{where}: "code_lengths" lacks a figure')

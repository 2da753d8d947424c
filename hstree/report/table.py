"""The table of the page: the columns that have a value, and the cells of each candidate."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from hstree._text import format_change, signed
from hstree.experiments.results import (
    CandidateResult,
    Comparison,
    Ratio,
    Speed,
    Spread,
    TreeRecord,
    value_at,
)
from hstree.report.formats import DASH, TIMES, number


class Cell(NamedTuple):
    """Text of a cell, its value for sorting (None comes last), and details."""

    text: str = DASH
    value: float | None = None
    note: str = ""  #: lines that are shown with the details of a candidate


class Column(NamedTuple):
    """A column of the table."""

    title: str
    unit: str
    shown: str  #: "always", "wide" (on wide pages) or "more" (if all columns are shown)
    path: str  #: attributes that lead from a candidate to the value
    meaning: str
    format_value: Callable[[Any], str] = number
    note: Callable[[Any], str] = lambda candidate: ""  #: used if the candidate has the value


def make_table(comparison: Comparison) -> tuple[list[Column], list[list[Cell]]]:
    """Return the columns in which any candidate has a value, and the cells of each candidate.

    Perplexities without out-of-vocabulary words are shown if the test split has such words.
    """
    columns = []
    cells_by_column = []
    for column in _COLUMNS:
        cells = [_make_cell(comparison, column, candidate) for candidate in comparison.candidates]
        if all(cell.value is None for cell in cells):
            continue
        if column.title == "no OOV" and not comparison.oov["test"]:
            continue
        if column.path == "mixture.test":
            mixtures = [candidate.mixture for candidate in comparison.candidates]
            ngram = next(mixture.ngram for mixture in mixtures if mixture is not None)
            column = column._replace(title=f"{column.title} {ngram}")
        columns.append(column)
        cells_by_column.append(cells)
    return columns, [list(cells) for cells in zip(*cells_by_column, strict=True)]


def _make_cell(comparison: Comparison, column: Column, candidate: CandidateResult) -> Cell:
    """Return a cell; a note states if the value was measured on a sample of the tokens."""
    cell = _format_cell(column, candidate)
    sample = comparison.sample(column.path, candidate)
    if sample is None or cell.value is None:
        return cell
    n_tokens = sample.valid if ".valid" in column.path else sample.test
    notes = [cell.note, f"first {n_tokens:,} tokens"]
    return cell._replace(note="\n".join(filter(None, notes)))


def _format_cell(column: Column, candidate: CandidateResult) -> Cell:
    """Return a cell, formatted by the type of its value."""
    match value_at(column.path, candidate):
        case None:
            return Cell()
        case Spread() as test:
            spread = "" if test.sd is None else f"± {test.sd:.2f}\n"
            note = f"{spread}n = {test.n}" if candidate.is_trained else ""
            mark = "*" if candidate.at_epoch_limit else ""
            return Cell(column.format_value(test.mean) + mark, test.mean, note)
        case Speed() as speed:
            per_second = f"{number(speed.median, most=0, is_short=True)}/s"
            if speed.times_flat is None:  # the flat softmax was not measured
                return Cell(per_second, speed.median)
            bounds = f"{number(speed.low)}{DASH}{number(speed.high)}\n"
            note = per_second if candidate.is_flat else bounds + per_second
            return Cell(f"{number(speed.times_flat)}{TIMES}", speed.times_flat, note)
        case Ratio(ratio=1, low=1, high=1):  # relative to the candidate itself
            return Cell(format_change(1), 1.0)
        case Ratio(ratio=ratio, low=low, high=high):
            note = "no interval"
            if low is not None and high is not None:
                note = f"{format_change(low)} to {format_change(high)}"
            return Cell(format_change(ratio), ratio, note)
        case TreeRecord(code_length=length, codes_per_label=codes):
            mean = length.uniform if length.weighted is None else length.weighted
            note = "" if codes in (None, 1) else f"{number(codes)} codes"
            return Cell() if mean is None else Cell(number(mean), mean, note)
        case parameters if column.path == "parameters":
            return _format_memory(parameters) if candidate.is_trained else Cell()
        case value:
            return Cell(column.format_value(value), value, column.note(candidate))


def _format_memory(n_parameters: int) -> Cell:
    """Return the cell for the memory of the parameters in single precision."""
    n_bytes = 4 * n_parameters
    unit_size, unit = 1e3, "kB"
    if n_bytes >= 1e9:
        unit_size, unit = 1e9, "GB"
    elif n_bytes >= 1e6:
        unit_size, unit = 1e6, "MB"
    note = number(n_parameters, most=0, is_short=True)
    return Cell(f"{number(n_bytes / unit_size)} {unit}", n_bytes, note)


# Notes


def _time_details(candidate: CandidateResult) -> str:
    """Return the seconds of each step, and the ratio of the total to that of the flat softmax."""
    steps = candidate.timings
    seconds = {
        "vectors": steps.vectors,
        "tree": steps.tree,
        "layer": steps.preparation,
        "training": steps.training,
    }
    lines = [f"{step} {number(value)}" for step, value in seconds.items() if value]
    if candidate.from_text_times_flat:
        lines.append(f"{number(1 / candidate.from_text_times_flat)}\N{MULTIPLICATION SIGN} flat")
    return "\n".join(lines)


def _epochs(candidate: CandidateResult) -> str:
    return f"{candidate.trained_epochs:.3g} epochs" if candidate.trained_epochs else ""


def _mixture_weight(candidate: CandidateResult) -> str:
    mixture = candidate.mixture
    return "" if mixture is None or not mixture.weight else f"weight {mixture.weight:.2f}"


def _normaliser_spread(candidate: CandidateResult) -> str:
    normaliser = candidate.log_normaliser
    return "" if normaliser is None or not normaliser.sd else f"± {normaliser.sd:.3f}"


_perplexity = partial(number, least=1)

_COLUMNS = [
    Column(
        "valid",
        "perplexity",
        "always",
        "perplexity.valid.mean",
        "validation perplexity (lower is better); it determines the recommendation",
        _perplexity,
    ),
    Column(
        "test",
        "perplexity",
        "always",
        "perplexity.test",
        "test perplexity (lower is better). ± is the standard deviation over n seeds. * means that "
        "training stopped at the maximum number of epochs; more epochs may lower the perplexity",
        _perplexity,
    ),
    Column(
        "total",
        "seconds",
        "always",
        "timings.total",
        "time for training vectors, building the tree, preparing the layer and training, without "
        "validation. Details: the time of each step, and the ratio to the flat softmax",
        note=_time_details,
    ),
    Column(
        "vs flat",
        "perplexity",
        "wide",
        "to_flat",
        "difference in test perplexity from the flat softmax, with its 95% interval over blocks of "
        "at least 1,000 test tokens. Fewer than 20 blocks give no interval",
    ),
    Column(
        "same layer",
        "vs flat",
        "wide",
        "to_like",
        "difference in test perplexity from the flat softmax with the same layer, such as n-gram "
        "features: the effect of the tree alone",
    ),
    Column(
        "training",
        "speed vs flat",
        "wide",
        "training",
        "training speed divided by that of the flat softmax. Details: the range over the rounds of "
        "measurement, and words/s",
    ),
    Column(
        "training time",
        "seconds",
        "wide",
        "timings.training",
        "time for training alone. Details: the number of epochs",
        note=_epochs,
    ),
    Column(
        "one word",
        "speed vs flat",
        "wide",
        "nll",
        "speed of computing the probability of one word in its context, divided by that of the "
        "flat softmax. Details: the range over the rounds of measurement, and words/s",
    ),
    Column(
        "top 10",
        "speed vs flat",
        "wide",
        "top_k",
        "speed of finding the ten most probable words in a context, divided by that of the flat "
        "softmax. Details: the range over the rounds of measurement, and words/s",
    ),
    Column(
        "memory",
        "of weights",
        "wide",
        "parameters",
        "memory of the parameters in single precision, without the words of n-gram features. "
        "Details: the number of parameters",
    ),
    Column(
        "one score",
        "speed vs flat",
        "more",
        "unnormalised",
        "speed of computing the unnormalised score of one word, divided by the one-word speed of "
        "the flat softmax; for layers that are trained towards ln Z = 0. Details: words/s",
    ),
    Column(
        "mixed with",
        "perplexity",
        "more",
        "mixture.test",
        "test perplexity of the mixture of the candidate with this n-gram model. Details: the "
        "weight of the candidate, fitted on the validation split",
        _perplexity,
        _mixture_weight,
    ),
    Column(
        "no OOV",
        "perplexity",
        "more",
        "perplexity.test_without_oov.mean",
        "test perplexity without out-of-vocabulary words",
        _perplexity,
    ),
    Column(
        "scores",
        "per target",
        "more",
        "tree.scores_per_target",
        "number of node scores per predicted word: 1 at a binary node, k at a node with k branches",
    ),
    Column(
        "length",
        "decisions",
        "more",
        "tree",
        "mean code length per token of the text, over all codes of the word. Details: the mean "
        "number of codes per word, if it is not 1",
    ),
    Column(
        "ln Z",
        "nats",
        "more",
        "log_normaliser.mean",
        "mean logarithm of the normaliser over the test tokens; training moves it towards 0. "
        "Details: the standard deviation",
        partial(signed, form=".3f"),
        _normaliser_spread,
    ),
    Column(
        "unnormalised",
        "perplexity",
        "more",
        "log_normaliser.unnormalised_perplexity",
        "test perplexity if scores are used as log-probabilities; it cannot be compared with other "
        "perplexities",
        _perplexity,
    ),
]

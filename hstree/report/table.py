"""The table of the page: the columns that a candidate has a figure for, and their cells."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from hstree.experiments.results import (
    CandidateResult,
    Comparison,
    Speed,
    Spread,
    TreeFigures,
    figure_at,
)
from hstree.experiments.significance import Ratio
from hstree.report.formats import DASH, TIMES, number, signed


class Cell(NamedTuple):
    """Text and note of a cell, and the value that it is sorted by; None goes last."""

    text: str = DASH
    value: float | None = None
    note: str = ""


class Column(NamedTuple):
    """Title and unit of a column, and what its cells are made of."""

    title: str
    unit: str
    shown: str  #: "always", "wide" where a page is wide, "more" where all columns are asked for
    path: str  #: of its figure in a candidate
    form: Callable[[Any], str] = number  #: makes the text of a number
    note: Callable[[Any], str] = lambda candidate: ""  #: of a candidate that has the figure


def table_of(comparison: Comparison) -> tuple[list[Column], list[list[Cell]]]:
    """Return the columns that a candidate has a figure for, and the cells of each candidate.

    Perplexities without words out of vocabulary are shown where the test split has such words.
    """
    candidates, shown, cells = comparison.candidates, [], []
    for column in _COLUMNS:
        column_cells = [_cell(column, candidate) for candidate in candidates]
        if all(cell.value is None for cell in column_cells):
            continue
        if column.title == "no OOV" and not comparison.oov["test"]:
            continue
        for i, candidate in enumerate(candidates):
            sample, cell = comparison.sample(column.path, candidate), column_cells[i]
            if sample is not None and cell.value is not None:
                n = sample.valid if ".valid" in column.path else sample.test
                notes = [cell.note, f"first {n:,} tokens"]
                column_cells[i] = cell._replace(note="\n".join(filter(None, notes)))
        if column.path == "mixture.test":
            ngrams = [
                candidate.mixture.ngram for candidate in candidates if candidate.mixture is not None
            ]
            column = column._replace(title=f"{column.title} {ngrams[0]}")
        shown.append(column)
        cells.append(column_cells)
    return shown, [list(row_cells) for row_cells in zip(*cells, strict=True)]


def _cell(column: Column, candidate: CandidateResult) -> Cell:
    """Return the cell of a candidate, by what its figure is."""
    match figure_at(column.path, candidate):
        case None:
            return Cell()
        case Spread() as test:
            spread = "" if test.sd is None else f"± {test.sd:.2f}\n"
            note = f"{spread}n = {test.n}" if candidate.kind != "ngram" else ""
            mark = "*" if candidate.at_epoch_limit else ""
            return Cell(column.form(test.mean) + mark, test.mean, note)
        case Speed() as speed:  # as a multiple of flat's, if that was measured too
            each = f"{number(speed.median, most=0, is_short=True)}/s"
            if speed.times_flat is None:
                return Cell(each, speed.median)
            bounds = f"{number(speed.low)}{DASH}{number(speed.high)}\n"
            note = each if candidate.is_flat else bounds + each
            return Cell(f"{number(speed.times_flat)}{TIMES}", speed.times_flat, note)
        case Ratio(ratio=1, low=1, high=1):  # to the same candidate
            return Cell("0", 1.0)
        case Ratio(ratio=ratio, low=low, high=high):
            note = "no interval"
            if low is not None and high is not None:
                note = f"{signed(low - 1, '.1%')} to {signed(high - 1, '.1%')}"
            return Cell(signed(ratio - 1, ".1%"), ratio, note)
        case TreeFigures(code_length=length, codes_per_label=codes):
            mean = length.uniform if length.weighted is None else length.weighted
            note = "" if codes in (None, 1) else f"{number(codes)} codes"
            return Cell() if mean is None else Cell(number(mean), mean, note)
        case parameters if column.path == "parameters":
            size = 4 * parameters  # bytes in single precision
            units = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
            unit, name = next((one for one in units if size >= one[0]), units[-1])
            note = number(parameters, most=0, is_short=True)
            text = f"{number(size / unit)} {name}"
            return Cell() if candidate.kind == "ngram" else Cell(text, size, note)
        case value:
            return Cell(column.form(value), value, column.note(candidate))


_perplexity = partial(number, least=1)

#: The columns; `page.html` says what each means.
_COLUMNS = [
    Column("valid", "perplexity", "always", "perplexity.valid.mean", _perplexity),
    Column("test", "perplexity", "always", "perplexity.test", _perplexity),
    Column("from text", "seconds", "always", "steps.total", note=lambda candidate: (
        f"{number(1 / candidate.from_text_times_flat)} of flat\u2019s"
        if candidate.from_text_times_flat else "")),
    Column("to flat", "perplexity", "wide", "to_flat"),
    Column("like for like", "perplexity", "wide", "to_like"),
    Column("training", "times flat", "wide", "training"),
    Column("trained", "seconds", "wide", "steps.training", note=lambda candidate: (
        f"{candidate.trained_epochs:.3g} epochs" if candidate.trained_epochs else "")),
    Column("one word", "times flat", "wide", "nll"),
    Column("top 10", "times flat", "wide", "top_k"),
    Column("memory", "of weights", "wide", "parameters"),
    Column("one score", "times flat", "more", "unnormalised"),
    Column("mixed with", "perplexity", "more", "mixture.test", _perplexity, lambda candidate: (
        f"weight {candidate.mixture.weight:.2f}" if candidate.mixture.weight else "")),
    Column("no OOV", "perplexity", "more", "perplexity.test_without_oov.mean", _perplexity),
    Column("scores", "per target", "more", "tree.scores_per_target"),
    Column("length", "decisions", "more", "tree"),
    Column("ln Z", "nats", "more", "log_normaliser.mean", partial(signed, form=".3f"),
           lambda candidate: (
        f"± {candidate.log_normaliser.sd:.3f}" if candidate.log_normaliser.sd else "")),
    Column("unnormalised", "perplexity", "more", "log_normaliser.unnormalised_perplexity",
           _perplexity),
]  # fmt: skip

"""The table of the page: its columns, each shown when a row has its figure, and their cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from hstree.experiments.results import RowResult
from hstree.experiments.significance import Ratio
from hstree.report.formats import (
    DASH,
    in_bytes,
    perplexity,
    short_number,
    signed,
    signed_number,
    three_digits,
    times,
)


class Cell(NamedTuple):
    """Text and note of a cell, and the value that it is sorted by; None goes last."""

    text: str = DASH
    value: float | None = None
    note: str = ""


class Column(NamedTuple):
    """Title and unit of a column, and the function that makes a row's cell."""

    title: str
    unit: str
    cell: Callable[[RowResult], Cell]


def table_of(rows: Sequence[RowResult], *, oov: bool) -> tuple[list[Column], list[list[Cell]]]:
    """Return the columns that a row has a figure for, and the cells of each row.

    `oov` says whether words of the test split are out of vocabulary.
    """
    shown = [
        column
        for column in _COLUMNS
        if any(column.cell(row).value is not None for row in rows)
        and (oov or column.title != "no OOV")
    ]
    return shown, [[column.cell(row) for column in shown] for row in rows]


def _cell(form: Callable[[float], str], value: float | None, note: str = "") -> Cell:
    return Cell() if value is None else Cell(form(value), value, note)


def _plain(
    form: Callable[[float], str], path: str, note: str = "", of: str = "name"
) -> Callable[[RowResult], Cell]:
    """Return what makes the cell of a figure of a row, with a note of another where it has that."""

    def figure(row: RowResult, path: str) -> Any:
        value: Any = row
        for name in path.split("."):
            value = None if value is None else getattr(value, name)
        return value

    def cell(row: RowResult) -> Cell:
        other = figure(row, of)
        return _cell(form, figure(row, path), note.format(other) if other else "")

    return cell


def _test(row: RowResult) -> Cell:
    test = row.perplexity["test"]
    spread = "" if test.sd is None else f"± {test.sd:.2f}\n"
    mark = "*" if row.at_epoch_limit else ""
    note = f"{spread}n = {test.n}" if row.is_trained else ""
    return Cell(perplexity(test.mean) + mark, test.mean, note)


def _speed(name: str, row: RowResult) -> Cell:
    """Return a speed as a multiple of flat's, if that was measured too."""
    speed = getattr(row, name)
    if speed is None:
        return Cell()
    each = f"{short_number(speed.median)}/s"
    if speed.times_flat is None:
        return Cell(each, speed.median)
    bounds = f"{three_digits(speed.low)}\N{EN DASH}{three_digits(speed.high)}\n"
    note = each if row.is_flat else bounds + each
    return Cell(times(speed.times_flat), speed.times_flat, note)


def _ratio(ratio: Ratio | None) -> Cell:
    if ratio is None:
        return Cell()
    if ratio.ratio == ratio.low == ratio.high == 1:  # the same row
        return Cell("0", 1.0)
    interval = "no interval"
    if ratio.low is not None and ratio.high is not None:
        interval = f"{signed(ratio.low)} to {signed(ratio.high)}"
    return Cell(signed(ratio.ratio), ratio.ratio, interval)


def _memory(row: RowResult) -> Cell:
    bytes_of = 4 * row.parameters if row.is_trained else None
    return _cell(in_bytes, bytes_of, short_number(row.parameters))


def _length(row: RowResult) -> Cell:
    if row.tree is None:
        return Cell()
    length, codes = row.tree.code_length, row.tree.codes_per_label
    mean = length.uniform if length.weighted is None else length.weighted
    return _cell(three_digits, mean, "" if codes in (None, 1) else f"{three_digits(codes)} codes")


def _published(row: RowResult) -> Cell:
    if (published := row.published) is None:
        return Cell()
    low, high = signed(published.low), signed(published.high)
    text = low if low == high else f"{low} to {high}"
    return Cell(text, published.low, published.source)


#: The columns; `page.html` says what each means.
_COLUMNS = [
    Column("test", "perplexity", _test),
    Column("training", "times flat", partial(_speed, "training")),
    Column("to flat", "perplexity", lambda row: _ratio(row.to_flat)),
    Column("like for like", "perplexity", lambda row: _ratio(row.to_like)),
    Column("from text", "seconds", _plain(
        three_digits, "steps.total", "{:.3g}\N{MULTIPLICATION SIGN} flat", "from_text_times_flat")),
    Column("trained", "seconds", _plain(
        three_digits, "steps.training", "{:.3g} epochs", "trained_epochs")),
    Column("one word", "times flat", partial(_speed, "nll")),
    Column("top 10", "times flat", partial(_speed, "top_k")),
    Column("one score", "times flat", partial(_speed, "unnormalised")),
    Column("with n-grams", "perplexity", _plain(
        perplexity, "mixture.test", "weight {:.2f}", "mixture.weight")),
    Column("memory", "of weights", _memory),
    Column("valid", "perplexity", lambda row: _cell(perplexity, row.perplexity["valid"].mean)),
    Column("no OOV", "perplexity", lambda row: _cell(
        perplexity, row.perplexity["test_without_oov"].mean)),
    Column("scores", "per target", _plain(three_digits, "tree.scores_per_target")),
    Column("length", "decisions", _length),
    Column("WordNet", "% of tokens", _plain(
        "{:.0%}".format, "in_wordnet", "{:,.1f} there", "covered")),
    Column("ln Z", "nats", _plain(
        partial(signed_number, digits=3), "log_normaliser.mean", "± {:.3f}", "log_normaliser.sd")),
    Column("unnormalised", "perplexity", _plain(
        perplexity, "log_normaliser.unnormalised_perplexity")),
    Column("published", "to flat", _published),
]  # fmt: skip

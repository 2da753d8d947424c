"""The table of the page: its columns, each shown when a row has its figure, and their cells."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hstree.experiments.results import Published, RowResult, Speed, Spread, TreeFigures, figure_at
from hstree.experiments.significance import Ratio
from hstree.report.formats import (
    DASH,
    TIMES,
    perplexity,
    short_number,
    signed,
    signed_number,
    three_digits,
)


class Cell(NamedTuple):
    """Text and note of a cell, and the value that it is sorted by; None goes last."""

    text: str = DASH
    value: float | None = None
    note: str = ""


class Column(NamedTuple):
    """Title and unit of a column, and how its cell is made."""

    title: str
    unit: str
    path: str  #: of its figure in a row
    cell: Callable[[Any, Any], Cell]  #: of that figure, and of the row


def table_of(rows: Sequence[RowResult], *, oov: bool) -> tuple[list[Column], list[list[Cell]]]:
    """Return the columns that a row has a figure for, and the cells of each row.

    `oov` says whether words of the test split are out of vocabulary.
    """
    shown, cells = [], []
    for column in _COLUMNS:
        of_rows = [
            Cell() if (figure := figure_at(column.path, row)) is None else column.cell(figure, row)
            for row in rows
        ]
        if any(cell.value is not None for cell in of_rows) and (oov or column.title != "no OOV"):
            shown.append(column)
            cells.append(of_rows)
    return shown, [list(of_row) for of_row in zip(*cells, strict=True)]


def _test(test: Spread, row: RowResult) -> Cell:
    spread = "" if test.sd is None else f"± {test.sd:.2f}\n"
    mark = "*" if row.at_epoch_limit else ""
    note = f"{spread}n = {test.n}" if row.kind != "ngram" else ""
    return Cell(perplexity(test.mean) + mark, test.mean, note)


def _speed(speed: Speed, row: RowResult) -> Cell:
    """Return a speed as a multiple of flat's, if that was measured too."""
    each = f"{short_number(speed.median)}/s"
    if speed.times_flat is None:
        return Cell(each, speed.median)
    bounds = f"{three_digits(speed.low)}{DASH}{three_digits(speed.high)}\n"
    note = each if row.is_flat else bounds + each
    return Cell(f"{three_digits(speed.times_flat)}{TIMES}", speed.times_flat, note)


def _ratio(ratio: Ratio, _: RowResult) -> Cell:
    if ratio.ratio == ratio.low == ratio.high == 1:  # the same row
        return Cell("0", 1.0)
    interval = "no interval"
    if ratio.low is not None and ratio.high is not None:
        interval = f"{signed(ratio.low)} to {signed(ratio.high)}"
    return Cell(signed(ratio.ratio), ratio.ratio, interval)


def _memory(parameters: int, row: RowResult) -> Cell:
    """Return the bytes of the weights in single precision: 640 kB, 4.31 MB."""
    if row.kind == "ngram":
        return Cell()
    value = 4 * parameters
    size, unit = (1e9, "GB") if value >= 1e9 else (1e6, "MB") if value >= 1e6 else (1e3, "kB")
    return Cell(f"{three_digits(value / size)} {unit}", value, short_number(parameters))


def _length(tree: TreeFigures, _: RowResult) -> Cell:
    length, codes = tree.code_length, tree.codes_per_label
    mean = length.uniform if length.weighted is None else length.weighted
    note = "" if codes in (None, 1) else f"{three_digits(codes)} codes"
    return Cell() if mean is None else Cell(three_digits(mean), mean, note)


def _published(published: Published, _: RowResult) -> Cell:
    low, high = signed(published.low), signed(published.high)
    return Cell(low if low == high else f"{low} to {high}", published.low, published.source)


def _perplexity(value: float, _: RowResult) -> Cell:
    return Cell(perplexity(value), value)


#: The columns; `page.html` says what each means.
_COLUMNS = [
    Column("test", "perplexity", "perplexity.test", _test),
    Column("training", "times flat", "training", _speed),
    Column("to flat", "perplexity", "to_flat", _ratio),
    Column("like for like", "perplexity", "to_like", _ratio),
    Column("from text", "seconds", "steps.total", lambda seconds, row: Cell(
        three_digits(seconds), seconds,
        f"{row.from_text_times_flat:.3g}{TIMES} flat" if row.from_text_times_flat else "")),
    Column("trained", "seconds", "steps.training", lambda seconds, row: Cell(
        three_digits(seconds), seconds,
        f"{row.trained_epochs:.3g} epochs" if row.trained_epochs else "")),
    Column("one word", "times flat", "nll", _speed),
    Column("top 10", "times flat", "top_k", _speed),
    Column("one score", "times flat", "unnormalised", _speed),
    Column("with n-grams", "perplexity", "mixture.test", lambda test, row: Cell(
        perplexity(test), test, f"weight {row.mixture.weight:.2f}" if row.mixture.weight else "")),
    Column("memory", "of weights", "parameters", _memory),
    Column("valid", "perplexity", "perplexity.valid.mean", _perplexity),
    Column("no OOV", "perplexity", "perplexity.test_without_oov.mean", _perplexity),
    Column("scores", "per target", "tree.scores_per_target", lambda scores, _: Cell(
        three_digits(scores), scores)),
    Column("length", "decisions", "tree", _length),
    Column("WordNet", "% of tokens", "in_wordnet", lambda share, row: Cell(
        f"{share:.0%}", share, f"{row.covered:,.1f} there" if row.covered else "")),
    Column("ln Z", "nats", "log_normaliser.mean", lambda mean, row: Cell(
        signed_number(mean, 3), mean,
        f"± {row.log_normaliser.sd:.3f}" if row.log_normaliser.sd else "")),
    Column("unnormalised", "perplexity", "log_normaliser.unnormalised_perplexity", _perplexity),
    Column("published", "to flat", "published", _published),
]  # fmt: skip

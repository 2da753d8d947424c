"""The table of the page: its columns, each shown when a row has its figure, and their cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from hstree.experiments.results import RowResult
from hstree.experiments.significance import BLOCK, FEWEST, Ratio
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


@dataclass(frozen=True)
class Cell:
    """Text and note of a cell, and the value that it is sorted by; None goes last."""

    text: str = DASH
    value: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Column:
    """Title, unit and meaning of a column, and the function that makes a row's cell."""

    title: str
    unit: str
    meaning: str
    cell: Callable[[RowResult], Cell]


@dataclass(frozen=True)
class Table:
    """Columns of the table, and the cells of each row."""

    columns: Sequence[Column]
    cells: Sequence[Sequence[Cell]]


def table_of(rows: Sequence[RowResult], *, oov: bool) -> Table:
    """Return the columns that a row has a figure for; `oov` whether test words are unknown."""
    shown = [
        column
        for column in _COLUMNS
        if any(column.cell(row).value is not None for row in rows)
        and (oov or column.title != "no OOV")
    ]
    return Table(shown, [[column.cell(row) for column in shown] for row in rows])


def _cell(form: Callable[[float], str], value: float | None, note: str = "") -> Cell:
    return Cell() if value is None else Cell(form(value), value, note)


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
    return Cell(times(speed.times_flat), speed.times_flat,
                each if row.is_flat else f"{_bounds(speed.low, speed.high)}\n{each}")  # fmt: skip


def _bounds(low: float | None, high: float | None) -> str:
    return f"{three_digits(low)}\N{EN DASH}{three_digits(high)}"


def _ratio(ratio: Ratio | None) -> Cell:
    if ratio is None:
        return Cell()
    if ratio.ratio == ratio.low == ratio.high == 1:  # the same row
        return Cell("0", 1.0)
    interval = "no interval"
    if ratio.low is not None and ratio.high is not None:
        interval = f"{signed(ratio.low)} to {signed(ratio.high)}"
    return Cell(signed(ratio.ratio), ratio.ratio, interval)


def _trained(row: RowResult) -> Cell:
    epochs = f"{three_digits(row.trained_epochs)} epochs" if row.trained_epochs else ""
    return _cell(three_digits, row.steps.training, epochs)


def _from_text(row: RowResult) -> Cell:
    flat = "" if row.from_text_times_flat is None else f"{times(row.from_text_times_flat)} flat"
    return _cell(three_digits, row.steps.total, flat)


def _memory(row: RowResult) -> Cell:
    bytes_of = 4 * row.parameters if row.is_trained else None
    return _cell(in_bytes, bytes_of, short_number(row.parameters))


def _mixture(row: RowResult) -> Cell:
    if row.mixture is None:
        return Cell()
    return _cell(perplexity, row.mixture.test, f"weight {row.mixture.weight:.2f}")


def _length(row: RowResult) -> Cell:
    if row.tree is None:
        return Cell()
    length, codes = row.tree.code_length, row.tree.codes_per_label
    mean = length.uniform if length.weighted is None else length.weighted
    return _cell(three_digits, mean, "" if codes in (None, 1) else f"{three_digits(codes)} codes")


def _in_wordnet(row: RowResult) -> Cell:
    covered = "" if row.covered is None else f"{perplexity(row.covered)} there"
    return _cell("{:.0%}".format, row.in_wordnet, covered)


def _log_z(row: RowResult) -> Cell:
    if (log_z := row.log_normaliser) is None:
        return Cell()
    spread = "" if log_z.sd is None else f"± {log_z.sd:.3f}"
    return _cell(partial(signed_number, digits=3), log_z.mean, spread)


def _unnormalised(row: RowResult) -> Cell:
    log_z = row.log_normaliser
    return _cell(perplexity, None if log_z is None else log_z.unnormalised_perplexity)


def _published(row: RowResult) -> Cell:
    if (published := row.published) is None:
        return Cell()
    low, high = signed(published.low), signed(published.high)
    text = low if low == high else f"{low} to {high}"
    return Cell(text, published.low, published.source)


_AS_FLAT = "as a multiple of the flat softmax\u2019s, with its range over the rounds; and words/s"
_COLUMNS = [
    Column("test", "perplexity", "lower is better; ± is the standard deviation over n seeds; * "
           "stopped at the limit of epochs, before the validation perplexity had stopped falling: "
           "more epochs may lower it", _test),
    Column("training", "times flat", f"speed of training, {_AS_FLAT}", partial(_speed, "training")),
    Column("to flat", "perplexity", "difference from the flat softmax, with its 95% interval over "
           f"blocks of {BLOCK:,} test tokens or more; fewer than {FEWEST} blocks are too few for "
           "one", lambda row: _ratio(row.to_flat)),
    Column("like for like", "perplexity", "difference from the flat softmax with the same layer "
           "over it, such as n-gram features: what the tree alone costs",
           lambda row: _ratio(row.to_like)),
    Column("from text", "seconds", "to learn the vectors that a tree is built from, build it, "
           "prepare the layer and train it, without validation; and how many times as fast as the "
           "flat softmax that is", _from_text),
    Column("trained", "seconds", "of training alone; and how many epochs that is", _trained),
    Column("one word", "times flat", "speed of a trained model for the probability of one word in "
           f"its context, {_AS_FLAT}", partial(_speed, "nll")),
    Column("top 10", "times flat", "speed of a trained model for the ten most probable words of a "
           f"context, {_AS_FLAT}", partial(_speed, "top_k")),
    Column("one score", "times flat", "unnormalised score of one word, for layers that are "
           "trained to have ln Z at 0, as a multiple of flat\u2019s for one word; and words/s",
           partial(_speed, "unnormalised")),
    Column("with n-grams", "perplexity", "of the mixture with the n-gram model of the table on the "
           "test split; and the weight of the row in it, fitted on the validation split", _mixture),
    Column("memory", "of weights", "bytes of the trained numbers in single precision, and how many "
           "there are; the words that n-gram features are of are not counted", _memory),
    Column("valid", "perplexity", "lower is better; the answer is chosen by it",
           lambda row: _cell(perplexity, row.perplexity["valid"].mean)),
    Column("no OOV", "perplexity", "on the test split without words out of vocabulary",
           lambda row: _cell(perplexity, row.perplexity["test_without_oov"].mean)),
    Column("scores", "per target", "node scores computed for one prediction: 1 at a binary node, k "
           "at one with k branches",
           lambda row: _cell(three_digits, None if row.tree is None
                             else row.tree.scores_per_target)),
    Column("length", "decisions", "code length of a word of running text, all its codes together; "
           "and how many codes a word has on average, where not one", _length),
    Column("WordNet", "% of tokens", "share of the training tokens that WordNet has, and the test "
           "perplexity over the tokens of its words", _in_wordnet),
    Column("ln Z", "nats", "log of the normaliser that the layer is trained to have at 0: its mean "
           "and standard deviation over the test tokens", _log_z),
    Column("unnormalised", "perplexity", "on the test split if every score were read as a "
           "log-probability: not to be compared with perplexities", _unnormalised),
    Column("published", "to flat", "published ratio to the full softmax, of another text, model "
           "and budget: nothing to compare exactly with", _published),
]  # fmt: skip

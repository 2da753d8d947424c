"""The table of the page: a cell for each figure, and the number by which a column is sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hstree.experiments.results import Scored
from hstree.experiments.significance import BLOCK, FEWEST
from hstree.report.figures import (
    NONE,
    number,
    perplexity,
    signed,
    significance,
    three_digits,
    times,
)
from hstree.report.rows import Row


@dataclass(frozen=True)
class Cell:
    """What is shown, and what it is sorted by; None goes last."""

    text: str
    value: float | None
    note: str = ""


@dataclass(frozen=True)
class Column:
    """A column: its title, its unit and what it means."""

    title: str
    unit: str
    meaning: str
    cell: Callable[[Row], Cell]


def columns_of(rows: Sequence[Row], *, oov: bool) -> list[Column]:
    """Return the columns; perplexity without unknown words only where there are any."""
    without = [
        Column("no OOV", "perplexity", "of the test text without its unknown words", _without_oov)
    ]
    wordnet = [
        Column("WordNet", "% of tokens", "of the training text, that WordNet has", _in_wordnet)
    ]
    return [
        Column("codes", "a word", "paths from the root to a word, on average", _codes),
        Column(
            "length", "decisions", "of the codes of a word of running text, all its codes together",
            _code_length,
        ),
        Column(
            "scores", "a target", "node scores, what one prediction costs: 1 at a binary node, k "
            "at one with k branches", _scores,
        ),
        Column("parameters", "", "trained numbers", _parameters),
        *(wordnet if any(row.result.in_wordnet is not None for row in rows) else []),
        Column("valid", "perplexity", "lower is better; trees are chosen by it",
               _perplexity_of("valid")),
        Column(
            "test", "perplexity", "lower is better; ± is the spread (sd) over n seeds; * stopped "
            "at the limit of epochs, before the validation perplexity had stopped falling: more "
            "epochs may lower it", _test,
        ),
        *(without if oov else []),
        Column(
            "to flat", "% perplexity", "with its 95% interval over blocks of the test text, of "
            f"{BLOCK:,} tokens or more; a text of fewer than {FEWEST} is too short to tell",
            _to_flat,
        ),
        Column("p", "", "of no difference to flat, paired t over test blocks", _p),
        Column("speed", "tokens/s", "in training, and how many times flat\u2019s", _speed),
        Column(
            "from text", "seconds", "to build the tree and train all epochs on it, those of the "
            "model that learned its vectors included, and how many times as fast as flat that is; "
            "validation is not counted", _from_text,
        ),
    ]  # fmt: skip


def _codes(row: Row) -> Cell:
    value = row.result.tree.codes_per_label if row.result.tree else None
    return Cell(three_digits(value) if value != 1 else "1", value)


def _code_length(row: Row) -> Cell:
    value = row.result.tree.code_length.mean if row.result.tree else None
    return Cell(three_digits(value), value)


def _scores(row: Row) -> Cell:
    value = row.result.tree.scores_per_target if row.result.tree else None
    return Cell(three_digits(value), value)


def _parameters(row: Row) -> Cell:
    value = row.result.parameters
    if value is None:
        return Cell(NONE, None)
    return Cell(f"{value / 1e6:.2f} M" if value >= 1e6 else number(value), value)


def _in_wordnet(row: Row) -> Cell:
    value = row.result.in_wordnet
    return Cell(NONE if value is None else f"{value:.0%}", value)


def _perplexity_of(split: Scored) -> Callable[[Row], Cell]:
    return lambda row: Cell(perplexity(row.perplexity(split)), row.perplexity(split))


def _test(row: Row) -> Cell:
    found = row.result.perplexity["test"]
    spread = "" if found.sd is None else f"± {found.sd:.2f}, "
    note = f"{spread}n = {found.n}" if row.is_tree else ""
    mark = "*" if row.result.at_epoch_limit else ""
    return Cell(perplexity(found.mean) + mark, found.mean, note)


def _without_oov(row: Row) -> Cell:
    value = row.perplexity("test_without_oov")
    return Cell(perplexity(value), value)


def _to_flat(row: Row) -> Cell:
    found = row.result.to_flat
    if found is None:
        return Cell(NONE, None)
    if row.is_flat:
        return Cell("0", 1.0)
    if found.low is None or found.high is None:
        return Cell(signed(found.ratio), found.ratio, "too short to tell")
    note = f"{signed(found.low)} to {signed(found.high)}"
    return Cell(signed(found.ratio), found.ratio, note)


def _p(row: Row) -> Cell:
    p = None if row.result.to_flat is None else row.result.to_flat.p
    return Cell(significance(p), p)


def _speed(row: Row) -> Cell:
    note = _times_flat(row.result.speed_up)
    return Cell(number(row.tokens_per_second), row.tokens_per_second, note)


def _from_text(row: Row) -> Cell:
    found = row.result.from_text
    if found is None:
        return Cell(NONE, None)
    note = _times_flat(found.speed_up)
    return Cell(three_digits(found.seconds), found.seconds, note)


def _times_flat(value: float | None) -> str:
    return "" if value is None else f"{times(value)} flat"

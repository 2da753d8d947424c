"""The answer in words: which row for this text, its cost, and how certain that is.

Rows are chosen by validation perplexity and reported by test perplexity. Here are the figures that
the words are of; the words are in the templates ``answer.html`` and ``conditions.html``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup
from scipy.stats import ttest_ind_from_stats

from hstree._text import plural
from hstree.experiments.results import Comparison, RowResult
from hstree.models import config_of, describe
from hstree.report.templates import rendered

#: Speeds of a row, and what each is of.
_SPEEDS = {
    "training": "in training",
    "nll": "for the probability of one word",
    "top_k": "for the ten most probable words",
}


def noun_of(rows: Sequence[RowResult]) -> str:
    """Return what the rows are: trees, or output layers if one of them has no tree."""
    return "output layer" if any(row.kind == "layer" for row in rows) else "tree"


def choosable(comparison: Comparison) -> list[RowResult]:
    """Return the rows that the answer was chosen from: of a halving, those that trained longest."""
    rows, choice = [row for row in comparison.rows if _can_win(row)], comparison.choice
    if choice is None or len(rows) == choice.among:
        return rows
    named = {choice.chosen, choice.best, choice.rival, *choice.tied}
    return [row for row in rows if row.name in named]


def answer_of(comparison: Comparison) -> Markup:
    """Return the questions that the results can answer, the main one first."""
    rows = comparison.rows
    noun, trained = noun_of(rows), [row for row in rows if row.is_trained]
    if (choice := comparison.choice) is None:
        return rendered("answer.html", noun=noun, choice=None, trained=trained)
    chosen = comparison.row(choice.chosen)
    rival = None if choice.rival is None else comparison.row(choice.rival)
    others = [row for row in trained if not row.is_flat]
    return rendered(
        "answer.html",
        noun=noun,
        choice=choice,
        trained=trained,
        chosen=chosen,
        best=comparison.row(choice.best),
        rival=rival,
        p=None if rival is None else _p_over_seeds(chosen, rival),
        nearest=min(others, key=lambda row: row.valid, default=None),
        among=_among(comparison),
        fastest=_fastest(rows, chosen),
        ngrams=[row for row in rows if not row.is_trained],
        size=comparison.vocabulary.size,
    )


def conditions_of(comparison: Comparison) -> Markup:
    """Return what all figures depend on: text, model, rule, machine."""
    options = config_of(comparison.options) | {"epochs": comparison.stop.max_epochs}
    model, training = describe(options)
    trained = [row for row in comparison.rows if row.is_trained]
    return rendered(
        "conditions.html",
        comparison=comparison,
        noun=noun_of(comparison.rows),
        model=model,
        training=training.partition(", ")[2],  # without the limit, which the rule is
        trained=trained,
        limited=sum(bool(row.at_epoch_limit) for row in trained),
    )


def _can_win(row: RowResult) -> bool:
    return row.is_trained and row.seen is None


def _among(comparison: Comparison) -> str:
    """Return how many rows the answer was chosen from; flat is no tree."""
    rows, noun = choosable(comparison), noun_of(comparison.rows)
    flat = sum(row.tree is not None and row.tree.nodes <= 1 for row in rows if noun == "tree")
    text = plural(len(rows) - flat, noun)
    if flat:
        text += " and the flat softmax" if flat == 1 else f" and {flat} flat softmaxes"
    compared = sum(map(_can_win, comparison.rows))
    return text if len(rows) == compared else f"{text}, which trained longest of {compared} rows"


def _fastest(
    rows: Sequence[RowResult], chosen: RowResult
) -> list[tuple[RowResult, list[tuple[str, float, Any]]]]:
    """Return the fastest rows; for each what is fast, its words/s, and these over the chosen's."""
    fastest: dict[str, list[tuple[str, float, Any]]] = {}
    for name, what in _SPEEDS.items():
        speeds = [(speed.median, row) for row in rows if (speed := getattr(row, name)) is not None]
        if speeds:
            best, row = max(speeds, key=lambda pair: pair[0])
            own = getattr(chosen, name)
            ratio = None if own is None or row is chosen else best / own.median
            fastest.setdefault(row.name, []).append((what, best, ratio))
    return [(row, fastest[row.name]) for row in rows if row.name in fastest]


def _p_over_seeds(a: RowResult, b: RowResult) -> float | None:
    """Return the p value of two rows' difference over seeds; None where a spread is not known."""
    one, other = (row.perplexity["test"] for row in (a, b))
    if not (one.mean and one.sd and other.mean and other.sd):
        return None
    welch: Any = ttest_ind_from_stats(
        one.mean, one.sd, one.n, other.mean, other.sd, other.n, equal_var=False
    )
    return float(welch.pvalue)

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
from hstree.models import config_of, kind_of
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
    rows = [row for row in comparison.rows if row.is_trained and row.seen is None]
    choice = comparison.choice
    if choice is None or len(rows) == choice.among:
        return rows
    named = {choice.chosen, choice.best, choice.rival, *choice.tied}
    return [row for row in rows if row.name in named]


def answer_of(comparison: Comparison) -> Markup:
    """Return the questions that the results can answer, the main one first."""
    rows, noun, best = choosable(comparison), noun_of(comparison.rows), comparison.best
    # How many rows the answer was chosen from; flat is no tree.
    flat = sum(row.tree is not None and row.tree.nodes <= 1 for row in rows if noun == "tree")
    among = plural(len(rows) - flat, noun)
    if flat:
        among += " and the flat softmax" if flat == 1 else f" and {flat} flat softmaxes"
    compared = sum(row.is_trained and row.seen is None for row in comparison.rows)
    if len(rows) < compared:
        among += f", which trained longest of {compared} rows"
    # For the fastest rows what is fast, its words/s, and these over the chosen's.
    fastest: dict[str, list[tuple[str, float, Any]]] = {}
    for name, what in _SPEEDS.items():
        speeds = {row.name: s.median for row in comparison.rows if (s := getattr(row, name))}
        if speeds and best is not None:
            first = max(speeds, key=speeds.__getitem__)
            ratio = speeds[first] / speeds[best.name] if best.name in speeds else None
            fastest.setdefault(first, []).append((what, speeds[first], ratio))
    # p value of the answer's difference from its rival over seeds
    p, choice = None, comparison.choice
    if choice is not None and choice.rival is not None:
        one, other = (comparison.row(r).perplexity["test"] for r in (choice.chosen, choice.rival))
        if one.mean and one.sd and other.mean and other.sd:
            figures = (one.mean, one.sd, one.n, other.mean, other.sd, other.n)
            p = float(ttest_ind_from_stats(*figures, equal_var=False).pvalue)
    return rendered(
        "answer.html",
        comparison=comparison,
        noun=noun,
        among=among,
        fastest=[(row, fastest[row.name]) for row in comparison.rows if row.name in fastest],
        p=p,
    )


def conditions_of(comparison: Comparison) -> Markup:
    """Return what all figures depend on: text, model, rule, machine."""
    options = config_of(comparison.options) | {"epochs": comparison.stop.max_epochs}
    model, training = kind_of(options).model.describe(options)
    training = training.partition(", ")[2]  # without the limit, which the rule is
    noun = noun_of(comparison.rows)
    return rendered(
        "conditions.html", comparison=comparison, noun=noun, model=model, training=training
    )

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
from hstree.experiments.results import Choice, Comparison, RowResult
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
    rows = [row for row in comparison.rows if row.is_trained and row.seen is None]
    choice = comparison.choice
    if choice is None or len(rows) == choice.among:
        return rows
    named = {choice.chosen, choice.best, choice.rival, *choice.tied}
    return [row for row in rows if row.name in named]


def answer_of(comparison: Comparison) -> Markup:
    """Return the questions that the results can answer, the main one first."""
    return rendered(
        "answer.html",
        comparison=comparison,
        noun=noun_of(comparison.rows),
        among=_among(comparison),
        fastest=_fastest(comparison),
        p=_p_over_seeds(comparison.choice, comparison),
    )


def conditions_of(comparison: Comparison) -> Markup:
    """Return what all figures depend on: text, model, rule, machine."""
    options = config_of(comparison.options) | {"epochs": comparison.stop.max_epochs}
    model, training = describe(options)
    training = training.partition(", ")[2]  # without the limit, which the rule is
    noun = noun_of(comparison.rows)
    return rendered(
        "conditions.html", comparison=comparison, noun=noun, model=model, training=training
    )


def _among(comparison: Comparison) -> str:
    """Return how many rows the answer was chosen from; flat is no tree."""
    rows, noun = choosable(comparison), noun_of(comparison.rows)
    flat = sum(row.tree is not None and row.tree.nodes <= 1 for row in rows if noun == "tree")
    text = plural(len(rows) - flat, noun)
    if flat:
        text += " and the flat softmax" if flat == 1 else f" and {flat} flat softmaxes"
    compared = sum(row.is_trained and row.seen is None for row in comparison.rows)
    return text if len(rows) == compared else f"{text}, which trained longest of {compared} rows"


def _fastest(comparison: Comparison) -> list[tuple[RowResult, list[tuple[str, float, Any]]]]:
    """Return the fastest rows; for each what is fast, its words/s, and these over the chosen's."""
    fastest: dict[str, list[tuple[str, float, Any]]] = {}
    for name, what in _SPEEDS.items():
        speeds = {row.name: s.median for row in comparison.rows if (s := getattr(row, name))}
        if speeds and comparison.best is not None:
            best, chosen = max(speeds, key=speeds.__getitem__), speeds.get(comparison.best.name)
            ratio = None if chosen is None else speeds[best] / chosen
            fastest.setdefault(best, []).append((what, speeds[best], ratio))
    return [(row, fastest[row.name]) for row in comparison.rows if row.name in fastest]


def _p_over_seeds(choice: Choice | None, comparison: Comparison) -> float | None:
    """Return the p value of the answer's difference from its rival over seeds, if it is known."""
    if choice is None or choice.rival is None:
        return None
    one, other = (comparison.row(name).perplexity["test"] for name in (choice.chosen, choice.rival))
    if not (one.mean and one.sd and other.mean and other.sd):
        return None
    welch: Any = ttest_ind_from_stats(
        one.mean, one.sd, one.n, other.mean, other.sd, other.n, equal_var=False
    )
    return float(welch.pvalue)

"""The answer in words: which tree for this text, what it costs, and how sure that is.

Everything is computed from the results; where they do not tell two rows apart, so it says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from scipy.stats import ttest_ind_from_stats

from hstree.report.figures import (
    change,
    number,
    perplexity,
    plural,
    signed,
    significance,
    three_digits,
    times,
)
from hstree.report.rows import Results, Row, best_tree, flat_row, rows_of

#: A tree this much worse than the best is still worth its speed.
WITHIN = 0.03

#: Two means over seeds are told apart below this p value.
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Answer:
    """One question and its answer, which is safe HTML."""

    question: str
    text: Markup


def answers_of(results: Results) -> list[Answer]:
    """Return the questions that the results can answer, the first one first."""
    rows = rows_of(results)
    best = best_tree(rows)
    if best is None:
        return [
            Answer(
                "Which tree?",
                Markup("No tree besides the flat softmax was compared, so there is none to name."),
            )
        ]
    flat = flat_row(rows)
    return [
        Answer("Which tree?", _which(best, flat, rows)),
        Answer("What does it cost?", _cost(best, flat, results)),
        Answer("And if speed matters more?", _faster(best, rows)),
        Answer("How sure is that?", _sure(best, rows)),
    ]


def _which(best: Row, flat: Row | None, rows: Sequence[Row]) -> Markup:
    trees = sum(row.is_tree and not row.is_flat for row in rows)
    seeds = best.result["perplexity"]["test"]["n"]
    said = Markup(
        "Use <strong>{}</strong>. Of {} it predicts this text best: test perplexity "
        "<strong>{}</strong>{}."
    ).format(
        best.name,
        plural(trees, "tree", "trees"),
        perplexity(best.perplexity()),
        "" if seeds == 1 else f", the mean of {seeds} seeds",
    )
    return said + _beside_flat(best, flat) + _beside_baselines(best, rows)


def _beside_flat(best: Row, flat: Row | None) -> Markup:
    if flat is None:
        return Markup(
            " The flat softmax was not compared, so what the tree gives up for its speed is not "
            "known."
        )
    to_flat = best.result["to_flat"]
    if to_flat is None:
        return Markup("")
    interval = Markup("95% interval {} to {}").format(
        signed(to_flat["low"]), signed(to_flat["high"])
    )
    if to_flat["low"] <= 1 <= to_flat["high"]:
        return Markup(
            " It cannot be told from the flat softmax on this test text ({}; {})."
        ).format(signed(to_flat["ratio"]), interval)
    return Markup(" That is {} than the flat softmax ({}).").format(
        change(to_flat["ratio"]), interval
    )


def _beside_baselines(best: Row, rows: Sequence[Row]) -> Markup:
    baselines = [row for row in rows if not row.is_tree and row.perplexity()]
    if not baselines:
        return Markup("")
    named = ", ".join(f"{row.name} {perplexity(row.perplexity())}" for row in baselines)
    return Markup(" Count-based models, for scale: {}.").format(named)


def _cost(best: Row, flat: Row | None, results: Results) -> Markup:
    tree = best.result["tree"]
    said = Markup("{} node scores for each word predicted, where a flat softmax takes {}").format(
        three_digits(tree["scores_per_target"]), number(results["vocabulary"]["size"])
    )
    if best.result["seconds_per_epoch"] is not None:
        said += Markup("; {} seconds an epoch, {} tokens/s").format(
            three_digits(best.result["seconds_per_epoch"]), number(best.tokens_per_second)
        )
    speed_up = best.result["speed_up"]
    if flat is not None and speed_up is not None:
        said += Markup(", <strong>{} the flat softmax\u2019s speed</strong>").format(
            times(speed_up)
        )
    if best.result["parameters"] is not None:
        said += Markup("; {} parameters").format(number(best.result["parameters"]))
    length = tree["code_length"]["weighted"] or tree["code_length"]["uniform"]
    codes = tree["codes_per_label"]
    over = "" if codes == 1 else f", over {three_digits(codes)} codes a word on average"
    return said + Markup(". A word of running text takes {} decisions{}.").format(
        three_digits(length), over
    )


def _faster(best: Row, rows: Sequence[Row]) -> Markup:
    limit = _test(best) * (1 + WITHIN)
    timed = [row for row in rows if row.is_tree and row.tokens_per_second and _test(row) <= limit]
    if best.tokens_per_second is None or not timed:
        return Markup("Speeds were not measured.")
    fastest = max(timed, key=lambda row: row.tokens_per_second or 0.0)
    if fastest.index == best.index:
        return Markup("No faster tree comes within {:.0%} of its perplexity.").format(WITHIN)
    return Markup(
        "<strong>{}</strong> is the fastest within {:.0%} of that perplexity: {} ({} than {}) at "
        "{} tokens/s, {} as many."
    ).format(
        fastest.name,
        WITHIN,
        perplexity(_test(fastest)),
        change(_test(fastest) / _test(best)),
        best.name,
        number(fastest.tokens_per_second),
        times((fastest.tokens_per_second or 0.0) / best.tokens_per_second),
    )


def _sure(best: Row, rows: Sequence[Row]) -> Markup:
    second = best_tree([row for row in rows if row.index != best.index])
    if second is None:
        return Markup("There was no second tree to compare it with.")
    said = Markup("The second best tree, {}, is {}").format(
        second.name, change(_test(second) / _test(best))
    )
    p = _p_over_seeds(best, second)
    if p is None:
        return said + Markup(
            "; not every tree was trained more than once, so whether other seeds would change "
            "their order is not known (--seeds 3 would tell)."
        )
    if p < SIGNIFICANT:
        return said + Markup(", more than seeds differ (Welch\u2019s t, p {}).").format(
            significance(p) if p < 0.001 else f"= {significance(p)}"
        )
    return said + Markup(
        ", which the spread over seeds does not tell from none (Welch\u2019s t, p = {}): of "
        "these two, take the faster."
    ).format(significance(p))


def _p_over_seeds(a: Row, b: Row) -> float | None:
    """Return the p value of two rows' difference over seeds; None where a spread is not known."""
    found = [row.result["perplexity"]["test"] for row in (a, b)]
    if not all(one["sd"] for one in found):
        return None
    (mean_a, sd_a, n_a), (mean_b, sd_b, n_b) = ((one["mean"], one["sd"], one["n"]) for one in found)
    welch = ttest_ind_from_stats(mean_a, sd_a, n_a, mean_b, sd_b, n_b, equal_var=False)
    return float(welch.pvalue)


def _test(row: Row) -> float:
    """Return a test perplexity; infinite where there is none, so that it never wins."""
    found = row.perplexity()
    return math.inf if found is None else found

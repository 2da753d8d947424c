"""The answer in words: which tree for this text, what it costs, and how sure that is.

Trees are chosen by validation perplexity; the perplexities reported of them are of the test part,
unless they are named as the validation's. Everything is computed from the results; where they do
not tell two rows apart, so it says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from scipy.stats import ttest_ind_from_stats

from hstree._text import plural
from hstree.experiments.results import Choice, Comparison
from hstree.report.figures import (
    change,
    number,
    perplexity,
    signed,
    significance,
    three_digits,
    times,
)
from hstree.report.rows import Row, best_tree, flat_row, lowest, recommended, rows_of

#: Two means over seeds are told apart below this p value.
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Answer:
    """One question and its answer, which is safe HTML."""

    question: str
    text: Markup


def answers_of(results: Comparison) -> list[Answer]:
    """Return the questions that the results can answer, the first one first."""
    rows = rows_of(results)
    chosen, best = recommended(results, rows), lowest(results, rows)
    if chosen is None or best is None or results.choice is None:
        return [Answer("Which tree?", Markup("No tree was compared, so there is none to name."))]
    return [
        Answer("Which tree?", _which(chosen, best, rows, results.choice)),
        Answer("What does it cost?", _cost(chosen, flat_row(rows), results)),
        Answer("And if only perplexity counts?", _only_perplexity(chosen, best)),
        Answer("And if only speed counts?", _only_speed(chosen, rows)),
        Answer("How sure is that?", _sure(chosen, rows)),
    ]


def _which(chosen: Row, best: Row, rows: Sequence[Row], choice: Choice) -> Markup:
    trees = plural(choice.among, "tree")
    if chosen.is_flat:
        return _flat_itself(chosen, rows, trees, choice.within)
    said = Markup(
        "Use <strong>{}</strong>: test perplexity <strong>{}</strong>, chosen from {} by "
        "validation perplexity: "
    ).format(chosen.name, perplexity(chosen.perplexity()), trees)
    if chosen.index == best.index:
        said += Markup("the lowest, {}, and none within {:.0%} of it is faster.").format(
            _valid(best), choice.within
        )
    else:
        said += Markup(
            "with {} the fastest of those within {:.0%} of the lowest, {} by {}."
        ).format(_valid(chosen), choice.within, _valid(best), best.name)
    return said + _beside_flat(chosen) + _beside_baselines(rows)


def _flat_itself(flat: Row, rows: Sequence[Row], trees: str, within: float) -> Markup:
    said = Markup(
        "None: use the <strong>flat softmax</strong>, test perplexity <strong>{}</strong>, chosen "
        "from {} by validation perplexity: no tree that is faster comes within {:.0%} of the "
        "lowest, {}."
    ).format(perplexity(flat.perplexity()), trees, within, _valid(flat))
    nearest = best_tree(rows)
    if nearest is None:
        return said
    return said + Markup(" The nearest, {}, has a test perplexity {}.").format(
        nearest.name, change(_test(nearest) / _test(flat))
    )


def _beside_flat(chosen: Row) -> Markup:
    to_flat = chosen.result.to_flat
    if to_flat is None:
        return Markup(" The flat softmax was not compared.")
    if to_flat.low is None or to_flat.high is None:
        return Markup(
            " Its ratio to the flat softmax, {}, is of a test text too short to tell whether it "
            "would hold on another one."
        ).format(signed(to_flat.ratio))
    interval = Markup("95% interval {} to {}").format(signed(to_flat.low), signed(to_flat.high))
    if to_flat.low <= 1 <= to_flat.high:
        return Markup(" This test text does not tell it from the flat softmax ({}; {}).").format(
            signed(to_flat.ratio), interval
        )
    return Markup(" That is {} than the flat softmax ({}).").format(change(to_flat.ratio), interval)


def _beside_baselines(rows: Sequence[Row]) -> Markup:
    baselines = [row for row in rows if not row.is_tree]
    if not baselines:
        return Markup("")
    named = ", ".join(f"{row.name} {perplexity(row.perplexity())}" for row in baselines)
    return Markup(" For scale, models that count n-grams: {}.").format(named)


def _cost(chosen: Row, flat: Row | None, results: Comparison) -> Markup:
    tree = chosen.result.tree
    if tree is None:
        return Markup("")
    size = results.vocabulary.size
    said = Markup("{} node scores for each word predicted").format(
        three_digits(tree.scores_per_target)
    )
    if not chosen.is_flat:
        said += Markup(", where a flat softmax takes {}").format(number(size))
    if chosen.result.seconds_per_epoch is not None:
        said += Markup("; {} seconds an epoch, {} tokens/s").format(
            three_digits(chosen.result.seconds_per_epoch), number(chosen.tokens_per_second)
        )
    speed_up = chosen.result.speed_up
    if flat is not None and speed_up is not None and not chosen.is_flat:
        said += Markup(", <strong>{} the flat softmax\u2019s speed</strong>").format(
            times(speed_up)
        )
    if (from_text := chosen.result.from_text) is not None:
        said += Markup("; {} seconds from the text to the model").format(
            three_digits(from_text.seconds)
        )
        if from_text.vectors:
            said += Markup(", {} of them for the vectors that it is built from").format(
                three_digits(from_text.vectors)
            )
        if from_text.speed_up is not None and not chosen.is_flat:
            said += Markup(" ({} flat\u2019s speed)").format(times(from_text.speed_up))
    if chosen.result.parameters is not None:
        said += Markup("; {} parameters").format(number(chosen.result.parameters))
    length = tree.code_length.weighted or tree.code_length.uniform
    codes = tree.codes_per_label
    over = "" if codes == 1 else f", over {three_digits(codes)} codes a word on average"
    return said + Markup(". A word of running text takes {}{}.").format(
        "one decision" if length == 1 else f"{three_digits(length)} decisions", over
    )


def _only_perplexity(chosen: Row, best: Row) -> Markup:
    if chosen.index == best.index:
        return Markup("The same: no tree here has a lower one on the validation text.")
    said = Markup(
        "<strong>{}</strong> has the lowest on the validation text, {}; its test perplexity, {}, "
        "is {} than that of {}"
    ).format(
        best.name,
        _valid(best),
        perplexity(best.perplexity()),
        change(_test(best) / _test(chosen)),
        chosen.name,
    )
    if not best.tokens_per_second or not chosen.tokens_per_second:
        return said + Markup(".")
    return said + Markup(", at {} its speed ({} tokens/s).").format(
        times(best.tokens_per_second / chosen.tokens_per_second), number(best.tokens_per_second)
    )


def _only_speed(chosen: Row, rows: Sequence[Row]) -> Markup:
    timed = [row for row in rows if row.is_tree and row.tokens_per_second]
    if not timed or not chosen.tokens_per_second:
        return Markup("Speeds were not measured.")
    fastest = max(timed, key=lambda row: row.tokens_per_second or 0.0)
    if fastest.index == chosen.index:
        return Markup("The same: no tree here is faster.")
    return Markup(
        "<strong>{}</strong>: {} tokens/s, {} its speed, but a perplexity {} ({})."
    ).format(
        fastest.name,
        number(fastest.tokens_per_second),
        times((fastest.tokens_per_second or 0.0) / chosen.tokens_per_second),
        change(_test(fastest) / _test(chosen)),
        perplexity(fastest.perplexity()),
    )


def _sure(chosen: Row, rows: Sequence[Row]) -> Markup:
    rival = best_tree([row for row in rows if row.index != chosen.index])
    if rival is None:
        return Markup("There was no other tree to compare it with.")
    ratio = _test(rival) / _test(chosen)
    said = Markup("The best of the other trees, {}, has a test perplexity {}").format(
        rival.name, change(ratio)
    )
    p = _p_over_seeds(chosen, rival)
    if p is None:
        several = any(row.result.perplexity["test"].n > 1 for row in rows if row.is_tree)
        return said + Markup(
            "; {} was trained more than once, so whether other seeds would change their order is "
            "not known (three seeds would tell)."
        ).format("not every tree" if several else "no tree")
    if p < SIGNIFICANT:
        return said + Markup(", more than seeds differ (Welch\u2019s t, p {}).").format(
            significance(p) if p < 0.001 else f"= {significance(p)}"
        )
    return said + Markup(
        ", which the spread over seeds does not tell from none (Welch\u2019s t, p = {})."
    ).format(significance(p))


def _p_over_seeds(a: Row, b: Row) -> float | None:
    """Return the p value of two rows' difference over seeds; None where a spread is not known."""
    spreads = [row.result.perplexity["test"] for row in (a, b)]
    if not all(spread.sd for spread in spreads):
        return None
    means, sds, ns = zip(*((one.mean, one.sd, one.n) for one in spreads), strict=True)
    welch: Any = ttest_ind_from_stats(means[0], sds[0], ns[0], means[1], sds[1], ns[1], False)
    return float(welch.pvalue)


def _valid(row: Row) -> str:
    return perplexity(row.perplexity("valid"))


def _test(row: Row) -> float:
    """Return a test perplexity; infinite where there is none, so that it never wins."""
    found = row.perplexity()
    return math.inf if found is None else found

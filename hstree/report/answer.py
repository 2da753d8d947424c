"""The answer in words: which tree for this text, its cost, and how certain that is.

Trees are chosen by validation perplexity and reported by test perplexity. Everything is computed
from the results, and so are the conditions that they depend on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from scipy.stats import ttest_ind_from_stats

from hstree._text import plural
from hstree.experiments.results import SPLITS, Choice, Comparison, Split
from hstree.models import describe
from hstree.report.table import (
    PageRow,
    best_tree,
    change,
    flat_row,
    number,
    p_value,
    perplexity,
    row_named,
    signed,
    three_digits,
    times,
)

#: Two means over seeds differ significantly below this p value.
SIGNIFICANT = 0.05
_SPLIT_NAMES: dict[Split, str] = {"train": "training", "valid": "validation", "test": "test"}


@dataclass(frozen=True)
class Answer:
    """A question and its answer, which is safe HTML."""

    question: str
    text: Markup


def answers_of(results: Comparison, rows: Sequence[PageRow]) -> list[Answer]:
    """Return the questions that the results can answer, the main one first."""
    choice = results.choice
    if choice is None:
        return [Answer("Which tree?", Markup("No tree was compared, so there is none to name."))]
    chosen, best = row_named(rows, choice.fastest), row_named(rows, choice.best)
    return [
        Answer("Which tree?", _which(chosen, best, rows, choice)),
        Answer("What does it cost?", _cost(chosen, flat_row(rows), results)),
        Answer("And if only perplexity counts?", _only_perplexity(chosen, best)),
        Answer("And if only speed counts?", _only_speed(chosen, rows)),
        Answer("How sure is that?", _how_sure(chosen, rows)),
    ]


def _which(chosen: PageRow, best: PageRow, rows: Sequence[PageRow], choice: Choice) -> Markup:
    trees = plural(choice.among, "tree")
    if chosen.is_flat:
        return _flat_itself(chosen, rows, trees, choice.within)
    text = Markup(
        "Use <strong>{}</strong>: test perplexity <strong>{}</strong>, chosen from {} by "
        "validation perplexity: "
    ).format(chosen.name, perplexity(chosen.perplexity()), trees)
    if chosen.index == best.index:
        text += Markup("the lowest, {}, and none within {:.0%} of it is faster.").format(
            _valid(best), choice.within
        )
    else:
        text += Markup(
            "with {} the fastest of those within {:.0%} of the lowest, {} by {}."
        ).format(_valid(chosen), choice.within, _valid(best), best.name)
    return text + _compared_with_flat(chosen) + _baselines(rows)


def _flat_itself(flat: PageRow, rows: Sequence[PageRow], trees: str, within: float) -> Markup:
    text = Markup(
        "None: use the <strong>flat softmax</strong>, test perplexity <strong>{}</strong>, chosen "
        "from {} by validation perplexity: no tree that is faster comes within {:.0%} of the "
        "lowest, {}."
    ).format(perplexity(flat.perplexity()), trees, within, _valid(flat))
    if (nearest := best_tree(rows)) is not None:
        text += Markup(" The nearest, {}, has a test perplexity {}.").format(
            nearest.name, change(_test(nearest) / _test(flat))
        )
    return text


def _compared_with_flat(chosen: PageRow) -> Markup:
    ratio = chosen.result.to_flat
    if ratio is None:
        return Markup(" The flat softmax was not compared.")
    if ratio.low is None or ratio.high is None:
        return Markup(
            " The test text is too short to tell whether its ratio to the flat softmax, {}, would "
            "hold on another text."
        ).format(signed(ratio.ratio))
    interval = Markup("95% interval {} to {}").format(signed(ratio.low), signed(ratio.high))
    if ratio.low <= 1 <= ratio.high:
        return Markup(
            " On this test text it does not differ significantly from the flat softmax ({}; {})."
        ).format(signed(ratio.ratio), interval)
    return Markup(" That is {} ({}).").format(change(ratio.ratio, "the flat softmax"), interval)


def _baselines(rows: Sequence[PageRow]) -> Markup:
    baselines = [f"{row.name} {perplexity(row.perplexity())}" for row in rows if not row.is_tree]
    if not baselines:
        return Markup("")
    return Markup(" N-gram models, for comparison: {}.").format(", ".join(baselines))


def _cost(chosen: PageRow, flat: PageRow | None, results: Comparison) -> Markup:
    row, tree = chosen.result, chosen.result.tree
    if tree is None:
        return Markup("")
    text = Markup("{} node scores for each word predicted").format(
        three_digits(tree.scores_per_target)
    )
    if not chosen.is_flat:
        text += Markup(", where a flat softmax takes {}").format(number(results.vocabulary.size))
    if row.seconds_per_epoch is not None:
        text += Markup("; {} seconds per epoch, {} tokens/s").format(
            three_digits(row.seconds_per_epoch), number(chosen.tokens_per_second)
        )
    if flat is not None and row.speed_up is not None and not chosen.is_flat:
        text += Markup(", <strong>{} the flat softmax\u2019s speed</strong>").format(
            times(row.speed_up)
        )
    if (from_text := row.from_text) is not None:
        text += Markup("; {} seconds from the text to the model").format(
            three_digits(from_text.seconds)
        )
        if from_text.vectors:
            text += Markup(", {} of them for the vectors that it is built from").format(
                three_digits(from_text.vectors)
            )
        if from_text.speed_up is not None and not chosen.is_flat:
            text += Markup(" ({} flat\u2019s speed)").format(times(from_text.speed_up))
    if row.parameters is not None:
        text += Markup("; {} parameters").format(number(row.parameters))
    length = tree.code_length.weighted or tree.code_length.uniform
    codes = tree.codes_per_label
    over = "" if codes == 1 else f", over {three_digits(codes)} codes per word on average"
    return text + Markup(". A word of running text takes {}{}.").format(
        "one decision" if length == 1 else f"{three_digits(length)} decisions", over
    )


def _only_perplexity(chosen: PageRow, best: PageRow) -> Markup:
    if chosen.index == best.index:
        return Markup("The same tree: no other has a lower validation perplexity.")
    text = Markup(
        "<strong>{}</strong> has the lowest validation perplexity, {}; its test perplexity, {}, "
        "is {}"
    ).format(
        best.name,
        _valid(best),
        perplexity(best.perplexity()),
        change(_test(best) / _test(chosen), f"that of {chosen.name}"),
    )
    if not best.tokens_per_second or not chosen.tokens_per_second:
        return text + Markup(".")
    return text + Markup(", at {} its speed ({} tokens/s).").format(
        times(best.tokens_per_second / chosen.tokens_per_second), number(best.tokens_per_second)
    )


def _only_speed(chosen: PageRow, rows: Sequence[PageRow]) -> Markup:
    timed = [row for row in rows if row.is_tree and row.tokens_per_second]
    if not timed or not chosen.tokens_per_second:
        return Markup("Speeds were not measured.")
    fastest = max(timed, key=lambda row: row.tokens_per_second or 0.0)
    if fastest.index == chosen.index:
        return Markup("The same tree: no other trains faster.")
    return Markup(
        "<strong>{}</strong>: {} tokens/s, {} the speed of {}, with a test perplexity {} ({})."
    ).format(
        fastest.name,
        number(fastest.tokens_per_second),
        times((fastest.tokens_per_second or 0.0) / chosen.tokens_per_second),
        chosen.name,
        change(_test(fastest) / _test(chosen)),
        perplexity(fastest.perplexity()),
    )


def _how_sure(chosen: PageRow, rows: Sequence[PageRow]) -> Markup:
    rival = best_tree([row for row in rows if row.index != chosen.index])
    if rival is None:
        return Markup("There was no other tree to compare it with.")
    text = Markup("The best of the other trees, {}, has a test perplexity {}").format(
        rival.name, change(_test(rival) / _test(chosen))
    )
    p = _p_over_seeds(chosen, rival)
    if p is None:
        several = any(row.result.perplexity["test"].n > 1 for row in rows if row.is_tree)
        return text + Markup(
            "; {} was trained with several seeds, so it is not known whether other seeds would "
            "change their order (three would tell)."
        ).format("not every tree" if several else "no tree")
    if p < SIGNIFICANT:
        return text + Markup(
            ", more than the spread over seeds explains (Welch\u2019s t-test, p {})."
        ).format(p_value(p) if p < 0.001 else f"= {p_value(p)}")
    return text + Markup(
        ", no more than the spread over seeds explains (Welch\u2019s t-test, p = {})."
    ).format(p_value(p))


def _p_over_seeds(a: PageRow, b: PageRow) -> float | None:
    """Return the p value of two rows' difference over seeds; None where a spread is not known."""
    one, other = (row.result.perplexity["test"] for row in (a, b))
    if not (one.mean and one.sd and other.mean and other.sd):
        return None
    welch: Any = ttest_ind_from_stats(
        one.mean, one.sd, one.n, other.mean, other.sd, other.n, equal_var=False
    )
    return float(welch.pvalue)


def _valid(row: PageRow) -> str:
    return perplexity(row.perplexity("valid"))


def _test(row: PageRow) -> float:
    """Return a test perplexity; infinity where there is none, so that it never wins."""
    test = row.perplexity()
    return math.inf if test is None else test


# Conditions


def title_of(results: Comparison) -> str:
    """Return the name of the text."""
    return str(results.corpus["train"].get("name") or "this text")


def conditions_of(results: Comparison) -> list[tuple[str, str]]:
    """Return what all figures depend on, as names and values: text, model, budget, machine."""
    machine, words = results.machine, results.vocabulary
    model, budget = describe(results.options)
    tokens = (f"{name} {number(results.tokens[split])}" for split, name in _SPLIT_NAMES.items())
    oov = (
        f"{name} {number(results.oov[split])} ({_share(results.oov[split], results.tokens[split])})"
        for split, name in _SPLIT_NAMES.items()
    )
    return [
        *[(f"{_SPLIT_NAMES[split]} text", _text(results, split)) for split in SPLITS],
        ("tokens", f"{', '.join(tokens)}; <eos> at the end of every line included"),
        ("out of vocabulary", ", ".join(oov)),
        ("vocabulary", f"{number(words.size)} words, sha256 {words.sha256[:16]}"),
        ("perplexity", f"of each {results.predicts}"),
        ("model", model),
        ("budget", budget),
        *_at_epoch_limit(results),
        *(("test lines read before", sentence) for sentence in results.read_before()),
        ("seeds", ", ".join(map(str, results.options["seeds"]))),
        ("unigram", f"test perplexity {perplexity(results.unigram)}, for comparison"),
        ("machine", f"{machine.system}, {machine.processor}, {plural(machine.cores, 'core')}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in results.versions.items())),
    ]


def _at_epoch_limit(results: Comparison) -> list[tuple[str, str]]:
    """Return how many rows stopped at the limit of epochs, if any did."""
    trees = [row for row in results.rows if row.kind == "tree"]
    limited = sum(bool(row.at_epoch_limit) for row in trees)
    if not limited:
        return []
    text = f"{limited} of {plural(len(trees), 'tree')}, marked *, stopped at it"
    return [("epoch limit", f"{text}; more epochs may lower their perplexity")]


def _text(results: Comparison, split: Split) -> str:
    source = results.corpus[split]
    text = str(source.get("name") or "unnamed")
    if lines := source.get("lines"):
        text += f", lines {number(lines[0] + 1)} to {number(lines[1])}"
    if source.get("lower"):
        text += ", lower-cased"
    if source.get("sha256"):
        text += f", sha256 {source['sha256'][:16]}"
    return text


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2%}" if whole else "none"

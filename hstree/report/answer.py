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
from hstree.experiments.rows import chosen_from
from hstree.models import describe
from hstree.report.table import (
    PageRow,
    best_row,
    change,
    flat_row,
    number,
    p_value,
    perplexity,
    row_named,
    rows_of,
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
        trained = any(row.is_trained for row in rows)
        nothing = Markup(
            "Every row has read the test part, so that none can be named: compare again with a "
            "test part that none has read."
            if trained
            else "No tree was compared, so there is none to name."
        )
        return [Answer(f"Which {noun_of(rows)}?", nothing)]
    chosen, best = row_named(rows, choice.chosen), row_named(rows, choice.best)
    return [
        Answer(f"Which {noun_of(rows)}?", _which(chosen, best, rows, choice)),
        Answer("What does it cost?", _cost(chosen, flat_row(rows), results)),
        Answer("And if only perplexity counts?", _only_perplexity(chosen, best, noun_of(rows))),
        Answer("And if only speed counts?", _only_speed(chosen, rows)),
        Answer("How sure is that?", _how_sure(chosen, rows, choice)),
    ]


def noun_of(rows: Sequence[PageRow]) -> str:
    """Return what the rows are: trees, or output layers if one of them has no tree."""
    return "output layer" if any(row.result.kind == "layer" for row in rows) else "tree"


def _which(chosen: PageRow, best: PageRow, rows: Sequence[PageRow], choice: Choice) -> Markup:
    among = chosen_from([row.result for row in rows], choice, noun_of(rows))
    if chosen.is_flat:
        return _flat_itself(chosen, rows, among, choice)
    text = _html(
        "Use <strong>{}</strong>: test perplexity <strong>{}</strong>, chosen from {} by "
        "validation perplexity: ", chosen.name, perplexity(chosen.perplexity()), among,
    )  # fmt: skip
    if chosen.index == best.index:
        text += _html(
            "the lowest, {}, and none within {} of it is faster.",
            _valid(best), within(choice.within),
        )  # fmt: skip
    else:
        text += _html(
            "with {} the fastest of those within {} of the lowest, {} by {}.",
            _valid(chosen), within(choice.within), _valid(best), best.name,
        )  # fmt: skip
    if choice.tied:
        text += _html(
            " As fast, within the spread of the rounds of the measurement: {}.",
            ", ".join(choice.tied),
        )
    text += _compared_with_flat(chosen)
    if baselines := [f"{r.name} {perplexity(r.perplexity())}" for r in rows if not r.is_trained]:
        text += _html(" N-gram models, for comparison: {}.", ", ".join(baselines))
    return text


def _flat_itself(flat: PageRow, rows: Sequence[PageRow], among: str, choice: Choice) -> Markup:
    text = _html(
        "None: use the <strong>flat softmax</strong>, test perplexity <strong>{}</strong>, chosen "
        "from {} by validation perplexity: no {} that is faster comes within {} of the "
        "lowest, {}.",
        perplexity(flat.perplexity()), among, noun_of(rows), within(choice.within), _valid(flat),
    )  # fmt: skip
    if (nearest := best_row(rows)) is not None:
        text += _html(
            " The nearest, {}, has a test perplexity {}.", nearest.name, _change(nearest, flat)
        )
    return text


def _compared_with_flat(chosen: PageRow) -> Markup:
    ratio = chosen.result.to_flat
    if ratio is None:
        return Markup(" The flat softmax was not compared.")
    if ratio.low is None or ratio.high is None:
        return _html(
            " The test text is too short to tell whether its ratio to the flat softmax, {}, would "
            "hold on another text.", signed(ratio.ratio),
        )  # fmt: skip
    interval = f"95% interval {signed(ratio.low)} to {signed(ratio.high)}"
    if ratio.low <= 1 <= ratio.high:
        return _html(
            " On this test text it does not differ significantly from the flat softmax ({}; {}).",
            signed(ratio.ratio), interval,
        )  # fmt: skip
    return _html(" That is {} ({}).", change(ratio.ratio, "the flat softmax"), interval)


def _cost(chosen: PageRow, flat: PageRow | None, results: Comparison) -> Markup:
    row, tree = chosen.result, chosen.tree
    text = "No tree"
    if tree is not None:
        text = f"{three_digits(tree.scores_per_target)} node scores for each word predicted"
        if not chosen.is_flat:
            text += f", where a flat softmax takes {number(results.vocabulary.size)}"
    if row.seconds_per_epoch is not None:
        text += f"; {three_digits(row.seconds_per_epoch)} seconds per epoch, "
        text += f"{number(row.tokens_per_second)} tokens/s"
    if flat is not None and row.speed_up is not None and not chosen.is_flat:
        text += f", <strong>{times(row.speed_up)} the flat softmax\u2019s speed</strong>"
    if (from_text := row.from_text) is not None:
        text += f"; {three_digits(from_text.seconds)} seconds from the text to the model"
        if from_text.vectors:
            spent = three_digits(from_text.vectors)
            text += f", {spent} of them for the vectors that it is built from"
        if from_text.speed_up is not None and not chosen.is_flat:
            text += f" ({times(from_text.speed_up)} flat\u2019s speed)"
    if row.parameters is not None:
        text += f"; {number(row.parameters)} parameters"
    if tree is None:
        return Markup(f"{text}.")
    length = tree.code_length.weighted or tree.code_length.uniform
    text += ". A word of running text takes "
    text += "one decision" if length == 1 else f"{three_digits(length)} decisions"
    if tree.codes_per_label != 1:
        text += f", over {three_digits(tree.codes_per_label)} codes per word on average"
    return Markup(f"{text}.")  # figures alone, nothing to escape


def _only_perplexity(chosen: PageRow, best: PageRow, noun: str) -> Markup:
    if chosen.index == best.index:
        return Markup(f"The same {noun}: no other has a lower validation perplexity.")
    text = _html(
        "<strong>{}</strong> has the lowest validation perplexity, {}; its test perplexity, {}, "
        "is {}", best.name, _valid(best), perplexity(best.perplexity()),
        _change(best, chosen, f"that of {chosen.name}"),
    )  # fmt: skip
    speed, before = best.tokens_per_second, chosen.tokens_per_second
    if not speed or not before:
        return text + "."
    return text + f", at {times(speed / before)} its speed ({number(speed)} tokens/s)."


def _only_speed(chosen: PageRow, rows: Sequence[PageRow]) -> Markup:
    timed = [row for row in rows if row.is_trained and row.tokens_per_second]
    if not timed or not chosen.tokens_per_second:
        return Markup("Speeds were not measured.")
    fastest = max(timed, key=lambda row: row.tokens_per_second or 0.0)
    if fastest.index == chosen.index:
        return Markup(f"The same {noun_of(rows)}: no other trains faster.")
    speed = fastest.tokens_per_second or 0.0
    return _html(
        "<strong>{}</strong>: {} tokens/s, {} the speed of {}, with a test perplexity {} ({}).",
        fastest.name, number(speed), times(speed / chosen.tokens_per_second), chosen.name,
        _change(fastest, chosen), perplexity(fastest.perplexity()),
    )  # fmt: skip


def within(share: float) -> Markup:
    """Return a distance to the lowest perplexity; the page's slider writes another in its place."""
    return _html('<span class="within">{:.3g}%</span>', 100 * share)


def _how_sure(chosen: PageRow, rows: Sequence[PageRow], choice: Choice) -> Markup:
    if choice.rival is None:
        return Markup(f"There was no other {noun_of(rows)} to compare it with.")
    rival = row_named(rows, choice.rival)
    text = _html(
        "The best of the other {}s, {}, has a test perplexity {}",
        noun_of(rows), rival.name, _change(rival, chosen),
    )  # fmt: skip
    if (ratio := choice.to_rival) is not None and ratio.low is not None and ratio.high is not None:
        tells = "does not tell" if ratio.low <= 1 <= ratio.high else "tells"
        text += (
            f"; the 95% interval of the answer\u2019s, over blocks of test tokens, is "
            f"{signed(ratio.low)} to {signed(ratio.high)} against it, which {tells} them apart"
        )
    p = _p_over_seeds(chosen, rival)
    if p is None:
        several = any(row.result.perplexity["test"].n > 1 for row in rows if row.is_trained)
        return text + (
            f"; {'not every' if several else 'no'} {noun_of(rows)} was trained with several seeds, "
            "so it is not known whether other seeds would change their order (three would tell)."
        )
    more = "more" if p < SIGNIFICANT else "no more"
    value = Markup.escape(p_value(p) if p < 0.001 else f"= {p_value(p)}")
    return text + Markup(
        f", {more} than the spread over seeds explains (Welch\u2019s t-test, p {value})."
    )


def _p_over_seeds(a: PageRow, b: PageRow) -> float | None:
    """Return the p value of two rows' difference over seeds; None where a spread is not known."""
    one, other = (row.result.perplexity["test"] for row in (a, b))
    if not (one.mean and one.sd and other.mean and other.sd):
        return None
    welch: Any = ttest_ind_from_stats(
        one.mean, one.sd, one.n, other.mean, other.sd, other.n, equal_var=False
    )
    return float(welch.pvalue)


def _html(text: str, *values: object) -> Markup:
    """Return a template of HTML with its values, which are escaped."""
    return Markup(text).format(*values)


def _valid(row: PageRow) -> str:
    return perplexity(row.perplexity("valid"))


def _change(row: PageRow, other: PageRow, than: str = "") -> str:
    """Describe the ratio of two test perplexities; one that is not known is infinite."""
    one, two = (
        math.inf if test is None else test for test in (row.perplexity(), other.perplexity())
    )
    return change(one / two, than)


# Conditions


def conditions_of(results: Comparison) -> list[tuple[str, str]]:
    """Return what all figures depend on, as names and values: text, model, budget, machine."""
    machine, words = results.machine, results.vocabulary
    model, budget = describe(results.options)
    tokens = (f"{name} {number(results.tokens[split])}" for split, name in _SPLIT_NAMES.items())
    oov = (
        f"{name} {number(oov)} ({f'{oov / n:.2%}' if n else 'none'})"
        for name, oov, n in ((_SPLIT_NAMES[s], results.oov[s], results.tokens[s]) for s in SPLITS)
    )
    trained = [row for row in rows_of(results) if row.is_trained]
    limited = sum(bool(row.result.at_epoch_limit) for row in trained)
    limit = f"{limited} of {plural(len(trained), noun_of(trained))}, marked *, stopped at it; more "
    limit += "epochs may lower their perplexity"
    return [
        *[(f"{_SPLIT_NAMES[split]} text", _text(results, split)) for split in SPLITS],
        ("tokens", f"{', '.join(tokens)}; <eos> at the end of every line included"),
        ("out of vocabulary", ", ".join(oov)),
        ("vocabulary", f"{number(words.size)} words, sha256 {words.sha256[:16]}"),
        ("perplexity", f"of each {results.predicts}"),
        ("model", model),
        ("budget", budget),
        *([("epoch limit", limit)] if limited else []),
        *((f"left out: {name}", reason) for name, reason in results.left_out.items()),
        *(("test lines read before", sentence) for sentence in results.read_before()),
        ("seeds", ", ".join(map(str, results.options["seeds"]))),
        ("unigram", f"test perplexity {perplexity(results.unigram)}, for comparison"),
        ("machine", f"{machine.system}, {machine.processor}, {plural(machine.cores, 'core')}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in results.versions.items())),
    ]


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

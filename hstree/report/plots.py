"""Plots of the page: which figures of the rows each shows, and its description and data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from hstree._typing import Float64, Int64
from hstree.experiments.results import Band, Comparison, LengthCount
from hstree.report.charts import Axis, Chart, Mark, Side, Table
from hstree.report.table import (
    PageRow,
    best_row,
    flat_row,
    number,
    perplexity,
    seconds_before_training,
    three_digits,
)

#: Validation perplexities above this multiple of the best are left out above the plot.
_HIGHEST = 3.0
#: Height of a tree's histogram in the pixels of its chart.
_STRIP = 34.0
#: Maximum number of bars; more lengths share bars.
_MOST_BARS = 150
#: The longest lengths are left off the axis where they hold less than this share of all.
_TAIL = 0.001


def plots_of(results: Comparison, rows: Sequence[PageRow]) -> list[Chart]:
    """Return the plots that the results have figures for."""
    bands, flat = results.bands, flat_row(rows)
    level = flat if flat is not None and flat.result.by_band else best_row(rows)
    return _drawn(
        _over_time(rows),
        _against_speed(rows),
        _costs(rows),
        _against_seconds(rows),
        _against_scores(rows),
        _over_epochs(rows),
        *(_against_scoring(rows, what) for what in _SCORING),
        _code_lengths(rows),
        _by_band(rows, bands, None),
        _by_band(rows, bands, level) if level else None,
    )


def plots_of_survey(
    rows: Sequence[PageRow], compared: Sequence[PageRow], bands: Sequence[Band]
) -> list[Chart]:
    """Return the plots of a survey.

    `rows` have the runs of all regimes, `compared` are those of one, in the same order.
    """
    flat = flat_row(compared)
    return _drawn(
        _over_time(rows, " One line per run, after equal epochs and after equal seconds."),
        _against_speed(compared),
        _costs(compared),
        _by_band(compared, bands, flat) if flat else None,
    )


def _drawn(*charts: Chart | None) -> list[Chart]:
    return [chart for chart in charts if chart is not None]


# Learning curves


@dataclass(frozen=True)
class Curve:
    """Validation perplexities of one run, at its epochs and at seconds from the text."""

    row: PageRow
    seed: int | None
    epochs: list[int]
    seconds: list[float]
    valid: list[float]


def curves_of(rows: Sequence[PageRow]) -> list[Curve]:
    """Return a curve for each run, of the epochs that were validated; none for ensembles.

    The seconds of an epoch are those of the table, which were measured in turns; those of the
    training itself depend on what else the machine did. The vectors of a tree, the tree and the
    preparation of the layer come before the first epoch.
    """
    curves = []
    for row in rows:
        for run in row.result.runs if row.has_epochs else ():
            epochs = run.epochs or []
            done = accumulate(epoch.share for epoch in epochs)
            each = row.result.seconds_per_epoch or math.nan
            start = seconds_before_training(row)
            points = [
                (epoch.epoch, start + share * each, epoch.valid)
                for epoch, share in zip(epochs, done, strict=True)
                if epoch.valid is not None
            ]
            if points:
                numbers, seconds, valid = (list(column) for column in zip(*points, strict=True))
                curves.append(Curve(row, run.seed, numbers, seconds, valid))
    return curves


def _over_epochs(rows: Sequence[PageRow]) -> Chart | None:
    return _learning(
        rows, "epochs", "Perplexity against epochs",
        "One line per run: how much is learned from each pass over the text. N-gram models and "
        "ensembles, which have no epochs of their own, are dashed levels.",
        Axis("training epochs", "count"), lambda curve: [float(epoch) for epoch in curve.epochs],
    )  # fmt: skip


def _over_time(rows: Sequence[PageRow], more: str = "") -> Chart | None:
    timed = [row for row in rows if row.result.seconds_per_epoch or row.result.from_text]
    unknown = [row.name for row in timed if row.result.from_text is None]
    lacking = f" Not known, and left out, for {', '.join(unknown)}." if unknown else ""
    return _learning(
        timed, "seconds", "Perplexity against time",
        "Seconds from the text to the model: the vectors that a tree is built from, the tree, then "
        "each epoch at the speed of the table, without validation. At a given time, the lowest "
        f"line is the best row.{lacking}{more}",
        Axis("seconds from the text (log scale)", "log"), lambda curve: curve.seconds,
    )  # fmt: skip


def _learning(
    rows: Sequence[PageRow], name: str, title: str, caption: str, x: Axis,
    place: Callable[[Curve], list[float]],
) -> Chart | None:  # fmt: skip
    """Draw the validation perplexity of every run; None where no epoch was validated."""
    curves = curves_of(rows)
    if not curves:
        return None
    marks, lines = [], []
    for curve in curves:
        points = list(zip(place(curve), curve.valid, strict=True))
        marks.append(Mark(curve.row, "line", points))
        for point, epoch, seconds in zip(points, curve.epochs, curve.seconds, strict=True):
            said = f"epoch {epoch}, {three_digits(seconds)} s: {perplexity(point[1])}"
            seed = "" if curve.seed is None else f", seed {curve.seed}"
            marks.append(Mark(curve.row, "dot", [point], f"{curve.row.name}{seed}, {said}"))
            lines.append((curve.row.name, number(curve.seed), str(epoch), three_digits(seconds),
                          perplexity(point[1])))  # fmt: skip
    last = max(max(place(curve)) for curve in curves)
    for row in rows:
        valid, from_text = row.perplexity("valid"), row.result.from_text
        if row.has_epochs or not valid:
            continue
        seconds_of_row = None if from_text is None else from_text.seconds
        if name == "epochs":
            marks.append(Mark(row, "line", [(0.0, valid), (last, valid)]))
        elif seconds_of_row:
            marks.append(Mark(row, "dot", [(seconds_of_row, valid)], row.name))
        else:
            continue
        lines.append((row.name, "", "", three_digits(seconds_of_row), perplexity(valid)))
    end = min(curves, key=lambda curve: min(curve.valid))
    alt = (
        f"Line chart: validation perplexity over {x.title} for "
        f"{len({curve.row.index for curve in curves})} rows. The lowest, {end.row.name}, reaches "
        f"{perplexity(min(end.valid))}."
    )
    return Chart(
        f"plot-{name}", title, caption, alt, x,
        Axis("validation perplexity (log scale)", "log", cap=_HIGHEST), marks,
        Table(("row", "seed", "epoch", "seconds from the text", "validation perplexity"), lines),
    )  # fmt: skip


# Speed and cost


def _against_speed(rows: Sequence[PageRow]) -> Chart | None:
    return _against(
        rows, "speed", "Perplexity against training speed", f"{_RIGHT} Bars: one standard "
        "deviation over seeds.",
        _Cost("training speed", "training speed, tokens/s", "tokens/s", "right",
              lambda row: row.tokens_per_second),
    )  # fmt: skip


def _against_seconds(rows: Sequence[PageRow]) -> Chart | None:
    return _against(
        rows, "frontier-seconds", "The frontier: perplexity against seconds from the text",
        f"All that a row takes from the text to the trained model. {_LEFT}",
        _Cost("time", "seconds from the text to the model", "s", "left", _seconds_from_text),
    )  # fmt: skip


def _against_scores(rows: Sequence[PageRow]) -> Chart | None:
    return _against(
        rows, "frontier-scores", "The frontier: perplexity against scores a target",
        f"Scores that a tree computes to train on one word: what its shape costs, whatever the "
        f"machine. {_LEFT}",
        _Cost("number of scores", "scores a target", "scores", "left", _scores_per_target),
    )  # fmt: skip


#: Titles of the plots over the speeds of `Row.scoring`.
_SCORING = {"nll": "the probability of one word", "top_k": "the ten most probable words"}


def _against_scoring(rows: Sequence[PageRow], what: str) -> Chart | None:
    return _against(
        rows, f"scoring-{what.replace('_', '-')}", f"Perplexity against speed: {_SCORING[what]}",
        f"What a trained model costs: positions per second for {_SCORING[what]}. {_RIGHT}",
        _Cost("speed", "tokens/s", "tokens/s", "right", lambda row: row.scoring(what)),
    )  # fmt: skip


_FRONT = (
    "The dashed staircase is the Pareto front of the rows shown: no row on it is beaten in both. "
    "Rows that are beaten are grey."
)
_RIGHT, _LEFT = (f"Down and to the {side} is better. {_FRONT}" for side in ("right", "left"))


@dataclass(frozen=True)
class _Cost:
    """What is drawn from left to right, and on which side it is better."""

    what: str
    axis: str
    unit: str
    better: Side
    of: Callable[[PageRow], float | None]


def _seconds_from_text(row: PageRow) -> float | None:
    return row.result.from_text.seconds if row.result.from_text else None


def _scores_per_target(row: PageRow) -> float | None:
    return row.result.tree.scores_per_target if row.result.tree else None


def _against(
    rows: Sequence[PageRow], name: str, title: str, caption: str, cost: _Cost
) -> Chart | None:
    """Draw test perplexity over a cost, and the front; None where no row has it."""
    measured = [
        (row, x, test) for row in rows if (x := cost.of(row)) and (test := row.perplexity())
    ]
    if not measured:
        return None
    marks, lines = [], []
    for row, x, test in measured:
        sd = row.result.perplexity["test"].sd
        if sd:
            marks.append(Mark(row, "whisker", [(x, test - sd), (x, test + sd)]))
        said = f"{row.name}: {perplexity(test)} at {three_digits(x)} {cost.unit}"
        marks.append(Mark(row, "dot", [(x, test)], said))
        lines.append((row.name, three_digits(x), perplexity(test), number(sd, 2)))
    best = min(measured, key=lambda one: one[2])[0].name
    choose, most = (max, "highest") if cost.better == "right" else (min, "lowest")
    end = choose(measured, key=lambda one: one[1])[0].name
    alt = (
        f"Scatter plot: test perplexity over {cost.axis}, for {len(measured)} rows. "
        f"The lowest perplexity has {best}, the {most} {cost.what} {end}."
    )
    return Chart(
        f"plot-{name}", title, caption, alt, Axis(f"{cost.axis} (log scale)", "log"),
        Axis("test perplexity"), marks,
        Table(("row", cost.unit, "test perplexity", "standard deviation"), lines),
        front=cost.better,
    )  # fmt: skip


#: Steps of `SecondsFromText`, and their names.
_STEPS = {
    "vectors": "vectors",
    "tree": "tree",
    "preparation": "preparation",
    "training": "training",
}


def _costs(rows: Sequence[PageRow]) -> Chart | None:
    """Draw the seconds of each step from the text to the model; None where none are known."""
    marks, lines, ends = [], [], {}
    for row in rows:
        from_text = row.result.from_text
        if from_text is None or not from_text.seconds:
            continue
        steps = [getattr(from_text, step) or 0.0 for step in _STEPS]
        lines.append((row.name, *map(three_digits, steps), three_digits(from_text.seconds)))
        ends[row.index] = f"{three_digits(from_text.seconds)} s"
        for (step, name), seconds, end in zip(
            _STEPS.items(), steps, accumulate(steps), strict=True
        ):
            if seconds:
                said = f"{row.name}, {name}: {three_digits(seconds)} s"
                marks.append(
                    Mark(row, f"segment step-{step}", [(end - seconds, 2.0), (end, 2.0)], said)
                )
    if not marks:
        return None
    least = min(lines, key=lambda line: float(line[-1].replace(",", "")))
    return Chart(
        "plot-costs", "What it costs from the text to the model",
        "Seconds, from the left: learning the vectors that a tree is built from (palest), building "
        "the tree, preparing the output layer, and training all epochs on it (full colour).",
        f"Bar chart: seconds from the text to the model of {len(lines)} rows. The least has "
        f"{least[0]}, {least[-1]} seconds.",
        Axis("seconds", "zero"), None, marks,
        Table(("row", *(f"{name}, s" for name in _STEPS.values()), "all, s"), lines),
        strip=14.0, ends=ends,
    )  # fmt: skip


# Code lengths


def _code_lengths(rows: Sequence[PageRow]) -> Chart | None:
    """Draw each tree's codes (bars) and running text (line) by length; None without any tree."""
    histograms = [(row, row.result.code_lengths) for row in rows if row.result.code_lengths]
    if not histograms:
        return None
    end = max(_last_shown(lengths) for _, lengths in histograms)
    width = -(-end // _MOST_BARS)
    marks: list[Mark] = []
    lines: list[Sequence[str]] = []
    for row, lengths in histograms:
        first, codes, tokens = _bars(lengths, end, width)
        of_codes = codes / max(sum(entry.codes for entry in lengths), 1)
        of_tokens = tokens / (sum(entry.tokens for entry in lengths) or 1.0)
        tallest = max(of_codes.max(), of_tokens.max()) or 1.0
        curve = []
        for begin, share, of_text in zip(first.tolist(), of_codes, of_tokens, strict=True):
            name = str(begin) if width == 1 else f"{begin} to {begin + width - 1}"
            said = f"{row.name}, {name} decisions: {share:.1%} of codes, {of_text:.1%} of text"
            top = _STRIP * (1 - float(share) / float(tallest))
            bar = [(begin - 0.42, top), (begin + width - 0.58, top)]
            marks.append(Mark(row, "segment codes", bar, said))
            height = _STRIP * (1 - float(of_text) / float(tallest))
            curve.append((begin + (width - 1) / 2, height))
            lines.append((row.name, name, f"{share:.2%}", f"{of_text:.2%}"))
        marks.append(Mark(row, "line", curve))
    return Chart(
        "plot-lengths", "Code lengths",
        "Bars: the share of a tree\u2019s codes of each length. Line: the share of running text "
        "that has them. Each strip is scaled to its own maximum. Text far to the left of the codes "
        "means short codes for frequent words.",
        f"Histograms of the code lengths of {len(histograms)} trees, up to {end} decisions.",
        Axis("code length, decisions", "count"), None, marks,
        Table(("tree", "decisions", "of codes", "of running text"), lines), strip=_STRIP,
    )  # fmt: skip


def _bars(lengths: Sequence[LengthCount], end: int, width: int) -> tuple[Int64, Float64, Float64]:
    """Return the first length of each bar up to `end`, and the codes and tokens in it."""
    shown = [entry for entry in lengths if entry.length <= end]
    bar = np.array([entry.length - 1 for entry in shown], np.int64) // width
    filled = np.unique(bar)
    codes, tokens = (
        np.bincount(bar, weights)[filled].astype(np.float64)
        for weights in ([float(e.codes) for e in shown], [e.tokens for e in shown])
    )
    return filled * width + 1, codes, tokens


def _last_shown(lengths: Sequence[LengthCount]) -> int:
    """Return the length beyond which there is only a tail."""
    ends = []
    for amount in ([float(entry.codes) for entry in lengths], [entry.tokens for entry in lengths]):
        beyond = np.cumsum(amount[::-1])[::-1]
        ends += [
            e.length for e, left in zip(lengths, beyond, strict=True) if left >= _TAIL * beyond[0]
        ]
    return int(max(ends))


# Frequency bands


def _by_band(rows: Sequence[PageRow], bands: Sequence[Band], level: PageRow | None) -> Chart | None:
    """Draw the test perplexity of every row by band, or its ratio to that of one row."""
    shown = [i for i, band in enumerate(bands) if band.tokens]
    total = sum(band.tokens for band in bands)
    scored = [(row, row.result.by_band) for row in rows if row.result.by_band]
    if not shown or not scored:
        return None
    divisors: Sequence[float | None] = [1.0] * len(bands)
    if level is not None and level.result.by_band:
        divisors = level.result.by_band
    marks, lines = [], []
    for row, values in scored:
        points = [
            (float(position), value / divisor, i)
            for position, i in enumerate(shown)
            if (value := values[i]) and (divisor := divisors[i])
        ]
        if not points:
            continue
        marks.append(Mark(row, "line", [(x, y) for x, y, _ in points]))
        for x, y, i in points:
            figure = perplexity(y) if level is None else f"{y:.3f}"
            name = _band_name(bands[i])
            marks.append(Mark(row, "dot", [(x, y)], f"{row.name}, {name}: {figure}"))
            lines.append((row.name, name, number(bands[i].words), number(bands[i].tokens),
                          perplexity(values[i]), figure))  # fmt: skip
    if not marks:
        return None
    names = [f"{_short_band(bands[i])}\n{_per_cent(bands[i].tokens / total)}" for i in shown]
    counts = Axis("training count of the word; share of the test tokens", names=names)
    titles = ("row", "training count", "words", "test tokens", "test perplexity")
    said = f"for {len(scored)} rows in {len(shown)} bands of training counts."
    if level is None:
        return Chart(
            "plot-bands", "Perplexity by word frequency",
            "Test perplexity over the targets of each band alone, by how often the training text "
            "has the word (10+ is 10 to 99, and so on; OOV is out of vocabulary).",
            f"Line chart: test perplexity {said}", counts,
            Axis("test perplexity (log scale)", "log"), marks,
            Table(titles, [line[:-1] for line in lines]),
        )  # fmt: skip
    return Chart(
        "plot-bands-level", "Which words each row helps",
        f"The same as a multiple of {level.name}, the dashed line: below it a row predicts the "
        "words of a band better, above it worse.",
        f"Line chart: test perplexity as a multiple of that of {level.name}, {said}", counts,
        Axis(f"test perplexity / that of {level.name}"), marks,
        Table((*titles, f"/ {level.name}"), lines), level=1.0,
    )  # fmt: skip


def _band_name(band: Band) -> str:
    if band.least is None or band.most is None:
        return "out of vocabulary"
    if band.most == 0:
        return "never"
    if band.least == band.most:
        return f"{band.least:,}"
    return f"{band.least:,}\N{EN DASH}{band.most:,}"


def _short_band(band: Band) -> str:
    """Name a band on an axis: OOV, 0, 1+, 10+, 1k+."""
    if band.least is None or band.most is None:
        return "OOV"
    if band.most == 0:
        return "0"
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if band.least >= size:
            return f"{band.least // size}{letter}+"
    return f"{band.least}+"


def _per_cent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.0995 else f"{100 * share:.2g}%"

"""Plots of the page: the figures of the rows that each shows."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from hstree.experiments.results import Band, Comparison, RowResult, figure_at
from hstree.report.figure import Axis, Figure, Mark, Side
from hstree.report.formats import number

#: Validation perplexities above this multiple of the best are left out above the plot.
_HIGHEST = 3.0
#: Height of a tree's histogram in pixels, and its maximum number of bars, which lengths share.
_HISTOGRAM, _MOST_BARS = 34.0, 150
#: The longest lengths are left off the axis where they hold less than this share of all.
_TAIL = 0.001
#: Units of training counts on an axis.
_UNITS = ((10**6, "M"), (10**3, "k"))
#: Steps from the text to a model.
_STEPS = ("vectors", "tree", "preparation", "training")


def plots_of(comparison: Comparison) -> list[Figure]:
    """Return the plots that the rows have figures for."""
    rows, bands = comparison.rows, comparison.bands
    scored = [row for row in rows if any(row.by_band)]
    level = min(scored, key=lambda row: (not row.is_flat, row.valid), default=None)
    speed, *others = (_against(rows, *cost) for cost in _COSTS)
    figures = [
        _learning(rows, by_time=True),
        speed,
        _steps(rows),
        *others,
        _learning(rows, by_time=False),
        _code_lengths(rows),
        _by_band(rows, bands, None),
        None if level is None else _by_band(rows, bands, level),
    ]
    drawn = []
    for figure in filter(None, figures):
        # Zeros of damaged results have no place on a log axis.
        logs = [i for i, axis in enumerate((figure.x, figure.y)) if axis and axis.scale == "log"]
        marks = [mark for mark in figure.marks if all(p[i] > 0 for p in mark.points for i in logs)]
        drawn += [figure._replace(marks=marks)] if marks else []
    return drawn


# Learning curves


def _learning(rows: Sequence[RowResult], *, by_time: bool) -> Figure:
    """Draw the validation perplexity of every job after each epoch."""
    marks: list[Mark] = []
    others: list[tuple[int, float, float]] = []  # rows that are not one training
    for i, row in enumerate(rows):
        valid, seconds = row.perplexity["valid"].mean, row.steps.total
        if by_time and not seconds:
            continue
        if row.models > 1 or row.kind == "ngram":
            others += [(i, seconds or 0.0, valid)] if valid else []
            continue
        # Epochs take the time of the table, so that a curve ends at the seconds there.
        steps = row.steps
        before = (steps.vectors or 0.0) + (steps.tree or 0.0) + (steps.preparation or 0.0)
        each = (steps.training or 0.0) / (row.trained_epochs or 1.0)
        for job in row.jobs:
            curve = []
            done = accumulate(epoch.share for epoch in job.epochs)
            for epoch, share in zip(job.epochs, done, strict=True):
                if epoch.valid is None:
                    continue
                at, texts = before + share * each, (number(job.seed, most=0), str(epoch.epoch))
                figures = (row.name, *texts, number(at), number(epoch.valid, 1))
                point = (at if by_time else float(epoch.epoch), epoch.valid)
                curve.append(Mark(i, "dot", [point], figures))
            line = Mark(i, "line", [dot.points[0] for dot in curve])
            marks += [line, *curve] if curve else []
    if not marks:
        others = []
    last = max((mark.points[-1][0] for mark in marks), default=0.0)
    for i, at, valid in others:
        if not by_time:
            marks.append(Mark(i, "line", [(0.0, valid), (last, valid)]))
        figures = (rows[i].name, "", "", number(at), number(valid, 1))
        marks.append(Mark(i, "dot", [(at if by_time else last, valid)], figures))
    what, title, x, caption = _OVER[by_time]
    columns = ("row", "seed", "epoch", "seconds from the text", "validation perplexity")
    y = Axis("validation perplexity (log scale)", "log", cap=_HIGHEST)
    return Figure(f"plot-{what}", title, caption, x, y, columns, marks)


_OVER = {
    True: (
        "seconds", "Perplexity against time", Axis("seconds from the text (log scale)", "log"),
        "Seconds from the text to the model: the vectors that a tree is built from, the tree, the "
        "preparation of the layer, then each epoch, without validation. At a given time, the "
        "lowest line is the best row.",
    ),
    False: (
        "epochs", "Perplexity against epochs", Axis("training epochs", "count"),
        "One line per training: how much is learned from each pass over the text. N-gram models, "
        "and several models whose probabilities are averaged, are dashed levels.",
    ),
}  # fmt: skip


# Costs


#: Of each plot of a cost its id, title and caption, the title of its axis, the side where it is
#: better, and the path of its figure in a row.
_COSTS: tuple[tuple[str, str, str, str, Side, str], ...] = (
    ("speed", "Perplexity against training speed", "Bars: one standard deviation over seeds.",
     "training speed, tokens/s", "right", "training.median"),
    ("frontier-seconds", "The frontier: perplexity against seconds from the text",
     "All that a row takes from the text to the trained model.",
     "seconds from the text to the model", "left", "steps.total"),
    ("frontier-scores", "The frontier: perplexity against scores a target",
     "Scores that a tree computes to train on one word: what its shape costs, whatever the "
     "machine.", "scores a target", "left", "tree.scores_per_target"),
    ("scoring-nll", "Perplexity against speed: the probability of one word",
     "What a trained model costs: the probability of one word in its context.",
     "words/s, one word", "right", "nll.median"),
    ("scoring-top-k", "Perplexity against speed: the ten most probable words",
     "What a trained model costs: the ten most probable words of a context.",
     "words/s, ten most probable words", "right", "top_k.median"),
)  # fmt: skip


def _against(
    rows: Sequence[RowResult], id: str, title: str, caption: str, axis: str, better: Side, path: str
) -> Figure:
    """Draw test perplexity over a cost, and the front."""
    marks = []
    for i, row in enumerate(rows):
        x, test, sd = figure_at(path, row), row.test, row.perplexity["test"].sd
        if not x or not test:
            continue
        if sd:
            marks.append(Mark(i, "whisker", [(x, test - sd), (x, test + sd)]))
        figures = (row.name, number(x), number(test, 1), number(sd, 2))
        marks.append(Mark(i, "dot", [(x, test)], figures))
    return Figure(
        f"plot-{id}", title,
        f"{caption} Down and to the {better} is better. The dashed staircase is the "
        "Pareto front: no row on it is beaten in both. Rows that are beaten are grey.",
        Axis(f"{axis} (log scale)", "log"), Axis("test perplexity"),
        ("row", axis, "test perplexity", "standard deviation"), marks, front=better,
    )  # fmt: skip


def _steps(rows: Sequence[RowResult]) -> Figure:
    """Draw the seconds of each step from the text to the model."""
    marks, ends = [], {}
    for i, row in enumerate(rows):
        seconds = [getattr(row.steps, step) or 0.0 for step in _STEPS]
        for step, each, end in zip(_STEPS, seconds, accumulate(seconds), strict=True):
            if each and row.steps.total:
                figures = (row.name, step, number(each))
                corners = [(end - each, 0.0), (end, 1.0)]
                marks.append(Mark(i, f"segment step-{step}", corners, figures))
                ends[i] = f"{number(row.steps.total)} s"
    return Figure(
        "plot-costs", "What it costs from the text to the model",
        "Seconds, from the left: learning the vectors that a tree is built from (palest), building "
        "the tree, preparing the output layer, and training it (full colour).",
        Axis("seconds", "zero"), None, ("row", "step", "seconds"), marks, strip=12.0, ends=ends,
    )  # fmt: skip


# Code lengths


def _code_lengths(rows: Sequence[RowResult]) -> Figure | None:
    """Draw each tree's codes (bars) and running text (line) by length; None without any tree."""
    histograms = [(i, row.name, row.code_lengths) for i, row in enumerate(rows) if row.code_lengths]
    if not histograms:
        return None
    end = 0
    for *_, lengths in histograms:
        # (lengths, 2) codes and tokens of this length or a longer one
        beyond = np.array([(e.codes, e.tokens) for e in lengths], float)[::-1].cumsum(0)[::-1]
        last = int(np.flatnonzero((beyond >= _TAIL * beyond[0]).any(1))[-1])
        end = max(end, lengths[last].length)
    width = -(-end // _MOST_BARS)
    marks: list[Mark] = []
    for i, row, lengths in histograms:
        # (lengths, 3) lengths, codes and tokens; (bars,) number of each bar, its share of all
        table = np.array([(max(e.length, 1), e.codes, e.tokens) for e in lengths], float)
        shown = table[[entry.length <= end for entry in lengths]]
        bar = (shown[:, 0].astype(np.int64) - 1) // width
        filled = np.unique(bar)
        of_codes, of_tokens = (
            np.bincount(bar, shown[:, column])[filled] / (table[:, column].sum() or 1.0)
            for column in (1, 2)
        )
        tallest = max(of_codes.max(), of_tokens.max()) or 1.0
        curve = []
        for begin, share, of_text in zip(
            (filled * width + 1).tolist(), of_codes, of_tokens, strict=True
        ):
            name = str(begin) if width == 1 else f"{begin} to {begin + width - 1}"
            corners = [(begin - 0.42, 1 - float(share / tallest)), (begin + width - 0.58, 1.0)]
            marks.append(
                Mark(i, "segment codes", corners, (row, name, f"{share:.2%}", f"{of_text:.2%}"))
            )
            curve.append((begin + (width - 1) / 2, 1 - float(of_text / tallest)))
        marks.append(Mark(i, "line", curve))
    return Figure(
        "plot-lengths", "Code lengths",
        "Bars: the share of a tree\u2019s codes of each length. Line: the share of running text "
        "that has them. Each strip is scaled to its own maximum. Text far to the left of the codes "
        "means short codes for frequent words.",
        Axis("code length, decisions", "count"), None,
        ("tree", "decisions", "of codes", "of running text"), marks, strip=_HISTOGRAM,
    )  # fmt: skip


# Frequency bands


def _by_band(rows: Sequence[RowResult], bands: Sequence[Band], level: RowResult | None) -> Figure:
    """Draw the test perplexity of every row by band, or its ratio to that of one row."""
    total = sum(band.tokens for band in bands)
    shown, names = [], []
    for i, band in enumerate(bands):
        if not band.tokens:
            continue
        name, least = "OOV", band.least  # or 0, 1+, 10+, 1k+
        if least is not None and band.most is not None:
            size, letter = next((unit for unit in _UNITS if least >= unit[0]), (1, ""))
            name = f"{least // size}{letter}{'+' if band.most else ''}"
        share = 100 * band.tokens / total
        shown.append((i, band, name))
        names.append(f"{name}\n{share:.{'0f' if share >= 9.95 else '2g'}}%")
    x = Axis("training count of the word; share of the test tokens", names=names)
    columns = ("row", "training count", "words", "test tokens", "test perplexity")
    divisors = [1.0] * len(bands) if level is None else level.by_band
    marks: list[Mark] = []
    for i_row, row in enumerate(rows):
        dots = []
        for position, (i, band, name) in enumerate(shown):
            value, divisor = row.by_band[i], divisors[i]
            if value and divisor:
                ratio, counts = value / divisor, (f"{band.words:,}", f"{band.tokens:,}")
                texts = (row.name, name, *counts, number(value, 1))
                more = () if level is None else (f"{ratio:.3f}",)
                dots.append(Mark(i_row, "dot", [(float(position), ratio)], texts + more))
        line = Mark(i_row, "line", [dot.points[0] for dot in dots])
        marks += [line, *dots] if dots else []
    if level is None:
        return Figure(
            "plot-bands", "Perplexity by word frequency",
            "Test perplexity over the targets of each band alone, by how often the training text "
            "has the word (10+ is 10 to 99, and so on; OOV is out of vocabulary).",
            x, Axis("test perplexity (log scale)", "log"), columns, marks,
        )  # fmt: skip
    return Figure(
        "plot-bands-level", "Which words each row helps",
        f"The same as a multiple of {level.name}, the dashed line: below it a row predicts the "
        "words of a band better, above it worse.",
        x, Axis(f"test perplexity / that of {level.name}"), (*columns, f"/ {level.name}"), marks,
        level=1.0,
    )  # fmt: skip

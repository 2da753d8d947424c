"""Plots of the page: the figures of the rows that each shows."""

import math
from collections.abc import Sequence
from itertools import accumulate

from msgspec.structs import replace

from hstree.experiments.results import Band, Comparison, RowResult, eligible_rows, figure_at
from hstree.report.figure import Axis, Figure, Mark, Side
from hstree.report.formats import number

#: Validation perplexities above this multiple of the best are left out above the plot.
_HIGHEST = 3.0
#: Bands of words that have less than this share of the tokens do not widen their plot.
_RARE = 0.02
#: Units of training counts on an axis.
_UNITS = ((10**6, "M"), (10**3, "k"))
#: Steps from the text to a model.
_STEPS = ("vectors", "tree", "preparation", "training")


def plots_of(comparison: Comparison) -> list[Figure]:
    """Return the plots that the rows have figures for, the most telling first."""
    rows = comparison.rows
    seconds, *speeds = (_against(rows, *cost) for cost in _COSTS)
    figures = [
        *(seconds, _learning(rows), _by_band(rows, comparison.bands)),
        *(_steps(rows), *speeds),
    ]
    drawn = []
    for figure in filter(None, figures):
        # Zeros of damaged results have no place on a log axis.
        logs = [i for i, axis in enumerate((figure.x, figure.y)) if axis and axis.scale == "log"]
        marks = [mark for mark in figure.marks if all(p[i] > 0 for p in mark.points for i in logs)]
        drawn += [replace(figure, marks=marks)] if marks else []
    return drawn


#: Of each plot of a cost its id, title and caption, the title of its axis, the side where it is
#: better, and the path of its figure in a row.
_COSTS: tuple[tuple[str, str, str, str, Side, str], ...] = (
    ("seconds", "Perplexity against time",
     "From the text to the trained model, with the vectors and the tree that it needs.",
     "seconds from the text", "left", "steps.total"),
    ("speed", "Perplexity against training speed", "Training alone.",
     "training speed, tokens/s", "right", "training.median"),
    ("one-word", "Perplexity against the speed of one word",
     "What a trained model costs: the probability of one word in its context.",
     "words/s, one word", "right", "nll.median"),
    ("top-10", "Perplexity against the speed of the top 10",
     "What a trained model costs: the ten most probable words of a context.",
     "words/s, ten most probable words", "right", "top_k.median"),
)  # fmt: skip


def _against(
    rows: Sequence[RowResult], id: str, title: str, caption: str, axis: str, better: Side, path: str
) -> Figure:
    """Draw test perplexity over a cost, and the front."""
    marks = []
    eligible = {row.name for row in eligible_rows(rows)}
    for i, row in enumerate(rows):
        x, test, sd = figure_at(path, row), row.perplexity["test"].mean, row.perplexity["test"].sd
        if not x or not test:
            continue
        if sd:
            marks.append(Mark(i, "whisker", [(x, test - sd), (x, test + sd)]))
        kind = "dot" if row.name in eligible else "aside"
        marks.append(Mark(i, kind, [(x, test)], [row.name, x, test, sd]))
    kinds = {mark.kind for mark in marks}
    aside = " Rows that cannot be recommended take no part." if "aside" in kinds else ""
    sampled = [row.name for row in rows if row.sample is not None]
    if 0 < len(sampled) < len(rows):
        aside += f" Scored on a sample of the tokens: {', '.join(sampled)}."
    bars = " Bars: one standard deviation over seeds." if "whisker" in kinds else ""
    return Figure(
        f"plot-{id}", title,
        f"{caption} Down and to the {better} is better: the dashed line is the frontier, and rows "
        f"that are beaten in both are grey.{aside}{bars}",
        Axis(f"{axis} (log scale)", "log"), Axis("test perplexity"),
        ["row", axis, "test perplexity", "standard deviation"], marks, front=better,
    )  # fmt: skip


def _learning(rows: Sequence[RowResult]) -> Figure:
    """Draw the validation perplexity of every job after each epoch, over the time."""
    marks: list[Mark] = []
    others: list[Mark] = []  # of rows that are not one training
    lowest = []
    for i, row in enumerate(rows):
        steps, total = row.steps, row.steps.total
        if not total or row.valid == math.inf:
            continue
        lowest.append(row.valid)
        if row.models > 1 or row.kind == "ngram":
            figures = [row.name, None, None, total, row.valid]
            others.append(Mark(i, "dot", [(total, row.valid)], figures))
            continue
        # Epochs take the time of the table, so that a curve ends at the seconds there.
        before = (steps.vectors or 0.0) + (steps.tree or 0.0) + (steps.preparation or 0.0)
        each = (steps.training or 0.0) / (row.trained_epochs or 1.0)
        for job in row.jobs:
            curve = []
            done = accumulate(epoch.share for epoch in job.epochs)
            for epoch, share in zip(job.epochs, done, strict=True):
                if epoch.valid is not None:
                    at = before + share * each
                    figures = [row.name, job.seed, epoch.epoch, at, epoch.valid]
                    curve.append(Mark(i, "dot", [(at, epoch.valid)], figures))
            line = Mark(i, "line", [dot.points[0] for dot in curve])
            marks += [line, *curve] if curve else []
    highest = max(_HIGHEST * min(lowest, default=1.0), *lowest, 1.0)
    return Figure(
        "plot-learning", "Perplexity while training",
        "After each epoch, over the seconds from the text, without validation: at a given time, "
        "the lowest line is the best row.",
        Axis("seconds from the text (log scale)", "log"),
        Axis("validation perplexity (log scale)", "log", within=(0.0, highest)),
        ["row", "seed", "epoch", "seconds from the text", "validation perplexity"],
        marks + others if marks else [],
    )  # fmt: skip


def _steps(rows: Sequence[RowResult]) -> Figure:
    """Draw the seconds of each step from the text to the model."""
    marks, ends = [], {}
    for i, row in enumerate(rows):
        seconds = [getattr(row.steps, step) or 0.0 for step in _STEPS]
        for step, each, end in zip(_STEPS, seconds, accumulate(seconds), strict=True):
            if each and row.steps.total:
                corners = [(end - each, 0.0), (end, 1.0)]
                marks.append(Mark(i, f"segment step-{step}", corners, [row.name, step, each]))
                ends[i] = f"{number(row.steps.total)} s"
    return Figure(
        "plot-costs", "Seconds of each step",
        "From the left: learning the vectors that a tree is built from (palest), building "
        "the tree, preparing the output layer, and training it (full colour).",
        Axis("seconds", "zero"), None, ["row", "step", "seconds"], marks, ends=ends,
    )  # fmt: skip


def _by_band(rows: Sequence[RowResult], bands: Sequence[Band]) -> Figure | None:
    """Draw the test perplexity of every row by band, as a ratio to that of flat, or the best."""
    scored = [row for row in rows if any(row.by_band)]
    if not scored:
        return None
    level = min(scored, key=lambda row: (not row.is_flat, row.valid))
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
    marks: list[Mark] = []
    common = [1.0]
    for i_row, row in enumerate(rows):
        dots = []
        for position, (i, band, name) in enumerate(shown):
            value, divisor = row.by_band[i], level.by_band[i]
            if value and divisor:
                ratio = value / divisor
                common += [ratio] if band.tokens >= _RARE * total else []
                figures = [row.name, name, band.words, band.tokens, value, ratio]
                dots.append(Mark(i_row, "dot", [(float(position), ratio)], figures))
        line = Mark(i_row, "line", [dot.points[0] for dot in dots])
        marks += [line, *dots] if dots else []
    return Figure(
        "plot-bands", "Which words each row helps",
        f"Test perplexity as a multiple of {level.name}\u2019s, the dashed line, by how often the "
        "training text has the word (10+ is 10 to 99, and so on): below it a row predicts better. "
        "What is outside the picture is in the CSV.",
        Axis("training count of the word; share of the test tokens", names=names),
        Axis(f"test perplexity / {level.name}\u2019s (log scale)", "log",
             within=(min(common), max(common))),
        ["row", "training count", "words", "test tokens", "test perplexity", f"/ {level.name}"],
        marks, level=1.0,
    )  # fmt: skip

"""Plots of the page, made of the results of the candidates."""

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from hstree.experiments.recommendation import eligible_candidates
from hstree.experiments.results import (
    Band,
    CandidateResult,
    Comparison,
    value_at,
)
from hstree.report.formats import number
from hstree.report.plot import Axis, Mark, Plot, Side

#: Validation perplexities above this multiple of the best are not visible.
_HIGHEST = 3.0
#: Bands of words with less than this fraction of the tokens do not widen their plot.
_RARE = 0.02
#: Units of training counts on an axis.
_UNITS = ((10**6, "M"), (10**3, "k"))
#: Steps from the text to a model.
_STEPS = ("vectors", "tree", "preparation", "training")


def make_plots(comparison: Comparison) -> list[Plot]:
    """Return the plots of the results that there are, the most important first."""
    candidates = comparison.candidates
    seconds, *speeds = (_plot_cost(candidates, cost) for cost in _COSTS)
    plots = [
        seconds,
        _plot_learning(candidates),
        _plot_bands(candidates, comparison.bands),
        _plot_steps(candidates),
        *speeds,
    ]
    return [plot for plot in plots if plot.marks]


class _Cost(NamedTuple):
    """A cost that perplexity is plotted against."""

    id: str
    title: str
    caption: str
    axis: str  #: title of the horizontal axis
    better: Side
    path: str  #: attributes that lead to it from a candidate


_COSTS = (
    _Cost(
        "plot-seconds",
        "Perplexity against time",
        "Time from the text to the trained model, including vectors and tree.",
        "seconds from the text",
        "left",
        "timings.total",
    ),
    _Cost(
        "plot-speed",
        "Perplexity against training speed",
        "Speed of training alone.",
        "training speed, tokens/s",
        "right",
        "training.median",
    ),
    _Cost(
        "plot-one-word",
        "Perplexity against the speed of one word",
        "Speed of a trained model: the probability of one word in its context.",
        "words/s, one word",
        "right",
        "nll.median",
    ),
    _Cost(
        "plot-top-10",
        "Perplexity against the speed of the top 10",
        "Speed of a trained model: the ten most probable words of a context.",
        "words/s, ten most probable words",
        "right",
        "top_k.median",
    ),
)


def _plot_cost(candidates: Sequence[CandidateResult], cost: _Cost) -> Plot:
    """Plot test perplexity over a cost, with the Pareto front."""
    eligible = {candidate.name for candidate in eligible_candidates(candidates)}
    marks = []
    for i, candidate in enumerate(candidates):
        x = value_at(cost.path, candidate)
        test = candidate.perplexity["test"].mean
        sd = candidate.perplexity["test"].sd
        if not x or not test:
            continue
        if sd:
            marks.append(Mark(i, "whisker", [(x, test - sd), (x, test + sd)]))
        kind = "dot" if candidate.name in eligible else "aside"
        marks.append(Mark(i, kind, [(x, test)], [candidate.name, x, test, sd]))

    kinds = {mark.kind for mark in marks}
    sentences = [
        cost.caption,
        f"Down and to the {cost.better} is better. The dashed line is the Pareto front; candidates "
        "that are not on it are grey.",
    ]
    if "aside" in kinds:
        sentences.append("Candidates that cannot be recommended are not part of it.")
    sampled = [candidate.name for candidate in candidates if candidate.sample is not None]
    if 0 < len(sampled) < len(candidates):
        sentences.append(f"Scored on a sample of the tokens: {', '.join(sampled)}.")
    if "whisker" in kinds:
        sentences.append("Bars: one standard deviation over seeds.")
    return Plot(
        cost.id,
        cost.title,
        " ".join(sentences),
        Axis(f"{cost.axis} (log scale)", "log"),
        Axis("test perplexity"),
        ["candidate", cost.axis, "test perplexity", "standard deviation"],
        marks,
        front=cost.better,
    )


def _plot_learning(candidates: Sequence[CandidateResult]) -> Plot:
    """Plot the validation perplexity of every job after each epoch, over time."""
    curves: list[Mark] = []
    points: list[Mark] = []  # candidates without a training curve
    best = []
    for i, candidate in enumerate(candidates):
        total = candidate.timings.total
        if not total or candidate.valid == math.inf:
            continue
        best.append(candidate.valid)
        if candidate.models > 1 or not candidate.is_trained:
            values = [candidate.name, None, None, total, candidate.valid]
            points.append(Mark(i, "dot", [(total, candidate.valid)], values))
        else:
            curves += _learning_curves(i, candidate)
    highest = max(_HIGHEST * min(best, default=1.0), *best, 1.0)
    return Plot(
        "plot-learning",
        "Perplexity during training",
        "After each epoch, over the seconds from the text, without validation. At a given time, "
        "the lowest line is the best candidate.",
        Axis("seconds from the text (log scale)", "log"),
        Axis("validation perplexity (log scale)", "log", within=(0.0, highest)),
        ["candidate", "seed", "epoch", "seconds from the text", "validation perplexity"],
        curves + points if curves else [],
    )


def _learning_curves(number: int, candidate: CandidateResult) -> list[Mark]:
    """Return the marks of a candidate's jobs: a line each, with a dot for every epoch."""
    # Epochs take the training time of the table, so that a curve ends at the seconds there.
    steps = candidate.timings
    start = (steps.vectors or 0.0) + (steps.tree or 0.0) + (steps.preparation or 0.0)
    epoch_seconds = (steps.training or 0.0) / (candidate.trained_epochs or 1.0)
    marks = []
    for job in candidate.jobs:
        dots = []
        epochs_done = accumulate(epoch.share for epoch in job.epochs)
        for epoch, done in zip(job.epochs, epochs_done, strict=True):
            seconds = start + done * epoch_seconds
            # both axes are logarithmic; damaged results may have zeros
            if seconds > 0 and epoch.valid is not None and epoch.valid > 0:
                values = [candidate.name, job.seed, epoch.epoch, seconds, epoch.valid]
                dots.append(Mark(number, "dot", [(seconds, epoch.valid)], values))
        if dots:
            marks += [Mark(number, "line", [dot.points[0] for dot in dots]), *dots]
    return marks


def _plot_steps(candidates: Sequence[CandidateResult]) -> Plot:
    """Plot the seconds of each step from the text to the model."""
    marks = []
    ends = {}
    for i, candidate in enumerate(candidates):
        seconds = [getattr(candidate.timings, step) or 0.0 for step in _STEPS]
        for step, duration, end in zip(_STEPS, seconds, accumulate(seconds), strict=True):
            if duration and candidate.timings.total:
                corners = [(end - duration, 0.0), (end, 1.0)]
                values = [candidate.name, step, duration]
                marks.append(Mark(i, f"segment step-{step}", corners, values))
                ends[i] = f"{number(candidate.timings.total)} s"
    return Plot(
        "plot-costs",
        "Seconds of each step",
        "From left to right: training the vectors that a tree is built from (palest), building "
        "the tree, preparing the output layer, and training it (full colour).",
        Axis("seconds", "zero"),
        None,
        ["candidate", "step", "seconds"],
        marks,
        ends=ends,
    )


def _plot_bands(candidates: Sequence[CandidateResult], bands: Sequence[Band]) -> Plot:
    """Plot the test perplexities by band, as ratios to the flat softmax or to the best."""
    scored = [candidate for candidate in candidates if any(candidate.by_band)]
    baseline = min(
        scored, key=lambda candidate: (not candidate.is_flat, candidate.valid), default=None
    )
    baseline_name = "" if baseline is None else baseline.name
    n_tokens = sum(band.tokens for band in bands)
    shown = [(i, band) for i, band in enumerate(bands) if band.tokens]

    marks: list[Mark] = []
    common_ratios = [1.0]  # at bands that are not rare
    for index, candidate in enumerate(candidates):
        dots = []
        for position, (i, band) in enumerate(shown):
            value = candidate.by_band[i] if candidate.by_band else None
            divisor = None if baseline is None else baseline.by_band[i]
            if not value or not divisor:
                continue
            ratio = value / divisor
            if band.tokens >= _RARE * n_tokens:
                common_ratios.append(ratio)
            values = [candidate.name, _band_name(band), band.words, band.tokens, value, ratio]
            dots.append(Mark(index, "dot", [(float(position), ratio)], values))
        if dots:
            marks += [Mark(index, "line", [dot.points[0] for dot in dots]), *dots]

    names = []
    for _, band in shown:
        percent = 100 * band.tokens / n_tokens
        names.append(f"{_band_name(band)}\n{percent:.{'0f' if percent >= 9.95 else '2g'}}%")
    return Plot(
        "plot-bands",
        "Perplexity by word frequency",
        f"Test perplexity as a multiple of that of {baseline_name} (dashed line), by the count of "
        "the word in the training text; 10+ is 10 to 99, and so on. Below the line, a candidate "
        "predicts better. Values outside the plot are in the CSV.",
        Axis("training count of the word; share of the test tokens", names=names),
        Axis(
            f"test perplexity / {baseline_name} (log scale)",
            "log",
            within=(min(common_ratios), max(common_ratios)),
        ),
        [
            "candidate",
            "training count",
            "words",
            "test tokens",
            "test perplexity",
            f"/ {baseline_name}",
        ],
        marks,
        level=1.0,
    )


def _band_name(band: Band) -> str:
    """Return the name of a band: 0, 1+, 10+, 1k+, 1M+ or OOV."""
    if band.least is None or band.most is None:
        return "OOV"
    size, letter = next((unit for unit in _UNITS if band.least >= unit[0]), (1, ""))
    return f"{band.least // size}{letter}{'+' if band.most else ''}"

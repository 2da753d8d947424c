"""Plots of the page, made from the results of the candidates."""

import math
from collections.abc import Sequence
from itertools import accumulate

from hstree.experiments.recommendation import eligible_candidates
from hstree.experiments.results import Band, CandidateResult, Comparison
from hstree.report.formats import number
from hstree.report.plot import Axis, Mark, Plot, Point

#: Validation perplexities above this multiple of the best one are not visible.
_HIGHEST = 3.0
#: Ratio by which the flat softmax and n-gram models may always extend an axis.
_LONGEST = 2.0
#: Bands with less than this fraction of the tokens do not extend the axis of their plot.
_RARE = 0.02
#: Units of training counts on an axis.
_UNITS = ((10**6, "M"), (10**3, "k"))


def make_plots(comparison: Comparison) -> list[Plot]:
    """Return the plots for which there are results, the most important first."""
    candidates = comparison.candidates
    plots = [
        _plot_seconds(candidates),
        _plot_learning(candidates),
        _plot_bands(candidates, comparison.bands),
    ]
    return [plot for plot in plots if plot.marks]


def _visible_range(values: Sequence[tuple[CandidateResult, float]]) -> Point:
    """Return the range of a logarithmic axis for positive values of candidates.

    The values of all other candidates define a range. The flat softmax and n-gram models extend an
    end of it only by at most the length of that range.
    """
    everything = [value for _, value in values] or [1.0]
    others = [
        value for candidate, value in values if candidate.is_trained and not candidate.is_flat
    ]
    others = others or everything
    low = min(others)
    high = max(others)
    longest = max(high / low, _LONGEST)
    first = min(everything)
    last = max(everything)
    return first if first * longest >= low else low, last if last <= high * longest else high


def _clip(value: float, visible: Point) -> float:
    return min(max(value, visible[0]), visible[1])


def _edge_note(x: float, visible_x: Point, y: float, visible_y: Point) -> str:
    """Return the coordinates of a point outside the visible range: "→ 1,681 s"."""
    parts = []
    for value, (low, high), arrows, unit in (
        (x, visible_x, "\N{LEFTWARDS ARROW}\N{RIGHTWARDS ARROW}", " s"),
        (y, visible_y, "\N{DOWNWARDS ARROW}\N{UPWARDS ARROW}", ""),
    ):
        if not low <= value <= high:
            parts.append(f"{arrows[value > high]} {number(value, most=0)}{unit}")
    return " ".join(parts)


def _plot_seconds(candidates: Sequence[CandidateResult]) -> Plot:
    """Plot test perplexity against total time, with the Pareto front."""
    eligible = {candidate.name for candidate in eligible_candidates(candidates)}
    points: dict[int, Point] = {}
    for i, candidate in enumerate(candidates):
        seconds = candidate.timings.total
        test = candidate.perplexity["test"].mean
        if seconds and test:
            points[i] = (seconds, test)
    visible_x = _visible_range([(candidates[i], x) for i, (x, _) in points.items()])
    visible_y = _visible_range([(candidates[i], y) for i, (_, y) in points.items()])

    marks = []
    notes = {}
    for i, (seconds, test) in points.items():
        candidate = candidates[i]
        sd = candidate.perplexity["test"].sd
        if note := _edge_note(seconds, visible_x, test, visible_y):
            notes[i] = note
        elif sd:
            marks.append(Mark(i, "whisker", [(seconds, test - sd), (seconds, test + sd)]))
        kind = "dot" if candidate.name in eligible else "aside"
        point = (_clip(seconds, visible_x), _clip(test, visible_y))
        marks.append(Mark(i, kind, [point], [candidate.name, seconds, test, sd]))

    kinds = {mark.kind for mark in marks}
    sentences = [
        "Lower and further left is better. The dashed line is the Pareto front. Candidates that "
        "are not on it are grey."
    ]
    if "aside" in kinds:
        sentences.append("Candidates that cannot be recommended are excluded from it.")
    if notes:
        sentences.append("Arrows mark values outside the plot.")
    sampled = [candidate.name for candidate in candidates if candidate.sample is not None]
    if 0 < len(sampled) < len(candidates):
        sentences.append(f"Scored on a sample of the tokens: {', '.join(sampled)}.")
    if "whisker" in kinds:
        sentences.append("Bars show one standard deviation over seeds.")
    return Plot(
        "plot-seconds",
        "Perplexity against time",
        " ".join(sentences),
        Axis("total time in seconds (log scale)", "log"),
        Axis("test perplexity"),
        ["candidate", "total seconds", "test perplexity", "standard deviation"],
        marks,
        front=True,
        notes=notes,
    )


def _plot_learning(candidates: Sequence[CandidateResult]) -> Plot:
    """Plot the validation perplexity of every job after each epoch against time."""
    curves: list[Mark] = []
    points: list[Mark] = []  # candidates without a training curve
    for i, candidate in enumerate(candidates):
        total = candidate.timings.total
        if not total or candidate.valid == math.inf:
            continue
        if candidate.models > 1 or not candidate.is_trained:
            values = [candidate.name, None, None, total, candidate.valid]
            points.append(Mark(i, "dot", [(total, candidate.valid)], values))
        else:
            curves += _learning_curves(i, candidate)

    marks = curves + points if curves else []
    dots = [(mark.candidate, mark.points[0]) for mark in marks if mark.kind == "dot"]
    visible_x = _visible_range([(candidates[i], x) for i, (x, _) in dots])
    ends = dict(dots)  # the last dot of each candidate
    low, high = _visible_range([(candidates[i], candidates[i].valid) for i in ends])
    visible_y = (0.0, max(_HIGHEST * low, high))
    notes = {i: _edge_note(x, visible_x, y, visible_y) for i, (x, y) in ends.items()}
    return Plot(
        "plot-learning",
        "Perplexity during training",
        "Validation perplexity after each epoch against total time, without the time for "
        "validation. At a given time, the lowest line is the best candidate. If a line still falls "
        "at its end, more training may improve the candidate.",
        Axis("total time in seconds (log scale)", "log", within=visible_x),
        Axis("validation perplexity (log scale)", "log", within=visible_y),
        ["candidate", "seed", "epoch", "total seconds", "validation perplexity"],
        marks,
        notes={i: note for i, note in notes.items() if note},
    )


def _learning_curves(number: int, candidate: CandidateResult) -> list[Mark]:
    """Return the marks of a candidate: one line per job, with one dot per epoch."""
    # Epochs divide the training time in the table, so that each curve ends at the total time
    steps = candidate.timings
    start = (steps.vectors or 0.0) + (steps.tree or 0.0) + (steps.preparation or 0.0)
    epoch_seconds = (steps.training or 0.0) / (candidate.trained_epochs or 1.0)
    marks = []
    for job in candidate.jobs:
        dots = []
        epochs_done = accumulate(epoch.share for epoch in job.epochs)
        for epoch, done in zip(job.epochs, epochs_done, strict=True):
            seconds = start + done * epoch_seconds
            # Both axes are logarithmic, and damaged results may contain zeros
            if seconds > 0 and epoch.valid is not None and epoch.valid > 0:
                values = [candidate.name, job.seed, epoch.epoch, seconds, epoch.valid]
                dots.append(Mark(number, "dot", [(seconds, epoch.valid)], values))
        if dots:
            marks += [Mark(number, "line", [dot.points[0] for dot in dots]), *dots]
    return marks


def _plot_bands(candidates: Sequence[CandidateResult], bands: Sequence[Band]) -> Plot:
    """Plot the test perplexity of each band relative to the flat softmax or the best candidate."""
    scored = [candidate for candidate in candidates if any(candidate.by_band)]
    baseline = min(
        scored, key=lambda candidate: (not candidate.is_flat, candidate.valid), default=None
    )
    baseline_name = "" if baseline is None else baseline.name
    n_tokens = sum(band.tokens for band in bands)
    shown = [(i, band) for i, band in enumerate(bands) if band.tokens]

    marks: list[Mark] = []
    common_ratios = [1.0]  # in bands that are not rare
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
            percent = 100 * (ratio - 1)
            values = [candidate.name, _band_name(band), band.words, band.tokens, value, percent]
            dots.append(Mark(index, "dot", [(float(position), ratio)], values))
        if dots:
            marks += [Mark(index, "line", [dot.points[0] for dot in dots]), *dots]

    caption = (
        f"Test perplexity relative to {baseline_name} (dashed line), by the count of the word in "
        "the training text: 10+ means 10 to 99, and so on. Below the line, a candidate is better. "
        "Percentages are fractions of the test tokens. Values outside the plot are in the CSV."
    )
    names = []
    for _, band in shown:
        if band.least is None:
            caption += (
                " Unknown words are not in the vocabulary: the model reads and predicts <unk>, and "
                "their perplexity is that of <unk>."
            )
        percent = 100 * band.tokens / n_tokens
        names.append(f"{_band_name(band)}\n{percent:.{'0f' if percent >= 9.95 else '2g'}}%")
    return Plot(
        "plot-bands",
        "Perplexity by word frequency",
        caption,
        Axis("training count of the word, % of test tokens", names=names),
        Axis(
            f"test perplexity relative to {baseline_name} (log scale)",
            "log",
            within=(min(common_ratios), max(common_ratios)),
            is_ratio=True,
        ),
        [
            "candidate",
            "training count",
            "words",
            "test tokens",
            "test perplexity",
            f"% difference from {baseline_name}",
        ],
        marks,
        level=1.0,
    )


def _band_name(band: Band) -> str:
    """Return the name of a band: 0, 1+, 10+, 1k+, 1M+ or unknown."""
    if band.least is None or band.most is None:
        return "unknown"
    size, letter = next((unit for unit in _UNITS if band.least >= unit[0]), (1, ""))
    return f"{band.least // size}{letter}{'+' if band.most else ''}"

"""Plots of the page: the figures of the candidates that each shows."""

import math
from collections.abc import Sequence
from itertools import accumulate

from msgspec.structs import replace

from hstree.experiments.results import (
    Band,
    CandidateResult,
    Comparison,
    eligible_candidates,
    figure_at,
)
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
    """Return the plots that the candidates have figures for, the most telling first."""
    candidates = comparison.candidates
    seconds, *speeds = (_against(candidates, *cost) for cost in _COSTS)
    figures = [
        *(seconds, _learning(candidates), _by_band(candidates, comparison.bands)),
        *(_steps(candidates), *speeds),
    ]
    drawn = []
    for figure in filter(None, figures):
        # Zeros of damaged results have no place on a log axis.
        logs = [i for i, axis in enumerate((figure.x, figure.y)) if axis and axis.scale == "log"]
        marks = [mark for mark in figure.marks if all(p[i] > 0 for p in mark.points for i in logs)]
        drawn += [replace(figure, marks=marks)] if marks else []
    return drawn


#: Of each plot of a cost its id, title and caption, the title of its axis, the side where it is
#: better, and the path of its figure in a candidate.
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
    candidates: Sequence[CandidateResult],
    id: str,
    title: str,
    caption: str,
    axis: str,
    better: Side,
    path: str,
) -> Figure:
    """Draw test perplexity over a cost, and the front."""
    marks = []
    eligible = {candidate.name for candidate in eligible_candidates(candidates)}
    for i, candidate in enumerate(candidates):
        x, test, sd = (
            figure_at(path, candidate),
            candidate.perplexity["test"].mean,
            candidate.perplexity["test"].sd,
        )
        if not x or not test:
            continue
        if sd:
            marks.append(Mark(i, "whisker", [(x, test - sd), (x, test + sd)]))
        kind = "dot" if candidate.name in eligible else "aside"
        marks.append(Mark(i, kind, [(x, test)], [candidate.name, x, test, sd]))
    kinds = {mark.kind for mark in marks}
    aside = " Candidates that cannot be recommended take no part." if "aside" in kinds else ""
    sampled = [candidate.name for candidate in candidates if candidate.sample is not None]
    if 0 < len(sampled) < len(candidates):
        aside += f" Scored on a sample of the tokens: {', '.join(sampled)}."
    bars = " Bars: one standard deviation over seeds." if "whisker" in kinds else ""
    return Figure(
        f"plot-{id}", title,
        f"{caption} Down and to the {better} is better: the dashed line is the frontier, and "
        f"candidates that are beaten in both are grey.{aside}{bars}",
        Axis(f"{axis} (log scale)", "log"), Axis("test perplexity"),
        ["candidate", axis, "test perplexity", "standard deviation"], marks, front=better,
    )  # fmt: skip


def _learning(candidates: Sequence[CandidateResult]) -> Figure:
    """Draw the validation perplexity of every job after each epoch, over the time."""
    marks: list[Mark] = []
    others: list[Mark] = []  # of candidates that are not one training
    lowest = []
    for i, candidate in enumerate(candidates):
        steps, total = candidate.steps, candidate.steps.total
        if not total or candidate.valid == math.inf:
            continue
        lowest.append(candidate.valid)
        if candidate.models > 1 or candidate.kind == "ngram":
            figures = [candidate.name, None, None, total, candidate.valid]
            others.append(Mark(i, "dot", [(total, candidate.valid)], figures))
            continue
        # Epochs take the time of the table, so that a curve ends at the seconds there.
        before = (steps.vectors or 0.0) + (steps.tree or 0.0) + (steps.preparation or 0.0)
        each = (steps.training or 0.0) / (candidate.trained_epochs or 1.0)
        for job in candidate.jobs:
            curve = []
            done = accumulate(epoch.share for epoch in job.epochs)
            for epoch, share in zip(job.epochs, done, strict=True):
                if epoch.valid is not None:
                    at = before + share * each
                    figures = [candidate.name, job.seed, epoch.epoch, at, epoch.valid]
                    curve.append(Mark(i, "dot", [(at, epoch.valid)], figures))
            line = Mark(i, "line", [dot.points[0] for dot in curve])
            marks += [line, *curve] if curve else []
    highest = max(_HIGHEST * min(lowest, default=1.0), *lowest, 1.0)
    return Figure(
        "plot-learning", "Perplexity while training",
        "After each epoch, over the seconds from the text, without validation: at a given time, "
        "the lowest line is the best candidate.",
        Axis("seconds from the text (log scale)", "log"),
        Axis("validation perplexity (log scale)", "log", within=(0.0, highest)),
        ["candidate", "seed", "epoch", "seconds from the text", "validation perplexity"],
        marks + others if marks else [],
    )  # fmt: skip


def _steps(candidates: Sequence[CandidateResult]) -> Figure:
    """Draw the seconds of each step from the text to the model."""
    marks, ends = [], {}
    for i, candidate in enumerate(candidates):
        seconds = [getattr(candidate.steps, step) or 0.0 for step in _STEPS]
        for step, each, end in zip(_STEPS, seconds, accumulate(seconds), strict=True):
            if each and candidate.steps.total:
                corners = [(end - each, 0.0), (end, 1.0)]
                marks.append(Mark(i, f"segment step-{step}", corners, [candidate.name, step, each]))
                ends[i] = f"{number(candidate.steps.total)} s"
    return Figure(
        "plot-costs", "Seconds of each step",
        "From the left: learning the vectors that a tree is built from (palest), building "
        "the tree, preparing the output layer, and training it (full colour).",
        Axis("seconds", "zero"), None, ["candidate", "step", "seconds"], marks, ends=ends,
    )  # fmt: skip


def _by_band(candidates: Sequence[CandidateResult], bands: Sequence[Band]) -> Figure | None:
    """Draw the test perplexities by band, as ratios to those of flat, or of the best."""
    scored = [candidate for candidate in candidates if any(candidate.by_band)]
    if not scored:
        return None
    level = min(scored, key=lambda candidate: (not candidate.is_flat, candidate.valid))
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
    for i_candidate, candidate in enumerate(candidates):
        dots = []
        for position, (i, band, name) in enumerate(shown):
            value, divisor = candidate.by_band[i], level.by_band[i]
            if value and divisor:
                ratio = value / divisor
                common += [ratio] if band.tokens >= _RARE * total else []
                figures = [candidate.name, name, band.words, band.tokens, value, ratio]
                dots.append(Mark(i_candidate, "dot", [(float(position), ratio)], figures))
        line = Mark(i_candidate, "line", [dot.points[0] for dot in dots])
        marks += [line, *dots] if dots else []
    return Figure(
        "plot-bands", "Which words each candidate helps",
        f"Test perplexity as a multiple of {level.name}\u2019s, the dashed line, by how often the "
        "training text has the word (10+ is 10 to 99, and so on): below it a candidate predicts "
        "better. What is outside the picture is in the CSV.",
        Axis("training count of the word; share of the test tokens", names=names),
        Axis(f"test perplexity / {level.name}\u2019s (log scale)", "log",
             within=(min(common), max(common))),
        ["candidate", "training count", "words", "test tokens", "test perplexity",
         f"/ {level.name}"], marks, level=1.0,
    )  # fmt: skip

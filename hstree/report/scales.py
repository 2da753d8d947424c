"""Scales of the figures: the range of an axis, its ticks, and labels that do not overlap."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

#: ``log`` is in powers of ten, ``count`` has whole numbers from 0 on, ``zero`` begins at 0.
Scale = Literal["linear", "log", "count", "zero"]

#: Estimated width of a character and height of a line in the figures' font, in their pixels.
CHARACTER, LINE = 6.6, 15.0
#: Space between the labels of two ticks, and the most ticks of an axis.
_APART, _MOST_TICKS = 8.0, 7
#: Share of the range that is added at both ends, and what stands for the range of one value.
_MARGIN, _ALONE = 0.06, 0.05


def extent(low: float, high: float, scale: Scale) -> tuple[float, float]:
    """Return the range of an axis, in its units, that has room for values of this range."""
    if scale in ("count", "zero"):
        return 0.0, max(high, 1.0) if scale == "count" else (high or 1.0) * (1 + _MARGIN)
    span = high - low or (_ALONE if scale == "log" else abs(high) * _ALONE or 1.0)
    return low - _MARGIN * span, high + _MARGIN * span


def ticks(
    low: float, high: float, scale: Scale, length: float, *, vertical: bool = False
) -> list[float]:
    """Return two or more ascending values of ticks, whose labels have room beside another.

    `low` and `high` are in the units of the axis, `length` in pixels; labels of a `vertical` axis
    are one above the other. Where no choice has room, the ends of the coarsest are left.
    """
    choices: list[list[float]] = []  # from the coarsest
    if scale == "log" and high - low >= 1:
        decades = range(math.floor(low), math.floor(high) + 1)
        for mantissas, stride in (((1,), 3), ((1,), 2), ((1,), 1), ((1, 3), 1), ((1, 2, 5), 1)):
            values = [m * 10.0**decade for decade in decades for m in mantissas]
            choices.append([v for v in values if low <= math.log10(v) <= high][::stride])
    else:
        first, last = (10**low, 10**high) if scale == "log" else (low, high)
        exponent = math.floor(math.log10(last - first))
        steps = [m * 10.0**power for power in (exponent, exponent - 1) for m in (5, 2, 1)]
        for step in steps:
            begin, end = math.ceil(first / step - 1e-9), math.floor(last / step + 1e-9)
            if scale != "count" or step >= 1:
                choices.append([float(f"{i * step:.10g}") for i in range(begin, end + 1)])
    best: list[float] = []
    for candidate in choices:
        if len(candidate) < 2:
            continue
        best = best or [candidate[0], candidate[-1]]
        at = [math.log10(value) if scale == "log" else value for value in candidate]
        pixels = [(unit - low) / (high - low) * length for unit in at]
        widths = [LINE if vertical else CHARACTER * len(tick_label(v)) for v in candidate]
        has_room = all(
            after - before >= (one + other) / 2 + (not vertical) * _APART
            for (before, after), (one, other) in zip(
                pairwise(pixels), pairwise(widths), strict=True
            )
        )
        if has_room and len(candidate) <= _MOST_TICKS:
            best = candidate
    return best


def tick_label(value: float) -> str:
    """Format the value of a tick: 0.5, 2,000, 50k, 1.5M."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.6g}M"
    return f"{value / 1e3:,.6g}k" if abs(value) >= 1e4 else f"{value:,.6g}"


def spread(pixels: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move pixels apart in their order until each is `gap` from the next, between two bounds.

    Where all do not fit, the first ones pass the lower bound.
    """
    order = sorted(range(len(pixels)), key=pixels.__getitem__)
    moved = list(pixels)
    least, most = low, high
    for i in order:
        moved[i] = max(moved[i], least)
        least = moved[i] + gap
    for i in reversed(order):
        moved[i] = min(moved[i], most)
        most = moved[i] - gap
    return moved

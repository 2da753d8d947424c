"""Scales of the figures: the range of an axis, its ticks, and labels that do not overlap."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

#: ``log`` is in powers of ten, ``zero`` begins at 0.
Scale = Literal["linear", "log", "zero"]

#: Estimated width of a character and height of a line in the figures' font, in their pixels.
CHARACTER, LINE = 6.6, 15.0
#: Space between the labels of two ticks, and the most ticks of an axis.
_APART, _MOST_TICKS = 8.0, 7
#: Share of the range that is added at both ends, and what stands for the range of one value.
_MARGIN, _ALONE = 0.06, 0.05


def ticks(
    low: float, high: float, scale: Scale, length: float, vertical: bool = False
) -> tuple[float, float, dict[float, str]]:
    """Return the range of an axis that has room for values of a range, and its ticks' labels.

    `low` and `high` are in the units of the axis, `length` in pixels. Two or more ascending values
    have labels, such as 0.5, 2,000, 50k and 1.5M, which have room beside another; those of a
    `vertical` axis are one above the other. Where no choice has room, the ends of the coarsest are
    left.
    """
    if scale == "zero":
        low, high = 0.0, (high or 1.0) * (1 + _MARGIN)
    else:
        span = high - low or (_ALONE if scale == "log" else abs(high) * _ALONE or 1.0)
        low, high = low - _MARGIN * span, high + _MARGIN * span
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
            choices.append([float(f"{i * step:.10g}") for i in range(begin, end + 1)])
    best: dict[float, str] = {}
    for values in (values for values in choices if len(values) >= 2):
        units = [
            (1e6, "M") if abs(v) >= 1e6 else (1e3, "k") if abs(v) >= 1e4 else (1, "")
            for v in values
        ]
        labels = [f"{v / size:,.6g}{unit}" for v, (size, unit) in zip(values, units, strict=True)]
        best = best or {values[i]: labels[i] for i in (0, -1)}
        at = [math.log10(value) if scale == "log" else value for value in values]
        pixels = [(unit - low) / (high - low) * length for unit in at]
        widths = [LINE if vertical else CHARACTER * len(label) for label in labels]
        has_room = all(
            after - before >= (one + other) / 2 + (not vertical) * _APART
            for (before, after), (one, other) in zip(
                pairwise(pixels), pairwise(widths), strict=True
            )
        )
        if has_room and len(values) <= _MOST_TICKS:
            best = dict(zip(values, labels, strict=True))
    return low, high, best


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

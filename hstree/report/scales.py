"""Scales of plots: ranges and ticks of axes, and labels that do not overlap."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

#: The unit of a "log" scale is a power of ten.
Scale = Literal["linear", "log"]

#: Estimated width of a character in the font of plots, in pixels.
CHARACTER = 6.6
#: Estimated height of a line in the font of plots, in pixels.
LINE = 15.0
#: Minimum space between the labels of two ticks, in pixels.
_MIN_SPACE = 8.0
#: Maximum number of ticks on an axis.
_MAX_TICKS = 7
#: Fraction of the range that is added at each end.
_MARGIN = 0.06
#: Range for a single value: absolute on a log axis, otherwise relative to the value.
_SINGLE_RANGE = 0.05


def ticks(
    low: float, high: float, scale: Scale, length: float, vertical: bool = False
) -> tuple[float, float, dict[float, str]]:
    """Return the range of an axis for values from `low` to `high`, and the labels of its ticks.

    `low` and `high` are in units of the axis, `length` is in pixels. At least two ascending values
    have labels, such as 0.5, 2,000, 50k and 1.5M. Labels do not overlap; on a `vertical` axis they
    are above each other. If no choice of ticks fits, the first and the last tick of the coarsest
    choice have labels.
    """
    single_range = _SINGLE_RANGE if scale == "log" else abs(high) * _SINGLE_RANGE or 1.0
    margin = _MARGIN * (high - low or single_range)
    low -= margin
    high += margin

    choices = [values for values in _tick_choices(low, high, scale) if len(values) >= 2]
    coarsest = choices[0]
    best = [coarsest[0], coarsest[-1]]
    for values in choices:
        units = [math.log10(value) if scale == "log" else value for value in values]
        pixels = [(unit - low) / (high - low) * length for unit in units]
        if vertical:
            sizes = [LINE] * len(values)
            space = 0.0
        else:
            sizes = [CHARACTER * len(_format_tick(value)) for value in values]
            space = _MIN_SPACE
        has_room = all(
            second - first >= (first_size + second_size) / 2 + space
            for (first, second), (first_size, second_size) in zip(
                pairwise(pixels), pairwise(sizes), strict=True
            )
        )
        if has_room and len(values) <= _MAX_TICKS:
            best = values
    return low, high, {value: _format_tick(value) for value in best}


def _tick_choices(low: float, high: float, scale: Scale) -> list[list[float]]:
    """Return possible ticks on an axis with this range, from coarse to fine."""
    choices = []
    if scale == "log" and high - low >= 1:
        decades = range(math.floor(low), math.floor(high) + 1)
        for mantissas, stride in (((1,), 3), ((1,), 2), ((1,), 1), ((1, 3), 1), ((1, 2, 5), 1)):
            values = [mantissa * 10.0**decade for decade in decades for mantissa in mantissas]
            choices.append([v for v in values if low <= math.log10(v) <= high][::stride])
        return choices
    first, last = (10**low, 10**high) if scale == "log" else (low, high)
    exponent = math.floor(math.log10(last - first))
    for power in (exponent, exponent - 1):
        for mantissa in (5, 2, 1):
            step = mantissa * 10.0**power
            begin = math.ceil(first / step - 1e-9)
            end = math.floor(last / step + 1e-9)
            choices.append([float(f"{i * step:.10g}") for i in range(begin, end + 1)])
    return choices


def _format_tick(value: float) -> str:
    """Return the label of a tick: 0.5, 2,000, 50k or 1.5M."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.6g}M"
    if abs(value) >= 1e4:
        return f"{value / 1e3:,.6g}k"
    return f"{value:,.6g}"


def spread(pixels: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move pixels until neighbours are at least `gap` apart, within two bounds.

    The order is preserved. If there is not enough room, the first pixels are below `low`.
    """
    order = sorted(range(len(pixels)), key=pixels.__getitem__)
    moved = list(pixels)
    least = low
    for i in order:
        moved[i] = max(moved[i], least)
        least = moved[i] + gap
    most = high
    for i in reversed(order):
        moved[i] = min(moved[i], most)
        most = moved[i] - gap
    return moved

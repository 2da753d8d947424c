"""Charts as SVG, written here: they need neither a script nor a plotting library.

A chart is text and shapes with classes, so that the style sheet gives it its colours for light,
dark and paper, and hides the rows that are unticked. What has a place on an axis carries it as
``data-at``, from which ``charts.js`` draws the chart anew for the rows that are left. Every chart
has a description in words and a table of its data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from markupsafe import Markup

from hstree.report.scales import (
    LINE,
    Scale,
    extent,
    placer,
    spread,
    tick_label,
    ticks,
    units,
)
from hstree.report.table import PageRow, row_class

Point = tuple[float, float]
Place = Callable[[float], float]
Side = Literal["right", "left"]

#: Size of a chart, and its space left, right (for the rows' names), above and below.
WIDTH, HEIGHT = 430.0, 310.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 128.0, 26.0, 40.0
#: Longest name of a row beside its line, in characters.
_LONGEST = 17
#: Height of the name above a row's strip, and of the space below it.
_NAME, _BELOW = 17.0, 5.0

#: Outlines of the markers about (0, 0), by the names of `hstree.report.table.MARKERS`.
OUTLINES = {
    "circle": "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "square": "M-3.5 -3.5h7v7h-7z",
    "triangle": "M0 -4.5L4.5 3.5H-4.5z",
    "diamond": "M0 -5L5 0L0 5L-5 0z",
    "inverted": "M0 4.5L4.5 -3.5H-4.5z",
    "hex": "M-4.5 0L-2.2 -4H2.2L4.5 0L2.2 4H-2.2z",
    "star": "M0 -5L1.4 -1.6L5 -1.5L2.2 0.7L3.1 4.2L0 2.2L-3.1 4.2L-2.2 0.7L-5 -1.5L-1.4 -1.6z",
}


@dataclass(frozen=True)
class Table:
    """Data of a chart: titles of the columns, and lines of as many texts."""

    titles: Sequence[str]
    lines: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Axis:
    """An axis and its title; `names` are those of the places 0, 1, ... of one without a scale.

    On a log axis with a `cap`, values above this multiple of the lowest are left out, unless they
    are the lowest of a row.
    """

    title: str
    scale: Scale = "linear"
    names: Sequence[str] = ()
    cap: float | None = None


@dataclass(frozen=True)
class Mark:
    """A line, dot or bar of a row; `points` are values of both axes.

    The `y` of a bar and of a curve in a strip is in pixels below the strip's name.
    """

    row: PageRow
    kind: str
    points: Sequence[Point]
    title: str = ""


@dataclass(frozen=True)
class Chart:
    """A figure of the page.

    Attributes
    ----------
    id, title, caption : str
    alt : str
        What the chart shows, in words.
    x, y : Axis
        A chart without `y` has a strip for each row instead.
    marks : sequence of Mark
    table : Table
    level : float or None
        Value of `y` at which a dashed line crosses the chart.
    front : {"right", "left"} or None
        Where `x` is better, if the Pareto front is drawn: the lowest `y` of the dots that are at
        least so far to that side. Rows that are not on it are grey.
    strip : float
        Pixels of a row's strip below its name.
    ends : dict of int to str
        Text at the right of a strip's name, by the index of the row.
    """

    id: str
    title: str
    caption: str
    alt: str
    x: Axis
    y: Axis | None
    marks: Sequence[Mark]
    table: Table
    level: float | None = None
    front: Side | None = None
    strip: float = 0.0
    ends: dict[int, str] = field(default_factory=dict)

    @property
    def svg(self) -> Markup:
        """The chart as an ``svg`` element."""
        return _strips(self) if self.y is None else _plane(self, self.y)


def short(name: str) -> str:
    """Shorten a row's name in its middle, so that it fits beside a chart."""
    if len(name) <= _LONGEST:
        return name
    head = (_LONGEST - 1) // 2
    return f"{name[:head]}\N{HORIZONTAL ELLIPSIS}{name[head + 1 - _LONGEST :]}"


def pareto(points: Iterable[Point], better: Side = "right") -> list[Point]:
    """Return the points that none beats in being low and far to a side, from that side."""
    sign = -1 if better == "right" else 1
    front: list[Point] = []
    for x, y in sorted(points, key=lambda point: (sign * point[0], point[1])):
        if not front or y < front[-1][1]:
            front.append((x, y))
    return front


def staircase(front: Sequence[Point]) -> list[Point]:
    """Return the corners of the front: the lowest value of the points at least so far to a side."""
    corners = list(front[:1])
    for before, point in pairwise(front):
        corners += [(point[0], before[1]), point]
    return corners


# Charts of two axes


def _plane(chart: Chart, y_axis: Axis) -> Markup:
    marks = [_in_units(mark, chart.x, y_axis) for mark in chart.marks]
    rows = _rows_of(marks)
    below = _BOTTOM + LINE * any("\n" in name for name in chart.x.names)
    height = max(HEIGHT, _TOP + below + LINE * len(rows))
    right, bottom = WIDTH - _RIGHT, height - below
    by_row = [[p for mark in marks if mark.row == row for p in mark.points] for row in rows]
    x_low, x_high = _domain(chart.x, [[x for x, _ in points] for points in by_row])
    y_low, y_high = _domain(y_axis, [[y for _, y in points] for points in by_row], chart.level)
    x = placer(x_low, x_high, _LEFT, right)
    y = placer(y_low, y_high, bottom, _TOP)
    body = [
        _x_ticks(chart.x, x_low, x_high, right, _TOP, bottom),
        _y_ticks(y_axis, y_low, y_high, right, bottom),
        _html('<text class="title" x="{}" y="12">{}</text>', 2, y_axis.title),
        _html('<text class="title middle" x="{}" y="{}">{}</text>', (_LEFT + right) / 2,
              height - 5, chart.x.title),
        _html('<clipPath id="{}-area"><rect x="{}" y="{}" width="{}" height="{}"/></clipPath>',
              chart.id, _LEFT - 6, _TOP - 6, right - _LEFT + 12, bottom - _TOP + 12),
    ]  # fmt: skip
    inside = []
    if chart.level is not None:
        crossing = units(chart.level, y_axis.scale)
        at = [(x_low, crossing), (x_high, crossing)]
        inside.append(_html('<polyline class="level" points="{}" data-level="{}"/>',
                            _pixels(at, x, y), f"{crossing:.6g}"))  # fmt: skip
    beaten: set[int] = set()
    if chart.front is not None:
        dots = [(mark.row.index, mark.points[0]) for mark in marks if mark.kind == "dot"]
        front = pareto((dot for _, dot in dots), chart.front)
        beaten = {row for row, dot in dots if dot not in front}
        corners = _pixels(staircase(front), x, y)
        inside.append(_html('<polyline class="front" points="{}" data-better="{}"/>', corners,
                            chart.front))  # fmt: skip
    for row in rows:
        own = [_mark(mark, _pixels(mark.points, x, y)) for mark in marks if mark.row == row]
        inside.append(_row_group(row, own, beaten=row.index in beaten))
    body.append(_html('<g clip-path="url(#{}-area)">{}</g>', chart.id, Markup("").join(inside)))
    body.append(_names(marks, rows, x, y, right, bottom, beaten))
    attributes = _html(
        'data-x="{}" data-y="{}" data-area="{} {} {} {}" data-cap="{}"',
        "names" if chart.x.names else chart.x.scale, y_axis.scale, _LEFT, right, _TOP, bottom,
        "" if y_axis.cap is None else f"{units(y_axis.cap, 'log'):.6g}",
    )  # fmt: skip
    return _svg(chart, height, attributes, body)


def _in_units(mark: Mark, x: Axis, y: Axis) -> Mark:
    points = [(units(a, x.scale), units(b, y.scale)) for a, b in mark.points]
    return replace(mark, points=points)


def _rows_of(marks: Sequence[Mark]) -> list[PageRow]:
    return list({mark.row.index: mark.row for mark in marks}.values())


def _domain(
    axis: Axis, values: Sequence[Sequence[float]], level: float | None = None
) -> tuple[float, float]:
    """Return the range of an axis in its units; `values` has those of each row."""
    if axis.names:
        return -0.4, len(axis.names) - 0.6
    low = min(map(min, values))
    high = max(map(max, values))
    if axis.cap is not None:
        high = max(min(high, low + units(axis.cap, axis.scale)), max(map(min, values)))
    if level is not None:
        low, high = min(low, units(level, axis.scale)), max(high, units(level, axis.scale))
    return extent(low, high, axis.scale)


def _x_ticks(
    axis: Axis, low: float, high: float, right: float, top: float, bottom: float
) -> Markup:
    place = placer(low, high, _LEFT, right)
    if axis.names:
        labels = [(place(i), name) for i, name in enumerate(axis.names)]
    else:
        values = ticks(low, high, axis.scale, right - _LEFT)
        labels = [(place(units(value, axis.scale)), tick_label(value)) for value in values]
    made = [
        _html('<g class="tick" transform="translate({:.1f} 0)"><line y1="{}" y2="{}"/>{}</g>',
              at, top, bottom, _lines(name, bottom + 14))
        for at, name in labels
    ]  # fmt: skip
    return _html('<g class="x ticks">{}</g>', Markup("").join(made))


def _lines(text: str, y: float) -> Markup:
    """Return the lines of a text, one below the other, about the same middle."""
    parts = [
        _html('<tspan x="0" dy="{}">{}</tspan>', LINE - 2 if i else 0, line)
        for i, line in enumerate(text.split("\n"))
    ]
    return _html('<text class="middle" y="{}">{}</text>', y, Markup("").join(parts))


def _y_ticks(axis: Axis, low: float, high: float, right: float, bottom: float) -> Markup:
    place = placer(low, high, bottom, _TOP)
    values = ticks(low, high, axis.scale, bottom - _TOP, vertical=True)
    made = [
        _html('<g class="tick" transform="translate(0 {:.1f})"><line x1="{}" x2="{}"/>'
              '<text class="end" x="{}" y="4">{}</text></g>',
              place(units(value, axis.scale)), _LEFT, right, _LEFT - 5, tick_label(value))
        for value in values
    ]  # fmt: skip
    return _html('<g class="y ticks">{}</g>', Markup("").join(made))


def _mark(mark: Mark, pixels: str) -> Markup:
    at = " ".join(f"{x:.6g},{y:.6g}" for x, y in mark.points)
    if mark.kind == "dot":
        return _html(
            '<path class="dot" d="{}" transform="translate({})" data-at="{}"><title>{}</title>'
            "</path>", OUTLINES[mark.row.marker], pixels.replace(",", " "), at, mark.title,
        )  # fmt: skip
    return _html('<polyline class="{}" points="{}" data-at="{}"/>', mark.kind, pixels, at)


def _names(
    marks: Sequence[Mark], rows: Sequence[PageRow], x: Place, y: Place, right: float,
    bottom: float, beaten: Collection[int],
) -> Markup:  # fmt: skip
    """Return the rows' names at the right, each with a line to where its row ends."""
    ends = {row.index: _end(marks, row) for row in rows}
    order = sorted(rows, key=lambda row: -ends[row.index][1])
    wanted = [min(max(y(ends[row.index][1]), _TOP), bottom) for row in order]
    made = []
    for row, at in zip(order, spread(wanted, LINE, _TOP - 8, bottom), strict=True):
        end = ends[row.index]
        start = f"{x(end[0]):.1f},{min(max(y(end[1]), _TOP), bottom):.1f}"
        inner = [
            _html('<polyline class="leader" points="{} {},{:.1f}" data-from="{:.6g},{:.6g}"/>',
                  start, right + 6, at, *end),
            _html('<text x="{}" y="{:.1f}">{}<title>{}</title></text>', right + 9, at + 4,
                  short(row.name), row.name),
        ]  # fmt: skip
        made.append(_row_group(row, inner, beaten=row.index in beaten))
    return _html('<g class="names">{}</g>', Markup("").join(made))


def _end(marks: Sequence[Mark], row: PageRow) -> Point:
    """Return where a row's name belongs: the lowest last point of its lines and dots."""
    own = [mark.points[-1] for mark in marks if mark.row == row and mark.kind != "whisker"]
    lines = [mark.points[-1] for mark in marks if mark.row == row and "line" in mark.kind]
    return min(lines or own, key=lambda point: point[1])


# Charts of strips


def _strips(chart: Chart) -> Markup:
    rows = _rows_of(chart.marks)
    right, step = WIDTH - 14, _NAME + chart.strip + _BELOW
    bottom = 6 + step * len(rows)
    marks = [
        replace(mark, points=[(units(a, chart.x.scale), b) for a, b in mark.points])
        for mark in chart.marks
    ]
    low, high = _domain(chart.x, [[x for x, _ in mark.points] for mark in marks])
    x = placer(low, high, _LEFT - 34, right)
    body = [
        _x_ticks_of_strips(chart.x, low, high, right, bottom),
        _html('<text class="title middle" x="{}" y="{}">{}</text>', (_LEFT - 34 + right) / 2,
              bottom + 33, chart.x.title),
    ]  # fmt: skip
    for position, row in enumerate(rows):
        own = [_in_strip(mark, x, chart.strip) for mark in marks if mark.row == row]
        own += [
            _html('<text x="{}" y="12">{}</text>', _LEFT - 34, row.name),
            _html('<text class="end" x="{}" y="12">{}</text>', right,
                  chart.ends.get(row.index, "")),
        ]  # fmt: skip
        moved = _html("translate(0 {:.1f})", 6 + step * position)
        body.append(_row_group(row, own, moved))
    attributes = _html(
        'data-x="{}" data-strip="{}" data-area="{} {} {} {}"',
        chart.x.scale, step, _LEFT - 34, right, 6, bottom,
    )  # fmt: skip
    return _svg(chart, bottom + 40, attributes, body)


def _x_ticks_of_strips(axis: Axis, low: float, high: float, right: float, bottom: float) -> Markup:
    place = placer(low, high, _LEFT - 34, right)
    made = [
        _html('<g class="tick" transform="translate({:.1f} 0)"><line y1="6" y2="{}"/>{}</g>',
              place(value), bottom, _lines(tick_label(value), bottom + 14))
        for value in ticks(low, high, axis.scale, right - _LEFT + 34)
    ]  # fmt: skip
    return _html('<g class="x ticks">{}</g>', Markup("").join(made))


def _in_strip(mark: Mark, place: Place, height: float) -> Markup:
    """Return a bar from the first point to the second, or a curve, below the strip's name."""
    at = " ".join(f"{a:.6g},{b + _NAME:.6g}" for a, b in mark.points)
    if "segment" not in mark.kind:
        points = " ".join(f"{place(a):.1f},{b + _NAME:.1f}" for a, b in mark.points)
        return _html('<polyline class="{}" points="{}" data-at="{}"/>', mark.kind, points, at)
    (start, y), (end, _) = mark.points
    return _html(
        '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" data-at="{}">'
        "<title>{}</title></rect>",
        mark.kind, place(start), y + _NAME, max(place(end) - place(start), 0.5), height - y,
        at, mark.title,
    )  # fmt: skip


# Both


def _svg(chart: Chart, height: float, attributes: Markup, body: Sequence[Markup]) -> Markup:
    return _html(
        '<svg class="chart" viewBox="0 0 {:g} {:g}" role="img" aria-labelledby="{}-title" '
        'aria-describedby="{}-alt" {}>{}</svg>',
        WIDTH, height, chart.id, chart.id, attributes, Markup("").join(body),
    )  # fmt: skip


def _row_group(
    row: PageRow, inner: Sequence[Markup], transform: str = "", *, beaten: bool = False
) -> Markup:
    moved = _html(' transform="{}"', transform) if transform else ""
    return _html('<g class="row {} {}{}" data-row="{}"{}>{}</g>', row_class(row), row.dash,
                 " beaten" if beaten else "", row.index, moved,
                 Markup("").join(inner))  # fmt: skip


def _pixels(points: Sequence[Point], x: Place, y: Place) -> str:
    return " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)


def _html(text: str, *values: object) -> Markup:
    """Return a template with its values, which are escaped."""
    return Markup(text).format(*values)

"""A figure: rows, axes, marks and a table as data, and the one function that draws it as SVG.

Shapes have classes, so that the style sheet gives them their colours for light, dark and paper, and
hides the rows that are unticked; the rest stays as it is. A figure has a description in words and
a table of its data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from markupsafe import Markup

from hstree.experiments.results import RowResult
from hstree.report.scales import LINE, Scale, extent, placer, spread, tick_label, ticks, units
from hstree.report.templates import rendered

Point = tuple[float, float]
Side = Literal["right", "left"]

#: Width of a figure, height of one without strips, and margins; names are in the right one.
WIDTH, HEIGHT = 430.0, 310.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 128.0, 26.0, 40.0
#: Longest name of a row beside its line, in characters.
_LONGEST = 17
#: Height of the name above a row's strip, and of the space below it.
_NAME, _BELOW = 17.0, 5.0
#: Number of colours: the classes ``c0`` and so on of the style sheet.
COLOURS = 12
#: Outlines of the markers about (0, 0).
_OUTLINES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "M-3.5 -3.5h7v7h-7z",
    "M0 -4.5L4.5 3.5H-4.5z",
    "M0 -5L5 0L0 5L-5 0z",
    "M0 4.5L4.5 -3.5H-4.5z",
    "M-4.5 0L-2.2 -4H2.2L4.5 0L2.2 4H-2.2z",
    "M0 -5L1.4 -1.6L5 -1.5L2.2 0.7L3.1 4.2L0 2.2L-3.1 4.2L-2.2 0.7L-5 -1.5L-1.4 -1.6z",
)


@dataclass(frozen=True)
class Style:
    """How a row is drawn, in the table and in every figure; `number` is its position in the table.

    `has_epochs` says whether it is one training; n-gram models and several models are not.
    """

    number: int
    name: str
    has_epochs: bool

    @classmethod
    def of_all(cls, rows: Iterable[RowResult]) -> list[Style]:
        """Return the styles of the rows of a table."""
        return [cls(i, row.name, row.is_trained and row.models == 1) for i, row in enumerate(rows)]

    @property
    def classes(self) -> str:
        """Classes of whatever is drawn of the row: its number, and its colour."""
        return f"row-{self.number} c{self.number % COLOURS}"

    @property
    def line(self) -> str:
        """Class of its lines: dashed without epochs, dotted where colours repeat."""
        return "dashed" if not self.has_epochs else "dotted" if self.number >= COLOURS else "solid"

    @property
    def outline(self) -> str:
        """Path of its marker."""
        return _OUTLINES[self.number % len(_OUTLINES)]

    @property
    def short(self) -> str:
        """Its name, cut in the middle so that it fits beside a figure."""
        if len(self.name) <= _LONGEST:
            return self.name
        head = (_LONGEST - 1) // 2
        return f"{self.name[:head]}\N{HORIZONTAL ELLIPSIS}{self.name[head + 1 - _LONGEST :]}"


@dataclass(frozen=True)
class Axis:
    """An axis and its title; `names` are those of 0, 1, ... on an axis without a scale.

    On a log axis with a `cap`, values above this multiple of the lowest are left out, unless they
    are the lowest of a row.
    """

    title: str
    scale: Scale = "linear"
    names: Sequence[str] = ()
    cap: float | None = None


@dataclass(frozen=True)
class Mark:
    """A "dot", a "segment" from corner to corner, or else a line, of the row of a number.

    `points` are values of both axes; in a strip, the second is its share from the top. `figures`
    are its line in the table of the figure's data, whose first text is the name of the row.
    """

    row: int
    kind: str
    points: Sequence[Point]
    figures: Sequence[str] = ()


@dataclass(frozen=True)
class Figure:
    """A figure of the page, as data.

    Attributes
    ----------
    id, title, caption : str
    x, y : Axis
        A figure without `y` has a strip for each row instead.
    columns : sequence of str
        Titles of the table of its data.
    marks : list of Mark
    level : float or None
        Value of `y` at which a dashed line crosses the figure.
    front : {"right", "left"} or None
        Where `x` is better, if the Pareto front is drawn: the lowest `y` of the dots that are at
        least so far to that side. Rows that are not on it are grey.
    strip : float
        Pixels of a row's strip below its name.
    ends : mapping of int to str
        Text at the right of a strip's name, by the number of the row.
    """

    id: str
    title: str
    caption: str
    x: Axis
    y: Axis | None
    columns: Sequence[str]
    marks: list[Mark]
    level: float | None = None
    front: Side | None = None
    strip: float = 0.0
    ends: Mapping[int, str] = field(default_factory=dict)

    @property
    def lines(self) -> list[Sequence[str]]:
        """Lines of the table of its data."""
        return [mark.figures for mark in self.marks if mark.figures]


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


def draw(figure: Figure, styles: Sequence[Style]) -> Markup:
    """Return a figure as an ``svg`` element; rows are drawn in the styles of their numbers."""
    by_row = _in_units(figure)
    area = _area(figure, len(by_row))
    level = [] if figure.level is None else [figure.level]
    x_range = _range(figure.x, by_row, 0)
    # Strips are numbered from the top; other values rise.
    y_range = (float(len(by_row)), 0.0) if figure.y is None else _range(figure.y, by_row, 1, level)
    x, y = placer(*x_range, area.left, area.right), placer(*y_range, area.bottom, area.top)

    def pixels(points: Iterable[Point]) -> list[Point]:
        return [(round(x(a), 1), round(y(b), 1)) for a, b in points]

    dots = {row: m.points[0] for row, marks in by_row.items() for m in marks if m.kind == "dot"}
    front = pareto(dots.values(), figure.front) if figure.front else []
    ends = {} if figure.y is None else {row: _end(marks) for row, marks in by_row.items()}
    names = _names(pixels(ends.values()), area) if ends else [y(i) + 12 for i in range(len(by_row))]
    groups = [
        {
            "style": styles[row],
            "is_beaten": bool(figure.front) and dots[row] not in front,
            "marks": [(mark.kind, pixels(mark.points), mark.figures) for mark in marks],
            "name": (area.right + 9 if ends else area.left, name),
            "leader": pixels([ends[row]]) if ends else [],
            "end": figure.ends.get(row, ""),
        }
        for (row, marks), name in zip(by_row.items(), names, strict=True)
    ]
    return rendered(
        "figure.svg",
        figure=figure,
        area=area,
        width=WIDTH,
        x_ticks=_ticks(figure.x, x_range, area.left, area.right),
        y_ticks=[] if figure.y is None else _ticks(figure.y, y_range, area.bottom, area.top),
        groups=groups,
        front=pixels(staircase(front)),
        level=pixels([(edge, value) for edge in x_range for value in level]),
    )


class _Area(NamedTuple):
    """Edges of the area of the marks in pixels, and the height of the figure."""

    left: float
    right: float
    top: float
    bottom: float
    height: float


def _area(figure: Figure, n_rows: int) -> _Area:
    if figure.y is None:
        bottom = 6 + (_NAME + figure.strip + _BELOW) * n_rows
        return _Area(_LEFT - 34, WIDTH - 14, 6, bottom, bottom + _BOTTOM)
    below = _BOTTOM + LINE * any("\n" in name for name in figure.x.names)
    height = max(HEIGHT, _TOP + below + LINE * n_rows)
    return _Area(_LEFT, WIDTH - _RIGHT, _TOP, height - below, height)


def _in_units(figure: Figure) -> dict[int, list[Mark]]:
    """Return the marks of each row, their points in the units of the axes, or in strips."""
    by_row: dict[int, list[Mark]] = {}
    for mark in figure.marks:
        by_row.setdefault(mark.row, []).append(mark)

    def of(point: Point, strip: int) -> Point:
        x = units(point[0], figure.x.scale)
        if figure.y is None:
            pixels = _NAME + point[1] * figure.strip
            return x, strip + pixels / (_NAME + figure.strip + _BELOW)
        return x, units(point[1], figure.y.scale)

    return {
        row: [replace(mark, points=[of(point, i) for point in mark.points]) for mark in marks]
        for i, (row, marks) in enumerate(by_row.items())
    }


def _names(ends: Sequence[Point], area: _Area) -> list[float]:
    """Return the pixels of names beside where their rows end, apart from another."""
    pixels = [min(max(y, area.top), area.bottom) for _, y in ends]
    order = sorted(range(len(ends)), key=pixels.__getitem__)
    moved = spread([pixels[i] for i in order], LINE, area.top - 8, area.bottom)
    return [at + 4 for _, at in sorted(zip(order, moved, strict=True))]


def _range(
    axis: Axis, by_row: Mapping[int, Sequence[Mark]], side: int, level: Sequence[float] = ()
) -> Point:
    """Return the range of an axis in its units; `side` is its position in a point."""
    if axis.names:
        return -0.4, len(axis.names) - 0.6
    values = [[point[side] for m in marks for point in m.points] for marks in by_row.values()]
    low, high = min(map(min, values)), max(map(max, values))
    if axis.cap is not None:
        high = max(min(high, low + units(axis.cap, axis.scale)), max(map(min, values)))
    return extent(min([low, *level]), max([high, *level]), axis.scale)


def _ticks(axis: Axis, limits: Point, start: float, end: float) -> list[tuple[float, str]]:
    """Return the pixel and the text of each tick of an axis, which is vertical where it rises."""
    pixel = placer(*limits, start, end)
    if axis.names:
        return [(pixel(i), name) for i, name in enumerate(axis.names)]
    values = ticks(*limits, axis.scale, abs(end - start), vertical=start > end)
    return [(pixel(units(value, axis.scale)), tick_label(value)) for value in values]


def _end(marks: Sequence[Mark]) -> Point:
    """Return what a row's name points to: the lowest last point of its lines, or of its dots."""
    lines = [mark.points[-1] for mark in marks if mark.kind == "line"]
    dots = [mark.points[-1] for mark in marks if mark.kind == "dot"]
    return min(lines or dots, key=lambda point: point[1])

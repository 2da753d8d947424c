"""Plots: candidates, axes and marks as data, and functions that convert them to SVG and CSV.

Shapes have CSS classes. The style sheet defines their colours for light and dark mode and for
paper, and hides candidates that are not selected. Each plot has a description in words.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from markupsafe import Markup
from msgspec import Struct

from hstree._text import signed
from hstree.experiments.results import CandidateResult, csv_bytes
from hstree.report.formats import ASSETS, TEMPLATES, Link
from hstree.report.scales import LINE, Scale, spread, ticks

Point = tuple[float, float]

#: Width of a plot.
WIDTH = 430.0
#: Minimum height of a plot.
HEIGHT = 310.0
#: Margins; the names of the candidates are in the right margin.
_LEFT = 46.0
_RIGHT = 136.0
_TOP = 26.0
_BOTTOM = 40.0
#: Maximum number of characters of a name beside a plot, without and with a note.
_LONGEST = 17
_LONGEST_WITH_NOTE = 23
#: Number of colours: the classes ``c0``, ``c1`` and so on in the style sheet.
COLOURS = 12
#: Outlines of the markers, with the centre at (0, 0).
_OUTLINES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "M-3.5 -3.5h7v7h-7z",
    "M0 -4.5L4.5 3.5H-4.5z",
    "M0 -5L5 0L0 5L-5 0z",
    "M0 4.5L4.5 -3.5H-4.5z",
    "M-4.5 0L-2.2 -4H2.2L4.5 0L2.2 4H-2.2z",
    "M0 -5L1.4 -1.6L5 -1.5L2.2 0.7L3.1 4.2L0 2.2L-3.1 4.2L-2.2 0.7L-5 -1.5L-1.4 -1.6z",
)


class Style(NamedTuple):
    """Style of a candidate in the table and in every plot."""

    number: int  #: position in the table
    name: str
    classes: str  #: CSS classes of the number and the colour
    line: str  #: CSS class of lines
    outline: str  #: path of the marker


def make_styles(
    candidates: Iterable[CandidateResult], best: CandidateResult | None = None
) -> list[Style]:
    """Return the styles of the candidates in a table; the best candidate is emphasised."""
    styles = []
    for i, candidate in enumerate(candidates):
        line = "solid"
        if not candidate.is_trained or candidate.models > 1:  # no training curve
            line = "dashed"
        elif i >= COLOURS:  # colours repeat
            line = "dotted"
        classes = f"row-{i} c{i % COLOURS}"
        if candidate is best:
            classes += " best"
        outline = _OUTLINES[i % len(_OUTLINES)]
        styles.append(Style(i, candidate.name, classes, line, outline))
    return styles


def shorten(name: str, longest: int) -> str:
    """Shorten a name to `longest` characters by removing its middle."""
    if len(name) <= longest:
        return name
    n_first = (longest - 1) // 2
    n_last = longest - 1 - n_first
    return f"{name[:n_first]}\N{HORIZONTAL ELLIPSIS}{name[-n_last:]}"


class Axis(Struct, frozen=True):
    """An axis and its title.

    If there are `names`, they are the labels of the values 0, 1 and so on, and the axis has no
    scale. Values outside the range `within` are not visible. If `is_ratio`, ticks are labelled with
    percentages: "+10%" at 1.1.
    """

    title: str
    scale: Scale = "linear"
    names: list[str] = []
    within: Point | None = None
    is_ratio: bool = False


class Mark(Struct, frozen=True):
    """A mark of a candidate.

    Attributes
    ----------
    candidate : int
        Number of the candidate.
    kind : str
        "dot"; "aside" for a dot that cannot be on the Pareto front; other kinds are lines.
    points : list of (float, float)
        Values on both axes.
    values : list
        Row in the CSV of the plot, which begins with the name of the candidate. Empty if the mark
        has no row.
    """

    candidate: int
    kind: str
    points: list[Point]
    values: list[Any] = []


class Plot(Struct, frozen=True):
    """A plot of the page, as data.

    Attributes
    ----------
    id, title, caption : str
    x, y : Axis
    columns : list of str
        Column titles of the CSV.
    marks : list of Mark
    level : float or None
        Position of a dashed horizontal line on the y axis.
    front : bool
        Whether to draw the Pareto front, and other candidates in grey.
    notes : dict of int to str
        Notes beside the names of candidates, by number of the candidate.
    """

    id: str
    title: str
    caption: str
    x: Axis
    y: Axis
    columns: list[str]
    marks: list[Mark]
    level: float | None = None
    front: bool = False
    notes: dict[int, str] = {}


def plot_links(plot: Plot, styles: Sequence[Style]) -> list[Link]:
    """Return links to a plot as a separate SVG with light colours, and to its data as CSV."""
    svg = draw(plot, styles, is_separate=True)
    csv = csv_bytes(plot.columns, (mark.values for mark in plot.marks if mark.values))
    return [Link.to(f"{plot.id}.svg", str(svg).encode()), Link.to(f"{plot.id}.csv", csv)]


def pareto(points: Iterable[Point]) -> list[Point]:
    """Return the Pareto front of points, from left to right; lower is better on both axes."""
    front: list[Point] = []
    for x, y in sorted(points):
        if not front or y < front[-1][1]:
            front.append((x, y))
    return front


def draw(
    plot: Plot, styles: Sequence[Style], *, is_separate: bool = False, longest: int = _LONGEST
) -> Markup:
    """Draw a plot as an ``svg`` element of the page, or as a separate image with its style.

    The number of a candidate is its position in `styles`. Names are shortened to `longest`
    characters.
    """
    marks_by_candidate: dict[int, list[Mark]] = {}
    for mark in plot.marks:
        marks_by_candidate.setdefault(mark.candidate, []).append(mark)
    area = _plot_area(plot, len(marks_by_candidate))

    # Functions from values to pixels, and labels of ticks
    points = [point for mark in plot.marks for point in mark.points]
    to_x, x_labels = _scale_axis(plot.x, [x for x, _ in points], area.left, area.right)
    y_values = [y for _, y in points]
    if plot.level is not None:
        y_values.append(plot.level)
    to_y, y_labels = _scale_axis(plot.y, y_values, area.bottom, area.top)

    def to_pixels(points: Iterable[Point]) -> list[Point]:
        return [(round(to_x(x), 1), round(to_y(y), 1)) for x, y in points]

    # A leader connects each name with the lowest end of the lines or dots of the candidate
    ends = to_pixels(map(_named_point, marks_by_candidate.values()))
    leaders = [(min(x, area.right), min(max(y, area.top), area.bottom)) for x, y in ends]
    heights = spread([y for _, y in leaders], LINE, area.top - 8, area.bottom)

    dots = {mark.candidate: mark.points[0] for mark in plot.marks if mark.kind == "dot"}
    front = pareto(dots.values()) if plot.front else []
    groups = []
    for (candidate, marks), leader, height in zip(
        marks_by_candidate.items(), leaders, heights, strict=True
    ):
        note = plot.notes.get(candidate, "")
        groups.append(
            {
                "style": styles[candidate],
                "is_beaten": bool(front) and candidate in dots and dots[candidate] not in front,
                "marks": [(mark.kind, to_pixels(mark.points), mark.values) for mark in marks],
                "leader": leader,
                "height": height,
                "name": shorten(
                    styles[candidate].name, _LONGEST_WITH_NOTE - len(note) if note else longest
                ),
                "note": note,
            }
        )
    level = [] if plot.level is None else [(x, to_y(plot.level)) for x in (area.left, area.right)]
    svg = TEMPLATES.get_template("plot.svg").render(
        plot=plot,
        area=area,
        width=WIDTH,
        style=Markup((ASSETS / "plot.css").read_text("utf-8")) if is_separate else "",
        x_ticks=[(to_x(value), label) for value, label in x_labels.items()],
        y_ticks=[(to_y(value), label) for value, label in y_labels.items()],
        groups=groups,
        front=to_pixels(_staircase(front)),
        level=level,
    )
    return Markup(svg)


class _Area(NamedTuple):
    """Bounds of the area for marks in pixels, and the height of the plot."""

    left: float
    right: float
    top: float
    bottom: float
    height: float


def _plot_area(plot: Plot, n_candidates: int) -> _Area:
    """Return the area of a plot, high enough for the names of `n_candidates`."""
    has_two_lines = any("\n" in name for name in plot.x.names)
    below = _BOTTOM + (LINE if has_two_lines else 0)
    height = max(HEIGHT, _TOP + below + LINE * n_candidates)
    return _Area(_LEFT, WIDTH - _RIGHT, _TOP, height - below, height)


def _scale_axis(
    axis: Axis, values: Sequence[float], start: float, end: float
) -> tuple[Callable[[float], float], dict[float, str]]:
    """Return the function from values to pixels, and the labels of ticks by value.

    The axis is vertical if `start` is greater than `end`.
    """
    if axis.names:
        labels: dict[float, str] = dict(enumerate(axis.names))
        return _linear(-0.4, len(axis.names) - 0.6, start, end), labels
    low = min(values)
    high = max(values)
    if axis.within is not None:
        least, most = axis.within
        low = min(max(low, least), most)
        high = min(max(high, least), most)
    if axis.scale == "log":
        low = math.log10(low)
        high = math.log10(high)
    low, high, labels = ticks(low, high, axis.scale, abs(end - start), vertical=start > end)
    if axis.is_ratio:
        labels = {value: f"{signed(round(100 * (value - 1), 6), ',.6g')}%" for value in labels}
    to_pixel = _linear(low, high, start, end)
    if axis.scale == "log":
        return (lambda value: to_pixel(math.log10(value))), labels
    return to_pixel, labels


def _linear(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Return the linear function that maps `low` to `start` and `high` to `end`."""
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _named_point(marks: Sequence[Mark]) -> Point:
    """Return the lowest end of the lines or dots of a candidate, where its name belongs."""
    ends = [mark.points[-1] for mark in marks if mark.kind == "line"]
    if not ends:
        ends = [mark.points[-1] for mark in marks if mark.kind in ("dot", "aside")]
    return min(ends, key=lambda point: point[1])


def _staircase(front: Sequence[Point]) -> list[Point]:
    """Return the corners of the line along a Pareto front."""
    corners = list(front[:1])
    for previous, point in pairwise(front):
        corners += [(point[0], previous[1]), point]
    return corners

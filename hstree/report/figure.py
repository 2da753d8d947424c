"""A figure: candidates, axes and marks as data, and the functions that make SVG and CSV of it.

Shapes have classes, so that the style sheet gives them their colours for light, dark and paper, and
hides the candidates that are unticked; the rest stays as it is. A figure has a description in
words.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from markupsafe import Markup
from msgspec import Struct

from hstree.experiments.results import CandidateResult, csv_of
from hstree.report.formats import ASSETS, TEMPLATES, Link
from hstree.report.scales import LINE, Scale, spread, ticks

Point = tuple[float, float]
Side = Literal["right", "left"]

#: Width of a figure, height of one without strips, and margins; names are in the right one.
WIDTH, HEIGHT = 430.0, 310.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 136.0, 26.0, 40.0
#: Longest name of a candidate beside its line, in characters.
_LONGEST = 17
#: Heights of a candidate's name, of its strip below that, and of the space below the strip.
_NAME, _STRIP, _BELOW = 17.0, 12.0, 5.0
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


class Style(NamedTuple):
    """How a candidate is drawn, in the table and in every figure."""

    number: int  #: its position in the table
    name: str
    short: str  #: the name, cut in the middle so that it fits beside a figure
    classes: str  #: of whatever is drawn of the candidate: its number, and its colour
    line: str  #: class of its lines
    outline: str  #: path of its marker


def styles_of(
    candidates: Iterable[CandidateResult], best: CandidateResult | None = None
) -> list[Style]:
    """Return the styles of the candidates of a table; the best one stands out."""
    styles = []
    for i, candidate in enumerate(candidates):
        name, head = candidate.name, (_LONGEST - 1) // 2
        if len(name) > _LONGEST:
            name = f"{name[:head]}\N{HORIZONTAL ELLIPSIS}{name[head + 1 - _LONGEST :]}"
        line = "dotted" if i >= COLOURS else "solid"  # where colours repeat
        if candidate.kind == "ngram" or candidate.models > 1:  # it has no epochs
            line = "dashed"
        outline = _OUTLINES[i % len(_OUTLINES)]
        classes = f"row-{i} c{i % COLOURS}{' best' * (candidate is best)}"
        styles.append(Style(i, candidate.name, name, classes, line, outline))
    return styles


class Axis(Struct, frozen=True):
    """An axis and its title; `names` are those of 0, 1, ... on an axis without a scale.

    Values that are not `within` a range, where there is one, are left out.
    """

    title: str
    scale: Scale = "linear"
    names: list[str] = []
    within: Point | None = None


class Mark(Struct, frozen=True):
    """A "dot", a "segment" from corner to corner, or else a line, of the candidate of a number.

    A dot that takes no part in the front is "aside". `points` are values of both axes; in a strip,
    the second is its share from the top. `figures` are its line in the table of the figure's data,
    whose first is the name of the candidate.
    """

    candidate: int
    kind: str
    points: list[Point]
    figures: list[Any] = []


class Figure(Struct, frozen=True):
    """A figure of the page, as data.

    Attributes
    ----------
    id, title, caption : str
    x, y : Axis
        A figure without `y` has a strip for each candidate instead.
    columns : list of str
        Titles of the table of its data.
    marks : list of Mark
    level : float or None
        Value of `y` at which a dashed line crosses the figure.
    front : {"right", "left"} or None
        Where `x` is better, if the Pareto front is drawn: the lowest `y` of the dots that are at
        least so far to that side. Candidates that are not on it are grey.
    ends : dict of int to str
        Text at the right of a strip's name, by the number of the candidate.
    """

    id: str
    title: str
    caption: str
    x: Axis
    y: Axis | None
    columns: list[str]
    marks: list[Mark]
    level: float | None = None
    front: Side | None = None
    ends: dict[int, str] = {}


def links_of(figure: Figure, styles: Sequence[Style]) -> list[Link]:
    """Return the links to a figure by itself as SVG, in light colours, and to its data as CSV."""
    data = csv_of(figure.columns, (mark.figures for mark in figure.marks if mark.figures))
    files = {"svg": str(draw(figure, styles, is_alone=True)).encode(), "csv": data}
    return [Link.to(f"{figure.id}.{ending}", content) for ending, content in files.items()]


def pareto(points: Iterable[Point], better: Side = "right") -> list[Point]:
    """Return the points that none beats in being low and far to a side, from that side."""
    sign = -1 if better == "right" else 1
    front: list[Point] = []
    for x, y in sorted(points, key=lambda point: (sign * point[0], point[1])):
        if not front or y < front[-1][1]:
            front.append((x, y))
    return front


def draw(figure: Figure, styles: Sequence[Style], *, is_alone: bool = False) -> Markup:
    """Return a figure as an ``svg`` element, or with its style as an image that stands alone.

    Candidates are drawn in the styles of their numbers.
    """
    by_candidate: dict[int, list[Mark]] = {}
    for mark in figure.marks:
        by_candidate.setdefault(mark.candidate, []).append(mark)
    left, right, top, strip = _LEFT, WIDTH - _RIGHT, _TOP, 0.0
    below = _BOTTOM + LINE * any("\n" in name for name in figure.x.names)
    height = max(HEIGHT, top + below + LINE * len(by_candidate))
    if figure.y is None:
        left, right, top, strip = _LEFT - 34, WIDTH - 14, 6, _NAME + _STRIP + _BELOW
        height = top + strip * len(by_candidate) + below
    bottom = height - below
    rise = (bottom, top) if figure.y else (top + _NAME, top + _NAME + _STRIP)
    x_at, x_labels = _placed(figure.x, by_candidate, 0, left, right)
    y_at, y_labels = _placed(figure.y, by_candidate, 1, *rise, figure.level)

    def pixels(points: Iterable[Point], i: int = 0) -> list[Point]:
        return [(round(x_at(x), 1), round(y_at(y) + strip * i, 1)) for x, y in points]

    # Names are in the strips, or beside what they name, to which a line leads.
    names = [(left, top + strip * i + 12) for i in range(len(by_candidate))]
    leaders: list[Point] = []
    if figure.y is not None:
        # the lowest end of each candidate's lines, else of its dots
        ends = [
            [m.points[-1] for m in marks if m.kind == "line"]
            or [m.points[-1] for m in marks if m.kind in ("dot", "aside")]
            for marks in by_candidate.values()
        ]
        lowest = pixels(min(of_candidate, key=itemgetter(1)) for of_candidate in ends)
        leaders = [(x, min(max(y, top), bottom)) for x, y in lowest]
        apart = spread([y for _, y in leaders], LINE, top - 8, bottom)
        names = [(right + 9, y + 4) for y in apart]
    dots = {
        candidate: m.points[0]
        for candidate, marks in by_candidate.items()
        for m in marks
        if m.kind == "dot"
    }
    front = pareto(dots.values(), figure.front) if figure.front else []
    corners = ([(point[0], before[1]), point] for before, point in pairwise(front))
    staircase = [*front[:1], *(point for corner in corners for point in corner)]
    groups = [
        {
            "style": styles[candidate],
            "is_beaten": bool(front) and candidate in dots and dots[candidate] not in front,
            "marks": [(mark.kind, pixels(mark.points, i), mark.figures) for mark in marks],
            "name": names[i],
            "leader": leaders[i : i + 1],
            "end": figure.ends.get(candidate, ""),
        }
        for i, (candidate, marks) in enumerate(by_candidate.items())
    ]
    svg = TEMPLATES.get_template("figure.svg").render(
        figure=figure,
        area=(left, right, top, bottom, height),
        width=WIDTH,
        style=Markup((ASSETS / "figure.css").read_text("utf-8")) if is_alone else "",
        x_ticks=[(x_at(value), text) for value, text in x_labels.items()],
        y_ticks=[(y_at(value), text) for value, text in y_labels.items()],
        groups=groups,
        front=pixels(staircase),
        level=[] if figure.level is None else [(x, y_at(figure.level)) for x in (left, right)],
    )
    return Markup(svg)


def _placed(
    axis: Axis | None,
    by_candidate: Mapping[int, Sequence[Mark]],
    side: int,
    start: float,
    end: float,
    level: float | None = None,
) -> tuple[Callable[[float], float], dict[float, str]]:
    """Return the function from values to pixels, and the text of each value that has a tick.

    `side` is the axis' position in a point; the axis is vertical where its pixels fall. Strips have
    none: their values are shares.
    """
    unit = math.log10 if axis is not None and axis.scale == "log" else float
    low, high, labels = 0.0, 1.0, dict[float, str]()
    if axis is not None and axis.names:
        low, high, labels = -0.4, len(axis.names) - 0.6, dict(enumerate(axis.names))
    elif axis is not None:
        marks = [mark for of_candidate in by_candidate.values() for mark in of_candidate]
        values = [p[side] for mark in marks for p in mark.points]
        values += [] if level is None else [level]
        least, most = axis.within or (-math.inf, math.inf)
        low, high = (unit(min(max(extreme, least), most)) for extreme in (min(values), max(values)))
        low, high, labels = ticks(low, high, axis.scale, abs(end - start), vertical=start > end)
    return (lambda value: start + (unit(value) - low) / (high - low) * (end - start)), labels

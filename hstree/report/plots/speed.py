"""Test perplexity against training speed, with the rows that no other beats at both."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bokeh.models import ColumnDataSource, Range1d, Whisker
from bokeh.plotting import figure

from hstree.report.plots.blank import blank, hover, log_ticks, mark
from hstree.report.rows import Row


def pareto(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that no other beats at perplexity and speed both, the fastest first.

    Of two with the same figures the first alone is kept.
    """
    fastest = sorted(_placed(rows), key=lambda row: (-_speed(row), _perplexity(row), row.index))
    front: list[Row] = []
    for row in fastest:
        if not front or _perplexity(row) < _perplexity(front[-1]):
            front.append(row)
    return front


def against_speed(rows: Sequence[Row], height: int = 420) -> figure | None:
    """Draw every tree's place and the Pareto front; None where no speed was measured."""
    placed, front = _placed(rows), pareto(rows)
    if not placed:
        return None
    slowest, fastest = min(map(_speed, placed)), _speed(front[0])
    # The names stand to the right of their points.
    span = max(fastest / slowest, 2.0)
    left, right = slowest / span**0.1, fastest * span**0.4
    low = min(_perplexity(row) - _spread(row) for row in placed)
    high = max(_perplexity(row) + _spread(row) for row in placed)
    room = 0.08 * (high - low) or 1.0
    drawn = blank(
        "training speed, tokens/s (log scale)",
        "test perplexity",
        height=height,
        x_axis_type="log",
        x_range=Range1d(left, right),
        y_range=Range1d(low - room, high + room),
    )
    log_ticks(drawn.xaxis, left, right, "0[.]0a")
    _draw_front(drawn, front)
    dots = []
    for row in placed:
        mean, sd = _perplexity(row), _spread(row)
        source = ColumnDataSource(
            {
                "name": [row.name],
                "speed": [_speed(row)],
                "test": [mean],
                "sd": [f"{sd:.2f}" if sd else "not known"],
                "low": [mean - sd],
                "high": [mean + sd],
            }
        )
        if sd:
            drawn.add_layout(
                Whisker(
                    base="speed", lower="low", upper="high", source=source, name=mark(row),
                    line_color=row.colour, upper_head=None, lower_head=None,
                )
            )  # fmt: skip
        dots.append(
            drawn.scatter(
                "speed", "test", source=source, name=mark(row), color=row.colour,
                marker=row.marker, size=12,
            )
        )  # fmt: skip
        # Below the front nothing else is drawn; a row that is beaten has its name above.
        beaten = row not in front
        drawn.text(
            "speed", "test", text="name", source=source, name=mark(row), text_color=row.colour,
            text_font_size="12px", text_baseline="bottom" if beaten else "top", x_offset=8,
            y_offset=-2 if beaten else 2,
        )  # fmt: skip
    hover(
        drawn,
        dots,
        ("test perplexity", "@test{0.00}"),
        ("spread (sd)", "@sd"),
        ("training speed", "@speed{0,0} tokens/s"),
    )
    return drawn


def _draw_front(drawn: figure, front: Sequence[Row]) -> None:
    """Draw a staircase: at a given speed, the lowest perplexity that a row at least so fast has."""
    speed, test = [_speed(front[0])], [_perplexity(front[0])]
    for before, row in pairwise(front):
        speed += [_speed(row), _speed(row)]
        test += [_perplexity(before), _perplexity(row)]
    drawn.line(speed, test, name="ink", line_width=1.5, line_dash="dashed", line_alpha=0.6)


def _placed(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.tokens_per_second and row.perplexity()]


def _speed(row: Row) -> float:
    return row.tokens_per_second or 0.0


def _perplexity(row: Row) -> float:
    return row.perplexity() or 0.0


def _spread(row: Row) -> float:
    """Return the standard deviation over seeds; 0 where there is one seed."""
    return float(row.result.perplexity["test"].sd or 0.0)

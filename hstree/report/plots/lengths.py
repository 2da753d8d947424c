"""Histograms of code length, one strip a tree over a common axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from bokeh.models import ColumnDataSource, Range1d
from bokeh.plotting import figure

from hstree._typing import Float64, Int64
from hstree.report.plots.blank import blank, hover, mark
from hstree.report.rows import Row

#: CSS pixels of one strip; the tallest bar of a strip takes this part of it.
_STRIP, _TALLEST = 58, 0.72
#: A tree as deep as a chain has lengths without end; beyond so many they share bars.
_MOST_BARS = 150
#: The longest lengths are left off the axis where they hold less than this part of all.
_TAIL = 0.001


def code_lengths(rows: Sequence[Row]) -> figure | None:
    """Draw each tree's codes (bars) and running text (line) by length; None without any tree."""
    drawn_rows = [row for row in rows if row.result.code_lengths]
    if not drawn_rows:
        return None
    end = max(_shown_to(row) for row in drawn_rows)
    width = -(-end // _MOST_BARS)
    drawn = blank(
        "code length, decisions",
        "",
        height=height_of(rows),
        x_range=Range1d(0, end + 1),
        y_range=Range1d(0, len(drawn_rows)),
    )
    drawn.yaxis.visible = False
    drawn.ygrid.ticker = list(range(len(drawn_rows) + 1))
    drawn.xaxis.ticker.min_interval = 1
    bars = [
        _strip(drawn, row, len(drawn_rows) - 1 - place, end, width)
        for place, row in enumerate(drawn_rows)
    ]
    hover(
        drawn,
        bars,
        ("code length", "@title decisions"),
        ("codes", "@codes{0,0} (@of_codes{0.0%})"),
        ("running text", "@of_tokens{0.0%}"),
    )
    return drawn


def height_of(rows: Sequence[Row]) -> int:
    """Return the CSS pixels that the histograms take, so that a plot beside them can be alike."""
    return _STRIP * sum(bool(row.result.code_lengths) for row in rows) + 70


def _strip(drawn: figure, row: Row, floor: int, end: int, width: int) -> object:
    """Draw one tree's histogram on its floor, and return its bars."""
    first, codes, tokens = _bars(row, end, width)
    found = row.result.code_lengths or []
    of_codes = codes / max(sum(entry.codes for entry in found), 1)
    of_tokens = tokens / (sum(entry.tokens for entry in found) or 1.0)
    tallest = max(of_codes.max(), of_tokens.max()) or 1.0
    last = first + width - 1
    source = ColumnDataSource(
        {
            "name": [row.name] * len(first),
            "title": [
                f"{a}" if a == b else f"{a} to {b}" for a, b in zip(first, last, strict=True)
            ],
            "length": ((first + last) / 2).tolist(),
            "codes": codes.tolist(),
            "of_codes": of_codes.tolist(),
            "of_tokens": of_tokens.tolist(),
            "left": (first - 0.42).tolist(),
            "right": (last + 0.42).tolist(),
            "bottom": [floor] * len(first),
            "top": (floor + _TALLEST * of_codes / tallest).tolist(),
            "text": (floor + _TALLEST * of_tokens / tallest).tolist(),
        }
    )
    bars = drawn.quad(
        left="left", right="right", bottom="bottom", top="top", source=source, name=mark(row),
        fill_color=row.colour, fill_alpha=0.55, line_color=None,
    )  # fmt: skip
    drawn.line("length", "text", source=source, name=mark(row), color=row.colour, line_width=1.5)
    drawn.scatter("length", "text", source=source, name=mark(row), color=row.colour, size=4)
    drawn.text(
        [end + 1], [floor + 0.94], text=[row.name], name=mark(row), text_color=row.colour,
        text_font_size="12px", text_align="right", text_baseline="top", x_offset=-4,
    )  # fmt: skip
    return bars


def _bars(row: Row, end: int, width: int) -> tuple[Int64, Float64, Float64]:
    """Return the first length of each bar up to `end`, and the codes and tokens in it."""
    found = [entry for entry in row.result.code_lengths or [] if entry.length <= end]
    bar = np.array([entry.length - 1 for entry in found], np.int64) // width
    filled = np.unique(bar)
    codes, tokens = (
        np.bincount(bar, weights)[filled].astype(np.float64)
        for weights in ([float(e.codes) for e in found], [e.tokens for e in found])
    )
    return filled * width + 1, codes, tokens


def _shown_to(row: Row) -> int:
    """Return the length beyond which there is only a tail."""
    found = row.result.code_lengths or []
    ends = []
    for amount in ([float(entry.codes) for entry in found], [entry.tokens for entry in found]):
        beyond = np.cumsum(amount[::-1])[::-1]
        ends += [
            entry.length
            for entry, left in zip(found, beyond, strict=True)
            if left >= _TAIL * beyond[0]
        ]
    return int(max(ends))

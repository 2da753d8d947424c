"""Histograms of code length, one strip a tree over a common axis."""

from __future__ import annotations

from collections.abc import Sequence

from bokeh.models import ColumnDataSource, Range1d
from bokeh.plotting import figure

from hstree.report.plots.blank import blank, hover, mark
from hstree.report.rows import Row

#: CSS pixels of one strip; the tallest bar of a strip takes this part of it.
_STRIP, _TALLEST = 58, 0.72
#: Lengths that hold less than this part of a tree's codes and text are left off the axis.
_TAIL = 0.001


def code_lengths(rows: Sequence[Row]) -> figure | None:
    """Draw each tree's codes (bars) and running text (line) by length; None without any tree."""
    drawn_rows = [row for row in rows if row.result["code_lengths"]]
    if not drawn_rows:
        return None
    end = max(_shown_to(row) for row in drawn_rows) + 1
    drawn = blank(
        "code length, decisions",
        "",
        height=height_of(rows),
        x_range=Range1d(0, end),
        y_range=Range1d(0, len(drawn_rows)),
    )
    drawn.yaxis.visible = False
    drawn.ygrid.ticker = list(range(len(drawn_rows) + 1))
    drawn.xaxis.ticker.min_interval = 1
    bars = [
        _strip(drawn, row, len(drawn_rows) - 1 - place, end) for place, row in enumerate(drawn_rows)
    ]
    hover(
        drawn,
        bars,
        ("code length", "@length decisions"),
        ("codes", "@codes{0,0} (@of_codes{0.0%})"),
        ("running text", "@of_tokens{0.0%}"),
    )
    return drawn


def height_of(rows: Sequence[Row]) -> int:
    """Return the CSS pixels that the histograms take, so that a plot beside them can be alike."""
    return _STRIP * sum(bool(row.result["code_lengths"]) for row in rows) + 70


def _strip(drawn: figure, row: Row, floor: int, end: float) -> object:
    """Draw one tree's histogram on its floor, and return its bars."""
    found = row.result["code_lengths"]
    length = [entry["length"] for entry in found]
    of_codes = _shares([entry["codes"] for entry in found])
    of_tokens = _shares([entry["tokens"] for entry in found])
    tallest = max([*of_codes, *of_tokens]) or 1.0
    source = ColumnDataSource(
        {
            "name": [row.name] * len(found),
            "length": length,
            "codes": [entry["codes"] for entry in found],
            "of_codes": of_codes,
            "of_tokens": of_tokens,
            "left": [at - 0.42 for at in length],
            "right": [at + 0.42 for at in length],
            "bottom": [floor] * len(found),
            "top": [floor + _TALLEST * share / tallest for share in of_codes],
            "text": [floor + _TALLEST * share / tallest for share in of_tokens],
        }
    )
    bars = drawn.quad(
        left="left", right="right", bottom="bottom", top="top", source=source, name=mark(row),
        fill_color=row.colour, fill_alpha=0.55, line_color=None,
    )  # fmt: skip
    drawn.line("length", "text", source=source, name=mark(row), color=row.colour, line_width=1.5)
    drawn.scatter("length", "text", source=source, name=mark(row), color=row.colour, size=4)
    drawn.text(
        [end], [floor + 0.94], text=[row.name], name=mark(row), text_color=row.colour,
        text_font_size="12px", text_align="right", text_baseline="top", x_offset=-4,
    )  # fmt: skip
    return bars


def _shown_to(row: Row) -> int:
    """Return the longest length that is more than a tail."""
    found = row.result["code_lengths"]
    of_codes = _shares([entry["codes"] for entry in found])
    of_tokens = _shares([entry["tokens"] for entry in found])
    shown = [
        entry["length"]
        for entry, codes, tokens in zip(found, of_codes, of_tokens, strict=True)
        if max(codes, tokens) >= _TAIL
    ]
    return int(max(shown, default=found[-1]["length"]))


def _shares(values: Sequence[float]) -> list[float]:
    total = sum(values)
    return [value / total if total else 0.0 for value in values]

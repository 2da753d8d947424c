"""An empty plot as all of the page's plots begin: its axes labelled, nothing in its way."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import FixedTicker, HoverTool, NumeralTickFormatter
from bokeh.plotting import figure

from hstree.report.rows import Row

#: Where a log axis is cut, from the coarsest on: the first that leaves it enough ticks.
_MANTISSAS = ([1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 7], [*np.arange(10, 100, 5) / 10])
_ENOUGH = 5


def blank(x: str, y: str, *, height: int = 360, **options: Any) -> figure:
    """Return an empty figure, as wide as the page lets it be.

    Parameters
    ----------
    x, y : str
        What the axes show, with units.
    height : int
        In CSS pixels.
    **options
        Of `bokeh.plotting.figure`.
    """
    drawn = figure(
        height=height,
        sizing_mode="stretch_width",
        min_width=260,
        x_axis_label=x,
        y_axis_label=y,
        tools="box_zoom,reset,save",
        toolbar_location="above",
        toolbar_inner=True,
        # No tool takes a finger that scrolls the page.
        active_drag=None,
        active_scroll=None,
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        **options,
    )
    drawn.toolbar.logo = None
    drawn.toolbar.autohide = True
    drawn.min_border_right = 16
    drawn.axis.axis_label_text_font_style = "normal"
    drawn.axis.axis_label_text_font_size = "13px"
    drawn.axis.major_label_text_font_size = "12px"
    drawn.axis.minor_tick_line_color = None
    return drawn


def log_ticks(axis: Any, low: float, high: float, form: str = "0,0[.]0") -> None:
    """Give a log axis from `low` to `high` ticks at round figures, written out."""
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for mantissas in _MANTISSAS:
        ticks = np.outer(decades, mantissas).ravel()
        ticks = ticks[(ticks >= low) & (ticks <= high)]
        if len(ticks) >= _ENOUGH:
            break
    axis.ticker = FixedTicker(ticks=ticks.tolist())
    axis.formatter = NumeralTickFormatter(format=form)


def hover(drawn: figure, renderers: list[Any], *lines: tuple[str, str]) -> None:
    """Show these lines beside the pointer; the first is the row's name."""
    drawn.add_tools(HoverTool(renderers=renderers, tooltips=[("", "@name"), *lines]))


def mark(row: Row) -> str:
    """Return the name that a row's drawings bear, by which the page shows and hides them."""
    return f"row-{row.index}"

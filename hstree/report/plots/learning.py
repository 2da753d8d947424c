"""Validation perplexity while training: against epochs, and against wall-clock seconds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from bokeh.models import ColumnDataSource, Range1d
from bokeh.plotting import figure

from hstree.report.plots.blank import blank, hover, log_ticks, mark
from hstree.report.rows import Row

#: The first epochs of a bad start are left above the plot beyond this multiple of the best.
_HIGHEST = 3.0


def against_epochs(rows: Sequence[Row]) -> figure | None:
    """Draw every run over its epochs; None where no epoch was validated."""
    return _learning(rows, "epoch", "training epochs", x_axis_type="linear")


def against_seconds(rows: Sequence[Row]) -> figure | None:
    """Draw every run over the seconds of its training passes."""
    return _learning(rows, "seconds", "training time, seconds (log scale)", x_axis_type="log")


def _learning(rows: Sequence[Row], column: str, label: str, *, x_axis_type: str) -> figure | None:
    curves = [(row, curve) for row in rows for curve in _curves(row)]
    lowest = [min(curve["valid"]) for _, curve in curves]
    if not curves:
        return None
    baselines = [row for row in rows if not row.is_tree and row.perplexity("valid")]
    lowest += [row.perplexity("valid") or 0.0 for row in baselines]
    highest = max(max(curve["valid"]) for _, curve in curves)
    bottom = 0.97 * min(lowest)
    top = 1.05 * max(min(highest, _HIGHEST * min(lowest)), max(lowest))
    drawn = blank(
        label,
        "validation perplexity (log scale)",
        x_axis_type=x_axis_type,
        y_axis_type="log",
        y_range=Range1d(bottom, top),
    )
    log_ticks(drawn.yaxis, bottom, top)
    if x_axis_type == "log":
        elapsed = [seconds for _, curve in curves for seconds in curve["seconds"]]
        log_ticks(drawn.xaxis, 0.8 * min(elapsed), 1.2 * max(elapsed))
    else:
        drawn.xaxis.ticker.min_interval = 1
        drawn.xaxis.ticker.num_minor_ticks = 0
    dots = []
    for row, curve in curves:
        source = ColumnDataSource(curve)
        drawn.line(
            column, "valid", source=source, name=mark(row), color=row.colour,
            line_width=2, line_dash=row.dash,
        )  # fmt: skip
        dots.append(
            drawn.scatter(
                column, "valid", source=source, name=mark(row), color=row.colour,
                marker=row.marker, size=6,
            )
        )  # fmt: skip
    for row in baselines:
        level = {"valid": [row.perplexity("valid")], "name": [row.name]}
        drawn.hspan(
            y="valid", source=ColumnDataSource(level), name=mark(row), line_color=row.colour,
            line_width=1.5, line_dash=row.dash,
        )  # fmt: skip
    hover(
        drawn,
        dots,
        ("epoch", "@epoch"),
        ("validation perplexity", "@valid{0.0}"),
        ("training time", "@seconds{0,0.0} s"),
        ("seed", "@seed"),
    )
    return drawn


def _curves(row: Row) -> list[dict[str, list[Any]]]:
    """Return one run a curve, of the epochs that were validated."""
    curves = []
    for run in row.result.runs:
        epochs = run.epochs or []
        elapsed = list(accumulate(epoch.seconds for epoch in epochs))
        points = [
            (epoch.epoch, seconds, epoch.valid)
            for epoch, seconds in zip(epochs, elapsed, strict=True)
            if epoch.valid is not None
        ]
        if points:
            number, seconds, valid = map(list, zip(*points, strict=True))
            curves.append(
                {
                    "epoch": number,
                    "seconds": seconds,
                    "valid": valid,
                    "name": [row.name] * len(points),
                    "seed": [run.seed] * len(points),
                }
            )
    return curves

"""Plots of the page, and the only module that uses Bokeh.

The page (``page.js``) sets the colours of text and axes, for light and dark, and shows and hides a
row by the name of its drawings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from bokeh import models
from bokeh.embed import json_item
from bokeh.models import ColumnDataSource, NumeralTickFormatter, Range1d
from bokeh.plotting import figure

from hstree._typing import Float64, Int64
from hstree.experiments.results import Band, Comparison, LengthCount
from hstree.report.table import PageRow, best_row, flat_row

#: Ticks of a log axis per decade, from the coarsest: the first that gives it enough ticks.
_MANTISSAS = (
    *([1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 7], np.arange(10, 100, 5) / 10),
    *(np.arange(10, 100, 2) / 10, np.arange(100, 1000, 5) / 100, np.arange(100, 1000) / 100),
)
_ENOUGH_TICKS = 5
#: Validation perplexities above this multiple of the best are left out above the plot.
_HIGHEST = 3.0
#: Height of a tree's histogram in CSS pixels, and the share of it that its tallest bar takes.
_STRIP, _TALLEST = 58, 0.72
#: Maximum number of bars; more lengths share bars.
_MOST_BARS = 150
#: The longest lengths are left off the axis where they hold less than this share of all.
_TAIL = 0.001


@dataclass(frozen=True)
class Plot:
    """A plot on the page; `item` is the JSON that ``Bokeh.embed.embed_item`` takes."""

    id: str
    title: str
    caption: str
    item: dict[str, Any]


def plots_of(results: Comparison, rows: Sequence[PageRow]) -> list[Plot]:
    """Return the plots that the results have figures for."""
    bands, flat = results.bands, flat_row(rows)
    level = flat if flat is not None and flat.result.by_band else best_row(rows)
    drawn = [
        (
            "epochs", "Perplexity against epochs",
            "One line per run. Lower is better; a steep line learns much from each pass over the "
            "text. N-gram models, which have no epochs, are dashed levels.",
            _learning(rows, "epoch", "training epochs", x_axis_type="linear"),
        ),
        (
            "seconds", "Perplexity against time",
            "The same runs against the seconds of their training passes, without validation: at "
            "a given time, the lowest line is the best row. These are the seconds of the "
            "training runs; the table\u2019s speeds were measured afterwards, all rows in turns.",
            _learning(rows, "seconds", "training time, seconds (log scale)", x_axis_type="log"),
        ),
        (
            "speed", "Perplexity against speed",
            "Down and to the right is better. The dashed staircase is the Pareto front: no row "
            "on it is beaten in both speed and perplexity. Bars: one standard deviation over "
            "seeds.",
            _against_speed(rows, max(400, _height_of_lengths(rows))),
        ),
        (
            "lengths", "Code lengths",
            "Bars: the share of a tree\u2019s codes of each length. "
            "Line: the share of running text that has them. Each strip is scaled to its own "
            "maximum. Text far to the left of the codes means short codes for frequent words.",
            _code_lengths(rows),
        ),
        (
            "bands", "Perplexity by word frequency",
            "Test perplexity over the targets of each band alone, by how often the training text "
            "has the word.",
            _by_band(rows, bands, None),
        ),
        (
            "bands-level", "Which words each row helps",
            f"The same as a multiple of {level.name if level else 'the level'}, the dashed "
            "line: below it a row predicts the words of a band better, above it worse.",
            _by_band(rows, bands, level) if level else None,
        ),
    ]  # fmt: skip
    return _plots(drawn)


def plots_of_survey(
    rows: Sequence[PageRow], compared: Sequence[PageRow], bands: Sequence[Band]
) -> list[Plot]:
    """Return the plots of a survey.

    `rows` have the runs of all regimes, `compared` are those of one, in the same order.
    """
    flat = flat_row(compared)
    drawn = [
        (
            "seconds", "Perplexity against training seconds",
            "One line per run, after equal epochs and after equal seconds; each point is a "
            "validation. The seconds are those of the training steps: the training of the vectors "
            "that a tree is built from is not in them.",
            _learning(rows, "seconds", "training time, seconds (log scale)", x_axis_type="log"),
        ),
        (
            "speed", "Perplexity against speed",
            "Down and to the right is better. The dashed staircase is the Pareto front: no row "
            "on it is beaten in both training speed and perplexity.",
            _against_speed(compared, 480),
        ),
        (
            "bands-level", "Which words each row helps",
            "Test perplexity over the words of each training count, as a multiple of flat\u2019s: "
            "below the dashed line a row predicts them better, above it worse.",
            _by_band(compared, bands, flat) if flat else None,
        ),
    ]  # fmt: skip
    return _plots(drawn)


def _plots(drawn: Sequence[tuple[str, str, str, figure | None]]) -> list[Plot]:
    return [
        Plot(f"plot-{name}", title, caption, _embedded(plot))
        for name, title, caption, plot in drawn
        if plot is not None
    ]


def _embedded(plot: figure) -> dict[str, Any]:
    """Return a plot as JSON, the same for the same plot: bokeh numbers objects per process."""
    item: dict[str, Any] = _renumbered(json_item(plot), {})
    return item


def _renumbered(value: Any, numbers: dict[str, str]) -> Any:
    """Return JSON with the ids of objects counted from the first one on."""
    if isinstance(value, list):
        return [_renumbered(inner, numbers) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        key: numbers.setdefault(inner, f"o{len(numbers)}")
        if key in ("id", "root_id") and isinstance(inner, str)
        else _renumbered(inner, numbers)
        for key, inner in value.items()
    }


# What all plots share


def _blank(x: str, y: str, *, height: int = 360, **options: Any) -> figure:
    """Return an empty figure with labelled axes, `height` CSS pixels high."""
    plot = figure(
        height=height, sizing_mode="stretch_width", min_width=260, x_axis_label=x, y_axis_label=y,
        tools="box_zoom,reset,save", toolbar_location="above", toolbar_inner=True,
        active_drag=None, active_scroll=None,  # no tool takes a finger that scrolls the page
        background_fill_color=None, border_fill_color=None, outline_line_color=None, **options,
    )  # fmt: skip
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.min_border_right = 16
    plot.axis.axis_label_text_font_style = "normal"
    plot.axis.axis_label_text_font_size = "13px"
    plot.axis.major_label_text_font_size = "12px"
    plot.axis.minor_tick_line_color = None
    return plot


def _log_ticks(axis: Any, low: float, high: float, form: str | None = None) -> None:
    """Give a log axis from `low` to `high` ticks at round figures, written out by default."""
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for mantissas in _MANTISSAS:
        ticks = np.outer(decades, mantissas).ravel()
        ticks = ticks[(ticks >= low) & (ticks <= high)]
        if len(ticks) >= _ENOUGH_TICKS:
            break
    axis.ticker = models.FixedTicker(ticks=ticks.tolist())
    if form is None:
        axis.major_label_overrides = {tick: f"{tick:,.10g}" for tick in ticks.tolist()}
    else:
        axis.formatter = NumeralTickFormatter(format=form)


def _hover(plot: figure, renderers: list[Any], *lines: tuple[str, str]) -> None:
    """Show the row's name and these lines beside the pointer."""
    plot.add_tools(models.HoverTool(renderers=renderers, tooltips=[("", "@name"), *lines]))


def _name(row: PageRow) -> str:
    """Return the name of a row's drawings, by which the page shows and hides them."""
    return f"row-{row.index}"


def _line(plot: figure, row: PageRow, x: str, y: str, source: ColumnDataSource) -> None:
    plot.line(
        x, y, source=source, name=_name(row), color=row.colour, line_width=2, line_dash=row.dash
    )


def _dots(
    plot: figure, row: PageRow, x: str, y: str, source: ColumnDataSource, size: int
) -> object:
    return plot.scatter(
        x, y, source=source, name=_name(row), color=row.colour, marker=row.marker, size=size
    )


# Learning curves


def _learning(
    rows: Sequence[PageRow], column: str, label: str, *, x_axis_type: str
) -> figure | None:
    """Draw the validation perplexity of every run; None where no epoch was validated."""
    curves = [(row, curve) for row in rows for curve in _curves(row)]
    if not curves:
        return None
    baselines = [row for row in rows if not row.is_trained and row.perplexity("valid")]
    lowest = [min(curve["valid"]) for _, curve in curves]
    lowest += [row.perplexity("valid") or 0.0 for row in baselines]
    highest = max(max(curve["valid"]) for _, curve in curves)
    bottom = 0.97 * min(lowest)
    top = 1.05 * max(min(highest, _HIGHEST * min(lowest)), max(lowest))
    plot = _blank(
        label, "validation perplexity (log scale)", x_axis_type=x_axis_type, y_axis_type="log",
        y_range=Range1d(bottom, top),
    )  # fmt: skip
    _log_ticks(plot.yaxis, bottom, top)
    if x_axis_type == "log":
        elapsed = [seconds for _, curve in curves for seconds in curve["seconds"]]
        _log_ticks(plot.xaxis, 0.8 * min(elapsed), 1.2 * max(elapsed))
    else:
        plot.xaxis.ticker.min_interval = 1
        plot.xaxis.ticker.num_minor_ticks = 0
    dots = []
    for row, curve in curves:
        source = ColumnDataSource(curve)
        _line(plot, row, column, "valid", source)
        dots.append(_dots(plot, row, column, "valid", source, 6))
    for row in baselines:
        level = {"valid": [row.perplexity("valid")], "name": [row.name]}
        plot.hspan(
            y="valid", source=ColumnDataSource(level), name=_name(row), line_color=row.colour,
            line_width=1.5, line_dash=row.dash,
        )  # fmt: skip
    _hover(
        plot, dots, ("epoch", "@epoch"), ("validation perplexity", "@valid{0.0}"),
        ("training time", "@seconds{0,0.0} s"), ("seed", "@seed"),
    )  # fmt: skip
    return plot


def _curves(row: PageRow) -> list[dict[str, list[Any]]]:
    """Return a curve per run, of the epochs that were validated."""
    curves = []
    for run in row.result.runs:
        epochs = run.epochs or []
        elapsed = accumulate(epoch.seconds for epoch in epochs)
        valid = [pair for pair in zip(epochs, elapsed, strict=True) if pair[0].valid is not None]
        curve: dict[str, list[Any]] = {
            "epoch": [epoch.epoch for epoch, _ in valid],
            "seconds": [seconds for _, seconds in valid],
            "valid": [epoch.valid for epoch, _ in valid],
            "name": [row.name] * len(valid),
            "seed": [run.seed] * len(valid),
        }
        curves += [curve] if valid else []
    return curves


# Speed


def pareto(rows: Sequence[PageRow]) -> list[PageRow]:
    """Return the rows that no other beats in perplexity and speed, fastest first; one of equals."""
    fastest = sorted(_measured(rows), key=lambda row: (-_speed(row), _perplexity(row), row.index))
    front: list[PageRow] = []
    for row in fastest:
        if not front or _perplexity(row) < _perplexity(front[-1]):
            front.append(row)
    return front


def _against_speed(rows: Sequence[PageRow], height: int) -> figure | None:
    """Draw test perplexity over speed, and the Pareto front; None where no speed was measured."""
    measured, front = _measured(rows), pareto(rows)
    if not measured:
        return None
    slowest, fastest = min(map(_speed, measured)), _speed(front[0])
    # Names are to the right of their points.
    span = max(fastest / slowest, 2.0)
    left, right = slowest / span**0.1, fastest * span**0.4
    low = min(_perplexity(row) - _sd(row) for row in measured)
    high = max(_perplexity(row) + _sd(row) for row in measured)
    room = 0.08 * (high - low) or 1.0
    plot = _blank(
        "training speed, tokens/s (log scale)", "test perplexity", height=height,
        x_axis_type="log", x_range=Range1d(left, right), y_range=Range1d(low - room, high + room),
    )  # fmt: skip
    _log_ticks(plot.xaxis, left, right, "0[.]0a")
    _draw_front(plot, front)
    dots = []
    for row in measured:
        mean, sd = _perplexity(row), _sd(row)
        point = {"name": row.name, "speed": _speed(row), "test": mean}
        point |= {"sd": f"{sd:.2f}" if sd else "not known", "low": mean - sd, "high": mean + sd}
        source = ColumnDataSource({column: [value] for column, value in point.items()})
        if sd:
            plot.add_layout(
                models.Whisker(
                    base="speed", lower="low", upper="high", source=source, name=_name(row),
                    line_color=row.colour, upper_head=None, lower_head=None,
                )
            )  # fmt: skip
        dots.append(_dots(plot, row, "speed", "test", source, 12))
        # Below the front nothing else is drawn; a row that is beaten has its name above.
        beaten = row not in front
        plot.text(
            "speed", "test", text="name", source=source, name=_name(row), text_color=row.colour,
            text_font_size="12px", text_baseline="bottom" if beaten else "top", x_offset=8,
            y_offset=-2 if beaten else 2,
        )  # fmt: skip
    _hover(
        plot, dots, ("test perplexity", "@test{0.00}"), ("standard deviation", "@sd"),
        ("training speed", "@speed{0,0} tokens/s"),
    )  # fmt: skip
    return plot


def _draw_front(plot: figure, front: Sequence[PageRow]) -> None:
    """Draw a staircase: the lowest perplexity of the rows that are at least so fast."""
    speed, test = [_speed(front[0])], [_perplexity(front[0])]
    for before, row in pairwise(front):
        speed += [_speed(row), _speed(row)]
        test += [_perplexity(before), _perplexity(row)]
    plot.line(speed, test, name="ink", line_width=1.5, line_dash="dashed", line_alpha=0.6)


def _measured(rows: Sequence[PageRow]) -> list[PageRow]:
    return [row for row in rows if row.tokens_per_second and row.perplexity()]


def _speed(row: PageRow) -> float:
    return row.tokens_per_second or 0.0


def _perplexity(row: PageRow) -> float:
    return row.perplexity() or 0.0


def _sd(row: PageRow) -> float:
    """Return the standard deviation over seeds; 0 for a single seed."""
    return float(row.result.perplexity["test"].sd or 0.0)


# Code lengths


def _code_lengths(rows: Sequence[PageRow]) -> figure | None:
    """Draw each tree's codes (bars) and running text (line) by length; None without any tree."""
    histograms = [(row, row.result.code_lengths) for row in rows if row.result.code_lengths]
    if not histograms:
        return None
    end = max(_last_shown(lengths) for _, lengths in histograms)
    width = -(-end // _MOST_BARS)
    plot = _blank(
        "code length, decisions", "", height=_height_of_lengths(rows),
        x_range=Range1d(0, end + 1), y_range=Range1d(0, len(histograms)),
    )  # fmt: skip
    plot.yaxis.visible = False
    plot.ygrid.ticker = list(range(len(histograms) + 1))
    plot.xaxis.ticker.min_interval = 1
    bars = [
        _strip(plot, row, lengths, len(histograms) - 1 - i, end, width)
        for i, (row, lengths) in enumerate(histograms)
    ]
    _hover(
        plot, bars, ("code length", "@title decisions"), ("codes", "@codes{0,0} (@of_codes{0.0%})"),
        ("running text", "@of_tokens{0.0%}"),
    )  # fmt: skip
    return plot


def _height_of_lengths(rows: Sequence[PageRow]) -> int:
    """Return the CSS pixels that the histograms take; the plot beside them is as high."""
    return _STRIP * sum(bool(row.result.code_lengths) for row in rows) + 70


def _strip(
    plot: figure, row: PageRow, lengths: Sequence[LengthCount], floor: int, end: int, width: int
) -> object:
    """Draw one tree's histogram on its floor, and return its bars."""
    first, codes, tokens = _bars(lengths, end, width)
    of_codes = codes / max(sum(entry.codes for entry in lengths), 1)
    of_tokens = tokens / (sum(entry.tokens for entry in lengths) or 1.0)
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
    bars: object = plot.quad(
        left="left", right="right", bottom="bottom", top="top", source=source, name=_name(row),
        fill_color=row.colour, fill_alpha=0.55, line_color=None,
    )  # fmt: skip
    plot.line("length", "text", source=source, name=_name(row), color=row.colour, line_width=1.5)
    plot.scatter("length", "text", source=source, name=_name(row), color=row.colour, size=4)
    plot.text(
        [end + 1], [floor + 0.94], text=[row.name], name=_name(row), text_color=row.colour,
        text_font_size="12px", text_align="right", text_baseline="top", x_offset=-4,
    )  # fmt: skip
    return bars


def _bars(lengths: Sequence[LengthCount], end: int, width: int) -> tuple[Int64, Float64, Float64]:
    """Return the first length of each bar up to `end`, and the codes and tokens in it."""
    shown = [entry for entry in lengths if entry.length <= end]
    bar = np.array([entry.length - 1 for entry in shown], np.int64) // width
    filled = np.unique(bar)
    codes, tokens = (
        np.bincount(bar, weights)[filled].astype(np.float64)
        for weights in ([float(e.codes) for e in shown], [e.tokens for e in shown])
    )
    return filled * width + 1, codes, tokens


def _last_shown(lengths: Sequence[LengthCount]) -> int:
    """Return the length beyond which there is only a tail."""
    ends = []
    for amount in ([float(entry.codes) for entry in lengths], [entry.tokens for entry in lengths]):
        beyond = np.cumsum(amount[::-1])[::-1]
        ends += [
            e.length for e, left in zip(lengths, beyond, strict=True) if left >= _TAIL * beyond[0]
        ]
    return int(max(ends))


# Frequency bands


def _by_band(
    rows: Sequence[PageRow], bands: Sequence[Band], level: PageRow | None
) -> figure | None:
    """Draw the test perplexity of every row by band, or its ratio to that of one row."""
    shown = [i for i, band in enumerate(bands) if band.tokens]
    total = sum(band.tokens for band in bands)
    scored = [(row, row.result.by_band) for row in rows if row.result.by_band]
    if not shown or not scored:
        return None
    names = [_band_name(bands[i]) for i in shown]
    factors = [
        f"{name}\n{_per_cent(bands[i].tokens / total)}"
        for name, i in zip(names, shown, strict=True)
    ]
    plot = _blank(
        "training count of the word (and share of test tokens)",
        f"test perplexity {f'/ that of {level.name}' if level else '(log scale)'}",
        x_range=models.FactorRange(*factors), y_axis_type="linear" if level else "log",
    )  # fmt: skip
    dots = []
    ones = [1.0] * len(bands)
    for row, values in scored:
        divisors = level.result.by_band or ones if level else ones
        source = ColumnDataSource(
            {
                "name": [row.name] * len(shown),
                "band": factors,
                "title": names,
                "words": [bands[i].words for i in shown],
                "perplexity": [values[i] for i in shown],
                "value": [_ratio(values[i], divisors[i]) for i in shown],
            }
        )
        _line(plot, row, "band", "value", source)
        dots.append(_dots(plot, row, "band", "value", source, 7))
    _hover(
        plot, dots, ("training count", "@title (@words{0,0} words)"),
        ("test perplexity", "@perplexity{0,0.0}"), *([("ratio", "@value{0.000}")] if level else []),
    )  # fmt: skip
    if level is None:
        plot.yaxis.formatter = NumeralTickFormatter(format="0,0")
    else:
        plot.add_layout(models.Span(location=1, dimension="width", line_dash="dashed", name="ink"))
    return plot


def _ratio(value: float | None, divisor: float | None) -> float:
    return value / divisor if value and divisor else math.nan


def _band_name(band: Band) -> str:
    if band.least is None or band.most is None:
        return "unknown"
    if band.most == 0:
        return "never"
    if band.least == band.most:
        return f"{band.least:,}"
    return f"{band.least:,}\N{EN DASH}{band.most:,}"


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f}%" if share >= 0.00995 else f"{100 * share:.2g}%"

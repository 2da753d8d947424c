"""Test perplexity by how frequent the predicted word is, to see which words a tree helps.

By bands of training counts, as the results divide the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bokeh.models import ColumnDataSource, FactorRange, NumeralTickFormatter, Span
from bokeh.plotting import figure

from hstree.experiments.results import Band
from hstree.report.plots.blank import blank, hover, mark
from hstree.report.rows import Row

_AXIS = "times in the training text (and share of test tokens)"


def by_band(rows: Sequence[Row], bands: Sequence[Band]) -> figure | None:
    """Draw every row's perplexity in each band."""
    drawn = _bands(rows, bands, None, "test perplexity (log scale)", y_axis_type="log")
    if drawn is not None:
        drawn.yaxis.formatter = NumeralTickFormatter(format="0,0")
    return drawn


def by_band_to(rows: Sequence[Row], bands: Sequence[Band], to: Row) -> figure | None:
    """Draw every row's perplexity in each band as a multiple of one row's, which is level."""
    label = f"test perplexity / that of {to.name}"
    drawn = _bands(rows, bands, to, label)
    if drawn is not None:
        drawn.add_layout(Span(location=1, dimension="width", line_dash="dashed", name="ink"))
    return drawn


def _bands(
    rows: Sequence[Row], bands: Sequence[Band], to: Row | None, label: str, **options: Any
) -> figure | None:
    shown = [i for i, band in enumerate(bands) if band.tokens]
    total = sum(band.tokens for band in bands)
    scored = [row for row in rows if row.result.by_band]
    if not shown or not scored:
        return None
    factors = [f"{band_name(bands[i])}\n{_per_cent(bands[i].tokens / total)}" for i in shown]
    drawn = blank(_AXIS, label, x_range=FactorRange(*factors), **options)
    dots = []
    for row in scored:
        values = row.result.by_band or []
        level = to.result.by_band if to and to.result.by_band else [1.0] * len(bands)
        source = ColumnDataSource(
            {
                "name": [row.name] * len(shown),
                "band": factors,
                "title": [band_name(bands[i]) for i in shown],
                "words": [bands[i].words for i in shown],
                "perplexity": [values[i] for i in shown],
                "value": [_ratio(values[i], level[i]) for i in shown],
            }
        )
        drawn.line(
            "band", "value", source=source, name=mark(row), color=row.colour, line_width=2,
            line_dash=row.dash,
        )  # fmt: skip
        dots.append(
            drawn.scatter(
                "band", "value", source=source, name=mark(row), color=row.colour,
                marker=row.marker, size=7,
            )
        )  # fmt: skip
    beside = [("to the level", "@value{0.000}")] if to else []
    hover(
        drawn,
        dots,
        ("words that stand", "@title times (@words{0,0} of them)"),
        ("test perplexity", "@perplexity{0,0.0}"),
        *beside,
    )
    return drawn


def _ratio(value: float | None, level: float | None) -> float:
    return value / level if value and level else math.nan


def band_name(band: Band) -> str:
    """Return a band in words: "never", "1-9", "out of vocabulary"."""
    least, most = band.least, band.most
    if least is None:
        return "unknown"
    if most is None:
        return f"{least:,}+"
    if most == 0:
        return "never"
    return f"{least:,}" if least == most else f"{least:,}\N{EN DASH}{most:,}"


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f}%" if share >= 0.00995 else f"{100 * share:.2g}%"

"""What the plots show, as far as that is not seen in a browser."""

import random

import pytest

pytest.importorskip("bokeh", reason="the report extra is not installed")

from bokeh.models import LogAxis

from hstree.experiments.results import Spread
from hstree.report import plots
from hstree.report.plots import pareto
from hstree.report.table import PageRow
from tests.experiments.made_up import a_row


def rows(places):
    return [
        PageRow(
            i, a_row(tokens_per_second=speed, perplexity={"test": Spread(mean=test, sd=None, n=1)})
        )
        for i, (speed, test) in enumerate(places)
    ]


def test_the_front_holds_just_the_rows_that_none_beats():
    draw = random.Random(0)
    for _ in range(200):
        places = {(draw.randint(1, 6), draw.randint(1, 6)) for _ in range(draw.randint(1, 8))}
        drawn = rows(sorted(places))
        unbeaten = {
            (s, t)
            for s, t in places
            if not any(s2 >= s and t2 <= t and (s2, t2) != (s, t) for s2, t2 in places)
        }
        front = [(row.tokens_per_second, row.perplexity()) for row in pareto(drawn)]
        assert set(front) == unbeaten
        assert front == sorted(front, reverse=True)


def test_rows_without_a_speed_are_not_on_the_front():
    assert pareto(rows([(None, 100.0)])) == []


@pytest.mark.parametrize(
    ("low", "high"), [(0.08, 1.1), (0.05, 0.07), (141.0, 143.2), (90, 400), (1, 40_000)]
)
def test_a_log_axis_has_ticks_that_are_told_apart(low, high):
    axis = LogAxis()
    plots._log_ticks(axis, low, high)
    ticks = axis.ticker.ticks
    labels = [axis.major_label_overrides[tick] for tick in ticks]
    assert len(set(labels)) == len(ticks) >= 3
    assert all(low <= float(label.replace(",", "")) <= high for label in labels)

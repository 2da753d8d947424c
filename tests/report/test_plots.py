"""What the plots show, as far as that is not seen in a browser."""

import random
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise

import pytest
from hstree.report.charts import pareto, short, staircase

from hstree.experiments.results import RowRun, ScoringSpeed, SecondsFromText, Spread
from hstree.report.plots import curves_of, plots_of
from hstree.report.table import PageRow, rows_of
from hstree.training.trainer import Epoch
from tests.experiments.made_up import a_comparison, a_row, a_tree


def trained(name, *, test=100.0, speed=1000.0, each=10.0, start=0.0, valid=(130.0, 110.0)):
    epochs = [
        Epoch(epoch=i + 1, train=None, valid=v, seconds=999.0, tokens_per_second=1.0,
              learning_rate=0.1)
        for i, v in enumerate(valid)
    ]  # fmt: skip
    run = RowRun(seed=0, folder="runs", perplexity={}, epochs=epochs, seconds=9.0)
    spread = Spread(mean=test, sd=None, n=1)
    return a_row(
        name=name, runs=[run], seconds_per_epoch=each, tokens_per_second=speed,
        perplexity=dict.fromkeys(("valid", "test", "test_without_oov"), spread),
        scoring=ScoringSpeed(nll=5 * speed, top_k=100.0),
        from_text=SecondsFromText(seconds=start + each * len(valid), vectors=start, tree=0.0,
                                  preparation=0.0, training=each * len(valid), speed_up=None),
    )  # fmt: skip


def charts(*rows):
    comparison = a_comparison(*rows)
    return {chart.id: chart for chart in plots_of(comparison, rows_of(comparison))}


def test_the_front_holds_just_the_points_that_none_beats():
    draw = random.Random(0)
    for _ in range(200):
        places = {(draw.randint(1, 6), draw.randint(1, 6)) for _ in range(draw.randint(1, 8))}
        unbeaten = {
            (s, t)
            for s, t in places
            if not any(s2 >= s and t2 <= t and (s2, t2) != (s, t) for s2, t2 in places)
        }
        front = pareto(sorted(places))
        assert set(front) == unbeaten
        assert front == sorted(front, reverse=True)
        assert staircase(front)[::2] == front


def test_a_front_of_costs_is_the_mirror_image():
    points = [(1.0, 5.0), (2.0, 4.0), (2.0, 6.0), (3.0, 4.0), (4.0, 1.0)]
    assert pareto(points, "left") == [(1.0, 5.0), (2.0, 4.0), (4.0, 1.0)]
    assert pareto(points, "right") == [(4.0, 1.0)]
    mirrored = pareto([(-x, y) for x, y in points], "right")
    assert mirrored == [(-x, y) for x, y in pareto(points, "left")]


def test_rows_that_are_beaten_are_grey_by_the_cost_of_the_plot():
    rows = [
        trained("quick", test=120.0, speed=900.0, each=1.0),
        trained("good", test=90.0, speed=100.0, each=9.0),
        trained("prepared", test=110.0, speed=950.0, each=1.0, start=50.0),
        trained("beaten", test=125.0, speed=90.0, each=10.0),
    ]
    scores = (9.0, 50.0, 8.0, 60.0)
    rows = [
        replace(row, tree=a_tree(scores_per_target=each))
        for row, each in zip(rows, scores, strict=True)
    ]
    found = charts(*rows)

    def grey(chart):
        root = ET.fromstring(str(found[chart].svg).replace("<svg", '<svg xmlns="s"', 1))
        groups = [g for g in root.iter("{s}g") if "beaten" in g.get("class", "").split()]
        return sorted({rows[int(g.get("data-row"))].name for g in groups}), len(groups)

    assert grey("plot-speed") == (["beaten", "quick"], 4)
    assert grey("plot-frontier-seconds") == (["beaten", "prepared"], 4)
    assert grey("plot-frontier-scores") == (["beaten", "quick"], 4)
    assert found["plot-frontier-seconds"].table.lines[2][:3] == ("prepared", "52.0", "110.0")
    assert "the lowest time quick" in found["plot-frontier-seconds"].alt


def test_times_are_those_of_the_table_from_the_text():
    """The training itself took 999 seconds an epoch: other load on the machine."""
    rows = [PageRow(0, trained("a", each=10.0)), PageRow(1, trained("b", each=4.0, start=25.0))]
    assert [curve.seconds for curve in curves_of(rows)] == [[10.0, 20.0], [29.0, 33.0]]
    table = charts(*(row.result for row in rows))["plot-seconds"].table
    assert [line[3] for line in table.lines] == ["10.0", "20.0", "29.0", "33.0"]
    ends = [curve.seconds[-1] for curve in curves_of(rows)]
    assert ends == [row.result.from_text.seconds for row in rows]


def test_a_part_of_an_epoch_takes_its_share():
    row = trained("a", valid=(130.0, 120.0))
    epochs = [row.runs[0].epochs[0], replace(row.runs[0].epochs[1], share=0.5)]
    row = replace(row, runs=[replace(row.runs[0], epochs=epochs)])
    assert curves_of([PageRow(0, row)])[0].seconds == [10.0, 15.0]


def test_a_row_whose_time_is_not_known_is_named():
    known, unknown = trained("a"), replace(trained("b"), from_text=None)
    assert "left out, for b" in charts(known, unknown)["plot-seconds"].caption


def test_there_are_plots_of_what_a_trained_model_costs():
    found = charts(trained("a"), trained("b", speed=2000.0, test=90.0))
    assert found["plot-scoring-nll"].table.lines[1][:3] == ("b", "10,000", "90.00")
    assert "the highest speed b" in found["plot-scoring-nll"].alt
    assert "plot-scoring-top-k" in found


@pytest.mark.parametrize("n", [1, 2, 30])
def test_every_chart_is_well_formed_and_has_words_and_data(n):
    rows = [trained(f"row <{i}> & its name", speed=100.0 + i, test=90.0 + i) for i in range(n)]
    for chart in charts(*rows).values():
        root = ET.fromstring(str(chart.svg).replace("<svg", '<svg xmlns="s"', 1))
        for axis in ("x", "y") if chart.y else ("x",):
            assert len(root.findall(f".//{{s}}g[@class='{axis} ticks']/{{s}}g")) >= 2, chart.id
        assert chart.alt
        assert chart.table.lines
        assert all(len(line) == len(chart.table.titles) for line in chart.table.lines)


def test_names_beside_a_chart_do_not_overlap():
    rows = [trained(f"row {i}", test=100.0 + 0.001 * i, speed=100.0 + i) for i in range(30)]
    svg = str(charts(*rows)["plot-speed"].svg)
    places = sorted(float(y) for y in re.findall(r'<text x="311.0" y="([0-9.]+)">row', svg))
    assert len(places) == 30
    assert min(b - a for a, b in pairwise(places)) >= 14.9


def test_a_long_name_is_cut_in_its_middle():
    assert short("gmm --epsilon 0.4 --trees 4") == "gmm --ep\N{HORIZONTAL ELLIPSIS}-trees 4"
    assert short("huffman") == "huffman"

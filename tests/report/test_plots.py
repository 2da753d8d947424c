"""Content of the plots, as far as it is not seen in a browser."""

import base64
import csv
import io
import os
import random
import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from hstree.experiments.results import Band, JobRecord, Timings
from hstree.report.plot import Axis, Mark, Plot, draw, make_styles, pareto, plot_links, shorten
from hstree.report.plots import make_plots
from tests.report.comparison import a_candidate, a_comparison, epoch


def same_as_gold(name, content):
    """Compare with a file of when somebody looked at it; with WRITE_GOLD set, write it first."""
    file = Path(__file__).parent / "gold" / name
    if os.environ.get("WRITE_GOLD"):
        file.write_text(content, encoding="utf-8")
    assert content == file.read_text(encoding="utf-8"), f"{file} is other; see `same_as_gold`"


def figures(*candidates):
    return {figure.id: figure for figure in make_plots(a_comparison(*candidates))}


def lines(figure):
    """The lines of the table of a figure's data."""
    return [mark.values for mark in figure.marks if mark.values]


def drawn(figure, candidates):
    return ET.fromstring(
        str(draw(figure, make_styles(candidates))).replace("<svg", '<svg xmlns="s"', 1)
    )


def trained(name, *, before=0.0, each=10.0, shares=(1.0, 1.0), **changed):
    """A candidate whose training took 999 seconds per epoch beside other work, `each` by itself."""
    epochs = [epoch(i + 1, valid=130.0 - i, share=s) for i, s in enumerate(shares)]
    jobs = [JobRecord(seed=0, folder="runs", perplexity={}, epochs=epochs)]
    steps = Timings(vectors=before, training=each * sum(shares))
    return a_candidate(name, jobs=jobs, timings=steps, **changed)


def test_the_front_holds_just_the_points_that_none_beats():
    draws = random.Random(0)
    for _ in range(200):
        points = {(draws.randint(1, 6), draws.randint(1, 6)) for _ in range(draws.randint(1, 8))}
        unbeaten = {
            (s, t)
            for s, t in points
            if not any(s2 <= s and t2 <= t and (s2, t2) != (s, t) for s2, t2 in points)
        }
        front = pareto(points)
        assert set(front) == unbeaten
        assert front == sorted(front)


def test_candidates_that_are_beaten_are_grey():
    candidates = [
        trained("quick", test=120.0, speed=900.0, each=1.0),
        trained("good", test=90.0, speed=100.0, each=9.0),
        trained("prepared", test=110.0, speed=950.0, each=1.0, before=50.0),
        trained("beaten", test=125.0, speed=90.0, each=10.0),
        trained("seen", test=80.0, speed=999.0, each=0.1, seen="all"),  # cannot be the answer
    ]
    svg = drawn(figures(*candidates)["plot-seconds"], candidates)
    grey = [g.get("data-row") for g in svg.iter("{s}g") if "beaten" in g.get("class", "").split()]
    assert sorted(candidates[int(candidate)].name for candidate in grey) == ["beaten", "prepared"]
    (front,) = (line for line in svg.iter("{s}polyline") if line.get("class") == "front")
    corners = [point.split(",") for point in front.get("points").split()]
    assert all(a[0] == b[0] or a[1] == b[1] for a, b in pairwise(corners)), "a staircase"


def test_curves_end_at_the_seconds_of_the_table():
    """They begin after the vectors, the tree and the preparation of the output layer."""
    steps = Timings(vectors=25.0, tree=2.0, preparation=3.0, training=8.0)
    candidates = [trained("a"), msgspec.structs.replace(trained("b"), timings=steps)]
    figure = figures(*candidates)["plot-learning"]
    assert [line[3] for line in lines(figure)] == [10.0, 20.0, 34.0, 38.0]
    assert [candidate.timings.total for candidate in candidates] == [20.0, 38.0]


def test_a_part_of_an_epoch_takes_its_share():
    figure = figures(trained("a", shares=(1.0, 0.5)))["plot-learning"]
    assert [line[3] for line in lines(figure)] == [10.0, 15.0]


def test_a_candidate_whose_time_is_not_known_is_left_out_of_the_plots_over_time():
    unknown = a_candidate("b", timings=Timings(tree=None))
    found = figures(trained("a"), unknown)
    for plot in ("plot-seconds", "plot-learning"):
        assert {line[0] for line in lines(found[plot])} == {"a"}


@pytest.mark.parametrize(
    ("each", "test", "note"),
    [
        (11.0, 99.0, None),
        (400.0, 99.0, "\N{RIGHTWARDS ARROW} 800 s"),
        (11.0, 640.0, "\N{UPWARDS ARROW} 640"),
    ],
)
def test_a_flat_softmax_far_from_the_others_is_at_the_edge_with_a_note(each, test, note):
    candidates = [trained("a"), trained("b", test=97.0, each=9.0)]
    flat = trained("flat", each=each, test=test, sd=1.0, n=2)
    plot = figures(*candidates, flat)["plot-seconds"]
    assert plot.notes.get(2) == note
    (dot,) = (mark for mark in plot.marks if mark.candidate == 2 and mark.kind == "dot")
    assert dot.values == ["flat", 2 * each, test, 1.0]
    x, y = dot.points[0]
    assert (x, y) == (min(x, 22.0), min(y, 100.0))
    assert (note or "") in str(draw(plot, make_styles([*candidates, flat])))


def test_several_models_and_ngram_models_are_points_without_epochs():
    candidates = [trained("a"), a_candidate("2 x a", models=2), a_candidate("kn3", kind="ngram")]
    figure = figures(*candidates)["plot-learning"]
    points = [line for line in lines(figure) if line[0] != "a"]
    assert [line[:3] for line in points] == [["2 x a", None, None], ["kn3", None, None]]
    assert [line[3:] for line in points] == [[70.0, pytest.approx(110)]] * 2
    assert [style.line for style in make_styles(candidates)] == ["solid", "dashed", "dashed"]


def test_figures_of_ngram_models_alone_have_no_front():
    candidates = [a_candidate("kn3", kind="ngram")]
    svg = drawn(figures(*candidates)["plot-seconds"], candidates)
    assert not [line for line in svg.iter("{s}polyline") if line.get("class") == "front"]


@pytest.mark.parametrize("n", [1, 2, 30])
def test_every_figure_is_well_formed_and_has_words_and_data(n):
    candidates = [
        trained(f"candidate <{i}> & its name", speed=100.0 + i, test=90.0 + i) for i in range(n)
    ]
    for figure in figures(*candidates).values():
        root = drawn(figure, candidates)
        for axis in ("x", "y"):
            assert len(root.findall(f".//{{s}}g[@class='{axis} ticks']/{{s}}g")) >= 2, figure.id
        assert root.find("{s}desc").text
        assert lines(figure)
        assert all(len(line) == len(figure.columns) for line in lines(figure))


@pytest.mark.parametrize("other", ["flat", "best"])
def test_bands_are_relative_to_flat_or_to_the_best_candidate(other):
    bands = [Band(least=1, most=9, words=2, tokens=30), Band(least=10, most=99, words=0, tokens=0)]
    candidates = [
        a_candidate("a", by_band=[50.0, None]),
        a_candidate(other, by_band=[40.0, None], valid=90.0),
    ]
    (plot,) = (p for p in make_plots(a_comparison(*candidates, bands=bands)) if p.x.names)
    assert lines(plot) == [["a", "1+", 2, 30, 50.0, 25.0], [other, "1+", 2, 30, 40.0, 0.0]]
    assert other in plot.y.title


PLOT = Plot(
    "plot-x", "A <title>", "", Axis("x, s", "log"), Axis("y"), ["candidate", "x", "y"],
    [Mark(0, "dot", [(1.0, 2.5)], ["=a", 1.0, 2.5]), Mark(1, "dot", [(30, 2.0)], ["b", 30, None])],
    front=True,
)  # fmt: skip


def file_content(figure, ending):
    candidates = [a_candidate("=a"), a_candidate("b")]
    links = plot_links(figure, make_styles(candidates, candidates[1]))
    (link,) = (link for link in links if link.name == f"{figure.id}.{ending}")
    return base64.b64decode(link.href.partition(",")[2]).decode()


def test_the_data_of_a_figure_are_csv():
    lines = list(csv.reader(io.StringIO(file_content(PLOT, "csv"))))
    assert lines == [["candidate", "x", "y"], ["'=a", "1.0", "2.5"], ["b", "30", ""]]


def test_a_figure_alone_is_the_gold_svg():
    same_as_gold("plot.svg", file_content(PLOT, "svg"))


def test_the_marks_of_all_plots_are_the_gold_data():
    candidates = [
        trained("flat", speed=100.0),
        trained("a & b", test=99.0),
        a_candidate("kn3", kind="ngram"),
    ]
    marks = {plot.id: plot.marks for plot in make_plots(a_comparison(*candidates))}
    same_as_gold("marks.json", msgspec.json.format(msgspec.json.encode(marks)).decode())


def test_names_beside_a_figure_do_not_overlap():
    candidates = [
        a_candidate(f"candidate {i}", test=100.0 + 0.001 * i, speed=100.0 + i) for i in range(30)
    ]
    svg = str(draw(figures(*candidates)["plot-seconds"], make_styles(candidates)))
    ys = sorted(float(y) for y in re.findall(r'<text x="303.0" y="([0-9.]+)">candidate', svg))
    assert len(ys) == 30
    assert min(b - a for a, b in pairwise(ys)) >= 14.9


def test_a_long_name_is_cut_in_its_middle():
    assert shorten("gmm epsilon=0.4 trees=4", 17) == "gmm epsi\N{HORIZONTAL ELLIPSIS} trees=4"
    assert shorten("huffman", 7) == "huffman"

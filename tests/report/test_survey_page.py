"""The page of a survey, and layers without a tree on the page of a comparison."""

import re

import pytest
from hstree.experiments.evaluation import corpus_splits
from hstree.experiments.survey import Speed, SurveyRow, survey

from hstree import build
from hstree.errors import FileFormatError
from hstree.experiments import compare, results
from hstree.layers.registry import LAYERS
from hstree.report import write, write_survey
from hstree.report.answer import answers_of
from hstree.report.table import rows_of, times
from tests.experiments.made_up import a_comparison, a_row
from tests.texts import corpus_of, markov_lines

QUICK = {"dim": 8, "context": 2, "epochs": 2, "batch_size": 64}
ROWS = ["huffman", "own", "flat"]


@pytest.fixture(autouse=True)
def short_turns(monkeypatch):
    monkeypatch.setattr("hstree.experiments.throughput.TURN", 0.001)
    monkeypatch.setattr("hstree.experiments.throughput.TESTING_TURN", 0.001)
    monkeypatch.setitem(LAYERS.native, "own", "tests.layers.dense:SelfNormalised")


@pytest.fixture
def splits(tmp_path):
    return corpus_splits(corpus_of(tmp_path, markov_lines(2_500, 0)[0]))


def test_the_page_of_a_survey_has_its_table_and_plots(splits, tmp_path):
    home = tmp_path / "s"
    found = survey(splits, ROWS, home, budget=0.02, kneser_ney=2, **QUICK)
    page = write_survey(home)
    assert page == home / "survey.html"
    text = page.read_text()
    assert "<title>Which output layer for text.txt?</title>" in text
    for name in ROWS:
        assert f"<bdi>{name}</bdi>" in text
    assert "after equal seconds" in text
    assert "plot-seconds" in text
    assert 'id="explorer"' not in text
    ln_z = found.row("equal_epochs", "own").log_normaliser
    one_score = next(row for row in found.rows if row.name == "own").unnormalised
    assert f"{times(one_score.times_flat)}" in text
    assert f"unnormalised {ln_z.unnormalised_perplexity:.2f}" in text
    # Curves of both regimes: one dot per validation of every run
    (chart,) = re.findall(r'<figure id="plot-seconds".*?</svg>', text, re.S)
    runs = [run for regime in found.regimes().values() for row in regime.rows for run in row.runs]
    assert chart.count('class="dot"') == sum(len(run.epochs) for run in runs)
    assert write_survey(home, tmp_path / "again.html").read_bytes() == page.read_bytes()


@pytest.mark.parametrize(("low", "said"), [(0.98, "None is faster than flat"), (1.1, "own")])
def test_the_fastest_row_beats_flat_in_every_round(low, said):
    from hstree.report.survey_page import _fastest

    given = {"parameters": 1, "parameters_to_flat": 1.0, "published": None, "with_kneser_ney": {}}
    speed = Speed(tokens_per_second=500.0, times_flat=1.3, low=low, high=1.5)
    names = ("training", "nll", "log_prob", "top_k")
    row = SurveyRow(name="own", approach="", is_flat=False, **dict.fromkeys(names, speed), **given)
    assert said in str(_fastest(row, speed))


def test_a_survey_by_epochs_alone_has_a_page(splits, tmp_path):
    survey(splits, ["huffman"], tmp_path / "s", **QUICK)
    text = write_survey(tmp_path / "s").read_text()
    assert "after equal seconds?" not in text
    with pytest.raises(FileFormatError, match=r"survey\.json"):
        write_survey(tmp_path)


def test_layers_without_a_tree_are_rows_of_the_page(splits, tmp_path):
    home = tmp_path / "c"
    compare(splits, [*ROWS, "kn2"], home, **QUICK)
    text = write(home).read_text()
    assert "Which output layer for text.txt?" in text
    assert "<bdi>own</bdi>" in text
    # Only trees are explored.
    rows = rows_of(results.load(home))
    assert [row.is_tree for row in rows] == [True, False, True, False]
    assert [row.dash for row in rows] == ["solid", "solid", "solid", "dashed"]


def test_a_page_of_layers_alone_has_no_explorer(splits, tmp_path):
    home = tmp_path / "c"
    compare(splits, ["own"], home, **QUICK)
    assert 'id="explorer"' not in write(home).read_text()
    tree = build("flat", splits.train)
    assert compare(splits, ["own", tree], home, **QUICK).rows[0].kind == "layer"


def test_the_answer_may_be_a_layer():
    layer = a_row(kind="layer", name="fast", tokens_per_second=100.0, seconds_per_epoch=2.0)
    choice = results.Choice(by="valid", among=2, best="fast", within=0.03, chosen="fast", tied=[],
                            rival="tree")  # fmt: skip
    found = a_comparison(a_row(name="tree", tokens_per_second=50.0), layer, choice=choice)
    said = {a.question: str(a.text) for a in answers_of(found, rows_of(found))}
    assert said["Which output layer?"].startswith("Use <strong>fast</strong>: test perplexity")
    assert "chosen from 2 output layers" in said["Which output layer?"]
    assert said["What does it cost?"].startswith("No tree; 2.00 seconds per epoch, 100 tokens/s")
    assert said["And if only speed counts?"] == "The same output layer: no other trains faster."
    assert "The best of the other output layers, tree" in said["How sure is that?"]

"""`hstree report`."""

import pytest

from hstree.builders import build
from hstree.data.vocabulary import Vocabulary
from tests.report.comparison import leave

pytest.importorskip("bokeh", reason="the report extra is not installed")


@pytest.fixture
def comparison(tmp_path):
    vocabulary = Vocabulary(["the", "of", "bank"], [5, 3, 1])
    trees = {method: build(method, vocabulary) for method in ("huffman", "flat")}
    return leave(tmp_path / "compared", trees)


def test_the_page_is_left_beside_the_results(hstree, comparison):
    ran = hstree("report", "compared")
    assert (ran.status, ran.err) == (0, "")
    assert "compared/report.html" in ran.out
    assert "use the <strong>flat softmax</strong>" in (comparison / "report.html").read_text()


def test_the_page_may_go_elsewhere(hstree, comparison, tmp_path):
    ran = hstree("report", "compared", "-o", "page.html", "--quiet")
    assert (ran.status, ran.err) == (0, "")
    assert (tmp_path / "page.html").stat().st_size > 1_000_000  # the plotting library is in it
    assert not (comparison / "report.html").exists()


def test_a_folder_without_results_is_refused(refused, tmp_path):
    (tmp_path / "empty").mkdir()
    refused("report", "empty", saying="hstree compare")


def test_a_page_of_another_ending_is_refused(refused, comparison):
    refused("report", "compared", "-o", "page.pdf", status=2, saying=".html")


def test_a_missing_tree_is_named(refused, comparison):
    (comparison / "runs/row-0/seed-0/tree.json").unlink()
    refused("report", "compared", saying="runs/row-0/seed-0/tree.json")


def test_another_tree_than_the_compared_one_is_refused(refused, comparison):
    build("random", Vocabulary(["a", "b", "c"], [1, 1, 1])).save(
        comparison / "runs/row-0/seed-0/tree.json"
    )
    refused("report", "compared", saying="is not the tree that the results name")


def test_without_the_plotting_library_the_message_says_how_to_get_it(
    refused, comparison, monkeypatch
):
    monkeypatch.setitem(__import__("sys").modules, "bokeh", None)
    refused("report", "compared", saying="pip install 'hstree[report]'")

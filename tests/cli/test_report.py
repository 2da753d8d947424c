"""`hstree report`."""

import pytest

from tests.report.comparison import leave, small_trees


@pytest.fixture
def comparison(tmp_path):
    return leave(tmp_path / "compared", small_trees())


def test_the_page_is_left_beside_the_results(hstree, comparison):
    ran = hstree("report", "compared")
    assert "compared/report.html" in ran.out
    assert (
        "Recommended: <strong><bdi>flat</bdi></strong> ("
        in (comparison / "report.html").read_text()
    )


def test_the_file_of_the_results_stands_for_its_folder(hstree, refused, comparison):
    hstree("report", "compared/results.json")
    assert (comparison / "report.html").exists()
    for nothing in ("compared/report.html", "."):
        refused("report", nothing, saying="with compare")

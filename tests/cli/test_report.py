"""`hstree report`."""

import json
import time

import pytest

from hstree._files import write_json
from tests.report.comparison import leave, small_trees


@pytest.fixture
def comparison(tmp_path):
    return leave(tmp_path / "compared", small_trees())


def test_the_page_is_left_beside_the_results(hstree, comparison):
    ran = hstree("report", "compared")
    assert (ran.status, ran.err) == (0, "")
    assert "compared/report.html" in ran.out
    assert "<strong><bdi>flat</bdi></strong>: " in (comparison / "report.html").read_text()


def test_the_page_may_go_elsewhere(hstree, comparison, tmp_path):
    ran = hstree("report", "compared", "-o", "page.html")
    assert (ran.status, ran.err) == (0, "")
    assert (tmp_path / "page.html").stat().st_size > 10_000
    assert not (comparison / "report.html").exists()


def test_the_file_of_the_results_stands_for_its_folder(hstree, refused, comparison):
    ran = hstree("report", "compared/results.json")
    assert (ran.status, ran.err) == (0, "")
    assert (comparison / "report.html").exists()
    refused("report", "compared/report.html", status=2, saying="give the folder that")
    refused("report", "compared", "-o", "page.pdf", status=2, saying=".html")
    refused("report", ".", saying="hstree compare")


def test_the_page_follows_a_comparison_until_no_row_is_pending(hstree, comparison, monkeypatch):
    file = comparison / "results.json"
    whole = json.loads(file.read_bytes())
    first = [row for row in whole["rows"] if row["name"] == "flat"]
    write_json(file, whole | {"rows": first, "choice": None, "pending": ["huffman", "kn3"]})
    pages = []

    def go_on(seconds):
        pages.append((comparison / "report.html").read_text())
        write_json(file, whole | ({"pending": ["kn3"]} if len(pages) == 1 else {}))

    monkeypatch.setattr(time, "sleep", go_on)
    ran = hstree("report", "compared", "--follow")
    assert (ran.status, ran.err) == (0, "")
    assert [line.split()[1:] for line in ran.out.splitlines() if "pending" in line] == [
        ["kn3"], ["none"],
    ]  # fmt: skip
    after = [page.partition("not finished yet")[2][:200] for page in pages]
    assert ["huffman" in text for text in after] == [True, False]
    assert ["kn3" in text for text in after] == [True, True]
    assert "not finished yet" not in (comparison / "report.html").read_text()


def test_a_comparison_without_a_finished_row_has_a_page(hstree, comparison):
    file = comparison / "results.json"
    whole = json.loads(file.read_bytes())
    write_json(file, whole | {"rows": [], "choice": None, "pending": ["huffman"]})
    ran = hstree("report", "compared")
    assert (ran.status, ran.err) == (0, "")
    page = (comparison / "report.html").read_text()
    assert "huffman" in page.partition("not finished yet")[2][:200]

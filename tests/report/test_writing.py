"""The page as a file: whole, the same every time, and nothing in it that points outside."""

import re

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from hstree import report
from hstree.builders import build
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.experiments import results
from hstree.experiments.recommendation import choose
from hstree.experiments.results import (
    Mixture,
    NormaliserRecord,
    Speed,
)
from hstree.report import page as pages
from hstree.report.table import make_table
from tests.report.comparison import (
    a_candidate,
    a_comparison,
    chosen,
    leave,
    small_trees,
    write_page,
)

NO_OOV = {"train": 0, "valid": 0, "test": 0}


@pytest.fixture
def folder(tmp_path):
    return leave(tmp_path / "compared", small_trees())


def markup(file):
    """The page without its scripts."""
    return re.sub(r"<script>.*?</script>", "", file.read_text(), flags=re.DOTALL)


def page_data(file):
    """The page as data, from the JSON in it."""
    json = re.search(r'<script type="application/json" id="page">(.*?)</script>', file.read_text())
    return msgspec.json.decode(json[1], type=pages.Page)


def test_the_markup_is_made_of_the_data_in_the_page(folder):
    file = write_page(folder)
    assert pages.render(page_data(file), folder) == file.read_text()


def test_a_comparison_writes_the_same_page_from_anywhere(folder, tmp_path, monkeypatch):
    """The page has its own results, regardless of the files now in the folder."""
    monkeypatch.chdir(folder)
    comparison = results.load(".")
    page = write_page(folder).read_bytes()
    (folder / results.JSON).unlink()
    monkeypatch.chdir(tmp_path)
    path = report.write(comparison, "a page.html")
    assert (tmp_path / path).read_bytes() == page


def test_a_notebook_shows_the_recommendation_and_the_table(folder):
    html = results.load(folder)._repr_html_()
    assert html.startswith("<p>Recommended: flat (validation perplexity ")
    assert "<td>huffman</td>" in html or ">huffman</td>" in html


def test_nothing_is_fetched(folder):
    page = markup(write_page(folder)).partition('id="page"')[0]
    assert re.findall(r"""(?:src|href)=["'](?!#|data:)[^"']*""", page) == []
    assert "http://" not in page
    assert "https://" not in page
    assert "default-src &#39;none&#39;" in page


def test_columns_appear_when_a_candidate_has_them():
    plain = [a_candidate("huffman"), a_candidate("flat")]
    speed = Speed(rounds=[960.0], times_flat=9.6, low=9.0, high=10.0)
    own = a_candidate(
        "own", kind="layer", unnormalised=speed, mixture=Mixture("kn5", weight=0.25, test=87.5),
        log_normaliser=NormaliserRecord(mean=-0.034, sd=0.1, unnormalised_perplexity=91.0),
    )  # fmt: skip
    before = {column.title for column in make_table(a_comparison(*plain, oov=NO_OOV))[0]}
    columns, candidates = make_table(a_comparison(*plain, own))
    cells = dict(zip((column.title for column in columns), candidates[2], strict=True))
    assert {"test", "training", "training time", "valid"} <= before
    assert cells.keys() - before == {
        *("one score", "mixed with kn5", "ln Z", "unnormalised", "no OOV"),
    }
    texts = {title: (cell.text, cell.note) for title, cell in cells.items()}
    assert texts["one score"] == ("9.60\N{MULTIPLICATION SIGN}", "9.00\N{EN DASH}10.0\n960/s")
    assert texts["mixed with kn5"] == ("87.50", "weight 0.25")
    assert texts["ln Z"] == ("\N{MINUS SIGN}0.034", "± 0.100")


def test_a_tree_of_vectors_says_which_where_the_comparison_made_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0).normal(size=(3, 2))
    gmm = build("gmm", WordVectors(["the", "of", "bank"], draw))
    gmm.save("mine.json")
    page = write_page(
        leave(tmp_path / "c", {"mine.json": gmm, "gmm trees=1": gmm, **small_trees()})
    )
    made = {tree.name: tree.description for tree in page_data(page).trees.trees}
    assert {n for n, how in made.items() if "mean predicted vector" in how} == {"gmm trees=1"}


@pytest.mark.parametrize(
    "changes",
    [{"seeds": (0,), "ngrams": ()}, {"oov": 0, "bands": []}, {"trees": small_trees(["a"])}],
)
def test_a_page_needs_neither_seeds_nor_bands_nor_words(tmp_path, changes):
    assert write_page(leave(tmp_path / "c", **{"trees": small_trees(), **changes})).exists()


def test_a_page_of_layers_alone_has_no_explorer(folder):
    comparison = results.load(folder)
    layers = replace(comparison, candidates=[a_candidate("sampled", kind="layer")],
                                     choice=chosen("sampled"), bands=[])  # fmt: skip
    page = markup(report.write(layers.in_folder(folder), folder / "page.html"))
    assert 'id="explorer"' not in page


@pytest.mark.parametrize("damage", ["missing", "another", "broken"])
def test_a_candidate_whose_tree_is_lost_is_shown_without_it(folder, damage):
    file = folder / results.load(folder).candidates[0].tree_file
    file.unlink()
    if damage == "another":
        build("random", Vocabulary(["a", "b", "c"], [1, 1, 1])).save(file)
    if damage == "broken":
        file.write_text("{")
    page = write_page(folder)
    assert "Tree not shown: huffman: " in markup(page)
    assert "<bdi>huffman</bdi>" in markup(page)
    assert page_data(page).trees is None


def test_a_tree_is_packed_once_and_the_flat_softmax_is_none(tmp_path):
    one = small_trees()["huffman"]
    page = write_page(leave(tmp_path / "c", {"huffman": one, "again": one, **small_trees()}))
    assert [tree.name for tree in page_data(page).trees.trees] == ["again"]


def test_a_candidate_that_has_read_the_test_part_is_named_in_a_warning(folder):
    assert 'class="warning"' not in markup(write_page(folder))
    comparison = results.load(folder)
    huffman, flat, kn3 = comparison.candidates
    candidates = [huffman, replace(flat, seen="read 9 lines of the test part"), kn3]
    results.save(replace(comparison, candidates=candidates, choice=choose(candidates)), folder)
    page = markup(write_page(folder))
    warning = page[page.index('class="warning"') : page.index('id="answer"')]
    assert "flat: read 9 lines of the test part" in warning
    assert "has seen test lines" in page[page.index('id="rows"') :]
    assert "Recommended: <strong><bdi>huffman" in page

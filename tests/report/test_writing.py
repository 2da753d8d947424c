"""The page as a file: whole, the same every time, and nothing in it that points outside."""

import json
import re

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="the report extra is not installed")

from hstree import report
from hstree.builders import build
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.tree import Tree
from tests.report.comparison import leave


def trees(words=("the", "of", "bank")):
    vocabulary = Vocabulary(list(words), list(range(len(words), 0, -1)))
    return {method: build(method, vocabulary) for method in ("huffman", "flat")}


@pytest.fixture
def folder(tmp_path):
    return leave(tmp_path / "compared", trees())


def own(page):
    """The page without its scripts: the plotting library holds addresses that it never asks."""
    return re.sub(r"<script>.*?</script>", "", page.read_text(), flags=re.DOTALL)


def test_the_same_folder_gives_the_same_page(folder, tmp_path):
    first = report.write(folder).read_bytes()
    again = report.write(folder, tmp_path / "again.html").read_bytes()
    assert first == again


def test_nothing_is_fetched(folder):
    page = own(report.write(folder))
    assert re.findall(r"""(?:src|href)=["'](?!#|data:)[^"']*""", page) == []
    assert "http://" not in page
    assert "https://" not in page
    assert "default-src &#39;none&#39;" in page


def test_every_row_and_every_column_has_its_figures(folder):
    page = own(report.write(folder))
    for name in ("huffman", "flat", "kn3"):
        assert f"<bdi>{name}</bdi>" in page
    assert "4a8199434a819943" in page  # the vocabulary's hash
    assert "Infinity" not in page
    assert "NaN" not in page


def test_a_tree_of_vectors_says_which_where_the_comparison_made_them(tmp_path):
    draw = np.random.default_rng(0).normal(size=(3, 2))
    gmm = build("gmm", WordVectors(["the", "of", "bank"], draw))
    compared = {"gmm --trees 1": gmm, "mine.json": gmm, **trees()}
    page = report.write(leave(tmp_path / "compared", compared)).read_text()
    packed = re.search(r'id="packed-trees"[^>]*>(.*?)</script>', page, flags=re.DOTALL)
    made = {tree["name"]: tree["made"] for tree in json.loads(packed[1])["trees"]}
    grown = {name for name, said in made.items() if "mean predicted vector" in said}
    assert grown == {"gmm --trees 1"}


@pytest.mark.parametrize("changes", [{"seeds": (0,)}, {"baselines": ()}, {"oov": 0}, {"bands": []}])
def test_a_comparison_may_lack_what_it_will(tmp_path, changes):
    assert report.write(leave(tmp_path / "compared", trees(), **changes)).exists()


def test_a_comparison_without_flat_takes_the_best_tree_for_its_level(tmp_path):
    page = report.write(leave(tmp_path / "compared", {"huffman": trees()["huffman"]}))
    assert "as a multiple of huffman" in page.read_text()


def test_one_word_alone(tmp_path):
    one = {"one": Tree.from_children(["a"], [], counts=[1])}
    assert report.write(leave(tmp_path / "compared", one)).exists()

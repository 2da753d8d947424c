"""The page as a file: whole, the same every time, and nothing in it that points outside."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hstree.experiments.words import Context, WordFigures, WordTable

from hstree import report
from hstree.builders import build
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.experiments import results, words
from hstree.tree import Tree
from tests.report.comparison import leave


def trees(words=("the", "of", "bank")):
    vocabulary = Vocabulary(list(words), list(range(len(words), 0, -1)))
    return {method: build(method, vocabulary) for method in ("huffman", "flat")}


@pytest.fixture
def folder(tmp_path):
    return leave(tmp_path / "compared", trees())


def own(page):
    """The page without its scripts."""
    return re.sub(r"<script>.*?</script>", "", page.read_text(), flags=re.DOTALL)


def test_the_same_folder_gives_the_same_page(folder, tmp_path):
    first = report.write(folder).read_bytes()
    again = report.write(folder, tmp_path / "again.html").read_bytes()
    assert first == again


def test_a_comparison_writes_the_same_page_from_anywhere(folder, tmp_path, monkeypatch):
    """Of its own figures, whatever is in the folder now."""
    monkeypatch.chdir(folder)
    comparison = results.load(".")
    page = report.write(folder).read_bytes()
    (folder / results.JSON).unlink()
    monkeypatch.chdir(tmp_path)
    path = comparison.to_html("a page.html")
    assert (tmp_path / path).read_bytes() == page


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


def test_a_row_that_has_read_the_test_part_is_named_in_a_warning(folder):
    path = folder / "results.json"
    results = json.loads(path.read_text())
    results["rows"][1]["seen"] = "read 9 lines of the test part"
    results["choice"] = {**results["choice"], "best": "huffman", "chosen": "huffman", "among": 1}
    path.write_text(json.dumps(results))
    page = own(report.write(folder))
    warning = page[page.index('class="warning"') : page.index('id="answer"')]
    assert "flat: read 9 lines of the test part" in warning
    assert "has read the test part" in page[page.index('id="rows"') :]
    # Not at any distance is it the answer.
    assert set(re.findall(r'data-chosen="(\d+)"', page)) == {"0"}


def test_without_a_warning_there_is_no_box_for_one(folder):
    assert 'class="warning"' not in own(report.write(folder))


def test_the_words_of_the_comparison_are_on_the_page(folder):
    context = Context(before="on the <b>", word="bank", gained=0.5)
    helped = WordFigures(word="bank", count=2, gained=0.25, share=0.75, contexts=[context])
    hurt = replace(helped, word="of", gained=-0.25)
    table = WordTable(row="flat", against="huffman", gained=2.0, lost=1.0, helped=[helped],
                      hurt=[hurt])  # fmt: skip
    gone = replace(table, row="another")
    words.save(words.Words(tables=[gone, table]), folder)
    page = own(report.write(folder))
    section = page[page.index('id="words"') : page.index('id="explorer"')]
    assert section.count("<details") == 1
    assert "on the &lt;b&gt; <mark>bank</mark>" in section
    for text in ("+0.25", "75.0%", "\N{MINUS SIGN}0.25", "Helped most", "Hurt most"):
        assert text in section
    (folder / words.JSON).unlink()
    assert 'id="words"' not in own(report.write(folder))

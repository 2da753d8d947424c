"""What a comparison and a history show of themselves: in Python, in notebooks, as a DataFrame."""

import csv
import math
from dataclasses import replace

import pytest

from hstree.errors import InputError
from hstree.experiments import results
from hstree.experiments.results import Choice, Spread
from hstree.training.trainer import Epoch, History
from tests import needs
from tests.experiments.made_up import a_comparison, a_row


def perplexities(valid, test):
    means = {"valid": valid, "test": test, "test_without_oov": test}
    return {split: Spread(mean=mean, sd=None, n=1) for split, mean in means.items()}


ROWS = [
    a_row(name="huffman", perplexity=perplexities(103.0, 1104.25), tokens_per_second=190_903.4),
    a_row(name="a<b>", perplexity=perplexities(101.0, 102.0), seen="lines 1 to 9 were read"),
    a_row(name="kn3", kind="baseline", perplexity=perplexities(99.0, None)),
]
CHOICE = Choice(by="valid", among=2, best="a<b>", within=0.03, chosen="huffman", tied=[])
COMPARISON = a_comparison(*ROWS, choice=CHOICE)


def test_the_table():
    assert str(COMPARISON).splitlines() == [
        "row      valid     test  ratio to flat  scores/target  parameters  tokens/s"
        "  times flat  s from text",
        "huffman  103.0  1,104.2              -            1.5           3   190,903"
        "           -            -",
        "a<b>     101.0    102.0              -            1.5           3         -"
        "           -            -",
        "kn3       99.0        -              -              -           3         -"
        "           -            -",
        "Use huffman: the fastest within 3% of the lowest validation perplexity, that of a<b>",
    ]
    html = COMPARISON._repr_html_()
    assert "a&lt;b&gt;</td><td>101.0</td>" in html
    assert "<b>" not in html
    tied = replace(COMPARISON, choice=replace(CHOICE, tied=["a<b>"]))
    assert "Use huffman: one of the fastest within" in str(tied)


def test_show_prints_the_table(capsys):
    COMPARISON.show()
    assert capsys.readouterr().out == f"{COMPARISON}\n"


def test_best_is_the_chosen_row():
    assert COMPARISON.best is COMPARISON.rows[0]
    assert repr(COMPARISON) == "Comparison(3 rows, best 'huffman')"
    none = a_comparison(ROWS[2])
    assert none.best is None
    assert repr(none) == "Comparison(1 row)"
    assert "Use" not in str(none)


def test_the_frame_has_the_columns_of_the_csv_file(tmp_path):
    pandas = pytest.importorskip("pandas", reason=needs.NOTEBOOK)
    frame = COMPARISON.frame()
    results.save(COMPARISON, tmp_path)
    with (tmp_path / "results.csv").open() as file:
        header, *lines = csv.reader(file)
    assert list(frame.columns) == header
    assert list(frame["name"]) == [line[0] for line in lines] == ["huffman", "a<b>", "kn3"]
    assert frame["test"].tolist()[:2] == [1104.25, 102.0]
    assert math.isnan(frame["test"][2])
    texts = {"name", "kind", "method", "seen"}
    assert {c for c in frame if not pandas.api.types.is_numeric_dtype(frame[c])} == texts


def test_the_folder_is_no_figure(tmp_path):
    placed = COMPARISON.in_folder(tmp_path)
    assert placed == COMPARISON
    assert (placed.folder, COMPARISON.folder) == (tmp_path, None)
    assert placed.as_dict() == COMPARISON.as_dict()
    results.save(COMPARISON, tmp_path)
    assert results.load(tmp_path).folder == results.load(tmp_path / "results.json").folder
    with pytest.raises(InputError, match="no folder"):
        COMPARISON.to_html(tmp_path / "page.html")


def test_a_history_is_a_table_of_its_epochs():
    html = History([Epoch(1, None, 120.5, 2.5, 12_345.6, 0.1)])._repr_html_()
    cells = "<td>-</td><td>120.50</td><td>2.5</td><td>12,346</td><td>0.1</td>"
    assert cells in html
    assert "<th>learning rate</th>" in html
    assert "<tbody></tbody>" in History()._repr_html_()

"""Results are checked when they are read."""

import json
import math
import os
from dataclasses import replace

import pytest

from hstree.errors import FileFormatError
from hstree.experiments import results
from hstree.experiments.significance import Ratio
from hstree.training.trainer import Epoch
from tests.experiments.made_up import OPTIONS, a_comparison, a_row

COMPARISON = a_comparison(a_row(kind="baseline", name="kn3", method="kn3"))
DOCUMENT = COMPARISON.as_dict()
ROW = DOCUMENT["rows"][0]
TREE = a_comparison(a_row(name="kn3")).as_dict()["rows"][0]
BAND = {"least": 1, "most": 9, "words": 3, "tokens": 9}
CHOICE = {"by": "valid", "among": 1, "best": "kn3", "within": 0.03, "chosen": "x", "tied": []}


def test_what_is_written_is_read(tmp_path):
    results.save(COMPARISON, tmp_path)
    assert results.load(tmp_path) == results.load(tmp_path / "results.json") == COMPARISON
    document = json.loads((tmp_path / "results.json").read_text())
    assert document == {"format": "hstree results", "version": 3, **DOCUMENT}
    assert (tmp_path / "results.csv").read_text().splitlines()[1].startswith("kn3,baseline,kn3,,")


@pytest.mark.parametrize("name", ["=1+2", "+1", "-1", "@a"])
def test_no_cell_is_a_formula_of_a_spreadsheet(tmp_path, name):
    results.write_csv(tmp_path / "x.csv", [{"name": name, "log_z": -0.5}])
    assert (tmp_path / "x.csv").read_text() == f"name,log_z\n'{name},-0.5\n"


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "results.json")
    with pytest.raises(FileFormatError, match="it is a pipe, not a regular file"):
        results.load(tmp_path)


def test_a_ratio_without_an_interval_is_a_test_split_that_is_too_short_to_tell(tmp_path):
    short = Ratio(1.1, None, None, None, 3)
    results.save(a_comparison(a_row(kind="baseline", to_flat=short)), tmp_path)
    assert results.load(tmp_path).rows[0].to_flat == short
    half = replace(short, low=1.0)
    results.save(a_comparison(a_row(kind="baseline", to_flat=half)), tmp_path)
    with pytest.raises(FileFormatError, match="lacks a figure"):
        results.load(tmp_path)


def test_a_figure_that_is_not_finite_is_null(tmp_path):
    epoch = Epoch(1, math.inf, 2.0, 1.0, 9.0, 0.1)
    run = replace(COMPARISON.rows[0].runs[0], epochs=[epoch])
    results.save(a_comparison(a_row(kind="baseline", runs=[run])), tmp_path)
    (read,) = results.load(tmp_path).rows[0].runs[0].epochs
    assert read.train is None
    assert read.valid == 2.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "hstree"}, "is not what `hstree.compare` leaves"),
        ({"version": 1}, "version 1; this hstree reads version 3; compare again"),
        ({"rows": [{**ROW, "from_text": {}}]}, '"from_text" has no "seconds"'),
        ({"rows": [{**ROW, "at_epoch_limit": None}]}, '"at_epoch_limit" holds None, not a number'),
        ({"rows": [{**ROW, "in_wordnet": "41%"}]}, '"in_wordnet" holds .41%., not a number'),
        ({"rows": [], "choice": {"by": "valid"}}, '"choice" has no "among"'),
        ({"bands": None}, '"bands" holds None, not a list'),
        ({"rows": [3]}, '"rows" 0 holds 3, not an object'),
        ({"rows": [{**ROW, "name": 3}]}, '"rows" 0: "name" holds 3, not a text'),
        ({"rows": [{"name": "x"}]}, '"rows" 0 has no "entry"'),
        ({"rows": [{**ROW, "kind": "tree"}]}, "lacks a tree, or has one"),
        ({"vocabulary": {}}, '"vocabulary" has no "size"'),
        (
            {"tokens": {**DOCUMENT["tokens"], "test": "9"}},
            '"tokens": "test" holds .9., not a',
        ),
        ({"bands": [1]}, '"bands" 0 holds 1, not an object'),
        ({"rows": [{**ROW, "perplexity": {}}]}, '"perplexity" has no "valid"'),
        ({"bands": [BAND, BAND], "rows": [{**ROW, "by_band": [2.0]}]}, "for 1 of the 2 bands"),
        ({"rows": [{**ROW, "to_flat": {}}]}, '"to_flat" has no "ratio"'),
        ({"rows": [{**TREE, "tree": {}}]}, '"tree" has no "nodes"'),
        ({"rows": [TREE]}, '"choice" is null'),
        ({"rows": [], "choice": {}}, '"choice" has no "by"'),
        ({"rows": [TREE], "choice": CHOICE}, '"choice" does not name trained rows'),
        ({"unigram": -1}, '"unigram" is -1, out of range'),
        ({"unigram": 1e300}, '"unigram" is 1e.300, out of range'),
        ({"versions": {"numpy": 2}}, '"versions": "numpy" holds 2, not a text'),
        ({"options": {**OPTIONS, "model": "gpt"}}, "there is no model 'gpt'"),
        ({"options": {**OPTIONS, "full": 1}}, '"options": lbl: full is 1; it must be'),
        ({"corpus": {**DOCUMENT["corpus"], "test": {"lines": [1]}}}, '"lines" wants two numbers'),
        ({"rows": [ROW, ROW]}, "two rows have the same name"),
        ({"rows": [{**ROW, "name": "a\0b"}]}, "no page can hold"),
        ({"rows": [{**ROW, "tree_file": "tree.json"}]}, "lacks a tree, or has one"),
        ({"rows": [{**ROW, "seconds_per_epoch": 0}]}, "time or speed of 0"),
        ({"rows": [{**ROW, "runs": [1]}]}, '"runs" 0 holds 1, not an object'),
        ({"bands": [{**BAND, "words": True}]}, '"words" holds True, not a number'),
        ({"deep": json.loads("[" * 101 + "]" * 101)}, "nested more than 100 deep"),
    ],
)
def test_anything_else_is_refused(tmp_path, change, said):
    results.save(COMPARISON, tmp_path)
    place = tmp_path / "results.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | change))
    with pytest.raises(FileFormatError, match=said) as refused:
        results.load(tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("content", ["", "[]", '{"format"', "[" * 100_000])
def test_what_is_no_object_is_refused(tmp_path, content):
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(FileFormatError):
        results.load(tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(FileFormatError, match=r"hstree\.compare"):
        results.load(tmp_path)

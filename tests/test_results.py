"""Results are checked when they are read."""

import json
import os

import pytest

from hstree.errors import FileFormatError
from hstree.experiments import results

ROW = {
    "name": "kn3",
    "kind": "baseline",
    "method": "kn3",
    "options": {},
    "tree_file": None,
    "tree": None,
    "code_lengths": None,
    "parameters": 3,
    "in_wordnet": None,
    "runs": [{}],
    "perplexity": {
        p: {"mean": 2.0, "sd": None, "n": 1} for p in ("valid", "test", "test_without_oov")
    },
    "at_epoch_limit": 0,
    "seen": None,
    "to_flat": None,
    "seconds_per_epoch": None,
    "tokens_per_second": None,
    "speed_up": None,
    "from_text": None,
    "by_band": [],
}
PARTS = ("train", "valid", "test")
FOUND = {
    "corpus": {part: {} for part in PARTS},
    "tokens": dict.fromkeys(PARTS, 9),
    "oov": dict.fromkeys(PARTS, 0),
    "vocabulary": {"size": 3, "sha256": "ab"},
    "options": {
        "seeds": [0],
        "dim": 8,
        "epochs": 1,
        "batch_size": 64,
        "context": 5,
        "full": False,
        "learning_rate": 0.1,
        "dropout": 0.3,
        "weight_decay": 0.0,
    },
    "versions": {},
    "machine": {"cores": 2, "system": "Linux", "processor": "x86_64"},
    "unigram": float("nan"),
    "bands": [],
    "choice": None,
    "rows": [ROW],
}
BAND = {"least": 1, "most": 9, "words": 3, "tokens": 9}
TREE = {
    **ROW,
    "kind": "tree",
    "tree_file": "tree.json",
    "tree": {
        "sha256": "ab",
        "nodes": 2,
        "codes_per_label": 1.0,
        "code_length": {"uniform": 1.5, "weighted": None},
        "scores_per_target": 1.5,
    },
}

CHOICE = {"by": "valid", "among": 1, "best": "kn3", "within": 0.03, "fastest": "x"}


def test_what_is_written_is_read(tmp_path):
    results.save(FOUND, tmp_path)
    expected = {"format": "hstree results", "version": 2, **FOUND, "unigram": None}
    assert results.load(tmp_path) == results.load(tmp_path / "results.json") == expected
    assert (tmp_path / "results.csv").read_text().splitlines()[1].startswith("kn3,baseline,kn3,,")


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "results.json")
    with pytest.raises(FileFormatError, match="it is a pipe, not a regular file"):
        results.load(tmp_path)


def test_a_ratio_without_an_interval_is_a_test_part_that_is_too_short_to_tell(tmp_path):
    short = {"ratio": 1.1, "low": None, "high": None, "p": None, "blocks": 3}
    results.save({**FOUND, "rows": [{**ROW, "to_flat": short}]}, tmp_path)
    assert results.load(tmp_path)["rows"][0]["to_flat"] == short
    results.save({**FOUND, "rows": [{**ROW, "to_flat": {**short, "low": 1.0}}]}, tmp_path)
    with pytest.raises(FileFormatError, match="lacks a figure"):
        results.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "hstree"}, "is not what `hstree compare` leaves"),
        ({"version": 1}, "version 1; this hstree reads version 2; compare again"),
        ({"rows": [{**ROW, "from_text": {}}]}, 'its seconds from the text has no "seconds"'),
        ({"rows": [{**ROW, "at_epoch_limit": None}]}, '"at_epoch_limit" holds a NoneType'),
        ({"rows": [{**ROW, "in_wordnet": "41%"}]}, '"in_wordnet" holds a str'),
        ({"rows": [], "choice": {"by": "valid"}}, 'the choice has no "among"'),
        ({"bands": None}, '"bands" holds a NoneType'),
        ({"rows": [3]}, "row 0 is no object"),
        ({"rows": [{**ROW, "name": 3}]}, 'row 0: "name" holds a int'),
        ({"rows": [{"name": "x"}]}, 'row 0 has no "kind"'),
        ({"rows": [{**ROW, "kind": "tree"}]}, "neither a tree's nor a baseline's"),
        ({"vocabulary": {}}, '"vocabulary" has no "size"'),
        ({"tokens": {**FOUND["tokens"], "test": "9"}}, '"tokens": "test" holds a str'),
        ({"bands": [1]}, "band 0 is no object"),
        ({"rows": [{**ROW, "perplexity": {}}]}, '"perplexity" has no "valid"'),
        ({"bands": [BAND, BAND], "rows": [{**ROW, "by_band": [2.0]}]}, "for 1 of the 2 bands"),
        ({"rows": [{**ROW, "to_flat": {}}]}, 'its ratio to flat has no "ratio"'),
        ({"rows": [{**TREE, "tree": {}}]}, 'its tree has no "sha256"'),
        ({"rows": [TREE]}, "the choice is no object"),
        ({"rows": [], "choice": {}}, 'the choice has no "by"'),
        ({"rows": [TREE], "choice": CHOICE}, "the choice is no tree of the table"),
        ({"unigram": -1}, '"unigram" is -1, out of range'),
        ({"unigram": 1e300}, '"unigram" is 1e.300, out of range'),
        ({"versions": {"numpy": 2}}, '"versions".1. holds a int'),
        ({"options": {**FOUND["options"], "model": "gpt"}}, "none of lbl, cbow, skipgram"),
        ({"options": {**FOUND["options"], "full": 1}}, '"full" holds a int'),
        ({"corpus": {**FOUND["corpus"], "test": {"lines": [1]}}}, '"lines" wants two numbers'),
        ({"rows": [ROW, ROW]}, "two rows have the same name"),
        ({"rows": [{**ROW, "name": "a\0b"}]}, "no page can hold"),
        ({"rows": [{**ROW, "tree_file": "tree.json"}]}, "neither a tree's nor a baseline's"),
        ({"rows": [{**ROW, "seconds_per_epoch": 0}]}, "time or speed of 0"),
        ({"rows": [{**ROW, "runs": [1]}]}, '"runs" is no object'),
        ({"bands": [{**BAND, "words": True}]}, '"words" holds a bool'),
        ({"deep": json.loads("[" * 101 + "]" * 101)}, "nested more than 100 deep"),
    ],
)
def test_anything_else_is_refused(tmp_path, change, said):
    results.save(FOUND, tmp_path)
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
    with pytest.raises(FileFormatError, match="hstree compare"):
        results.load(tmp_path)

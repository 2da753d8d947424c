"""Words that a row helps and hurts, counted by hand."""

import json

import numpy as np
import pytest

from hstree.data.vocabulary import Vocabulary
from hstree.errors import FileFormatError
from hstree.experiments import words
from hstree.experiments.words import OOV, words_of
from tests.texts import corpus_of

#: a b c <eos> a b odd <eos>
LINES = ["a b c", "a b odd"]
FLAT = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
TREE = np.array([0.5, 2.0, 1.0, 1.0, 0.75, 1.5, 0.0, 1.0])


@pytest.fixture
def test_split(tmp_path):
    return corpus_of(tmp_path, LINES).with_vocabulary(Vocabulary(["a", "b", "c", "<eos>"], [0] * 4))


@pytest.fixture
def table(test_split):
    nlls = {"flat": FLAT, "tree": TREE}
    (table,) = words_of(test_split, nlls.__getitem__, [("tree", "flat")]).tables
    return table


def test_gains_are_means_and_shares_of_the_sum(table):
    assert (table.gained, table.lost) == (1.75, 1.5)
    assert [(w.word, w.count, w.gained) for w in table.helped] == [(OOV, 1, 1.0), ("a", 2, 0.375)]
    assert [(w.word, w.count, w.gained) for w in table.hurt] == [("b", 2, -0.75)]
    assert [w.share for w in table.helped] == [pytest.approx(1 / 1.75), pytest.approx(0.75 / 1.75)]
    assert table.hurt[0].share == 1.0


def test_contexts_are_where_most_is_gained_or_lost(table):
    odd, a = table.helped
    assert [(c.before, c.word, c.gained) for c in odd.contexts] == [("a b c <eos> a b", "odd", 1.0)]
    assert [(c.before, c.word, c.gained) for c in a.contexts] == [
        ("", "a", 0.5), ("a b c <eos>", "a", 0.25),
    ]  # fmt: skip
    assert [c.gained for c in table.hurt[0].contexts] == [-1.0, -0.5]


def test_a_context_that_occurs_again_is_shown_once(tmp_path):
    words = Vocabulary(["a", "b", "<eos>"], [0] * 3)
    test = corpus_of(tmp_path, ["a b"] * 6).with_vocabulary(words)
    gained = np.tile([0.0, 1.0, 0.0], 6)
    (table,) = words_of(test, {"a": -gained, "b": 0 * gained}.__getitem__, [("a", "b")]).tables
    (b,) = table.helped
    assert [c.before for c in b.contexts] == ["a", "a b <eos> a"]


def test_the_other_direction_swaps_helped_and_hurt(test_split, table):
    nlls = {"flat": FLAT, "tree": TREE}
    (other,) = words_of(test_split, nlls.__getitem__, [("flat", "tree")]).tables
    assert [w.word for w in other.helped] == [w.word for w in table.hurt]
    assert (other.gained, other.lost) == (table.lost, table.gained)


def test_tokens_without_probability_are_left_out(test_split):
    nlls = {"flat": np.where(TREE == 2, np.inf, FLAT), "tree": TREE}
    (table,) = words_of(test_split, nlls.__getitem__, [("tree", "flat")]).tables
    assert np.isfinite(table.gained)


def test_the_file_comes_back(test_split, tmp_path):
    found = words_of(test_split, {"a": FLAT, "b": TREE}.__getitem__, [("a", "b"), ("b", "a")])
    words.save(found, tmp_path)
    assert words.load(tmp_path) == found


def test_without_a_file_there_are_no_tables(tmp_path):
    assert words.load(tmp_path).tables == []


@pytest.mark.parametrize("change", [{"version": 0}, {"tables": 3}, {"tables": [{"row": "a"}]}])
def test_a_damaged_file_is_refused_in_one_line(test_split, tmp_path, change):
    words.save(words_of(test_split, {"a": FLAT, "b": TREE}.__getitem__, [("a", "b")]), tmp_path)
    path = tmp_path / words.JSON
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(FileFormatError, match=r"words\.json") as refused:
        words.load(tmp_path)
    assert "\n" not in str(refused.value)

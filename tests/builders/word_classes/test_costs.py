"""Costs of class trees: against the scores and the touched rows of real trees; the longest list."""

import numpy as np
import pytest

from hstree.builders.classes import classes
from hstree.builders.shared.join import join_under_root
from hstree.builders.word_classes import costs
from hstree.builders.word_classes.costs import class_cost, longest_list
from hstree.tree.codes import Codes
from hstree.tree.statistics import tree_statistics
from tests.texts import corpus_of

ZIPF = np.ceil(1e6 / np.arange(1, 3001)).astype(np.int64)


@pytest.fixture
def scores_alone(monkeypatch):
    monkeypatch.setattr(costs, "ROW", 0.0)


@pytest.fixture
def even(tmp_path):
    """A hundred words, each as frequent as the others but the end of the line."""
    drawn = np.random.default_rng(0).permutation(np.repeat(np.arange(99), 30)).reshape(30, 99)
    return corpus_of(tmp_path, [" ".join(f"w{i}" for i in line) for line in drawn])


SHAPES = [
    {"short_list": 0, "n_classes": 10},
    {"short_list": 20, "n_classes": 8},
    {"short_list": 20, "n_classes": 8, "trees": 2},
    {"short_list": 20, "n_classes": 8, "trees": 3},
]


@pytest.mark.usefixtures("scores_alone")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_scores_are_those_of_the_tree(even, tmp_path, shape):
    tree = even_tree(even, tmp_path, shape)
    expected = tree_statistics(tree).scores_per_target
    assert class_cost(even.counts, **shape) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_rows_are_those_that_a_batch_touches(even, tmp_path, monkeypatch, shape):
    monkeypatch.setattr(costs, "BATCH", 16)
    monkeypatch.setattr(costs, "ROW", 1e6)
    tree = even_tree(even, tmp_path, shape)
    codes, rng = Codes(tree), np.random.default_rng(0)
    rows_of = np.where(tree.fan_out == 2, 1, tree.fan_out)
    touched = [
        int(rows_of[np.unique(tree.edge_node[codes.expand(targets).edge])].sum())
        for targets in rng.integers(0, len(even.vocabulary), (2000, 16))
    ]
    gates = 3 * (shape.get("trees", 1) == 3)  # the root's rows
    assert class_cost(even.counts, **shape) + gates == pytest.approx(np.mean(touched), rel=0.02)


def even_tree(corpus, folder, shape):
    """Return a tree of classes of equal size: those of a file, several side by side by hand."""
    order = np.argsort(-corpus.counts, kind="stable")
    others = np.array_split(order[shape["short_list"] :], shape["n_classes"])
    words = corpus.vocabulary.words
    file = folder / "classes.tsv"
    lines = [f"{words[i]}\tc{number}\n" for number, group in enumerate(others) for i in group]
    file.write_text("".join(lines))
    single = classes(corpus, classes_file=file, short_list=shape["short_list"])
    n_trees = shape.get("trees", 1)
    return join_under_root([single] * n_trees, words, counts=corpus.counts)


@pytest.mark.parametrize("trees", [1, 4])
def test_no_longer_list_costs_as_little(trees):
    scores = 12 * class_cost(ZIPF, 0, 55)
    n, n_classes = longest_list(ZIPF, scores, trees)
    assert class_cost(ZIPF, n, n_classes, trees) <= scores
    for longer in range(int(n * costs.STEP) + 2, len(ZIPF), 97):
        for other in range(1, len(ZIPF) - longer, 41):
            assert class_cost(ZIPF, longer, other, trees) > scores


def test_of_lists_of_one_length_the_cheapest_is_taken():
    n, n_classes = longest_list(ZIPF, 1e9)
    assert n == len(ZIPF) - 1
    assert n_classes == 1
    scores = class_cost(ZIPF, 300, 40)
    n, n_classes = longest_list(ZIPF, scores, n_classes=40)
    assert n_classes == 40
    assert n == pytest.approx(300, rel=costs.STEP - 1)


def test_one_word_is_a_class_by_itself():
    assert longest_list(np.array([7]), 1e9) == (0, 1)

"""Hierarchical precision, recall and F against HiClass's figures, and what they refuse."""

import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import make_scorer

from hstree import Tree
from hstree.errors import InputError, OptionError
from hstree.metrics import hierarchical_f1, hierarchical_precision, hierarchical_recall

#: ba and baa have one child; leaves are at four depths
PATHS = [
    *(["a", "aa", "aaa"], ["a", "aa", "aab"], ["a", "ab"]),
    *(["b", "ba", "baa", "baaa"], ["b", "bb"], ["c"]),
]
TREE = Tree.from_taxonomy(PATHS)
TRUE = ["aaa", "aab", "ab", "baaa", "bb", "c", "baaa", "aaa"]
PREDICTED = ["aab", "aa", "aaa", "baaa", "baa", "c", "b", "bb"]
#: Results of hiclass.metrics 5.0.8 for the rows of these names
HICLASS = [
    (hierarchical_precision, "micro", 0.631578947368421),
    (hierarchical_precision, "macro", 0.6666666666666667),
    (hierarchical_recall, "micro", 0.5454545454545454),
    (hierarchical_recall, "macro", 0.5729166666666666),
    (hierarchical_f1, "micro", 0.5853658536585366),
    (hierarchical_f1, "macro", 0.5833333333333334),
]


@pytest.mark.parametrize(("metric", "average", "expected"), HICLASS)
def test_figures_are_those_of_hiclass(metric, average, expected):
    assert metric(TRUE, PREDICTED, TREE, average=average) == pytest.approx(expected, abs=1e-12)


def test_the_root_counts_for_nothing():
    tree = Tree.from_taxonomy({"root": {"a": ["x", "y"], "b": ["z", "w"]}})
    assert hierarchical_recall(["x"], ["z"], tree) == 0
    assert hierarchical_precision(["x"], ["root"], tree) == 1  # nothing was predicted
    assert hierarchical_f1(["x"], ["root"], tree) == 0


def test_it_scores_a_search():
    model = DummyClassifier().fit([[0]] * len(TRUE), TRUE)  # "aaa", one of the most frequent
    score = make_scorer(hierarchical_f1, tree=TREE)(model, [[0]] * len(TRUE), TRUE)
    assert score == hierarchical_f1(TRUE, ["aaa"] * len(TRUE), TREE)


def test_misuse_is_one_line():
    with pytest.raises(InputError, match="no label and no node of the tree is called 'zebra'"):
        hierarchical_f1(["aaa"], ["zebra"], TREE)
    with pytest.raises(InputError, match="2 true and 1 predicted samples"):
        hierarchical_f1(["aaa", "c"], ["aaa"], TREE)
    with pytest.raises(InputError, match="there is no sample"):
        hierarchical_f1([], [], TREE)
    with pytest.raises(OptionError, match="average is 'mean'; it must be 'micro' or 'macro'"):
        hierarchical_f1(["aaa"], ["aaa"], TREE, average="mean")

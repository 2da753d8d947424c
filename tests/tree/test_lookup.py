"""A tree's labels by name: codes, neighbours, `in` and `len`."""

import numpy as np
import pytest
from hypothesis import given

import hstree
from hstree import Tree
from hstree.errors import InputError
from tests.strategies import trees

#        0
#      /   \
#     1     a
#   / | \
#  b  c  2
#       / \
#      d   e
TREE = Tree.from_children(list("abcde"), [[1, ~0], [~1, ~2, 2], [~3, ~4]])


def test_a_code_is_the_nodes_and_the_branches_taken():
    assert TREE.code("a") == [(0, 1)]
    assert TREE.code("e") == [(0, 0), (1, 2), (2, 1)]
    assert Tree(["a"], [0], []).code("a") == []


def test_a_label_of_several_codes_has_no_single_one():
    tree = Tree.from_children(["a", "b"], [[1, 2], [~0, ~1], [~1, ~0]])
    with pytest.raises(InputError, match=r"'a' has 2 codes; tree\.codes\('a'\) lists them"):
        tree.code("a")


def test_labels_are_in_the_tree():
    assert len(TREE) == 5
    assert "e" in TREE
    assert "z" not in TREE
    assert 3 not in TREE
    numbered = hstree.build("gmm", np.eye(3))
    assert "2" in numbered
    assert "3" not in numbered
    assert numbered.code("2")


def test_neighbours_share_the_deepest_nodes_first():
    assert TREE.neighbours("e") == ["d", "b", "c", "a"]
    assert TREE.neighbours("b") == ["c", "d", "e", "a"]
    assert TREE.neighbours("a") == ["b", "c", "d", "e"]
    assert TREE.neighbours("e", k=2) == ["d", "b"]
    assert Tree(["a"], [0], []).neighbours("a") == []


@given(trees())
def test_neighbours_are_all_others_in_the_order_of_shared_depth(tree):
    def nodes(label):
        return [{node for node, _ in code} for code in tree.codes(label)]

    def shared(one, other):
        return max(len(first & second) for first in nodes(one) for second in nodes(other))

    label = tree.labels[-1]
    near = tree.neighbours(label, k=len(tree))
    assert sorted(near) == sorted(set(tree.labels) - {label})
    depths = [shared(label, other) for other in near]
    assert depths == sorted(depths, reverse=True)
    assert tree.neighbours(label, k=3) == near[:3]


def test_labels_that_are_not_in_the_tree_are_named():
    for method in (TREE.code, TREE.codes, TREE.neighbours):
        with pytest.raises(InputError, match="'z' is none of the tree's 5 labels"):
            method("z")
    with pytest.raises(InputError, match=r"3 \(int; labels are text\) is none"):
        TREE.code(3)

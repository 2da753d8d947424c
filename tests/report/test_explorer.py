"""Packed trees say what the trees say."""

import gzip
import json

import numpy as np
from hypothesis import given

from hstree.report.explorer import pack
from hstree.tree import Tree
from tests.strategies import trees


def read_words(packed):
    return json.loads(gzip.decompress(packed.words))


def integers(data):
    planes = np.frombuffer(gzip.decompress(data), np.uint8).reshape(4, -1)
    return np.ascontiguousarray(planes.T).view("<i4").ravel()


@given(trees())
def test_a_tree_comes_back(tree):
    packed = pack({"tree": tree})
    words = read_words(packed)
    (entry,) = packed.trees
    child = integers(entry.child)
    assert integers(entry.fan_out).tolist() == tree.fan_out.tolist()
    for got, true in zip(child.tolist(), tree.child.tolist(), strict=True):
        assert got == true if true >= 0 else words[~got] == tree.labels[~true]
    if tree.counts is not None:
        counts = np.frombuffer(gzip.decompress(packed.counts), "<f8")
        by_word = dict(zip(tree.labels, tree.counts.astype(float).tolist(), strict=True))
        assert [by_word[word] for word in words] == counts.tolist()
        assert (np.diff(counts) <= 0).all()


def test_two_trees_share_the_numbers_of_their_words():
    one = Tree.from_children(["a", "b", "c"], [[~0, ~1, ~2]], counts=[1, 2, 3])
    other = Tree.from_children(["c", "a", "b"], [[~0, ~1, ~2]], counts=[3, 1, 2])
    packed = pack({"one": one, "other": other})
    assert read_words(packed) == ["c", "b", "a"]
    children = [integers(entry.child).tolist() for entry in packed.trees]
    assert children == [[~2, ~1, ~0], [~0, ~2, ~1]]


def test_a_tree_of_one_word_has_nothing_to_decide():
    packed = pack({"one": Tree.from_children(["a"], [])})
    assert packed.counts is None
    assert integers(packed.trees[0].child).tolist() == []

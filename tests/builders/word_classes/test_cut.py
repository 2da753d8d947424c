"""Classes cut from a tree: as few as asked for, light, and of whole subtrees where these fit."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hstree
from hstree import Tree
from hstree.builders.word_classes.clustering import cut
from tests.strategies import trees
from tests.texts import corpus_of


@given(tree=trees(several_codes=False), n=st.integers(1, 8), seed=st.integers(0, 9))
def test_classes_are_as_few_as_asked_for_and_of_neighbours(tree, n, seed):
    found = cut(tree, np.random.default_rng(seed).random(tree.n_labels), n)
    assert found.shape == (tree.n_labels,)
    assert len(set(found.tolist())) <= n
    # What a node passes on to its parent is one class: its children's words are in few others
    for start, stop in pairwise(tree.child_start.tolist()):
        for child in tree.child[start:stop].tolist():
            shared = classes_below(tree, found, child) & outside(tree, found, child)
            assert len(shared) <= 1


def classes_below(tree, found, child):
    """Return the classes of the labels below a child."""
    return set(found[below(tree, child)].tolist())


def outside(tree, found, child):
    """Return the classes of the labels that are not below a child."""
    return set(np.delete(found, below(tree, child)).tolist())


def below(tree, child):
    """Return the labels below a child."""
    if child < 0:
        return [~child]
    start, stop = tree.child_start[child], tree.child_start[child + 1]
    return [label for c in tree.child[start:stop].tolist() for label in below(tree, c)]


def test_subtrees_of_the_same_mass_are_the_classes():
    """Below any nodes above them, which have words of their own."""
    children = [[1, 2, -1], [3, 4], [5, -2], [-3, -4, -5], [-6, -7, -8], [-9, -10, -11]]
    tree = Tree.from_children([f"w{i}" for i in range(11)], children)
    mass = np.array([0.1, 0.1, *[1.0] * 9])
    assert cut(tree, mass, 1).tolist() == [0] * 11
    found = cut(tree, mass, 3)
    assert len(set(found[2:5])) == len(set(found[5:8])) == len(set(found[8:])) == 1
    assert len(set(found.tolist())) == 3


@pytest.mark.parametrize("n", [2, 5, 20])
def test_a_wide_node_is_filled_in_order_with_even_classes(n):
    tree = hstree.build("flat", {f"w{i}": 1 for i in range(100)})
    found = cut(tree, np.ones(100), n)
    assert (np.diff((found - found[0]) % (n + 1)) >= 0).all() or n == 2
    assert np.bincount(found).max() <= -(-100 // n)


def test_words_without_mass_need_no_class():
    tree = hstree.build("flat", {f"w{i}": 1 for i in range(10)})
    mass = np.array([0.0] * 8 + [1.0, 1.0])
    found = cut(tree, mass, 2)
    assert found[8] != found[9]


def test_classes_of_a_text_are_wordnets(tmp_path):
    animals, verbs = ["dog", "cat", "horse", "wolf"], ["teach", "learn", "read"]
    corpus = corpus_of(tmp_path, [" ".join([*animals, *verbs, "the", "of"])] * 3)
    tree = hstree.build("classes", corpus, cluster_by="wordnet", short_list=3, n_classes=3)
    children = [
        {tree.labels[~c] for c in tree.child[start:stop].tolist() if c < 0}
        for start, stop in pairwise(tree.child_start.tolist())
    ]
    below = [some for some in children[1:] if some]
    for kind in (animals, verbs):
        left = set(kind) - children[0]
        assert any(left <= some for some in below)
    assert tree.meta["classes"]["wordnet"]["coverage"]["words_in_wordnet"] == 7

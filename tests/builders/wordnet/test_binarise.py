"""Splits of wide nodes by vectors; labels stay under their nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hstree.builders.wordnet.builder import binarise_two_means
from hstree.tree import Tree
from tests.builders.label_sets import label_sets, sets_by_name
from tests.builders.oracle import code_lengths


def test_two_means_puts_together_what_points_the_same_way():
    """Two directions, in lengths that differ more than they do."""
    labels = [f"w{i}" for i in range(8)]
    vectors = np.array([[1, 0.02 * i] if i % 2 else [0.02 * i, 1] for i in range(8)])
    vectors *= np.array([1, 100, 50, 3, 7, 1000, 2, 9])[:, None]
    tree = binarise_two_means(Tree(labels, [0, 8], ~np.arange(8)), vectors)
    assert frozenset(labels[1::2]) in label_sets(tree)
    assert frozenset(labels[::2]) in label_sets(tree)


def test_two_means_starts_from_random_state_0_and_takes_10_rounds():
    wide = Tree([f"w{i}" for i in range(400)], [0, 400], ~np.arange(400))
    vectors = np.random.default_rng(0).standard_normal((400, 8))
    given = ((10, 0), (11, 0), (10, 1))
    default, *others = (
        binarise_two_means(wide, vectors, iterations=n, random_state=seed).child.tolist()
        for n, seed in given
    )
    assert binarise_two_means(wide, vectors).child.tolist() == default
    assert default not in others


def test_a_nodes_vector_is_the_mean_of_the_words_below():
    wide = Tree.from_children(["a", "b", "c", "d"], [[1, ~0, ~1], [~2, ~3]])
    vectors = np.array([[1.0, 0], [0, 1.0], [0.2, 9.0], [0.1, 8.0]])
    tree = binarise_two_means(wide, vectors)
    assert frozenset("bcd") in label_sets(tree)
    vectors[2:] = vectors[2:, ::-1]
    tree = binarise_two_means(wide, vectors)
    assert frozenset("acd") in label_sets(tree)


@st.composite
def wide_trees(draw):
    """Any tree of wide nodes, some labels with several codes."""
    n_nodes = draw(st.integers(1, 5))
    parent = [0] + [draw(st.integers(0, i - 1)) for i in range(1, n_nodes)]
    children = [[c for c in range(1, n_nodes) if parent[c] == n] for n in range(n_nodes)]
    n_labels = 0
    for of_node in children:
        n_leaves = draw(st.integers(max(0, 2 - len(of_node)), 4))
        again = draw(st.sets(st.integers(0, n_labels - 1), max_size=2)) if n_labels else set()
        of_node += [~label for label in (*again, *range(n_labels, n_labels + n_leaves))]
        n_labels += n_leaves
    labels = [f"w{i}" for i in range(n_labels)]
    return Tree.from_children(labels, children, names=[f"n{i}" for i in range(n_nodes)])


@pytest.mark.parametrize("spread", [0, 1])
@given(wide=wide_trees(), seed=st.integers(0, 3))
def test_any_tree_stays_what_it_is(spread, wide, seed):
    vectors = spread * np.random.default_rng(seed).normal(size=(wide.n_labels, 3))
    tree = binarise_two_means(wide, vectors, random_state=seed)
    assert tree == binarise_two_means(wide, vectors, random_state=seed)
    assert (tree.fan_out == 2).all()
    assert tree.labels == wide.labels
    assert sets_by_name(tree) == sets_by_name(wide)
    assert sum(map(len, code_lengths(tree))) == sum(map(len, code_lengths(wide)))

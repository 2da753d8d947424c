"""Complete trees: balanced, random and flat."""

from collections import Counter

import numpy as np
import pytest

from hstree.builders.balanced import balanced, complete_tree
from hstree.builders.flat import flat
from hstree.builders.random import random
from hstree.data.vocabulary import Vocabulary
from tests.builders.oracle import code_lengths
from tests.strategies import children_of


def leaves(tree):
    """The labels from left to right."""
    children, found, waiting = children_of(tree), [], [0]
    while waiting:
        item = waiting.pop()
        if item < 0:
            found.append(~item)
        else:
            waiting += reversed(children[item])
    return found


def complete(n, arity):
    return complete_tree(Vocabulary([str(i) for i in range(n)], [1] * n), np.arange(n), arity)


def test_more_branches_than_words_are_as_many_as_words():
    for n in range(1, 7):
        assert complete(n, 10**29) == complete(n, max(n, 2))


@pytest.mark.parametrize("arity", [2, 3, 4, 7])
def test_complete_trees_of_every_size(arity):
    for n in range(2, 140):
        tree = complete(n, arity)
        lengths = [length for (length,) in code_lengths(tree)]
        assert leaves(tree) == list(range(n))
        assert lengths == sorted(lengths)
        assert lengths[-1] - lengths[0] <= 1
        assert arity ** (lengths[-1] - 1) < n <= arity ** lengths[-1]
        assert tree.n_nodes == -(-(n - 1) // (arity - 1))
        partly = [node for node in range(tree.n_nodes) if tree.fan_out[node] != arity]
        assert partly in ([], [tree.depth.tolist().index(lengths[-1] - 1)])
        assert tree.depth.tolist() == sorted(tree.depth.tolist())


def test_frequency_order_gives_frequent_words_the_short_codes():
    vocabulary = Vocabulary(list("abcdef"), [1, 9, 9, 4, 0, 5])
    tree = balanced(vocabulary)
    assert [vocabulary.words[i] for i in leaves(tree)] == list("bcfdae")
    assert [length for (length,) in code_lengths(tree)] == [3, 2, 2, 3, 3, 3]
    assert tree.labels == vocabulary.words


def test_random_trees_have_the_shape_of_complete_ones():
    vocabulary = Vocabulary([str(i) for i in range(37)], range(37))
    for arity in (2, 5):
        tree, complete = random(vocabulary, arity=arity), balanced(vocabulary, arity=arity)
        np.testing.assert_array_equal(tree.child_start, complete.child_start)
        np.testing.assert_array_equal(tree.child < 0, complete.child < 0)


def test_every_random_order_is_drawn_and_none_too_often():
    vocabulary = Vocabulary(["a", "b", "c"], [100, 1, 1])
    drawn = Counter(
        tuple(tree.child[tree.child < 0].tolist())
        for tree in (random(vocabulary, random_state=seed) for seed in range(600))
    )
    # 6 orders, 100 expected of each; six standard deviations are 55.
    assert len(drawn) == 6
    assert all(45 < times < 155 for times in drawn.values())


@pytest.mark.parametrize(("n", "nodes"), [(1, 0), (2, 1), (3, 1), (50, 1)])
def test_flat_is_one_node_with_every_word_in_order(n, nodes):
    tree = flat(Vocabulary([str(i) for i in range(n)], range(1, n + 1)))
    assert tree.n_nodes == nodes
    assert (~tree.child).tolist() == (list(range(n)) if nodes else [])
    assert tree.counts.tolist() == list(range(1, n + 1))

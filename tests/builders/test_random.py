"""Random trees: the shape of a complete tree, words anywhere in it with equal chances."""

from collections import Counter

import numpy as np

from hstree.builders.balanced import balanced
from hstree.builders.random import random
from hstree.data.vocabulary import Vocabulary


def test_the_shape_is_the_complete_trees():
    vocabulary = Vocabulary([str(i) for i in range(37)], range(37))
    for arity in (2, 5):
        tree, complete = random(vocabulary, arity=arity), balanced(vocabulary, arity=arity)
        np.testing.assert_array_equal(tree.child_start, complete.child_start)
        np.testing.assert_array_equal(tree.child < 0, complete.child < 0)


def test_every_order_is_drawn_and_none_too_often():
    vocabulary = Vocabulary(["a", "b", "c"], [100, 1, 1])
    drawn = Counter(
        tuple(tree.child[tree.child < 0].tolist())
        for tree in (random(vocabulary, random_state=seed) for seed in range(600))
    )
    # 6 orders, 100 expected of each; six standard deviations are 55.
    assert len(drawn) == 6
    assert all(45 < times < 155 for times in drawn.values())


def test_counts_do_not_move_words():
    one = random(Vocabulary(list("abcdefg"), [1, 2, 3, 4, 5, 6, 7]), random_state=3)
    other = random(Vocabulary(list("abcdefg"), [7, 1, 1, 1, 1, 1, 1]), random_state=3)
    np.testing.assert_array_equal(one.child, other.child)

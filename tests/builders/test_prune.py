"""Removing labels, and the nodes that are left without a choice."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hstree.builders.random import random
from hstree.builders.shared.prune import pruned
from hstree.data.vocabulary import Vocabulary
from hstree.tree import Tree
from tests.builders.label_sets import label_sets


def test_pruning_leaves_a_label_once_under_a_node():
    tree = Tree.from_children(
        list("abcd"),
        [[1, ~0, 2], [~0, ~1], [~2, 3], [~3, ~1]],
        counts=[1, 2, 3, 4],
        names=["root", "x", "y", "z"],
        meta={"method": "by hand"},
    )
    left = pruned(tree, ["d", "a", "c"])
    expected = Tree.from_children(
        list("acd"), [[~0, 1], [~1, ~2]], counts=[1, 3, 4], names=["root", "y"]
    )
    assert left == expected
    assert left.meta == tree.meta
    assert pruned(tree, list("dcba")) is tree
    assert pruned(tree, ["b"]) == Tree(["b"], [0], [], counts=[2], names=[])


@given(st.integers(2, 30), st.integers(2, 4), st.data())
def test_the_nodes_left_hold_what_is_kept_below_those_of_the_tree(n, arity, data):
    words = [f"w{i}" for i in range(n)]
    tree = random(Vocabulary(words, np.arange(n)), arity=arity)
    kept = data.draw(st.sets(st.sampled_from(words), min_size=1))
    left = pruned(tree, sorted(kept))
    assert left.labels == tuple(word for word in words if word in kept)
    assert left.counts.tolist() == [i for i, word in enumerate(words) if word in kept]
    expected = {frozenset(below & kept) for below in map(set, label_sets(tree))}
    assert set(label_sets(left)) == {below for below in expected if len(below) > 1}

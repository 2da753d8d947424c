from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hstree import progress
from hstree.builders.shared import top_down
from hstree.builders.shared.nodes import Nodes, split_in_order
from hstree.builders.shared.top_down import build_top_down
from hstree.tree import Tree


def tree_of(n, split, **options):
    with progress.task("dividing") as task:
        divided = build_top_down(
            n, split, draw=np.random.default_rng(0).random, task=task, **options
        )
    return Tree([f"w{i}" for i in range(n)], divided.child_start, divided.child)


def test_a_scripted_split_gives_its_tree():
    def last_alone(words, start, rng):
        return np.isin(np.arange(len(words)), start[1:] - 1).astype(int)

    tree = tree_of(4, last_alone)
    assert tree.child.tolist() == [1, ~3, 2, ~2, ~0, ~1]


def test_doubled_words_hang_under_both():
    """Word 1 goes to both children of the root; the nodes {0, 1} and {1, 2, 3} follow."""

    def split(words, start, rng):
        return np.array([0, -1, 1, 1] if len(words) == 4 else [0, 1, 1])

    tree = tree_of(4, split, max_codes=2)
    assert tree.child.tolist() == [1, 2, ~0, ~1, ~1, 3, ~2, ~3]
    tree = tree_of(4, split, max_codes=1)
    assert tree.child.tolist() == [1, 2, ~0, ~1, ~2, ~3]


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_any_split_gives_a_tree_within_its_bound(n, max_codes, block, seed):
    random = np.random.default_rng(seed)

    def split(words, start, rng):
        assert len(words) == start[-1]
        branch = random.integers(-2, 2, len(words))
        branch[start[:-1]] = 0  # so that neither branch has all words
        branch[start[1:] - 1] = 1
        for a, b in pairwise(start):
            assert (np.diff(words[a:b]) > 0).all(), "words in ascending order, none twice"
        return branch

    before, top_down.BLOCK_WORDS = top_down.BLOCK_WORDS, block
    try:
        tree = tree_of(n, split, max_codes=max_codes)
    finally:
        top_down.BLOCK_WORDS = before
    assert tree.codes_per_label.max() <= max_codes


@given(
    st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=9), min_size=1),
    st.integers(2, 5),
)
def test_split_in_order_is_a_stable_sort_split_evenly(groups, arity):
    nodes = Nodes(np.cumsum([0, *map(len, groups)]))
    parts = np.split(split_in_order(nodes, np.concatenate(groups), arity), nodes.start[1:-1])
    for values, part in zip(groups, parts, strict=True):
        order = sorted(range(len(values)), key=lambda i: (values[i], i))
        assert (np.diff(part[order]) >= 0).all()
        sizes = np.bincount(part, minlength=arity)
        assert sizes.max() - sizes.min() <= 1
        assert sizes[0] == sizes.max()

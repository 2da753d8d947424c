"""Paths to labels: against the codes of the tree, and back to trees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hstree.errors import InputError
from hstree.tree.bit_paths import paths_of, tree_of_paths
from tests.strategies import trees

binary_trees = trees(several_codes=False, wide=False)


@given(binary_trees)
def test_paths_are_the_codes(tree):
    paths = paths_of(tree)
    for label, (point, code) in enumerate(zip(paths.point, paths.code, strict=True)):
        way = tree.code(tree.labels[label])
        assert list(zip(point.tolist(), code.tolist(), strict=True)) == way
        assert paths.strings[label] == "".join(str(branch) for _, branch in way)


@given(binary_trees, st.integers(0, 5), st.booleans(), st.randoms(use_true_random=False))
def test_trees_come_back_from_their_paths_whatever_the_numbers(tree, first, descending, random):
    paths = paths_of(tree)
    called = np.arange(first, first + 3 * tree.n_nodes, 3)[:: -1 if descending else 1]
    back, number = tree_of_paths(
        tree.labels, paths.start, called[paths.node], paths.bit, counts=tree.counts
    )
    assert (back.child == tree.child).all()
    assert number.tolist() == called.tolist()
    shuffled = random.sample(range(tree.n_nodes), tree.n_nodes)
    point = np.array(shuffled, np.int64)[paths.node]
    other, number = tree_of_paths(tree.labels, paths.start, point, paths.bit)
    assert paths_of(other).strings == paths.strings
    assert (number[paths_of(other).node] == point).all()


@pytest.mark.parametrize(
    ("codes", "points", "saying"),
    [
        (["0", "1", ""], [[0], [0], []], "'c' has an empty path"),
        (["0", "1", "2"], [[0], [0], [0]], "neither 0 nor 1"),
        (["0", "10", "11"], [[0], [0, 1], [1, 0]], "does not fit the others"),
        (["0", "10", "00"], [[0], [0, 1], [0, 1]], "does not fit"),
        (["0", "100", "101"], [[0], [0, 1, 2], [0, 1, 2]], "the node 1 has one child"),
        (["00", "11"], [[7, 8], [7, 8]], "the node 8 has 2 parents"),
    ],
)
def test_paths_that_make_no_tree_are_refused(codes, points, saying):
    start = np.cumsum([0, *map(len, points)])
    bits = [int(bit) for code in codes for bit in code]
    with pytest.raises(InputError, match=saying):
        tree_of_paths("abc"[: len(codes)], start, [p for way in points for p in way], bits)

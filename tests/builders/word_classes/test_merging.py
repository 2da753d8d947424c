import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hstree.builders.word_classes.merging import merge_by_information
from tests.builders.word_classes.brute import drawn_pairs, matrix, mutual_information


@settings(max_examples=40)
@given(st.integers(0, 999), st.integers(1, 8), st.integers(2, 60))
def test_each_merge_loses_least_mutual_information(seed, n, n_pairs):
    pairs = drawn_pairs(seed, n, n_pairs)
    merges = merge_by_information(matrix(pairs, n).toarray())
    assert merges.shape == (n - 1, 2)
    item = list(range(n))  # of each class, the merge that it is in by now
    for number, (a, b) in enumerate(merges.tolist()):
        assert a < b
        alive = sorted(set(item))
        left = {
            (x, y): mutual_information(pairs, [x if of == y else of for of in item])
            for i, x in enumerate(alive)
            for y in alive[i + 1 :]
        }
        assert left[a, b] == pytest.approx(max(left.values()), abs=1e-9)
        item = [n + number if of in (a, b) else of for of in item]
    assert set(item) == {2 * n - 2}


def test_classes_that_behave_alike_are_merged_first():
    kind = np.array([0, 1, 0, 2, 1, 2])
    chain = np.array([[1, 8, 2], [3, 1, 9], [7, 2, 1]])
    merges = merge_by_information(10 * chain[np.ix_(kind, kind)])
    assert sorted(merges[:3].tolist()) == [[0, 2], [1, 4], [3, 5]]


def test_pairs_that_never_occur_are_legal():
    assert merge_by_information(np.zeros((4, 4), int)).tolist() == [[0, 1], [2, 4], [3, 5]]
    assert merge_by_information(np.zeros((1, 1), int)).tolist() == []

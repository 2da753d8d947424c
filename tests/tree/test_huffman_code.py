"""Optimal merging against a heap."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hstree.errors import InputError
from hstree.tree.huffman_code import merge_order
from tests.builders.oracle import heap_order


def merged(weights, arity=2):
    """Return the items that each merge joins, and its weight."""
    rows, weight = merge_order(np.array(weights, np.int64), arity)
    return [[item for item in row if item >= 0] for row in rows.tolist()], weight.tolist()


some_weights = st.one_of(
    st.lists(st.integers(0, 3), max_size=60),
    st.lists(st.integers(0, 1000), max_size=60),
    st.lists(st.integers(0, 2**63 - 1), max_size=60),
    st.lists(st.integers(0, 62).map(lambda power: 2**power), max_size=60),
)


@given(some_weights, st.integers(2, 7))
@example((1e9 / np.arange(1, 20_001)).astype(int).tolist(), 5)
def test_whole_runs_merge_as_one_at_a_time(weights, arity):
    assert merged(weights, arity) == heap_order(weights, max(2, min(arity, len(weights))))


def test_sums_beyond_64_bits_stay_exact():
    weights = [2**63 - 1] * 8 + [1]
    assert merged(weights) == heap_order(weights, 2)


def test_the_first_merge_alone_may_join_fewer():
    assert merge_order(np.array([3, 1, 2, 1]), 3)[0].tolist() == [[1, 3, -1], [2, 4, 0]]
    assert merge_order(np.array([2, 1]), 9)[0].tolist() == [[1, 0]]


def test_a_weight_below_zero_is_refused():
    with pytest.raises(InputError, match="weight 1 is -1; weights must be zero or more"):
        merge_order(np.array([2, -1]))

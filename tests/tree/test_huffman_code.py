"""Optimal merging against a heap, and against entropy."""

import heapq

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hstree.errors import InputError
from hstree.tree.huffman_code import merge_order


def merged(weights, arity=2):
    return merge_order(np.array(weights, np.int64), arity)[0].tolist()


def cost(weights, rows):
    """Sum the weights of all merges, from their rows alone."""
    total = [int(weight) for weight in weights]
    for row in rows:
        total.append(sum(total[item] for item in row if item >= 0))
    return sum(total[len(weights) :])


def heap_order(weights, arity):
    """Merge one at a time with a heap; ties as `merge_order` states them."""
    n = len(weights)
    heap = [(weight, 0, i) for i, weight in enumerate(weights)]
    heapq.heapify(heap)
    size = (n - 2) % (arity - 1) + 2
    order = []
    while len(heap) > 1:
        joined = [heapq.heappop(heap) for _ in range(size)]
        heapq.heappush(heap, (sum(weight for weight, *_ in joined), 1, n + len(order)))
        order.append([item for *_, item in joined])
        size = arity
    return order


some_weights = st.one_of(
    st.lists(st.integers(0, 3), max_size=60),
    st.lists(st.integers(0, 1000), max_size=60),
    st.lists(st.integers(0, 2**63 - 1), max_size=60),
    st.lists(st.integers(0, 62).map(lambda power: 2**power), max_size=60),
)


@given(some_weights, st.integers(2, 7))
@example((1e9 / np.arange(1, 50_001)).astype(int).tolist(), 2)
@example((1e9 / np.arange(1, 50_001)).astype(int).tolist(), 5)
def test_whole_runs_merge_as_one_at_a_time(weights, arity):
    found = [[item for item in row if item >= 0] for row in merged(weights, arity)]
    assert found == heap_order(weights, max(2, min(arity, len(weights))))


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=200).filter(any))
@example([0, 1])
def test_the_length_is_within_one_of_the_entropy(weights):
    share = np.array([w for w in weights if w]) / sum(weights)
    entropy = -(share * np.log2(share)).sum()
    length = merge_order(np.array(weights))[1].sum() / sum(weights)
    if len(share) == 1 < len(weights):
        assert length == 1  # nothing to learn, and a bit to pay: the bound is for shares below one
    else:
        assert entropy - 1e-9 <= length < entropy + 1
    assert length == pytest.approx(cost(weights, merged(weights)) / sum(weights))


def test_sums_beyond_64_bits_stay_exact():
    weights = [2**63 - 1] * 8 + [1]
    assert merged(weights) == heap_order(weights, 2)
    assert merge_order(np.array([2**63 - 1] * 4))[1].sum() == 8 * (2**63 - 1)


def test_the_first_merge_alone_may_join_fewer():
    assert merged([3, 1, 2, 1], 3) == [[1, 3, -1], [2, 4, 0]]
    assert merged([2, 1], 9) == [[1, 0]]


def test_a_weight_below_zero_is_refused():
    with pytest.raises(InputError, match="weight 1 is -1; weights must be zero or more"):
        merge_order(np.array([2, -1]))

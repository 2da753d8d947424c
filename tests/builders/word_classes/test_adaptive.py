import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hstree.builders.word_classes import adaptive as module
from hstree.builders.word_classes.adaptive import CLUSTER_COST, adaptive_boundaries


def cost(counts, boundaries):
    total = sum(counts)
    return boundaries[0] + sum(
        CLUSTER_COST + (b - a) * sum(counts[a:b]) / total for a, b in itertools.pairwise(boundaries)
    )


@settings(max_examples=40)
@given(st.lists(st.integers(0, 5) | st.integers(0, 10**6), min_size=1, max_size=11).filter(any))
def test_no_other_clusters_cost_less(drawn):
    """Against every choice of boundaries; small clusters pay only where they cost little."""
    counts = sorted(drawn, reverse=True)
    n = len(counts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CLUSTER_COST", 1.5)
        patch.setitem(globals(), "CLUSTER_COST", 1.5)
        found = adaptive_boundaries(np.array(counts)).tolist()
        every = ([*inner, n] for k in range(n + 1) for inner in itertools.combinations(range(n), k))
        assert cost(counts, found) == pytest.approx(min(cost(counts, b) for b in every))


def test_few_words_are_all_head():
    assert adaptive_boundaries(np.array([3, 2, 1])).tolist() == [3]
    assert adaptive_boundaries(np.array([7])).tolist() == [1]
    assert adaptive_boundaries(np.zeros(4, int)).tolist() == [4]


def test_boundaries_one_per_cent_apart_cost_hardly_more():
    counts = (10**6 / np.arange(1, 4001)).astype(int)
    near = adaptive_boundaries(counts).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "EVERY_RANK", 4000)
        best = adaptive_boundaries(counts).tolist()
    assert cost(counts, best) <= cost(counts, near) <= 1.001 * cost(counts, best)
    assert near[-1] == 4000
    assert 0 < near[0] < 400

"""Paired ratios against scipy's own paired t-test, and where there is nothing to test."""

import numpy as np
import pytest
from scipy import stats

from hstree.comparison.significance import paired_ratio


def nll(seed, size, mean=5.0):
    return np.random.default_rng(seed).gamma(4.0, mean / 4, size)


def test_it_is_scipys_paired_test_over_block_means():
    own, other = nll(0, 40_000, 5.02), nll(1, 40_000)
    found = paired_ratio([own], [other])
    a, b = (x.reshape(40, 1000).mean(axis=1) for x in (own, other))
    expected = stats.ttest_rel(a, b)
    interval = expected.confidence_interval(0.95)
    assert found.blocks == 40
    assert found.p == pytest.approx(expected.pvalue)
    assert found.low == pytest.approx(np.exp(interval.low))
    assert found.high == pytest.approx(np.exp(interval.high))
    # Blocks of one length: the ratio is that of the perplexities.
    assert found.ratio == pytest.approx(np.exp(own.mean()) / np.exp(other.mean()))
    assert found.low < found.ratio < found.high


def test_random_states_are_averaged_in_pairs():
    own, other = [nll(s, 30_000) for s in (0, 1)], [nll(s, 30_000) for s in (2, 3)]
    pairs = [paired_ratio([a], [b]).ratio for a, b in zip(own, other, strict=True)]
    assert paired_ratio(own, other).ratio == pytest.approx(np.sqrt(np.prod(pairs)))
    # A baseline has one array, whatever the number of states on the other side.
    alone = paired_ratio(own[:1], other)
    assert alone.ratio == pytest.approx(np.exp(own[0].mean() - np.mean(other)))


@pytest.mark.parametrize(("tokens", "blocks"), [(999_999, 999), (5_005, 20), (7, 7), (2, 2)])
def test_blocks(tokens, blocks):
    assert paired_ratio([nll(0, tokens)], [nll(1, tokens)]).blocks == blocks


def test_the_interval_covers_the_truth_as_often_as_it_says():
    inside = 0
    for trial in range(300):
        found = paired_ratio([nll(2 * trial, 2_000)], [nll(2 * trial + 1, 2_000)])
        inside += found.low <= 1 <= found.high
    assert 0.91 <= inside / 300 <= 0.99


def test_equal_models():
    found = paired_ratio([nll(0, 3_000)], [nll(0, 3_000)])
    assert (found.ratio, found.low, found.high, found.p) == (1, 1, 1, None)


def test_too_little_to_compare():
    assert paired_ratio([nll(0, 1)], [nll(1, 1)]) is None

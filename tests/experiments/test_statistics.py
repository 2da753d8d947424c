"""Paired ratios against scipy's own paired t-test, and where there is nothing to test."""

import numpy as np
import pytest
from scipy import stats

from hstree.experiments.statistics import paired_ratio


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
    # A baseline has one array for any number of states on the other side.
    alone = paired_ratio(own[:1], other)
    assert alone.ratio == pytest.approx(np.exp(own[0].mean() - np.mean(other)))


@pytest.mark.parametrize(
    ("tokens", "blocks"), [(999_999, 249), (80_000, 20), (79_999, 79), (40_960, 40), (20_000, 20)]
)
def test_blocks_have_four_thousand_tokens_where_there_are_twenty_of_them(tokens, blocks):
    assert paired_ratio([nll(0, tokens)], [nll(1, tokens)]).blocks == blocks


@pytest.mark.parametrize(("tokens", "blocks"), [(19_999, 19), (5_005, 5), (300, 0), (1, 0)])
def test_a_text_of_few_blocks_is_too_short_to_tell(tokens, blocks):
    own, other = nll(0, tokens), nll(1, tokens)
    found = paired_ratio([own], [other])
    assert (found.low, found.high, found.p, found.blocks) == (None, None, None, blocks)
    # The ratio of the perplexities is what it is.
    assert found.ratio == pytest.approx(np.exp(own.mean()) / np.exp(other.mean()))


@pytest.mark.parametrize("tokens", [30_000, 300])
def test_equal_models(tokens):
    found = paired_ratio([nll(0, tokens)], [nll(0, tokens)])
    assert (found.ratio, found.low, found.high, found.p) == (1, 1, 1, None)


def test_a_difference_that_is_the_same_everywhere_has_no_spread():
    found = paired_ratio([np.full(20_000, 2.0)], [np.full(20_000, 1.0)])
    assert (found.ratio, found.low, found.high, found.p) == (np.e, np.e, np.e, None)


def test_nothing_to_compare():
    assert paired_ratio([np.zeros(0)], [np.zeros(0)]) is None

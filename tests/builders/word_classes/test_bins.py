import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hstree.builders.word_classes.bins import equal_mass_bins


def by_rnnlm(mass, n_bins):
    """The loop of RNNLM, in whole numbers so that nothing is rounded."""
    total, so_far, which, bins = sum(mass), 0, 0, []
    for weight in mass:
        so_far += weight
        bins.append(which)
        if so_far * n_bins > (which + 1) * total and which < n_bins - 1:
            which += 1
    return bins


@given(st.lists(st.integers(0, 500), min_size=1, max_size=60).filter(any), st.integers(1, 64))
def test_bins_are_those_of_rnnlm(mass, n_bins):
    # A power of two scales without rounding, as long as sums are exact.
    found = equal_mass_bins(np.array(mass), n_bins).tolist()
    expected = by_rnnlm(mass, n_bins)
    if n_bins & (n_bins - 1) == 0:
        assert found == expected
    assert sorted(set(found)) == list(range(max(found) + 1))
    assert max(found) < n_bins
    assert np.abs(np.subtract(found, expected)).max() <= 1


def test_masses_are_even_where_no_word_is_heavy():
    mass = np.sqrt(10_000 / np.arange(50, 5000))
    bins = equal_mass_bins(mass, 20)
    of_bin = np.bincount(bins, weights=mass)
    assert len(of_bin) == 20
    assert of_bin == pytest.approx(np.full(20, mass.sum() / 20), rel=0.1)


def test_without_mass_the_bins_are_of_even_size():
    assert equal_mass_bins(np.zeros(6), 3).tolist() == [0, 0, 0, 1, 1, 2]
    assert equal_mass_bins(np.array([5]), 1).tolist() == [0]

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from hstree.builders.classes import clustering
from hstree.builders.classes.clustering import (
    class_members,
    equal_mass_bins,
    kmeans_clusters,
)

BY_FREQUENCY = np.array([2, 0, 1, 5, 4, 3, 6, 7])


def test_members_of_a_class_stay_in_their_order():
    members = class_members(np.array([1, 1, 0, 0, 2, 2, 2, 2]), BY_FREQUENCY)
    assert [words.tolist() for words in members] == [[2, 3], [0, 1], [5, 4, 6, 7]]


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


def test_without_mass_the_bins_are_of_even_size():
    assert equal_mass_bins(np.zeros(6), 3).tolist() == [0, 0, 0, 1, 1, 2]
    assert equal_mass_bins(np.array([5]), 1).tolist() == [0]


def same_parts(a, b):
    return len(set(zip(a.tolist(), b.tolist(), strict=True))) == len(set(a.tolist()))


def test_kmeans_is_lloyds_algorithm_from_its_first_centres():
    X = np.random.default_rng(0).normal(size=(400, 5))
    scaled = X / np.abs(X).max()
    scaled -= scaled.mean(axis=0)
    centres = clustering._draw_centres(scaled, 7, np.random.default_rng(3))
    for _ in range(100):
        expected = cdist(scaled, centres).argmin(axis=1)
        centres = np.array([scaled[expected == cluster].mean(axis=0) for cluster in range(7)])
    assert kmeans_clusters(X, 7, 3).tolist() == expected.tolist()


@pytest.mark.parametrize("scale", [1e-30, 1, 1e30])
def test_kmeans_finds_planted_clusters(scale):
    rng = np.random.default_rng(1)
    planted = rng.integers(4, size=200)
    X = (10 * np.eye(4)[planted] + rng.normal(size=(200, 4))).astype(np.float32)
    assert same_parts(kmeans_clusters(X * np.float32(scale), 4, 0), planted)


def test_kmeans_of_equal_vectors_and_single_ones():
    assert kmeans_clusters(np.ones((5, 2)), 3, 0).tolist() == [0] * 5
    assert kmeans_clusters(np.zeros((1, 3)), 1, 0).tolist() == [0]
    assert len(set(kmeans_clusters(np.eye(4), 4, 0).tolist())) == 4

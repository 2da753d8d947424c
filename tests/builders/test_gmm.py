"""Trees of mixtures of Gaussians, and the mixtures, held to scikit-learn's."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from hstree.builders.gmm import VARIANCE_FLOOR, gmm, log_odds
from hstree.builders.shared.nodes import Nodes, centred_rows, split_in_order
from hstree.errors import OptionError
from hstree.tree.codes import Codes
from tests.builders.label_sets import child_sets, child_sizes, label_sets
from tests.builders.oracle import em_responsibilities
from tests.builders.vectors import named, normal, words

pytestmark = pytest.mark.filterwarnings("error")


def planted(seed):
    """Eight clusters, in pairs of pairs of pairs: the closer, the deeper they part."""
    rng = np.random.default_rng(seed)
    centre = np.zeros((1, 12))
    for distance in (40, 12, 4):
        step = distance * rng.standard_normal((len(centre), 12)) / np.sqrt(12)
        centre = np.concatenate([centre - step, centre + step])
    cluster = rng.permutation(np.repeat(np.arange(8), rng.integers(5, 60, 8)))
    return centre[cluster] + 0.05 * rng.standard_normal((len(cluster), 12)), cluster


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.25}])
@pytest.mark.parametrize("seed", range(5))
def test_planted_clusters_come_back_as_subtrees(seed, options):
    X, cluster = planted(seed)
    subtrees = set(label_sets(gmm(words(X), **options)))
    for level in (8, 4, 2):
        for which in range(level):
            assert named(np.flatnonzero(cluster % level == which)) in subtrees


def root_responsibilities(X, random_state=0):
    """P(second) of each word at the root, by scikit-learn, from the start that gmm takes."""
    rng = np.random.default_rng(np.random.SeedSequence(random_state).spawn(1)[0])
    second = split_in_order(Nodes(np.array([0, len(X)])), rng.random(len(X))) == 1
    floor = VARIANCE_FLOOR * X.var(axis=0).mean()
    return em_responsibilities(X, second, floor, iterations=3)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.25, 0.4])
def test_words_go_where_their_responsibilities_send_them(epsilon):
    X = normal(300, 3) * np.random.default_rng(1).exponential(1, (300, 1))
    second = root_responsibilities(X)
    tree = gmm(words(X), epsilon=epsilon, iterations=3)
    left, right = child_sets(tree, 0)
    both = (np.abs(second - 0.5) <= epsilon) if epsilon else np.zeros(300, bool)
    assert both.sum() > 5 or not epsilon
    assert right == named(np.flatnonzero((second > 0.5) | both))
    assert left == named(np.flatnonzero((second <= 0.5) | both))


def test_balanced_halves_every_node():
    tree = gmm(words(normal(1000, 5)), split="balanced")
    left, right = child_sizes(tree).reshape(-1, 2).T
    assert set(left - right) <= {0, 1}
    assert tree.depth.max() + 1 == 10


def test_balanced_orders_words_whose_responsibilities_are_saturated():
    line = np.concatenate([np.arange(30), 1000 + np.arange(70)])[:, None]
    shuffled = np.random.default_rng(0).permutation(100)
    lower = named(np.flatnonzero(shuffled < 50))
    for seed in range(4):  # a start names the components either way round
        tree = gmm(words(line[shuffled]), random_state=seed, split="balanced", iterations=300)
        assert lower in child_sets(tree, 0)


def mean_codes(tree):
    return tree.codes_per_label.mean()


@pytest.mark.parametrize("X", [normal(200, 30), normal(200, 2), np.ones((200, 3))])
def test_at_an_epsilon_of_half_every_word_is_doubled_up_to_the_bound(X):
    tree = gmm(words(X), epsilon=0.5, max_codes=8)
    codes = tree.codes_per_label
    assert codes.max() == 8
    assert mean_codes(gmm(words(X), epsilon=0.499, max_codes=8)) <= codes.mean()
    assert codes.mean() > 7.5
    assert gmm(words(X), epsilon=0.5, max_codes=1) == gmm(words(X))


@pytest.mark.parametrize("n", [2, 3, 4, 5, 64, 100])
@pytest.mark.parametrize("value", [0.0, 1.0, -1e30, 1e-42])
@pytest.mark.parametrize("options", [{}, {"epsilon": 0.4}, {"split": "balanced"}, {"trees": 2}])
def test_identical_vectors_are_halved(n, value, options):
    tree = gmm(words(np.full((n, 3), value)), **options)
    codes = Codes(tree)
    assert (tree.codes_per_label == options.get("trees", 1)).all()
    assert codes.length.max() == math.ceil(math.log2(n)) + (options.get("trees", 1) > 1)


def test_a_stuck_node_is_cut_at_the_median_of_its_widest_axis():
    """Two points twice at the same point: EM from a half that holds one of each finds no parts."""
    X = np.zeros((8, 3))
    X[:, 2] = [3, 1, 3, 1, 1, 3, 1, 3]
    below = [child_sets(gmm(words(X), random_state=seed), 0) for seed in range(5)]
    assert all(named([1, 3, 4, 6]) in sets for sets in below)


def test_an_outlier_at_each_level_makes_a_deep_tree_that_still_ends():
    tree = gmm(words(np.concatenate([np.zeros((1, 1)), 1.5 ** np.arange(180)[:, None]])))
    assert tree.n_labels == 181


def test_several_trees_stand_side_by_side_under_one_root():
    X = words(normal(30, 4))
    assert gmm(X, trees=2).fan_out[0] == 2
    assert gmm(X, trees=5).fan_out.tolist() == [5] + [2] * (5 * 29)
    parts = gmm(X, trees=3)
    alone = gmm(X)
    first = parts.child[3 : 3 + 2 * 29]
    assert np.array_equal(np.where(first < 0, first, first - 1), alone.child)
    assert len({frozenset(label_sets(gmm(X, random_state=seed))) for seed in range(4)}) == 4


def test_a_balanced_split_takes_no_epsilon():
    with pytest.raises(OptionError, match="epsilon needs split 'adaptive'"):
        gmm(words(normal(5, 2)), split="balanced", epsilon=0.1)


def two_clouds(rng, n, d):
    """Two overlapping clouds of unequal spread, away from zero."""
    second = rng.random((n, 1)) < 0.4
    return 10 + second * 1.5 / np.sqrt(d) + rng.standard_normal((n, d)) * np.where(second, 1, 0.7)


def fit(X, start, second, dtype=np.float64, iterations=10):
    nodes = Nodes(np.asarray(start))
    X = centred_rows(X.astype(dtype), np.arange(len(X)), nodes, 1.0)
    return log_odds(nodes, X, second, iterations)


@pytest.mark.parametrize("n", [4, 7, 50, 400])
@pytest.mark.parametrize("d", [1, 2, 10, 100])
@pytest.mark.parametrize("iterations", [1, 10])
def test_agrees_with_scikit_learn_from_the_same_start(n, d, iterations):
    rng = np.random.default_rng(n * d)
    X, second = two_clouds(rng, n, d), rng.permutation(n) < n // 2
    floor = VARIANCE_FLOOR * X.var(axis=0).mean()
    expected = em_responsibilities(X, second, floor, iterations)
    np.testing.assert_allclose(
        expit(fit(X, [0, n], second, iterations=iterations)), expected, rtol=0, atol=1e-9
    )
    single = fit(X, [0, n], second, iterations=iterations, dtype=np.float32)
    np.testing.assert_allclose(expit(single), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nodes_do_not_see_each_other(dtype):
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 30, 50)
    start = np.concatenate([[0], np.cumsum(sizes)])
    X, second = two_clouds(rng, start[-1], 6), rng.random(start[-1]) < 0.5
    together = fit(X, start, second, dtype=dtype)
    for a, b in pairwise(start):
        alone = fit(X[a:b], [0, b - a], second[a:b], dtype=dtype)
        np.testing.assert_allclose(expit(together[a:b]), expit(alone), atol=1e-3)
        if dtype == np.float64:
            np.testing.assert_allclose(together[a:b], alone, rtol=1e-6, atol=1e-8)


def test_a_large_node_is_summed_in_pieces():
    rng = np.random.default_rng(5)
    X, second = two_clouds(rng, 30_000, 4) + 100, rng.permutation(30_000) < 15_000
    np.testing.assert_allclose(
        expit(fit(X, [0, 30_000], second, dtype=np.float32)),
        expit(fit(X, [0, 30_000], second)),
        atol=2e-3,
    )

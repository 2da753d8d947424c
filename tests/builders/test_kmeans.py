import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from hstree.builders import kmeans as module
from hstree.builders.kmeans import kmeans
from hstree.builders.shared.nodes import Nodes
from hstree.kernels import numpy_only
from tests.builders.label_sets import child_sizes, label_sets
from tests.builders.vectors import named, normal, words
from tests.needs import NUMBA

pytestmark = pytest.mark.filterwarnings("error")


def gumbel(seed, *shape):
    return np.random.default_rng(seed).gumbel(size=shape)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize(("arity", "clusters"), [(2, 4), (3, 9), (4, 4)])
def test_planted_clusters_come_back_as_subtrees(arity, clusters, balanced):
    rng = np.random.default_rng(arity)
    size = np.full(clusters, 12) if balanced else rng.integers(8, 40, clusters)
    cluster = rng.permutation(np.repeat(np.arange(clusters), size))
    near, far = 10 * rng.standard_normal((clusters, 6)), 100 * rng.standard_normal((clusters, 6))
    centre = near + (far[np.arange(clusters) % arity] if clusters > arity else 0)
    X = centre[cluster] + 0.1 * rng.standard_normal((len(cluster), 6))
    subtrees = set(label_sets(kmeans(words(X), arity=arity, balanced=balanced)))
    for which in range(clusters):
        assert named(np.flatnonzero(cluster == which)) in subtrees


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lloyd_agrees_with_scikit_learn_from_the_same_centres(k, dtype):
    """Compiled, too, for float32 where numba is installed."""
    X = normal(300, 4).astype(dtype)
    nodes, noise = Nodes(np.array([0, 300])), gumbel(5, k, 300)
    centres = module.draw_centres(nodes, X, noise)
    theirs = KMeans(k, init=np.concatenate(centres), n_init=1, max_iter=100, tol=0).fit(X)
    ours = module.cluster_rows(nodes, X, centres, False, 100)
    assert np.array_equal(ours, theirs.labels_)


@pytest.mark.parametrize("iterations", [1, 3, 50])
@pytest.mark.parametrize("k", [2, 5])
def test_compiled_clusters_of_nodes_are_those_of_numpy(k, iterations):
    pytest.importorskip("numba", reason=NUMBA)
    nodes, X = Nodes(np.array([0, 7, 900, 1700, 1720])), normal(1720, 6).astype(np.float32)
    centres = module.draw_centres(nodes, X, gumbel(0, k, 1720))
    found = module.cluster_rows(nodes, X, list(centres), False, iterations)
    with numpy_only():
        expected = module.cluster_rows(nodes, X, centres, False, iterations)
    np.testing.assert_array_equal(found, expected)


def test_first_centres_are_drawn_by_squared_distance():
    n = 20_000
    nodes = Nodes(3 * np.arange(n + 1))
    X = np.tile([[0.0], [1.0], [3.0]], (n, 1))
    first, second = module.draw_centres(nodes, X, gumbel(0, 2, len(X)))
    shares = [np.mean(first == value) for value in (0, 1, 3)]
    assert shares == pytest.approx([1 / 3] * 3, abs=0.02)
    after_zero = second[first == 0]
    assert np.mean(after_zero == 3) == pytest.approx(0.9, abs=0.02)
    assert not (after_zero == 0).any()


def test_an_empty_cluster_keeps_its_centre():
    nodes, X = Nodes(np.array([0, 2, 4])), np.array([[1.0], [3.0], [5.0], [5.0]])
    centres = [np.array([[1.5], [7.0]]), np.array([[9.0], [5.5]])]
    with numpy_only():
        assert module.cluster_rows(nodes, X, centres, False, 1).tolist() == [0, 0, 1, 1]
    assert [centre.tolist() for centre in centres] == [[[2.0], [7.0]], [[9.0], [5.0]]]


@given(st.integers(2, 6), st.lists(st.integers(1, 15), min_size=1, max_size=6), st.integers(0, 99))
def test_even_split_peel_the_nearest_words_off(k, sizes, seed):
    nodes = Nodes(np.cumsum([0, *sizes]))
    n = nodes.start[-1]
    distance = np.random.default_rng(seed).integers(0, 5, (k, n)).astype(float)
    part = module._split_evenly(nodes, distance)
    for a, b in zip(nodes.start, nodes.start[1:], strict=False):
        left = list(range(a, b))
        for j in range(k - 1):
            wanted = math.ceil((j + 1) * (b - a) / k) - math.ceil(j * (b - a) / k)
            left.sort(key=lambda i: (distance[j, i] - distance[j + 1 :, i].min(), i))
            assert set(left[:wanted]) == {i for i in range(a, b) if part[i] == j}
            left = left[wanted:]


@pytest.mark.parametrize("arity", [2, 3, 8])
def test_balanced_children_differ_by_one_word_at_most(arity):
    tree = kmeans(words(normal(700, 4)), arity=arity, balanced=True)
    size, first = child_sizes(tree), tree.child_start[:-1]
    smallest, largest = np.minimum.reduceat(size, first), np.maximum.reduceat(size, first)
    assert (largest - smallest).max() == 1
    assert tree.depth.max() + 1 <= math.ceil(math.log(700, arity)) + 1


def test_small_nodes_are_wide_leaves():
    tree = kmeans(words(normal(5, 2)), arity=8)
    assert tree.child.tolist() == [~0, ~1, ~2, ~3, ~4]
    assert kmeans(words(normal(300, 3)), arity=8).fan_out.max() == 8


@pytest.mark.parametrize("balanced", [False, True])
def test_nodes_of_at_most_max_leaves_words_have_them_as_children(balanced):
    tree = kmeans(words(normal(700, 4)), arity=3, max_leaves=20, balanced=balanced)
    below, is_leaf = child_sizes(tree), tree.child < 0
    n_words = np.add.reduceat(below, tree.child_start[:-1])
    small = n_words <= 20
    assert (tree.fan_out == np.where(small, n_words, 3)).all()
    assert small[tree.edge_node[is_leaf]].all() or not balanced
    assert kmeans(words(normal(20, 4)), max_leaves=50).n_nodes == 1
    assert kmeans(words(normal(20, 4)), arity=4, max_leaves=2) == kmeans(
        words(normal(20, 4)), arity=4
    )


@pytest.mark.parametrize("n", [1, 2, 3, 64, 81])
@pytest.mark.parametrize("arity", [2, 3])
@pytest.mark.parametrize("balanced", [False, True])
def test_identical_vectors_are_cut_evenly(n, arity, balanced):
    tree = kmeans(words(np.full((n, 2), 0.1)), arity=arity, balanced=balanced)
    deepest = -1 if n == 1 else tree.depth.max()
    assert deepest + 1 == math.ceil(round(math.log(n, arity), 9))


def test_identical_vectors_are_cut_into_arity_parts_above_max_leaves():
    tree = kmeans(words(np.ones((200, 2))), arity=4, max_leaves=60)
    assert tree.fan_out.tolist() == [4, 50, 50, 50, 50]

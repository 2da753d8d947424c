"""The layer against definitions: enumerated leaves, finite differences, scipy, full sorts."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, log_expit, log_softmax

from hstree.layers import hierarchical
from hstree.layers import top_k as search
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.tree import Tree
from tests.layers.gradients import assert_slopes, dense
from tests.strategies import THREE_CYCLES, chain, codes_by_walk, trees


def random_layer(tree, seed, *, dim=3, scale=1.0, dtype=np.float64):
    """Return a layer with weights of this norm, and the generator they came from."""
    rng = np.random.default_rng(seed)
    layer = HierarchicalSoftmax(tree, dim, dtype=dtype)
    layer.weight[:] = rng.standard_normal(layer.weight.shape)
    layer.weight *= scale / np.maximum(np.linalg.norm(layer.weight, axis=1, keepdims=True), 1e-9)
    layer.bias[:] = rng.standard_normal(layer.bias.shape)
    return layer, rng


@contextmanager
def wide_nodes_dense(wanted):
    """Compute every node of three children or more by matrix products, others a few at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hstree.layers.arithmetic.PAIRS", 3)
        if wanted:
            patch.setattr(hierarchical, "NARROW", 2)
        yield


def oracle_log_prob(layer, hidden):
    """Compute all labels' log-probabilities along their codes, one branch at a time."""
    tree = layer.tree
    if tree.n_nodes == 0:
        return np.zeros(1)
    z = layer.weight @ hidden + layer.bias
    node_logits = np.split(z, np.cumsum(np.where(tree.fan_out == 2, 1, tree.fan_out))[:-1])
    step = [log_softmax(rows if len(rows) > 1 else [*rows, 0.0]) for rows in node_logits]
    label_codes = codes_by_walk(tree)
    log_prob = [[sum(step[n][b] for n, b in code) for code in codes] for codes in label_codes]
    return np.array([np.logaddexp.reduce(codes) for codes in log_prob])


@pytest.mark.parametrize("order", THREE_CYCLES, ids=str)
@pytest.mark.parametrize("is_one_softmax", [True, False])
def test_a_flat_tree_in_any_order_is_a_direct_softmax(order, is_one_softmax):
    tree = Tree.from_children(list("abcd"), [[~label for label in order]])
    layer, rng = random_layer(tree, 0)
    layer.is_one_softmax = is_one_softmax
    hidden, targets = rng.standard_normal((20, 3)), rng.integers(4, size=20)
    # The row of each label is that of its place among the children
    rows = [order.index(label) for label in range(4)]
    expected = log_softmax(hidden @ layer.weight[rows].T + layer.bias[rows], axis=1)
    np.testing.assert_allclose(layer.log_prob(hidden), expected, atol=1e-12)
    nll = -expected[np.arange(20), targets]
    np.testing.assert_allclose(layer.nll(hidden, targets), nll, atol=1e-12)
    np.testing.assert_allclose(layer.loss(hidden, targets, rng)[0], nll, atol=1e-12)
    labels, values = layer.top_k(hidden, 4)
    np.testing.assert_array_equal(labels, np.argsort(-expected, axis=1))
    np.testing.assert_allclose(values, -np.sort(-expected, axis=1), atol=1e-12)


@given(trees(only_codes=True), st.integers(0, 99), st.sampled_from([0.0, 1.0, 30.0, 1e3]))
def test_log_prob_is_the_walk_down_the_tree_and_sums_to_one(tree, seed, scale):
    layer, rng = random_layer(tree, seed, scale=scale)
    hidden = rng.standard_normal((3, 3))
    log_prob = layer.log_prob(hidden)
    expected = np.stack([oracle_log_prob(layer, h) for h in hidden])
    np.testing.assert_allclose(log_prob, expected, rtol=1e-9, atol=1e-9)
    assert np.exp(log_prob).sum(axis=1) == pytest.approx(np.ones(3), abs=1e-12)


@given(trees(only_codes=True), st.integers(0, 99), st.booleans())
def test_nll_is_minus_log_prob_of_the_target(tree, seed, all_dense):
    with wide_nodes_dense(all_dense):
        layer, rng = random_layer(tree, seed)
        hidden = rng.standard_normal((9, 3))
        targets = rng.integers(0, tree.n_labels, 9)
        expected = -layer.log_prob(hidden)[np.arange(9), targets]
        np.testing.assert_allclose(layer.nll(hidden, targets), expected, rtol=1e-10, atol=1e-12)
        losses, _ = layer.loss(hidden, targets)
        np.testing.assert_allclose(losses, layer.nll(hidden, targets), rtol=1e-12, atol=1e-12)


@given(trees(only_codes=True), st.integers(0, 99), st.booleans())
def test_gradients_agree_with_finite_differences(tree, seed, all_dense):
    with wide_nodes_dense(all_dense):
        layer, rng = random_layer(tree, seed)
        hidden, targets = rng.standard_normal((7, 3)), rng.integers(0, tree.n_labels, 7)
        slopes = dense(layer, layer.loss(hidden, targets)[1])
        arrays = {"hidden": hidden, **layer.parameters()}
        assert_slopes(arrays, slopes, lambda: layer.nll(hidden, targets).sum(), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-6), (np.float64, 1e-12)])
def test_a_logistic_decision_is_exact_at_both_ends(dtype, rtol):
    layer = HierarchicalSoftmax(Tree.from_children(["a", "b"], [[~0, ~1]]), 1, dtype=dtype)
    layer.weight[:], layer.bias[:] = 1.0, 0.0
    z = np.array([-1e4, -50.0, -1e-9, 0.0, 1e-9, 50.0, 1e4], dtype)
    for label, sign in ((0, 1), (1, -1)):
        losses, gradients = layer.loss(z[:, None], np.full(7, label))
        np.testing.assert_allclose(losses, -log_expit(sign * z), rtol=rtol)
        expected = -sign * expit(-sign * z)
        np.testing.assert_allclose(gradients.hidden[:, 0], expected, rtol=rtol, atol=rtol)


#: The search never gives way; it gives way at once; as it is.
patiences = st.sampled_from([np.inf, -np.inf, search.MIN_PATIENCE])


def top_k_with(patience, layer, hidden, k):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "MIN_PATIENCE", patience)
        return layer.top_k(hidden, k)


@given(
    trees(only_codes=True),
    st.integers(0, 99),
    st.integers(1, 30),
    st.sampled_from([0.1, 5.0, 30.0]),
    patiences,
)
def test_top_k_is_the_head_of_a_full_sort(tree, seed, k, scale, patience):
    layer, rng = random_layer(tree, seed, scale=scale)
    hidden = rng.standard_normal((3, 3))
    labels, log_prob = top_k_with(patience, layer, hidden, k)
    everything = layer.log_prob(hidden)
    expected = np.sort(everything, axis=1)[:, ::-1][:, :k]
    np.testing.assert_allclose(log_prob, expected, rtol=1e-9, atol=1e-9)
    at = np.take_along_axis(everything, labels, axis=1)
    np.testing.assert_allclose(at, log_prob, rtol=1e-9, atol=1e-9)
    assert all(len(set(row)) == len(row) for row in labels.tolist())


@given(trees(only_codes=True), st.data(), st.integers(1, 30), patiences)
def test_equal_counts_tie_by_label_whatever_the_tree(tree, data, k, patience):
    n = tree.n_labels
    counts = data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n) | st.just([1] * n))
    layer = HierarchicalSoftmax(tree, 2, counts=np.array(counts), dtype=np.float64)
    expected = sorted(range(n), key=lambda label: (-counts[label], label))[:k]
    labels, log_prob = top_k_with(patience, layer, np.ones((1, 2)), k)
    assert labels[0].tolist() == expected
    np.testing.assert_allclose(np.exp(log_prob[0]), np.array(counts)[expected] / sum(counts))


@given(trees(only_codes=True), st.integers(1, 30))
def test_search_and_full_sort_agree_on_float32_biases(tree, k):
    layer = HierarchicalSoftmax(tree, 2, counts=np.ones(tree.n_labels, int))
    hidden = np.ones((1, 2), np.float32)
    by_search, by_sort = (top_k_with(p, layer, hidden, k)[0] for p in (np.inf, -np.inf))
    np.testing.assert_array_equal(by_search, by_sort)


@pytest.mark.parametrize(("z", "expected"), [(-1e-9, [1, 0]), (-1e-14, [0, 1])])
@pytest.mark.parametrize("patience", [np.inf, -np.inf])
def test_only_what_rounding_could_hide_is_a_tie(z, expected, patience):
    layer = HierarchicalSoftmax(Tree.from_children(["a", "b"], [[~0, ~1]]), 1, dtype=np.float64)
    layer.bias[:] = z
    assert top_k_with(patience, layer, np.zeros((1, 1)), 2)[0].tolist() == [expected]
    assert top_k_with(patience, layer, np.zeros((1, 1)), 1)[0].tolist() == [expected[:1]]


@pytest.mark.parametrize("patience", [np.inf, -np.inf])
def test_each_label_ties_with_the_next(patience):
    layer = HierarchicalSoftmax(Tree.from_children(list("abc"), [[~0, ~1, ~2]]), 1, dtype=float)
    layer.bias[:] = [-1.4e-12, -0.7e-12, 0.0]
    assert top_k_with(patience, layer, np.zeros((1, 1)), 1)[0].tolist() == [[0]]


def test_ties_beyond_the_nearest_labels_are_seen():
    n_labels = 500
    flat = Tree([str(i) for i in range(n_labels)], [0, n_labels], ~np.arange(n_labels))
    layer = HierarchicalSoftmax(flat, 1, counts=np.ones(n_labels, int), dtype=np.float64)
    layer.bias += np.arange(n_labels) * 1e-14
    assert layer.top_k(np.zeros((1, 1)), 3)[0].tolist() == [[0, 1, 2]]


@pytest.mark.slow
def test_the_chain_of_a_hundred_thousand_labels_is_scored():
    n_labels = 100_000
    layer = HierarchicalSoftmax(chain(n_labels), 2, counts=np.ones(n_labels, int))
    hidden = np.ones((2, 2), np.float32)
    nll = layer.nll(hidden, np.array([0, n_labels - 1]))
    assert nll == pytest.approx(np.log(n_labels) * np.ones(2), rel=1e-4)

"""Compiled losses and searches against those in NumPy, and against formulas in more digits."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hstree.kernels import NARROW, numpy_only
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.tree import Tree
from tests.layers.gradients import drawn as drawn_layer
from tests.limits import use_threads
from tests.needs import NUMBA
from tests.scripts import run_python
from tests.strategies import chain, random_children, trees

pytest.importorskip("numba", reason=NUMBA)
arithmetic = pytest.importorskip("hstree.kernels.arithmetic")
decisions = pytest.importorskip("hstree.kernels.decisions")
layout = pytest.importorskip("hstree.kernels.layout")
functions = pytest.importorskip("hstree.kernels.functions")


def wide_tree(rng, wide=2 * NARROW):
    """Return a tree with binary, narrow and wide nodes, whose labels have one to three codes."""
    first = [1, 2, 3, *(~label for label in range(wide))]
    second = [4, *(~label for label in range(wide, 2 * wide))]
    third = [~label for label in rng.permutation(2 * wide)[: NARROW + 5].tolist()]
    children = [first, second, third, [~0, ~1, ~2], [~3, ~4]]
    return Tree.from_children([f"w{i}" for i in range(2 * wide)], children)


def narrow_tree(n_labels):
    """Return a tree of random shape whose nodes have few children."""
    children = random_children(Random(0), n_labels, wide=False)
    return Tree.from_children([f"w{i}" for i in range(n_labels)], children)


def drawn(tree, seed=0, *, dim=7, items=40):
    return drawn_layer(HierarchicalSoftmax(tree, dim), items, seed)


def check_tree(tree, seed, **sizes):
    """Compare a compiled pass, which has to run, with NumPy's."""
    layer, hidden, targets = drawn(tree, seed, **sizes)
    with numpy_only():
        expected = layer.nll(hidden, targets)
    with pytest.MonkeyPatch.context() as patch:
        if tree.n_nodes and not layer.is_one_softmax:  # the compiled pass has to run
            patch.delattr("hstree.layers.hierarchical.forward")
        nll = layer.nll(hidden, targets)
    np.testing.assert_allclose(nll, expected, rtol=1e-5, atol=1e-5)


#: Trees of any shape, and some with wide nodes.
ANY = trees(only_codes=True) | st.builds(wide_tree, st.integers(0, 2).map(np.random.default_rng))


@given(ANY, st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_trees_have_the_losses_of_numpy(tree, seed):
    check_tree(tree, seed)


@given(trees(only_codes=True), st.integers(0, 99), st.sampled_from([0.1, 1.0, 30.0]))
@settings(deadline=None, max_examples=25)
def test_all_labels_have_the_log_probabilities_of_numpy(tree, seed, scale):
    check_log_prob(tree, seed, scale)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_wide_nodes_have_the_log_probabilities_of_numpy(threads, monkeypatch):
    use_threads(monkeypatch, threads)
    check_log_prob(wide_tree(np.random.default_rng(0)), 0, 1.0)


def check_log_prob(tree, seed, scale):
    layer, hidden, _ = drawn(tree, seed, items=9)
    layer.weight *= scale
    logits = hidden @ layer.weight.T + layer.bias
    log_prob = layer.log_prob(hidden)
    # from the same logits, which are float32, both sum in float64
    expected = layer.log_prob_of_logits(logits.T)
    np.testing.assert_allclose(log_prob, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.logaddexp.reduce(log_prob, axis=1), 0, atol=1e-12)


@pytest.mark.parametrize("dtype", [">f4", np.int64])
def test_hidden_vectors_of_other_types_are_numpys(dtype):
    layer, hidden, targets = drawn(wide_tree(np.random.default_rng(0)))
    hidden = np.rint(hidden)
    expected = layer.nll(hidden, targets)
    np.testing.assert_allclose(layer.nll(hidden.astype(dtype), targets), expected, rtol=1e-5)
    assert layer.top_k(hidden.astype(dtype), 3)[0].tolist() == layer.top_k(hidden, 3)[0].tolist()


def test_blas_is_held_to_one_thread_in_every_library(tmp_path):
    code = """
import hstree.kernels.functions
from hstree._parallel import one_blas_thread
from threadpoolctl import threadpool_info
with one_blas_thread():
    print({one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"})
"""
    assert run_python(["-c", code], tmp_path, OPENBLAS_NUM_THREADS="2") == "{1}\n"


def test_work_at_wide_nodes_in_pieces_has_the_losses_of_numpy():
    wide = wide_tree(np.random.default_rng(0), layout.MIN_ROWS + NARROW)
    check_tree(wide, 0, items=2 * layout.MIN_VISITS + 5)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_share_a_large_batch_and_change_no_byte(threads, monkeypatch):
    layer, hidden, targets = drawn(narrow_tree(700), items=decisions.MANY_ITEMS + 77)

    results = []
    for number in (1, threads):
        use_threads(monkeypatch, number)
        results.append(layer.nll(hidden, targets))
    np.testing.assert_array_equal(results[1], results[0])


def test_a_chain_deeper_than_any_code_of_a_text():
    check_tree(chain(3000), 0)


def test_a_batch_of_too_many_scores_is_left_to_numpy(monkeypatch):
    layer, hidden, targets = drawn(narrow_tree(50))
    n_scores = layer.compiled_layout(targets, hidden, with_gradients=False).n_logits
    monkeypatch.setattr(functions, "MAX_LOGITS", n_scores)
    compiled = layer.nll(hidden, targets)
    monkeypatch.setattr(functions, "MAX_LOGITS", n_scores - 1)
    losses = layer.nll(hidden, targets)
    with numpy_only():
        np.testing.assert_array_equal(losses, layer.nll(hidden, targets))
    assert (losses != compiled).any()
    assert losses == pytest.approx(compiled, rel=1e-5)


@given(
    trees(only_codes=True, max_labels=60),
    st.integers(0, 99),
    st.sampled_from([0.0, 0.3, 30.0]),
)
@settings(deadline=None, max_examples=25)
def test_the_most_probable_labels_are_those_of_a_full_sort(tree, seed, scale):
    """With weights of zero many labels tie: they are in the order of their ids."""
    layer, hidden, _ = drawn(tree, seed, items=5)
    for parameter in layer.parameters().values():
        parameter *= np.float32(scale)
    log_prob = layer.log_prob(hidden)
    for k in (1, 3, tree.n_labels):
        labels, values = layer.top_k(hidden, k)
        with numpy_only():
            expected, wanted = layer.top_k(hidden, k)
        np.testing.assert_allclose(values, wanted, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            np.take_along_axis(log_prob, labels, axis=1), values, rtol=1e-5, atol=1e-5
        )
        assert all(len(set(row)) == len(row) for row in labels.tolist())
        if scale == 0:
            assert labels.tolist() == expected.tolist()


def test_a_label_has_another_code_at_a_node_wider_than_a_search_is_long():
    n = 600
    chain = [[~i, i + 3] for i in range(n - 2)] + [[~(n - 2), ~(n - 1)]]
    children = [[1, 2], [~i for i in reversed(range(n))], *chain]
    layer, hidden, _ = drawn(Tree.from_children([f"w{i}" for i in range(n)], children), items=2)
    layer.weight[:], layer.bias[:] = 0, 0
    # the root, the last branch of its first child, and the first branch of the other, of one label
    layer.bias[[0, n, n + 1]] = -1, 8, 5
    labels, values = layer.top_k(hidden, 1)
    assert labels.tolist() == [[0], [0]]
    np.testing.assert_allclose(values[:, 0], layer.log_prob(hidden)[:, 0], rtol=1e-6)


def test_a_search_that_becomes_long_gives_way_to_a_dense_pass():
    """Where all labels are about as likely, and nearly all would be met."""
    layer, hidden, _ = drawn(narrow_tree(3000), items=5)
    layer.weight *= np.float32(1e-3)
    layer.bias[:] = 0
    labels, values = layer.top_k(hidden, 400)
    every = np.sort(layer.log_prob(hidden), axis=1)[:, ::-1]
    np.testing.assert_allclose(values, every[:, :400], rtol=1e-5)
    assert all(len(set(row)) == 400 for row in labels.tolist())


def test_large_and_small_logits_lose_no_digits():
    tree = Tree.from_children(list("abcd"), [[1, ~0], [~1, ~2, ~3]])
    layer, hidden, targets = drawn(tree, items=200)
    for scale in (1e-6, 1e-2, 30.0, 3e3):
        with numpy_only():
            expected = layer.nll(hidden * np.float32(scale), targets)
        found = layer.nll(hidden * np.float32(scale), targets)
        # logits of that size are rounded by as much
        np.testing.assert_allclose(found, expected, rtol=3e-6, atol=1e-6 * max(1, scale))


def test_exponentials_and_logarithms_are_those_of_float64():
    x = np.concatenate([-np.logspace(-9, 1.93, 999), [0], np.logspace(-9, 1.93, 999)])
    x = x.astype(np.float32)
    found = np.array([arithmetic.exp.py_func(value) for value in x])
    np.testing.assert_allclose(found, np.exp(x.astype(np.float64)), rtol=4e-7)
    assert (
        arithmetic.exp.py_func(np.float32(-104)) == arithmetic.exp.py_func(np.float32(-np.inf)) == 0
    )
    x = np.concatenate([[0], np.logspace(-20, 0, 999)]).astype(np.float32)
    found = np.array([arithmetic.log1p.py_func(value) for value in x])
    np.testing.assert_allclose(found, np.log1p(x.astype(np.float64)), rtol=3e-7)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    ("targets", "width"),
    [
        ([0, 1, 2, 64], 7),
        ([0, 1, 2, -1], 7),
        ([0, 1, 2, 2**32 + 5], 7),
        ([0, 1, 2, 1.7], 7),
        ([0, 1], 7),
        ([[0], [1], [2], [3]], 7),
        ([0, 1, 2, 3], 8),
        ([0, 1, 2, 3], 6),
    ],
)
def test_targets_and_vectors_that_do_not_fit_are_refused(wide, targets, width):
    words, children = [f"w{i}" for i in range(64)], random_children(Random(0), 64, wide=False)
    if wide:
        children = [[1, *(~i for i in range(50))], [~i for i in range(50, 64)]]
    layer = HierarchicalSoftmax(Tree.from_children(words, children), 7)
    hidden = np.ones((4, width), np.float32)
    for function in (layer.nll, layer.loss):
        with pytest.raises((IndexError, ValueError), match="must"):
            function(hidden, np.array(targets))
    if width != 7:
        with pytest.raises(ValueError, match="must have the shape"):
            layer.top_k(hidden, 3)

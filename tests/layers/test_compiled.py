"""Compiled kernels against those in NumPy, and against formulas in more digits."""

import copy
import os
import pickle
import subprocess
import sys
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hstree._compiled import STEP, in_parts, numpy_alone, twins
from hstree.layers import hierarchical, kernels, top_k
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.tree import Tree
from hstree.tree.weight_rows import NARROW
from tests.needs import NUMBA
from tests.strategies import random_children, trees

pytest.importorskip("numba", reason=NUMBA)
compiled = pytest.importorskip("hstree.layers.compiled")


def wide_tree(rng, wide=2 * NARROW):
    """Return a tree with binary, narrow and wide nodes, whose labels have one to three codes."""
    first = [1, 2, 3, *(~label for label in range(wide))]
    second = [4, *(~label for label in range(wide, 2 * wide))]
    third = [~label for label in rng.permutation(2 * wide)[: NARROW + 5].tolist()]
    children = [first, second, third, [~0, ~1, ~2], [~3, ~4]]
    return Tree.from_children([f"w{i}" for i in range(2 * wide)], children)


def drawn(tree, rng, *, dim=7, items=40):
    """Return a layer with drawn parameters, hidden vectors and targets, in float32."""
    layer = HierarchicalSoftmax(tree, dim)
    for parameter in layer.parameters().values():
        parameter[...] = rng.standard_normal(parameter.shape)
    hidden = rng.standard_normal((items, dim)).astype(np.float32)
    return layer, hidden, rng.integers(0, tree.n_labels, items)


def dense(layer, gradients):
    """Return the gradients of all rows by name, those that are left out zero."""
    result = {name: np.zeros_like(array) for name, array in layer.parameters().items()}
    for g in gradients.parameters:
        rows = np.arange(len(layer.bias))[g.rows]
        assert len(np.unique(rows)) == len(rows)
        result[g.name][rows] += g.values
    return result


def check_tree(tree, seed, **sizes):
    layer, hidden, targets = drawn(tree, np.random.default_rng(seed), **sizes)
    assert (layer.compiled(len(hidden), hidden) is None) == (
        layer._is_one_softmax or not tree.n_nodes
    )
    losses, gradients = layer.loss(hidden, targets)
    with numpy_alone():
        assert layer.compiled(len(hidden), hidden) is None
        expected, of_numpy = layer.loss(hidden, targets)
        nll = layer.nll(hidden, targets)
    np.testing.assert_allclose(losses, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(layer.nll(hidden, targets), nll, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gradients.hidden, of_numpy.hidden, rtol=1e-5, atol=2e-5)
    found, wanted = dense(layer, gradients), dense(layer, of_numpy)
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=2e-5, err_msg=name)


@given(trees(plain_labels=True), st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_trees_have_the_losses_and_gradients_of_numpy(tree, seed):
    check_tree(tree, seed)


@pytest.mark.parametrize("seed", range(3))
def test_wide_nodes_have_the_losses_and_gradients_of_numpy(seed):
    check_tree(wide_tree(np.random.default_rng(seed)), seed)


@given(trees(plain_labels=True), st.integers(0, 99), st.sampled_from([0.1, 1.0, 30.0]))
@settings(deadline=None, max_examples=40)
def test_all_labels_have_the_log_probabilities_of_numpy(tree, seed, scale):
    check_log_prob(tree, seed, scale)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_wide_nodes_have_the_log_probabilities_of_numpy(threads, monkeypatch):
    monkeypatch.setattr("hstree._compiled.n_threads", lambda: threads)
    check_log_prob(wide_tree(np.random.default_rng(0)), 0, 1.0)


@given(trees(plain_labels=True), st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_draws_are_those_of_numpy(tree, seed):
    check_draws(tree, seed)


@pytest.mark.parametrize("threads", [1, 3])
def test_draws_at_wide_nodes_are_those_of_numpy(threads, monkeypatch):
    monkeypatch.setattr("hstree._compiled.n_threads", lambda: threads)
    for seed in range(3):
        check_draws(wide_tree(np.random.default_rng(0)), seed, items=700)


def check_draws(tree, seed, **sizes):
    layer, hidden, _ = drawn(tree, np.random.default_rng(seed), **sizes)
    found = layer.sample(hidden, np.random.default_rng(seed))
    with numpy_alone():
        expected = layer.sample(hidden, np.random.default_rng(seed))
    # a number within rounding of a boundary may fall on its other side
    assert np.count_nonzero(found != expected) <= len(hidden) // 500


def check_log_prob(tree, seed, scale):
    layer, hidden, _ = drawn(tree, np.random.default_rng(seed), items=9)
    layer.weight *= scale
    found = layer.log_prob(hidden)
    with numpy_alone():
        expected = layer.log_prob(hidden)
    # logits are products of float32, which BLAS sums in another order for other shapes
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * scale)
    np.testing.assert_allclose(np.logaddexp.reduce(found, axis=1), 0, atol=1e-12)
    logits = np.random.default_rng(seed).normal(0, scale, (9, len(layer.bias))).astype("f")
    of_twin = compiled.log_prob_of_logits(tree, logits)
    np.testing.assert_allclose(of_twin, layer.log_prob_of_logits(logits.T), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [">f4", np.int64])
def test_hidden_vectors_of_other_types_are_numpys(dtype):
    layer, hidden, targets = drawn(wide_tree(np.random.default_rng(0)), np.random.default_rng(0))
    hidden = np.rint(hidden)
    expected = layer.nll(hidden, targets)
    np.testing.assert_allclose(layer.nll(hidden.astype(dtype), targets), expected, rtol=1e-5)
    assert layer.top_k(hidden.astype(dtype), 3)[0].tolist() == layer.top_k(hidden, 3)[0].tolist()


def test_adagrad_refuses_what_numpy_would():
    parameter, squares, grad = np.ones((4, 2), "f"), np.ones(4, "f"), np.ones((1, 2), "f")
    rows = np.array([2])
    with pytest.raises(ValueError, match="sums of squares must have the shape"):
        compiled.adagrad_rows(parameter, squares[:2], rows, grad, 0.1)
    with pytest.raises(ValueError, match="owed decay must have the shape"):
        compiled.adagrad_rows(parameter, squares, rows, grad, 0.1, np.ones(2, "f"))
    parameter.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled.adagrad_rows(parameter, squares, rows, grad, 0.1)


def test_blas_is_held_to_one_thread_in_every_library():
    code = """
import numpy as np
from hstree.layers.node_groups import one_blas_thread
with one_blas_thread():
    pass
import hstree.layers.compiled
from threadpoolctl import threadpool_info
with one_blas_thread():
    print({one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"})
"""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True,
                         text=True, check=True)  # fmt: skip
    assert ran.stdout == "{1}\n"


def test_work_at_wide_nodes_in_pieces_has_the_losses_and_gradients_of_numpy():
    wide = wide_tree(np.random.default_rng(0), compiled.ROWS + NARROW)
    check_tree(wide, 0, items=2 * compiled.ITEMS + 5)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_share_a_large_batch_and_change_no_byte(threads, monkeypatch):
    children = random_children(Random(2), 700, wide=False)
    tree = Tree.from_children([f"w{i}" for i in range(700)], children)
    layer, hidden, targets = drawn(tree, np.random.default_rng(0), items=compiled.MANY_ITEMS + 77)

    def computed(number):
        monkeypatch.setattr("hstree.layers.compiled.n_threads", lambda: number)
        monkeypatch.setattr("hstree._compiled.n_threads", lambda: number)
        return layer.loss(hidden, targets)

    (losses, gradients), (shared, of_shared) = computed(1), computed(threads)
    np.testing.assert_array_equal(shared, losses)
    np.testing.assert_array_equal(of_shared.hidden, gradients.hidden)
    for one, other in zip(gradients.parameters, of_shared.parameters, strict=True):
        np.testing.assert_array_equal(other.rows, one.rows)
        np.testing.assert_array_equal(other.values, one.values)


def test_parts_cover_a_range_once(monkeypatch):
    for threads in (1, 2, 5):
        monkeypatch.setattr("hstree._compiled.n_threads", lambda threads=threads: threads)
        for n in (0, 1, STEP, 10 * STEP + 3):
            parts = []
            in_parts(n, lambda *part, parts=parts: parts.append(part), "given")
            covered = [i for first, stop, _ in sorted(parts) for i in range(first, stop)]
            assert covered == list(range(n))
            assert len(parts) <= threads
            assert {given for _, _, given in parts} == {"given"}


def test_an_error_in_a_part_is_raised(monkeypatch):
    monkeypatch.setattr("hstree._compiled.n_threads", lambda: 2)

    def faulty(first, stop):
        if first == 0:
            raise ValueError("first part")

    with pytest.raises(ValueError, match="first part"):
        in_parts(2 * STEP, faulty)


def test_a_chain_deeper_than_any_code_of_a_text():
    n = 3000
    children = [[~i, i + 1] for i in range(n - 2)] + [[~(n - 2), ~(n - 1)]]
    check_tree(Tree.from_children([f"w{i}" for i in range(n)], children), 0)


def test_a_batch_of_too_many_scores_is_left_to_numpy(monkeypatch):
    tree = Tree.from_children(
        [f"w{i}" for i in range(50)], random_children(Random(0), 50, wide=False)
    )
    layer, hidden, targets = drawn(tree, np.random.default_rng(0))
    losses = layer.nll(hidden, targets)
    longest = layer.codes.length.max()
    monkeypatch.setattr(hierarchical, "MOST_SCORES", len(hidden) * longest)
    assert layer.compiled(len(hidden), hidden) is not None
    monkeypatch.setattr(hierarchical, "MOST_SCORES", len(hidden) * longest - 1)
    assert layer.compiled(len(hidden), hidden) is None
    assert layer.nll(hidden, targets) == pytest.approx(losses, rel=1e-5)


@given(
    trees(plain_labels=True, several_codes=False, max_labels=60),
    st.integers(0, 99),
    st.sampled_from([0.0, 0.3, 30.0]),
)
@settings(deadline=None, max_examples=40)
def test_the_most_probable_labels_are_those_of_a_full_sort(tree, seed, scale):
    """With weights of zero many labels tie: they are in the order of their ids."""
    layer, hidden, _ = drawn(tree, np.random.default_rng(seed), items=5)
    for parameter in layer.parameters().values():
        parameter *= np.float32(scale)
    log_prob = layer.log_prob(hidden)
    for k in (1, 3, tree.n_labels):
        labels, values = layer.top_k(hidden, k)
        with numpy_alone():
            expected, wanted = layer.top_k(hidden, k)
        np.testing.assert_allclose(values, wanted, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            np.take_along_axis(log_prob, labels, axis=1), values, rtol=1e-5, atol=1e-5
        )
        assert all(len(set(row)) == len(row) for row in labels.tolist())
        if scale == 0:
            assert labels.tolist() == expected.tolist()


@pytest.mark.parametrize("patience", [0, 1])
def test_a_search_that_becomes_long_gives_way_to_a_dense_pass(monkeypatch, patience):
    tree = Tree.from_children(
        [f"w{i}" for i in range(300)], random_children(Random(1), 300, wide=True)
    )
    layer, hidden, _ = drawn(tree, np.random.default_rng(0))
    with numpy_alone():
        expected = layer.top_k(hidden, 5)
    monkeypatch.setattr(top_k, "LEAST_PATIENCE", patience)
    monkeypatch.setattr(top_k, "COMPILED_PATIENCE", 0)
    labels, values = layer.top_k(hidden, 5)
    np.testing.assert_array_equal(labels, expected[0])
    np.testing.assert_allclose(values, expected[1], rtol=1e-5)


def test_large_and_small_logits_lose_no_digits():
    tree = Tree.from_children(list("abcd"), [[1, ~0], [~1, ~2, ~3]])
    layer, hidden, targets = drawn(tree, np.random.default_rng(0), items=200)
    for scale in (1e-6, 1e-2, 30.0, 3e3):
        with numpy_alone():
            expected = layer.nll(hidden * np.float32(scale), targets)
        found = layer.nll(hidden * np.float32(scale), targets)
        # logits of that size are rounded by as much
        np.testing.assert_allclose(found, expected, rtol=3e-6, atol=1e-6 * max(1, scale))


def test_exponentials_and_logarithms_are_those_of_float64():
    compiled = twins("layers")
    x = np.concatenate([-np.logspace(-9, 1.93, 999), [0], np.logspace(-9, 1.93, 999)])
    x = x.astype(np.float32)
    found = np.array([compiled.exp(value) for value in x])
    np.testing.assert_allclose(found, np.exp(x.astype(np.float64)), rtol=4e-7)
    assert compiled.exp(np.float32(-104)) == compiled.exp(np.float32(-np.inf)) == 0
    x = np.concatenate([[0], np.logspace(-20, 0, 999)]).astype(np.float32)
    found = np.array([compiled.log1p(value) for value in x])
    np.testing.assert_allclose(found, np.log1p(x.astype(np.float64)), rtol=3e-7)


@pytest.mark.parametrize("n", [1, 2, 4, 5, 9])
def test_windows_are_those_of_numpy(n):
    rng = np.random.default_rng(n)
    embedding = rng.standard_normal((30, 6)).astype(np.float32)
    position = rng.standard_normal((n, 6)).astype(np.float32)
    contexts, grad = rng.integers(0, 30, (11, n)), rng.standard_normal((11, 6)).astype(np.float32)
    hidden, vectors = kernels.window_sum(embedding, position, contexts)
    words, *found = kernels.window_sum_backward(embedding, position, contexts, vectors, grad)
    with numpy_alone():
        expected, vectors = kernels.window_sum(embedding, position, contexts)
        ascending, *wanted = kernels.window_sum_backward(
            embedding, position, contexts, vectors, grad
        )
    np.testing.assert_allclose(hidden, expected, rtol=1e-5, atol=1e-6)
    order = np.argsort(words)
    np.testing.assert_array_equal(words[order], ascending)
    np.testing.assert_allclose(found[0][order], wanted[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [slice(2, 9), slice(None), np.array([4, 0, 7])])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
@pytest.mark.parametrize("decays", [False, True])
def test_adagrad_is_that_of_numpy(rows, shape, decays):
    rng = np.random.default_rng(0)
    parameter = rng.standard_normal((9, *shape)).astype(np.float32)
    squares = rng.random(9).astype(np.float32)
    gradient = rng.standard_normal(parameter[rows].shape).astype(np.float32)
    owed = rng.random(len(gradient)).astype(np.float32) if decays else None
    expected, sums = parameter.copy(), squares.copy()
    with numpy_alone():
        kernels.adagrad_rows(expected, sums, rows, gradient, 0.1, owed)
    kernels.adagrad_rows(parameter, squares, rows, gradient, 0.1, owed)
    np.testing.assert_allclose(parameter, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(squares, sums, rtol=1e-6)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    ("targets", "width"),
    [
        ([0, 1, 2, 64], 7),
        ([0, 1, 2, -1], 7),
        ([0, 1, 2, 2**32 + 5], 7),
        ([0, 1, 2, 1.7], 7),
        ([0, 1], 7),
        ([0] * 50, 7),
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


@pytest.mark.parametrize("contexts", [[[0, 30]], [[0, -1]], [[0, 2**32]], [[0]], [0]])
def test_contexts_that_do_not_fit_are_refused(contexts):
    embedding, position = np.ones((30, 6), np.float32), np.ones((2, 6), np.float32)
    grad = np.ones((1, 6), np.float32)
    with pytest.raises((IndexError, ValueError), match="must"):
        kernels.window_sum(embedding, position, np.array(contexts))
    with pytest.raises((IndexError, ValueError), match="must"):
        kernels.window_sum_backward(embedding, position, np.array(contexts), grad, grad)


@pytest.mark.parametrize(("rows", "n"), [([0, 9], 2), ([-1, 3], 2), ([0, 1], 3)])
def test_rows_that_do_not_fit_are_refused(rows, n):
    parameter, squares = np.ones((9, 3), np.float32), np.ones(9, np.float32)
    with pytest.raises((IndexError, ValueError), match="must"):
        kernels.adagrad_rows(parameter, squares, np.array(rows), parameter[:n], 0.1, None)


def test_copies_of_a_layer_need_no_numba():
    layer, hidden, targets = drawn(wide_tree(np.random.default_rng(0)), np.random.default_rng(0))
    losses = layer.nll(hidden, targets)
    assert b"hstree.layers.compiled" not in pickle.dumps(layer)
    for twin in (pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer)):
        np.testing.assert_array_equal(twin.nll(hidden, targets), losses)

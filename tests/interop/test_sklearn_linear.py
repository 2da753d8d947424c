"""A linear model over a tree: its loss and gradients, and the steps of Adagrad."""

import numpy as np
import pytest
import scipy.sparse

from hstree import Tree, build
from hstree.data.vocabulary import Vocabulary
from hstree.interop.sklearn.adagrad import Adagrad
from hstree.interop.sklearn.linear import LinearTree
from hstree.layers.hierarchical import HierarchicalSoftmax


def make_tree(name, n_labels=50):
    rng = np.random.default_rng(0)
    labels = [f"w{i}" for i in range(n_labels)]
    counts = rng.integers(1, 9, n_labels)
    if name == "wide below":
        wide, narrow = range(-n_labels, 0), [~n_labels, ~(n_labels + 1)]
        return Tree.from_children([*labels, "a", "b", "c"], [[1, 2, ~(n_labels + 2)], wide, narrow])
    method, _, arity = name.partition(" ")
    options = {"arity": int(arity)} if arity else {}
    return build(method, Vocabulary(labels, counts), **options)


TREES = ("huffman", "huffman 5", "flat", "wide below")


@pytest.fixture(params=TREES)
def tree(request):
    return make_tree(request.param)


def new_model(tree, n_features, sparse):
    counts = np.ones(tree.n_labels + tree.n_nodes, np.int64)
    return LinearTree(tree, n_features, counts, sparse=sparse, dtype=np.float64)


@pytest.fixture(params=["dense", "sparse"])
def setting(request, tree):
    """A model with random weights, and a batch with an empty row and an unused feature."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 9)) * (rng.random((30, 9)) < 0.4)
    X[3] = 0
    X[:, 5] = 0
    sparse = request.param == "sparse"
    model = new_model(tree, 9, sparse)
    model.make_dense()
    model.table[...] = rng.standard_normal(model.table.shape)
    model.bias += rng.standard_normal(len(model.bias))
    labels = rng.integers(tree.n_labels, size=30)
    weight = rng.uniform(0, 2, 30)
    return model, model.converted(X), labels, weight


def test_scores_are_those_of_the_layer(setting):
    model, X, labels, weight = setting
    layer = HierarchicalSoftmax(model.tree, 9, dtype=np.float64)
    layer.weight, layer.bias = np.ascontiguousarray(model.weight), model.bias
    dense = X.toarray() if model.sparse else X
    nll, _ = model.loss(X, labels, weight)
    np.testing.assert_allclose(nll, layer.nll(dense, labels), atol=1e-10)
    for rows, log_prob in model.log_prob(X):
        np.testing.assert_allclose(log_prob, layer.log_prob(dense[rows]), atol=1e-10)


def test_gradients_are_those_of_finite_differences(setting):
    model, X, labels, weight = setting
    _, gradients = model.loss(X, labels, weight)
    by_table, by_bias = np.zeros_like(model.table), np.zeros_like(model.bias)
    for gradient in gradients:
        assert not by_table[gradient.index].any()
        by_table[gradient.index] = gradient.weight
        by_bias[gradient.rows] = gradient.bias
    rng, table, bias, step = np.random.default_rng(2), model.table.copy(), model.bias, 1e-5

    def total(sign, table_step, bias_step):
        model.table[...] = table + sign * table_step
        model.bias = bias + sign * bias_step
        return weight @ model.loss(X, labels, weight)[0]

    for _ in range(4):
        along = step * rng.standard_normal(table.shape), step * rng.standard_normal(bias.shape)
        actual = total(1, *along) - total(-1, *along)
        expected = 2 * (np.vdot(by_table, along[0]) + by_bias @ along[1])
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_a_table_is_allocated_by_make_dense_alone(tree):
    model = new_model(tree, 9, True)
    (log_prob,) = [log_prob for _, log_prob in model.log_prob(scipy.sparse.csr_array((1, 9)))]
    np.testing.assert_allclose(np.exp(log_prob).sum(), 1, rtol=1e-6)
    assert model.weight.nnz == 0
    model.make_dense()
    assert model.table.shape == (9, len(model.bias))
    assert model.table.flags.c_contiguous
    assert not model.table.any()


def test_chunks_change_nothing(setting, monkeypatch):
    model, X, labels, weight = setting
    whole = model.loss(X, labels, weight)[0]
    monkeypatch.setattr("hstree.interop.sklearn.linear.PRODUCTS", 20)
    np.testing.assert_allclose(model.loss(X, labels, weight)[0], whole, atol=1e-12)


# Adagrad


@pytest.mark.parametrize("n_labels", [2, 3, 40])
@pytest.mark.parametrize("sparse", [True, False])
def test_steps_pay_for_the_batches_that_passed_by(n_labels, sparse):
    labels = [str(i) for i in range(n_labels)]
    tree = Tree.from_children(labels, [[~i for i in range(n_labels)]])
    model = new_model(tree, 2, sparse)
    model.make_dense()
    model.table[...] = (1 + np.arange(model.table.size).reshape(model.table.shape)) / 10
    adagrad = Adagrad(model)
    rng = np.random.default_rng(0)
    penalty = 0.05
    weight, squares = model.weight.copy(), np.zeros(model.weight.shape)
    passed = np.zeros(model.weight.shape)
    for x in ([1.0, 0.0], [0.0, 2.0], [0.0, 1.0], [1.0, 1.0], [3.0, 0.0]):
        X = scipy.sparse.csr_array([x, x])
        if not sparse:
            X = X.toarray()
        passed += 1
        _, gradients = model.loss(X, np.array([0, 1]), np.ones(2))
        by_table = np.zeros_like(model.table)
        touched = np.zeros(model.table.shape, bool)
        for gradient in gradients:
            by_table[gradient.index] = gradient.weight
            touched[gradient.index] = True
        by_weight, touched = (by_table.T, touched.T) if sparse else (by_table, touched)
        assert (touched == (np.array(x) != 0) if sparse else touched).all()
        step = by_weight + passed * 2 * penalty * weight  # batches of two samples
        squares[touched] += step[touched] ** 2
        weight[touched] -= 0.3 * step[touched] / np.sqrt(squares[touched] + 1e-10)
        passed[touched] = 0
        options = {"learning_rate": 0.3, "penalty": penalty, "batch_size": 2, "rng": rng}
        adagrad.epoch(X, np.array([0, 1]), np.ones(2), **options)
        np.testing.assert_allclose(model.weight, weight, atol=1e-12)

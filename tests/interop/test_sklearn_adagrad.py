"""Adagrad over a tree's weights: each step as the formula has it, and the penalty that was owed."""

import numpy as np
import pytest
import scipy.sparse

from hstree import Tree, Vocabulary, build
from hstree._compiled import numpy_alone
from hstree.interop.sklearn.linear import LinearTree
from hstree.interop.sklearn.solvers import Adagrad
from tests.needs import NUMBA


@pytest.mark.parametrize("n_labels", [2, 3, 40])
@pytest.mark.parametrize("sparse", [True, False])
def test_steps_pay_for_the_batches_that_passed_by(n_labels, sparse):
    labels = [str(i) for i in range(n_labels)]
    tree = Tree.from_children(labels, [[~i for i in range(n_labels)]])
    model = LinearTree(tree, 2, sparse=sparse, dtype=np.float64)
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("builder", ["huffman", "flat"])
def test_kernels_move_the_weights_to_the_same_bits(builder, sparse, dtype):
    pytest.importorskip("numba", reason=NUMBA)
    n, n_features, n_labels = 300, 50, 60
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((n, n_features), density=0.2, rng=rng, dtype=dtype).tocsr()
    labels, weight = rng.integers(0, n_labels, n), rng.random(n)
    vocabulary = Vocabulary([str(i) for i in range(n_labels)], np.arange(1, n_labels + 1))

    def trained():
        model = LinearTree(build(builder, vocabulary), n_features, sparse=sparse, dtype=dtype)
        adagrad = Adagrad(model)
        of_batches = {"batch_size": 32, "rng": np.random.default_rng(1)}
        for _ in range(3):
            adagrad.epoch(
                model.converted(X), labels, weight, learning_rate=0.3, penalty=0.01, **of_batches
            )
        return model.table, model.bias

    with numpy_alone():
        expected = trained()
    for found, wanted in zip(trained(), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert np.abs(wanted).max() > 0.1

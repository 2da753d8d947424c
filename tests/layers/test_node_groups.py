"""Groups of nodes: narrow nodes with many scores in a batch, wide nodes, and reused memory."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hstree.layers import hierarchical
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.layers.node_groups import (
    ONE_BLAS_THREAD,
    SCIPY_BLAS,
    _blas,
)
from hstree.tree import Tree
from tests.layers.gradients import dense, drawn

# Nodes of 3, 5 and 40 children; "w7" has a code under two of them.
TREE = Tree.from_children(
    [f"w{i}" for i in range(50)],
    [[1, 2, ~0], [*(~i for i in range(1, 5)), ~7], [~i for i in range(5, 50)]],
)


def layer_of(seed=0, dim=4):
    return drawn(HierarchicalSoftmax(TREE, dim, dtype=np.float64), seed=seed)[0]


def batch(seed, n=60, dim=4):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, dim)), rng.integers(0, 50, n)


def of_weight(gradients):
    return [g for g in gradients.parameters if g.name == "node_weight"]


def slopes(layer, gradients):
    """Return the gradient with respect to all node vectors."""
    return dense(layer, gradients)["node_weight"]


@pytest.mark.parametrize("crowded", [1, 30, 150])
def test_crowded_nodes_give_what_sparse_ones_give(crowded, monkeypatch):
    layer, (hidden, targets) = layer_of(), batch(1)
    monkeypatch.setattr(hierarchical, "CROWDED", 10**9)
    nll, gradients = layer.loss(hidden, targets)
    expected = nll, gradients.hidden, slopes(layer, gradients)
    monkeypatch.setattr(hierarchical, "CROWDED", crowded)
    nll, gradients = layer.loss(hidden, targets)
    for actual, other in zip(
        (nll, gradients.hidden, slopes(layer, gradients)), expected, strict=True
    ):
        np.testing.assert_allclose(actual, other, rtol=1e-10, atol=1e-12)
    every = np.concatenate([np.arange(len(layer.weight))[g.rows] for g in of_weight(gradients)])
    assert len(set(every.tolist())) == len(every)  # no row occurs twice


def test_a_batch_of_one_has_the_gradient_of_its_softmax():
    layer = HierarchicalSoftmax(Tree([f"w{i}" for i in range(50)], [0, 50], ~np.arange(50)), 4)
    hidden = np.ones((1, 4), np.float32)
    nll, gradients = layer.loss(hidden, np.array([7]))
    _, bias = gradients.parameters
    assert nll[0] == pytest.approx(np.log(50))
    np.testing.assert_allclose(bias.values, 1 / 50 - (np.arange(50) == 7), rtol=1e-5)
    np.testing.assert_allclose(slopes(layer, gradients), bias.values[:, None] * hidden)


def test_gradients_outlive_the_next_batch():
    layer, first = layer_of(), batch(1)
    _, gradients = layer.loss(*first)
    kept = gradients.hidden.copy(), slopes(layer, gradients)
    layer.loss(*batch(2))
    np.testing.assert_array_equal(gradients.hidden, kept[0])
    np.testing.assert_array_equal(slopes(layer, gradients), kept[1])


def test_threads_do_not_share_memory():
    layer = layer_of()
    batches = [batch(seed) for seed in range(40)]
    alone = [layer.loss(*one) for one in batches]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda one: layer.loss(*one), batches))
    for (nll, gradients), (other, others) in zip(alone, together, strict=True):
        np.testing.assert_array_equal(nll, other)
        np.testing.assert_array_equal(slopes(layer, gradients), slopes(layer, others))


def test_blas_has_its_threads_again_when_the_last_one_is_done():
    libraries = _blas(SCIPY_BLAS in sys.modules)

    def limits():
        return {blas["num_threads"] for blas in libraries.info() if blas["user_api"] == "blas"}

    with libraries.limit(limits=2, user_api="blas"):
        before = limits()
        ONE_BLAS_THREAD.__enter__()
        with ONE_BLAS_THREAD:
            pass
        assert limits() <= {1}
        ONE_BLAS_THREAD.__exit__(None, None, None)
        assert limits() == before

"""Top-k search of a batch, against all log-probabilities of the layer."""

import numpy as np
import pytest

from hstree import Tree
from hstree.layers import arithmetic
from hstree.layers import top_k as search
from hstree.layers.hierarchical import HierarchicalSoftmax
from tests.strategies import chain


def searched(layer, hidden, k, *, margin=1e-9, patience=np.inf):
    def logits(item, row):
        return arithmetic.gather_dot(layer.weight, layer.bias, hidden, item, row)

    scores = search.children_of_rows(layer.tree, logits)
    return search.top_k_of_batch(
        layer.tree, scores, len(hidden), k, margin=margin, patience=patience
    )


def test_a_close_label_below_a_node_makes_the_order_uncertain():
    tree = Tree.from_children(list("abc"), [[~0, 1], [~1, ~2]])
    layer = HierarchicalSoftmax(tree, 1, dtype=np.float64)
    layer.bias[:] = [-1e-12, 50.0]  # b has all but e**-50 of its node
    assert not searched(layer, np.zeros((1, 1)), 1).certain.any()
    layer.bias[1] = 0.0  # b and c have half of it each
    assert searched(layer, np.zeros((1, 1)), 1).certain.all()


def test_only_the_nodes_on_the_path_are_scored(monkeypatch):
    tree = chain(200)
    layer = HierarchicalSoftmax(tree, 1, dtype=np.float64)
    layer.bias[:] = 5.0  # the first child, a label, nearly always
    scored = []
    of_pairs = arithmetic.gather_dot

    def counted(weight, bias, hidden, item, row):
        scored.extend(zip(item.tolist(), row.tolist(), strict=True))
        return of_pairs(weight, bias, hidden, item, row)

    monkeypatch.setattr(arithmetic, "gather_dot", counted)
    _, log_prob, certain = searched(layer, np.zeros((3, 1)), 2)
    assert certain.all()
    assert sorted(scored) == [(item, row) for item in range(3) for row in range(2)]
    np.testing.assert_allclose(np.exp(log_prob).sum(axis=1), 1 - np.exp(-5.0) ** 2, atol=1e-3)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_scores_that_are_not_finite_have_no_answer(wrong):
    tree = Tree.from_children(list("abcd"), [[1, 2], [~0, ~1], [~2, ~3]])
    layer = HierarchicalSoftmax(tree, 1, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        assert not searched(layer, np.array([[1.0], [wrong]]) * wrong, 2).certain.any()

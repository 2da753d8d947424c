"""Triton's kernels, on a GPU or, with TRITON_INTERPRET=1, by Triton's interpreter."""

import os

import numpy as np
import pytest

from hstree import Tree
from tests import needs
from tests.interop.torch_layers import TREES, random_tree, torch

from hstree.interop.torch import HierarchicalSoftmax, gpu  # isort: skip
from hstree.interop.torch.functions import Inputs  # isort: skip
from hstree.interop.torch.module import largest  # isort: skip
from hstree.interop.torch.probabilities import code_log_prob  # isort: skip

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
pytestmark = pytest.mark.skipif(
    gpu.kernels is None or (DEVICE == "cpu" and not os.environ.get("TRITON_INTERPRET")),
    reason=needs.GPU,
)
#: Labels at each level, of nodes with two children and with more.
THREE_LEVELS = Tree.from_children(
    [f"w{i}" for i in range(45)],
    [
        [1, 2, ~0, ~1, 3],
        [~i for i in range(2, 22)],
        [4, ~22, 5],
        [~23, ~24],
        [~i for i in range(25, 35)],
        [~i for i in range(35, 45)],
    ],
)
every_tree = pytest.mark.parametrize(
    "tree",
    [tree for tree in TREES.values() if tree.n_nodes],
    ids=[n for n in TREES if n != "one label"],
)


@pytest.fixture(autouse=True)
def narrow_search(monkeypatch):
    monkeypatch.setattr(gpu, "BEAM", 8)


def layer(tree, dim, scale=1.0, **options):
    torch.manual_seed(0)
    module = HierarchicalSoftmax(tree, dim, **options).to(DEVICE)
    with torch.no_grad():
        module.weight.normal_(0, scale)
    hidden = torch.randn(2, dim, dtype=module.weight.dtype, device=DEVICE, requires_grad=True)
    return module, hidden


@every_tree
@pytest.mark.parametrize("sparse", [False, True])
def test_codes_have_the_losses_and_gradients_of_the_operators(tree, sparse):
    module, hidden = layer(tree, 5, dtype=torch.float64)
    target = torch.tensor([0, tree.n_labels - 1], device=DEVICE)
    index = module._layout().tree_index
    inputs = Inputs(module.weight, module.bias, hidden, sparse)
    results = []
    decisions, code_item = index.path_decisions(target)
    for log_prob in (
        code_log_prob(inputs, decisions, len(code_item)),
        gpu.fused_log_prob(index, inputs, *index.codes(target)),
    ):
        share = torch.linspace(1, 2, len(log_prob), dtype=torch.float64, device=DEVICE)
        grads = torch.autograd.grad(log_prob, (module.weight, module.bias, hidden), share)
        assert grads[0].is_sparse == grads[1].is_sparse == sparse
        results.append([log_prob, *(each.to_dense() for each in grads)])
    torch.testing.assert_close(*results)


def test_the_loss_of_a_certain_decision_keeps_its_digits():
    module, hidden = layer(TREES["two labels"], 1)
    with torch.no_grad():
        module.weight.fill_(1), hidden.fill_(30)
        module.bias.zero_()
    index, item = module._layout().tree_index, torch.zeros(1, dtype=torch.int64, device=DEVICE)
    log_prob = gpu.fused_log_prob(index, Inputs(module.weight, module.bias, hidden), item, item)
    assert log_prob.item() == pytest.approx(-np.log1p(np.exp(-30)), rel=1e-5)
    log_prob.sum().backward()
    assert module.bias.grad.item() == pytest.approx(np.exp(-30), rel=1e-5)


def search(module, hidden, k):
    inputs = Inputs(module.weight.data, module.bias.data, hidden.detach())
    return gpu.search(module._layout().tree_index, inputs, k)


def check_exact(module, hidden, k):
    labels, log_prob, is_exact = search(module, hidden, k)
    assert is_exact.all()
    torch.testing.assert_close((labels, log_prob), largest(module._log_prob(hidden), k))


@pytest.mark.parametrize("scale", [0.0, 3.0])
@pytest.mark.parametrize("k", [1, 5])
def test_a_search_returns_the_most_probable_labels(scale, k):
    tree = random_tree(20, 2, wide=False)
    check_exact(*layer(tree, 7, scale, counts=np.arange(20) + 1), k)


def test_a_search_that_leaves_likely_nodes_out_is_not_exact(monkeypatch):
    monkeypatch.setattr(gpu, "BEAM", 2)
    module, hidden = layer(random_tree(40, 2, wide=False), 7, 0.0, counts=np.ones(40, int))
    assert not search(module, hidden, 2)[2].any()


@pytest.mark.parametrize("k", [1, 5, 45])
@pytest.mark.parametrize("spread", [0.1, 3.0])
def test_a_search_of_wide_nodes_returns_the_most_probable_labels(monkeypatch, k, spread):
    monkeypatch.setattr(gpu, "BEAM", 64)
    monkeypatch.setattr(gpu, "SCORES", 20)
    module, hidden = layer(THREE_LEVELS, 7, spread)
    index = module._layout().tree_index
    assert (index.n_levels, index.widest) == (3, 20)
    check_exact(module, hidden, k)


@pytest.mark.parametrize("size", [3e4, 1e7])
def test_a_search_of_wide_nodes_keeps_its_digits_at_large_logits(size):
    tree = Tree.from_children([f"w{i}" for i in range(5)], [[~0, 1, ~4], [~1, ~2, ~3]])
    module, hidden = layer(tree, 1, 0.0)
    with torch.no_grad():
        module.bias.copy_(torch.tensor([0, 0.02, -1, size, size - 60, size - 60]))
    check_exact(module, hidden, 2)


def test_a_search_of_wide_nodes_says_what_is_not_exact(monkeypatch):
    module, hidden = layer(THREE_LEVELS, 7)
    assert search(module, hidden, 5)[2].all()
    monkeypatch.setattr(gpu, "NODES", 2)
    assert not search(module, hidden, 5)[2].any()


@pytest.mark.parametrize("tree", [random_tree(5, 2, wide=False), THREE_LEVELS])
def test_a_search_with_nan_is_not_exact(tree):
    module, hidden = layer(tree, 7)
    assert not search(module, torch.full_like(hidden, torch.nan), 2)[2].any()


@pytest.mark.parametrize(("tree", "can"), [("flat, narrow", True), ("narrow", False)])
def test_shallow_trees_can_be_searched(monkeypatch, tree, can):
    monkeypatch.setattr(gpu, "_has_kernels", lambda weight: True)
    module, _ = layer(TREES[tree], 3)
    assert gpu.can_search(module._layout().tree_index, module.weight, 5) == can

"""The torch module against the NumPy layer, finite differences and full sorts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import needs

pytest.importorskip("torch", reason=needs.TORCH)

from hstree.interop.torch import functions, index
from tests.interop.torch_layers import (
    batch,
    every_tree,
    random_tree,
    torch,
    twins,
)
from tests.strategies import trees


def gradients_of(layer, hidden, target):
    """Return the NumPy layer's dense gradients of the summed loss."""
    _, gradients = layer.loss(hidden, target)
    dense = {name: np.zeros_like(array) for name, array in layer.parameters().items()}
    for g in gradients.parameters:
        dense[g.name][g.rows] += g.values
    return gradients.hidden, *dense.values()


def check_same(tree, sparse, dtype=torch.float64, tolerance=1e-9):
    layer, module = twins(tree, sparse=sparse, dtype=dtype)
    hidden, target = batch(tree, dtype=layer.weight.dtype)
    inputs = torch.from_numpy(hidden).requires_grad_()
    output, loss = module(inputs, torch.from_numpy(target))
    nll = layer.nll(hidden, target)
    assert -output.detach().numpy() == pytest.approx(nll, abs=tolerance)
    assert loss.item() == pytest.approx(nll.mean(), abs=tolerance)
    (len(target) * loss).backward()
    grad_hidden, by_weight, by_bias = gradients_of(layer, hidden, target)
    for tensor, expected in (
        (inputs, grad_hidden),
        (module.weight, by_weight),
        (module.bias, by_bias),
    ):
        np.testing.assert_allclose(tensor.grad.to_dense().numpy(), expected, atol=10 * tolerance)
    everything = layer.log_prob(hidden)
    actual = module.log_prob(inputs).detach().numpy()
    np.testing.assert_allclose(actual, everything, atol=tolerance)


@every_tree
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
def test_equals_the_numpy_layer(tree, sparse, dtype, tolerance):
    check_same(tree, sparse, dtype, tolerance)


@given(trees(only_codes=True), st.booleans(), st.sampled_from([2, 4, 32]), st.integers(1, 999))
@settings(max_examples=40)
def test_equals_the_numpy_layer_on_any_tree(tree, sparse, narrow, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(functions, "NARROW", narrow)
        patch.setattr(functions, "BLOCK", block)
        check_same(tree, sparse)


@every_tree
@pytest.mark.parametrize("block", [1, 500])
def test_small_blocks_and_codes_beyond_the_cache_change_nothing(tree, block, monkeypatch):
    monkeypatch.setattr(functions, "BLOCK", block)
    monkeypatch.setattr(functions, "GATHERED", block)
    monkeypatch.setattr(functions, "_can_sample", lambda *_: False)
    monkeypatch.setattr(index, "CACHE_LIMIT", 0)
    check_same(tree, sparse=block > 1)


def test_sparse_gradients_are_over_the_touched_rows():
    module = twins(random_tree(40, 0, wide=False), sparse=True)[1]
    module(torch.ones(1, 5).double(), torch.tensor([7])).loss.backward()
    actual = module.weight.grad
    decisions, _ = module._layout().tree_index.path_decisions(torch.tensor([7]))
    assert actual.is_sparse
    assert actual._nnz() == module.bias.grad._nnz() == len(decisions.row) < len(module.weight)
    assert (actual._indices().diff() > 0).all()
    before = module.weight.detach().clone()
    torch.optim.SparseAdam(module.parameters()).step()
    changed = (module.weight != before).any(1).nonzero()[:, 0]
    assert torch.equal(changed, actual._indices()[0])

"""A layer of torch that continues with a tree that grew or was pruned."""

import numpy as np
import pytest

import hstree
from tests.interop.torch_layers import TREES, HierarchicalSoftmax, every_tree, labels, torch

NEW = ["x", "y", "z"]


def trained(tree, optimiser):
    """Return a layer after a step of an optimiser, and the optimiser."""
    layer = HierarchicalSoftmax(tree, 5)
    stepping = optimiser(layer.parameters())
    step(layer, stepping)
    return layer, stepping


def step(layer, optimiser):
    hidden = torch.randn(64, 5, generator=torch.Generator().manual_seed(0))
    optimiser.zero_grad()
    loss = layer(hidden, torch.arange(64) % layer.n_classes).loss
    loss.backward()
    optimiser.step()
    return loss.item()


def adagrad(parameters):
    return torch.optim.Adagrad(parameters, lr=0.1, initial_accumulator_value=0.25)


@every_tree
def test_a_grown_layer_begins_with_the_rows_of_the_old_one(tree):
    layer, _ = trained(tree, adagrad)
    grown = layer.grow(hstree.grow(tree, NEW))
    for old, new in zip(layer.parameters(), grown.parameters(), strict=True):
        assert torch.equal(new[: len(old)], old)
        assert new.requires_grad
    fresh = HierarchicalSoftmax(grown.tree, 5)
    fresh.load_state_dict(grown.state_dict())
    assert torch.equal(fresh.weight, grown.weight)
    total = grown.log_prob(torch.randn(3, 5)).exp().sum(1)
    assert total.tolist() == pytest.approx([1, 1, 1], abs=1e-5)


@pytest.mark.parametrize("optimiser", [adagrad, torch.optim.Adam])
def test_an_optimiser_goes_on_with_the_state_of_the_rows_that_stay(optimiser):
    tree = TREES["narrow, several codes"]
    layer, stepping = trained(tree, optimiser)
    states = {
        name: {k: v.clone() for k, v in stepping.state[p].items()}
        for name, p in layer.named_parameters()
    }
    grown = layer.grow(hstree.grow(tree, NEW), stepping)
    for name, parameter in grown.named_parameters():
        for key, old in states[name].items():
            new = stepping.state[parameter][key]
            kept = new[: len(old)] if old.ndim else new
            assert torch.equal(kept, old), key
            assert (new[len(old) :] == (0.25 if key == "sum" else 0)).all() if old.ndim else True
    losses = [step(grown, stepping) for _ in range(5)]
    assert np.isfinite(losses).all()
    assert losses[-1] < losses[0]


def test_a_pruned_softmax_keeps_the_probabilities_of_the_labels_left():
    layer, _ = trained(TREES["flat"], adagrad)
    pruned = layer.grow(hstree.prune(layer.tree, labels(2)))
    hidden = torch.randn(3, 5)
    expected = torch.softmax(layer.log_prob(hidden)[:, :2], dim=1)
    assert torch.allclose(pruned.log_prob(hidden).exp(), expected, atol=1e-6)

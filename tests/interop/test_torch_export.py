"""Exported programs of the loss and of top-k give what the module gives."""

import pytest

from tests import needs

pytest.importorskip("torch", reason=needs.TORCH)

from tests.interop.torch_layers import TREES, batch, torch, twins

some_trees = pytest.mark.parametrize("name", ["binary", "several codes", "flat", "one label"])


def as_tensors(tree, size):
    return tuple(torch.from_numpy(array) for array in batch(tree, size=size))


class TopK(torch.nn.Module):
    """What `torch.export` wants: a module whose call is `top_k`."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, hidden):
        return self.layer.top_k(hidden, 3)


class Model(torch.nn.Module):
    """A model that returns plain tensors, which can be saved."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, hidden, target):
        return self.layer(hidden, target).loss, *self.layer.top_k(hidden, 3)


@some_trees
def test_the_loss_is_exported(name):
    layer = twins(TREES[name])[1]
    n = torch.export.Dim("n", min=2, max=1000)
    program = torch.export.export(layer, as_tensors(layer.tree, 4), dynamic_shapes=({0: n}, {0: n}))
    hidden, target = as_tensors(layer.tree, 9)
    target[2] = -100
    torch.testing.assert_close(program.module()(hidden, target), layer(hidden, target))
    hidden.requires_grad_()
    actual = torch.autograd.grad(program.module()(hidden, target).loss, hidden)
    torch.testing.assert_close(actual, torch.autograd.grad(layer(hidden, target).loss, hidden))


@some_trees
def test_top_k_is_exported(name):
    layer = twins(TREES[name])[1]
    n = torch.export.Dim("n", min=2, max=1000)
    program = torch.export.export(
        TopK(layer), as_tensors(layer.tree, 4)[:1], dynamic_shapes=({0: n},)
    )
    hidden, _ = as_tensors(layer.tree, 9)
    torch.testing.assert_close(program.module()(hidden), layer.top_k(hidden, 3))
    hidden[:] = 0  # equal log-probabilities are in the order of the labels
    assert torch.equal(program.module()(hidden).labels, layer.top_k(hidden, 3).labels)


def test_a_program_is_saved_and_read(tmp_path):
    model = Model(twins(TREES["binary"])[1])
    inputs = as_tensors(model.layer.tree, 4)
    torch.export.save(torch.export.export(model, inputs), tmp_path / "model.pt2")
    read = torch.export.load(tmp_path / "model.pt2").module()
    torch.testing.assert_close(read(*inputs), model(*inputs))

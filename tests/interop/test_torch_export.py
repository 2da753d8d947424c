"""Exported programs of the loss and of top-k give what the module gives."""

import pytest

from tests import needs

pytest.importorskip("torch", reason=needs.TORCH)

from tests.interop.torch_layers import TREES, batch, torch, twins


def as_tensors(tree, size):
    return tuple(torch.from_numpy(array) for array in batch(tree, size=size))


class Model(torch.nn.Module):
    """A model of the loss and of top-k that returns plain tensors, so that it can be saved."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, hidden, target):
        return self.layer(hidden, target).loss, *self.layer.top_k(hidden, 3)


@pytest.mark.parametrize("name", ["binary", "several codes", "flat", "one label"])
def test_a_program_is_exported_saved_and_read(name, tmp_path):
    model = Model(twins(TREES[name])[1])
    sizes = {0: torch.export.Dim("n", min=2, max=1000)}
    inputs = as_tensors(model.layer.tree, 4)
    program = torch.export.export(model, inputs, dynamic_shapes=(sizes, sizes))
    torch.export.save(program, tmp_path / "model.pt2")
    read = torch.export.load(tmp_path / "model.pt2").module()
    hidden, target = as_tensors(model.layer.tree, 9)
    target[2] = -100
    hidden[3] = 0  # equal log-probabilities are in the order of the labels
    hidden.requires_grad_()
    actual, expected = read(hidden, target), model(hidden, target)
    torch.testing.assert_close(actual, expected)
    slopes = (torch.autograd.grad(loss, hidden) for loss, *_ in (actual, expected))
    torch.testing.assert_close(*slopes)

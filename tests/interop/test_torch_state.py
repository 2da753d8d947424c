"""Weights that come after the layer is made: meta device, skipped initialisation, copies, moves."""

import copy
import io

import numpy as np
import pytest

from hstree.errors import InputError
from tests.interop.torch_layers import (
    TREES,
    HierarchicalSoftmax,
    as_tensors,
    every_tree,
    needs_gloo,
    torch,
    twins,
)

TREE = TREES["narrow, several codes"]


def on_meta(tree):
    """Make a layer as models are made that are too large for the memory."""
    with torch.device("meta"):
        return HierarchicalSoftmax(tree, 5, dtype=torch.float64)


def loaded(module, state, **options):
    module.load_state_dict(state, **options)
    return module


def through_a_file(value, **options):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


def emptied(tree, state):
    return loaded(torch.nn.Sequential(on_meta(tree)).to_empty(device="cpu")[0], state)


def replaced(tree, state):
    """Set parameters one by one, as loaders of large models do."""
    module = on_meta(tree)
    for name, values in state.items():
        setattr(module, name, torch.nn.Parameter(values))
    return module


def made(tree):
    return HierarchicalSoftmax(tree, 5, dtype=torch.float64)


#: Ways in which a layer gets its weights.
PATHS = {
    "emptied": emptied,
    "replaced": replaced,
    "assigned": lambda tree, state: loaded(on_meta(tree), state, assign=True),
    "skipped": lambda tree, state: loaded(
        torch.nn.utils.skip_init(HierarchicalSoftmax, tree, 5, dtype=torch.float64), state
    ),
    "copied": lambda tree, state: copy.deepcopy(emptied(tree, state)),
    "saved": lambda tree, state: loaded(made(tree), through_a_file(state, weights_only=True)),
    "pickled": lambda tree, state: through_a_file(emptied(tree, state), weights_only=False),
    # to the meta device and back, by a copy that was there
    "moved": lambda tree, state: loaded(
        copy.deepcopy(emptied(tree, state).to("meta")).to_empty(device="cpu"), state
    ),
}


@every_tree
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_weights_that_come_late_give_the_same(tree, path):
    expected = twins(tree)[1]
    module = path(tree, expected.state_dict())
    hidden, target = as_tensors(tree, size=20)
    module(hidden, target).loss.backward()
    expected(hidden, target).loss.backward()
    assert torch.equal(module.weight.grad, expected.weight.grad)
    assert torch.equal(module(hidden, target).output, expected(hidden, target).output)
    assert torch.equal(module.log_prob(hidden), expected.log_prob(hidden))
    drawn = [each.sample(hidden, torch.Generator().manual_seed(0)) for each in (module, expected)]
    assert torch.equal(*drawn)


@needs_gloo
@pytest.mark.filterwarnings("ignore::UserWarning")  # of DTensor, and of what FSDP may do with views
@pytest.mark.usefixtures("one_process")
def test_a_sharded_layer_is_reset_and_trains():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    module = fully_shard(on_meta(TREE), mesh=init_device_mesh("cpu", (1,)))
    module.to_empty(device="cpu").reset_parameters()
    expected = made(TREE)
    for each in (module, expected):
        loss = each(torch.ones(3, 5, dtype=torch.float64), torch.arange(3)).loss
        loss.backward()
    for parameter, other in zip(module.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad.to_local(), other.grad)


def test_a_layer_is_reset_where_another_device_is_the_default():
    module = on_meta(TREE).to_empty(device="cpu")
    with torch.device("meta"):
        module.reset_parameters()
    assert torch.equal(module.bias, made(TREE).bias)


@pytest.mark.parametrize("still_there", [["weight", "bias"], ["weight"], ["bias"]])
def test_weights_that_never_came_are_refused(still_there):
    module = on_meta(TREE)
    state = {
        name: values
        for name, values in twins(TREE)[1].state_dict().items()
        if name not in still_there
    }
    module.load_state_dict(state, strict=False, assign=True)
    hidden = torch.zeros(2, 5, dtype=torch.float64)
    target = torch.zeros(2, dtype=torch.int64)
    for use in (
        lambda: module(hidden, target),
        lambda: module.log_prob(hidden),
        lambda: module.predict(hidden),
        lambda: module.sample(hidden),
        lambda: module.to("meta").log_prob(hidden),
    ):
        with pytest.raises(InputError, match=r"on the meta device .* then reset_parameters\(\)"):
            use()


def test_what_is_saved_is_the_weights_alone():
    module = HierarchicalSoftmax(TREE, 5)
    assert list(module.state_dict()) == ["weight", "bias"]
    assert "40 labels" in repr(module)
    assert not list(module.buffers())
    assert [type(inner) for inner in module.modules()] == [HierarchicalSoftmax]


def test_a_module_on_meta_is_called_with_the_weights_of_another():
    module, skeleton = twins(TREE)[1], on_meta(TREE)
    hidden, target = as_tensors(TREE, size=20)
    weights = dict(module.named_parameters())
    with torch.inference_mode():
        actual = torch.func.functional_call(skeleton, weights, (hidden, target)).output
        assert torch.equal(actual, module(hidden, target).output)
    torch.func.functional_call(skeleton, weights, (hidden, target)).loss.backward()
    assert module.weight.grad.abs().sum() > 0


@every_tree
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_dtypes(tree, dtype, sparse):
    module = twins(tree, dtype=torch.float32, sparse=sparse)[1]
    hidden, target = as_tensors(tree, dtype=np.float32)
    expected = module(hidden, target).output.detach()
    module.to(dtype)
    output, loss = module(hidden, target)
    loss.backward()
    assert output.dtype == torch.promote_types(dtype, torch.float32)
    assert module.weight.grad.dtype == dtype
    torch.testing.assert_close(output.float(), expected, atol=0.2, rtol=0.05)
    everything = module.log_prob(hidden).gather(1, target[:, None])[:, 0]
    torch.testing.assert_close(everything, output, atol=0.2, rtol=0.05)

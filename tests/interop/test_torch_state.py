"""Weights that come after a layer is made, copies, moves, and parameters of another shape."""

import copy
import io

import numpy as np
import pytest

from hstree.errors import InputError
from hstree.tree import Tree
from tests.interop.torch_layers import (
    TREES,
    HierarchicalSoftmax,
    as_tensors,
    every_tree,
    needs_gloo,
    torch,
    twins,
)

import safetensors.torch  # isort: skip
from hstree.interop.torch import NCE, SampledSoftmax, ShardedHierarchicalSoftmax  # isort: skip
from torch import nn  # isort: skip
from torch.nn.utils import parametrize  # isort: skip

TREE = TREES["narrow, several codes"]
D, V = 5, TREE.n_labels
float64 = torch.float64


def make(tree=TREE, sparse=False):
    return HierarchicalSoftmax(tree, D, sparse=sparse, dtype=float64)


def on_meta(tree=TREE):
    """Make a layer as models are made that are too large for the memory."""
    with torch.device("meta"):
        return make(tree)


def loaded(module, state, **options):
    module.load_state_dict(state, **options)
    return module


def through_a_file(value, **options):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


# Weights that come late.


def replaced(tree, state):
    """Set parameters one by one, as loaders of large models do."""
    module = on_meta(tree)
    for name, _ in list(module.named_parameters()):
        setattr(module, name, nn.Parameter(state[name]))
    return module


#: Ways in which a layer gets its weights.
LATE = {
    "emptied": lambda tree, state: loaded(
        nn.Sequential(on_meta(tree)).to_empty(device="cpu")[0], state
    ),
    "replaced": replaced,
    "assigned": lambda tree, state: loaded(on_meta(tree), state, assign=True),
    "skipped": lambda tree, state: loaded(
        nn.utils.skip_init(HierarchicalSoftmax, tree, D, dtype=float64), state
    ),
    "saved": lambda tree, state: loaded(make(tree), through_a_file(state, weights_only=True)),
}


@every_tree
@pytest.mark.parametrize("way", LATE.values(), ids=LATE)
def test_weights_that_come_late_give_the_same(tree, way):
    expected = twins(tree)[1]
    module = way(tree, expected.state_dict())
    hidden, target = as_tensors(tree, size=20)
    module(hidden, target).loss.backward()
    expected(hidden, target).loss.backward()
    assert torch.equal(module.weight.grad, expected.weight.grad)
    assert torch.equal(module(hidden, target).output, expected(hidden, target).output)
    assert torch.equal(module.log_prob(hidden), expected.log_prob(hidden))
    drawn = [each.sample(hidden, torch.Generator().manual_seed(0)) for each in (module, expected)]
    assert torch.equal(*drawn)


@needs_gloo
@pytest.mark.filterwarnings("ignore::UserWarning")  # of DTensor, and of the views in FSDP
@pytest.mark.usefixtures("one_process")
def test_a_sharded_layer_is_reset_and_trains():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    module = fully_shard(on_meta(), mesh=init_device_mesh("cpu", (1,)))
    module.to_empty(device="cpu").reset_parameters()
    expected = make()
    for each in (module, expected):
        each(torch.ones(3, D, dtype=float64), torch.arange(3)).loss.backward()
    for parameter, other in zip(module.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad.to_local(), other.grad)


def test_a_layer_is_reset_where_another_device_is_the_default():
    module = on_meta().to_empty(device="cpu")
    with torch.device("meta"):
        module.reset_parameters()
    assert torch.equal(module.bias, make().bias)


@pytest.mark.parametrize("missing", [["weight", "bias"], ["weight"], ["bias"]])
def test_weights_that_never_came_are_refused(missing):
    module = on_meta()
    state = twins(TREE)[1].state_dict()
    present = {name: values for name, values in state.items() if name not in missing}
    module.load_state_dict(present, strict=False, assign=True)
    hidden, target = as_tensors(TREE, size=2)
    for use in (
        lambda: module(hidden, target),
        lambda: module.log_prob(hidden),
        lambda: module.predict(hidden),
        lambda: module.sample(hidden),
        lambda: module.to("meta").log_prob(hidden),
    ):
        with pytest.raises(InputError, match=r"meta device .* reset_parameters\(\)"):
            use()


def test_the_state_is_the_weights_and_the_hash_of_the_tree():
    module = make()
    assert list(module.state_dict()) == ["weight", "bias", "_extra_state"]
    assert not loaded(module, dict(module.named_parameters())).weight.any()
    assert "40 labels" in repr(module)
    assert not list(module.buffers())
    assert [type(inner) for inner in module.modules()] == [HierarchicalSoftmax]


def test_a_module_on_meta_is_called_with_the_weights_of_another():
    module, skeleton = twins(TREE)[1], on_meta()
    hidden, target = as_tensors(TREE, size=20)
    weights = dict(module.named_parameters())
    with torch.inference_mode():
        actual = torch.func.functional_call(skeleton, weights, (hidden, target)).output
        assert torch.equal(actual, module(hidden, target).output)
    torch.func.functional_call(skeleton, weights, (hidden, target)).loss.backward()
    assert module.weight.grad.abs().sum() > 0


@every_tree
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [float64, torch.float16, torch.bfloat16])
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


# Weights of another tree are refused, regardless of how they were saved.


def through_safetensors(state, file):
    safetensors.torch.save_file(state, file)
    return safetensors.torch.load_file(file)


#: Formats in which a state is stored.
KEPT = {
    "state_dict": lambda state, file: state,
    "its tensors": lambda state, file: dict(state),
    "torch.save": lambda state, file: through_a_file(state, weights_only=True),
    "safetensors": through_safetensors,
}


@pytest.mark.parametrize("keep", KEPT.values(), ids=KEPT)
@pytest.mark.parametrize("options", [{}, {"strict": False}, {"assign": True}])
def test_weights_of_another_tree_are_refused(keep, options, tmp_path):
    children = [[1, ~0], [~1, ~2]], [[1, ~2], [~1, ~0]]
    first, second = (Tree.from_children(["a", "b", "c"], nodes) for nodes in children)
    layer = HierarchicalSoftmax(first, 3, counts=np.arange(3))
    state = keep(nn.Sequential(layer).state_dict(), tmp_path / "state.safetensors")
    other = HierarchicalSoftmax(second, 3)
    bias = other.bias.detach().clone()
    with pytest.raises(RuntimeError, match=r"0\.weight.* learned on another tree.*make the layer"):
        nn.Sequential(other).load_state_dict(state, **options)
    assert torch.equal(other.bias, bias)
    counted = Tree(first.labels, first.child_start, first.child, counts=[3, 2, 1])
    same = loaded(nn.Sequential(HierarchicalSoftmax(counted, 3)), state, **options)[0]
    assert torch.equal(same.bias, layer.bias)


# Copies.

#: Copies of a layer, which have to keep what it keeps.
COPIES = {
    "as it is": lambda layer: layer,
    "deepcopy": copy.deepcopy,
    "torch.save": lambda layer: through_a_file(layer, weights_only=False),
    "to": lambda layer: layer.to(torch.float32),
    "half": lambda layer: copy.deepcopy(layer).half(),
    "meta and back": lambda layer: copy.deepcopy(layer.to("meta")).to_empty(device="cpu"),
}
every_copy = pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)


def flat(sparse, kind=SampledSoftmax, **options):
    layer = kind(V, D, sparse=sparse, samples=3, dtype=float64, **options)
    nn.init.normal_(layer.weight)
    return layer


#: Layers, with sparse gradients or without.
LAYERS = {
    **{
        name: lambda sparse, tree=tree: twins(tree, sparse=sparse)[1]
        for name, tree in TREES.items()
    },
    "sampled": flat,
    "sampled, no bias": lambda sparse: flat(sparse, bias=False),
    "sampled by a tree": lambda sparse: flat(sparse, proposal=twins(TREE)[1]),
    "sampled by a tree, no bias": lambda sparse: flat(sparse, proposal=twins(TREE)[1], bias=False),
    "nce": lambda sparse: flat(sparse, NCE),
}


def loss_and_log_prob(layer):
    """Return the loss of a batch, with the same draws each time, and log-probabilities."""
    hidden, target = as_tensors(getattr(layer, "tree", TREE), size=6)
    torch.manual_seed(0)
    hidden = hidden.to(layer.weight.dtype)
    result = layer(hidden, target)
    return getattr(result, "loss", result), layer.log_prob(hidden)


@every_copy
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("make_layer", LAYERS.values(), ids=LAYERS)
def test_copies_keep_the_kind_of_gradients_and_what_they_compute(make_layer, sparse, copied):
    layer = make_layer(sparse)
    state = copy.deepcopy(layer.state_dict())
    expected = [tensor.detach() for tensor in loss_and_log_prob(layer)]
    module = loaded(copied(layer), state)  # where it went through the meta device
    loss, log_prob = loss_and_log_prob(module)
    loss.backward()
    for name, parameter in module.named_parameters():
        if not name.startswith("proposal"):
            assert parameter.is_leaf
            assert parameter.grad.is_sparse == sparse
            assert parameter.grad.shape == parameter.shape
            assert parameter.grad.dtype == parameter.dtype
    exact = module.weight.dtype != torch.float16
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if exact else {"rtol": 0.05, "atol": 0.2}
    for actual, value in zip((loss, log_prob), expected, strict=True):
        if exact or module is layer or hasattr(module, "tree"):  # draws of a half tree may differ
            torch.testing.assert_close(actual.double(), value, **tolerance)


# Parameters keep their shapes, so that no embedding takes the place of a tree's weight rows.


class OtherRows(nn.Module):
    """A parametrization that changes the number of rows."""

    def forward(self, values):
        return torch.cat([values, values[:1]])


def parametrized(layer, name, _):
    parametrize.register_parametrization(layer, name, OtherRows(), unsafe=True)


def with_data(layer, name, values):
    getattr(layer, name).data = values


def in_the_dictionary(layer, name, values):
    layer._parameters[name] = nn.Parameter(values)


#: Ways to give a layer another parameter that are refused at once.
AT_ONCE = {
    "setattr": lambda layer, name, values: setattr(layer, name, nn.Parameter(values)),
    "register": lambda layer, name, values: layer.register_parameter(name, nn.Parameter(values)),
    "assigned": lambda layer, name, values: layer.load_state_dict(
        {**layer.state_dict(), name: values}, assign=True
    ),
    "loaded": lambda layer, name, values: layer.load_state_dict({name: values}, strict=False),
}
#: Ways that are refused when the layer is called.
LATER = {"data": with_data, "dictionary": in_the_dictionary, "parametrized": parametrized}
WHY = "rows are those of the tree's decisions, not of its labels: a tree cannot be tied to an"
HEADS = {name: LAYERS[name] for name in ("sampled", "sampled by a tree", "nce")}
HEADS["tree"] = lambda sparse: make(sparse=sparse)
every_head = pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)


def longer(layer, name):
    """Return values of a parameter with one more row."""
    values = getattr(layer, name).detach()
    return values.new_zeros(len(values) + 1, *values.shape[1:])


@every_head
@every_copy
@pytest.mark.parametrize("way", AT_ONCE.values(), ids=AT_ONCE)
@pytest.mark.parametrize("name", ["weight", "bias"])
def test_another_shape_is_refused_at_once(head, copied, way, name):
    layer = copied(head(sparse=name == "bias"))
    before = getattr(layer, name)
    why = WHY if isinstance(layer, HierarchicalSoftmax) else f"rows are those of the {V} labels"
    with pytest.raises((InputError, RuntimeError), match=why) as caught:
        way(layer, name, longer(layer, name))
    shapes = tuple(longer(layer, name).shape), tuple(before.shape)
    assert "{} has the shape {}; it must have {}".format(name, *shapes) in str(caught.value)
    assert getattr(layer, name) is before


@every_head
@pytest.mark.parametrize("way", LATER.values(), ids=LATER)
@pytest.mark.parametrize("name", ["weight", "bias"])
def test_another_shape_is_refused_when_the_layer_is_called(head, way, name):
    layer = head(sparse=False)
    way(layer, name, longer(layer, name))
    hidden, target = as_tensors(TREE, size=4)
    calls = [
        lambda: layer(hidden, target),
        lambda: layer.log_prob(hidden),
        lambda: layer.top_k(hidden, 2),
    ]
    if isinstance(layer, HierarchicalSoftmax):
        calls.append(lambda: layer.sample(hidden))
        calls.append(lambda: layer.node_log_prob(hidden))
    for call in calls:
        with pytest.raises(InputError, match=f"^{name} has the shape .*rows are") as caught:
            call()
        assert "\n" not in str(caught.value)


def test_an_embedding_is_not_tied_to_a_tree():
    """Weights are tied as `tie_weights` of Hugging Face does it."""
    embedding, layer = nn.Embedding(V, D), HierarchicalSoftmax(TREE, D)
    with pytest.raises(InputError, match=r"tie_word_embeddings=False"):
        layer.weight = embedding.weight
    for name in ("weight", "bias"):
        with pytest.raises(InputError, match=f"{name} is None"):
            setattr(layer, name, None)
    assert layer.weight is not embedding.weight


@pytest.mark.parametrize("kind", [SampledSoftmax, NCE])
def test_an_embedding_is_tied_to_a_flat_layer(kind):
    embedding, layer = nn.Embedding(V, D), kind(V, D, bias=False)
    layer.weight = embedding.weight
    hidden, target = as_tensors(TREE, size=4)
    layer(hidden.float(), target).backward()
    assert embedding.weight.grad.abs().sum() > 0
    assert layer.bias is None


@needs_gloo
@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("way", AT_ONCE.values(), ids=AT_ONCE)
def test_a_sharded_layer_keeps_its_shapes(way):
    layer = ShardedHierarchicalSoftmax(TREE, D)
    for name in ("weight", "bias"):
        with pytest.raises((InputError, RuntimeError), match=WHY):
            way(layer, name, longer(layer, name))

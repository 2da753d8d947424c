"""Parameters keep their shapes, so that no embedding takes the place of a tree's weight rows."""

import copy
import io

import pytest

from hstree.errors import InputError
from tests import needs

pytest.importorskip("torch", reason=needs.TORCH)

from hstree.interop.torch import NCE, SampledSoftmax, ShardedHierarchicalSoftmax
from tests.interop.torch_layers import (
    TREES,
    HierarchicalSoftmax,
    as_tensors,
    every_tree,
    needs_gloo,
    torch,
    twins,
)

from torch import nn  # isort: skip
from torch.nn.utils import parametrize  # isort: skip

TREE = TREES["narrow, several codes"]
D, V = 5, TREE.n_labels
WHY = r"its rows are those of the tree's decisions, not of its labels: a tree cannot be tied to an"

#: Heads, what their message says about their rows, and the names of their parameters.
HEADS = {
    "tree": lambda: HierarchicalSoftmax(TREE, D, dtype=torch.float64),
    "sparse": lambda: HierarchicalSoftmax(TREE, D, sparse=True, dtype=torch.float64),
    "sampled": lambda: SampledSoftmax(V, D, dtype=torch.float64),
    "nce": lambda: NCE(V, D, dtype=torch.float64),
    "sampled by a tree": lambda: SampledSoftmax(
        V, D, proposal=HierarchicalSoftmax(TREE, D, dtype=torch.float64), dtype=torch.float64
    ),
}
every_head = pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)


def through_a_file(layer):
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


#: Copies of a layer, which have to keep what it keeps.
COPIES = {
    "as it is": lambda layer: layer,
    "deepcopy": copy.deepcopy,
    "torch.save": through_a_file,
    "to": lambda layer: layer.to(torch.float32),
    "half": lambda layer: copy.deepcopy(layer).half(),
    "meta and back": lambda layer: layer.to("meta").to_empty(device="cpu"),
}
every_copy = pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)


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


def other(layer, name, rows=1):
    """Return values of a parameter with more rows."""
    values = getattr(layer, name).detach()
    return values.new_zeros(len(values) + rows, *values.shape[1:])


@every_head
@every_copy
@pytest.mark.parametrize("way", AT_ONCE.values(), ids=AT_ONCE)
@pytest.mark.parametrize("name", ["weight", "bias"])
def test_another_shape_is_refused_at_once(head, copied, way, name):
    layer = copied(head())
    before = getattr(layer, name)
    why = WHY if isinstance(layer, HierarchicalSoftmax) else f"its rows are those of the {V} labels"
    with pytest.raises((InputError, RuntimeError), match=why) as caught:
        way(layer, name, other(layer, name))
    shape = tuple(other(layer, name).shape)
    assert f"{name} has the shape {shape}; it must have {tuple(before.shape)}" in str(caught.value)
    assert getattr(layer, name) is before


@every_head
@pytest.mark.parametrize("way", LATER.values(), ids=LATER)
@pytest.mark.parametrize("name", ["weight", "bias"])
def test_another_shape_is_refused_when_the_layer_is_called(head, way, name):
    layer = head()
    way(layer, name, other(layer, name))
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
        with pytest.raises(InputError, match=f"^{name} has the shape .*, since its rows are") as e:
            call()
        assert "\n" not in str(e.value)


def test_an_embedding_is_not_tied_to_a_tree():
    """What Hugging Face's `tie_weights` does."""
    embedding, layer = nn.Embedding(V, D), HierarchicalSoftmax(TREE, D)
    with pytest.raises(InputError, match=r"tie_word_embeddings=False in Hugging Face"):
        layer.weight = embedding.weight
    for name in ("weight", "bias"):
        with pytest.raises(InputError, match=f"{name} is None"):
            setattr(layer, name, None)
    assert layer.weight is not embedding.weight


@pytest.mark.parametrize("kind", [SampledSoftmax, NCE])
def test_an_embedding_is_tied_to_a_flat_layer(kind):
    embedding, layer = nn.Embedding(V, D), kind(V, D, bias=False)
    layer.weight = embedding.weight
    hidden, target = (tensor for tensor in as_tensors(TREE, size=4))
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
            way(layer, name, other(layer, name))


@every_tree
@pytest.mark.parametrize("sparse", [True, False])
@every_copy
def test_copies_keep_the_kind_of_gradients_and_what_they_compute(tree, sparse, copied):
    layer = twins(tree, sparse=sparse)[1]
    state = copy.deepcopy(layer.state_dict())
    module = copied(layer)
    module.load_state_dict(state)  # where it went through the meta device
    expected = twins(tree, dtype=module.weight.dtype)[1]
    hidden, target = as_tensors(tree, size=6)
    hidden = hidden.to(module.weight.dtype)
    output, loss = module(hidden, target)
    loss.backward()
    for parameter in module.parameters():
        assert parameter.is_leaf
        assert parameter.grad.is_sparse == sparse
        assert parameter.grad.shape == parameter.shape
        assert parameter.grad.dtype == parameter.dtype
    tolerance = {"rtol": 0.05, "atol": 0.2} if module.weight.dtype == torch.float16 else {}
    torch.testing.assert_close(output, expected(hidden, target).output, **tolerance)


@every_copy
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("proposal", ["log-uniform", "tree"])
def test_copies_of_a_flat_layer_keep_the_kind_of_gradients(copied, bias, sparse, proposal):
    if proposal == "tree":
        proposal = twins(TREE)[1]
    layer = SampledSoftmax(
        V, D, bias=bias, sparse=sparse, proposal=proposal, samples=3, dtype=torch.float64
    )
    nn.init.normal_(layer.weight)
    state = copy.deepcopy(layer.state_dict())
    module = copied(layer)
    module.load_state_dict(state)
    hidden, target = as_tensors(TREE, size=6)
    module(hidden.to(module.weight.dtype), target).backward()
    for name in ("weight", "bias") if bias else ("weight",):
        parameter = getattr(module, name)
        assert parameter.is_leaf
        assert parameter.grad.is_sparse == sparse
        assert parameter.grad.dtype == parameter.dtype

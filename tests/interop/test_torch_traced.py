"""Traced layers give for new inputs what the layers give, or refuse in one line to be traced."""

import numpy as np
import pytest

from hstree.errors import InputError
from tests import needs

pytest.importorskip("torch", reason=needs.TORCH)

from hstree.interop.torch import NCE, SampledSoftmax, ShardedHierarchicalSoftmax
from tests.interop.torch_layers import TREES, every_tree, needs_gloo, torch, twins

from torch.fx.experimental.proxy_tensor import make_fx  # isort: skip

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch.jit.trace


def inputs(n_labels, size, seed, dtype=torch.float64):
    """Return hidden vectors, one of which ties labels, and targets, one of which is ignored."""
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(size, 5, dtype=dtype, generator=generator)
    target = torch.randint(n_labels, (size,), generator=generator)
    hidden[0] = 0
    target[1] = -100
    return hidden, target


class Everything(torch.nn.Module):
    """All results of a layer that can be traced, as plain tensors."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, hidden, target):
        layer = self.layer
        loss = layer(hidden, target)
        results = [loss] if torch.is_tensor(loss) else [*loss]
        results += [layer.log_prob(hidden), *layer.top_k(hidden, 3)]
        if not hasattr(layer, "tree"):
            return tuple(results)
        results += [layer.node_log_prob(hidden), layer.predict(hidden)]
        if layer.tree.has_single_codes:
            results.append(layer.predict_nodes(hidden, depth=1))
            results.append(layer.predict_nodes(hidden, confidence=0.1))
        return tuple(results)


def flat_layer(kind=SampledSoftmax, **options):
    layer = kind(40, 5, samples=4, dtype=torch.float64, **options).eval()
    torch.nn.init.normal_(layer.weight)
    torch.nn.init.zeros_(layer.bias)  # so that a hidden vector of zeros ties all labels
    return layer


FLAT = {
    "sampled": lambda: flat_layer(),
    "sampled, smoothed": lambda: flat_layer(label_smoothing=0.2, reduction="none"),
    "sampled, weighted": lambda: flat_layer(class_weight=torch.rand(40).double()),
    "nce": lambda: flat_layer(NCE, reduction="sum"),
}


def check(traced, model, n_labels, dtype=torch.float64):
    """Compare results for inputs that were not seen, as many and more of them."""
    for size, seed in ((6, 1), (11, 2)):
        arguments = inputs(n_labels, size, seed, dtype)
        torch.testing.assert_close(tuple(traced(*arguments)), model(*arguments))


@every_tree
def test_a_trace_computes_new_inputs(tree):
    model = Everything(twins(tree)[1])
    traced = torch.jit.trace(model, inputs(tree.n_labels, 6, 0))
    check(traced, model, tree.n_labels)


@pytest.mark.parametrize("name", FLAT)
def test_a_trace_of_a_flat_layer_computes_new_inputs(name):
    model = Everything(FLAT[name]())
    traced = torch.jit.trace(model, inputs(40, 6, 0))
    check(traced, model, 40)


@every_tree
def test_the_operators_for_onnx_are_correct(tree, monkeypatch):
    """The exporters have no stable sort, and an inexact logsigmoid: others are traced for them."""
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: True)
    model = Everything(twins(tree)[1])
    traced = torch.jit.trace(model, inputs(tree.n_labels, 6, 0), check_trace=False)
    graph = str(traced.inlined_graph)
    for operator in ("aten::log_sigmoid", "aten::index_add", "aten::copy_", "aten::add_"):
        assert operator not in graph
    monkeypatch.undo()
    for arguments in (inputs(tree.n_labels, 6, 1), inputs(tree.n_labels, 11, 2)):
        arguments[0][0] = 0.1  # no ties, which ONNX's topk orders by label, and torch's does not
        actual, expected = traced(*arguments), model(*arguments)
        torch.testing.assert_close(tuple(actual), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.parametrize("name", ["binary", "several codes", "classes, several codes", "flat"])
def test_onnx_computes_new_inputs(name, dynamo, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason=needs.ONNX)
    tree, path = TREES[name], tmp_path / "model.onnx"
    model = Everything(twins(tree, dtype=torch.float32)[1])
    axes = {"dynamic_axes": {"hidden": {0: "n"}, "target": {0: "n"}}}
    if dynamo:
        axes = {"dynamic_shapes": ({0: torch.export.Dim.AUTO}, {0: torch.export.Dim.AUTO})}
    arguments = inputs(tree.n_labels, 6, 0, torch.float32)
    names = ["hidden", "target"]
    torch.onnx.export(model, arguments, path, dynamo=dynamo, input_names=names, **axes)
    session = runtime.InferenceSession(path)

    def run(hidden, target):
        arrays = session.run(None, {"hidden": hidden.numpy(), "target": target.numpy()})
        return tuple(torch.from_numpy(np.asarray(array)) for array in arrays)

    check(run, model, tree.n_labels, torch.float32)


@every_tree
def test_a_graph_of_make_fx_computes_new_inputs(tree):
    model = Everything(twins(tree)[1])
    graph = make_fx(model)(*inputs(tree.n_labels, 6, 0))
    arguments = inputs(tree.n_labels, 6, 1)
    torch.testing.assert_close(graph(*arguments), model(*arguments))


@pytest.mark.parametrize("name", ["binary", "several codes", "flat", "one label", "sampled"])
def test_an_exported_program_is_saved_and_computes_new_inputs(name, tmp_path):
    model = Everything(flat_layer() if name == "sampled" else twins(TREES[name])[1])
    n_labels = model.layer.n_classes
    sizes = {0: torch.export.Dim("n", min=2, max=1000)}
    program = torch.export.export(model, inputs(n_labels, 6, 0), dynamic_shapes=(sizes, sizes))
    torch.export.save(program, tmp_path / "model.pt2")
    read = torch.export.load(tmp_path / "model.pt2").module()
    check(read, model, n_labels)
    hidden, target = inputs(n_labels, 9, 1)
    hidden.requires_grad_()
    slopes = [torch.autograd.grad(each(hidden, target)[0].sum(), hidden) for each in (read, model)]
    torch.testing.assert_close(*slopes)


class Call(torch.nn.Module):
    """A model that calls one method of a layer, which it has as a part."""

    def __init__(self, layer, method):
        super().__init__()
        self.layer = layer
        self.method = method

    def forward(self, *arguments):
        return self.method(*arguments)


TRACERS = {
    "jit": torch.jit.trace,
    "export": torch.export.export,
    "make_fx": lambda model, arguments: make_fx(model)(*arguments),
    "vmap": lambda model, arguments: torch.vmap(model)(*arguments),
}


@pytest.mark.parametrize("tracer", TRACERS)
def test_what_is_drawn_is_not_traced(tracer):
    tree = twins(TREES["narrow"])[1]
    hidden, target = inputs(40, 6, 0)
    calls = [(tree, tree.sample, (hidden,))]
    for layer in (flat_layer(), flat_layer(NCE), flat_layer(proposal=tree)):
        calls.append((layer, layer.train(), (hidden, target)))
    for layer, call, arguments in calls:
        with pytest.raises(InputError, match="draws new labels each time, which ") as caught:
            TRACERS[tracer](Call(layer, call), arguments)
        assert "\n" not in str(caught.value)


@needs_gloo
@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("tracer", TRACERS)
def test_a_sharded_layer_is_not_traced(tracer):
    layer = ShardedHierarchicalSoftmax(TREES["narrow"], 5, dtype=torch.float64)
    with pytest.raises(InputError, match=r"cannot be traced or exported; load its state_dict"):
        TRACERS[tracer](Call(layer, layer), inputs(40, 6, 0))

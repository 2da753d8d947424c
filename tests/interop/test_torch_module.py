"""Requirements of torch's users on a module: shapes, errors, autocast, state, compile, models."""

import copy
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

from hstree.errors import FileFormatError, InputError, OptionError
from hstree.layers.registry import LayerSpec
from hstree.models import new_model
from hstree.models.lbl import LanguageModel
from hstree.tree import Tree
from tests import needs
from tests.interop.torch_layers import (
    TREES,
    HierarchicalSoftmax,
    as_tensors,
    batch,
    every_tree,
    flat,
    random_tree,
    torch,
    twins,
)
from tests.scripts import run_python
from tests.strategies import chain

from torch.nn.functional import cross_entropy  # isort: skip
from hstree.interop.torch import SampledSoftmax  # isort: skip

TREE = TREES["narrow, several codes"]


@every_tree
def test_shapes_are_those_of_the_adaptive_softmax(tree):
    module = twins(tree)[1]
    hidden, target = as_tensors(tree, size=3)
    n = tree.n_labels
    batches = hidden.view(3, 1, 5).expand(3, 2, 5), target[:, None].expand(3, 2)
    for inputs, wanted, shape in (
        (hidden, target, (3,)),
        (hidden[0], target[0], ()),
        (*batches, (3, 2)),
        (hidden[None, :, None], target[None, :, None], (1, 3, 1)),
        (hidden[None, :0], target[None, :0], (1, 0)),
    ):
        output, loss = module(inputs, wanted)
        assert (output.shape, loss.shape) == (shape, ())
        assert loss.item() == pytest.approx(-output.mean().item(), nan_ok=True)
        assert module.log_prob(inputs).shape == (*shape, n)
        assert module.predict(inputs).shape == module.sample(inputs).shape == shape
        assert module.top_k(inputs, 2).labels.shape == (*shape, min(2, n))
        expected = module.log_prob(inputs).gather(-1, wanted[..., None])[..., 0]
        torch.testing.assert_close(output, expected)


@pytest.mark.parametrize(
    ("shape", "target", "message"),
    [
        ((3, 4), [0, 0, 0], r"input of shape \(3, 4\); this layer takes \(\.\.\., 5\)"),
        ((2, 3, 5), [0] * 6, r"target of shape \(6,\); for this input it is \(2, 3\)"),
        ((5,), [0], r"target of shape \(1,\); for this input it is \(\)"),
        ((2, 5), [0, 40], "ids from 0 to 40; this layer has labels 0 to 39, and ignores -100"),
        ((2, 5), [-1, 0], "ids from -1 to 0"),
        ((2, 5), [0.0, 1.0], "target of type torch.float32; label ids are whole numbers"),
    ],
)
def test_what_does_not_fit_is_named(shape, target, message):
    module = HierarchicalSoftmax(TREE, 5)
    with pytest.raises(InputError, match=message):
        module(torch.zeros(shape), torch.tensor(target))


def padded(tree, dtype=np.float64):
    """Return hidden vectors (5, 4, d), targets (5, 4) and which of these are not padding."""
    hidden, target = as_tensors(tree, size=20, dtype=dtype)
    kept = torch.arange(4) < torch.tensor([4, 2, 1, 0, 3])[:, None]
    return hidden.view(5, 4, -1), torch.where(kept, target.view(5, 4), -100), kept


@pytest.mark.parametrize("n_labels", [2, 3, 20, 40])
@pytest.mark.parametrize("ignore_index", [-100, 1])
@pytest.mark.parametrize("nothing", [False, True])
def test_a_flat_tree_is_cross_entropy(n_labels, ignore_index, nothing):
    module = twins(flat(n_labels), ignore_index=ignore_index)[1]
    hidden, target, _ = padded(module.tree)
    target[target == -100] = ignore_index
    if nothing:
        target = torch.full_like(target, ignore_index)
    weight, bias = (p.detach().clone().requires_grad_() for p in module.parameters())
    both = [hidden.clone().requires_grad_() for _ in range(2)]
    output, loss = module(both[0], target)
    if n_labels == 2:  # one row: the logit of the first label against the second's 0
        weight, bias = weight[:1], bias[:1]
        scores = torch.cat([both[1] @ weight.T + bias, both[1].new_zeros(5, 4, 1)], 2)
    else:
        scores = both[1] @ weight.T + bias
    for reduction, actual in (("none", -output), ("sum", -output.sum()), ("mean", loss)):
        expected = cross_entropy(
            scores.movedim(2, 1), target, ignore_index=ignore_index, reduction=reduction
        )
        torch.testing.assert_close(actual, expected, equal_nan=True)
    arguments = both[0], module.weight, module.bias
    actual = torch.autograd.grad(loss, arguments)
    torch.testing.assert_close(actual, torch.autograd.grad(expected, (both[1], weight, bias)))


@every_tree
@pytest.mark.parametrize("sparse", [False, True])
def test_padding_changes_nothing(tree, sparse):
    results = []
    hidden, target, kept = padded(tree)
    for inputs, wanted in ((hidden, target), (hidden[kept], target[kept])):
        module = twins(tree, sparse=sparse)[1]
        output, loss = module(inputs.requires_grad_(), wanted)
        loss.backward()
        results.append([loss, *(p.grad.to_dense() for p in module.parameters())])
        assert output.shape == wanted.shape
        assert not output[wanted == -100].any()
    torch.testing.assert_close(*results)
    assert not hidden.grad[~kept].any()


@pytest.mark.parametrize("kind", [str, Path])
def test_a_tree_may_be_the_name_of_its_file(tmp_path, kind):
    path = kind(tmp_path / "tree.json")
    for make in (HierarchicalSoftmax, HierarchicalSoftmax.from_file):
        with pytest.raises(FileFormatError, match=r"tree\.json"):
            make(path, 5)
    TREE.save(path)
    layer = HierarchicalSoftmax(path, 5)
    assert layer.tree == HierarchicalSoftmax.from_file(path, 5, sparse=True).tree == TREE
    assert layer.grow(path).tree == TREE


@pytest.mark.parametrize("tree", [None, 3, b"tree.json", ["a", "b"], {"a": "b"}, np.arange(3)])
def test_what_is_no_tree_is_refused_in_one_line(tree):
    layer = HierarchicalSoftmax(TREE, 5)
    for call in (lambda: HierarchicalSoftmax(tree, 5), lambda: layer.grow(tree)):
        with pytest.raises(InputError, match=f"^tree is of type {type(tree).__name__}.*$"):
            call()


@every_tree
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("batch", ["empty", "padding", "usual"])
def test_gradients_are_of_the_kind_that_was_asked_for(tree, sparse, batch):
    layer = twins(tree, sparse=sparse)[1]
    hidden, target = as_tensors(tree, size=0 if batch == "empty" else 20)
    if batch == "padding":
        target = torch.full_like(target, -100)
    loss = layer(hidden.requires_grad_(), target).loss
    loss.backward()
    assert loss.isnan() == (batch != "usual")
    assert not hidden.grad.is_sparse
    for parameter in layer.parameters():
        assert parameter.grad.is_sparse == sparse
        assert parameter.grad.shape == parameter.shape
        assert batch == "usual" or not parameter.grad.to_dense().any()
    for optimiser in (torch.optim.SGD, torch.optim.SparseAdam if sparse else torch.optim.Adam):
        optimiser(layer.parameters(), lr=0.1).step()


def test_impossible_options():
    with pytest.raises(OptionError, match="in_features is 0"):
        HierarchicalSoftmax(TREE, 0)
    with pytest.raises(OptionError, match="k is 0"):
        HierarchicalSoftmax(TREE, 5).top_k(torch.zeros(5), 0)
    for counts in (np.ones(3, int), -np.ones(TREE.n_labels, int)):
        with pytest.raises(InputError, match="one count, zero or more"):
            HierarchicalSoftmax(TREE, 5, counts=counts)


def test_targets_of_other_integers():
    module = twins(TREE)[1]
    hidden, target = as_tensors(TREE)
    expected = module(hidden, target).output
    for dtype in (torch.int32, torch.uint8):  # a small type has no room for -100
        torch.testing.assert_close(module(hidden, target.to(dtype)).output, expected)
    output = HierarchicalSoftmax(flat(200), 5)(
        torch.zeros(1, 5), torch.tensor([156], dtype=torch.uint8)
    ).output
    assert output.item() == pytest.approx(-np.log(200))


@every_tree
def test_the_start_is_the_unigram_distribution(tree):
    counts = np.arange(tree.n_labels)
    module = HierarchicalSoftmax(tree, 3, counts=counts)
    mass = torch.tensor(np.maximum(counts, 0.5))
    actual = module.log_prob(torch.ones(3)).exp()
    torch.testing.assert_close(actual.double(), mass / mass.sum(), atol=1e-6, rtol=1e-5)
    with torch.no_grad():
        module.weight.fill_(1)
        module.bias.fill_(1)
    module.reset_parameters()
    torch.testing.assert_close(module.log_prob(torch.ones(3)).exp(), actual)


@every_tree
@pytest.mark.parametrize("k", [1, 3, 100])
def test_top_k_is_that_of_the_numpy_layer(tree, k):
    layer, module = twins(tree)
    hidden, _ = batch(tree)
    inputs = torch.from_numpy(hidden).requires_grad_()
    actual = module.top_k(inputs, k)
    labels, log_prob = layer.top_k(hidden, k)
    np.testing.assert_array_equal(actual.labels.numpy(), labels)
    np.testing.assert_allclose(actual.log_prob.numpy(), log_prob, atol=1e-9)
    np.testing.assert_array_equal(module.predict(inputs).numpy(), labels[:, 0])


def test_top_k_breaks_ties_by_label():
    ties = HierarchicalSoftmax(flat(50), 2, counts=np.array([1, 5, 2, 5, 5] + [2] * 45))
    assert ties.top_k(torch.zeros(2), 6).labels.tolist() == [1, 3, 4, 2, 5, 6]


def test_top_k_keeps_its_shape_where_scores_are_nan():
    module = HierarchicalSoftmax(flat(4), 5)
    hidden = torch.zeros(2, 5)
    hidden[0] = torch.nan
    assert module(hidden, torch.zeros(2).long()).loss.isnan()  # not refused, as in torch
    labels, log_prob = module.top_k(hidden, 3)
    assert labels.tolist() == [[0, 1, 2]] * 2
    assert log_prob.isnan().all(1).tolist() == [True, False]


def test_top_k_in_parts_changes_nothing(monkeypatch):
    module = twins(TREE)[1]
    hidden, _ = as_tensors(TREE)
    expected = module.top_k(hidden, 4)
    monkeypatch.setattr("hstree.interop.torch.module.TABLE_LIMIT", 100)
    torch.testing.assert_close(module.top_k(hidden, 4), expected)


@every_tree
def test_samples_follow_the_distribution(tree):
    module = twins(tree, seed=5)[1]
    hidden = as_tensors(tree, size=1)[0]
    expected = module.log_prob(hidden).exp().detach().numpy()[0]
    many = hidden.expand(20_000, 5)
    drawn = module.sample(many, torch.Generator().manual_seed(7))
    again = module.sample(many, torch.Generator().manual_seed(7))
    assert torch.equal(drawn, again)
    # Labels that are expected fewer than five times are counted as one
    group = np.where(expected * 20_000 > 5, np.arange(tree.n_labels), 0)
    share = np.bincount(group, expected) * 20_000
    n_drawn = np.bincount(group[drawn.numpy()], minlength=len(share))[share > 0]
    if len(n_drawn) > 1:
        share = share[share > 0]
        assert chisquare(n_drawn, share * n_drawn.sum() / share.sum()).pvalue > 1e-3


@pytest.mark.parametrize("name", ["narrow, several codes", "binary", "classes, several codes"])
@pytest.mark.parametrize("lower", [torch.bfloat16, torch.float16])
def test_autocast_computes_the_loss_in_float32(name, lower):
    tree = TREES[name]
    module = twins(tree, dtype=torch.float32)[1]
    body = torch.nn.Linear(5, 5)
    hidden, target = as_tensors(tree, dtype=np.float32)
    with torch.autocast("cpu", dtype=lower):
        inputs = body(hidden)
        assert inputs.dtype == lower
        output, loss = module(inputs, target)
        everything = module.log_prob(inputs)
        loss.backward()  # inside, where autocast would lower the products of the backward pass
    assert output.dtype == loss.dtype == everything.dtype == torch.float32
    torch.testing.assert_close(output, module(inputs.float(), target).output)
    assert module.weight.grad.dtype == body.weight.grad.dtype == torch.float32


@pytest.fixture
def model():
    children = random_tree(12, 4, extra_codes=3)
    tree = Tree(["<eos>", *children.labels[1:]], children.child_start, children.child)
    trained = LanguageModel(tree, dim=5, context=2)
    rng = np.random.default_rng(0)
    trained.layer.weight[:] = rng.standard_normal(trained.layer.weight.shape)
    return trained


@pytest.mark.parametrize("kind", ["lbl", "cbow", "skipgram"])
def test_weights_come_from_a_model(kind, model, tmp_path):
    if kind != "lbl":
        model = new_model(model.tree, dim=5, model=kind)
        model.layer.weight[:] = np.random.default_rng(0).standard_normal(model.layer.weight.shape)
    model.save(tmp_path / "model")
    module = HierarchicalSoftmax.from_model(tmp_path / "model", sparse=True)
    assert module.sparse
    contexts = np.array([[0, 1], [3, 4], [11, 2]])
    hidden = torch.from_numpy(model.hidden(contexts))
    np.testing.assert_allclose(
        module.log_prob(hidden).detach().numpy(), model.log_prob(contexts), atol=1e-5
    )
    again = HierarchicalSoftmax.from_model(model)
    assert torch.equal(again.weight, module.weight)
    assert torch.equal(again.bias, module.bias)


def test_weights_come_from_a_hierarchical_softmax_alone(model):
    with pytest.raises(FileFormatError, match="there is no folder nowhere; give one that"):
        HierarchicalSoftmax.from_model("nowhere")
    with_features = LanguageModel(LayerSpec(model.tree, "ngrams"), dim=5, context=2)
    with pytest.raises(InputError, match="output layer is 'ngrams', not the hierarchical softmax"):
        HierarchicalSoftmax.from_model(with_features)


def test_a_compiled_model_gives_the_same_loss_and_gradients():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Linear(5, 5).double()
            self.layer = twins(TREE)[1]

        def forward(self, inputs, target):
            return self.layer(torch.tanh(self.body(inputs)), target).loss

    model = Model()
    compiled = torch.compile(copy.deepcopy(model), backend="aot_eager")
    for size in (8, 9):
        hidden, target = as_tensors(TREE, size=size)
        losses = []
        for each in (model, compiled):
            each.zero_grad()
            loss = each(hidden, target)
            loss.backward()
            losses.append(loss)
        torch.testing.assert_close(*losses)
    expected = dict(model.named_parameters())
    for name, parameter in compiled._orig_mod.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name].grad)


def large(tree, size):
    """Return a layer with drawn weights, hidden vectors of this magnitude, and targets."""
    module = HierarchicalSoftmax(tree, 5)
    torch.nn.init.normal_(module.weight)
    hidden, target = as_tensors(tree)
    return module, size * hidden.float().sign(), target


@every_tree
def test_large_inputs_have_log_probabilities_and_larger_ones_are_refused(tree):
    module, hidden, target = large(tree, 1e30)
    assert not module(hidden, target).output.isnan().any()
    assert not module.log_prob(hidden).isnan().any()
    hidden = 1e8 * hidden
    for call in (
        lambda: module(hidden, target),
        lambda: module.log_prob(hidden),
        lambda: module.top_k(hidden, 1),
        lambda: module.sample(hidden),
    ):
        if tree.n_nodes:
            with pytest.raises(InputError, match=r"overflow torch\.float32"):
                call()


def test_log_prob_compiles_in_one_graph():
    tree = random_tree(12, 3, extra_codes=5)
    assert set(tree.fan_out) > {2}
    with torch.device("meta"):
        module = HierarchicalSoftmax(tree, 5)
    module.load_state_dict(twins(tree)[1].state_dict(), assign=True)
    hidden = as_tensors(tree)[0]
    compiled = torch.compile(module.log_prob, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(hidden), module.log_prob(hidden))


@pytest.mark.parametrize("fast", ["0", "1"])  # without numba and with it
@pytest.mark.parametrize("name", ["binary", "narrow", "several codes", "flat", "one label"])
def test_the_rest_runs_when_compiled(name, fast, monkeypatch):
    monkeypatch.setenv("HSTREE_FAST", fast)
    torch.compiler.reset()
    tree = TREES[name]
    layers = [twins(tree)[1]]
    flat_layer = SampledSoftmax(40, 5, dtype=torch.float64)
    torch.nn.init.normal_(flat_layer.weight)
    layers.append(flat_layer)

    def all_of(layer, hidden):
        results = [*layer.top_k(torch.tanh(hidden), 3)]
        if layer is flat_layer:
            return results
        results += [layer.predict(hidden) + 1, layer.sample(hidden)]
        if tree.has_single_codes:
            results.append(layer.predict_nodes(hidden, depth=0))
        return results

    compiled = torch.compile(all_of, backend="eager")
    for layer in layers:
        for size in (6, 9, 40):
            hidden = as_tensors(TREE, size=size)[0]
            torch.manual_seed(0)
            expected = all_of(layer, hidden)
            torch.manual_seed(0)
            assert all(map(torch.equal, compiled(layer, hidden), expected))


def test_a_graph_without_breaks_is_refused_with_the_reason():
    layer = twins(TREES["binary"])[1]
    hidden, target = as_tensors(TREES["binary"])
    for call, arguments in ((layer, (hidden, target)), (layer.predict, (hidden,))):
        torch.compiler.reset()
        with pytest.raises(RuntimeError, match=r"compile without fullgraph=True"):
            torch.compile(call, backend="eager", fullgraph=True)(*arguments)


@pytest.mark.skipif(not torch.cuda.is_available(), reason=needs.GPU)
@every_tree
@pytest.mark.parametrize("sparse", [False, True])
def test_a_gpu_gives_the_same(tree, sparse):
    module = twins(tree, sparse=sparse)[1]
    hidden, target = as_tensors(tree)
    results = []
    for device in ("cpu", "cuda"):
        moved = copy.deepcopy(module).to(device)
        inputs = hidden.to(device, copy=True).requires_grad_()
        output, loss = moved(inputs, target.to(device))
        loss.backward()
        assert moved.sample(inputs).device.type == moved.predict(inputs).device.type == device
        grads = [p.grad.to_dense().cpu() for p in (inputs, moved.weight, moved.bias)]
        results.append([output.cpu(), moved.log_prob(inputs).cpu(), *grads])
    torch.testing.assert_close(*results)


def test_a_chain_of_many_labels_is_scored():
    n_labels = 20_000
    module = HierarchicalSoftmax(chain(n_labels), 2, counts=np.ones(n_labels, int))
    output = module(torch.ones(2, 2), torch.tensor([0, n_labels - 1])).output
    assert -output.detach().numpy() == pytest.approx(np.log(n_labels) * np.ones(2), rel=1e-4)


def test_a_missing_torch_is_one_line(tmp_path):
    code = """
import sys
sys.modules["torch"] = None
from hstree.errors import MissingExtraError
try:
    import hstree.interop.torch
except MissingExtraError as error:
    print(error)
"""
    printed = run_python(["-c", code], tmp_path)
    assert "pip install --upgrade torch" in printed
    assert printed.count("\n") == 1

"""Sampled softmax and NCE against torch's cross entropy and the NumPy layers."""

import numpy as np
import pytest

from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError, OptionError
from hstree.layers.nce import NoiseContrastive
from hstree.layers.sampled import SampledSoftmax as NumPyLayer
from tests import needs

pytest.importorskip("torch", reason=needs.TORCH)

from hstree.interop.torch import NCE, SampledSoftmax
from tests.interop.torch_layers import TREES, labels, torch, twins

from torch.nn.functional import cross_entropy, linear  # isort: skip

V, D, N = 40, 5, 12
COUNTS = np.arange(V, 0, -1) ** 2


def drawn_weights(layer, seed=0):
    """Draw the weights of a layer."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in (layer.weight, layer.bias):
            if p is not None:
                p.copy_(torch.randn(p.shape, generator=generator))
    return layer


def layer_of(kind=SampledSoftmax, **options):
    return drawn_weights(kind(V, D, dtype=torch.float64, **options))


def batch():
    """Return hidden vectors (3, 4, d) and targets (3, 4), with one that is padding."""
    generator = torch.Generator().manual_seed(1)
    target = torch.randint(V, (3, N // 3), generator=generator)
    target[1, 2] = -100
    hidden = torch.randn(3, N // 3, D, dtype=torch.float64, generator=generator)
    return hidden.requires_grad_(), target


def gradients(loss, *tensors):
    return [g.to_dense() for g in torch.autograd.grad(loss, [t for t in tensors if t is not None])]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_labels_drawn_is_cross_entropy(reduction, bias, sparse, label_smoothing, weighted):
    class_weight = torch.rand(V, dtype=torch.float64) if weighted else None
    options = {"reduction": reduction, "label_smoothing": label_smoothing}
    layer = layer_of(samples=V, bias=bias, sparse=sparse, class_weight=class_weight, **options)
    hidden, target = batch()
    expected = cross_entropy(
        linear(hidden, layer.weight, layer.bias).movedim(-1, 1), target, class_weight, **options
    )
    tensors = hidden, layer.weight, layer.bias
    slopes = gradients(expected.sum(), *tensors)
    for training in (True, False):
        loss = layer.train(training)(hidden, target)
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(gradients(loss.sum(), *tensors), slopes)
    layer.train()(hidden, target).sum().backward()
    assert all(p.grad.is_sparse == sparse for p in layer.parameters())


@pytest.mark.parametrize(
    ("kind", "numpy_kind"), [(SampledSoftmax, NumPyLayer), (NCE, NoiseContrastive)]
)
def test_draws_and_loss_are_those_of_the_numpy_layer(kind, numpy_kind):
    layer = layer_of(kind, samples=7, proposal=COUNTS)
    twin = numpy_kind(Vocabulary(labels(V), COUNTS), D, samples=7, dtype=np.float64)
    twin.weight[:], twin.bias[:] = layer.weight.detach(), layer.bias.detach()
    hidden, target = batch()
    kept = target >= 0
    torch.manual_seed(3)
    rng = np.random.default_rng(int(torch.randint(1 << 62, ())))
    losses, _ = twin.loss(hidden[kept].detach().numpy(), target[kept].numpy(), rng)
    torch.manual_seed(3)
    assert layer(hidden, target).item() == pytest.approx(losses.mean(), rel=1e-9)


@pytest.mark.parametrize("proposal", ["log-uniform", COUNTS, COUNTS / COUNTS.sum()])
def test_biases_are_those_of_the_proposal_at_the_start(proposal):
    mass = np.log1p(1 / np.arange(1, V + 1)) if isinstance(proposal, str) else COUNTS
    bias = SampledSoftmax(V, D, proposal=proposal).bias.detach().numpy()
    np.testing.assert_allclose(np.exp(bias), mass / mass.sum(), rtol=1e-5)


@pytest.mark.parametrize("name", ["binary", "several codes", "classes, several codes"])
def test_a_tree_proposes_labels_by_its_probabilities(name):
    tree = twins(TREES[name])[1]
    layer = SampledSoftmax(tree.n_classes, D, samples=3, proposal=tree, dtype=torch.float64)
    hidden = torch.randn(2, D, dtype=torch.float64)
    noise = layer._draw(hidden, torch.tensor([1, 2]))
    log_q = tree.log_prob(hidden)
    torch.testing.assert_close(noise.log_expected, log_q.gather(1, noise.labels) + np.log(3))
    of_targets = log_q[[0, 1], [1, 2]] + np.log(3)
    torch.testing.assert_close(noise.log_expected_target, of_targets)
    torch.testing.assert_close(log_q.exp().sum(1), torch.ones(2).double())


@pytest.mark.parametrize("kind", [SampledSoftmax, NCE])
@pytest.mark.parametrize("bias", [True, False])
def test_a_loss_against_a_tree_is_the_formula(kind, bias):
    tree = twins(TREES["binary"])[1]
    layer = layer_of(kind, samples=9, proposal=tree, bias=bias)
    hidden, target = batch()
    hidden, target = hidden[0], target[0]
    torch.manual_seed(5)
    noise = layer._draw(hidden, target)
    torch.manual_seed(5)
    loss = layer(hidden, target)
    score = linear(hidden, layer.weight, layer.bias)
    z_target = score.gather(1, target[:, None]) - noise.log_expected_target[:, None]
    z = score.gather(1, noise.labels) - noise.log_expected
    if kind is SampledSoftmax:
        expected = torch.cat([z_target, z], 1).logsumexp(1) - z_target[:, 0]
    else:
        shift = 0 if bias else np.log(V)
        true, false = torch.sigmoid(z_target - shift), torch.sigmoid(shift - z)
        expected = -true.log()[:, 0] - false.log().sum(1)
    torch.testing.assert_close(loss, expected.mean())
    tensors = hidden, layer.weight, layer.bias
    torch.testing.assert_close(gradients(loss, *tensors), gradients(expected.mean(), *tensors))
    assert all(p.grad is None for p in tree.parameters())


@pytest.mark.parametrize("bias", [True, False])
def test_the_normaliser_of_nce_is_one_at_the_start(bias):
    layer = NCE(V, D, bias=bias, proposal=COUNTS)
    scores = linear(torch.randn(3, D), layer.weight, layer.bias)
    shift = 0 if bias else np.log(V)
    torch.testing.assert_close((scores - shift).exp().sum(1), torch.ones(3))


def test_probabilities_and_top_k_are_those_of_the_softmax():
    layer = layer_of()
    hidden, _ = batch()
    expected = linear(hidden, layer.weight, layer.bias).log_softmax(-1)
    torch.testing.assert_close(layer.log_prob(hidden), expected)
    values, found = expected.topk(3)
    top = layer.top_k(hidden, 3)
    assert torch.equal(top.labels, found)
    torch.testing.assert_close(top.log_prob, values)


def test_what_does_not_fit_is_named():
    hidden, target = batch()
    with pytest.raises(InputError, match=r"this layer takes \(\.\.\., 5\)"):
        layer_of()(hidden[..., :4], target)
    with pytest.raises(InputError, match="target of shape"):
        layer_of()(hidden, target[0])
    with pytest.raises(InputError, match="not labels 0 to 39"):
        layer_of()(hidden, target + V)
    with pytest.raises(InputError, match="one number for each of 40 labels"):
        layer_of(proposal=COUNTS[1:])
    for options in (
        {"samples": 0},
        {"reduction": "max"},
        {"proposal": "zipf"},
        {"proposal": np.full(V, np.nan)},
        {"proposal": -COUNTS},
        {"label_smoothing": 2},
    ):
        with pytest.raises(OptionError, match=next(iter(options))):
            layer_of(**options)

"""The loss under ``torch.func``, against the dense log-probabilities under the same transforms."""

import pytest

from tests.interop.torch_layers import TREES, batch, every_tree, torch, twins

from torch.func import functional_call, grad, jacrev, vmap  # isort: skip

ARGUMENTS = (0, 1, 2)


class AllLabels(torch.nn.Module):
    """What `functional_call` wants: a module whose call is `log_prob`."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, hidden):
        return self.module.log_prob(hidden)


def two_ways(tree, sparse=False):
    """Return the targets' log-probabilities by decisions and by all labels, and their arguments."""
    module = twins(tree, sparse=sparse)[1]
    hidden, target = (torch.from_numpy(given) for given in batch(tree, size=4))

    def by_decisions(weight, bias, hidden):
        return functional_call(module, {"weight": weight, "bias": bias}, (hidden, target)).output

    def by_labels(weight, bias, hidden):
        parameters = {"module.weight": weight, "module.bias": bias}
        log_prob = functional_call(AllLabels(module), parameters, (hidden,))
        return log_prob.gather(1, target[:, None])[:, 0]

    return by_decisions, by_labels, (module.weight.detach(), module.bias.detach(), hidden)


def slopes(way):
    """Return the gradients of the sum with respect to weight, bias and hidden vectors."""
    return grad(lambda *given: way(*given).sum(), ARGUMENTS)


@every_tree
@pytest.mark.parametrize("sparse", [False, True])
def test_grad(tree, sparse):
    *both, given = two_ways(tree, sparse)
    found, expected = (slopes(way)(*given) for way in both)
    torch.testing.assert_close([own.to_dense() for own in found], list(expected))


@every_tree
@pytest.mark.parametrize("chunk_size", [None, 3])
def test_jacrev(tree, chunk_size):
    *both, given = two_ways(tree, sparse=True)
    found, expected = (jacrev(way, ARGUMENTS, chunk_size=chunk_size)(*given) for way in both)
    torch.testing.assert_close(found, expected)


@every_tree
@pytest.mark.parametrize("stacked", [(0, 1), (2,), (0, 1, 2), (0,), (1,)])
def test_vmap(tree, stacked):
    """Over weights (an ensemble), over hidden vectors, over both; and over its gradients."""
    *both, given = two_ways(tree)
    generator = torch.Generator().manual_seed(0)
    in_dims = [None] * 3
    arguments = list(given)
    for i in stacked:
        in_dims[i] = 1
        shape = (len(given[i]), 3, *given[i].shape[1:])
        arguments[i] = torch.randn(shape, dtype=torch.float64, generator=generator)
    for transformed in (
        lambda way: way,
        slopes,
        lambda way: jacrev(way, ARGUMENTS),
    ):
        found, expected = (vmap(transformed(way), tuple(in_dims))(*arguments) for way in both)
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", ["several codes", "classes, several codes"])
def test_the_loss_is_not_differentiated_twice(name):
    way, _, (weight, bias, hidden) = two_ways(TREES[name])

    def slope(weight):
        return slopes(way)(weight, bias, hidden)[0].pow(2).sum()

    with pytest.raises(RuntimeError, match="differentiable once; differentiate log_prob"):
        grad(slope)(weight)
    weight.requires_grad_()
    (once,) = torch.autograd.grad(way(weight, bias, hidden).sum(), weight, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiable once; differentiate log_prob"):
        once.sum().backward()


@every_tree
def test_log_prob_is_differentiated_twice(tree):
    module = twins(tree)[1]
    hidden = torch.from_numpy(batch(tree, size=2)[0]).requires_grad_()
    assert torch.autograd.gradgradcheck(module.log_prob, (hidden,), fast_mode=True)

"""The loss under ``torch.func``, against the dense log-probabilities under the same transforms."""

import pytest

from tests.interop.torch_layers import TREES, as_tensors, every_tree, torch, twins

from torch.autograd.forward_ad import dual_level, make_dual  # isort: skip
from torch.func import functional_call, grad, hessian, jacrev, jvp, vmap  # isort: skip

ARGUMENTS = (0, 1, 2)


class AllLabels(torch.nn.Module):
    """Module whose call is `log_prob`, for `functional_call`."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, hidden):
        return self.module.log_prob(hidden)


def two_functions(tree, sparse=False):
    """Return the targets' log-probabilities by decisions and by all labels, and their arguments."""
    module = twins(tree, sparse=sparse)[1]
    hidden, target = as_tensors(tree, size=4)

    def by_decisions(weight, bias, hidden):
        return functional_call(module, {"weight": weight, "bias": bias}, (hidden, target)).output

    def by_labels(weight, bias, hidden):
        parameters = {"module.weight": weight, "module.bias": bias}
        log_prob = functional_call(AllLabels(module), parameters, (hidden,))
        return log_prob.gather(1, target[:, None])[:, 0]

    return by_decisions, by_labels, (module.weight.detach(), module.bias.detach(), hidden)


def slopes(function):
    """Return the gradients of the sum with respect to weight, bias and hidden vectors."""
    return grad(lambda *arguments: function(*arguments).sum(), ARGUMENTS)


@every_tree
@pytest.mark.parametrize("sparse", [False, True])
def test_grad(tree, sparse):
    *both, arguments = two_functions(tree, sparse)
    actual, expected = (slopes(function)(*arguments) for function in both)
    torch.testing.assert_close([gradient.to_dense() for gradient in actual], list(expected))


def test_jacrev_row_by_row():
    *both, arguments = two_functions(TREES["classes, several codes"])
    actual, expected = (jacrev(function, ARGUMENTS, chunk_size=1)(*arguments) for function in both)
    torch.testing.assert_close(actual, expected)


def test_vmap_over_log_prob():
    _, by_labels, (weight, bias, hidden) = two_functions(TREES["several codes"])
    weights = torch.stack([weight, 2 * weight])
    actual = vmap(by_labels, (0, None, None))(weights, bias, hidden)
    torch.testing.assert_close(actual, torch.stack([by_labels(w, bias, hidden) for w in weights]))


@every_tree
def test_vmap_over_items_and_their_gradients(tree):
    """Gradients of each item by themselves, which `vmap` over `grad` computes."""
    module = twins(tree)[1]
    hidden, target = as_tensors(tree, size=4)
    weights = dict(module.named_parameters())

    def output(weights, hidden, target):
        return functional_call(module, weights, (hidden, target)).output

    actual = vmap(grad(output), (None, 0, 0))(weights, hidden, target)
    for number in range(4):
        module.zero_grad()
        module(hidden[number], target[number]).output.backward()
        for name, parameter in weights.items():
            torch.testing.assert_close(actual[name][number], parameter.grad)
    torch.testing.assert_close(vmap(module.predict)(hidden), module.predict(hidden))
    torch.testing.assert_close(
        tuple(vmap(lambda each: tuple(module.top_k(each, 2)))(hidden)),
        tuple(module.top_k(hidden, 2)),
    )


@every_tree
def test_forward_mode_and_hessians_of_the_loss(tree):
    by_decisions, by_labels, (weight, bias, hidden) = two_functions(tree)
    arguments = (weight, bias, hidden)
    tangents = tuple(map(torch.ones_like, arguments))
    actual, expected = (jvp(f, arguments, tangents) for f in (by_decisions, by_labels))
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(
        hessian(lambda hidden: by_decisions(weight, bias, hidden).sum())(hidden),
        hessian(lambda hidden: by_labels(weight, bias, hidden).sum())(hidden),
    )


@pytest.mark.parametrize("name", ["binary", "several codes", "classes, several codes"])
def test_what_cannot_be_transformed_is_refused_in_one_line(name):
    function, _, (weight, bias, hidden) = two_functions(TREES[name])
    eye = torch.eye(4, dtype=torch.float64)
    hidden.requires_grad_()
    batched = [
        lambda: jacrev(function, ARGUMENTS)(weight, bias, hidden),
        lambda: torch.autograd.grad(
            function(weight, bias, hidden), hidden, eye, is_grads_batched=True
        ),
    ]
    for call in batched:
        with pytest.raises(RuntimeError, match=r"cannot be batched; pass chunk_size=1") as caught:
            call()
        assert "\n" not in str(caught.value)
    with dual_level(), pytest.raises(RuntimeError, match=r"no forward mode outside of torch\.func"):
        function(weight, bias, make_dual(hidden, torch.ones_like(hidden)))


@pytest.mark.parametrize("name", ["several codes", "classes, several codes"])
def test_the_loss_is_not_differentiated_twice(name):
    function, _, (weight, bias, hidden) = two_functions(TREES[name])

    def slope(weight):
        return slopes(function)(weight, bias, hidden)[0].pow(2).sum()

    with pytest.raises(RuntimeError, match="differentiable once; differentiate log_prob"):
        grad(slope)(weight)
    weight.requires_grad_()
    (once,) = torch.autograd.grad(function(weight, bias, hidden).sum(), weight, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiable once; differentiate log_prob"):
        once.sum().backward()


@every_tree
def test_gradients_of_the_loss_are_those_of_finite_differences(tree):
    """Undefined gradients, of a loss that does not depend on the layer, included."""
    by_decisions, _, arguments = two_functions(tree)
    arguments = tuple(argument.requires_grad_() for argument in arguments)
    assert torch.autograd.gradcheck(by_decisions, arguments, fast_mode=True)


@every_tree
def test_log_prob_is_differentiated_twice(tree):
    _, by_labels, arguments = two_functions(tree)
    arguments = tuple(argument.requires_grad_() for argument in arguments)
    assert torch.autograd.gradcheck(by_labels, arguments, fast_mode=True)
    assert torch.autograd.gradgradcheck(by_labels, arguments, fast_mode=True)

"""Inner nodes of the torch module: their probabilities, targets there, predictions at a level."""

import copy

import pytest

from hstree import Tree
from hstree.errors import InputError, OptionError
from tests import needs

pytest.importorskip("torch", reason=needs.TORCH)

from tests.interop.torch_layers import TREES, as_tensors, every_tree, torch, twins

TAXONOMY = Tree.from_taxonomy(
    {"animal": {"pet": ["cat", "dog"], "wild": ["elk"]}, "plant": {"tree": ["oak", "elm", "fir"]}}
)
V, N = TAXONOMY.n_labels, TAXONOMY.n_nodes


def below(tree, node):
    """Return the labels under a node, one for each code."""
    children = tree.child[tree.child_start[node] : tree.child_start[node + 1]].tolist()
    return [v for c in children for v in ([~c] if c < 0 else below(tree, c))]


def hidden_of(tree, size=8):
    return as_tensors(tree, size=size)[0]


@pytest.mark.parametrize("name", ["binary", "narrow", "flat", "two labels"])
def test_a_node_has_the_probability_of_the_labels_below(name):
    tree = TREES[name]
    module, hidden = twins(tree)[1], hidden_of(tree)
    prob, of_label = module.node_log_prob(hidden).exp(), module.log_prob(hidden).exp()
    expected = torch.stack([of_label[:, below(tree, n)].sum(1) for n in range(tree.n_nodes)], 1)
    torch.testing.assert_close(prob, expected)
    assert module.node_log_prob(hidden[0]).shape == (tree.n_nodes,)


@every_tree
@pytest.mark.parametrize("sparse", [False, True])
def test_the_likelihood_of_a_node_is_the_probability_of_reaching_it(tree, sparse):
    module = twins(tree, sparse=sparse, node_targets=True)[1]
    hidden = hidden_of(tree, size=tree.n_nodes)
    nodes = torch.arange(tree.n_nodes)
    output, loss = module(hidden, tree.n_labels + nodes)
    expected = module.node_log_prob(hidden)[nodes, nodes]
    torch.testing.assert_close(output, expected)
    if tree.n_nodes:
        wanted = torch.autograd.grad(-expected.mean(), (module.weight, module.bias))
        actual = torch.autograd.grad(loss, (module.weight, module.bias))
        for ours, theirs in zip(actual, wanted, strict=True):
            torch.testing.assert_close(ours.to_dense(), theirs)


@every_tree
def test_targets_at_labels_nodes_and_padding_go_together(tree):
    module = twins(tree, node_targets=True)[1]
    hidden = hidden_of(tree, size=3)
    label, _, ignored = module(hidden, torch.tensor([0, tree.n_labels - 1, -100])).output
    torch.testing.assert_close(label, module.log_prob(hidden[0])[0])
    assert ignored == 0
    if tree.n_nodes:
        root = module(hidden, torch.full((3,), tree.n_labels)).output
        assert (root == 0).all()


def test_nodes_are_targets_only_where_that_was_said():
    hidden, target = hidden_of(TAXONOMY, size=1), torch.tensor([V])
    with pytest.raises(
        InputError, match=f"ids from {V} to {V}; this layer has labels 0 to {V - 1},"
    ):
        twins(TAXONOMY)[1](hidden, target)
    module = copy.deepcopy(twins(TAXONOMY, node_targets=True)[1])
    assert module(hidden, target).output.tolist() == [0]
    assert module.grow(TAXONOMY)(hidden, target).output.tolist() == [0]
    with pytest.raises(
        InputError, match=f"labels 0 to {V - 1}, nodes up to {V + N - 1}, and ignores"
    ):
        module(hidden, torch.tensor([V + N]))


def test_predictions_at_a_depth_are_the_most_probable_there():
    module, hidden = twins(TAXONOMY)[1], hidden_of(TAXONOMY, size=200)
    levels = module.levels
    of_target = torch.cat([module.log_prob(hidden), module.node_log_prob(hidden)], 1).detach()
    for depth in range(4):
        items = levels.at_depth(depth)
        assert of_target.exp()[:, levels.target[items]].sum(1).numpy() == pytest.approx(1)
        best = levels.target[items][of_target[:, levels.target[items]].argmax(1).numpy()]
        assert (module.predict_nodes(hidden, depth=depth).numpy() == best).all()
    assert torch.equal(module.predict_nodes(hidden), module.predict(hidden))
    assert module.predict_nodes(hidden.view(4, 50, -1), depth=1).shape == (4, 50)


def test_predictions_go_down_to_the_wanted_confidence():
    module, hidden = twins(TAXONOMY)[1], hidden_of(TAXONOMY, size=200)
    levels = module.levels
    prob = torch.cat([module.log_prob(hidden), module.node_log_prob(hidden)], 1).exp()
    for confidence in (0.3, 0.6, 0.9, 1.0):
        targets = module.predict_nodes(hidden, confidence=confidence)
        assert (prob.gather(1, targets[:, None]) >= confidence).all()
        for of_targets, target in zip(prob, targets.tolist(), strict=True):
            deep = levels.depth[levels.target == target].max()
            sure = levels.target[levels.depth > deep]
            assert (of_targets[sure] < confidence).all()
    shallow = module.predict_nodes(hidden, confidence=1e-9, depth=1)
    assert torch.equal(shallow, module.predict_nodes(hidden, depth=1))


def test_levels_want_one_code_and_sense():
    module = twins(TAXONOMY)[1]
    with pytest.raises(OptionError, match=r"confidence is 1\.5; it must be above 0 and at most 1"):
        module.predict_nodes(torch.zeros(1, 5), confidence=1.5)
    with pytest.raises(InputError, match="codes, and a taxonomy holds one"):
        twins(TREES["several codes"])[1].predict_nodes(torch.zeros(1, 5), depth=1)

"""Upper and lower nodes of other kinds: where a tree is cut, and what each part is given."""

import numpy as np
import pytest

import hstree
from hstree._compiled import numpy_alone, twins
from hstree.errors import InputError, OptionError
from hstree.layers.levels import Cut, LevelSoftmax
from hstree.layers.registry import layer_spec
from hstree.models import load, new_model
from hstree.models.lbl import LogBilinearTrainer
from hstree.tree import Tree
from hstree.tree.weight_rows import NARROW
from tests.needs import NUMBA

#: Root: a and two nodes; below the first b and the node (c, d); below the second e, f and g.
LABELS = list("abcdefg")
TREE = Tree.from_children(
    LABELS, [[~0, 1, 3], [~1, 2], [~2, ~3], [~4, ~5, ~6]], counts=[40, 20, 4, 6, 10, 10, 10]
)
DIM = 6


def drawn(layer, seed=0):
    rng = np.random.default_rng(seed)
    for parameter in layer.parameters().values():
        parameter[...] = rng.standard_normal(parameter.shape)
    hidden = rng.standard_normal((30, DIM)).astype(layer.upper.weight.dtype)
    return hidden, rng.integers(0, layer.n_labels, 30)


@pytest.mark.parametrize(
    ("options", "lower"),
    [
        ({}, "bcdefg"),
        ({"upper_levels": 2}, "cd"),
        ({"upper_levels": 3}, ""),
        ({"rare": 0.3}, "bcdefg"),  # 30 of 100 tokens pass through each child of the root
        ({"rare": 0.299}, "cd"),
        ({"rare": 0.05}, ""),
    ],
)
def test_lower_nodes_are_those_far_from_the_root_and_rare(options, lower):
    layer = LevelSoftmax(TREE, DIM, **options)
    assert "".join(LABELS[i] for i in layer._below) == lower
    assert (layer.lower is None) == (lower == "")
    of_tree = layer_spec(TREE).new(DIM).parameters()
    rows = {
        name: sum(len(a) for n, a in layer.parameters().items() if n.endswith(name))
        for name in ("weight", "bias")
    }
    assert rows == {"weight": len(of_tree["node_weight"]), "bias": len(of_tree["node_bias"])}


def test_a_cut_is_two_trees():
    cut = Cut.of(TREE, np.array([False, True, True, True]))
    assert [np.diff(t.child_start).tolist() for t in (cut.upper, cut.lower)] == [[3], [2, 2, 2, 3]]
    assert cut.branch.tolist() == [0, 1, 1, 1, 2, 2, 2]
    assert cut.lower.labels == tuple("bcdefg")
    assert cut.label.tolist() == [-1, 0, 1, 2, 3, 4, 5]
    one = Cut.of(TREE, np.array([False, False, True, False]))
    assert (one.is_joined, one.lower.labels, one.lower.n_nodes) == (False, ("c", "d"), 1)
    assert one.branch.tolist() == [0, 1, 2, 2, 3, 4, 5]


def trees():
    rng = np.random.default_rng(0)
    counts = {f"w{i}": int(c) for i, c in enumerate(rng.zipf(1.3, 90) % 1000 + 1)}
    words = list(counts)
    children = [[~0, ~1, *range(1, 45)], *([~a, ~(a + 1)] for a in range(2, 90, 2))]
    wide = Tree.from_children(words, children, counts=list(counts.values()))
    return {"binary": hstree.build("huffman", counts), "wide": wide, "small": TREE}


@pytest.mark.parametrize("kind", ["binary", "wide", "small"])
@pytest.mark.parametrize("options", [{}, {"upper_levels": 3}, {"rare": 0.1}])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_other_options_the_layer_is_that_of_the_tree(kind, options, dtype):
    """Rows of the tree, by the sorted scores of both parts under the same weights."""
    tree = trees()[kind]
    layer = LevelSoftmax(tree, DIM, dtype=dtype, **options)
    whole = layer_spec(tree).new(DIM, dtype=dtype)
    np.testing.assert_allclose(
        layer.log_prob(np.ones((1, DIM), dtype)),
        whole.log_prob(np.ones((1, DIM), dtype)),
        rtol=1e-5 if dtype == np.float32 else 1e-12,
    )
    hidden, targets = drawn(layer)
    # Rows go to parts in their order: those of nodes in the part
    in_lower = np.zeros(tree.n_nodes, bool)
    in_lower[1:] = tree.depth[1:] >= options.get("upper_levels", 1)
    mass = tree.sum_up(np.maximum(tree.counts, 0.5))
    total = np.maximum(tree.counts, 0.5).sum()
    in_lower[1:] &= mass[tree.node_edge[1:]] <= options.get("rare", 1.0) * total
    is_lower_row = in_lower[np.repeat(np.arange(tree.n_nodes), np.diff(tree.row_start))]
    for name in ("weight", "bias"):
        array = getattr(whole, name)
        array[~is_lower_row] = getattr(layer.upper, name)
        if layer.lower is not None:
            array[is_lower_row] = getattr(layer.lower, name)
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-9}
    np.testing.assert_allclose(layer.log_prob(hidden), whole.log_prob(hidden), **close)
    np.testing.assert_allclose(layer.nll(hidden, targets), whole.nll(hidden, targets), **close)
    _, gradients = layer.loss(hidden, targets)
    _, expected = whole.loss(hidden, targets)
    np.testing.assert_allclose(gradients.hidden, expected.hidden, **close)
    of_both, of_all = layer.curvature(tree.counts), whole.curvature(tree.counts)["node_weight"]
    np.testing.assert_allclose(of_both["upper_weight"], of_all[~is_lower_row])
    if layer.lower is not None:
        np.testing.assert_allclose(of_both["lower_weight"], of_all[is_lower_row])


def test_compiled_passes_below_the_root_are_those_of_numpy():
    if twins("layers") is None:
        pytest.skip(NUMBA)
    for tree in trees().values():
        layer = LevelSoftmax(tree, DIM)
        hidden, targets = drawn(layer)
        compiled = layer.lower.compiled(30, hidden)
        codes = layer.lower.codes
        scores = [np.where(w == 2, 1, w).sum() for w in widths(codes)]
        assert compiled.most_scores == max(scores)
        assert compiled.is_narrow == all(w.max() <= NARROW for w in widths(codes))
        losses, gradients = layer.loss(hidden, targets)
        with numpy_alone():
            expected, wanted = layer.loss(hidden, targets)
        np.testing.assert_allclose(losses, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(gradients.hidden, wanted.hidden, rtol=1e-4, atol=1e-5)


def widths(codes):
    """Return the numbers of children of the nodes on each label's code."""
    for label in range(codes.tree.n_labels):
        yield codes.tree.edge_width[codes.expand(np.array([label])).edge]


def test_short_vectors_see_a_projection():
    layer = LevelSoftmax(TREE, DIM, lower_dim=2, dtype=np.float64)
    hidden, targets = drawn(layer)
    assert {name: array.shape for name, array in layer.parameters().items()} == {
        "upper_weight": (3, DIM),
        "upper_bias": (3,),
        "lower_weight": (5, 2),
        "lower_bias": (5,),
        "lower_projection": (2, DIM),
    }
    full = LevelSoftmax(TREE, DIM, dtype=np.float64)
    for name, array in layer.parameters().items():
        if name in full.parameters() and name != "lower_weight":
            full.parameters()[name][...] = array
    full.lower.weight[...] = layer.lower.weight @ layer.projection
    np.testing.assert_allclose(layer.nll(hidden, targets), full.nll(hidden, targets))


def test_refusals():
    double = Tree.from_children(list("ab"), [[~0, 1], [~0, ~1]])
    with pytest.raises(InputError, match="one code a label, and labels of this tree have up to 2"):
        LevelSoftmax(double, DIM)
    with pytest.raises(OptionError, match="lower_dim is 6; it must be below 6"):
        LevelSoftmax(TREE, DIM, lower_dim=6)


@pytest.mark.parametrize("option", [{"lower_dim": 2}, {"own_positions": True}, {"lower_rate": 2.0}])
def test_options_for_nodes_that_there_are_none_of_are_refused(option, zipf_splits):
    tree = hstree.build("flat", zipf_splits.train)
    with pytest.raises(InputError, match="no node of this tree is a lower one"):
        new_model(layer_spec(tree, "levels", **option), **OPTIONS).fit(zipf_splits.train)
    spec = layer_spec(tree, "levels", upper_rate=0.5, upper_decay=2.0)
    assert new_model(spec, **OPTIONS).fit(zipf_splits.train).layer.lower is None


@pytest.mark.parametrize("option", [{"own_positions": True}, {"upper_rate": 2.0}])
def test_what_language_models_alone_follow_is_refused_by_others(option, zipf_splits):
    tree = hstree.build("huffman", zipf_splits.train)
    spec = layer_spec(tree, "levels", **option)
    assert spec.new(2).needs_contexts
    with pytest.raises(InputError, match="words are on both sides"):
        new_model(spec, model="cbow", dim=4, epochs=1).fit(zipf_splits.train)
    short = layer_spec(tree, "levels", lower_dim=2)
    assert not short.new(4).needs_contexts
    new_model(short, model="cbow", dim=4, epochs=1).fit(zipf_splits.train)


def test_a_saved_model_is_cut_where_it_was(zipf_splits, tmp_path):
    """The tree has other counts than the text, and decides."""
    words = zipf_splits.train.vocabulary.words
    tree = hstree.build("balanced", {word: 1 + (i % 7) * 30 for i, word in enumerate(words)})
    spec = layer_spec(tree, "levels", upper_levels=2, rare=0.1)
    model = new_model(spec, **OPTIONS).fit(zipf_splits.train)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.nll(zipf_splits.test), model.nll(zipf_splits.test))


def test_rates_and_decays_are_those_of_the_part(zipf_splits):
    tree = hstree.build("huffman", zipf_splits.train)
    factors = {"upper_rate": 2.0, "lower_rate": 0.5, "upper_decay": 0.0, "lower_decay": 3.0}
    model = new_model(layer_spec(tree, "levels", upper_levels=2, **factors), weight_decay=0.25)
    output = LogBilinearTrainer(model).output
    found = {name: (o.rate, o.weight_decay) for name, o in output.items()}
    assert found == {
        "upper_weight": (2.0, 0.0),
        "upper_bias": (2.0, 0.0),
        "lower_weight": (0.5, 0.75),
        "lower_bias": (0.5, 0.0),
    }


OPTIONS = {"dim": 8, "epochs": 3, "batch_size": 64, "context": 3}


def test_a_model_trains_as_on_the_tree(zipf_splits):
    tree = hstree.build("huffman", zipf_splits.train)
    plain, levels = (
        new_model(spec, **OPTIONS).fit(zipf_splits.train).perplexity(zipf_splits.test)
        for spec in (tree, layer_spec(tree, "levels", upper_levels=2))
    )
    assert levels == pytest.approx(plain, rel=1e-3)


def test_each_part_has_position_matrices_of_its_own(zipf_splits, tmp_path):
    train, valid, test = zipf_splits.train, zipf_splits.valid, zipf_splits.test
    tree = hstree.build("huffman", train)
    spec = layer_spec(tree, "levels", own_positions=True)
    model = new_model(spec, **OPTIONS).fit(train, valid)
    of_upper, of_lower = model.context_model.positions
    assert of_upper.shape == of_lower.shape == (3, 8)
    assert not np.allclose(of_upper, of_lower, atol=0.01)
    assert model.hidden([["w1"]]).shape == (1, 16)
    assert model.shapes() == {n: a.shape for n, a in model.parameters().items()}
    assert model.perplexity(test) < 0.99 * new_model(spec, dim=8, epochs=0).fit(train).perplexity(
        test
    )
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.nll(test), model.nll(test))
    assert model.mean_predicted_vectors(train).vectors.shape == (tree.n_labels, 16)

"""Words that change their places in training: what moves, what is kept, what is gained."""

from itertools import combinations, pairwise

import numpy as np
import pytest

import hstree
from hstree.builders.learned import Places, learned
from hstree.errors import FileFormatError, InputError
from hstree.layers.reassigned import PLACE, ReassignedSoftmax
from hstree.layers.registry import layer_spec
from hstree.models import load, new_model
from hstree.tree import Tree
from tests.texts import corpus_of

DIM = 3


def trained_on(layer, n=200, seed=0):
    """Draw weights, and hidden vectors of words that the layer has seen in training."""
    rng = np.random.default_rng(seed)
    for parameter in layer.parameters().values():
        parameter[...] = rng.standard_normal(parameter.shape)
    hidden, targets = rng.standard_normal((n, DIM)), rng.integers(0, layer.n_labels, n)
    layer.loss_in_context(hidden, targets, targets[:, None], rng)
    return hidden, targets


def test_the_root_divides_words_as_no_other_division_does_better():
    """Against all 70 divisions of 8 words in two halves."""
    counts = np.array([9, 1, 4, 30, 2, 6, 3, 12])
    tree = hstree.build("balanced", {f"w{i}": int(c) for i, c in enumerate(counts)})
    layer = ReassignedSoftmax(tree, DIM, dtype=np.float64)
    hidden, targets = trained_on(layer, seed=1)
    mean = np.array([hidden[targets == i].mean(axis=0) for i in range(8)])
    gain = tree.counts * (mean @ layer.weight[0] + layer.bias[0])
    best = max(combinations(range(8), 4), key=lambda first: gain[list(first)].sum())
    layer.assign()
    assert below(layer.tree, 0) == set(best) != below(tree, 0)


def below(tree, branch):
    """Return the labels below a branch of the root."""
    of_root = np.zeros(len(tree.child), np.int64)
    of_root[branch] = 1
    tree.sum_down(of_root)
    return {int(~tree.child[edge]) for edge in np.flatnonzero((tree.child < 0) & (of_root > 0))}


def test_words_go_where_the_builder_puts_them(zipf_splits, tmp_path):
    """`learned` gets the model and its mean predicted vectors from files.

    Earlier assignments, which halve sums and numbers, change no mean.
    """
    text = zipf_splits.train
    tree = hstree.build("balanced", text)
    model = new_model(tree, dim=8, epochs=1).fit(text)
    model.save(tmp_path / "model")
    vectors = model.mean_predicted_vectors(text)
    expected = learned(vectors, model=tmp_path / "model")
    layer = layer_spec(tree, "reassigned").new(8, counts=vectors.counts)
    layer.weight[...], layer.bias[...] = model.layer.weight, model.layer.bias
    occurring = np.flatnonzero(vectors.counts)
    for some in np.array_split(occurring, 3):
        hidden = np.repeat(vectors.vectors[some], 2, axis=0)
        layer.loss_in_context(hidden, np.repeat(some, 2), np.repeat(some, 2)[:, None], None)
    layer._sums /= 8
    layer._n_summed /= 8
    layer.assign()
    assert (layer.tree.child == expected.child).mean() > 0.99
    assert (layer.tree.child != tree.child).any()


def test_a_word_that_did_not_occur_has_the_mean_of_all(monkeypatch):
    tree = hstree.build("balanced", {f"w{i}": 1 for i in range(8)})
    layer = ReassignedSoftmax(tree, DIM, dtype=np.float64)
    hidden, targets = trained_on(layer, seed=2)
    layer._sums[3], layer._n_summed[3] = 0, 0
    seen = []
    monkeypatch.setattr(Places, "assigned", lambda self: seen.append(self.X) or tree.child)
    for _ in range(3):
        layer.assign()
    others = targets != 3
    for X in seen:
        np.testing.assert_allclose(X[3], hidden[others].mean(axis=0))
        np.testing.assert_allclose(X[5], hidden[targets == 5].mean(axis=0))
    np.testing.assert_allclose(layer._n_summed, np.bincount(targets[others], minlength=8) / 8)


def test_the_row_of_a_word_in_a_wide_node_moves_with_it():
    tree = Tree.from_children(list("abcdefgh"), [[1, 2, ~6, ~7], [~0, ~1, ~2], [~3, ~4, ~5]])
    layer = ReassignedSoftmax(tree, DIM, dtype=np.float64)
    hidden, _ = trained_on(layer)

    def row_of(label):
        edge = int(np.flatnonzero(layer.tree.child == ~label)[0])
        row = layer.tree.edge_row[edge] + layer.tree.edge_branch[edge]
        return [*layer.weight[row], layer.bias[row]]

    before = [row_of(label) for label in range(8)]
    # the second class is what the words of the first predict, and the other way round
    first, second = layer.weight[0].copy(), layer.weight[1].copy()
    layer._n_summed[:] = 1
    layer._sums[:3], layer._sums[3:6] = second - first, first - second
    layer.assign()
    assert below(layer.tree, 0) == {3, 4, 5}
    assert [row_of(label) for label in range(8)] == before
    assert np.exp(layer.log_prob(hidden)).sum(axis=1) == pytest.approx(np.ones(len(hidden)))


def test_words_are_assigned_so_often_and_no_more():
    tree = hstree.build("balanced", {f"w{i}": i + 1 for i in range(16)})
    layer = ReassignedSoftmax(tree, DIM, every=2, times=3)
    rng, places = np.random.default_rng(0), []
    for _ in range(12):
        layer.weight[...] = rng.standard_normal(layer.weight.shape)
        hidden = rng.standard_normal((40, DIM)).astype(np.float32)
        targets = rng.integers(0, 16, 40)
        layer.loss_in_context(hidden, targets, targets[:, None], rng)
        places.append(layer.place.copy())
    changed = [not np.array_equal(a, b) for a, b in pairwise(places)]
    assert np.flatnonzero(changed).tolist() == [1, 3, 5]  # before the third, fifth, seventh batch
    assert sorted(layer.place) == list(range(16))
    assert layer._n_summed.sum() == pytest.approx(40 * 2 * (1 / 8 + 1 / 4 + 1 / 2))


@pytest.fixture(scope="module")
def two_kinds(tmp_path_factory):
    """Return a text in which words of one kind follow those of the other."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 16, (500, 20)) + 16 * (np.arange(20) % 2)
    lines = [" ".join(f"w{word}" for word in line) for line in words]
    return corpus_of(tmp_path_factory.mktemp("text"), lines)


OPTIONS = {"dim": 6, "context": 2, "epochs": 6, "batch_size": 32, "dropout": 0.0}


def test_planted_kinds_are_found_in_training(two_kinds):
    """From a random tree: most words of a kind are on one side of the root afterwards."""
    tree = hstree.build("random", two_kinds.counted_vocabulary(), random_state=3)
    model = new_model(layer_spec(tree, "reassigned", every=50, times=20), **OPTIONS).fit(two_kinds)

    def purity(tree):
        kinds = [
            int(tree.labels[i].removeprefix("w")) // 16
            for i in below(tree, 0)
            if tree.labels[i].startswith("w")
        ]
        return max(kinds.count(0), kinds.count(1)) / len(kinds)

    assert purity(tree) < 0.7
    assert purity(model.layer.tree) > 0.9


def test_the_best_weights_have_their_places(two_kinds, tmp_path):
    """Words move in every epoch, so that the best epoch's places are needed for its perplexity."""
    tree = hstree.build("random", two_kinds.counted_vocabulary(), random_state=3)
    spec = layer_spec(tree, "reassigned", every=150, times=1000)
    model = new_model(spec, **OPTIONS | {"learning_rate": 1.0}).fit(two_kinds, two_kinds)
    valid = [epoch.valid for epoch in model.history_.epochs]
    assert min(valid) < valid[-1]
    assert model.perplexity(two_kinds) == pytest.approx(min(valid), rel=1e-6)
    assert not np.array_equal(model.layer.place, np.arange(tree.n_labels))
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.nll(two_kinds), model.nll(two_kinds))
    assert again.layer.tree == model.layer.tree
    assert again.predict([["w1", "w20"]], k=3) == model.predict([["w1", "w20"]], k=3)


@pytest.mark.parametrize(
    "damage",
    [
        lambda t: t.clear(),
        lambda t: t[PLACE].__setitem__(0, 1),
        lambda t: t.update({PLACE: t[PLACE][:-1]}),
        lambda t: t.update({PLACE: t[PLACE].astype(np.int32)}),
    ],
)
def test_damaged_places_are_refused(damage):
    layer = ReassignedSoftmax(hstree.build("balanced", {"a": 1, "b": 2, "c": 3}), DIM)
    tables = {name: array.copy() for name, array in layer.tables().items()}
    layer.restore(tables)
    damage(tables)
    with pytest.raises(FileFormatError, match="not an order of its 3 labels"):
        layer.restore(tables)


def test_refusals(two_kinds):
    double = Tree.from_children(list("ab"), [[~0, 1], [~0, ~1]])
    with pytest.raises(InputError, match="one code a label, and labels of this tree have up to 2"):
        ReassignedSoftmax(double, DIM)
    chain = Tree.from_children(list("abcd"), [[~0, 1], [~1, 2], [~2, ~3]])
    with pytest.raises(InputError, match="have from 1 to 3 decisions; take balanced"):
        ReassignedSoftmax(chain, DIM)
    spec = layer_spec(hstree.build("balanced", two_kinds), "reassigned")
    assert spec.new(2).needs_contexts
    with pytest.raises(InputError, match="assigned anew need the words before each target"):
        new_model(spec, model="skipgram", dim=4, epochs=1).fit(two_kinds)

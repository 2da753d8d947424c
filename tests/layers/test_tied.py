"""Tied vectors: which rows they are, that they stay equal, and what is counted."""

import numpy as np
import pytest

import hstree
from hstree.errors import FileFormatError, InputError
from hstree.experiments.rows import parameters_of
from hstree.layers.registry import layer_spec
from hstree.layers.tied import TiedSoftmax
from hstree.models import load, new_model
from hstree.training.adagrad import RowAdagrad, TiedAdagrad
from hstree.tree import Tree

OPTIONS = {"dim": 8, "epochs": 3, "batch_size": 64, "context": 3, "full": True}
TREE = Tree.from_children(list("abcdefg"), [[~0, 1, 2], [~1, ~2], [~3, ~4, ~5, ~6]])


def test_tied_rows_are_those_of_words_in_wide_nodes():
    ((name, (rows, labels)),) = TiedSoftmax(TREE, 4).tied_rows().items()
    assert name == "node_weight"
    assert (rows.tolist(), labels.tolist()) == ([0, 4, 5, 6, 7], [0, 3, 4, 5, 6])
    binary = TiedSoftmax(Tree.from_children(list("ab"), [[~0, ~1]]), 4)
    assert binary.tied_rows()["node_weight"][0].size == 0


def test_a_step_moves_the_input_vectors_and_their_copies():
    rng = np.random.default_rng(0)
    embedding = rng.standard_normal((7, 4)).astype(np.float32)
    weight = np.zeros((8, 4), np.float32)
    rows, labels = TiedSoftmax(TREE, 4).tied_rows()["node_weight"]
    own = RowAdagrad(weight, 0.0, 0.5)
    optimiser = TiedAdagrad(own, embedding, rows, labels)
    np.testing.assert_array_equal(weight[rows], embedding[labels])
    embedding[[1, 3]] += 1  # as a step on the inputs does; b has no row
    optimiser.copy(np.array([1, 3]))
    np.testing.assert_array_equal(weight[rows], embedding[labels])
    gradient = rng.standard_normal((4, 4)).astype(np.float32)
    # rows of a, of d and f, and one of an inner node, each as Adagrad of that rate moves it
    words, alone = RowAdagrad(embedding.copy(), 0.0, 0.5), RowAdagrad(weight.copy(), 0.0, 0.5)
    words.step(np.array([0, 3, 5]), gradient[[0, 2, 3]], 0.1)
    alone.step(np.array([3]), gradient[[1]], 0.1)
    optimiser.step(np.array([0, 3, 4, 6]), gradient, 0.1)
    np.testing.assert_array_equal(embedding, words.parameter)
    np.testing.assert_array_equal(weight[rows], embedding[labels])
    np.testing.assert_array_equal(weight[3], alone.parameter[3])
    optimiser.step(slice(0, 1), gradient[:1], 0.1)
    words.step(np.array([0]), gradient[:1], 0.1)
    np.testing.assert_array_equal(embedding, words.parameter)


@pytest.mark.parametrize("kind", ["flat", "classes"])
def test_a_trained_model_has_tied_vectors(kind, zipf_splits, tmp_path):
    train, valid, test = zipf_splits.train, zipf_splits.valid, zipf_splits.test
    tree = hstree.build(kind, train)
    spec = layer_spec(tree, "tied")
    model = new_model(spec, **OPTIONS).fit(train, valid)
    rows, labels = model.layer.tied_rows()["node_weight"]
    assert len(rows) > 50
    np.testing.assert_array_equal(model.layer.weight[rows], model.context_model.embedding[labels])
    untrained = new_model(spec, dim=8, epochs=0).fit(train)
    unigram = new_model(tree, dim=8, epochs=0).fit(train)
    assert untrained.perplexity(test) == pytest.approx(unigram.perplexity(test), rel=1e-6)
    assert model.perplexity(test) < 0.99 * untrained.perplexity(test)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.nll(test), model.nll(test))
    plain = new_model(tree, **OPTIONS)
    plain.save(tmp_path / "plain")
    fewer = parameters_of(tmp_path / "plain") - parameters_of(tmp_path / "model")
    assert fewer == plain.n_parameters - model.n_parameters == 8 * len(rows)
    assert hstree.Ensemble([model, again]).n_parameters == 2 * parameters_of(tmp_path / "model")


def test_refusals(zipf_splits):
    tree = hstree.build("flat", zipf_splits.train)
    spec = layer_spec(tree, "tied")
    assert spec.new(4).needs_contexts
    with pytest.raises(InputError, match="tied vectors are those of the words before each target"):
        new_model(spec, model="cbow", dim=4, epochs=1).fit(zipf_splits.train)
    other = np.arange(tree.n_labels)
    spec.new(4).restore({"tied_rows": other})
    for damaged in (other[::-1], other[:3]):
        with pytest.raises(FileFormatError, match="not those of its tree"):
            spec.new(4).restore({"tied_rows": damaged})
    double = Tree.from_children(list("ab"), [[~0, 1], [~0, ~1]])
    with pytest.raises(InputError, match="the layer tied takes trees with one code a label"):
        TiedSoftmax(double, 4)

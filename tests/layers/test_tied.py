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
TREE = Tree.from_children(list("abcdef"), [[~0, 1, 2], [~1, ~2], [~3, ~0, ~4, ~5]])


def test_tied_rows_are_those_of_words_in_wide_nodes():
    ((name, (rows, labels)),) = TiedSoftmax(TREE, 4).tied_rows().items()
    assert name == "node_weight"
    assert (rows.tolist(), labels.tolist()) == ([0, 4, 5, 6, 7], [0, 3, 0, 4, 5])
    binary = TiedSoftmax(Tree.from_children(list("ab"), [[~0, ~1]]), 4)
    assert binary.tied_rows()["node_weight"][0].size == 0


def test_a_step_moves_the_input_vector_and_all_its_copies():
    rng = np.random.default_rng(0)
    embedding = rng.standard_normal((6, 4)).astype(np.float32)
    weight = np.zeros((8, 4), np.float32)
    rows, labels = TiedSoftmax(TREE, 4).tied_rows()["node_weight"]
    optimiser = TiedAdagrad(RowAdagrad(weight), embedding, rows, labels)
    np.testing.assert_array_equal(weight[rows], embedding[labels])
    embedding[1] += 1  # as a step on the inputs does; b has no row
    embedding[3] += 1
    gradient = rng.standard_normal((4, 4)).astype(np.float32)
    before = embedding.copy()
    optimiser.step(np.array([0, 3, 5, 6]), gradient, 0.1)
    np.testing.assert_array_equal(weight[rows], embedding[labels])
    # both rows of a, whose gradients are summed, row 6 of e, and no other word
    expected = RowAdagrad(before)
    expected.step(np.array([0, 4]), np.array([gradient[0] + gradient[2], gradient[3]]), 0.1)
    np.testing.assert_allclose(embedding, before, rtol=1e-6)
    alone = RowAdagrad(np.zeros((8, 4), np.float32))
    alone.step(np.array([3]), gradient[1:2], 0.1)
    np.testing.assert_array_equal(weight[3], alone.parameter[3])
    slices = TiedAdagrad(RowAdagrad(weight.copy()), embedding.copy(), rows, labels)
    slices.step(slice(0, 3), gradient[:3], 0.1)
    assert np.abs(slices.inputs.parameter[0] - embedding[0]).max() > 0.01


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
    assert fewer == 8 * len(rows)


def test_refusals(zipf_splits):
    tree = hstree.build("flat", zipf_splits.train)
    spec = layer_spec(tree, "tied")
    with pytest.raises(InputError, match="tied in language models alone"):
        new_model(spec, model="cbow", dim=4, epochs=1).fit(zipf_splits.train)
    with pytest.raises(FileFormatError, match="not those of its tree"):
        spec.new(4).restore({"tied_rows": np.arange(3)})

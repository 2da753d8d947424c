"""CBOW and skip-gram: finite differences, windows without words, the start."""

import numpy as np
import pytest

from hstree.models.cbow import CBOW
from hstree.models.skipgram import EachOfWindow, SkipGram
from hstree.models.word2vec import WindowModel
from hstree.tree import Tree
from tests.layers.gradients import assert_slopes
from tests.models.trainers import CONTEXTS, TARGETS, TREE, WORDS, drawn_layer

BINARY = Tree.from_children(WORDS, [[1, 2], [~0, ~1], [3, ~5], [~2, 4], [~3, ~4]])
RNG = np.random.default_rng(0)


def random_model(kind, tree):
    """Return a model and a layer with weights drawn in float64."""
    return kind(np.random.default_rng(2).standard_normal((6, 4))), drawn_layer(4, tree)


@pytest.mark.parametrize("tree", [BINARY, TREE])
@pytest.mark.parametrize("kind", [WindowModel, EachOfWindow])
def test_gradients_agree_with_finite_differences(kind, tree):
    model, layer = random_model(kind, tree)
    # The trained loss is the sum over pairs, the reported nll of a target their mean.
    pairs = np.maximum((CONTEXTS >= 0).sum(axis=1), 1) if kind is EachOfWindow else np.ones(4)

    def total():
        return (model.nll(layer, CONTEXTS, TARGETS) * pairs).sum()

    loss = model.loss(layer, CONTEXTS, TARGETS, RNG)
    np.testing.assert_allclose(loss.nll, model.nll(layer, CONTEXTS, TARGETS), rtol=1e-6)
    arrays = {"embedding": model.embedding, **layer.parameters()}
    slopes = {name: np.zeros_like(array) for name, array in arrays.items()}
    for g in (loss.embedding, *loss.output):
        slopes[g.name][g.rows] += g.values
    assert_slopes(arrays, slopes, total, rel=1e-6)


def test_a_window_without_words_leaves_the_biases_alone_to_predict():
    for kind in (WindowModel, EachOfWindow):
        model, layer = random_model(kind, BINARY)
        expected = layer.nll(np.zeros((1, 4)), np.array([5]))
        np.testing.assert_allclose(model.nll(layer, CONTEXTS, TARGETS)[3:], expected)


def test_the_figures_of_a_loss_say_how_much_it_is_made_of():
    model, layer = random_model(WindowModel, BINARY)
    loss = model.loss(layer, CONTEXTS, TARGETS, RNG)
    assert (loss.items, loss.fractions) == (4, pytest.approx(3 / 9 + 1 + 4 / 16))
    assert loss.squares == pytest.approx((model.hidden(CONTEXTS) ** 2).sum())
    loss = random_model(EachOfWindow, BINARY)[0].loss(layer, CONTEXTS, TARGETS, RNG)
    assert (loss.items, loss.fractions) == (9, 8)


def test_vectors_are_drawn_as_by_word2vec_and_alike_for_every_order_of_words():
    trees = (Tree.from_children(words, [range(-6, 0)]) for words in (WORDS, WORDS[::-1]))
    one, two = (k(t, dim=50).context_model for k, t in zip((CBOW, SkipGram), trees, strict=True))
    np.testing.assert_array_equal(one.embedding, two.embedding[::-1])
    assert np.abs(one.embedding).max() <= 0.5 / 50
    assert one.embedding.std() == pytest.approx(1 / 50 / np.sqrt(12), rel=0.1)

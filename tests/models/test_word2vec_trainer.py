"""word2vec's trainer: the gradients of a step, what damps them, the rate that falls."""

import numpy as np
import pytest

from hstree.models.cbow import CBOW
from hstree.models.skipgram import SkipGram
from hstree.models.word2vec import Word2VecTrainer
from hstree.tree.weight_rows import row_curvature
from tests.models.trainers import CONTEXTS, TARGETS, TREE, Noted, drawn_layer

COUNTS = np.array([5.0, 4, 3, 2.5, 2, 1])


class Text:
    """Windows, as a trainer uses them before it trains."""

    training_counts = COUNTS


@pytest.fixture(autouse=True)
def optimisers(monkeypatch):
    """Return the optimisers of the last trainer: of words, node vectors, biases."""
    monkeypatch.setattr(Noted, "made", [])
    monkeypatch.setattr("hstree.models.word2vec.DampedSGD", Noted)
    return Noted.made


def trainer(kind=CBOW, epochs=4):
    rng = np.random.default_rng(3)
    model = kind(TREE, dim=5, epochs=epochs, batch_size=10, learning_rate=0.5, sample=1e-3)
    model.context_model.embedding = rng.standard_normal((TREE.n_labels, 5))
    model.layer = drawn_layer(5)
    return Word2VecTrainer(model, Text())


@pytest.mark.parametrize("kind", [CBOW, SkipGram])
def test_steps_are_damped_by_the_curvature_of_their_rows(optimisers, kind):
    """For a row, that of its node; for a word, that along the hidden vectors that it is in."""
    training = trainer(kind)
    rows = row_curvature(TREE, COUNTS)
    words, weights, biases = optimisers
    np.testing.assert_allclose(words.curvature, COUNTS / COUNTS.sum())
    np.testing.assert_array_equal(weights.curvature, rows)
    np.testing.assert_array_equal(biases.curvature, rows)
    loss = training.model.loss(training.layer, CONTEXTS, TARGETS, np.random.default_rng(0))
    training.step(CONTEXTS, TARGETS, 0.25)
    touched = np.concatenate([g.rows for g in loss.output if g.name == "node_weight"])
    along = sum(rows[r] * training.layer.weight[r] @ training.layer.weight[r] for r in touched)
    n_pairs = 9 if kind is SkipGram else 4
    scales = loss.fractions * along, loss.squares, n_pairs
    for optimiser, scale in zip(optimisers, scales, strict=True):
        for _, _, *more in optimiser.steps:
            assert more == [0.25, pytest.approx(scale, rel=1e-6)]


def test_the_rate_falls_linearly_to_a_ten_thousandth():
    training = trainer(epochs=4)
    rates = [training.learning_rate(done) for done in (0, 1, 2.5, 3.9999, 4)]
    assert rates == pytest.approx([0.5, 0.375, 0.1875, 0.5e-4, 0.5e-4])

"""The log-bilinear model: its definition and its start; its gradients are the trainer's to test."""

import numpy as np
import pytest

import hstree
from hstree.models.lbl import LanguageModel, LogBilinear, window_sum, window_sum_backward


def random_model(full):
    rng = np.random.default_rng(1)
    position = rng.standard_normal((3, 4, 4) if full else (3, 4))
    return LogBilinear(rng.standard_normal((7, 4)), position), rng


def untrained(words, **options):
    tree = hstree.build("balanced", dict.fromkeys(words, 1))
    return LanguageModel(tree, **options).context_model


@pytest.mark.parametrize("full", [False, True])
def test_the_hidden_vector_is_the_sum_over_positions(full):
    model, rng = random_model(full)
    contexts = rng.integers(0, 7, (5, 3))
    matrices = model.position if full else [np.diag(p) for p in model.position]
    for row, ids in zip(model.hidden(contexts), contexts, strict=True):
        expected = sum(c @ model.embedding[w] for c, w in zip(matrices, ids, strict=True))
        np.testing.assert_allclose(row, expected, rtol=1e-12)


def test_vectors_are_drawn_small_and_positions_start_as_the_sum_of_words():
    model = untrained([str(i) for i in range(1000)], dim=20, context=3)
    assert model.embedding.std() == pytest.approx(0.1, rel=0.02)
    assert model.embedding.mean() == pytest.approx(0, abs=0.005)
    np.testing.assert_array_equal(model.position, np.ones((3, 20)))
    full = untrained(["a", "b"], dim=4, context=3, full=True)
    np.testing.assert_array_equal(full.position, [np.eye(4)] * 3)


@pytest.mark.parametrize("full", [False, True])
def test_gradients_are_of_the_words_that_occur_in_the_precision_of_the_parameters(full):
    model = untrained("abc", dim=4, context=2, full=full)
    contexts = np.array([[2, 0], [2, 2]])
    arrays = model.embedding, model.position, contexts
    hidden = window_sum(*arrays)
    words, by_word, by_position = window_sum_backward(*arrays, hidden)
    assert (by_word.dtype, by_position.dtype) == (np.float32, np.float32)
    assert (by_word.shape, by_position.shape) == ((2, 4), model.position.shape)
    assert sorted(words.tolist()) == [0, 2]  # each once


def test_a_word_starts_alike_whatever_the_order_of_the_labels():
    one, two = (untrained(words, dim=4).embedding for words in ("bac", "cab"))
    np.testing.assert_array_equal(one, two[::-1])

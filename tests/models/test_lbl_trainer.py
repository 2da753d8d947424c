"""The log-bilinear model's trainer: dropout, gradients of a step, decay's clock, the schedule."""

import numpy as np
import pytest

from hstree.kernels import numpy_only
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.models.lbl import PATIENCE, LanguageModel
from tests.layers.gradients import assert_slopes
from tests.models.trainers import TREE, EachOnce, Noted, drawn_layer

DIM = 4


@pytest.fixture(autouse=True)
def optimisers(monkeypatch):
    """Return the optimisers of the last trainer: of words, positions, node vectors, biases."""
    monkeypatch.setattr(Noted, "made", [])
    monkeypatch.setattr("hstree.models.lbl.RowAdagrad", Noted)
    return Noted.made


def trainer(full=False, **options):
    """Return a trainer of a model with weights drawn in float64, and a batch."""
    rng = np.random.default_rng(3)
    model = LanguageModel(TREE, dim=DIM, context=3, full=full, **options)
    context_model = model.context_model
    context_model.embedding = rng.standard_normal(context_model.embedding.shape)
    context_model.position = rng.standard_normal(context_model.position.shape)
    model.layer = drawn_layer(DIM)
    training = model.trainer(EachOnce())
    return training, rng.integers(0, 6, (9, 3)), rng.integers(0, 6, 9)


@pytest.mark.slow
def test_dropout_keeps_the_expected_hidden_vector(monkeypatch):
    training, contexts, targets = trainer(dropout=0.35)
    whole = training.model.hidden(contexts)
    loss, seen = training.layer.loss, []

    def noted(hidden, targets, rng):
        seen.append(hidden)
        return loss(hidden, targets, rng)

    monkeypatch.setattr(training.layer, "loss", noted)
    for _ in range(2000):
        training.step(contexts, targets, 0.1)
    share = np.array(seen) / whole
    assert np.unique(share.round(5)).tolist() == [0, pytest.approx(1 / 0.65, abs=1e-5)]
    # The mean of 2,000 draws spreads by sqrt(0.35 / 0.65 / 2000) = 0.016.
    np.testing.assert_allclose(share.mean(axis=0), 1, atol=0.09)
    assert share.mean() == pytest.approx(1, abs=0.015)


def test_no_dropout_is_the_model_itself():
    training, contexts, targets = trainer(dropout=0)
    expected = training.model.nll(training.layer, contexts, targets).sum()
    assert training.step(contexts, targets, 0.1) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dropout", [0, 0.35])
def test_the_gradients_of_a_step_agree_with_finite_differences(optimisers, full, dropout):
    training, contexts, targets = trainer(full, dropout=dropout)
    model, layer = training.model, training.layer
    parameters = dict(enumerate([model.embedding, model.position, layer.weight, layer.bias]))
    assert all(o.parameter is parameters[i] for i, o in enumerate(optimisers))

    def loss():
        training.rng = np.random.default_rng(0)  # the same elements left out
        return training.step(contexts, targets, 0.1)

    loss()
    assert_slopes(parameters, [optimiser.gradient for optimiser in optimisers], loss, rel=1e-5)


def test_vectors_decay_by_the_tokens_so_far_and_all_rates_are_that_of_the_step(optimisers):
    training, contexts, targets = trainer(weight_decay=0.125)
    options = [optimiser.options for optimiser in optimisers]
    assert options == [(0.125,), (), (0.125,), (0.0,)]
    training.step(contexts, targets, 0.5)
    training.step(contexts[:4], targets[:4], 0.25)
    for optimiser in optimisers:
        assert {tuple(more) for _, _, *more in optimiser.steps} == {(0.5, 9), (0.25, 13)}


@pytest.mark.parametrize("n", [6, 60])
def test_the_decay_of_a_whole_text_is_the_same_whatever_its_length(optimisers, n):
    with numpy_only():
        LanguageModel(TREE, dim=DIM).trainer(EachOnce(n))
    assert [o.options for o in optimisers] == [(14 / n,), (), (14 / n,), (0.0,)]


def test_an_array_has_the_rate_and_the_first_sum_that_its_layer_asks_for(optimisers, monkeypatch):
    asked = {"node_bias": {"rate": 0.25}, "node_weight": {"initial_accumulator": 3}}
    monkeypatch.setattr(HierarchicalSoftmax, "adagrad", asked)
    trainer()
    assert [optimiser.named for optimiser in optimisers] == [{}, {}, *reversed(asked.values())]


def test_the_rate_halves_at_every_stall_and_training_stops_without_a_new_best():
    training = trainer(learning_rate=0.8)[0]
    best, rates = np.inf, []
    # A fall of less than 0.2% is a stall, yet a new best.
    for valid in (100, 99.9, 99.5, 99.6, 99.6, 99.4, 99.41, 99.41):
        assert not training.on_validation(valid, best)
        best = min(best, valid)
        rates.append(training.learning_rate(0.5))
    assert rates == [0.8, 0.4, 0.4, 0.2, 0.1, 0.05, 0.025, 0.0125]
    assert PATIENCE == 3
    assert training.on_validation(99.4, best)


def test_training_stops_when_the_falls_are_too_small_to_matter():
    training = trainer()[0]
    best, falls = 100.0, (0.01, 0.0004, 0.0004, 0.001, 0.0004, 0.0001, 0.0004)
    stopped = []
    for fall in falls:
        valid = best * (1 - fall)
        stopped.append(training.on_validation(valid, best))
        best = valid
    assert stopped == [False] * 6 + [True]

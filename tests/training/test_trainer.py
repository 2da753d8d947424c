"""The loop over epochs: rates and values of every batch, and which weights are kept."""

import math
import time
import warnings
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

from hstree import progress
from hstree.errors import TrainingError
from hstree.layers import TrainingHooks
from hstree.training.trainer import Trainer

SIZES = [3, 4, 1]


class Text:
    """Windows, as a trainer uses them: numbers of tokens and targets to expect, and batches."""

    def __init__(self, n_tokens):
        self.training_counts = np.array([n_tokens])
        self.n_tokens = n_tokens

    def __len__(self):
        return self.n_tokens

    def training_batches(self, size, rng):
        for n in SIZES:
            yield np.zeros((n, 1), int), np.zeros(n, int), np.zeros(n, bool)


class Layer(TrainingHooks, SimpleNamespace):
    """A layer with the hooks of any."""


class Counting(Trainer):
    """Trainer that adds one to every weight in every batch, at a loss of two nats per token."""

    def __init__(self, epochs, interrupt_at=None, seconds=None):
        self.weights = [np.zeros(1) for _ in range(4)]
        words, positions, weight, bias = self.weights
        model = SimpleNamespace(parameters=lambda: {"embedding": words, "position": positions})
        layer = Layer(parameters=lambda: {"weight": weight, "bias": bias}, is_likelihood=True)
        options = {"epochs": epochs, "seconds": seconds, "batch_size": 4, "random_state": 0}
        super().__init__(
            SimpleNamespace(context_model=model, layer=layer, learning_rate=1.0, **options)
        )
        self.rates, self.interrupt_at = [], interrupt_at

    def step(self, contexts, targets, learning_rate, prepared=None):
        if len(self.rates) == self.interrupt_at:
            raise KeyboardInterrupt
        self.rates.append(learning_rate)
        for weight in self.weights:
            weight += 1
        return 2.0 * len(targets)

    def learning_rate(self, done):
        return done


class Stopping(Counting):
    """One that stops after the validation that follows its best."""

    def on_validation(self, valid, best):
        return valid > best


@pytest.fixture
def validations(monkeypatch):
    """Return the perplexities that the validations find, one after the other."""
    found = [9.0, 5.0, 7.0, 8.0]
    left = iter(found)
    monkeypatch.setattr(
        "hstree.training.trainer.score", lambda *arguments: SimpleNamespace(perplexity=next(left))
    )
    return found


def test_the_rate_follows_the_tokens_and_the_perplexity_is_theirs():
    loop = Counting(2)
    start = time.perf_counter()
    history = loop.fit(Text(8))
    took = time.perf_counter() - start
    assert loop.rates == [0, 3 / 8, 7 / 8, 1, 1 + 3 / 8, 1 + 7 / 8]
    assert [epoch.epoch for epoch in history.epochs] == [1, 2]
    assert [epoch.learning_rate for epoch in history.epochs] == [0, 1]
    assert [epoch.train for epoch in history.epochs] == pytest.approx([math.exp(2)] * 2)
    assert [epoch.valid for epoch in history.epochs] == [None, None]
    for epoch in history.epochs:
        assert epoch.tokens_per_second == pytest.approx(8 / epoch.seconds)
        assert 0 < epoch.seconds <= took
    assert loop.weights == [6] * 4  # without a validation, the last


def test_more_tokens_than_expected_do_not_run_the_rate_past_the_epoch():
    loop = Counting(1)
    loop.fit(Text(5))
    assert loop.rates == [0, 3 / 5, 1]


def test_the_best_weights_are_left_in_place(validations):
    loop = Counting(4)
    history = loop.fit(Text(8), Text(1))
    assert [epoch.valid for epoch in history.epochs] == validations
    assert loop.weights == [6] * 4  # those after two epochs of three batches


def test_a_training_stops_where_its_trainer_says(validations):
    loop = Stopping(4)
    assert [epoch.valid for epoch in loop.fit(Text(8), Text(1)).epochs] == validations[:3]
    assert loop.weights == [6] * 4


@pytest.mark.parametrize(("batch", "left"), [(2, 2), (4, 3), (11, 6)])
@pytest.mark.usefixtures("validations")
def test_an_interrupt_leaves_the_best_so_far_or_what_there_is(batch, left):
    loop = Counting(4, interrupt_at=batch)
    assert loop.fit(Text(8), Text(1)).interrupted
    assert loop.weights == [left] * 4


def test_an_interrupted_epoch_counts_in_the_seconds():
    history = Counting(4, interrupt_at=2).fit(Text(8))
    assert history.epochs == []
    assert history.seconds > 0


class Diverging(Counting):
    """One whose numbers overflow."""

    def step(self, contexts, targets, learning_rate, prepared=None):
        huge = np.full(1, 1e308) * 10
        return float(((huge - huge) / np.zeros(1) + huge / np.zeros(1))[0])


def test_what_diverges_is_an_error_and_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(
            TrainingError, match="perplexity of epoch 1 is nan; lower the learning rate"
        ):
            Diverging(2).fit(Text(8))


class Clocked(Counting):
    """One whose batches take a second each, by a clock that only they move."""

    def __init__(self, epochs, seconds, monkeypatch):
        super().__init__(epochs, seconds=seconds)
        self.now = 100.0
        monkeypatch.setattr("hstree.training.trainer.time.perf_counter", lambda: self.now)

    def step(self, contexts, targets, learning_rate, prepared=None):
        self.now += 1
        return super().step(contexts, targets, learning_rate)

    def on_validation(self, valid, best):
        self.now += 1000  # validations are not counted
        return False


@pytest.mark.usefixtures("validations")
def test_a_budget_of_seconds_ends_inside_an_epoch(monkeypatch):
    loop = Clocked(100, 4.5, monkeypatch)
    history = loop.fit(Text(8), Text(1))
    assert (history.out_of_time, history.interrupted, history.converged) == (True, False, False)
    first, second = history.epochs
    # Batches of 3, 4 and 1 tokens: the fifth ends after 5 seconds and 7 tokens of an epoch of 8.
    assert (first.seconds, first.share, first.valid) == (3, 1, 9)
    assert (second.seconds, second.share, second.valid) == (2, 7 / 8, 5)
    assert (first.tokens_per_second, second.tokens_per_second) == (8 / 3, 7 / 2)
    assert loop.weights == [5] * 4
    # The schedule is as far as the budget is.
    assert loop.rates == pytest.approx([100 * s / 4.5 for s in range(5)])


def test_the_time_left_is_what_preparation_leaves_of_the_budget(monkeypatch):
    loop = Clocked(2, 8.0, monkeypatch)
    loop.preparation = 2.0
    with progress.shown_by(display := MagicMock()):
        loop.fit(Text(8))
    assert [call.args[1] for call in display.report.call_args_list] == [3, 0]


@pytest.mark.usefixtures("validations")
def test_the_other_limits_end_a_training_within_its_budget(monkeypatch):
    history = Clocked(1, 4.5, monkeypatch).fit(Text(8), Text(1))
    assert (len(history.epochs), history.out_of_time, history.epochs[0].share) == (1, False, 1)


def test_one_batch_is_trained_under_any_budget(monkeypatch):
    history = Clocked(5, 1e-9, monkeypatch).fit(Text(8))
    assert (history.out_of_time, history.epochs[0].share) == (True, 3 / 8)


def test_a_training_of_hours_is_told_by_its_speed_after_the_first_seconds(monkeypatch):
    """Batches of 3, 4 and 1 tokens take a second each; the first three are not counted."""
    monkeypatch.setattr("tests.training.test_trainer.SIZES", [3, 4, 1, *[5] * 9])
    with pytest.warns(UserWarning, match=r"1\.7 hours: .* 3,000 .*, at 5 tokens/s"):
        Clocked(10, None, monkeypatch).fit(Text(3000))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Clocked(10, None, monkeypatch).fit(Text(1500))  # less than an hour
        Clocked(10, 3600, monkeypatch).fit(Text(3000))  # a known time


def test_a_loss_that_is_no_likelihood_gives_no_training_perplexity():
    loop = Counting(2)
    loop.layer.is_likelihood = False
    epochs = loop.fit(Text(8)).epochs
    assert [epoch.train for epoch in epochs] == [None, None]

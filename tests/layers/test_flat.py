"""The flat softmax in chunks that threads share, against the same tree decision by decision."""

import numpy as np
import pytest

from hstree._compiled import numpy_alone
from hstree.data.vocabulary import Vocabulary
from hstree.layers import dense
from hstree.layers.flat import FlatSoftmax
from hstree.layers.hierarchical import batch_loss
from tests.layers.gradients import assert_same, drawn
from tests.limits import use_threads

V, DIM, BATCH = 203, 6, 41
WORDS = Vocabulary([f"w{i}" for i in range(V)], np.arange(V, 0, -1))


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Chunks of 10 columns, the last of 3; a batch in three blocks of items."""
    monkeypatch.setattr(dense, "CHUNK", 1)
    monkeypatch.setattr(dense, "LEAST_COLUMNS", 10)
    monkeypatch.setattr(dense, "KEPT_SCORES", 14 * V)


def layer_of(dtype=np.float32):
    return drawn(FlatSoftmax(WORDS, DIM, dtype=dtype), BATCH)


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_losses_and_gradients_are_those_of_a_pass_through_the_tree(dtype, alone):
    layer, hidden, targets = layer_of(dtype)
    with numpy_alone():
        plain, of_plain = batch_loss(layer, hidden, targets)
    with numpy_alone(alone):
        losses, gradients = layer.loss(hidden, targets)
        nll = layer.nll(hidden, targets)
    close = {"rtol": 1e-5, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(losses, plain, **close)
    np.testing.assert_allclose(nll, plain, **close)
    assert_same(layer, gradients, of_plain, **close)


@pytest.mark.parametrize("alone", [True, False])
def test_the_number_of_threads_changes_no_byte(alone, monkeypatch):
    layer, hidden, targets = layer_of()

    def computed(number):
        use_threads(monkeypatch, number)
        with numpy_alone(alone):
            losses, gradients = layer.loss(hidden, targets)
        return [losses, gradients.hidden, *(g.values for g in gradients.parameters)]

    expected = computed(1)
    for threads in (2, 3):
        for one, other in zip(expected, computed(threads), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("shift", [500, 300, -300])
def test_logits_beyond_the_exponentials_of_float32_lose_nothing(shift, alone):
    layer, hidden, targets = layer_of()
    with numpy_alone(alone):
        expected, of_expected = layer.loss(hidden, targets)
        layer.bias += np.float32(shift)
        losses, gradients = layer.loss(hidden, targets)
    # logits of that size are rounded to 3e-5
    np.testing.assert_allclose(losses, expected, atol=1e-4)
    np.testing.assert_allclose(gradients.hidden, of_expected.hidden, atol=1e-3)


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("items", [1, 3])
def test_the_sum_of_many_equal_exponentials_loses_no_digits(items, alone, monkeypatch):
    """Their roundings have one direction, and few items have long chunks."""
    monkeypatch.setattr(dense, "CHUNK", 1 << 18)
    layer = FlatSoftmax(Vocabulary(map(str, range(100_000)), [1] * 100_000), 2)
    with numpy_alone(alone):
        nll = layer.nll(np.zeros((items, 2), np.float32), np.zeros(items, np.int64))
    np.testing.assert_allclose(nll, np.log(100_000), rtol=1e-6)


def test_what_is_not_a_number_is_not_hidden():
    layer, hidden, targets = layer_of()
    hidden[3] = np.nan
    losses, _ = layer.loss(hidden, targets)
    assert np.isnan(losses[3])
    assert np.isfinite(np.delete(losses, 3)).all()

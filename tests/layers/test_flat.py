"""The flat softmax: extreme logits, many labels, and what is not a number."""

import numpy as np
import pytest

from hstree.data.vocabulary import Vocabulary
from hstree.layers.flat import FlatSoftmax
from tests.layers.gradients import drawn

V, DIM, BATCH = 203, 6, 41
WORDS = Vocabulary([f"w{i}" for i in range(V)], np.arange(V, 0, -1))


def drawn_layer():
    return drawn(FlatSoftmax(WORDS, DIM), BATCH)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shift", [500, 300, -300])
def test_logits_beyond_the_exponentials_of_float32_lose_nothing(shift):
    layer, hidden, targets = drawn_layer()
    expected, expected_gradients = layer.loss(hidden, targets)
    layer.bias += np.float32(shift)
    losses, gradients = layer.loss(hidden, targets)
    # logits of that size are rounded to 3e-5
    np.testing.assert_allclose(losses, expected, atol=1e-4)
    np.testing.assert_allclose(gradients.hidden, expected_gradients.hidden, atol=1e-3)


@pytest.mark.parametrize("items", [1, 3])
def test_the_sum_of_many_equal_exponentials_loses_no_digits(items):
    """Their roundings have one direction."""
    layer = FlatSoftmax(Vocabulary(map(str, range(100_000)), [1] * 100_000), 2)
    nll = layer.nll(np.zeros((items, 2), np.float32), np.zeros(items, np.int64))
    np.testing.assert_allclose(nll, np.log(100_000), rtol=1e-6)


def test_what_is_not_a_number_is_not_hidden():
    layer, hidden, targets = drawn_layer()
    hidden[3] = np.nan
    losses, _ = layer.loss(hidden, targets)
    assert np.isnan(losses[3])
    assert np.isfinite(np.delete(losses, 3)).all()

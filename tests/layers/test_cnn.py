"""Output vectors from characters: the convolution, its gradients, and the vectors that are kept."""

import numpy as np
import pytest

from hstree.data.vocabulary import EOS, Vocabulary
from hstree.layers.cnn import BEGIN, END
from hstree.layers.registry import LayerSpec
from tests.layers.gradients import drawn as drawn_layer

#: Shorter and longer than a filter, with common beginnings, repeats and rare characters.
SPELLINGS = [EOS, "a", "é", "banana", "banal", "ban", "naïve", "😀b", "nanananana"]
WORDS = Vocabulary(SPELLINGS, range(9))
DIM = 3


def drawn(**options):
    """Return a layer with drawn parameters."""
    return drawn_batch(**options)[0]


def drawn_batch(**options):
    return drawn_layer(LayerSpec(WORDS, "cnn", **options).new(DIM, dtype=np.float64))


def spelled(words, widest):
    """Return the characters of each word as numbers, with its marks."""
    number = {c: i for i, c in enumerate(sorted(set("".join(words))), 2)}
    marked = ([BEGIN, *(number[c] for c in word), END] for word in words)
    return [word + [END] * (widest - len(word)) for word in marked]


@pytest.mark.parametrize("options", [{}, {"widest": 1}, {"widest": 9, "filters": 2}])
def test_vectors_are_those_of_the_formula(options):
    """Each word alone, each filter at each of its places."""
    layer = drawn(**options)
    p, widest = layer.parameters(), options.get("widest", 5)
    features = []
    for word in spelled(WORDS.words, widest):
        values = []
        for n in range(1, widest + 1):
            places = [word[t : t + n] for t in range(len(word) - n + 1)]
            windows = np.array([p["characters"][place].ravel() for place in places])
            values.append((windows @ p[f"filters_{n}"].T).max(axis=0))
        features.append(np.tanh(np.concatenate(values) + p["feature_bias"]))
    expected = features @ p["projection"] / np.sqrt(len(p["projection"]))
    expected += p["correction"] @ p["basis"]
    np.testing.assert_allclose(layer.weight, expected, rtol=1e-12, atol=1e-12)


def test_a_delay_sums_the_gradients_of_the_network_over_batches():
    delayed, each = drawn(delay=3), drawn()
    rng = np.random.default_rng(1)
    batches = [(rng.standard_normal((4, DIM)), rng.integers(0, len(WORDS), 4)) for _ in range(3)]
    network = set(each.parameters()) - {"correction", "basis", "bias"}
    delayed.loss(*batches[0], rng)
    delayed.prepare(None)  # a new training run starts to count from 0
    expected = dict.fromkeys(network, 0)
    for number, batch in enumerate(batches):
        _, gradients = delayed.loss(*batch, rng)
        found = {g.name: g.values for g in gradients.parameters}
        wanted = {g.name: g.values for g in each.loss(*batch, rng)[1].parameters}
        expected = {name: expected[name] + wanted[name] for name in network}
        assert network.isdisjoint(found) == (number < 2)
        for name in found:
            values = expected[name] if name in network else wanted[name]
            np.testing.assert_allclose(found[name], values, atol=1e-12, err_msg=name)


def test_kept_vectors_follow_every_change_of_a_parameter():
    layer = drawn()
    assert layer.weight is layer.weight
    for name, parameter in layer.parameters().items():
        before = layer.weight.copy()
        parameter.flat[-1] += 0.5
        same = drawn()
        for other, values in layer.parameters().items():
            same.parameters()[other][...] = values
        np.testing.assert_array_equal(layer.weight, same.weight)
        assert name == "bias" or not np.array_equal(layer.weight, before)

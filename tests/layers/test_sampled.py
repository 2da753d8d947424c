"""Sampled softmax against TensorFlow's formulas, and the softmax that it approximates."""

import numpy as np
from scipy.special import logsumexp

from tests.layers.test_noise import drawn


def tensorflow_loss(weight, bias, hidden, targets, labels, expected, expected_target):
    """`tf.nn.sampled_softmax_loss`, item by item: subtract_log_q, remove_accidental_hits."""
    losses = []
    for h, t, expected_t in zip(hidden, targets, expected_target, strict=True):
        logits = [weight[t] @ h + bias[t] - np.log(expected_t)]
        for label, count in zip(labels, expected, strict=True):
            logit = weight[label] @ h + bias[label] - np.log(count)
            logits.append(-np.inf if label == t else logit)
        losses.append(logsumexp(logits) - logits[0])
    return np.array(losses)


def test_the_loss_is_that_of_tensorflow():
    layer, hidden, targets = drawn("sampled", {"samples": 4})
    losses, _ = layer.loss(hidden, targets, np.random.default_rng(3))
    # The same draw, and the expected counts of TensorFlow's candidate samplers.
    (labels, _), tries = layer.noise.sample_unique(4, np.random.default_rng(3))
    count = 1 - (1 - np.exp(layer.noise.log_prob)) ** tries
    assert np.isin(labels, targets).any()
    expected = tensorflow_loss(
        layer.weight, layer.bias, hidden, targets, labels, count[labels], count[targets]
    )
    np.testing.assert_allclose(losses, expected, rtol=1e-12)


def test_the_expected_count_is_that_of_a_label_in_the_tries():
    layer, *_ = drawn("sampled", {})
    log_q = np.log([0.5, 0.25, 1e-12])
    np.testing.assert_allclose(
        np.exp(layer.log_expected(log_q, 3)), [1 - 0.5**3, 1 - 0.75**3, 3e-12], rtol=1e-9
    )
    assert layer.log_expected(log_q, np.inf).tolist() == [0, 0, 0]
    assert layer.log_expected(np.zeros(1), 3.0).tolist() == [0]

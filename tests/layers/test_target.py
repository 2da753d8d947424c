"""Target sampling: partitions, and the softmax over their candidates."""

import numpy as np
import pytest
from scipy.special import log_softmax

from hstree.data.vocabulary import EOS, Vocabulary
from hstree.data.windows import ContextBatches
from hstree.layers.registry import LayerSpec
from tests.layers.gradients import assert_slopes, drawn
from tests.texts import corpus_of

WORDS = Vocabulary([EOS, *"abcdefghi"], np.array([50, 20, 10, 8, 4, 4, 2, 1, 1, 0]))


def batches(seed=0, n=40, size=4):
    """Return batches of words drawn by their counts."""
    rng = np.random.default_rng(seed)
    targets = rng.choice(len(WORDS), (n, size), p=WORDS.counts / WORDS.counts.sum())
    return [(np.zeros((size, 2), int), t, np.zeros(size, bool)) for t in targets]


def new(dtype=np.float64, **options):
    return drawn(LayerSpec(WORDS, "target", **options).new(3, dtype=dtype), seed=1)[0]


def partitions(layer, some):
    """Return the batches, each with the words whose logits the loss depends on."""
    hidden = np.random.default_rng(2).standard_normal((4, 3)).astype(layer.weight.dtype)
    result = []
    for _, targets, _ in layer.arrange(iter(some)):
        losses, gradients = layer.loss(hidden, targets, None)
        result.append((targets, losses, gradients, hidden))
    return result


def test_a_partition_is_complete_with_its_candidates():
    layer = new(candidates=5)
    some = batches()
    runs = []
    for batch, (targets, _, gradients, _) in zip(some, partitions(layer, some), strict=True):
        np.testing.assert_array_equal(targets, batch[1])
        rows = gradients.parameters[0].rows.tolist()
        if not runs or len(seen) >= 5:  # noqa: F821
            runs.append((rows, seen := set()))
        assert rows == runs[-1][0]
        seen.update(targets.tolist())
    assert len(runs) > 5
    assert all(rows == sorted(words) for rows, words in runs)
    # after an epoch, and where there are fewer words than candidates, all words are candidates
    for exact in (layer, new(candidates=10), new(candidates=10_000)):
        losses, _ = exact.loss(np.ones((1, 3)), np.array([4]), None)
        assert losses == pytest.approx(exact.nll(np.ones((1, 3)), [4]), rel=1e-12)


def test_the_loss_is_a_masked_softmax():
    layer = new(candidates=5)
    some = batches(n=2)
    n_tokens = sum(len(b[1]) for b in some)
    candidates = np.unique([b[1] for b in some])
    assert len(candidates) == 5
    assert len(np.unique(some[0][1])) < 5
    counts = np.maximum(WORDS.counts, 0.5)
    q = 1 - (1 - n_tokens / counts.sum()) ** counts
    for targets, losses, _, hidden in partitions(layer, some):
        logits = hidden @ layer.weight.T + layer.bias - np.log(q)
        logits[:, np.setdiff1d(np.arange(10), candidates)] = -np.inf
        np.testing.assert_allclose(losses, -log_softmax(logits, axis=1)[np.arange(4), targets])


def test_gradients_agree_with_finite_differences():
    layer, some = new(candidates=5), batches()
    arrays = layer.parameters()
    dense = {name: np.zeros_like(array) for name, array in arrays.items()}
    for _, _, gradients, _ in partitions(layer, some):
        for g in gradients.parameters:
            dense[g.name][g.rows] += g.values
    assert_slopes(
        arrays,
        dense,
        lambda: sum(losses.sum() for _, losses, _, _ in partitions(layer, some)),
        rel=1e-6,
    )


def test_the_correction_leaves_the_exact_softmax_in_place(tmp_path):
    """At the true distribution, the mean gradient of the biases is zero."""
    share = 1 / np.arange(1, 61)
    ids = np.random.default_rng(0).choice(60, (100, 20), p=share / share.sum())
    corpus = corpus_of(tmp_path, [" ".join(f"w{i}" for i in line) for line in ids.tolist()])
    layer = LayerSpec(corpus.vocabulary, "target", candidates=20).new(2, dtype=np.float64)
    windows = ContextBatches(corpus, 2)
    layer.prepare(windows)
    gradient = np.zeros(layer.n_labels)
    for epoch in range(40):
        for _, targets, _ in layer.arrange(windows.batches(8, np.random.default_rng(epoch))):
            bias = layer.loss(np.ones((len(targets), 2)), targets, None)[1].parameters[1]
            gradient[bias.rows] += bias.values / 40
    assert layer.n_labels > 30
    # relative to the number of times that each word is a target; uncorrected, one is above 0.3
    assert np.abs(gradient / corpus.counts).max() < 0.1


def test_float32_stays_float32():
    for _, losses, gradients, _ in partitions(new(dtype=np.float32, candidates=5), batches()):
        arrays = [gradients.hidden, *(g.values for g in gradients.parameters)]
        assert {array.dtype for array in arrays} == {np.dtype(np.float32)}
        assert losses.dtype == np.float64

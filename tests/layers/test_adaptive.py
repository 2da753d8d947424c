"""The adaptive softmax against torch's module, the tree of two levels and a brute-force search."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from hstree.data.vocabulary import Vocabulary
from hstree.layers.adaptive import AdaptiveSoftmax, cheapest_cutoffs
from tests.layers.gradients import drawn as drawn_layer

V, DIM = 40, 16
RNG = np.random.default_rng(3)
#: Counts that do not fall with the label ids, with ties and zeros.
COUNTS = RNG.permutation(np.repeat([0, 1, 1, 5, 30], 8) * np.arange(1, V + 1))


def words(n=V, counts=None):
    return Vocabulary([f"w{i}" for i in range(n)], COUNTS[:n] if counts is None else counts)


def drawn(vocabulary=None, batch=30, **options):
    layer = AdaptiveSoftmax(vocabulary or words(), DIM, dtype=np.float64, **options)
    return drawn_layer(layer, batch)


def test_equals_torch_weight_for_weight():
    torch = pytest.importorskip("torch", reason="needs torch: pip install '.[torch]'")
    descending = words(counts=np.sort(COUNTS)[::-1])
    layer, hidden, targets = drawn(descending, cutoffs="6,20")
    for i in (1, 2):  # torch has none: the same model where they are zero
        layer.parameters()[f"tail{i}_bias"][...] = 0
    module = torch.nn.AdaptiveLogSoftmaxWithLoss(
        DIM, V, [6, 20], div_value=4, head_bias=True, dtype=torch.float64
    )
    theirs = {"head_weight": module.head.weight, "head_bias": module.head.bias}
    for i, (projection, weight) in enumerate(module.tail, 1):
        theirs |= {f"tail{i}_projection": projection.weight, f"tail{i}_weight": weight.weight}
    with torch.no_grad():
        for name, parameter in theirs.items():
            parameter[...] = torch.from_numpy(layer.parameters()[name])
    h = torch.from_numpy(hidden).requires_grad_()
    output = module(h, torch.from_numpy(targets))
    (output.loss * len(targets)).backward()
    losses, gradients = layer.loss(hidden, targets)
    np.testing.assert_allclose(losses, -output.output.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(layer.nll(hidden, targets), losses, rtol=1e-12)
    np.testing.assert_allclose(layer.log_prob(hidden), module.log_prob(h).detach(), rtol=1e-12)
    np.testing.assert_allclose(gradients.hidden, h.grad.numpy(), atol=1e-12)
    for g in gradients.parameters:
        if g.name in theirs:
            np.testing.assert_allclose(g.values, theirs[g.name].grad.numpy(), atol=1e-12)


def test_projections_keep_lengths_and_have_the_rate_that_is_asked_for():
    options = {"cutoffs": "6,20", "factor": 2.0, "projection_rate": 0.25}
    layer = AdaptiveSoftmax(words(), DIM, dtype=np.float64, **options)
    for projection, _, _ in layer.tails:
        width, dim = projection.shape
        np.testing.assert_allclose(
            projection @ projection.T, np.eye(width) * dim / width, atol=1e-12
        )
    names = ["tail1_projection", "tail2_projection"]
    assert layer.adagrad == {name: {"rate": 0.25} for name in names}


def nanoseconds(counts, cutoffs, batch=1024, dim=100):
    """Estimated time of a training step: products, scores and updates of each softmax."""
    start = [0, *cutoffs, len(counts)]
    time = 0.0
    for i, (a, b) in enumerate(pairwise(start)):
        words = b + len(cutoffs) if i == 0 else b - a
        items = batch if i == 0 else batch * counts[a:b].sum() / counts.sum()
        width = dim // 4**i
        time += 50_000 + words * (items * (0.1 * width + 1.5) + 1.5 * (width + 1))
        time += 0.1 * items * dim * width * (i > 0)
    return time


def test_chosen_cutoffs_are_the_cheapest_of_all():
    counts = 1e6 / np.arange(1, 2001)
    covered = int(np.searchsorted(np.cumsum(counts) / counts.sum(), 0.75))
    ranks = range(covered, 2000, 20)
    legal = [
        cutoffs
        for n in (0, 1, 2)
        for cutoffs in combinations(ranks, n)
        if all(2 * a <= b for a, b in pairwise([*cutoffs, 2000]))
    ]
    best = min(nanoseconds(counts, cutoffs) for cutoffs in legal)
    chosen = cheapest_cutoffs(counts, 100)
    assert len(chosen) == 2
    assert tuple(chosen) in legal or chosen[0] - covered < 50
    assert nanoseconds(counts, chosen) == pytest.approx(best, rel=0.05)
    assert cheapest_cutoffs(np.ones(20), 100) == []


def test_vectors_of_many_clusters_have_at_least_one_number():
    cutoffs = ",".join(map(str, range(1, 600)))
    many = Vocabulary([f"w{i}" for i in range(600)], np.ones(600, int))
    layer = AdaptiveSoftmax(many, DIM, cutoffs=cutoffs)
    assert [weight.shape[1] for _, weight, _ in layer.tails[-2:]] == [1, 1]
    layer = AdaptiveSoftmax(words(), DIM, cutoffs="6,20", factor=1e200)
    assert [weight.shape[1] for _, weight, _ in layer.tails] == [1, 1]

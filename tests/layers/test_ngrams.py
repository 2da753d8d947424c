"""Direct n-gram features: which there are, what they add to scores, and how they are trained."""

import importlib
from itertools import pairwise

import numpy as np
import pytest

import hstree
from hstree.data.vocabulary import Vocabulary
from hstree.data.windows import ContextBatches
from hstree.errors import FileFormatError, InputError
from hstree.kernels import NARROW, backend_name, numpy_only
from hstree.layers.ngram_features import NgramFeatures
from hstree.layers.registry import LayerSpec
from hstree.models import new_model
from hstree.tree import Tree
from tests.layers.gradients import assert_same, assert_slopes, dense
from tests.needs import NUMBA
from tests.texts import corpus_of

DIM, WORDS = 4, 3
LINES = ["a b c a b d", "b c a b c a a", "d a b c d e", "c a b d e a b c"] * 3


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return corpus_of(tmp_path_factory.mktemp("text"), LINES)


def trees(text):
    words = text.counted_vocabulary()
    eos, *others = range(len(words))
    wide = [[1, ~eos, ~others[0], 2], [~o for o in others[1:]], [~others[1], ~others[0], ~eos]]
    return {
        "binary": hstree.build("huffman", words),
        "several codes": Tree.from_children(words.words, wide, counts=words.counts),
        "flat": hstree.build("flat", words),
    }


KINDS = ("binary", "several codes", "flat")


def prepared(text, kind, dtype=np.float64, seed=0, **options):
    """Return a layer over a tree, or one of its name, with the features of a text and drawn
    weights, and the text's windows.
    """
    tree = trees(text)[kind] if isinstance(kind, str) else kind
    spec = LayerSpec(tree, "ngrams", **{"words": WORDS, **options})
    layer = spec.new(DIM, dtype=dtype)
    windows = ContextBatches(text.with_vocabulary(spec.vocabulary), 4)
    layer.prepare(windows)
    rng = np.random.default_rng(seed)
    for parameter in layer.parameters().values():
        parameter[...] = rng.standard_normal(parameter.shape)
    return layer, windows


def batch_of(layer, windows, n=40, dtype=np.float64):
    contexts, targets, _ = next(windows.batches(n))
    hidden = np.random.default_rng(1).standard_normal((n, DIM)).astype(dtype)
    return hidden, targets, contexts


def path_rows(layer, label):
    """Return the weight rows of the decisions on all codes of a label."""
    tree = layer.tree
    for code in layer.tree.codes(layer.tree.labels[label]):
        for node, branch in code:
            row = int(tree.row_start[node])
            yield row if tree.fan_out[node] == 2 else row + branch


def by_hand(layer, windows, min_count):
    """Return the features of a text, each a tuple of words, the last one first, and a row."""
    contexts, targets, _ = next(windows.batches(10_000))
    seen = {}
    for context, target in zip(contexts.tolist(), targets.tolist(), strict=True):
        for n in range(1, layer.words + 1):
            gram = (tuple(context[::-1][:n]), target)
            seen[gram] = seen.get(gram, 0) + 1
    return {
        (words, row)
        for (words, target), count in seen.items()
        if count >= min_count
        for row in path_rows(layer, target)
    }


def named(features):
    """Return the features as `by_hand` names them, in their order."""
    words = []  # of each context, whose number is its place
    for length, (a, b) in enumerate(pairwise(features.start.tolist())):
        for key in features.contexts[a:b].tolist():
            shorter, farthest = divmod(key, features.n_labels)
            words.append((*(words[shorter] if length else ()), farthest))
    number, row = np.divmod(features.keys, features.n_rows)
    return [(words[i], r) for i, r in zip(number.tolist(), row.tolist(), strict=True)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("min_count", [1, 2, 4])
def test_features_are_those_of_the_decisions_in_the_text(text, kind, min_count, monkeypatch):
    monkeypatch.setattr("hstree.layers.ngram_features.GRAMS_TOGETHER", 3)
    layer, windows = prepared(text, kind, min_count=min_count)
    names = named(layer.features)
    assert len(names) == len(set(names)) == len(layer.feature_weight)
    assert set(names) == by_hand(layer, windows, min_count)
    assert (np.diff(layer.features.keys) > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_scores_get_the_weights_of_their_features(text, kind):
    """Against logits of all rows, each with the sum over the features of its context."""
    layer, windows = prepared(text, kind)
    hidden, targets, contexts = batch_of(layer, windows)
    weight = dict(zip(named(layer.features), layer.feature_weight, strict=True))
    logits = layer.weight @ hidden.T + layer.bias[:, None]
    for b, context in enumerate(contexts.tolist()):
        for row in range(len(logits)):
            for n in range(1, WORDS + 1):
                logits[row, b] += weight.get((tuple(context[::-1][:n]), row), 0.0)
    expected = layer.log_prob_of_logits(logits)
    after = layer.in_context(contexts)
    np.testing.assert_allclose(after.log_prob(hidden), expected, atol=1e-12)
    assert np.exp(after.log_prob(hidden)).sum(axis=1) == pytest.approx(np.ones(40), abs=1e-12)
    np.testing.assert_allclose(after.nll(hidden, targets), -expected[np.arange(40), targets])
    labels, log_prob = after.top_k(hidden, 3)
    np.testing.assert_allclose(log_prob, -np.sort(-expected, axis=1)[:, :3])
    np.testing.assert_array_equal(labels[:, 0], expected.argmax(axis=1))
    drawn = after.sample(hidden, np.random.default_rng(0))
    assert drawn.shape == (40,)
    # the layer by itself is the tree's
    assert not np.allclose(layer.nll(hidden, targets), after.nll(hidden, targets))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_in_context_agree_with_finite_differences(text, kind):
    layer, windows = prepared(text, kind)
    hidden, targets, contexts = batch_of(layer, windows)

    def loss():
        return layer.in_context(contexts).loss(hidden, targets)

    slopes = dense(layer, loss()[1])
    assert np.count_nonzero(slopes["feature_weight"]) > 10
    arrays = {"hidden": hidden, **layer.parameters()}
    assert_slopes(arrays, slopes, lambda: loss()[0].sum(), size=1e-6, rel=1e-6)


@pytest.fixture(scope="module")
def forest(tmp_path_factory):
    """Return a text of 90 words, and two class trees over it with more than 32 branches each."""
    rng = np.random.default_rng(0)
    lines = [" ".join(f"w{int(i)}" for i in rng.zipf(1.3, 12) % 90) for _ in range(60)] * 2
    text = corpus_of(tmp_path_factory.mktemp("wide"), lines)
    tree = hstree.build("classes", text, short_list=36, n_classes=5, trees=2)
    assert max(tree.fan_out) > NARROW
    assert not tree.has_single_codes
    return text, tree


def test_wide_nodes_have_features_in_both_passes(forest):
    text, tree = forest
    layer, windows = prepared(text, tree, np.float32)
    assert not layer.scores_in_threads
    check_compiled(layer, windows)
    hidden, targets, contexts = batch_of(layer, windows, dtype=np.float32)
    after = layer.in_context(contexts)
    expected = -after.log_prob(hidden)[np.arange(40), targets]
    np.testing.assert_allclose(after.nll(hidden, targets), expected, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_passes_are_those_of_numpy(text, kind):
    check_compiled(*prepared(text, kind, np.float32))


def check_compiled(layer, windows):
    if backend_name() == "numpy":
        pytest.skip(NUMBA)
    hidden, targets, contexts = batch_of(layer, windows, dtype=np.float32)
    after = layer.in_context(contexts)
    losses, gradients = after.loss(hidden, targets)
    with numpy_only():
        expected, wanted = after.loss(hidden, targets)
    np.testing.assert_allclose(losses, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(after.nll(hidden, targets), expected, rtol=1e-5, atol=1e-6)
    assert_same(layer, gradients, wanted, rtol=1e-4, atol=1e-5)
    check_search(after, hidden)


def check_search(after, hidden):
    """Against all log-probabilities, computed by NumPy; one label's is wrong without features."""
    with numpy_only():
        every = after.log_prob(hidden)
    np.testing.assert_allclose(after.log_prob(hidden), every, rtol=1e-5, atol=1e-5)
    for k in (1, 4):
        labels, log_prob = after.top_k(hidden, k)
        np.testing.assert_allclose(log_prob, -np.sort(-every, axis=1)[:, :k], rtol=1e-5, atol=1e-5)
        found = np.take_along_axis(every, labels, axis=1)
        np.testing.assert_allclose(log_prob, found, rtol=1e-5, atol=1e-5)


def test_a_search_that_gives_up_computes_all_words_with_their_features(text, monkeypatch):
    pytest.importorskip("numba", reason=NUMBA)
    search = importlib.import_module("hstree.kernels.search")
    monkeypatch.setattr(search, "MIN_PATIENCE", 1)
    monkeypatch.setattr(search, "PATIENCE", 0)
    layer, windows = prepared(text, "binary", np.float32)
    hidden, _, contexts = batch_of(layer, windows, dtype=np.float32)
    check_search(layer.in_context(contexts), hidden)


def test_one_wide_class_tree_is_searched(forest):
    text, _ = forest
    tree = hstree.build("classes", text, short_list=36, n_classes=5)
    assert tree.has_single_codes
    layer, windows = prepared(text, tree, np.float32)
    hidden, _, contexts = batch_of(layer, windows, dtype=np.float32)
    check_search(layer.in_context(contexts), hidden)


#: A table, the place and the value that break a rule.
DAMAGES = [
    ("ngram_keys", -1, 10**9),  # of no context
    ("ngram_keys", 0, 10**6),  # out of order
    ("ngram_keys", 0, -1),
    ("ngram_contexts", 0, -1),
    ("ngram_contexts", -1, 10**9),  # of no shorter one
    ("ngram_contexts", 0, 10**6),  # out of order
    ("ngram_start", -1, 10**6),  # beyond the contexts
    ("ngram_start", 1, -1),
]


@pytest.mark.parametrize(("name", "place", "value"), DAMAGES)
def test_damaged_tables_are_refused(text, name, place, value):
    layer, _ = prepared(text, "binary")
    tables = {name: array.copy() for name, array in layer.tables.items()}
    layer.restore(tables)
    tables[name][place] = value
    with pytest.raises(FileFormatError, match="saved layer"):
        layer.restore(tables)


def test_other_tables_are_refused(text):
    layer, _ = prepared(text, "binary")
    tables = layer.tables
    keys, start = tables["ngram_keys"].copy(), tables["ngram_start"]
    first_of_two_words = tables["ngram_contexts"].copy()
    first_of_two_words[start[1]] = -1  # begins with one that has two words
    keys[1:4] = keys[0] + 2**62, 2**63 - 1, -(2**62)  # differences that wrap around
    for change in (
        {"ngram_contexts": first_of_two_words},
        {"ngram_keys": keys},
        {"ngram_keys": keys.astype(np.int32)},
        {"ngram_start": start[:-1]},
    ):
        with pytest.raises(FileFormatError, match="saved layer"):
            layer.restore({**tables, **change})
    with pytest.raises(FileFormatError, match="saved layer"):
        layer.restore({"ngram_contexts": tables["ngram_contexts"], "ngram_start": start})


def test_features_are_of_no_more_words_than_the_context_has(text):
    spec = LayerSpec(trees(text)["binary"], "ngrams", words=3)
    layer, of_two = spec.new(DIM), LayerSpec(spec.source, "ngrams", words=2).new(DIM)
    for one in (layer, of_two):
        one.prepare(ContextBatches(text.with_vocabulary(spec.vocabulary), 2))
    assert named(layer.features) == named(of_two.features)
    contexts = np.array([[0, 1], [1, 2]])
    np.testing.assert_array_equal(layer.features.numbers(contexts)[:, 2], [-1, -1])
    spec.new(DIM).restore(layer.tables)


def test_long_contexts_of_many_words_have_keys(tmp_path):
    """V**n of six words is far beyond an int64."""
    rng = np.random.default_rng(0)
    lines = [" ".join(f"w{i}" for i in rng.integers(0, 3_000, 12)) for _ in range(1_000)] * 2
    text = corpus_of(tmp_path, lines)
    tree = hstree.build("balanced", text.counted_vocabulary())
    layer = LayerSpec(tree, "ngrams", words=6).new(DIM)
    windows = ContextBatches(text.with_vocabulary(Vocabulary(tree.labels, tree.counts)), 6)
    layer.prepare(windows)
    contexts, _, _ = next(windows.batches(len(text)))
    assert (layer.features.numbers(contexts) >= 0).mean() > 0.99


def test_models_of_words_on_both_sides_are_refused(text):
    spec = LayerSpec(trees(text)["binary"], "ngrams")
    with pytest.raises(InputError, match="need the words before each target"):
        new_model(spec, model="cbow", dim=DIM, epochs=1).fit(text)


def test_an_empty_text_has_no_features(text):
    layer, windows = prepared(text, "binary", min_count=1_000)
    hidden, targets, contexts = batch_of(layer, windows)
    assert len(layer.feature_weight) == 0
    after = layer.in_context(contexts)
    np.testing.assert_allclose(after.nll(hidden, targets), layer.nll(hidden, targets))
    empty = NgramFeatures.empty(2, 5, 4)
    assert empty.numbers(contexts).tolist() == [[-1, -1]] * len(contexts)

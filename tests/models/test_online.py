"""Models trained word by word: against a loop in NumPy, and with bad input."""

from itertools import pairwise

import numpy as np
import pytest

from hstree._compiled import numpy_alone
from hstree.builders import build
from hstree.builders.shared.join import join_under_root
from hstree.data.splits import Splits
from hstree.data.text_score import unigram_score
from hstree.data.windows import LineWindows, SymmetricWindows
from hstree.errors import OptionError
from hstree.layers.registry import LayerSpec
from hstree.models.cbow import CBOW
from hstree.models.lbl import BATCH, LanguageModel
from hstree.models.skipgram import SkipGram
from hstree.models.word2vec import LEAST_LOOKS
from tests.models.trainers import EachOnce
from tests.needs import NUMBA
from tests.texts import corpus_of, fitted, markov_lines

pytest.importorskip("numba", reason=NUMBA)
compiled = pytest.importorskip("hstree.models.compiled")
MODELS = [CBOW, SkipGram]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_of(tmp_path_factory.mktemp("text"), markov_lines(6_000, 0)[0])


@pytest.fixture(scope="module")
def tree(corpus):
    return build("huffman", corpus)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def one_epoch(model, corpus):
    """Train as the kernel does, with windows of one word on either side; return the loss."""
    windows = LineWindows(model.reencode(corpus), 1)
    vectors, layer = model.context_model.embedding, model.layer
    codes = layer.codes.expand(np.arange(layer.n_labels))
    edges = np.split(codes.edge, np.cumsum(layer.codes.length)[:-1])
    total = 0.0
    rng = np.random.default_rng([model.random_state, 1, 1])
    for start, ids, _ in windows.training_batches(len(corpus) // LEAST_LOOKS, rng):
        for a, b in pairwise(start):
            line = ids[a:b]
            for i, target in enumerate(line):
                around = [line[c] for c in (i - 1, i + 1) if 0 <= c < len(line)]
                inputs = [[word] for word in around] if model.context_model.each else [around]
                losses = []
                for words in inputs or [[]]:
                    h = vectors[words].mean(axis=0) if words else np.zeros(model.dim)
                    row = layer.tree.edge_row[edges[target]]
                    sign = 1 - 2 * layer.tree.edge_branch[edges[target]]
                    z = sign * (layer.weight[row] @ h + layer.bias[row])
                    losses.append(np.logaddexp(0, -z).sum())
                    move = model.learning_rate * sign * sigmoid(-z)
                    of_h = move @ layer.weight[row]
                    layer.weight[row] += move[:, None] * h
                    layer.bias[row] += move
                    for word in words:
                        vectors[word] += of_h / len(words)
                total += np.mean(losses)
    return total


@pytest.mark.parametrize("of", MODELS)
def test_an_epoch_is_that_of_a_plain_loop(of, tree, tmp_path):
    some = corpus_of(tmp_path, [*markov_lines(600, 1)[0], "", "w1"])
    options = {"dim": 9, "window": 1, "epochs": 1, "learning_rate": 0.1}
    fast, plain = (of(tree, online=asked, **options) for asked in (True, False))
    plain.layer = plain.spec.new(9, counts=some.counts)
    windows = fast.windows(some)
    fast.layer = fast.spec.new(9, counts=some.counts)
    trainer = fast.trainer(windows)
    with trainer.at_cache_lines():
        loss = sum(trainer.step(c, t, 0.1, p) for c, t, p in trainer.epoch_batches(windows))
    assert loss == pytest.approx(one_epoch(plain, some), rel=1e-4)
    for name, parameter in fast.parameters().items():
        expected = plain.parameters()[name]
        np.testing.assert_allclose(parameter, expected, rtol=1e-3, atol=1e-4, err_msg=name)


def dropped_out(seed, n_items, dim, rate):
    """Return the scales (B, d) that the kernel draws from a seed, by Python's integers."""
    keep, state, most = np.zeros((n_items, dim), np.float32), int(seed), 2**32
    for b in range(n_items):
        for shift in (13, -7, 17):  # xorshift
            state ^= (state << shift if shift > 0 else state >> -shift) % 2**64
        for j in range(dim):
            bits = ((state >> 32) + j * 0x9E3779B9) % most
            bits = (bits ^ bits >> 16) * 0x7FEB352D % most
            bits = (bits ^ bits >> 15) * 0x846CA68B % most
            if bits ^ bits >> 16 >= int(rate * most):
                keep[b, j] = 1 / (1 - rate)
    return keep


@pytest.mark.parametrize("options", [{}, {"dropout": 0, "weight_decay": 0}, {"weight_decay": 1e-3}])
def test_a_log_bilinear_model_moves_as_in_batches_of_one_word(tree, options):
    """A word that is twice in a context moves twice, and in a batch once: here none is."""
    options = {"dim": 9, "context": 3, **options}
    fast, plain = LanguageModel(tree, **options), LanguageModel(tree, batch_size=1, **options)
    rng, losses = np.random.default_rng(3), [0.0, 0.0]
    contexts = np.array([rng.permutation(tree.n_labels)[:3] for _ in range(400)])
    targets = rng.integers(0, tree.n_labels, 400)
    with numpy_alone():
        reference = plain.trainer(EachOnce(tree.n_labels))
    trainer = fast.trainer(EachOnce(tree.n_labels))
    for some in (slice(0, 150), slice(150, 400)):
        seed, batch = trainer.prepare(contexts[some], targets[some])
        losses[0] += trainer.step(contexts[some], targets[some], 0.1, (seed, batch))
        with numpy_alone():
            keep = dropped_out(seed, len(targets[some]), 9, fast.dropout)
            for c, t, scale in zip(contexts[some], targets[some], keep, strict=True):
                losses[1] += reference.step(c[None], t[None], 0.1, (scale[None], None))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for name, parameter in fast.parameters().items():
        expected = plain.parameters()[name]
        np.testing.assert_allclose(parameter, expected, rtol=1e-4, atol=1e-5, err_msg=name)
    for name, optimiser in trainer.optimisers.items():
        expected = reference.optimisers[name]
        np.testing.assert_allclose(optimiser.squares, expected.squares, rtol=1e-4, err_msg=name)
        np.testing.assert_array_equal(optimiser.decayed, expected.decayed)


@pytest.mark.parametrize("rate", [0.0, 0.35, 0.999])
def test_dropout_leaves_out_its_share_of_elements_and_keeps_the_mean(rate):
    keep, state = np.empty((4000, 25), np.float32), np.uint64(7)
    with np.errstate(over="ignore"):  # in Python, which warns
        for row in keep:
            state = compiled._drawn.py_func(state)
            compiled._drop_out.py_func(state, rate, row)
    spread = (rate * (1 - rate) / keep.size) ** 0.5
    assert (keep == 0).mean() == pytest.approx(rate, abs=4 * spread)
    np.testing.assert_allclose(np.unique(keep[keep > 0]), 1 / (1 - rate), rtol=1e-4)
    # neither elements nor tokens depend on each other
    kept = (keep > 0) - (keep > 0).mean()
    for one, other in ((kept[:, 1:], kept[:, :-1]), (kept[1:], kept[:-1])):
        assert abs((one * other).mean()) <= 5 * rate * (1 - rate) / keep.size**0.5


def test_a_log_bilinear_model_trains_in_batches_where_these_are_asked_for(corpus, tree):
    """Or where it must: several codes a word, wide nodes, features, full matrices, NumPy alone."""
    windows = LanguageModel(tree).windows(corpus)
    assert LanguageModel(tree).trainer(windows)._is_word_by_word
    for output, options in (
        (tree, {"batch_size": BATCH}),
        (tree, {"full": True}),
        (join_under_root([tree, build("random", corpus)], tree.labels), {}),
        (build("flat", corpus), {}),
        (LayerSpec(tree, "ngrams"), {}),
    ):
        trainer = LanguageModel(output, **options).trainer(windows)
        assert (trainer._is_word_by_word, trainer.batch_size) == (False, BATCH)
    with numpy_alone():
        assert LanguageModel(tree).trainer(windows).batch_size == BATCH
    windows.training_counts[0] = 0  # of a word that does not occur
    assert LanguageModel(tree).trainer(windows).batch_size == BATCH


@pytest.mark.parametrize("of", [*MODELS, LanguageModel])
def test_a_seed_gives_the_same_bytes_for_any_number_of_threads(of, corpus, tree, monkeypatch):
    options = {"dim": 16, "window": 3, "epochs": 2, "online": True, "sample": 0.05}
    if of is LanguageModel:
        options = {"dim": 16, "epochs": 2}
    trained = []
    for number in (1, 2):
        monkeypatch.setattr("hstree.training.ahead.n_threads", lambda number=number: number)
        trained.append(of(tree, **options).fit(corpus).parameters())
    for name, parameter in trained[0].items():
        np.testing.assert_array_equal(parameter, trained[1][name])


@pytest.mark.parametrize("of", [*MODELS, LanguageModel])
def test_it_learns_what_batches_learn(of, corpus):
    splits = Splits.of(corpus)
    tree = build("huffman", splits.train)
    options = {"model": of.name, "dim": 16, "epochs": 3}
    more = {} if of is LanguageModel else {"window": 2, "online": True}
    model = fitted(tree, splits, **options, **more)
    in_batches = fitted(
        tree,
        splits,
        batch_size=64,
        **options,
        **more | {name: False for name in more if name == "online"},
    )
    unigram = unigram_score(splits.test, splits.train.counts).perplexity
    assert model.perplexity(splits.test) < 0.95 * unigram
    assert model.perplexity(splits.test) < 1.1 * in_batches.perplexity(splits.test)
    assert model.history_.epochs[0].tokens_per_second > 0


def test_words_are_left_out_by_sub_sampling(corpus, tree):
    """The loss is that of what is kept: rare words have longer codes."""
    counts = corpus.counts
    kept = SymmetricWindows(corpus, 1, 0.01).kept
    depth = CBOW(tree).layer.codes.length
    expected = (counts * kept) @ depth / (counts @ kept) * np.log(2)
    model = CBOW(tree, dim=4, window=1, sample=0.01, online=True)
    trainer = model.trainer(model.windows(corpus))
    model.layer.bias[:] = 0  # each decision costs ln 2
    batches = list(trainer.epoch_batches(model.windows(corpus)))
    loss = sum(trainer.step(c, t, 0.0, p) for c, t, p in batches)
    n_kept = sum(len(t) for _, t, _ in batches)
    assert loss / n_kept == pytest.approx(expected, rel=0.05)
    assert n_kept == pytest.approx(counts @ kept, rel=0.05)


def test_the_learning_rate_falls_in_small_texts_too(corpus, tree):
    model = CBOW(tree, dim=4, epochs=2, online=True)
    windows = model.windows(corpus)
    sizes = [len(targets) for _, targets, _ in model.trainer(windows).epoch_batches(windows)]
    assert len(sizes) >= 40
    assert max(sizes) <= 2 * len(corpus) // 100 + 21


@pytest.mark.parametrize(
    "output",
    [
        lambda corpus: build("flat", corpus),
        lambda corpus: build("classes", corpus, cluster_by="frequency"),
        lambda corpus: LayerSpec(corpus.vocabulary, "sampled"),
    ],
)
@pytest.mark.parametrize("of", MODELS)
def test_other_output_layers_are_refused(output, of, corpus):
    with pytest.raises(OptionError, match="online is for trees of two children"):
        of(output(corpus), online=True)


def test_without_kernels_it_is_refused(corpus, tree):
    with pytest.raises(OptionError, match="needs the compiled kernels, which HSTREE_FAST=0"):
        CBOW(tree, online=True).fit(corpus, fast=False)

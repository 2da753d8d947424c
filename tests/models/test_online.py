"""Models trained word by word: against a loop in NumPy, and with bad input."""

from itertools import pairwise

import numpy as np
import pytest

from hstree.builders import build
from hstree.data.splits import Splits
from hstree.data.text_score import unigram_score
from hstree.data.windows import LineWindows, SymmetricWindows
from hstree.errors import OptionError
from hstree.layers.registry import LayerSpec
from hstree.models.cbow import CBOW
from hstree.models.skipgram import SkipGram
from hstree.models.word2vec import MIN_STEPS
from tests.needs import NUMBA
from tests.texts import corpus_of, fitted, markov_lines

pytest.importorskip("numba", reason=NUMBA)
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
    for start, ids, _ in windows.training_batches(len(corpus) // MIN_STEPS, rng):
        for a, b in pairwise(start):
            line = ids[a:b]
            for i, target in enumerate(line):
                around = [line[c] for c in (i - 1, i + 1) if 0 <= c < len(line)]
                inputs = [[word] for word in around] if model.context_model.by_word else [around]
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


@pytest.mark.parametrize("of", MODELS)
def test_a_seed_gives_the_same_bytes_for_any_number_of_threads(of, corpus, tree, monkeypatch):
    options = {"dim": 16, "window": 3, "epochs": 2, "online": True, "sample": 0.05}
    trained = []
    for number in (1, 2):
        monkeypatch.setattr("hstree.training.ahead.n_threads", lambda number=number: number)
        trained.append(of(tree, **options).fit(corpus).parameters())
    for name, parameter in trained[0].items():
        np.testing.assert_array_equal(parameter, trained[1][name])


@pytest.mark.parametrize("of", MODELS)
def test_it_learns_what_batches_learn(of, corpus):
    splits = Splits.of(corpus)
    tree = build("huffman", splits.train)
    options = {"model": of.name, "dim": 16, "epochs": 3, "window": 2}
    model = fitted(tree, splits, online=True, **options)
    in_batches = fitted(tree, splits, batch_size=64, **options)
    unigram = unigram_score(splits.test, splits.train.counts).perplexity
    assert model.perplexity(splits.test) < 0.95 * unigram
    assert model.perplexity(splits.test) < 1.1 * in_batches.perplexity(splits.test)
    assert model.history_.epochs[0].tokens_per_second > 0


def test_words_are_left_out_by_sub_sampling(corpus, tree):
    """The loss covers the tokens that are kept: rare words have longer codes."""
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

"""CBOW and skip-gram trained word by word: against a loop in NumPy, by threads, with bad input."""

from itertools import pairwise

import numpy as np
import pytest

from hstree.builders import build
from hstree.data.windows import LONGEST, SymmetricWindows
from hstree.errors import OptionError, TrainingError
from hstree.experiments.evaluation import corpus_splits, evaluate
from hstree.layers.registry import layer_spec
from hstree.models import new_model
from hstree.models.asynchronous import LEAST_LOOKS
from hstree.models.cbow import CBOW
from hstree.models.skipgram import SkipGram
from tests.needs import NUMBA
from tests.texts import corpus_of, markov_lines

MODELS = [CBOW, SkipGram]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_of(tmp_path_factory.mktemp("text"), markov_lines(6_000, 0)[0])


@pytest.fixture(scope="module")
def tree(corpus):
    return build("huffman", corpus)


@pytest.fixture
def threads(monkeypatch):
    def use(number):
        pytest.importorskip("numba", reason=NUMBA)
        monkeypatch.setattr("hstree.models.asynchronous.n_threads", lambda: number)

    return use


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def one_epoch(model, corpus):
    """Train as the kernel does, with windows of one word on either side; return the loss."""
    windows = model.windows(corpus)
    vectors, layer = model.context_model.embedding, model.layer
    codes = layer.codes.expand(np.arange(layer.n_labels))
    edges = np.split(codes.edge, np.cumsum(layer.codes.length)[:-1])
    total = 0.0
    rng = np.random.default_rng([model.random_state, 1])
    for start, ids, _ in windows.line_batches(len(corpus) // LEAST_LOOKS, rng):
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
def test_an_epoch_is_that_of_a_plain_loop(of, tree, threads, tmp_path):
    threads(1)
    some = corpus_of(tmp_path, [*markov_lines(600, 1)[0], "", "w1"])
    options = {"dim": 9, "window": 1, "epochs": 1, "learning_rate": 0.1}
    fast, plain = (of(tree, asynchronous=asked, **options) for asked in (True, False))
    plain.layer = plain.spec.new(9, counts=some.counts)
    windows = fast.windows(some)
    fast.layer = fast.spec.new(9, counts=some.counts)
    trainer = fast.trainer(windows)
    loss = sum(trainer.step(c, t, 0.1) for c, t, _ in trainer.epoch_batches(windows))
    assert loss == pytest.approx(one_epoch(plain, some), rel=1e-4)
    for name, parameter in fast.parameters().items():
        expected = plain.parameters()[name]
        np.testing.assert_allclose(parameter, expected, rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("of", MODELS)
def test_one_thread_gives_the_same_bytes_and_two_the_same_perplexity(of, corpus, tree, threads):
    options = {"dim": 16, "window": 3, "epochs": 2, "asynchronous": True, "sample": 0.05}
    threads(1)
    one, again = (of(tree, **options).fit(corpus) for _ in range(2))
    for name, parameter in one.parameters().items():
        np.testing.assert_array_equal(parameter, again.parameters()[name])
    threads(2)
    two = of(tree, **options).fit(corpus)
    assert two.perplexity(corpus) == pytest.approx(one.perplexity(corpus), rel=0.1)


@pytest.mark.parametrize("of", MODELS)
def test_it_learns_what_batches_learn(of, corpus, threads):
    threads(1)
    splits = corpus_splits(corpus)
    tree = build("huffman", splits.train)
    options = {"model": of.name, "dim": 16, "window": 2, "epochs": 3}
    found = evaluate(tree, splits, asynchronous=True, **options)
    in_batches = evaluate(tree, splits, asynchronous=False, batch_size=64, **options)
    assert found.test.perplexity < 0.95 * found.unigram.perplexity
    assert found.test.perplexity < 1.1 * in_batches.test.perplexity
    assert found.result.epochs[0].tokens_per_second > 0


def test_words_are_left_out_by_sub_sampling(corpus, tree, threads):
    """The loss is that of what is kept: rare words have longer codes."""
    threads(1)
    counts = corpus.counts
    kept = SymmetricWindows(corpus, 1, 0.01).kept
    depth = CBOW(tree).layer.codes.length
    expected = (counts * kept) @ depth / (counts @ kept) * np.log(2)
    model = CBOW(tree, dim=4, window=1, sample=0.01, asynchronous=True)
    trainer = model.trainer(model.windows(corpus))
    model.layer.bias[:] = 0  # each decision costs ln 2
    batches = list(trainer.epoch_batches(model.windows(corpus)))
    loss = sum(trainer.step(c, t, 0.0) for c, t, _ in batches)
    n_kept = sum(len(t) for _, t, _ in batches)
    assert loss / n_kept == pytest.approx(expected, rel=0.05)
    assert n_kept == pytest.approx(trainer.expected(model.windows(corpus)), rel=0.05)


@pytest.mark.parametrize("of", MODELS)
def test_sub_sampling_that_leaves_nothing_is_said(of, corpus, tree, threads):
    threads(1)
    with pytest.raises(TrainingError, match="sub-sampling left none"):
        of(tree, dim=4, sample=1e-300, asynchronous=True).fit(corpus)


@pytest.mark.parametrize("number", [1, 4])
def test_the_learning_rate_falls_alike_for_any_number_of_threads(corpus, tree, threads, number):
    threads(number)
    model = CBOW(tree, dim=4, epochs=2, asynchronous=True)
    sizes = [
        len(t) for _, t, _ in model.trainer(model.windows(corpus)).batches(model.windows(corpus))
    ]
    assert len(sizes) >= 40
    assert max(sizes) <= 2 * len(corpus) // 100 + 21


def test_a_budget_of_seconds_ends_it(corpus, tree, threads):
    threads(1)
    model = CBOW(tree, dim=8, epochs=1_000, seconds=0.05, asynchronous=True).fit(corpus)
    assert model.history_.out_of_time


@pytest.mark.parametrize(
    "output",
    [
        lambda corpus: build("flat", corpus),
        lambda corpus: build("classes", corpus, cluster_by="frequency"),
        lambda corpus: layer_spec(corpus.vocabulary, "sampled"),
    ],
)
@pytest.mark.parametrize("of", MODELS)
def test_other_output_layers_are_refused(output, of, corpus):
    with pytest.raises(OptionError, match="asynchronous is for trees of two children"):
        of(output(corpus), asynchronous=True)


def test_without_kernels_it_is_refused(corpus, tree, threads):
    threads(1)
    with pytest.raises(OptionError, match="needs the compiled kernels, which HSTREE_FAST=0"):
        CBOW(tree, asynchronous=True).fit(corpus, fast=False)


def test_the_description_says_how_weights_move(tree):
    options = new_model(tree, model="cbow", asynchronous=True).config()
    assert "one word after the other" in CBOW.describe(options)[1]
    assert "1024 positions a batch" in CBOW.describe(options | {"asynchronous": False})[1]


def test_lines_are_read_once_each_and_long_ones_are_cut(tmp_path):
    lines = ["a b c", " ".join(["d"] * (2 * LONGEST + 5)), "", *["e f"] * 40]
    text = corpus_of(tmp_path, lines)
    windows = SymmetricWindows(text, 2)
    batches = list(windows.line_batches(50, np.random.default_rng(0)))
    assert sum(len(ids) for _, ids, _ in batches) == len(text)
    lengths = np.concatenate([np.diff(start) for start, _, _ in batches])
    assert lengths.max() == LONGEST
    assert sorted(lengths)[-3:] == [6, LONGEST, LONGEST]
    counts = np.bincount(np.concatenate([ids for _, ids, _ in batches]), minlength=6)
    np.testing.assert_array_equal(counts, text.counts)
    for start, ids, _ in batches:
        assert (start[0], start[-1]) == (0, len(ids))
    # another order with another seed
    others = list(windows.line_batches(50, np.random.default_rng(1)))
    assert [len(ids) for _, ids, _ in others] != [len(ids) for _, ids, _ in batches]

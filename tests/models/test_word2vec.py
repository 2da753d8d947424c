"""CBOW and skip-gram end to end: the start, the training, the folder, the questions."""

import json
import math
from collections import Counter, defaultdict

import numpy as np
import pytest

import hstree
from hstree.data.splits import Splits
from hstree.data.text_score import unigram_score
from hstree.errors import FileFormatError, InputError, OptionError, TrainingError
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.models import kind_of, new_model
from hstree.models.lbl import LanguageModel
from hstree.models.skipgram import SkipGram
from hstree.tree import Tree
from hstree.tree.weight_rows import row_curvature
from tests.texts import corpus_of, fitted, markov_lines

KINDS = ["cbow", "skipgram"]
SMALL = {"dim": 12, "window": 2, "epochs": 3, "batch_size": 128}


@pytest.fixture(scope="module")
def markov(tmp_path_factory):
    """Return a training, a validation and a test corpus of a chain."""
    folder = tmp_path_factory.mktemp("markov")
    sizes = (("train", 0, 20_000), ("valid", 1, 3_000), ("test", 2, 6_000))
    return tuple(corpus_of(folder, markov_lines(n, s)[0], f"{name}.txt") for name, s, n in sizes)


def trained(kind, corpus, **options):
    tree = hstree.build("huffman", corpus)
    return new_model(tree, model=kind, **{**SMALL, "epochs": 1, **options}).fit(corpus)


def unigram_of(model, texts):
    train, _, test = (model.reencode(text) for text in texts)
    return unigram_score(test, train.counts).perplexity


@pytest.mark.parametrize(("kind", "method"), [("cbow", "huffman"), ("skipgram", "flat")])
def test_training_learns_what_a_window_tells(markov, kind, method):
    """Compare with the perplexity of count tables of words and their neighbours."""
    tree = hstree.build(method, markov[0])
    options = {**SMALL, "window": 1, "epochs": 5, "learning_rate": 0.3, "model": kind}
    model = fitted(tree, Splits.of(*markov), **options)
    test = model.perplexity(markov[2])
    of_one, of_both = (math.exp(nll_by_tables(*markov[::2], k)) for k in ("skipgram", "cbow"))
    if kind == "skipgram":
        assert of_one * 0.98 < test < of_one * 1.03
    else:  # a mean of two vectors cannot say all that a table of pairs can
        assert of_both * 0.98 < test < of_one * 0.9
    assert unigram_of(model, markov) > of_one * 1.2
    rates = [epoch.learning_rate for epoch in model.history_.epochs]
    assert rates == pytest.approx([0.3, 0.24, 0.18, 0.12, 0.06])


def nll_by_tables(train, test, kind):
    """Return the mean nll of a word given its neighbours in no order, or each of them alone."""
    counts = defaultdict(Counter)
    for word, windows in windows_of_one(train, kind):
        for window in windows:
            counts[window][word] += 1
    nll = [
        -np.mean([math.log((counts[w][word] + 0.1) / (counts[w].total() + 0.7)) for w in windows])
        for word, windows in windows_of_one(test, kind)
    ]
    return np.mean(nll)


def windows_of_one(corpus, kind):
    """Yield each word of a corpus with its windows of reach one."""
    for line in " ".join(corpus.words()).split("<eos>")[:-1]:
        words = [*line.split(), "<eos>"]
        for i, word in enumerate(words):
            near = words[max(0, i - 1) : i] + words[i + 1 : i + 2]
            yield word, [tuple(sorted(near))] if kind == "cbow" else [(w,) for w in near]


@pytest.mark.parametrize("kind", KINDS)
def test_the_nll_of_skipgram_is_the_mean_over_the_window(markov, kind, tmp_path):
    model = trained(kind, markov[1])
    text = corpus_of(tmp_path, ["w1 w2 w1", ""])
    found = model.nll(text)
    labels = model.tree.labels
    windows = [["w2", "w1"], ["w1", "w1", "<eos>"], ["w1", "w2", "<eos>"], ["w2", "w1"], []]
    for nll, word, window in zip(found, text.words(), windows, strict=True):
        contexts = [window] if kind == "cbow" or not window else [[w] for w in window]
        assert nll == pytest.approx(-model.log_prob(contexts)[:, labels.index(word)].mean())
    score = model.score(text)
    assert score.perplexity == pytest.approx(np.exp(found.mean()))
    assert score.tokens == 5


@pytest.mark.parametrize("kind", KINDS)
def test_no_rate_and_no_batch_makes_it_diverge(markov, kind):
    for rate in (1, 100):
        model = trained(kind, markov[0], batch_size=16_384, learning_rate=rate, epochs=3)
        assert np.isfinite(model.nll(markov[2])).all()
    assert trained(kind, markov[0], batch_size=16_384, learning_rate=1).perplexity(markov[2]) < 7


@pytest.mark.parametrize(
    "options", [{"model": "lbl", "dropout": 0.3}, *({"model": k, "sample": 0.05} for k in KINDS)]
)
def test_the_order_of_labels_changes_nothing(markov, options):
    _, train, test = markov
    tree = hstree.build("huffman", train)
    order = np.random.default_rng(0).permutation(tree.n_labels)
    new_id = np.argsort(order)
    child = np.where(tree.child < 0, ~new_id[np.where(tree.child < 0, ~tree.child, 0)], tree.child)
    other = Tree([tree.labels[i] for i in order], tree.child_start, child)
    options |= {"dim": 12, "epochs": 2, "batch_size": 128}
    one = new_model(tree, **options).fit(train, test).perplexity(test)
    two = new_model(other, **options).fit(train, test).perplexity(test)
    assert one == pytest.approx(two, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_is_read_by_its_own_class(markov, kind, tmp_path):
    model = trained(kind, markov[1], sample=0.1)
    model.save(tmp_path / "one")
    with pytest.raises(FileFormatError, match=f"holds a model '{kind}', not 'lbl'"):
        LanguageModel.load(tmp_path / "one")


def test_the_config_of_a_log_bilinear_model_does_not_change(markov):
    """Finished runs are kept under it."""
    config = new_model(hstree.build("huffman", markov[0])).config()
    assert json.dumps(config) == (
        '{"dim": 100, "context": 5, "full": false, "epochs": 20, '
        '"batch_size": 256, "learning_rate": 0.1, "dropout": 0.35, "random_state": 0}'
    )


def test_words_are_predicted_from_any_number_of_words(markov):
    model = trained("cbow", markov[1])
    found = model.predict([["w1"], [], ["w1", "w2", "w3", "w1", "w2", "w3"]], k=2)
    for words, context in zip(found, ([1], [], [1, 2, 3, 1, 2, 3]), strict=True):
        ids = model.vocabulary.ids([f"w{i}" for i in context])
        mean = (
            model.context_model.embedding[ids].mean(axis=0) if context else np.zeros(12, np.float32)
        )
        log_prob = model.layer.log_prob(mean[None].astype(np.float32))[0]
        assert [word for word, _ in words] == [
            model.tree.labels[i] for i in np.argsort(-log_prob)[:2]
        ]


def test_vectors_come_with_the_most_frequent_word_first(markov):
    train = markov[1]
    model = trained("skipgram", train)
    found = model.vectors(train)
    assert found.counts.tolist() == sorted(train.counts.tolist(), reverse=True)
    for word, row in zip(found.labels, found.vectors, strict=True):
        label = model.tree.labels.index(word)
        np.testing.assert_array_equal(row, model.context_model.embedding[label])


def test_what_word2vec_cannot_have_is_refused(markov, tmp_path):
    tree = hstree.build("huffman", markov[0])
    for wrong, said in (
        ({"model": "glove"}, "there is no model 'glove'"),
        ({"window": 0}, "window is 0"),
        ({"sample": -1}, "sample is -1"),
    ):
        with pytest.raises(OptionError, match=said):
            new_model(tree, **{"model": "cbow", **wrong})
    model = SkipGram(tree, **SMALL)
    for label in (-2, 99):
        with pytest.raises(InputError, match="ids outside -1 to"):
            model.log_prob(np.array([[label]]))
    with pytest.raises(InputError, match=r"this model takes \(B, n\)"):
        model.log_prob(np.array([9]))
    with pytest.raises(TrainingError, match="left none of the 2 tokens"):
        SkipGram(tree, sample=1e-12).fit(corpus_of(tmp_path, ["w1"]))


@pytest.mark.parametrize(
    "children",
    [
        [[1, 2], [~0, ~1], [~2, ~3]],
        [[1, ~0, 2], [~1, ~2], [~3, ~0]],
        [[~0, ~1, ~2, ~3]],
    ],
)
def test_the_curvature_of_rows_is_that_of_an_untrained_layer(children):
    """Against second differences of the mean loss along each bias."""
    counts = np.array([5, 1, 3, 7])
    tree = Tree.from_children(list("abcd"), children, counts=counts)
    layer = HierarchicalSoftmax(tree, 1, dtype=np.float64)
    targets = np.repeat(np.arange(4), counts)
    hidden = np.zeros((len(targets), 1))
    one_code = tree.has_single_codes
    for row, found in enumerate(row_curvature(tree, counts)):
        losses = []
        for step in (-1e-3, 0, 1e-3):
            layer.bias[row] += step
            losses.append(layer.nll(hidden, targets).mean())
            layer.bias[row] -= step
        second = (losses[0] - 2 * losses[1] + losses[2]) / 1e-6
        # The common part of a label's codes has less curvature than its decisions on their own.
        assert found == pytest.approx(second, rel=1e-3) if one_code else found >= second
    assert row_curvature(Tree(["a"], [0], []), np.array([3])).tolist() == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, ("log-bilinear, 5 context words", "256 positions per batch")),
        ({"batch_size": 64}, ("64 positions per batch, Adagrad",)),
        ({"context": 1, "full": True}, ("1 context word", "full matrices")),
        ({"model": "cbow", "window": 1}, ("cbow, 1 word on each side", "decreasing from 0.2")),
        ({"model": "skipgram", "sample": 0.001}, ("skipgram, 5 words", "sub-sampling 0.001")),
        ({"model": "cbow"}, ("1024 positions per batch",)),
        ({"model": "cbow", "online": True}, ("updates after every word",)),
    ],
)
def test_a_model_is_described_in_words(markov, options, said):
    model = new_model(hstree.build("huffman", markov[0]), **options)
    told = "; ".join(kind_of(model.config()).model.describe(model.config()))
    assert all(part in told for part in said), told

"""Compiled training steps against those in NumPy: parameters, losses, perplexity, bytes."""

import importlib
from itertools import islice

import numpy as np
import pytest

from hstree.builders import build
from hstree.builders.shared.join import join_under_root
from hstree.data.vocabulary import Vocabulary
from hstree.kernels import numpy_only
from hstree.layers.registry import TREE_LAYER, LayerSpec
from hstree.models.cbow import CBOW
from hstree.models.lbl import LanguageModel
from hstree.models.skipgram import SkipGram
from hstree.tree import Tree
from tests.kernels.test_tree import wide_tree
from tests.limits import use_threads
from tests.needs import NUMBA
from tests.texts import corpus_of

numba = pytest.importorskip("numba", reason=NUMBA)
layout = pytest.importorskip("hstree.kernels.layout")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Text over the labels of every tree below, in which a word depends on the one before it."""
    rng = np.random.default_rng(0)
    words, lines = 126, []
    for _ in range(400):
        ids = [int(rng.integers(words))]
        for _ in range(11):
            ids.append((3 * ids[-1] + int(rng.integers(4))) % words)
        lines.append(" ".join(f"w{i}" for i in ids))
    return corpus_of(tmp_path_factory.mktemp("text"), lines)


def tree(kind, corpus):
    vocabulary = corpus.vocabulary
    if kind in ("wide", "in pieces"):
        rng = np.random.default_rng(0)
        drawn = wide_tree(rng) if kind == "wide" else wide_tree(rng, layout.MIN_ROWS + 10)
        assert drawn.n_labels >= len(vocabulary)
        labels = [*vocabulary.words, *(f"other{i}" for i in range(drawn.n_labels))]
        return Tree(labels[: drawn.n_labels], drawn.child_start, drawn.child)
    if kind == "shared list":
        n, words, counts = 60, vocabulary.words, vocabulary.counts
        others = Vocabulary(words[n:], counts[n:])
        trees = [Tree([word], [0], []) for word in words[:n]]
        trees += [build("random", others, arity=9, random_state=i) for i in range(3)]
        return join_under_root(trees, words, counts=counts)
    if kind == "forest":
        trees = [build("random", vocabulary, random_state=i) for i in range(2)]
        return join_under_root(trees, vocabulary.words)
    return build(kind, vocabulary)


KINDS = ["huffman", "balanced", "forest", "shared list", "wide", "in pieces"]


def trained(
    corpus,
    kind,
    *,
    steps=5,
    fast=True,
    layer=TREE_LAYER,
    batch_size=50,
    **options,
):
    """Return the parameters and losses of some steps from drawn weights.

    At weights of zero a forest's gate has a gradient of rounding errors alone, which Adagrad turns
    into steps.
    """
    with numpy_only(not fast):
        spec = LayerSpec(tree(kind, corpus), layer)
        model = LanguageModel(spec, dim=13, **{"batch_size": 50, **options})
        windows = model.windows(corpus)
        model.layer.prepare(windows)
        for parameter in model.layer.parameters().values():
            parameter += np.random.default_rng(0).normal(0, 0.1, parameter.shape)
        trainer = model.trainer(windows)
        assert (trainer._compiled_arrays is not None) == fast
        batches = trainer.epoch_batches(windows)
        losses = [trainer.step(c, t, 0.1, p) for c, t, p in islice(batches, steps)]
        batches.close()
    return model.parameters(), losses


MODELS = [
    {"context": 1},
    {"context": 5},
    {"context": 1, "dropout": 0, "weight_decay": 1e-3},
    {"context": 5, "dropout": 0, "weight_decay": 1e-3},
    {"layer": "ngrams"},
    {"layer": "ngrams", "weight_decay": 1e-3},
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", MODELS)
def test_steps_are_those_of_numpy(corpus, kind, model):
    found, losses = trained(corpus, kind, **model)
    expected, of_numpy = trained(corpus, kind, fast=False, **model)
    assert losses == pytest.approx(of_numpy, rel=1e-5)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("layer", [TREE_LAYER, "ngrams"])
@pytest.mark.parametrize("kind", ["huffman", "wide", "in pieces"])
def test_the_number_of_threads_changes_no_bit(corpus, kind, layer, monkeypatch):
    results = []
    for threads in (1, 2, 3):
        use_threads(monkeypatch, threads)
        parameters, losses = trained(corpus, kind, layer=layer, steps=40, batch_size=100)
        results.append((losses, {name: array.tobytes() for name, array in parameters.items()}))
    assert results[0] == results[1] == results[2]


def test_without_kernels_a_fit_has_the_bytes_of_numpy(corpus, monkeypatch):
    def embedding(**options):
        model = LanguageModel(tree("huffman", corpus), dim=5, epochs=1).fit(corpus, **options)
        return model.context_model.embedding.tobytes()

    by_option, fast = embedding(fast=False), embedding()
    monkeypatch.setenv("HSTREE_FAST", "0")
    assert by_option == embedding() != fast


def test_a_batch_that_was_not_prepared_is_trained_on_too(corpus):
    """A caller may take batches from anywhere: dropout and layout are of the batch at hand."""
    model = LanguageModel(tree("huffman", corpus), dim=5, batch_size=50)
    windows = model.windows(corpus)
    trainer = model.trainer(windows)
    contexts, targets, _ = next(trainer.epoch_batches(windows))
    loss = trainer.step(contexts[:7].copy(), targets[:7].copy(), 0.1)
    assert 0 < loss < 7 * 2 * np.log(len(corpus.vocabulary))
    assert trainer.step(contexts, targets, 0.1) > loss


@pytest.mark.parametrize("of", [LanguageModel, CBOW, SkipGram])
@pytest.mark.parametrize(
    ("change", "wrong"), [("contexts", 10**6), ("targets", 10**6), ("targets", -2)]
)
def test_words_that_are_none_are_refused(corpus, of, change, wrong):
    model = of(tree("huffman", corpus), dim=5, batch_size=50)
    windows = model.windows(corpus)
    trainer = model.trainer(windows)
    contexts, targets, _ = next(trainer.epoch_batches(windows))
    batch = {"contexts": contexts.copy(), "targets": targets.copy()}
    batch[change].flat[3] = wrong
    with pytest.raises(IndexError):
        trainer.step(**batch, learning_rate=0.1)


@pytest.mark.parametrize("wrong", [-1, 10**6])
def test_words_that_are_none_are_refused_word_by_word(corpus, wrong):
    model = CBOW(tree("huffman", corpus), dim=5, online=True)
    trainer = model.trainer(model.windows(corpus))
    with pytest.raises(IndexError):
        trainer.step(np.array([0, 3]), np.array([0, wrong, 1]), 0.1)
    with pytest.raises(IndexError):
        trainer.step(np.array([0, 4]), np.array([0, 1, 1]), 0.1)


def test_layers_and_matrices_without_a_compiled_step_train_by_their_own(corpus):
    for options, layer in (({"full": True}, "huffman"), ({}, "flat")):
        model = LanguageModel(tree(layer, corpus), dim=5, epochs=1, **options).fit(corpus)
        assert model.trainer(model.windows(corpus))._compiled_arrays is None
        assert model.history_.epochs[0].train < len(corpus.vocabulary)


@pytest.mark.parametrize(
    ("of", "options", "fast", "compiles"),
    [
        (LanguageModel, {}, None, False),
        (LanguageModel, {}, True, True),
        (CBOW, {}, None, False),
        (CBOW, {"online": True}, None, True),
    ],
)
def test_kernels_train_on_a_short_text_when_they_are_asked_for(
    corpus, monkeypatch, of, options, fast, compiles
):
    monkeypatch.delenv("HSTREE_FAST")
    model = of(tree("huffman", corpus), dim=5, epochs=1, **options).fit(corpus, fast=fast)
    assert (model.history_.kernels != "numpy") == compiles


def test_a_trainer_compiles_before_its_first_step_and_moves_nothing(corpus):
    model = LanguageModel(tree("wide", corpus), dim=13, batch_size=50)
    windows = model.windows(corpus)
    before = {name: array.copy() for name, array in model.parameters().items()}
    trainer = model.trainer(windows)
    for name, array in model.parameters().items():
        np.testing.assert_array_equal(array, before[name])
    before = n_compiled()
    for contexts, targets, prepared in islice(trainer.epoch_batches(windows), 3):
        trainer.step(contexts, targets, 0.1, prepared)
    assert n_compiled() == before > 0


def n_compiled():
    """Return the number of functions in machine code, for each of their signatures."""
    names = ("updates", "decisions", "windows")
    modules = [importlib.import_module(f"hstree.kernels.{name}") for name in names]
    functions = {id(f): f for module in modules for f in vars(module).values()}
    return sum(len(getattr(f, "signatures", ())) for f in functions.values())

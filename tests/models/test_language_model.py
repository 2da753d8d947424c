"""The language model end to end: training, scoring, the same start for every tree, its folder."""

import hashlib
import json
import math
from collections import Counter

import numpy as np
import pytest
from safetensors.numpy import load, save

import hstree
from hstree.data.splits import read_before
from hstree.data.text_score import perplexity, unigram_score
from hstree.errors import FileFormatError, InputError, OptionError
from hstree.layers.registry import LAYERS, LayerSpec
from hstree.models.lbl import LanguageModel
from tests.texts import corpus_of, markov_lines

SMALL = {"dim": 12, "context": 2, "epochs": 5, "batch_size": 128, "dropout": 0.0}


@pytest.fixture(scope="module")
def markov(tmp_path_factory):
    """Return a training, a validation and a test corpus of a chain, and its entropy on the last."""
    folder = tmp_path_factory.mktemp("markov")
    found = []
    for name, seed, size in (("train", 0, 20_000), ("valid", 1, 3_000), ("test", 2, 8_000)):
        lines, entropy = markov_lines(size, seed)
        found.append(corpus_of(folder, lines, f"{name}.txt"))
    return *found, entropy


def learned_over(method, train, valid):
    return LanguageModel(hstree.build(method, train), **SMALL).fit(train, valid)


@pytest.fixture(scope="module")
def learned(markov):
    return learned_over("huffman", *markov[:2])


@pytest.fixture(scope="module")
def model(markov):
    """Return a model that was trained for an epoch."""
    tree = hstree.build("huffman", markov[0])
    return LanguageModel(tree, **SMALL | {"epochs": 1}).fit(markov[0])


@pytest.fixture
def saved(markov, tmp_path):
    """Return the folder of an untrained model."""
    LanguageModel(hstree.build("huffman", markov[0]), **SMALL).save(tmp_path)
    return tmp_path


def test_a_chain_of_known_entropy_is_learned(markov, learned):
    train, valid, test, entropy = markov
    # The line end counts too: it comes once in 21 tokens, and the model cannot foresee it.
    per_line = 20 * entropy + math.log(21) + 20 * math.log(21 / 20)
    best = math.exp(per_line / 21)
    for model in (learned, learned_over("flat", train, valid)):
        assert best * 0.97 < model.perplexity(test) < best * 1.05
        assert model.history_.epochs[-1].train < model.history_.epochs[0].train


def test_an_untrained_model_is_the_unigram_distribution_of_its_text(markov):
    train, _, test, _ = markov
    tree = hstree.build("balanced", dict.fromkeys(train.vocabulary.words, 1))
    model = LanguageModel(tree, **{**SMALL, "epochs": 0}).fit(train)
    unigram = unigram_score(model.reencode(test), model.reencode(train).counts).perplexity
    assert model.perplexity(test) == pytest.approx(unigram, rel=1e-5)


def test_a_warm_start_begins_with_the_vectors_of_the_same_words(markov, learned, model):
    train, _, test, _ = markov
    old = learned
    # the same words in another order, and one that is new
    words = (*reversed(old.spec.labels), "new")
    tree = hstree.build("balanced", dict.fromkeys(words, 1))
    begun = LanguageModel(tree, **{**SMALL, "epochs": 0}).fit(train, warm_start=old)
    new, was = begun.context_model, old.context_model
    np.testing.assert_array_equal(new.position, was.position)
    for i, word in enumerate(begun.spec.labels):
        if word != "new":
            there = old.spec.labels.index(word)
            np.testing.assert_array_equal(new.embedding[i], was.embedding[there])
    cold = LanguageModel(tree, **{**SMALL, "epochs": 0}).fit(train)
    at = begun.spec.labels.index("new")
    np.testing.assert_array_equal(new.embedding[at], cold.context_model.embedding[at])
    assert begun.perplexity(test) == pytest.approx(cold.perplexity(test))
    assert begun.texts == old.texts
    warm = LanguageModel(old.tree, **SMALL | {"epochs": 1}).fit(train, warm_start=old)
    assert warm.perplexity(test) < model.perplexity(test)


@pytest.mark.parametrize("change", [{"dim": 8}, {"context": 3}, {"full": True}])
def test_vectors_of_other_sizes_begin_no_training(markov, change):
    train = markov[0]
    tree = hstree.build("huffman", train)
    old = LanguageModel(tree, **{**SMALL, "epochs": 0}).fit(train)
    with pytest.raises(OptionError, match="give a model of the same kind and sizes"):
        LanguageModel(tree, **{**SMALL, **change}).fit(train, warm_start=old)
    with pytest.raises(OptionError, match="cannot begin the training of cbow"):
        hstree.CBOW(tree, dim=12).fit(train, warm_start=old)
    before = old.context_model.embedding.copy()
    other = LanguageModel(tree, **{**SMALL, **change})
    with pytest.raises(OptionError, match="same kind and sizes"):
        old.fit(train, warm_start=other)
    np.testing.assert_array_equal(old.context_model.embedding, before)
    with pytest.raises(OptionError, match="a trained model, not str; read a saved model"):
        old.fit(train, warm_start="folder")


def test_lines_that_a_warm_start_has_read_are_named(markov):
    train, _, test, _ = markov
    tree, options = hstree.build("huffman", train), {**SMALL, "epochs": 0}
    old = LanguageModel(tree, **options).fit(test)
    clean = LanguageModel(tree, **options).fit(train)
    of_both = [LanguageModel(tree, **options).fit(train, warm_start=one) for one in (old, clean)]
    assert "was trained or validated on lines" in read_before(test, training=of_both[0].texts)
    assert read_before(test, training=of_both[1].texts) is None


def test_a_saved_model_with_full_matrices_is_the_same_model(markov, tmp_path):
    train, valid, test, _ = markov
    model = LanguageModel(hstree.build("huffman", train), **SMALL | {"full": True, "epochs": 1})
    model.fit(valid).save(tmp_path)
    assert LanguageModel.load(tmp_path).perplexity(test) == model.perplexity(test)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("config.json", b"{", "config.json"),
        ("config.json", b"[]", "config.json is damaged: Expected `object`, got `array`"),
        ("config.json", b'{"format": "hstree model", "version": 7}', "version 7"),
        ("config.json", b'{"format": "hstree model", "version": 1}', "not the ones"),
        ("weights.safetensors", b"", "not the ones"),
        ("weights.safetensors", b"\x80\x04pickle", "not the ones"),
        ("tree.json", b"{}", "tree.json"),
        ("tree.json", None, "not the ones that config"),
    ],
)
def test_a_damaged_folder_is_named(markov, saved, file, content, said):
    if content is None:
        hstree.build("balanced", markov[0]).save(saved / file)
    else:
        (saved / file).write_bytes(content)
    with pytest.raises(hstree.HstreeError, match=said):
        LanguageModel.load(saved)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"odd": 1}, "odd"),
        ({"dim": -3}, "dim is -3"),
        ({"dim": 13}, "must be float32 of shape"),
        ({"epochs": 1.5}, "epochs is 1.5; it must be a whole number"),
        ({"dropout": None}, "dropout is None; it must be a number"),
        ({"context": [2]}, "no model can be made"),
    ],
)
def test_a_config_that_fits_no_model_is_refused(saved, change, said):
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(FileFormatError, match=said):
        LanguageModel.load(saved)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t | {"node_bias": t["node_bias"][1:].copy()}, "node_bias must be float32"),
        (lambda t: t | {"node_bias": t["node_bias"].astype(np.int32)}, "found int32"),
        (lambda t: {k: v for k, v in t.items() if k != "position"}, "found nothing"),
        (lambda t: t | {"embedding": t["embedding"] * np.float32(np.nan)}, "not finite"),
    ],
)
def test_weights_that_do_not_fit_are_named(saved, change, said):
    replace_tensors(saved, change(load((saved / "weights.safetensors").read_bytes())))
    with pytest.raises(FileFormatError, match=said):
        LanguageModel.load(saved)


def replace_tensors(folder, tensors):
    """Replace the tensors of a saved model, and their hash in its config."""
    content = save(tensors)
    (folder / "weights.safetensors").write_bytes(content)
    config = json.loads((folder / "config.json").read_text())
    config["weights_sha256"] = hashlib.sha256(content).hexdigest()
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("layer", LAYERS.names())
def test_every_tensor_of_every_layer_is_checked(tmp_path, layer):
    corpus = corpus_of(tmp_path, markov_lines(300, 0)[0])
    words = corpus.counted_vocabulary()
    source = (
        words if LAYERS.get(layer).takes is hstree.Vocabulary else hstree.build("huffman", words)
    )
    LanguageModel(LayerSpec(source, layer), **SMALL | {"epochs": 1}).fit(corpus).save(tmp_path)
    tensors = load((tmp_path / "weights.safetensors").read_bytes())
    for name, tensor in tensors.items():
        wrong = [tensor[:-1], tensor[..., None], tensor[:0], tensor[0]]
        wrong += [
            tensor.astype(dtype) for dtype in ("f2", "f8", "i4", "u1") if tensor.dtype != dtype
        ]
        if tensor.dtype.kind == "f":
            wrong += [
                np.where(tensor == tensor.flat[0], value, tensor) for value in (np.nan, np.inf)
            ]
        for value in wrong:
            replace_tensors(tmp_path, tensors | {name: np.ascontiguousarray(value, value.dtype)})
            with pytest.raises(FileFormatError) as caught:
                LanguageModel.load(tmp_path)
            assert "\n" not in str(caught.value)
            assert str(tmp_path) in str(caught.value)


def test_questions_take_words_or_ids(model):
    by_words = model.log_prob([["w1", "w2"], ["w3"], []])
    ids = model.vocabulary.ids(["w1", "w2", "<eos>", "w3", "<eos>", "<eos>"]).reshape(3, 2)
    np.testing.assert_array_equal(by_words, model.log_prob(ids))
    longer = model.log_prob([["w5", "w1", "w2"]])
    np.testing.assert_allclose(longer, by_words[:1], rtol=1e-5)
    _, log_prob = model.top_k([["w1", "w2"]], 3)
    np.testing.assert_allclose(np.sort(by_words[0])[::-1][:3], log_prob[0], rtol=1e-6)
    assert len(model.sample(7, ["w1"])) == 7
    assert model.sample(7, ["w1"], random_state=1) == model.sample(7, ["w1"], random_state=1)


def test_predicted_words_are_the_most_probable_of_all(model):
    found = model.predict([["w1", "w2"], []], k=3)
    for log_prob, words in zip(model.log_prob([["w1", "w2"], []]), found, strict=True):
        best = np.argsort(-log_prob)[:3]
        assert [word for word, _ in words] == [model.tree.labels[i] for i in best]
        assert [p for _, p in words] == pytest.approx(np.exp(log_prob[best]), rel=1e-5)
    assert sum(p for _, p in model.predict([["w1"]], k=10**6)[0]) == pytest.approx(1, abs=1e-6)
    assert model.predict([]) == []


def test_texts_are_sampled_side_by_side(model):
    words = model.vocabulary.words
    texts = model.samples(2, [["w1"]] * 6000, random_state=3)
    pairs = Counter((first, second) for first, second in texts)
    found = np.array([[pairs[a, b] for b in words] for a in words]) / len(texts)
    first, second = model.log_prob([["w1"]]), model.log_prob([["w1", word] for word in words])
    np.testing.assert_allclose(found, np.exp(first.T + second), atol=0.02)
    assert model.samples(3, [["w1"], []])[0] != model.samples(3, [[], ["w1"]])[0]
    assert model.samples(0, [[]]) == [[]]


def test_questions_that_cannot_be_answered(model):
    with pytest.raises(OptionError, match="length is -1; it must be a whole number, 0 or more"):
        model.sample(length=-1)
    with pytest.raises(
        OptionError, match=r"random_state is .*; it must be a whole number from 0 to 4294967295"
    ):
        model.sample(length=1, random_state=-1)
    with pytest.raises(InputError, match="'zebra' is not among the labels"):
        model.log_prob([["zebra"]])
    for shape in ((3, 5), (2,), (1, 2, 1)):
        with pytest.raises(InputError, match=r"this model needs the shape \(B, 2\)"):
            model.log_prob(np.zeros(shape, int))
    for label in (-1, len(model.spec.labels)):
        with pytest.raises(InputError, match="ids outside 0 to"):
            model.log_prob(np.full((1, 2), label))
    assert np.isfinite(model.log_prob(np.zeros((1, 2), int))).all()


def test_mean_predicted_vectors_are_the_means_over_target_positions(markov, model):
    test = markov[2]
    found = model.mean_predicted_vectors(test)
    windows = model.windows(test)
    batches = list(windows.batches(1000))
    hidden = np.concatenate([model.context_model.hidden(contexts) for contexts, _, _ in batches])
    targets = np.concatenate([t for _, t, _ in batches])
    for label in np.unique(targets):
        expected = hidden[targets == label].astype(float).mean(axis=0)
        np.testing.assert_allclose(found.vectors[label], expected, rtol=1e-5, atol=1e-6)
    assert found.counts.tolist() == np.bincount(targets, minlength=len(found.labels)).tolist()


def test_a_word_that_is_never_a_target_gets_the_mean_over_all(model, tmp_path):
    found = model.mean_predicted_vectors(corpus_of(tmp_path, ["w1 w2"]))
    seen = found.counts > 0
    assert not seen.all()
    expected = found.vectors[seen].mean(axis=0)
    np.testing.assert_allclose(found.vectors[~seen][0], expected, rtol=1e-5)


def test_perplexity_of_nothing_and_of_the_impossible():
    assert math.isnan(perplexity(0.0, 0))
    assert perplexity(1e6, 1) == math.inf

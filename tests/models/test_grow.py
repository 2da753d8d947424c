"""Models that continue with a tree that grew or was pruned."""

import numpy as np
import pytest

import hstree
from hstree.errors import OptionError
from tests.texts import corpus_of, markov_lines

SIZES = {"dim": 8, "epochs": 1, "batch_size": 64, "random_state": 3}


@pytest.fixture
def texts(tmp_path):
    """A text of few words, and a longer one that has more."""
    few = corpus_of(tmp_path, markov_lines(2_000, 0)[0], "few.txt", unk=True)
    more = markov_lines(4_000, 1, n_words=12)[0]
    return few, corpus_of(tmp_path, more, "more.txt", unk=True)


@pytest.fixture(params=[hstree.LanguageModel, hstree.CBOW])
def trained(request, texts):
    return request.param(hstree.build("huffman", texts[0]), **SIZES).fit(texts[0])


def test_a_grown_model_has_what_the_old_one_learned(trained, texts):
    grown = trained.grow(hstree.grow(trained.tree, texts[1]))
    assert type(grown) is type(trained)
    for name, array in trained.parameters().items():
        assert np.array_equal(grown.parameters()[name][: len(array)], array), name
        assert not np.shares_memory(grown.parameters()[name], array)
    assert not grown.layer.weight[len(trained.layer.weight) :].any()
    assert grown.texts == trained.texts


def test_a_grown_model_goes_on_training_after_it_was_saved(trained, texts, tmp_path):
    grown = trained.grow(hstree.grow(trained.tree, texts[1]))
    grown.save(tmp_path / "model")
    again = hstree.load_model(tmp_path / "model")
    before = again.perplexity(texts[1])
    assert before == grown.perplexity(texts[1])
    again.fit(texts[1], warm_start=again)
    after = again.perplexity(texts[1])
    assert np.isfinite(after)
    assert after < before
    assert len(again.texts) == 2


def test_going_on_begins_with_all_weights(trained, texts):
    weights = {name: array.copy() for name, array in trained.parameters().items()}
    trained.epochs = 0
    trained.fit(texts[0], warm_start=trained)
    for name, array in trained.parameters().items():
        assert np.array_equal(array, weights[name]), name


def test_a_pruned_model_keeps_the_rows_that_are_left(trained):
    pruned = trained.grow(hstree.prune(trained.tree, trained.tree.labels[2:]))
    rows = hstree.carried_rows(trained.tree, pruned.tree)
    assert np.array_equal(pruned.layer.weight, trained.layer.weight[rows.old])
    assert np.array_equal(pruned.context_model.embedding, trained.context_model.embedding[2:])


def test_options_of_a_grown_model_can_change(trained, texts):
    tree = hstree.grow(trained.tree, texts[1])
    assert trained.grow(tree, epochs=7).epochs == 7
    with pytest.raises(OptionError, match="cannot begin the training"):
        trained.grow(tree, dim=9)


def test_labels_whose_codes_stay_have_the_same_probabilities_after_growing(texts, tmp_path):
    model = hstree.LanguageModel(hstree.build("huffman", texts[0]), **SIZES).fit(texts[0])
    grown = model.grow(hstree.grow(model.tree, ["x", "y"]))
    grown.save(tmp_path / "model")
    contexts = [["w0", "w1"], ["w3", "w2", "w5"]]
    before, after = (m.log_prob(contexts) for m in (model, hstree.load_model(tmp_path / "model")))
    # the new labels are beside the one that does not occur, which shares its probability with them
    unseen, others = before.shape[1] - 1, slice(before.shape[1] - 1)
    assert model.tree.counts[unseen] == 0
    assert after[:, others] == pytest.approx(before[:, others])
    assert np.exp(after[:, unseen:]).sum(axis=1) == pytest.approx(np.exp(before[:, unseen]))
    assert np.exp(after).sum(axis=1) == pytest.approx([1, 1])
    grown.fit(texts[0], warm_start=grown)
    assert grown.perplexity(texts[0]) < model.perplexity(texts[0])


def test_what_cannot_grow_is_refused(texts):
    tree = hstree.build("huffman", texts[0])
    words = texts[0].counted_vocabulary()
    flat = hstree.LanguageModel(hstree.layers.LayerSpec(words, "flat"), dim=2)
    with pytest.raises(OptionError, match="'flat' is over words"):
        flat.grow(tree)
    features = hstree.LanguageModel(hstree.layers.LayerSpec(tree, "ngrams"), dim=2)
    with pytest.raises(OptionError, match="NgramSoftmax cannot continue"):
        features.grow(hstree.grow(tree, ["x"]))

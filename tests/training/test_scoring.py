"""Scores of a text: token by token, in the order of the text, and their totals."""

import sys

import numpy as np
import pytest

import hstree
from hstree.data.text_score import unigram_score
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError, MissingExtraError
from hstree.layers.registry import LayerSpec
from hstree.models.lbl import LanguageModel
from hstree.training.scoring import BATCH
from tests import needs
from tests.texts import corpus_of, markov_lines

SMALL = {"dim": 8, "context": 2, "epochs": 1, "dropout": 0.0}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Return a trained model, a text of some batches, and its words one by one."""
    folder = tmp_path_factory.mktemp("text")
    train = corpus_of(folder, markov_lines(4000, 0)[0], "train.txt", unk=True)
    lines = markov_lines(3 * BATCH, 1)[0]
    lines[3], lines[5] = "zebra w1", ""
    test = corpus_of(folder, lines, "test.txt", vocabulary=train.vocabulary)
    model = LanguageModel(hstree.build("huffman", train), **SMALL).fit(train)
    return model, test, [word for line in lines for word in [*line.split(), "<eos>"]]


def test_every_token_has_the_nll_of_its_word_after_the_words_before_it(text):
    model, test, words = text
    found = model.nll(test)
    assert test.words() == words
    assert (found.dtype, found.shape) == (np.float64, (len(words),))
    zebra = words.index("zebra")
    for position in (0, 1, zebra, zebra + 1, BATCH - 1, BATCH, BATCH + 1, len(words) - 1):
        word = "<unk>" if words[position] == "zebra" else words[position]
        before = words[max(0, position - 2) : position]
        log_prob = model.log_prob([before])[0, model.vocabulary.index(word)]
        assert found[position] == pytest.approx(-log_prob, rel=1e-5)


def test_the_score_is_the_sum_over_tokens(text):
    model, test, words = text
    nll, score = model.nll(test), model.score(test)
    oov = np.array([word == "zebra" for word in words])
    assert (score.tokens, score.oov) == (len(words), 1)
    assert score.nll == pytest.approx(nll.sum(), rel=1e-12)
    assert score.nll_of_oov == pytest.approx(nll[oov].sum(), rel=1e-12)
    assert score.perplexity_without_oov == pytest.approx(np.exp(nll[~oov].mean()), rel=1e-12)


@pytest.mark.parametrize("kind", ["model", "ensemble"])
def test_the_frame_of_a_score_has_a_row_per_token(text, kind):
    pytest.importorskip("pandas", reason=needs.NOTEBOOK)
    model, test, words = text
    scored = model if kind == "model" else hstree.Ensemble([model, model])
    part = test.select_lines(2, test.n_lines)
    first = len(test) - len(part)
    frame = scored.score(part).to_frame()
    assert frame["word"].tolist() == words[first:]
    np.testing.assert_allclose(frame["nll"][9:], model.nll(test)[first + 9 :], rtol=1e-5)
    assert frame["word"][frame["is_oov"]].tolist() == ["zebra"]
    zebra = frame[frame["is_oov"]]
    assert zebra[["line", "position"]].values.tolist() == [[2, 1]]
    assert frame["line"].iloc[-1] == part.n_lines


def test_a_score_without_tokens_or_without_pandas_has_no_frame(text, monkeypatch):
    model, test, _ = text
    with pytest.raises(InputError, match="totals"):
        unigram_score(test, test.counts).to_frame()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="pip install"):
        model.score(test).to_frame()


def test_the_unigram_score_takes_a_count_of_0_as_half(tmp_path):
    vocabulary = Vocabulary(["a", "b", "<unk>", "<eos>"], [1, 1, 1, 1])
    corpus = corpus_of(tmp_path, ["a b b x"], vocabulary=vocabulary)
    score = unigram_score(corpus, np.array([1, 0, 2, 4]))
    nll = dict(zip("abxe", -np.log(np.array([1, 0.5, 2, 4]) / 7.5), strict=True))
    assert score.nll == pytest.approx(sum(nll[c] for c in "abbxe"))
    assert (score.tokens, score.oov) == (5, 1)
    assert score.nll_of_oov == pytest.approx(nll["x"])


@pytest.mark.parametrize("kind", [LanguageModel, hstree.SkipGram])
def test_ln_z_is_measured_with_the_score(text, kind):
    _, test, _ = text
    words = test.counted_vocabulary()
    given = {"dim": 4, "epochs": 1, "learning_rate": 0.1}
    model = kind(LayerSpec(words, "self-normalised"), **given).fit(test)
    assert model.score(test).log_normaliser is None
    score = model.score(test, details=True)
    # (T,) ln Z in each context; skip-gram's is the mean over the words of the window
    log_z = []
    for contexts, _, _ in model.windows(test).batches(1):
        words = [[[word] for word in contexts[0] if word >= 0] or [[-1]], contexts][
            kind == LanguageModel
        ]
        logits = (
            model.context_model.hidden(np.array(words)) @ model.layer.weight.T + model.layer.bias
        )
        log_z.append(np.log(np.exp(logits.astype(float)).sum(axis=1)).mean())
    figures = score.log_normaliser
    assert figures.mean == pytest.approx(np.mean(log_z), abs=1e-6)
    assert figures.sd == pytest.approx(np.std(log_z), abs=1e-6)
    unnormalised = np.exp(np.mean(model.nll(test) - np.array(log_z)))
    assert figures.unnormalised_perplexity == pytest.approx(unnormalised, rel=1e-6)
    # Trees are normalised by design.
    tree = kind(hstree.build("huffman", test), dim=4, epochs=0).fit(test)
    assert tree.score(test, details=True).log_normaliser is None

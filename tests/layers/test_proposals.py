"""Proposals draw labels as often as their log-probabilities say."""

import numpy as np
import pytest
from scipy.stats import chisquare

import hstree
from hstree.data.vocabulary import EOS, Vocabulary
from hstree.data.windows import SymmetricWindows, Windows
from hstree.errors import FileFormatError, InputError, OptionError
from hstree.layers.proposals import Unigram, proposal_of
from hstree.layers.registry import layer_spec
from hstree.models import MODELS, load
from hstree.ngrams.kneser_ney import KneserNey
from hstree.tree import Tree
from tests.texts import corpus_of, fitted, markov_lines

COUNTS = np.array([5, 0, 9, 1, 30, 2, 2, 4])
WORDS = Vocabulary([EOS, *"abcdefg"], COUNTS)
HIDDEN = np.zeros((3, 4))


def test_counts_to_a_power():
    mass = np.array([5, 0.5, 9, 1, 30, 2, 2, 4])
    for alpha in (1.0, 0.75):
        proposal = proposal_of("unigram", WORDS, alpha=alpha)
        expected = np.log(mass**alpha / (mass**alpha).sum())
        np.testing.assert_allclose(proposal.log_prob(np.arange(8), HIDDEN), expected)
    uniform = proposal_of("uniform", WORDS, alpha=0.75)
    np.testing.assert_allclose(uniform.log_prob(np.arange(8), HIDDEN), np.log(np.full(8, 1 / 8)))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("name", ["unigram", "uniform"])
def test_samples_follow_the_log_probabilities(name, shared):
    proposal = proposal_of(name, WORDS, alpha=0.75)
    labels, log_prob = proposal.sample(20_000, np.random.default_rng(0), HIDDEN, shared=shared)
    assert labels.shape == log_prob.shape == ((20_000,) if shared else (3, 20_000))
    np.testing.assert_array_equal(log_prob, proposal.log_prob(labels, HIDDEN))
    expected = labels.size * np.exp(proposal.log_prob(np.arange(8), HIDDEN))
    assert chisquare(np.bincount(labels.ravel(), minlength=8), expected).pvalue > 1e-3


@pytest.mark.parametrize("by_arrival", [True, False])
def test_unique_samples_are_the_first_different_ones(by_arrival):
    proposal = Unigram(COUNTS)
    proposal.different = -1 if by_arrival else np.inf
    times, log_miss = np.zeros(8), []
    for seed in range(2_000):
        (labels, log_prob), tries = proposal.sample_unique(3, np.random.default_rng(seed))
        assert len(set(labels.tolist())) == 3 <= tries == int(tries)
        np.testing.assert_array_equal(log_prob, proposal.log_prob(labels, HIDDEN))
        times[labels] += 1
        log_miss.append(tries * np.log1p(-np.exp(proposal.log_prob(np.arange(8), HIDDEN))))
    # as many are drawn as are expected in the tries
    share, expected = times / times.sum(), -np.expm1(log_miss).sum(axis=0)
    np.testing.assert_allclose(share, expected / expected.sum(), atol=0.03)
    # The first three of a succession of draws: in proportion to the counts, without replacement.
    q = np.exp(proposal.log_prob(np.arange(8), HIDDEN))
    expected = np.zeros(8)
    for a in range(8):
        for b in set(range(8)) - {a}:
            for c in set(range(8)) - {a, b}:
                p = q[a] * q[b] / (1 - q[a]) * q[c] / (1 - q[a] - q[b])
                expected[[a, b, c]] += p
    np.testing.assert_allclose(times / 2_000, expected, atol=0.05)
    (labels, _), tries = proposal.sample_unique(9, np.random.default_rng(0))
    assert (labels.tolist(), tries) == (list(range(8)), np.inf)


def test_another_proposal_is_refused():
    with pytest.raises(OptionError, match="proposal is 'bigrams'; it must be one of 'unigram'"):
        proposal_of("bigrams", WORDS)


@pytest.mark.parametrize("context", [1, 2, 6])
@pytest.mark.parametrize("name", ["bigram", "kn"])
def test_n_grams_of_the_training_text(name, context, tmp_path):
    corpus = corpus_of(tmp_path, markov_lines(3_000, 0)[0])
    windows = Windows(corpus, context)
    order = min({"bigram": 2, "kn": 5}[name], context + 1)
    proposal = proposal_of(name, corpus.vocabulary)
    proposal.prepare(windows)
    contexts, targets, _ = next(windows.batches(3, np.random.default_rng(0)))
    labels, log_prob = proposal.sample(20_000, np.random.default_rng(1), HIDDEN, contexts)
    expected = KneserNey(order).fit(corpus).log_prob(contexts[:, context + 1 - order :])
    np.testing.assert_allclose(log_prob, np.take_along_axis(expected, labels, axis=1))
    of_targets = proposal.log_prob(targets, HIDDEN, contexts)
    np.testing.assert_allclose(of_targets, expected[np.arange(3), targets])
    for drawn, prob in zip(labels, 20_000 * np.exp(expected), strict=True):
        assert chisquare(np.bincount(drawn, minlength=len(prob)), prob).pvalue > 1e-3


def test_n_grams_need_the_words_before(tmp_path):
    corpus = corpus_of(tmp_path, markov_lines(300, 0)[0])
    proposal = proposal_of("bigram", corpus.vocabulary)
    with pytest.raises(OptionError, match="proposal is 'bigram', which needs a"):
        proposal.prepare(SymmetricWindows(corpus, 2))
    proposal.prepare(Windows(corpus, 2))
    with pytest.raises(OptionError, match="proposal is 'bigram', which needs"):
        proposal.sample(5, np.random.default_rng(0), HIDDEN)


def trees(tmp_path):
    """Yield files of trees over the words in another order: binary, wide, two codes for a word."""
    words = [*"gfedcba", EOS]
    counts = COUNTS[::-1]
    vocabulary = Vocabulary(words, counts)
    wide = [[1, ~0, 2], [~1, ~2], [~3, 3, ~4], [~5, ~6, ~7]]
    double = [[1, ~0, 2], [~1, ~2], [~3, ~0, 3, ~4], [~5, ~6, ~7]]
    for name, tree in {
        "binary": hstree.build("huffman", vocabulary),
        "flat": hstree.build("flat", vocabulary),
        "wide": Tree.from_children(words, wide),
        "double": Tree.from_children(words, double),
    }.items():
        tree.save(tmp_path / f"{name}.json")
        yield tmp_path / f"{name}.json"


def tree_proposal(path):
    """Return the proposal of a tree with drawn parameters, for hidden vectors of length 4."""
    proposal = proposal_of(str(path), WORDS, dim=4, dtype=np.float64)
    proposal.check()
    for array in proposal.parameters().values():
        array[...] = np.random.default_rng(1).standard_normal(array.shape)
    return proposal


def test_a_tree_draws_by_its_exact_probabilities(tmp_path, monkeypatch):
    hidden = np.random.default_rng(0).standard_normal((3, 4))
    for narrow in (32, 2):
        monkeypatch.setattr("hstree.layers.proposals.NARROW", narrow)
        for path in trees(tmp_path):
            proposal = tree_proposal(path)
            everything = proposal.log_prob(np.tile(np.arange(8), (3, 1)), hidden)
            of_tree = proposal.layer.log_prob(hidden)[:, ::-1]  # in the vocabulary's order
            np.testing.assert_allclose(everything, of_tree)
            labels, log_prob = proposal.sample(20_000, np.random.default_rng(0), hidden)
            np.testing.assert_allclose(log_prob, np.take_along_axis(everything, labels, axis=1))
            for i in range(3):
                times = np.bincount(labels[i], minlength=8)
                assert chisquare(times, 20_000 * np.exp(everything[i])).pvalue > 1e-3
                assert abs(np.corrcoef(labels[i, 1:], labels[i, :-1])[0, 1]) < 0.05
            one = proposal.sample(1, np.random.default_rng(0), hidden).labels
            assert one.shape == (3, 1)
            assert proposal.sample(4, np.random.default_rng(0), hidden[:0]).labels.shape == (0, 4)


def test_a_tree_starts_as_the_unigram_and_learns_by_its_likelihood(tmp_path):
    path = next(trees(tmp_path))
    proposal = proposal_of(str(path), WORDS, COUNTS + 1, dim=4, dtype=np.float64)
    start = proposal.log_prob(np.arange(8), np.ones((8, 4)))
    np.testing.assert_allclose(np.exp(start), (COUNTS + 1) / (COUNTS + 1).sum())
    proposal = tree_proposal(path)
    hidden, targets = np.random.default_rng(0).standard_normal((5, 4)), np.array([0, 3, 3, 7, 1])
    arrays, gradients = proposal.parameters(), proposal.gradients(hidden, targets)
    assert {g.name for g in gradients} == arrays.keys() == proposal.curvature(COUNTS).keys()
    for g in gradients:
        along = 1e-6 * np.random.default_rng(2).standard_normal(g.values.shape)
        arrays[g.name][g.rows] += along
        above = -proposal.log_prob(targets, hidden).sum()
        arrays[g.name][g.rows] -= 2 * along
        below = -proposal.log_prob(targets, hidden).sum()
        arrays[g.name][g.rows] += along
        assert 2 * (g.values * along).sum() == pytest.approx(above - below, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "samples"), [("nce", 3), ("sampled", 3)])
@pytest.mark.parametrize("model", MODELS.all())
def test_a_tree_is_trained_beside_and_not_saved(name, samples, model, splits, tmp_path):
    path = tmp_path / "tree.json"
    hstree.build("huffman", splits.train).save(path)
    spec = layer_spec(splits.train.vocabulary, name, samples=samples, proposal=str(path))
    key = spec.key()
    fit = {"model": model, "dim": 8, "epochs": 2, "batch_size": 64}
    untrained = fitted(spec, splits, **fit | {"epochs": 0}).perplexity(splits.test)
    model = fitted(spec, splits, **fit)
    assert model.perplexity(splits.test) < 0.99 * untrained
    weight = model.layer.proposal.parameters()["proposal_node_weight"]
    assert np.abs(weight).max() > 0
    model.save(tmp_path / "model")
    # The key depends on the tree, not on the name of its file.
    path.rename(tmp_path / "other.json")
    renamed = layer_spec(spec.source, name, samples=samples, proposal=str(tmp_path / "other.json"))
    assert renamed.key() == key
    hstree.build("balanced", splits.train).save(tmp_path / "other.json")
    assert renamed.key() != key
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.nll(splits.test), model.nll(splits.test))


def test_a_tree_over_other_words_is_refused(tmp_path):
    path = tmp_path / "tree.json"
    hstree.build("huffman", Vocabulary([EOS, *"abcdef", "h"], COUNTS)).save(path)
    spec = layer_spec(WORDS, "nce", proposal=str(path))
    with pytest.raises(InputError, match="a tree over 8 words, 7 of them among the voc"):
        spec.new(4).check()
    hstree.build("huffman", Vocabulary([EOS, *"abcdefgh"], [*COUNTS, 1])).save(path)
    with pytest.raises(InputError, match="a tree over 9 words, 8 of them among the voc"):
        spec.new(4).check()
    path.unlink()
    with pytest.raises(FileFormatError, match=r"tree.json"):
        spec.new(4).check()

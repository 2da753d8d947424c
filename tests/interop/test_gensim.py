"""gensim: it trains on the tree put into it, and what it learned is read back exactly."""

import re
import sys

import numpy as np
import pytest

import hstree
from hstree import formats
from hstree.builders.huffman import huffman
from hstree.data.vectors import WordVectors
from hstree.errors import InputError, MissingExtraError, OptionError
from hstree.interop import gensim as bridge
from hstree.tree import Tree
from tests import needs
from tests.texts import markov_lines

models = pytest.importorskip("gensim.models", reason="needs gensim: pip install '.[gensim]'")

WINDOW = 5


def sentences(n=300):
    draw = np.random.default_rng(0)
    lines = draw.zipf(1.5, (n, 12))
    return [[f"w{number}" for number in line if number < 100] for line in lines.tolist()]


def untrained(text=None, **options):
    options = {"hs": 1, "negative": 0, "sample": 0} | options
    model = models.Word2Vec(vector_size=16, window=WINDOW, min_count=1, workers=1, **options)
    model.build_vocab(sentences() if text is None else text)
    return model


def trained(model):
    text = sentences()
    model.train(text, total_examples=len(text), epochs=2)
    return model


def codes_and_points(model):
    wv = model.wv
    return {
        word: (wv.get_vecattr(word, "code").tolist(), wv.get_vecattr(word, "point").tolist())
        for word in wv.index_to_key
    }


@pytest.mark.parametrize("sg", [0, 1])
def test_the_same_tree_gives_the_same_vectors(sg):
    gensims, ours = untrained(sg=sg), untrained(sg=sg)
    bridge.use_tree(ours, bridge.tree_of(gensims))
    trained(gensims), trained(ours)
    assert np.abs(gensims.syn1).max() > 0
    np.testing.assert_array_equal(ours.wv.vectors, gensims.wv.vectors)
    # gensim counts its nodes backwards from V - 2; row n of ours is node n's.
    np.testing.assert_array_equal(ours.syn1[:-1], gensims.syn1[-2::-1])
    np.testing.assert_array_equal(bridge.layer_of(ours).weight, bridge.layer_of(gensims).weight)


def test_our_huffman_tree_is_gensims_where_no_counts_are_equal():
    words = [f"w{i}" for i in range(8)]
    text = [[word] * 3**rank for rank, word in enumerate(words)]
    model = untrained(text)
    tree = huffman(bridge.vocabulary_of(model))
    assert tree.sha256 == bridge.tree_of(model).sha256


def test_another_tree_gives_other_vectors_and_is_read_out_again():
    model = untrained()
    tree = hstree.build("random", bridge.vocabulary_of(model))
    before = trained(untrained()).wv.vectors
    bridge.use_tree(model, tree)
    trained(model)
    assert not np.array_equal(before, model.wv.vectors)
    back = bridge.tree_of(model)
    assert back.sha256 == tree.sha256
    assert (back.counts == [model.wv.get_vecattr(w, "count") for w in tree.labels]).all()
    assert not model.syn1[-1].any()  # V - 1 nodes, and V rows as gensim has them


def test_bit_0_is_the_first_child_and_point_the_node():
    text = [["a", "b", "c", "a", "b", "a"]]
    model = untrained(text)
    tree = Tree.from_children(["c", "a", "b"], [[1, ~1], [~2, ~0]])
    bridge.use_tree(model, tree)
    assert codes_and_points(model) == {
        "a": ([1], [0]),
        "b": ([0, 0], [0, 1]),
        "c": ([0, 1], [0, 1]),
    }
    assert model.wv.get_vecattr("a", "code").dtype == np.uint8
    assert model.wv.get_vecattr("a", "point").dtype == np.uint32
    assert model.syn1.shape == (3, 16)


def pairs(model, sentence):
    """Yield the vector from which gensim predicts each word of a sentence, and the word."""
    ids = [model.wv.key_to_index[word] for word in sentence]
    for at, word in enumerate(ids):
        context = ids[max(0, at - WINDOW) : at] + ids[at + 1 : at + WINDOW + 1]
        if model.sg:
            yield from ((model.wv.vectors[other], word) for other in context)
        else:
            empty = np.zeros(model.vector_size, np.float32)
            yield (model.wv.vectors[context].mean(axis=0) if context else empty), word


@pytest.mark.parametrize("sg", [0, 1])
def test_the_layer_gives_the_held_out_loss_of_gensims_weights(sg):
    model = untrained(sg=sg)
    bridge.use_tree(model, hstree.build("random", bridge.vocabulary_of(model)))
    trained(model)
    held_out = sentences()[:40]
    layer = bridge.layer_of(model)
    both = [pair for sentence in held_out for pair in pairs(model, sentence)]
    hidden, targets = (np.array(column) for column in zip(*both, strict=True))
    # Logits of the decisions by word2vec's formula, from gensim's code, point and syn1
    code, point = (model.wv.expandos[name] for name in ("code", "point"))
    z = np.concatenate([(1 - 2.0 * code[v]) * (model.syn1[point[v]] @ h) for h, v in both])
    nll = layer.nll(hidden, targets).sum()
    assert nll == pytest.approx(np.logaddexp(0, -z).sum(), rel=1e-6)
    total = model.score(held_out, total_sentences=len(held_out)).sum()  # by a coarse table
    assert total == pytest.approx(-nll, rel=0.05)
    np.testing.assert_allclose(np.exp(layer.log_prob(hidden[:3])).sum(axis=1), 1, rtol=1e-6)


def test_a_saved_model_is_refused_with_commands_that_export_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = untrained()
    model.save("w2v.model")
    with pytest.raises(InputError, match="is a pickle") as refused:
        formats.read("w2v.model")
    commands = re.search(
        r"by (model = \S+) and, for its tree, (\S+), or for its vectors (.+)$", str(refused.value)
    )
    exec("\n".join(["import gensim, hstree.interop.gensim", *commands.groups()]), {})
    assert hstree.load("tree.json") == bridge.tree_of(model)
    np.testing.assert_array_equal(WordVectors.read("vectors.vec").vectors, model.wv.vectors)


@pytest.mark.parametrize("sg", [0, 1])
def test_our_models_read_the_words_that_gensim_reads(sg):
    """With gensim's weights over its tree they score them as its layer does."""
    model = trained(untrained(sg=sg))
    kind = hstree.SkipGram if sg else hstree.CBOW
    ours = kind(bridge.tree_of(model), dim=16, window=WINDOW)
    layer = bridge.layer_of(model)
    ours.context_model.embedding[:] = model.wv.vectors
    ours.layer.weight[:] = layer.weight
    ours.layer.bias[:] = 0
    held_out = sentences()[:20]
    nll = []
    for sentence in held_out:
        for at, word in enumerate(sentence):
            around = sentence[max(0, at - WINDOW) : at] + sentence[at + 1 : at + WINDOW + 1]
            vectors = model.wv[around] if around else np.zeros((1, 16), np.float32)
            hidden = vectors if sg else vectors.mean(axis=0, keepdims=True)
            targets = np.full(len(hidden), model.wv.key_to_index[word])
            nll.append(layer.nll(hidden, targets).mean())
    with_others = [["of", "another", *line, "vocabulary"] for line in held_out]
    np.testing.assert_allclose(ours.nll([[], *with_others]), nll, rtol=1e-5)


@pytest.mark.parametrize("online", [False, True])
def test_our_models_train_on_gensims_tree(online, tmp_path):
    if online:
        pytest.importorskip("numba", reason=needs.NUMBA)
    lines = [line.split() for line in markov_lines(4_000, 0)[0]]
    tree = bridge.tree_of(untrained(lines))
    text = [[], *lines, ["unknown"]]
    model = hstree.CBOW(tree, dim=8, window=1, epochs=3, online=online).fit(text)
    unigram = hstree.CBOW(tree, dim=8, epochs=0).fit(text).perplexity(text)
    assert model.perplexity(text) < 0.9 * unigram
    model.save(tmp_path / "model")
    assert hstree.load_model(tmp_path / "model").perplexity(text) == model.perplexity(text)
    with pytest.raises(InputError, match="not include <eos>"):
        hstree.LanguageModel(tree).fit(text)


def test_a_comparison_over_gensims_tree(tmp_path):
    candidates = [bridge.tree_of(untrained()), "huffman", "flat"]
    text = [[*line, "w999"] for line in sentences()]
    options = {"stop": hstree.Epochs(1), "speed_rounds": 0, "dim": 8}
    compared = hstree.compare(text, candidates, tmp_path, model="cbow", **options)
    known = [word for line in sentences()[-30:] for word in line if word in candidates[0]]
    assert compared.tokens["test"] == len(known)
    assert [candidate.test > 1 for candidate in compared.candidates] == [True] * 3
    with pytest.raises(InputError, match="not include <eos>"):
        hstree.compare(text, candidates, tmp_path / "other", **options)


def test_one_word():
    model = untrained([["a", "a"]])
    tree = bridge.tree_of(model)
    assert (tree.labels, tree.n_nodes, tree.counts.tolist()) == (("a",), 0, [2])
    bridge.use_tree(model, tree)
    assert codes_and_points(model) == {"a": ([], [])}
    assert bridge.layer_of(model).nll(np.zeros((1, 16), np.float32), np.array([0])).tolist() == [0]


def test_what_does_not_fit_is_one_clear_line():
    model = untrained([["a", "b", "c", "d"]])
    for labels, children, message in (
        ("abx", [[~0, 1], [~1, ~2]], r"1 labels are only in the tree \('x', \.\.\.\); 2 words"),
        ("abcd", [[~0, ~1, ~2, ~3]], "node 0 has 4 children"),
        ("abcd", [[1, 2], [~0, ~1], [3, ~2], [~3, ~0]], "'a' has 2 codes"),
    ):
        with pytest.raises(InputError, match=message):
            bridge.use_tree(model, Tree.from_children(list(labels), children))
    tree = bridge.tree_of(model)
    with pytest.raises(OptionError, match="negative=5; create it with"):
        bridge.use_tree(untrained([["a", "b", "c", "d"]], negative=5), tree)
    with pytest.raises(OptionError, match="does not use hierarchical softmax"):
        bridge.tree_of(untrained(hs=0, negative=5))
    with pytest.raises(InputError, match="no vocabulary yet"):
        bridge.use_tree(models.Word2Vec(hs=1, negative=0), tree)
    with pytest.raises(OptionError, match="expected a gensim Word2Vec, not Tree"):
        bridge.tree_of(tree)


def test_vectors_both_ways():
    vectors = WordVectors(["the", "<eos>", "cat"], np.eye(3), counts=[5, 2, 1])
    keyed = bridge.to_keyed_vectors(vectors)
    assert keyed.index_to_key == ["the", "<eos>", "cat"]
    assert keyed.get_vecattr("cat", "count") == 1
    assert keyed["<eos>"].tolist() == [0, 1, 0]
    back = WordVectors.from_keyed_vectors(keyed)
    assert back.labels == vectors.labels
    assert (back.vectors == vectors.vectors).all()
    assert back.counts.tolist() == [5, 2, 1]
    uncounted = bridge.to_keyed_vectors(WordVectors(["a"], [[1]]))
    assert WordVectors.from_keyed_vectors(uncounted).counts is None


def test_counts_that_gensim_makes_up_are_none(tmp_path):
    words = [f"w{number}" for number in range(60)]
    WordVectors(words, np.eye(60)).save(tmp_path / "vectors.vec")
    keyed = models.KeyedVectors.load_word2vec_format(str(tmp_path / "vectors.vec"))
    assert keyed.get_vecattr("w0", "count") == 60
    assert WordVectors.from_keyed_vectors(keyed).counts is None
    for counts in ([3, 2, 1], [*range(61, 1, -1)]):
        few = WordVectors(words[: len(counts)], np.eye(len(counts)), counts=counts)
        back = WordVectors.from_keyed_vectors(bridge.to_keyed_vectors(few))
        assert back.counts.tolist() == counts


def test_a_missing_or_old_gensim_gives_the_command(monkeypatch):
    gensim = sys.modules["gensim"]
    monkeypatch.setattr(gensim, "__version__", "4.3.3")
    with pytest.raises(MissingExtraError, match=r"gensim 4\.3\.3 is too old; get 4\.4 or newer"):
        bridge.to_keyed_vectors(WordVectors(["a"], [[1]]))
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    monkeypatch.setitem(sys.modules, "gensim", None)
    with pytest.raises(MissingExtraError, match=r"pip install --upgrade gensim"):
        bridge.vocabulary_of(None)


def test_words_that_are_numbers_are_named_by_their_digits():
    lines = [[1, 2, 3], [1, 2], [1]]
    model = untrained(lines)
    tree = hstree.build("huffman", bridge.vocabulary_of(model))
    assert tree.labels == ("1", "2", "3")
    bridge.use_tree(model, tree)
    assert bridge.tree_of(model) == tree
    assert WordVectors.from_keyed_vectors(model.wv).labels == ("1", "2", "3")

"""Class trees: the shape of each kind of classes, and what is refused."""

import json
from itertools import pairwise

import numpy as np
import pytest

import hstree
from hstree.builders.classes.bigrams import bigram_counts, bigram_perplexity
from hstree.builders.classes.builder import classes
from hstree.builders.classes.exchange import exchange
from hstree.builders.classes.merging import merge_by_information
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import EOS, Vocabulary
from hstree.errors import InputError, OptionError
from tests.builders.label_sets import label_sets, sets_by_name
from tests.builders.oracle import code_lengths
from tests.strategies import children_of
from tests.texts import corpus_of


@pytest.fixture
def corpus(tmp_path):
    """Sixty words of Zipf's law in lines of eight."""
    rng = np.random.default_rng(0)
    chance = 1 / np.arange(1, 61)
    drawn = rng.choice(60, (300, 8), p=chance / chance.sum())
    return corpus_of(tmp_path, [" ".join(f"w{i}" for i in line) for line in drawn])


@pytest.fixture
def vectors(tmp_path):
    """Vectors near one of three centres, by the word's number; none for w5, w6 and the line end."""
    labels = [f"w{i}" for i in range(60) if i not in (5, 6)]
    kind = [int(label[1:]) % 3 for label in labels]
    rows = 10 * np.eye(3)[kind] + np.random.default_rng(1).normal(size=(58, 3))
    WordVectors(labels, rows).save(tmp_path / "vectors.npy")
    return tmp_path / "vectors.npy"


def classes_of(tree):
    """The words under each child of the root of a two-level tree."""
    children = children_of(tree)
    return [
        {tree.labels[~c] for c in ([child] if child < 0 else children[child])}
        for child in children[0]
    ]


def test_two_levels_of_about_the_square_root(corpus):
    tree = classes(corpus)
    assert tree.fan_out[0] == 8 == tree.meta["classes"]["number"]
    assert tree.depth.max() == 1
    assert tree.names[1:] == tuple(name for name in tree.names if name)


def test_exchange_says_more_of_the_next_word_than_bins_do(corpus):
    by_method = {
        method: classes(corpus, cluster_by=method).meta["classes"]
        for method in ("exchange", "brown", "frequency")
    }
    perplexity = {method: of["bigram_perplexity"] for method, of in by_method.items()}
    assert perplexity["exchange"] == perplexity["brown"]
    assert perplexity["exchange"] < perplexity["frequency"]
    fell = by_method["exchange"]["perplexity_by_sweep"]
    assert fell[-1] == perplexity["exchange"]
    assert fell == sorted(fell, reverse=True)
    assert by_method["exchange"]["moves"] > 0


def test_the_perplexity_is_that_of_the_tree(corpus):
    tree = classes(corpus, n_classes=5)
    number = {word: i for i, words in enumerate(classes_of(tree)) for word in words}
    word_class = np.array([number[word] for word in tree.labels])
    expected = bigram_perplexity(bigram_counts(corpus), word_class)
    assert tree.meta["classes"]["bigram_perplexity"] == pytest.approx(expected, abs=1e-4)


def test_brown_merges_the_classes_by_their_pairs_in_a_binary_tree(corpus):
    brown = classes(corpus, cluster_by="brown")
    assert sets_by_name(brown) == sets_by_name(classes(corpus))
    assert set(brown.fan_out.tolist()) == {2}
    parts = classes_of(classes(corpus))
    word_class = {word: i for i, words in enumerate(parts) for word in words}
    text = [EOS, *(corpus.vocabulary.words[i] for i in corpus.ids())]
    pairs = np.zeros((len(parts), len(parts)), int)
    for before, after in pairwise(text):
        pairs[word_class[before], word_class[after]] += 1
    expected = list(parts)
    for a, b in merge_by_information(pairs).tolist():
        expected.append(expected[a] | expected[b])
    subtrees = {frozenset(labels) for labels in label_sets(brown)}
    assert subtrees >= {frozenset(words) for words in expected}
    found = classes(corpus, cluster_by="brown", n_classes=3).meta["classes"]
    assert found["number"] == 3


def test_frequency_bins_hold_the_words_in_their_order(corpus):
    tree = classes(corpus, cluster_by="frequency", n_classes=6)
    ids = [
        word for of_class in classes_of(tree) for word in sorted(map(tree.labels.index, of_class))
    ]
    assert ids == list(range(len(corpus.vocabulary)))


def test_vectors_part_by_what_is_near_and_bin_the_others(corpus, vectors):
    tree = classes(corpus, cluster_by="vectors", vectors_file=vectors, n_classes=4, random_state=3)
    assert {frozenset(of_class) for of_class in classes_of(tree)} == {
        frozenset(f"w{i}" for i in range(60) if i % 3 == kind and i not in (5, 6))
        for kind in range(3)
    } | {frozenset({"w5", "w6", EOS})}
    assert tree.meta["classes"]["words_without_vector"] == 3
    one = classes(corpus, cluster_by="vectors", vectors_file=vectors, n_classes=1)
    assert one.n_nodes == 1


@pytest.mark.parametrize("words", [[EOS], [EOS, "a"], [EOS, "a", "b"]])
def test_vectors_of_few_words_make_a_tree(tmp_path, words):
    WordVectors(["a", "b", EOS], np.eye(3)).save(tmp_path / "v.npy")
    corpus = corpus_of(tmp_path, [" ".join(words[1:])])
    tree = classes(corpus, cluster_by="vectors", vectors_file=tmp_path / "v.npy")
    assert tree.n_labels == len(words) == len(code_lengths(tree))


@pytest.mark.parametrize("method", ["exchange", "brown", "frequency"])
def test_words_that_the_text_lacks_are_placed(tmp_path, method):
    words = Vocabulary([f"w{i}" for i in range(20)], [1] * 20)
    corpus = corpus_of(tmp_path, ["w3 w4 w3 zz w5"], vocabulary=words)
    assert len(code_lengths(classes(corpus, cluster_by=method))) == 20
    nothing = corpus_of(tmp_path, ["zz"], vocabulary=words)
    tree = classes(nothing, cluster_by=method)
    assert len(code_lengths(tree)) == 20
    assert tree.meta["classes"]["bigram_perplexity"] is None
    json.dumps(tree.meta)


def test_as_many_classes_as_words_is_the_flat_tree(corpus):
    n = len(corpus.vocabulary)
    assert classes(corpus, n_classes=n).child.tolist() == [~i for i in range(n)]
    assert set(classes(corpus, n_classes=1).child.tolist()) == {~i for i in range(n)}


def test_files_that_have_none_of_the_words_are_refused(corpus, tmp_path):
    WordVectors(["chien"], [[1.0]]).save(tmp_path / "other.npy")
    with pytest.raises(InputError, match=r"none of the vocabulary's 61 words.*'chien'"):
        classes(corpus, cluster_by="vectors", vectors_file=tmp_path / "other.npy")
    with pytest.raises(InputError, match=r"gone\.npy"):
        hstree.build("classes", corpus, cluster_by="vectors", vectors_file=tmp_path / "gone.npy")


# Short lists and several trees


def words_by_count(corpus):
    order = np.argsort(-corpus.counts, kind="stable")
    return [corpus.vocabulary.words[i] for i in order]


@pytest.mark.parametrize("method", ["exchange", "frequency", "vectors"])
def test_a_short_list_is_under_the_root_beside_the_classes_of_the_others(corpus, vectors, method):
    more = {"vectors_file": vectors} if method == "vectors" else {}
    tree = classes(corpus, cluster_by=method, short_list=20, n_classes=6, **more)
    ranked = words_by_count(corpus)
    under_root = [tree.labels[~child] for child in children_of(tree)[0] if child < 0]
    assert under_root[:20] == ranked[:20]
    groups = classes_of(tree)[20:]
    assert len(groups) == tree.meta["classes"]["number"] <= 6
    assert set.union(*groups) == set(ranked[20:])
    assert all(len(lengths) == 1 for lengths in code_lengths(tree))


def test_a_short_list_leaves_the_classes_of_the_others_to_their_own_bigrams(corpus):
    tree = classes(corpus, short_list=20, n_classes=5, tolerance=0)
    ranked = [corpus.vocabulary.words.index(word) for word in words_by_count(corpus)]
    others = np.array(ranked[20:])
    expected = exchange(bigram_counts(corpus)[:, others], 5)
    groups = classes_of(tree)[20:]
    number = {word: i for i, words in enumerate(groups) for word in words}
    of_others = [number[corpus.vocabulary.words[i]] for i in others]
    assert len(set(zip(of_others, expected.word_class.tolist(), strict=True))) == len(groups) == 5


def test_a_short_list_beside_browns_tree(corpus):
    tree = classes(corpus, cluster_by="brown", short_list=10)
    under_root = [tree.labels[~child] for child in children_of(tree)[0] if child < 0]
    assert under_root == words_by_count(corpus)[:10]
    assert all(len(lengths) == 1 for lengths in code_lengths(tree))


@pytest.mark.parametrize("method", ["exchange", "vectors", "brown"])
def test_several_trees_have_other_classes_each_and_the_first_is_that_of_one(
    corpus, vectors, method
):
    more = {"vectors_file": vectors} if method == "vectors" else {}
    single, forest = (
        classes(corpus, cluster_by=method, short_list=5, n_classes=9, trees=n, **more)
        for n in (1, 3)
    )
    below = [subtree(forest, child) for child in children_of(forest)[0]]
    assert below[0] == subtree(single, 0)
    assert len({repr(one) for one in below}) == 3
    assert all(len(lengths) == 3 for lengths in code_lengths(forest))
    options = {"cluster_by": method, "short_list": 5, "n_classes": 9, "trees": 3, **more}
    assert classes(corpus, **options).child.tolist() == forest.child.tolist()
    assert classes(corpus, **options, random_state=1).child.tolist() != forest.child.tolist()


def subtree(tree, node):
    """Nested lists of the labels under a node."""
    children = children_of(tree)
    return [tree.labels[~c] if c < 0 else subtree(tree, c) for c in children[node]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_classes": 62}, "n_classes is 62, more than the 61 words"),
        ({"cluster_by": "vectors"}, "cluster_by 'vectors' needs vectors_file"),
        ({"vectors_file": "v.npy"}, "vectors_file is for cluster_by 'vectors'"),
        ({"trees": 2, "cluster_by": "frequency"}, "trees is 2, and 'frequency' gives"),
    ],
)
def test_options_that_do_not_go_together_are_refused(corpus, options, message):
    with pytest.raises(OptionError, match=message):
        classes(corpus, **options)

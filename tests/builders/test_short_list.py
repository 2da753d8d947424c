"""Short lists: frequent words under the root, the builder's tree for the others."""

import numpy as np
import pytest

import hstree
from hstree.builders.shared.short_list import build_with_short_list
from hstree.data.corpus import Corpus
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError, OptionError
from hstree.tree import Tree

WORDS = list("abcdefgh")
COUNTS = [5, 9, 9, 1, 2, 3, 4, 1]
BY_FREQUENCY = list("bcagfedh")  # ties in code-point order


def root_labels(tree):
    """Return the labels that are children of the root, in order."""
    children = tree.child[: tree.fan_out[0]]
    return [tree.labels[~child] for child in children.tolist() if child < 0]


@pytest.mark.parametrize("n", [1, 2, 6])
def test_frequent_words_come_first_and_the_builder_makes_the_rest(n):
    tree = hstree.build("huffman", Vocabulary(WORDS, COUNTS), short_list=n)
    assert tree.labels == tuple(WORDS)
    assert tree.counts.tolist() == COUNTS
    assert root_labels(tree) == BY_FREQUENCY[:n]
    assert tree.fan_out[0] == n + 1

    rest = [word for word in WORDS if word not in BY_FREQUENCY[:n]]
    counts = [COUNTS[WORDS.index(word)] for word in rest]
    alone = hstree.build("huffman", Vocabulary(rest, counts))
    for word in rest:
        first, *others = tree.code(word)
        assert first == (0, n)
        assert [(node - 1, branch) for node, branch in others] == alone.code(word)


def test_ties_do_not_depend_on_the_order_of_the_words():
    order = np.random.default_rng(0).permutation(len(WORDS))
    mixed = Vocabulary([WORDS[i] for i in order], [COUNTS[i] for i in order])
    tree = hstree.build("balanced", mixed, short_list=7)
    assert sorted(root_labels(tree)) == sorted(WORDS)
    assert root_labels(hstree.build("balanced", mixed, short_list=6)) == BY_FREQUENCY[:6]
    assert root_labels(hstree.build("balanced", mixed, short_list=1)) == ["b"]


def test_without_a_list_the_file_is_that_of_the_builder(tmp_path):
    vocabulary = Vocabulary(WORDS, COUNTS)
    hstree.build("huffman", vocabulary).save(tmp_path / "a.json")
    hstree.build("huffman", vocabulary, short_list=0).save(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_a_list_of_all_words_but_one_has_one_node():
    tree = hstree.build("random", Vocabulary(WORDS, COUNTS), short_list=7)
    assert root_labels(tree) == BY_FREQUENCY


@pytest.mark.parametrize("method", ["random", "classes"])
@pytest.mark.parametrize("n", [8, 10**6])
def test_a_list_of_all_words_is_the_flat_tree(method, n):
    vocabulary = Vocabulary(WORDS, COUNTS)
    text = [[word] * count for word, count in zip(WORDS, COUNTS, strict=True)]
    input = Corpus.of(text, vocabulary) if method == "classes" else vocabulary
    tree = hstree.build(method, input, short_list=n)
    flat = hstree.build("flat", vocabulary)
    assert tree.child_start.tolist() == flat.child_start.tolist()
    assert tree.child.tolist() == flat.child.tolist()
    assert tree.meta["options"]["short_list"] == n


def test_several_trees_of_vectors_are_children_of_the_root():
    rows = np.random.default_rng(0).normal(size=(60, 4))
    counts = np.arange(60)[::-1]
    options = {"trees": 3, "epsilon": 0.4}
    tree = hstree.build("gmm", rows, counts=counts, short_list=10, **options)
    assert root_labels(tree) == [str(i) for i in range(10)]
    assert tree.fan_out[0] == 13

    rest = WordVectors([str(i) for i in range(10, 60)], rows[10:], counts=counts[10:])
    alone = hstree.build("gmm", rest, **options)
    assert tree.fan_out[1:].tolist() == alone.fan_out[1:].tolist()
    for word in ("10", "37"):
        codes = [[(0, first[1] - 10), *others] for first, *others in tree.codes(word)]
        assert codes == alone.codes(word)


def test_listed_words_need_no_vector():
    vocabulary = Vocabulary([*WORDS, "new"], [*COUNTS, 100])
    vectors = WordVectors(WORDS[:-1], np.random.default_rng(0).normal(size=(7, 3)))
    tree = hstree.build("semantic", vectors, vocabulary=vocabulary, short_list=3)
    assert root_labels(tree) == ["new", "b", "c"]
    assert tree.meta["input"]["words_without_vector"] == 1  # h, which is not listed


@pytest.mark.parametrize("n", [7, 8])
def test_the_vocabulary_is_recorded_whatever_the_builder_makes(n):
    source = {"kind": "vocabulary", "from": "here"}
    vocabulary = Vocabulary([*WORDS, "new"], [*COUNTS, 0], source=source)
    vectors = WordVectors(WORDS[1:], np.random.default_rng(0).normal(size=(7, 3)))
    tree = hstree.build("gmm", vectors, vocabulary=vocabulary, short_list=n)
    assert tree.meta["input"]["vocabulary"] == source


def test_words_that_are_left_need_no_vector():
    vocabulary = Vocabulary([*WORDS, "x", "y"], [*COUNTS, 0, 0])
    vectors = WordVectors(WORDS, np.random.default_rng(0).normal(size=(8, 3)))
    tree = hstree.build("gmm", vectors, vocabulary=vocabulary, short_list=8)
    assert root_labels(tree) == BY_FREQUENCY
    assert tree.meta["input"]["words_without_vector"] == 2


def test_counts_of_zero_are_refused():
    with pytest.raises(InputError, match="every count of the 3 words is zero"):
        hstree.build("balanced", [0, 0, 0], short_list=1)


def test_words_without_counts_are_refused():
    with pytest.raises(InputError, match="come without counts"):
        hstree.build("gmm", np.eye(4), short_list=2)


def test_a_tree_that_grows_has_no_list(tmp_path):
    hstree.build("huffman", Vocabulary(WORDS, COUNTS)).save(tmp_path / "tree.json")
    options = {"from_tree": tmp_path / "tree.json", "short_list": 2}
    with pytest.raises(OptionError, match="short_list"):
        hstree.build("huffman", Vocabulary(WORDS, COUNTS), **options)


def test_listed_words_stay_in_the_text_of_the_others():
    lines = ["the dog saw the cat", "the cat saw a bird", "the tree", "a dog and the bird"] * 3
    tree = hstree.build("wordnet", lines, short_list=2)
    assert root_labels(tree)[:2] == ["the", "<eos>"]
    assert set(" ".join(lines).split()) <= set(tree.labels)


def test_listed_words_are_not_occurrences_of_unknown_words():
    seen = {}

    def remember(corpus: Corpus) -> Tree:
        """Keep the counts that a builder of a text gets."""
        seen.update(zip(corpus.vocabulary.words, corpus.counts.tolist(), strict=True))
        return Tree.from_children(corpus.vocabulary.words, [[~0, ~1, ~2]])

    corpus = Corpus.of(
        [["a"] * 9, ["b"] * 5, ["rare"]], Vocabulary(["a", "b", "<unk>", "<eos>"], [9, 5, 1, 3])
    )
    build_with_short_list(remember, corpus, None, 1, 1)
    assert seen == {"b": 5, "<unk>": 1, "<eos>": 3}

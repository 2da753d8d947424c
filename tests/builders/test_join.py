"""Trees side by side and below each other, and vectors that do not cover a vocabulary."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hstree
from hstree.builders.shared.coverage import build_over_vocabulary
from hstree.builders.shared.join import graft, join_under_root
from hstree.data.vectors import WordVectors
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError
from hstree.tree import Tree
from tests.builders.oracle import code_lengths
from tests.strategies import children_of, trees

PAIR = Tree.from_children(["a", "b"], [[~0, ~1]], names=["pair"])
THREE = Tree.from_children(["d", "c", "e"], [[1, ~2], [~0, ~1]])
ALONE = Tree(["f"], [0], [])


def test_joined_by_hand():
    tree = join_under_root([PAIR, ALONE, THREE], list("abcdef"), counts=range(6))
    assert children_of(tree) == [[1, ~5, 2], [~0, ~1], [3, ~4], [~3, ~2]]
    assert tree.names == (None, "pair", None, None)
    assert tree.labels == tuple("abcdef")
    assert tree.counts.tolist() == list(range(6))


def test_one_tree_gets_no_new_root():
    tree = join_under_root([THREE], list("cde"))
    assert children_of(tree) == [[1, ~2], [~1, ~0]]
    assert tree.names is None
    assert join_under_root([ALONE], ["f"]).n_nodes == 0


def test_a_lone_label_hangs_there_once():
    assert join_under_root([ALONE, ALONE], ["f"]).n_nodes == 0
    assert children_of(join_under_root([ALONE, PAIR, ALONE], list("abf"))) == [[~2, 1], [~0, ~1]]


def test_a_tree_may_have_more_nodes_than_labels():
    several = Tree.from_children(["a", "b"], [[1, 2], [~0, ~1], [3, ~1], [~0, ~1]])
    tree = join_under_root([several, PAIR], ["b", "a"])
    assert children_of(tree) == [[1, 5], [2, 3], [~1, ~0], [4, ~0], [~1, ~0], [~1, ~0]]


def branches(tree, label):
    """Return the branches on the path to each leaf of a label."""
    return [[branch for _, branch in code] for code in tree.codes(label) or [[]]]


@given(trees(several_codes=False, max_labels=6), st.data())
def test_a_grafted_label_is_reached_by_both_ways(top, data):
    below = [
        Tree([f"{i} {label}" for label in tree.labels], tree.child_start, tree.child)
        for i in range(top.n_labels)
        for tree in [data.draw(trees(max_labels=6, only_codes=True))]
    ]
    labels = [label for tree in reversed(below) for label in tree.labels]
    whole = graft(top, below, labels)
    assert whole.labels == tuple(labels)
    for above, tree in zip(top.labels, below, strict=True):
        for label in tree.labels:
            (over,) = branches(top, above)
            assert branches(whole, label) == [over + under for under in branches(tree, label)]


def test_grafted_nodes_keep_their_names():
    top = Tree.from_children(["x", "y", "z"], [[1, ~0], [~1, ~2]], names=["top", None])
    tree = graft(top, [ALONE, PAIR, THREE], list("abcdef"))
    assert tree.names == ("top", None, "pair", None, None)


WORDS = ["the", "<unk>", "cat", "<eos>", "dog", "sat"]
COUNTS = [50, 20, 10, 10, 6, 4]
VECTORS = WordVectors(
    ["dog", "elk", "cat", "the", "sat"], [[1.0], [9.0], [1.5], [-3.0], [-2.5]], counts=[1] * 5
)


def test_words_without_a_vector_stand_beside_the_rest():
    vocabulary = Vocabulary(WORDS, COUNTS)
    tree = hstree.build("kmeans", VECTORS, vocabulary=vocabulary)
    assert tree.labels == tuple(WORDS)
    assert tree.counts.tolist() == COUNTS
    first, second = children_of(tree)[0]
    assert first == 1
    assert sorted(~c for c in children_of(tree)[second]) == [1, 3]
    assert tree.meta["input"] == {
        "kind": "vectors",
        "sha256": VECTORS.sha256,
        "vocabulary": vocabulary.source,
        "words_without_vector": 2,
        "tokens_without_vector": 0.3,
        "vectors_left_out": 1,
    }


def test_the_builder_sees_the_vocabularys_order_and_counts():
    seen = []

    def build(vectors):
        seen.append(vectors)
        return Tree(vectors.labels, [0, len(vectors)], ~np.arange(len(vectors)))

    build_over_vocabulary(build, VECTORS, Vocabulary(WORDS, COUNTS))
    assert seen[0].labels == ("the", "cat", "dog", "sat")
    assert seen[0].vectors.tolist() == [[-3.0], [1.5], [1.0], [-2.5]]
    assert seen[0].counts.tolist() == [50, 10, 6, 4]
    assert seen[0].source == VECTORS.source != {}


@pytest.mark.parametrize(
    ("words", "lengths"),
    [
        (["cat", "the", "dog"], None),  # all covered: no level more
        (["cat", "<unk>"], [[1], [1]]),  # one of each
        (["cat"], [[0]]),
        (["cat", "x", "y"], [[1], [2], [2]]),  # one with a vector
        (["cat", "x", "dog"], [[2], [1], [2]]),  # one without
    ],
)
def test_edges_of_coverage(words, lengths):
    tree = hstree.build("kmeans", VECTORS, vocabulary=Vocabulary(words, [1] * len(words)))
    if lengths is None:
        rows = [VECTORS.labels.index(word) for word in words]
        alone = WordVectors(words, VECTORS.vectors[rows], counts=[1] * len(words))
        assert tree == hstree.build("kmeans", alone)
        assert tree.meta["input"]["words_without_vector"] == 0
    else:
        assert code_lengths(tree) == lengths


def test_no_word_with_a_vector_is_an_error():
    with pytest.raises(InputError, match="none of the vocabulary's 2 words"):
        hstree.build("kmeans", VECTORS, vocabulary=Vocabulary(["Cat", "Dog"], [1, 1]))


def test_counts_of_zero_are_no_obstacle():
    tree = hstree.build("kmeans", VECTORS, vocabulary=Vocabulary(["cat", "x", "y"], [0, 0, 0]))
    assert tree.meta["input"]["tokens_without_vector"] is None

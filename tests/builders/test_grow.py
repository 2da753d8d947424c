"""Trees that grow and shrink: new labels beside what they are like, old rows where they were."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hstree
from hstree.builders.prune import keep_labels
from hstree.builders.random import random
from hstree.data.vocabulary import Vocabulary
from hstree.errors import HstreeError, InputError, OptionError
from hstree.layers.hierarchical import HierarchicalSoftmax
from hstree.tree import Tree
from hstree.tree.hierarchy import Hierarchy
from tests.builders.label_sets import label_sets
from tests.builders.oracle import code_lengths, n_rows, weighted_length
from tests.strategies import counts_of, trees
from tests.texts import corpus_of

RNG = np.random.default_rng(0)
PAIR = hstree.Tree.from_children(["a", "b"], [[~0, ~1]])


def vectors_of(n, d=4, seed=0, **more):
    rows = np.random.default_rng(seed).normal(size=(n, d))
    return hstree.WordVectors([f"w{i}" for i in range(n)], rows, **more)


def numbered(rows, **more):
    return hstree.WordVectors([str(row) for row in range(len(rows))], rows, **more)


def some_of(vectors, n):
    return hstree.WordVectors(vectors.labels[:n], vectors.vectors[:n])


@st.composite
def grown_trees(draw):
    """Draw a tree of any shape, and the tree that it grows to by some rule."""
    tree = draw(trees(plain_labels=True))
    n = tree.n_labels + draw(st.integers(0, 12))
    rule = draw(st.sampled_from(["labels", "counts", "vectors", "counted vectors"]))
    counts = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    if rule == "labels":
        words = [f"w{i}" for i in range(tree.n_labels, n)]
    elif rule == "counts":
        words = {f"w{i}": count for i, count in enumerate(counts)}
    else:
        words = vectors_of(n, 2, counts=None if rule == "vectors" else counts)
    return tree, hstree.grow(tree, words)


@given(grown_trees())
def test_old_weight_rows_come_first(pair):
    tree, grown = pair
    rows = hstree.carried_rows(tree, grown)
    assert rows.new.tolist() == rows.old.tolist() == list(range(n_rows(tree)))
    assert (rows.minus == -1).all()
    assert grown.labels[: tree.n_labels] == tree.labels


@given(grown_trees())
def test_pruning_what_grew_gives_the_tree_back(pair):
    tree, grown = pair
    again = hstree.prune(grown, tree.labels)
    assert again.labels == tree.labels
    assert again.child_start.tolist() == tree.child_start.tolist()
    assert again.child.tolist() == tree.child.tolist()


def test_a_new_label_is_beside_the_label_with_the_nearest_vector():
    vectors = vectors_of(60)
    grown = hstree.grow(hstree.build("gmm", some_of(vectors, 40)), vectors)
    below = sorted(map(set, label_sets(grown)), key=len)
    old = set(vectors.labels[:40])
    for word, row in zip(vectors.labels[40:], vectors.vectors[40:], strict=True):
        nearest = np.linalg.norm(vectors.vectors[:40] - row, axis=1).argmin()
        smallest = next(labels for labels in below if word in labels and labels & old)
        assert smallest & old == {vectors.labels[nearest]}


def test_a_new_label_has_a_code_beside_each_code_of_its_nearest():
    vectors = vectors_of(30)
    tree = hstree.build("gmm", some_of(vectors, 29), epsilon=0.4, trees=3)
    grown = hstree.grow(tree, vectors)
    nearest = np.linalg.norm(vectors.vectors[:29] - vectors.vectors[29], axis=1).argmin()
    assert tree.codes_per_label[nearest] > 1
    assert grown.codes_per_label.tolist() == [
        *tree.codes_per_label.tolist(),
        tree.codes_per_label[nearest],
    ]


def test_many_labels_beside_one_are_a_balanced_tree():
    rows = np.r_[np.eye(3), np.tile([1.01, 0, 0], (100, 1))]
    tree = hstree.Tree.from_children(["0", "1", "2"], [[1, ~2], [~0, ~1]])
    lengths = [length for (length,) in code_lengths(hstree.grow(tree, numbered(rows)))]
    before = [length for (length,) in code_lengths(tree)]
    assert lengths[:3] == [before[0] + 1, *before[1:]]
    assert max(lengths) == before[0] + 1 + math.ceil(math.log2(100))


def test_frequent_labels_beside_one_get_short_codes():
    rows = np.r_[np.eye(2), np.tile([1.01, 0], (8, 1))]
    counted = numbered(rows, counts=[2, 9, 64, *[1] * 7])
    grown = hstree.grow(hstree.build("flat", {"0": 2, "1": 9}), counted)
    lengths = [length for (length,) in code_lengths(grown)]
    assert lengths[2] == 2
    assert min(lengths[3:]) > 2


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_codes_of_labels_placed_by_counts_are_nearly_as_short_as_huffmans(share):
    counts = {f"w{i}": 100_000 // (i + 1) for i in range(3_000)}
    chosen = np.random.default_rng(2).random(3_000) < share
    old = {
        word: count for (word, count), is_old in zip(counts.items(), chosen, strict=True) if is_old
    }
    grown = hstree.grow(hstree.build("huffman", old), counts)
    assert weighted_length(grown) < 1.02 * weighted_length(hstree.build("huffman", counts))


def test_labels_alone_are_beside_the_shallowest_leaves():
    tree = hstree.Tree.from_children(list("abcd"), [[~0, 1], [~1, 2], [~2, ~3]])
    lengths = [length for (length,) in code_lengths(hstree.grow(tree, ["e", "f"]))]
    assert lengths == [2, 3, 3, 3, 2, 3]


def test_counts_are_those_of_the_words_then_of_the_tree():
    tree = hstree.build("huffman", {"a": 5, "b": 2})
    assert hstree.grow(tree, {"b": 7, "c": 1}).counts.tolist() == [5, 7, 1]
    assert hstree.grow(tree, ["c"]).counts.tolist() == [5, 2, 0]
    assert hstree.grow(PAIR, ["c"]).counts is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["c", "a"], "the label 'a' is in the tree already"),
        ("c", "vectors, counts or a list of str"),
        (3, "vectors, counts or a list of str"),
        ([3.5], "label 0 is 3.5; labels must be text or whole numbers"),
        ({"c", "d"}, r"labels are of type set; give a list"),
        (np.eye(3), r"vectors without labels; give hstree\.WordVectors"),
        ({"c": 1}, "the tree has no counts"),
        (hstree.WordVectors(["c"], [[1.0]]), "none of the tree's 2 labels"),
    ],
)
def test_words_that_cannot_be_placed_are_refused(words, message):
    with pytest.raises(InputError, match=message) as caught:
        hstree.grow(PAIR, words)
    assert "\n" not in str(caught.value)


def test_pruning_takes_labels_of_the_tree_in_any_order():
    assert hstree.prune(PAIR, {"a", "b"}) == PAIR
    with pytest.raises(InputError, match="'c' is not a label of the tree"):
        hstree.prune(PAIR, ["a", "c"])
    with pytest.raises(InputError, match="one label or more"):
        hstree.prune(PAIR, [])


def test_another_tree_has_no_rows_to_carry():
    tree = hstree.build("random", vectors_counts(12))
    with pytest.raises(InputError, match="not made from the other"):
        hstree.carried_rows(tree, hstree.build("random", vectors_counts(12), random_state=1))
    with pytest.raises(InputError, match="no label in common"):
        hstree.carried_rows(tree, PAIR)


def vectors_counts(n):
    return {f"w{i}": i + 1 for i in range(n)}


@pytest.mark.parametrize("left", [2, 3, 5])
def test_a_pruned_softmax_is_that_of_the_labels_left(left):
    tree = hstree.build("flat", vectors_counts(5))
    layer = HierarchicalSoftmax(tree, 3, dtype=np.float64)
    layer.weight[:] = RNG.normal(size=layer.weight.shape)
    pruned = hstree.prune(tree, tree.labels[-left:])
    smaller, rows = (
        HierarchicalSoftmax(pruned, 3, dtype=np.float64),
        hstree.carried_rows(tree, pruned),
    )
    rows.carry(layer.weight, smaller.weight)
    rows.carry(layer.bias, smaller.bias)
    hidden = RNG.normal(size=(4, 3))
    expected = np.exp(layer.log_prob(hidden)[:, -left:])
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.exp(smaller.log_prob(hidden)) == pytest.approx(expected)


@pytest.mark.parametrize("method", ["gmm", "kmeans", "linkage", "semantic"])
def test_from_grows_and_prunes_to_the_labels_of_the_input(method, tmp_path):
    vectors = vectors_of(40, counts=range(1, 41))
    old = hstree.WordVectors(vectors.labels[:25], vectors.vectors[:25], counts=range(1, 26))
    hstree.build(method, old).save(tmp_path / "old.json")
    shifted = hstree.WordVectors(vectors.labels[10:], vectors.vectors[10:], counts=range(11, 41))
    tree = hstree.build(method, shifted, from_tree=tmp_path / "old.json")
    assert tree.labels == shifted.labels
    assert tree.counts.tolist() == shifted.counts.tolist()
    assert tree == hstree.grow(hstree.prune(hstree.build(method, old), old.labels[10:]), shifted)
    assert tree.meta["method"] == method
    assert tree.meta["options"] == {"from": "old.json"}
    assert set(tree.meta["input"]["files"]) == {"from"}
    assert tree.meta["input"]["from"] == old.source


def test_from_places_words_of_a_vocabulary_without_a_vector_by_their_counts(tmp_path):
    vectors = vectors_of(20)
    words = hstree.Vocabulary([*vectors.labels[:12], "x", *vectors.labels[12:], "y"], range(1, 23))
    old = hstree.grow(hstree.build("gmm", some_of(vectors, 12)), ["x"])
    old.save(tmp_path / "old.json")
    tree = hstree.build("gmm", vectors, vocabulary=words, from_tree=tmp_path / "old.json")
    assert tree.labels == words.words
    assert tree.counts.tolist() == words.counts.tolist()
    assert tree.meta["input"]["vocabulary"] == words.source
    rows = hstree.carried_rows(hstree.load(tmp_path / "old.json"), tree)
    assert rows.new.tolist() == list(range(12))


def test_from_refuses_options_that_change_nothing_and_other_labels(tmp_path):
    PAIR.save(tmp_path / "old.json")
    with pytest.raises(OptionError, match="huffman: arity has no effect with from"):
        hstree.build("huffman", {"a": 1, "c": 2}, arity=3, from_tree=tmp_path / "old.json")
    with pytest.raises(HstreeError, match=r"cannot read none\.json \(from\)"):
        hstree.build("huffman", {"a": 1, "c": 2}, from_tree="none.json")
    with pytest.raises(InputError, match="none of the tree's labels"):
        hstree.build("huffman", {"c": 1, "d": 2}, from_tree=tmp_path / "old.json")
    with pytest.raises(OptionError, match="balanced has no option 'from'"):
        hstree.build("balanced", {"a": 1, "c": 2}, from_tree=tmp_path / "old.json")


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_vectors_of_any_size_have_a_nearest(size):
    vectors = vectors_of(60)
    tree = hstree.build("huffman", dict.fromkeys(vectors.labels[:40], 1))
    scaled = hstree.WordVectors(vectors.labels, vectors.vectors * np.float32(size))
    assert hstree.grow(tree, scaled) == hstree.grow(tree, vectors)


def test_from_takes_the_counts_of_the_text_not_of_its_vocabulary(tmp_path):
    text = corpus_of(tmp_path, ["a b", "a c"])
    words = hstree.Vocabulary(["a", "b", "<eos>", "c"], [9, 9, 9, 9])
    hstree.build("huffman", {"a": 1, "b": 1, "<eos>": 3, "gone": 1}).save(tmp_path / "old.json")
    tree = hstree.build("huffman", text, vocabulary=words, from_tree=tmp_path / "old.json")
    assert counts_of(tree) == {"a": 2, "b": 1, "<eos>": 2, "c": 1}


def test_pruning_leaves_a_label_once_under_a_node():
    tree = Tree.from_children(
        list("abcd"),
        [[1, ~0, 2], [~0, ~1], [~2, 3], [~3, ~1]],
        counts=[1, 2, 3, 4],
        names=["root", "x", "y", "z"],
        meta={"method": "by hand"},
    )
    left = keep_labels(tree, ["d", "a", "c"])
    expected = Tree.from_children(
        list("acd"), [[~0, 1], [~1, ~2]], counts=[1, 3, 4], names=["root", "y"]
    )
    assert left == expected
    assert left.meta == tree.meta
    assert keep_labels(tree, list("dcba")) is tree
    assert keep_labels(tree, ["b"]) == Tree(["b"], [0], [], counts=[2], names=[])


@given(st.integers(2, 30), st.integers(2, 4), st.data())
def test_the_nodes_left_hold_what_is_kept_below_those_of_the_tree(n, arity, data):
    words = [f"w{i}" for i in range(n)]
    tree = random(Vocabulary(words, np.arange(n)), arity=arity)
    kept = data.draw(st.sets(st.sampled_from(words), min_size=1))
    left = keep_labels(tree, sorted(kept))
    assert left.labels == tuple(word for word in words if word in kept)
    assert left.counts.tolist() == [i for i, word in enumerate(words) if word in kept]
    expected = {frozenset(below & kept) for below in map(set, label_sets(tree))}
    assert set(label_sets(left)) == {below for below in expected if len(below) > 1}


def test_a_grown_taxonomy_keeps_the_names_of_nodes_of_one_child():
    tree = Tree.from_taxonomy({"animal": {"mammal": ["cat"]}, "plant": ["oak", "elm"]})
    assert tree.meta["collapsed"] == [[-1, "animal", "mammal"]]
    grown = hstree.grow(tree, ["fox"])  # beside cat
    assert grown.meta["collapsed"] == [[2, "animal", "mammal"]]


@pytest.mark.parametrize("kind", [list, tuple, iter, np.array, lambda words: (w for w in words)])
def test_labels_in_any_iterable_grow_the_same_tree(kind):
    assert hstree.grow(PAIR, kind(["c", "d"])) == hstree.grow(PAIR, ["c", "d"])
    assert hstree.grow(PAIR, {"c": 1, "d": 2}.keys()) == hstree.grow(PAIR, ["c", "d"])


def test_columns_grow_as_the_same_lists():
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install '.[notebook]'")
    labels = hstree.grow(PAIR, ["c", "d"])
    assert hstree.grow(PAIR, pandas.Series(["c", "d"])) == labels
    assert hstree.grow(PAIR, pandas.Index(["c", "d"])) == labels
    counted = hstree.build("huffman", {"a": 5, "b": 2})
    series = pandas.Series([3, 1], index=["c", "d"])
    assert hstree.grow(counted, series) == hstree.grow(counted, {"c": 3, "d": 1})
    classes = pandas.Series([10.0, None, 10.0, 11.0]).value_counts()
    assert hstree.grow(counted, classes) == hstree.grow(counted, {"10": 2, "11": 1})
    frame = pandas.DataFrame(np.eye(3), index=["a", "b", "c"])
    assert hstree.grow(PAIR, frame) == hstree.grow(
        PAIR, hstree.WordVectors(["a", "b", "c"], np.eye(3))
    )
    with pytest.raises(InputError, match="numbers with a default index may hold labels or counts"):
        hstree.grow(counted, pandas.Series([3, 1]))


@pytest.mark.parametrize("kind", [set, frozenset])
@pytest.mark.parametrize(
    "take",
    [
        lambda words: hstree.grow(PAIR, words),
        lambda words: hstree.build("huffman", words),
        lambda words: hstree.Corpus.of(words),
        lambda words: hstree.Corpus.from_lines(words),
        lambda words: hstree.Corpus.from_tokens([words]),
    ],
)
def test_what_has_no_order_is_refused(take, kind):
    with pytest.raises(InputError, match=f"of type {kind.__name__}"):
        take(kind(["c", "d"]))


def test_a_taxonomy_of_one_label_keeps_its_names_where_they_were():
    one = Tree.from_taxonomy({"thing": {"animal": ["cat"]}})
    for words in (["dog"], ["dog", "cow"], {"cat": 2, "dog": 1}):
        grown = hstree.grow(one, words)
        levels = Hierarchy(grown)
        assert levels.names[:3] == ("thing", "animal", "node 0")
        assert levels.depth[levels.find(["animal", "cat"])].tolist()[0] == 1
        back = hstree.prune(grown, ["cat"])
        assert Hierarchy(back).given_names[:2] == ("thing", "animal")
        assert (back.labels, back.n_nodes) == (("cat",), 0)
    two = hstree.grow(Tree.from_taxonomy({"thing": {"animal": ["cat"], "car": None}}), ["dog"])
    assert Hierarchy(two).given_names[:2] == ("thing", "animal")

"""The reassignment of words by a model's likelihood, against all assignments and token sums."""

from itertools import permutations

import numpy as np
import pytest
import scipy.special

import hstree
from hstree import LanguageModel, Tree, Vocabulary, WordVectors
from hstree.builders.learned import assigned, greedily, learned
from hstree.errors import FileFormatError, InputError, OptionError
from hstree.tree.codes import Codes
from tests.texts import corpus_of


@pytest.fixture
def saved(tmp_path):
    """Return a function that saves a model of random weights, and returns it and its folder."""

    def save(tree, dim=4):
        model = LanguageModel(tree, dim=dim)
        rng = np.random.default_rng(0)
        for array in model.layer.parameters().values():
            array[...] = rng.standard_normal(array.shape)
        model.save(tmp_path / "model")
        return model, tmp_path / "model"

    return save


def drawn(labels, dim=4, seed=1):
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((len(labels), dim)).astype(np.float32)
    return WordVectors(labels, vectors, counts=rng.integers(1, 50, len(labels)))


def of_children(children):
    n = 1 - min(min(node) for node in children) - 1
    return Tree.from_children([f"w{i}" for i in range(n)], children)


def gains(tree, model, vectors):
    """Return the gain of each child of the root for each word (V, children), from token sums.

    The tokens of a word have hidden vectors around its mean.
    """
    rng, gain = np.random.default_rng(2), []
    rows = slice(0, tree.row_start[1])
    weight, bias = model.layer.weight[rows].astype(float), model.layer.bias[rows]
    for mean, count in zip(vectors.vectors, vectors.counts.tolist(), strict=True):
        around = rng.standard_normal((count, len(mean)))
        logits = (mean + around - around.mean(axis=0)) @ weight.T + bias
        if tree.fan_out[0] == 2:
            log_prob = scipy.special.log_expit(np.hstack([logits, -logits]))
        else:
            log_prob = scipy.special.log_softmax(logits, axis=1)
        gain.append(log_prob.sum(axis=0))
    return np.array(gain)


@pytest.mark.parametrize(
    "children",
    [
        [[1, 2], [-1, -2], [3, -5], [-3, -4]],
        [[1, 2], [-1, 3], [-2, -3], [-4, -5]],
        [[1, -1], [2, -2], [-3, -4]],
        [[1, 2, 3], [-1, -2], [-3, -4], [-5, -6, -7]],
    ],
)
def test_the_root_divides_words_as_the_best_of_all_assignments(saved, children):
    """By the log-probabilities of single tokens, not only of their means."""
    tree = of_children(children)
    model, folder = saved(tree)
    vectors = drawn(tree.labels)
    found = learned(vectors, model=folder)
    gain = gains(tree, model, vectors)
    size = [1 if child < 0 else below(tree, child) for child in children[0]]
    slots = np.repeat(np.arange(len(size)), size)
    best = max(permutations(slots.tolist()), key=lambda p: gain[range(len(p)), p].sum())
    assert root_branch(found).tolist() == list(best)


def below(tree, node):
    start, stop = tree.child_start[node], tree.child_start[node + 1]
    return sum(1 if c < 0 else below(tree, c) for c in tree.child[start:stop].tolist())


def root_branch(tree):
    """Return the child of the root that each label (V,) is below."""
    codes = Codes(tree)
    expansion = codes.expand(np.arange(tree.n_labels))
    first = expansion.decision_start[:-1]
    return tree.edge_branch[expansion.edge[first]]


def test_a_leaf_of_a_wide_node_keeps_its_word(saved):
    """Its weights are those of the word: short lists stay."""
    tree = of_children([[-1, -2, 1, 2], [-3, -4, -5], [-6, -7]])
    _, folder = saved(tree)
    found = learned(drawn(tree.labels), model=folder)
    assert found.child[:2].tolist() == [-1, -2]
    assert sorted(found.child[4:].tolist()) == [-7, -6, -5, -4, -3]
    assert np.array_equal(found.child_start, tree.child_start)


def test_a_word_that_came_takes_the_place_of_one_that_left(saved):
    """Below the root, a leaf of a wide node may have lost its word."""
    tree = of_children([[1, 2], [-1, -2, 3], [-3, -4, -5], [-6, -7]])
    _, folder = saved(tree)
    of_leaves = set()
    for seed in range(5):
        found = learned(drawn(tree.labels, seed=seed), model=folder)
        assert sorted(found.child[found.child < 0].tolist()) == list(range(-7, 0))
        of_leaves.add(tuple(found.child[2:4].tolist()))
    assert len(of_leaves) > 1


@pytest.mark.parametrize("method", ["huffman", "flat", "balanced"])
def test_shape_and_order_of_labels_are_those_of_the_model(saved, method):
    labels = [f"w{i}" for i in range(40)]
    tree = hstree.build(method, Vocabulary(labels, range(1, 41)))
    _, folder = saved(tree)
    vectors = drawn(labels[::-1])
    found = hstree.build("learned", vectors, model=folder)
    assert found.labels == tree.labels
    assert found.counts.tolist() == vectors.counts[::-1].tolist()
    assert np.array_equal(found.child >= 0, tree.child >= 0)
    assert found.meta["moved"]["words"] == np.count_nonzero(found.child != tree.child)
    assert (found.meta["moved"]["words"] == 0) == (method == "flat")


def test_a_price_shortens_the_codes_of_frequent_words(saved):
    tree = of_children([[1, -1], [2, -2], [3, -3], [4, -4], [-5, -6]])
    _, folder = saved(tree)
    vectors = drawn(tree.labels)
    lengths = [
        learned(vectors, model=folder, price=price).stats().length_weighted for price in (0, 2, 100)
    ]
    assert lengths[0] > lengths[1] >= lengths[2]
    huffman = hstree.build("huffman", Vocabulary(tree.labels, vectors.counts))
    assert lengths[2] >= huffman.stats().length_weighted


@pytest.mark.parametrize("candidates", [1, 2, 5])
def test_assignments_with_few_candidates_are_feasible_and_not_worse(candidates):
    rng = np.random.default_rng(0)
    gain = rng.standard_normal((60, 5)) * rng.integers(1, 1000, 60)[:, None]
    room = np.array([1, 9, 20, 0, 30])
    present = rng.permutation(np.repeat(np.arange(5), room))
    found = assigned(gain, room, present, candidates)
    assert np.bincount(found, minlength=5).tolist() == room.tolist()
    of_words = np.arange(60)
    assert gain[of_words, found].sum() >= gain[of_words, present].sum()


def test_a_planted_tree_is_approached(tmp_path):
    """Words of two kinds that alternate: a random tree comes to divide them at its root."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 16, (4000, 2)) + np.array([0, 16])
    lines = [" ".join(f"w{w}" for w in pair) for pair in kinds.reshape(-1, 20).tolist()]
    corpus = corpus_of(tmp_path, lines)
    tree = hstree.build("random", corpus, random_state=3)
    before = purity(tree)
    for number in range(3):
        model = LanguageModel(tree, dim=8, context=1, epochs=6, dropout=0, random_state=0)
        model.fit(corpus)
        folder = tmp_path / f"model-{number}"
        model.save(folder)
        tree = hstree.build("learned", model.mean_predicted_vectors(corpus), model=folder)
    assert purity(tree) > max(0.9, before)


def purity(tree):
    """Return the share of the words on that side of the root where most of their kind are."""
    side = root_branch(tree)
    kind = np.array([int(w[1:]) >= 16 if w.startswith("w") else False for w in tree.labels])
    agree = np.mean(side == kind)
    return max(agree, 1 - agree)


@pytest.mark.parametrize("seed", range(20))
def test_a_greedy_assignment_fills_all_room_and_is_near_the_best(seed):
    rng = np.random.default_rng(seed)
    room = rng.integers(0, 30, 6)
    n = int(room.sum())
    # words differ in weight, as their counts do
    gain = rng.standard_normal((n, 6)) * rng.pareto(1.5, (n, 1))
    child = greedily(gain, room)
    np.testing.assert_array_equal(np.bincount(child, minlength=6), room)
    best = assigned(gain, room, np.repeat(np.arange(6), room), candidates=6)
    reached, largest = (gain[np.arange(n), c].sum() for c in (child, best))
    drawn = gain[np.arange(n), rng.permutation(child)].sum()
    assert largest - 0.1 * (largest - drawn) <= reached <= largest + 1e-9


def test_what_does_not_go_together_is_refused(saved, tmp_path):
    tree = of_children([[1, 2], [-1, -2], [-3, -4]])
    _, folder = saved(tree)
    vectors = drawn(tree.labels)
    with pytest.raises(OptionError, match="model is needed"):
        learned(vectors)
    with pytest.raises(InputError, match="other words"):
        learned(drawn(["w0", "w1", "w2", "x"]), model=folder)
    with pytest.raises(InputError, match="3 numbers"):
        learned(drawn(tree.labels, dim=3), model=folder)
    with pytest.raises(InputError, match="needs counts"):
        learned(WordVectors(tree.labels, vectors.vectors), model=folder)
    with pytest.raises(FileFormatError, match=r"nothing/tree\.json"):
        learned(vectors, model=tmp_path / "nothing")
    several = of_children([[1, 2], [-1, -2], [-1, -3]])
    saved(several)
    with pytest.raises(InputError, match="several codes"):
        learned(drawn(several.labels), model=folder)
    (folder / "weights.safetensors").write_bytes(b"x")
    saved(tree)
    (folder / "weights.safetensors").write_bytes(b"x")
    with pytest.raises(FileFormatError, match="no weights of a tree's nodes"):
        learned(vectors, model=folder)

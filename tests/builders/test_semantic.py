"""Huffman's lengths to the last word, and neighbours that mean something."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hstree.builders.huffman import huffman_tree
from hstree.builders.semantic import along_principal_axis, code_masses, semantic
from hstree.builders.shared.nodes import Nodes, centred_rows
from hstree.data.vectors import WordVectors
from hstree.errors import InputError
from tests.builders.label_sets import child_sets
from tests.builders.oracle import code_lengths, shortest_by_heap, weighted_length
from tests.builders.vectors import normal, words

pytestmark = pytest.mark.filterwarnings("error")


def huffman_of(vectors):
    return huffman_tree(vectors.labels, vectors.counts)


counted = st.lists(st.integers(0, 30) | st.integers(0, 10**9), min_size=1, max_size=60)


@given(counted, st.integers(1, 4), st.integers(0, 99), st.sampled_from([0.0, 1.0, 1e-18, 1e18]))
def test_every_word_keeps_the_length_that_huffman_gives_it(counts, d, seed, size):
    vectors = words(size * normal(len(counts), d, seed), counts=counts)
    tree = semantic(vectors)
    assert weighted_length(tree) == shortest_by_heap(counts, 2)
    assert code_lengths(tree) == code_lengths(huffman_of(vectors))
    assert (tree.fan_out == 2).all()


def test_codes_longer_than_any_int64_share():
    """Shares from 2**-1 to 2**-84, in a node whose halves must be equal to the last unit."""
    fibonacci = [1, 1]
    while len(fibonacci) < 85:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    vectors = words(normal(85, 3), counts=np.random.default_rng(0).permutation(fibonacci))
    found = code_lengths(semantic(vectors))
    assert found == code_lengths(huffman_of(vectors))
    assert max(found) == [84]
    assert code_masses(np.arange(1, 85)).sum() == 2**84 - 1


def filled_row_by_row(value, share):
    """The rows that a half takes, one after the other."""
    room, filled = sum(share) // 2, set()
    for row in sorted(range(len(share)), key=lambda row: (value[row], row)):
        if share[row] <= room:
            room -= share[row]
            filled.add(row)
    assert room == 0
    return filled


@pytest.mark.parametrize("size", [1.0, 1e-15, 1e6])
def test_the_first_order_is_along_the_principal_axis(size):
    nodes = Nodes(np.array([0, 300, 320]))
    X = normal(320, 6) * [1, 1, 1, 1, 1, 5] @ np.linalg.qr(normal(6, 6, seed=1))[0]
    X[::3] *= 20  # which light rows make no difference to
    weight = np.where(np.arange(320) % 3 == 0, 1e-6, 2.0)
    X = centred_rows((size * X).astype(np.float32), np.arange(320), nodes, 1.0, weight)
    value = along_principal_axis(nodes, X, weight)
    for rows in (slice(0, 300), slice(300, 320)):
        weighted = np.sqrt(weight[rows, None]) * X[rows].astype(np.float64)
        axis = np.linalg.svd(weighted)[2][0]
        assert abs(np.corrcoef(value[rows], X[rows] @ axis)[0, 1]) > 0.999


def test_clusters_hold_together_where_counts_are_those_of_text():
    """By chance, a tenth of the pairs of words that share a node would be alike; here most are."""
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 10, 2000)
    X = 10 * rng.standard_normal((10, 8))[cluster] + rng.standard_normal((2000, 8))
    vectors = words(X, counts=rng.permutation(10**6 // np.arange(1, 2001)))

    def alike(tree):
        both = (tree.child.reshape(-1, 2) < 0).all(axis=1)
        first, second = ~tree.child.reshape(-1, 2)[both].T
        return np.mean(cluster[first] == cluster[second])

    assert alike(huffman_of(vectors)) < 0.2
    assert alike(semantic(vectors)) > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_the_halves_are_those_of_their_own_means(seed):
    """Two-means has settled: the halves' means, weighted by the roots of counts, give them back."""
    counts = np.random.default_rng(seed).permutation(10**5 // np.arange(1, 401))
    X = normal(400, 2, seed)
    tree = semantic(words(X, counts=counts), iterations=200)
    weight = np.sqrt(np.maximum(counts, 0.5))
    first, second = ([int(label[1:]) for label in half] for half in child_sets(tree, 0))
    apart = [np.average(X[half], axis=0, weights=weight[half]) for half in (first, second)]
    share = code_masses(np.array([length for (length,) in code_lengths(tree)]))
    assert filled_row_by_row(X @ (apart[1] - apart[0]), share) == set(first)


def test_what_cannot_be_built_is_refused():
    with pytest.raises(InputError, match=r"semantic needs counts.*labels\.tsv.*or give a voc"):
        semantic(WordVectors(["a", "b"], [[1.0], [2.0]]))

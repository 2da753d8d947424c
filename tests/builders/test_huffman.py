"""Huffman's trees are as short as those of the textbook's heap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hstree.builders.huffman import huffman, huffman_tree
from hstree.data.vocabulary import Vocabulary
from hstree.errors import InputError
from tests.builders.oracle import (
    code_lengths,
    shortest_by_heap,
    weighted_length,
)


def vocabulary(counts):
    return Vocabulary([f"w{i}" for i in range(len(counts))], counts)


counted = st.lists(st.integers(0, 30) | st.integers(0, 10**9), min_size=2, max_size=60).filter(any)


@given(counted, st.integers(2, 7))
def test_any_counts_against_a_heap(counts, arity):
    tree = huffman(vocabulary(counts), arity=arity)
    assert weighted_length(tree) == shortest_by_heap(counts, arity)
    assert (tree.fan_out[:-1] == min(arity, len(counts))).all()
    assert 2 <= tree.fan_out[-1] <= arity


@given(counted, st.randoms(use_true_random=False), st.integers(2, 4))
def test_the_order_of_the_words_changes_no_code_length(counts, random, arity):
    def lengths(order):
        tree = huffman(vocabulary([counts[i] for i in order]), arity=arity)
        found = zip((counts[i] for i in order), code_lengths(tree), strict=True)
        return sorted((count, length) for count, (length,) in found)

    order = list(range(len(counts)))
    before = lengths(order)
    random.shuffle(order)
    assert lengths(order) == before


@given(counted)
def test_heavier_nodes_have_lower_numbers_and_lighter_children_come_first(counts):
    tree = huffman(vocabulary(counts))
    below = np.array(counts)[~tree.child[tree.child < 0]]
    weight = np.bincount(tree.edge_node[tree.child < 0], below, minlength=tree.n_nodes)
    for node in range(tree.n_nodes - 1, 0, -1):
        weight[tree.parent[node]] += weight[node]
    assert (np.diff(weight) <= 0).all()
    for first, second in tree.child.reshape(-1, 2).tolist():
        light, heavy = (weight[c] if c >= 0 else counts[~c] for c in (first, second))
        assert light <= heavy


def test_only_zeros_are_refused_but_have_a_tree():
    with pytest.raises(InputError, match="every count of the 3 words is zero"):
        huffman(vocabulary([0, 0, 0]))
    with pytest.raises(InputError, match="every count of the 2 words is zero"):
        huffman(vocabulary([0, 0]))
    assert huffman_tree(["a", "b", "c"], np.zeros(3, np.int64)).n_nodes == 2
    assert huffman(vocabulary([0])).n_nodes == 0

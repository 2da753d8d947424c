"""Codes against a plain walk down the tree."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hstree.tree.codes import Codes
from tests.strategies import chain, codes_by_walk, trees


def spelled(codes, batch):
    """Return the codes of each item of a batch as (node, branch) pairs."""
    tree, expansion = codes.tree, codes.expand(np.array(batch, np.int32))
    nodes, branches = tree.edge_node[expansion.edge], tree.edge_branch[expansion.edge]
    steps = list(zip(nodes.tolist(), branches.tolist(), strict=True))
    paths = [steps[a:b] for a, b in pairwise(expansion.decision_start)]
    return [paths[a:b] for a, b in pairwise(expansion.code_start)]


@given(trees(only_codes=True))
def test_codes_are_those_of_a_walk_down_the_tree(tree):
    codes, expected = Codes(tree), codes_by_walk(tree)
    assert spelled(codes, range(tree.n_labels)) == expected
    assert [tree.codes(label) for label in tree.labels] == expected
    assert tree.codes_per_label.tolist() == list(map(len, expected))
    assert tree.has_single_codes == (max(map(len, expected)) <= 1)
    assert codes.n_decisions == sum(len(code) for of in expected for code in of)


@given(trees(only_codes=True), st.data())
def test_a_batch_is_its_labels_one_after_the_other_cached_or_not(tree, data):
    batch = data.draw(st.lists(st.integers(0, tree.n_labels - 1), max_size=8))
    expected = codes_by_walk(tree)
    for codes in (Codes(tree), Codes(tree, cache_limit=0)):
        assert spelled(codes, batch) == [expected[label] for label in batch]


def test_a_chain_of_100_000_labels():
    n = 100_000
    codes = Codes(chain(n))
    assert codes.n_decisions == n * (n - 1) // 2 + n - 1
    expansion = codes.expand(np.array([n - 1, 0, 99]))
    assert np.diff(expansion.decision_start).tolist() == [n - 1, 1, 100]
    assert np.array_equal(expansion.edge[: n - 2], np.arange(1, 2 * n - 4, 2))
    assert expansion.edge[n - 1] == 0


@given(trees(only_codes=True))
def test_nodes_have_the_codes_that_lead_to_them(tree):
    labels = codes_by_walk(tree)
    to_node = [[[]]][: tree.n_nodes]
    for edge in tree.node_edge[1:]:
        node, branch = int(tree.edge_node[edge]), int(tree.edge_branch[edge])
        to_node.append([[*to_node[node][0], (node, branch)]])
    for codes in (Codes(tree, nodes=True), Codes(tree, nodes=True, cache_limit=0)):
        assert spelled(codes, range(tree.n_labels + tree.n_nodes)) == labels + to_node

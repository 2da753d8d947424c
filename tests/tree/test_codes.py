"""Codes against a slow recursive oracle, and the mass check against planted faults."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hstree.tree import Tree
from hstree.tree.codes import Codes
from tests.chains import chain
from tests.strategies import children_of, trees


def codes_by_recursion(tree):
    """Return {label: [[(node, branch), ...], ...]} in the order of their leaves."""
    children = children_of(tree)
    of_label = {label: [] for label in range(tree.n_labels)}

    def descend(node, path):
        for branch, child in enumerate(children[node]):
            step = [*path, (node, branch)]
            if child >= 0:
                descend(child, step)
            else:
                of_label[~child].append(step)

    if children:
        descend(0, [])
    return {label: sorted(codes, key=lambda code: code[-1]) for label, codes in of_label.items()}


@given(trees())
def test_codes_are_those_of_a_recursive_walk(tree):
    codes, expected = Codes(tree), codes_by_recursion(tree)
    assert {label: codes.of(label) for label in range(tree.n_labels)} == expected
    assert tree.codes_per_label.tolist() == [len(expected[v]) for v in range(tree.n_labels)]
    assert tree.has_single_codes == (max(map(len, expected.values())) <= 1)
    assert codes.n_decisions == sum(len(code) for of in expected.values() for code in of)


@given(trees(), st.data())
def test_a_batch_is_its_labels_one_after_the_other_cached_or_not(tree, data):
    batch = data.draw(st.lists(st.integers(0, tree.n_labels - 1), max_size=8))
    expected = codes_by_recursion(tree)
    for codes in (Codes(tree), Codes(tree, cache_limit=0)):
        expansion = codes.expand(np.array(batch, np.int32))
        nodes, branches = tree.edge_node[expansion.edge], tree.edge_branch[expansion.edge]
        steps = list(zip(nodes.tolist(), branches.tolist(), strict=True))
        paths = [steps[a:b] for a, b in pairwise(expansion.decision_start)]
        by_item = [paths[a:b] for a, b in pairwise(expansion.code_start)]
        assert by_item == [expected[label] for label in batch]


@given(trees())
def test_uniform_mass_is_one(tree):
    assert Codes(tree).kraft_sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("fault", ["twice", "lost", "of another label"])
@given(tree=trees(max_labels=12), data=st.data())
@settings(max_examples=30)
def test_kraft_sum_catches_a_planted_fault(fault, tree, data):
    assume(tree.n_nodes > 1)
    codes = Codes(tree, cache_limit=0)
    code = data.draw(st.sampled_from(np.flatnonzero(codes.length > 1).tolist()))
    label = codes.label[code]
    other = codes.label_start[(label + 1) % tree.n_labels]
    kept = np.arange(len(codes.length))
    if fault == "of another label":
        kept[code] = other
    else:
        kept = np.delete(kept, code) if fault == "lost" else np.insert(kept, code, code)
        after = np.arange(len(codes.label_start)) > label
        codes.label_start = codes.label_start + after * (len(kept) - len(codes.length))
        codes.label = codes.label[kept]
    codes.leaf_edge, codes.length = codes.leaf_edge[kept], codes.length[kept]
    assert abs(codes.kraft_sum() - 1) > 1e-9


def test_a_wrong_branch_of_the_same_share_is_no_walk():
    tree = Tree.from_children(list("abcd"), [[1, 2], [~0, ~1], [~2, ~3]])
    codes = Codes(tree, cache_limit=0)
    codes.parent_edge = np.array([-1, -1, 1, 0, 1, 1])
    assert codes.kraft_sum() == 0.75  # the first code turns right at the root, and ends on the left


def test_a_chain_of_100_000_labels():
    n = 100_000
    codes = Codes(chain(n))
    assert codes.n_decisions == n * (n - 1) // 2 + n - 1
    expansion = codes.expand(np.array([n - 1, 0, 99]))
    assert np.diff(expansion.decision_start).tolist() == [n - 1, 1, 100]
    assert np.array_equal(expansion.edge[: n - 2], np.arange(1, 2 * n - 4, 2))
    assert expansion.edge[n - 1] == 0
    assert codes.kraft_sum() == pytest.approx(1, abs=1e-12)


@given(trees())
def test_nodes_have_the_codes_that_lead_to_them(tree):
    labels = codes_by_recursion(tree)
    for codes in (Codes(tree, nodes=True), Codes(tree, nodes=True, cache_limit=0)):
        assert {label: codes.of(label) for label in range(tree.n_labels)} == labels
        for node in range(tree.n_nodes):
            (code,) = codes.of(tree.n_labels + node)
            edge = int(tree.node_edge[node])
            above = [] if edge < 0 else codes.of(tree.n_labels + int(tree.parent[node]))[0]
            step = [(int(tree.edge_node[edge]), int(tree.edge_branch[edge]))]
            assert code == (above + step if edge >= 0 else [])

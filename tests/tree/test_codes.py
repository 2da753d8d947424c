"""Codes against a slow recursive oracle, and the mass check against planted faults."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hstree.tree import Tree
from hstree.tree.codes import Codes
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
    assert codes.n_decisions == sum(len(code) for of in expected.values() for code in of)


@given(trees(), st.data())
def test_a_batch_is_its_labels_one_after_the_other_cached_or_not(tree, data):
    batch = data.draw(st.lists(st.integers(0, tree.n_labels - 1), max_size=8))
    expected = codes_by_recursion(tree)
    for codes in (Codes(tree), Codes(tree, cache_limit=0)):
        expansion = codes.expand(np.array(batch, np.int32))
        paths = [
            [(node, edge - tree.child_start[node]) for node, edge in zip(nodes, edges, strict=True)]
            for edges in np.split(expansion.edge, expansion.decision_start[1:-1])
            for nodes in [tree.edge_node[edges]]
        ][: len(expansion.decision_start) - 1]
        assert [paths[a:b] for a, b in pairwise(expansion.code_start)] == [
            expected[v] for v in batch
        ]


@given(trees())
def test_parent_edge_is_the_edge_taken_before(tree):
    above = tree.parent_edge
    for edge, before in enumerate(above):
        node = tree.edge_node[edge]
        assert before == -1 if node == 0 else tree.child[before] == node


@given(trees(), st.integers(1, 50), st.booleans())
def test_uniform_mass_is_one(tree, chunk, cached):
    codes = Codes(tree) if cached else Codes(tree, cache_limit=0)
    assert codes.kraft_sum(chunk) == pytest.approx(1, abs=1e-12)


def without_its_last_decision(codes, code):
    """Plant the fault: one code is expanded one decision short."""
    whole = codes._decisions

    def decisions(wanted):
        start, edge = whole(wanted)
        paths = np.split(edge, start[1:-1])
        paths = [path[:-1] if c == code else path for c, path in zip(wanted, paths, strict=True)]
        return np.cumsum([0, *map(len, paths)]), np.concatenate(paths)

    codes._decisions = decisions


def twice(codes, code):
    """Plant the fault: a label has the same code twice."""
    label = np.searchsorted(codes.label_start, code, "right") - 1
    codes.leaf_edge = np.insert(codes.leaf_edge, code, codes.leaf_edge[code])
    codes.length = np.insert(codes.length, code, codes.length[code])
    codes.label_start[label + 1 :] += 1


def lost(codes, code):
    """Plant the fault: a label lacks one of its codes."""
    label = np.searchsorted(codes.label_start, code, "right") - 1
    codes.leaf_edge = np.delete(codes.leaf_edge, code)
    codes.length = np.delete(codes.length, code)
    codes.label_start[label + 1 :] -= 1


def of_another_label(codes, code):
    """Plant the fault: a label has the code of another instead of one that leads to it."""
    label = np.searchsorted(codes.label_start, code, "right") - 1
    other = codes.label_start[(label + 1) % codes.tree.n_labels]
    codes.leaf_edge[code], codes.length[code] = codes.leaf_edge[other], codes.length[other]


@pytest.mark.parametrize("fault", [without_its_last_decision, twice, lost, of_another_label])
@given(tree=trees(max_labels=12), data=st.data())
@settings(max_examples=30)
def test_kraft_sum_catches_a_planted_fault(fault, tree, data):
    assume(tree.n_nodes > 1)
    codes = Codes(tree, cache_limit=0)
    code = data.draw(st.sampled_from(np.flatnonzero(codes.length > 1).tolist()))
    fault(codes, code)
    assert abs(codes.kraft_sum() - 1) > 1e-9


def test_a_wrong_branch_of_the_same_share_is_no_walk():
    tree = Tree.from_children(list("abcd"), [[1, 2], [~0, ~1], [~2, ~3]])
    codes = Codes(tree)
    codes._edge[0] = 1  # the first code turns right at the root, and ends on the left
    assert codes.kraft_sum() == 0.75


def test_a_chain_of_100_000_labels():
    n = 100_000
    pairs = np.stack([np.arange(1, n), ~np.arange(n - 1)], axis=1)
    pairs[-1, 0] = ~(n - 1)
    tree = Tree([str(i) for i in range(n)], np.arange(0, 2 * n - 1, 2), pairs.ravel())
    codes = Codes(tree)
    assert codes.n_decisions == n * (n - 1) // 2 + n - 1
    expansion = codes.expand(np.array([n - 1, 0, 99]))
    assert np.diff(expansion.decision_start).tolist() == [n - 1, 1, 100]
    assert np.array_equal(expansion.edge[: n - 1], np.arange(0, 2 * n - 2, 2))
    assert expansion.edge[n - 1] == 1
    assert codes.kraft_sum() == pytest.approx(1, abs=1e-12)


def test_one_label_has_no_code_and_all_the_mass():
    codes = Codes(Tree(["only"], [0], []))
    assert codes.of(0) == []
    assert codes.kraft_sum() == 1
    expansion = codes.expand(np.array([0, 0]))
    assert expansion.code_start.tolist() == [0, 0, 0]
    assert expansion.edge.size == 0

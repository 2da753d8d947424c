"""Every rule broken once, and reported by its name; valid trees break none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hstree.errors import TreeError
from hstree.tree import Tree
from hstree.tree.content import Content
from tests.strategies import children_of, trees

LABELS = ["a", "b", "c"]
CHILDREN = [[~0, 1], [~1, ~2]]


def rules_broken_by(labels=LABELS, children=CHILDREN, counts=None, names=None):
    start = np.cumsum([0] + [len(of_node) for of_node in children])
    child = np.array([c for of_node in children for c in of_node], np.int64)
    counts = None if counts is None else np.array(counts, np.int64)
    return Content(labels, start, child, counts, names).broken_rules()


ONCE = [
    ("labels", "there is none", {"labels": [], "children": []}),
    ("labels", "label 1 is 7, not text", {"labels": ["a", 7, "c"]}),
    ("labels", "label 1 is ['b'], not text", {"labels": ["a", ["b"], "c"]}),
    ("labels", r"label 2 is '\ud800', not text", {"labels": ["a", "b", "\ud800"]}),
    ("unique labels", "'a' is label 0 and label 2", {"labels": ["a", "b", "a"]}),
    ("counts", "2 counts for 3 labels", {"counts": [1, 2]}),
    ("counts", "label 1 has the count -5", {"counts": [1, -5, 2]}),
    ("names", "1 names for 2 nodes", {"names": [None]}),
    ("names", "node 1 is named 3, not text", {"names": [None, 3]}),
    ("names", r"node 1 is named '\udfff', not text", {"names": [None, "\udfff"]}),
    ("fan-out", "node 1 has 1 children", {"labels": ["a", "b"], "children": [[~0, 1], [~1]]}),
    ("known label", "node 1 holds the label 3", {"children": [[~0, 1], [~1, ~2, ~3]]}),
    ("known node", "node 0 has the child node 9", {"children": [[~0, 1, 9], [~1, ~2]]}),
    ("child after parent", "node 1 has the child node 0", {"children": [[~0, 1], [~1, ~2, 0]]}),
    ("no child twice", "node 0 has the child -1 twice", {"children": [[~0, 1, ~0], [~1, ~2]]}),
    ("one parent", "node 2 has 2 parents", {"children": [[~0, 1, 2], [~1, 2], [~1, ~2]]}),
    ("reachable", "node 2 is not under the root", {"children": [*CHILDREN, [~0, ~1]]}),
    ("reachable", "node 1 is not under the root", {"children": [[~0, ~1, ~2], [~0, ~1]]}),
    ("every label placed", "label 2 is under no node", {"children": [[~0, ~1]]}),
    ("every label placed", "label 0 is under no node (and 2 more)", {"children": []}),
]


@pytest.mark.parametrize(("rule", "where", "content"), ONCE)
def test_a_rule_broken_once_is_named_alone(rule, where, content):
    found = rules_broken_by(**content)
    assert list(found) == [rule]
    assert where in found[rule]


@pytest.mark.parametrize(
    "start", [[], [0, 2], [1, 4], [0, 3, 2, 4], [0, 1, -(2**63), -1, 4], [0, 2**62, 4]]
)
def test_broken_offsets_are_named_and_nothing_is_read_through_them(start):
    child = np.array([~0, 1, ~1, ~2])
    found = Content(LABELS, np.array(start, np.int64), child).broken_rules()
    assert list(found) == ["offsets"]


@pytest.mark.parametrize("extreme", [2**63 - 1, -(2**63), 2**62])
def test_huge_children_are_named_not_followed(extreme):
    found = list(rules_broken_by(children=[[~0, 1], [~1, ~2, extreme]]))
    assert found == ["known node" if extreme > 0 else "known label"]


def is_a_tree(n_labels, children):
    """Judge by walking from the root: the rules as one would explain them, without arrays."""
    if not children:
        return n_labels == 1
    seen_nodes, seen_labels = {0}, set()
    for node, held in enumerate(children):
        if len(held) < 2 or len(set(held)) < len(held) or node not in seen_nodes:
            return False
        for child in held:
            if child >= 0 and (child <= node or child >= len(children) or child in seen_nodes):
                return False
            (seen_nodes if child >= 0 else seen_labels).add(child if child >= 0 else ~child)
    return len(seen_nodes) == len(children) and seen_labels == set(range(n_labels))


@given(trees(max_labels=6), st.data())
def test_one_changed_child_is_judged_as_a_walk_judges(tree, data):
    children = children_of(tree)
    if children:
        held = data.draw(st.sampled_from(children))
        held[data.draw(st.integers(0, len(held) - 1))] = data.draw(st.integers(-8, 8))
    found = rules_broken_by(tree.labels, children)
    assert (not found) == is_a_tree(tree.n_labels, children)
    if found:
        with pytest.raises(TreeError):
            Tree.from_children(tree.labels, children)

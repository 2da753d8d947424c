"""Words under each branch, against a walk of the tree by hand."""

from fractions import Fraction

import pytest
from hypothesis import given

from hstree.tree.branches import Branches
from tests.strategies import children_of, trees


def leaves_under(children, child):
    """List the labels under a child, one for each code, by recursion."""
    if child < 0:
        return [~child]
    return [label for below in children[child] for label in leaves_under(children, below)]


@given(trees())
def test_words_leaves_and_shares(tree):
    children = children_of(tree)
    counts = [1] * tree.n_labels if tree.counts is None else tree.counts.tolist()
    n_codes = [0] * tree.n_labels
    for label in leaves_under(children, 0) if children else []:
        n_codes[label] += 1
    mass = [Fraction(max(2 * n, 1), 2) / max(k, 1) for n, k in zip(counts, n_codes, strict=True)]
    total = sum(mass[label] * n_codes[label] for label in range(tree.n_labels))
    branches = Branches(tree, 3)
    for node, of_node in enumerate(children):
        for branch, child in zip(branches.of(node), of_node, strict=True):
            below = leaves_under(children, child)
            assert branch.leaves == len(below)
            best = sorted(set(below), key=lambda label: (-counts[label], label))[:3]
            assert branch.words == tuple(tree.labels[label] for label in best)
            assert branch.fraction == pytest.approx(float(sum(mass[v] for v in below) / total))
            assert tree.child[branch.edge] == child
            assert branch.node == (child if child >= 0 else None)
            names = tree.labels if child < 0 else tree.names or [None] * tree.n_nodes
            assert branch.name == names[child if child >= 0 else ~child]

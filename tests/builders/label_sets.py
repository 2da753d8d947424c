"""Labels below each node, by brute force, for small trees."""

import numpy as np

from hstree.tree import Tree


def label_sets(tree: Tree) -> list[frozenset[str]]:
    below: list[frozenset[str]] = [frozenset()] * tree.n_nodes
    for node in reversed(range(tree.n_nodes)):
        children = tree.child[tree.child_start[node] : tree.child_start[node + 1]]
        parts = [below[c] if c >= 0 else frozenset([tree.labels[~c]]) for c in children]
        below[node] = frozenset().union(*parts)
    return below


def child_sets(tree: Tree, node: int) -> list[frozenset[str]]:
    below = label_sets(tree)
    children = tree.child[tree.child_start[node] : tree.child_start[node + 1]]
    return [below[c] if c >= 0 else frozenset([tree.labels[~c]]) for c in children]


def child_sizes(tree: Tree) -> np.ndarray:
    """Number of labels below each edge."""
    below = label_sets(tree)
    return np.array([1 if c < 0 else len(below[c]) for c in tree.child])


def sets_by_name(tree: Tree) -> dict[str, frozenset[str]]:
    """Labels below each node that has a name."""
    pairs = zip(tree.names or [], label_sets(tree), strict=True)
    return {name: below for name, below in pairs if name is not None}

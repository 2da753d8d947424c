"""Hypothesis strategies: random valid trees, drawn without any builder."""

from itertools import pairwise, permutations
from random import Random

import numpy as np
from hypothesis import strategies as st

from hstree.tree import Tree

#: Any string that UTF-8 can write: line ends, quotes, wide characters and the empty one too.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)

#: Orders of four labels with one unmoved: 3-cycles, which are not their own inverses.
THREE_CYCLES = [
    order
    for order in permutations(range(4))
    if sum(label == place for place, label in enumerate(order)) == 1
]

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def trees(
    draw, *, max_labels=24, several_codes=True, wide=True, plain_labels=False, only_codes=False
):
    """Draw a valid tree of any shape and numbering that the rules allow, V = 1 included.

    `wide` allows nodes with more than two children; `several_codes` allows labels with more than
    one code. `plain_labels` names the labels w0, w1, ...; `only_codes` does so, too, and draws
    neither names nor meta, which takes most of the time.
    """
    n_labels = draw(st.integers(1, max_labels))
    random = draw(st.randoms(use_true_random=False))
    extra = draw(st.integers(0, n_labels)) if several_codes and n_labels > 1 else 0
    children = random_children(random, n_labels, wide=wide, extra_codes=extra)
    labels = [f"w{i}" for i in range(n_labels)]
    if not (plain_labels or only_codes):
        labels = draw(st.lists(texts, min_size=n_labels, max_size=n_labels, unique=True))
    count_lists = st.lists(
        st.integers(0, 9) | st.integers(0, 2**63 - 1), min_size=n_labels, max_size=n_labels
    )
    counts = draw(st.none() | count_lists)
    if only_codes:
        return Tree.from_children(labels, children, counts=counts)
    name_lists = st.lists(st.none() | texts, min_size=len(children), max_size=len(children))
    return Tree.from_children(
        labels,
        children,
        counts=counts,
        names=draw(st.none() | name_lists),
        meta=draw(st.dictionaries(texts, json_values, max_size=2)),
    )


def children_of(tree: Tree) -> list[list[int]]:
    """Return the children of each node, as tree.json has them."""
    return [tree.child[a:b].tolist() for a, b in pairwise(tree.child_start)]


def codes_by_walk(tree: Tree) -> list[list[list[tuple[int, int]]]]:
    """Return the codes of each label as (node, branch) pairs, in the order of their leaves."""
    children = children_of(tree)
    codes: list[list[list[tuple[int, int]]]] = [[] for _ in tree.labels]
    waiting: list[tuple[int, list[tuple[int, int]]]] = [(0, [])] if children else []
    while waiting:
        node, path = waiting.pop()
        for branch, child in enumerate(children[node]):
            step = [*path, (node, branch)]
            if child < 0:
                codes[~child].append(step)
            else:
                waiting.append((child, step))
    return [sorted(label_codes, key=lambda code: code[-1]) for label_codes in codes]


def counts_of(tree: Tree) -> dict[str, int]:
    assert tree.counts is not None
    return dict(zip(tree.labels, tree.counts.tolist(), strict=True))


def random_children(
    random: Random, n_labels: int, *, wide: bool = True, extra_codes: int = 0
) -> list[list[int]]:
    """Return the children of each node of a random tree, made by joining parts until one is left.

    Every extra code adds a leaf of some label. All nodes have two children unless `wide`.
    """
    parts = [~label for label in range(n_labels)]
    parts += [~random.randrange(n_labels) for _ in range(extra_codes)]
    nodes: list[list[int]] = []
    while len(unlike := sorted(set(parts))) > 1:
        n_children = random.choice([2, 2, random.randint(2, len(unlike))]) if wide else 2
        nodes.append(random.sample(unlike, n_children))
        for part in nodes[-1]:
            parts.remove(part)
        parts.append(len(nodes) - 1)
    # The last node is the root, number 0, and those that it joins come after it.
    last = len(nodes) - 1
    return [[c if c < 0 else last - c for c in children] for children in reversed(nodes)]


def chain(n_labels: int) -> Tree:
    """Return a binary tree whose label i has i + 1 decisions (the last one as many as before)."""
    child = np.empty((n_labels - 1, 2), np.int64)
    child[:, 0] = ~np.arange(n_labels - 1)
    child[:, 1] = np.arange(1, n_labels)
    child[-1, 1] = ~(n_labels - 1)
    return Tree([f"w{i}" for i in range(n_labels)], 2 * np.arange(n_labels), child.ravel())

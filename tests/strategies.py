"""Hypothesis strategies: random valid trees, drawn without the help of any builder."""

from itertools import pairwise
from random import Random

from hypothesis import strategies as st

from hstree.tree import Tree

#: Any string that UTF-8 can write: line ends, quotes, wide characters and the empty one too.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)

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
def trees(draw, *, max_labels=24, several_codes=True, wide=True, plain_labels=False):
    """Draw a valid tree: any shape and numbering that the rules allow, V = 1 included.

    `wide` allows nodes with more than two children; `several_codes` allows labels with more than
    one code. Both are only allowed, not promised. `plain_labels` names the labels w0, w1, ...
    """
    n_labels = draw(st.integers(1, max_labels))
    random = draw(st.randoms(use_true_random=False))
    extra = draw(st.integers(0, n_labels)) if several_codes and n_labels > 1 else 0
    children = random_children(random, n_labels, wide=wide, extra_codes=extra)
    labels = [f"w{i}" for i in range(n_labels)]
    if not plain_labels:
        labels = draw(st.lists(texts, min_size=n_labels, max_size=n_labels, unique=True))
    some_counts = st.lists(
        st.integers(0, 9) | st.integers(0, 2**63 - 1), min_size=n_labels, max_size=n_labels
    )
    some_names = st.lists(st.none() | texts, min_size=len(children), max_size=len(children))
    return Tree.from_children(
        labels,
        children,
        counts=draw(st.none() | some_counts),
        names=draw(st.none() | some_names),
        meta=draw(st.dictionaries(texts, json_values, max_size=2)),
    )


def children_of(tree: Tree) -> list[list[int]]:
    """Return the children of each node, as they stand in tree.json."""
    return [tree.child[a:b].tolist() for a, b in pairwise(tree.child_start)]


def random_children(
    random: Random, n_labels: int, *, wide: bool = True, extra_codes: int = 0
) -> list[list[int]]:
    """Return the children of each node of a random tree, numbered in random order.

    Every extra code puts a label in one more place: under a node that gets one more child (where
    `wide`), or beside another label, where a node takes that one's place.
    """
    root = _split(random, [~label for label in range(n_labels)], wide)
    for _ in range(extra_codes):
        _add_code(random, root, ~random.randrange(n_labels), wide)
    return _numbered(random, root) if n_labels > 1 else []


def _split(random, leaves, wide):
    """Return nested lists of leaves, by splitting a shuffled list at random points."""
    root = list(leaves)
    random.shuffle(root)
    pending = [root]
    while pending:
        node = pending.pop()
        n = len(node)
        if n < 3 or (wide and random.random() < 0.2):
            continue
        ways = random.randint(2, n) if wide else 2
        cuts = sorted(random.sample(range(1, n), ways - 1))
        parts = [node[a:b] for a, b in zip([0, *cuts], [*cuts, n], strict=True)]
        node[:] = [part if len(part) > 1 else part[0] for part in parts]
        pending += [part for part in node if isinstance(part, list)]
    return root


def _add_code(random, root, leaf, wide):
    nodes = [root]
    for node in nodes:
        nodes += [part for part in node if isinstance(part, list)]
    node = random.choice(nodes)
    if wide and leaf not in node:
        node.insert(random.randint(0, len(node)), leaf)
        return
    place = random.randrange(len(node))
    if node[place] != leaf:
        node[place] = [node[place], leaf]


def _numbered(random, root):
    """Number nested lists so that parents come before children, else in random order."""
    children = []
    pending = [(root, None)]
    while pending:
        node, place = pending.pop(random.randrange(len(pending)))
        if place is not None:
            parent, branch = place
            children[parent][branch] = len(children)
        pending += [
            (part, (len(children), branch))
            for branch, part in enumerate(node)
            if isinstance(part, list)
        ]
        children.append(list(node))
    return children

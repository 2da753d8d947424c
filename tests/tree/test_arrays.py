import copy
import hashlib
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given

from hstree.errors import TreeError
from hstree.tree import Tree
from tests.strategies import children_of, trees

THREE = [[~0, 1], [~1, ~2]]


@given(trees(only_codes=True))
def test_nodes_know_their_edge_parent_depth_and_level(tree):
    assert tree.parent.tolist()[:1] == tree.node_edge.tolist()[:1] == [-1][: tree.n_nodes]
    for node in range(1, tree.n_nodes):
        edge, parent = tree.node_edge[node], tree.parent[node]
        assert (tree.child[edge], tree.edge_node[edge]) == (node, parent)
        assert tree.depth[node] == tree.depth[parent] + 1
    by_level = [node for level in tree.levels for node in level.nodes.tolist()]
    assert by_level == sorted(range(tree.n_nodes), key=lambda node: (tree.depth[node], node))


@given(trees(only_codes=True))
def test_edges_know_their_node_its_rows_and_the_edge_before(tree):
    assert np.diff(tree.row_start).tolist() == [1 if k == 2 else k for k in tree.fan_out]
    for edge, (node, branch) in enumerate(zip(tree.edge_node, tree.edge_branch, strict=True)):
        assert edge == tree.child_start[node] + branch
        assert 0 <= branch < tree.edge_width[edge] == tree.fan_out[node]
        assert tree.edge_row[edge] == tree.row_start[node]
        assert tree.parent_edge[edge] == tree.node_edge[node]
    for level in tree.levels:
        edges = [np.flatnonzero(tree.edge_node == node).tolist() for node in level.nodes]
        assert level.edges.tolist() == [edge for of_node in edges for edge in of_node]
        assert np.diff(level.edge_start).tolist() == [len(of_node) for of_node in edges]


@given(trees(only_codes=True))
def test_sums_up_and_down_agree_with_a_walk(tree):
    of_label = np.arange(2 * tree.n_labels).reshape(-1, 2) ** 2
    above = -np.arange(len(tree.child))
    total = above.copy()
    tree.sum_down(total)

    def below(child):
        if child < 0:
            return of_label[~child]
        return sum(below(c) for c in tree.child[tree.edge_node == child])

    for edge, value in enumerate(tree.sum_up(of_label)):
        assert value.tolist() == below(tree.child[edge]).tolist()
        before = tree.parent_edge[edge]
        assert total[edge] == above[edge] + (total[before] if before >= 0 else 0)


def test_a_tree_cannot_be_changed_through_what_it_was_made_of():
    child = np.array([~0, ~1])
    tree = Tree(["a", "b"], [0, 2], child, counts=[3, 1])
    before = tree.sha256
    child[0] = 7
    assert tree.child.tolist() == [~0, ~1]
    assert Tree.from_children(["a", "b"], [[~0, ~1]], counts=[3, 1]).sha256 == before


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"child": [-1.0, -2.0]}, "child must be a vector of integers, not float64"),
        ({"child": [[-1, -2]]}, r"of shape \(1, 2\)"),
        ({"child": [2**64, -1]}, "child must be a vector of integers"),
        ({"counts": np.array([1, 2**63], np.uint64)}, "9223372036854775808, above"),
        ({"counts": [[1], [1, 2]]}, "counts must be a vector of integers"),
    ],
)
def test_what_is_no_vector_of_integers_is_refused(content, says):
    with pytest.raises(TreeError, match=says) as caught:
        Tree(["a", "b"], [0, 2], **{"child": [-1, -2]} | content)
    assert "\n" not in str(caught.value)


def test_the_error_names_the_first_rule_and_counts_the_others():
    with pytest.raises(TreeError, match=r"unique labels: 'a' .* \(and 2 more broken rules\)"):
        Tree(["a", "a"], [0, 1], [-1], counts=None)


def reference_hash(labels, children, counts, names):
    """Compute the hash as docs/tree-format.md words it, with nothing of hstree."""

    def strings(values):
        encoded = [value.encode() for value in values]
        ends = np.cumsum([0] + [len(value) for value in encoded])
        return b"".join(encoded), ends.astype("<i8").tobytes()

    def integers(values):
        return np.array(values, "<i8").tobytes()

    buffer, ends = strings(labels)
    members = [("labels", buffer), ("label_start", ends)]
    if counts is not None:
        members.append(("counts", integers(counts)))
    members.append(("child_start", integers(np.cumsum([0] + [len(c) for c in children]))))
    members.append(("child", integers([c for of_node in children for c in of_node])))
    if names is not None:
        named = [node for node, name in enumerate(names) if name is not None]
        buffer, ends = strings([names[node] for node in named])
        members += [("named", integers(named)), ("names", buffer), ("name_start", ends)]
    digest = hashlib.sha256(b"hstree tree 1\n")
    for name, content in members:
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


@given(trees())
def test_the_hash_is_the_documented_one(tree):
    children = children_of(tree)
    counts = None if tree.counts is None else tree.counts.tolist()
    assert tree.sha256 == reference_hash(tree.labels, children, counts, tree.names)


def test_trees_of_the_same_content_are_equal_whatever_their_meta():
    tree = Tree.from_children(["a", "b", "c"], THREE, meta={"method": "x"})
    assert tree == Tree.from_children(["a", "b", "c"], THREE)
    assert hash(tree) == hash(Tree.from_children(["a", "b", "c"], THREE))
    for other in (Tree.from_children(["a", "c", "b"], THREE), "a tree"):
        assert tree != other


def test_repr_is_one_line():
    tree = Tree(["a", "b"], [0, 2], [~0, ~1])
    assert repr(tree) == "Tree(2 labels, 1 nodes)"
    assert repr(tree.with_meta({"method": "x"})) == "Tree(2 labels, 1 nodes, method='x')"


def arrays_of(tree):
    """Every array of a tree, those that are computed when asked for among them."""
    levels = itertools.chain(*tree.levels)
    values = [getattr(tree, name) for name in dir(type(tree)) if not name.startswith("_")]
    return [v for v in [*values, *levels] if isinstance(v, np.ndarray)]


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda tree: pickle.loads(pickle.dumps(tree))]
)
def test_a_copy_is_as_immutable_as_its_tree(again, cached):
    tree = Tree.from_children(
        ["a", "b", "c"], THREE, counts=[3, 2, 1], names=["x", None], meta={"options": {"k": [1]}}
    )
    if cached:
        assert len(arrays_of(tree)) > 15
        assert tree.sha256
    other = again(tree)
    assert other == tree
    assert (other.labels, other.names, other.meta) == (tree.labels, tree.names, tree.meta)
    for array in [*arrays_of(tree), *arrays_of(other)]:
        assert not array.flags.writeable

"""networkx and GraphML, with networkx as the oracle."""

import networkx as nx
import numpy as np
import pytest

from hstree import formats
from hstree.errors import InputError, TreeError
from hstree.formats.networkx import from_networkx, to_networkx
from hstree.tree import Tree


def test_networkx_reads_the_graphml_as_it_is_written(tmp_path):
    tree = Tree.from_children(
        ["<eos>", "a & b\n", " ", ""],
        [[2, ~0, 1], [~1, ~2], [~3, ~1]],
        counts=[2**62, 3, 2, 1],
        names=["", None, "é"],
    )
    formats.write(tree, tmp_path / "tree.graphml")
    graph = nx.read_graphml(tmp_path / "tree.graphml", node_type=int)
    wanted = to_networkx(tree)
    assert dict(graph.nodes(data=True)) == dict(wanted.nodes(data=True))
    assert sorted(graph.edges(data="branch")) == sorted(wanted.edges(data="branch"))
    assert formats.read(tmp_path / "tree.graphml").sha256 == tree.sha256


def test_graphs_of_other_people():
    graph = nx.DiGraph()
    graph.add_edges_from([("dog", "poodle"), ("dog", "pug"), ("animal", "dog"), ("animal", 7)])
    tree = from_networkx(graph)
    # Nodes are in the wrong order ("dog" first), so they are numbered level by level.
    assert tree.labels == ("poodle", "pug", "7")
    assert tree.child.tolist() == [1, ~2, ~0, ~1]
    assert (tree.names, tree.counts) == (("animal", "dog"), None)


def test_a_node_is_called_by_its_label_or_its_name():
    graph = nx.DiGraph([("root", "a"), ("root", "x"), ("a", "c"), ("a", "d")])
    graph.nodes["a"]["label"] = 7
    graph.nodes["x"]["name"] = 8
    graph.nodes["c"].update(label="cat", name="none")
    tree = from_networkx(graph)
    assert (tree.labels, tree.names) == (("8", "cat", "d"), ("root", "7"))


@pytest.mark.parametrize(
    ("edges", "saying"),
    [
        ([], "no node"),
        ([(0, 1), (1, 0)], "every node has a parent"),
        ([(0, 1), (0, 2), (3, 4), (3, 5)], "0, 3 have no parent; a tree has one root"),
        ([(0, 1), (0, 2), (1, 3)], "the node 1 has one child"),
        ([(0, 1), (0, 2), (1, 3), (1, 4), (2, 1), (2, 5)], "the node 1 has 2 parents"),
        ([(0, 1), (0, 2), (3, 4), (3, 5), (4, 3), (4, 6)], "the node 3 is not under the root"),
        ([(1, 2), (1, 0), (2, 1), (2, 3), (4, 5), (4, 6)], "the node 1 is not under the root"),
    ],
)
def test_graphs_that_are_no_trees(edges, saying):
    with pytest.raises(InputError, match=saying):
        from_networkx(nx.DiGraph(edges))


@pytest.mark.parametrize("graph", [nx.Graph([(0, 1), (0, 2)]), nx.MultiDiGraph([(0, 1), (0, 2)])])
def test_other_graphs_are_refused(graph):
    with pytest.raises(InputError, match=r"not a networkx\.DiGraph"):
        from_networkx(graph)


@pytest.mark.parametrize(
    ("count", "error", "saying"),
    [
        (None, InputError, "the label 2 has the count None, and others"),
        ("many", InputError, "the label 2 has the count 'many'"),
        (-1, TreeError, "below zero"),
    ],
)
def test_counts_are_whole_numbers_of_all_labels(count, error, saying):
    graph = nx.DiGraph([(0, 1), (0, 2)])
    nx.set_node_attributes(graph, {1: 3, 2: np.int64(4)}, "count")
    assert from_networkx(graph).counts.tolist() == [3, 4]
    graph.nodes[2]["count"] = count
    with pytest.raises(error, match=saying):
        from_networkx(graph)


def test_damaged_graphml_is_refused(tmp_path):
    (tmp_path / "x.graphml").write_text("<graphml>\n<graph>\n</graphml>")
    with pytest.raises(InputError, match=r"x\.graphml is not sound GraphML: .* line 3"):
        formats.read(tmp_path / "x.graphml")

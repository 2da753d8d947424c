"""networkx graphs, and GraphML files, which networkx reads.

A tree is a directed graph with edges from parents to children. The graph has everything except the
meta: several codes (a label with several parents), wide nodes, counts and names, in order.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import networkx
import numpy as np

from hstree._files import read_regular
from hstree._text import one_line
from hstree.errors import InputError, naming
from hstree.formats.base import Format, check_quotable, list_edges, write_lines
from hstree.tree import Tree
from hstree.tree.order import from_edges
from hstree.tree.taxonomy.graphs import attribute_name, node_name, ordered_edges


def to_networkx(tree: Tree) -> networkx.DiGraph[int]:
    """Return a tree as a networkx graph. O(E).

    Nodes 0 to N - 1 are the inner nodes, with the attribute ``name`` if they have one. Nodes -1 to
    -V are the labels (``~v``, as in ``tree.child``), with ``label`` and, if known, ``count``. Edges
    lead from parent to child and have a ``branch``, 0 for the first child.

    Examples
    --------
    >>> graph = to_networkx(Tree.from_children(["a", "b"], [[~1, ~0]]))
    >>> list(graph.nodes(data=True)), list(graph.edges(data="branch"))
    ([(0, {}), (-1, {'label': 'a'}), (-2, {'label': 'b'})], [(0, -2, 0), (0, -1, 1)])
    """
    # Inner nodes, then labels, then edges in tree order
    graph: networkx.DiGraph[int] = networkx.DiGraph()
    for node, name in enumerate(tree.names or (None,) * tree.n_nodes):
        graph.add_node(node, **({} if name is None else {"name": name}))
    for i, label in enumerate(tree.labels):
        graph.add_node(~i, label=label)
        if tree.counts is not None:
            graph.nodes[~i]["count"] = int(tree.counts[i])
    for node, child, branch in list_edges(tree):
        graph.add_edge(node, child, branch=branch)
    return graph


def from_networkx(graph: networkx.DiGraph[Any]) -> Tree:
    """Return the tree of a networkx graph.

    Parameters
    ----------
    graph : networkx.DiGraph
        Edges must lead from parent to child. A node without children is a label: its ``label`` or
        ``name``, or the node itself as text. It may have several parents. Either all labels or none
        have a ``count``. The name of an inner node is its ``name`` or ``label``, or the node itself
        as text if that differs from its number in the tree. Children are in the order of
        ``branch``, a whole number, or else in the order of the edges.

    Returns
    -------
    Tree
        Labels are in the order of the graph's nodes. Inner nodes are, too, if parents come first;
        otherwise, they are numbered level by level.

    Raises
    ------
    InputError
        When the graph is undirected, has a cycle, has no root or several roots, or has a node with
        one child or several parents; when a node has no name, or a count or a branch is not a whole
        number.
    TreeError
        When two labels are the same, or a count is below zero.

    Examples
    --------
    >>> import networkx
    >>> tree = from_networkx(networkx.DiGraph([("animal", "cat"), ("animal", "dog")]))
    >>> tree.labels, tree.names
    (('cat', 'dog'), ('animal',))
    """
    edges = ordered_edges(graph)
    if len(graph) == 0:
        raise InputError("the graph has no node; a tree has at least one label")

    # (E,) parent and child of each edge, as numbers in the order of the graph's nodes
    items = list(graph.nodes(data=True))
    index = {item: i for i, (item, _) in enumerate(items)}
    parent = np.fromiter((index[above] for above, _ in edges), np.int64, len(edges))
    child = np.fromiter((index[below] for _, below in edges), np.int64, len(edges))
    tree = from_edges(parent, child, len(items), lambda i: repr(items[i][0]))

    # Inner nodes and labels, in tree order
    leaves = [items[i] for i in tree.leaves.tolist()]
    nodes = [items[i] for i in tree.nodes.tolist()]
    names: list[str | None] = []
    for number, (item, data) in enumerate(nodes):
        # In graphs from `to_networkx`, a node without a name is its number
        is_unnamed = str(item) == str(number) and attribute_name(data, is_leaf=False) is None
        names.append(None if is_unnamed else node_name(item, data, is_leaf=False))

    # Counts of all labels, or of none
    counts = [data.get("count") for _, data in leaves]
    has_counts = any(count is not None for count in counts)
    for (item, _), count in zip(leaves, counts, strict=True):
        if has_counts and not isinstance(count, Integral):
            raise InputError(
                f"the label {item!r} has the count {count!r}, and others have one; give all labels "
                "a whole number, or none"
            )
    return Tree(
        [node_name(item, data, is_leaf=True) for item, data in leaves],
        tree.child_start,
        tree.child,
        counts=list(map(int, counts)) if has_counts else None,
        names=names,
    )


def _graphml(tree: Tree) -> Iterator[str]:
    allowed = "[\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*"
    reason = (
        "XML holds no control characters but tabs and line feeds, and neither U+FFFE nor U+FFFF"
    )
    check_quotable(tree, allowed, reason)
    return (f"{line}\n" for line in networkx.generate_graphml(to_networkx(tree)))


def _read(path: Path, labels: Path | None) -> Tree:
    data = read_regular(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about GraphML ports, unused by trees
            graph = networkx.read_graphml(io.BytesIO(data))
    except Exception as error:  # damaged files raise many kinds in XML and networkx
        raise InputError(
            f"{path} is not sound GraphML: {one_line(error)}; write it again"
        ) from error
    with naming(path):
        return from_networkx(graph)


_KEEPS = ("counts", "names", "order", "numbers")
FORMAT = Format("graphml", (".graphml",), _KEEPS, partial(write_lines, _graphml), _read)

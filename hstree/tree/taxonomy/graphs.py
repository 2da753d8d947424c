"""Taxonomies from networkx graphs, whose edges lead from parents to children."""

from collections.abc import Mapping
from typing import Any

from hstree._text import brief
from hstree.errors import InputError
from hstree.tree.names import class_name, is_missing, whole_number
from hstree.tree.taxonomy.outline import Outline, item_name


def read_graph(graph: Any) -> Outline:
    """Read a networkx graph.

    The name of an item is its ``label`` or ``name``, or else the node itself. Children are in the
    order of the attribute ``branch`` if all edges have it.
    """
    # Items are numbered in node order, and children in edge order
    edges = ordered_edges(graph)
    nodes = list(graph)
    items = {node: item for item, node in enumerate(nodes)}
    outline = Outline("networkx", children=[items[below] for _, below in edges])
    for node in nodes:
        name = node_name(node, graph.nodes[node], is_leaf=graph.out_degree(node) == 0)
        outline.add(item_name(name), -1)

    for above, below in edges:
        item = items[below]
        if outline.parents[item] >= 0:
            raise InputError(
                f"{outline.names[item]!r} has several parents; for labels with several codes, use "
                "hstree.formats.networkx.from_networkx"
            )
        outline.parents[item] = items[above]
    return outline


def attribute_name(attributes: Mapping[str, Any], *, is_leaf: bool) -> Any:
    """Return the name in the attributes of a node: ``label`` for leaves, ``name`` for other nodes.

    If that is missing, return the other of the two; None if both are missing.
    """
    for key in ("label", "name") if is_leaf else ("name", "label"):
        value = attributes.get(key)
        if isinstance(value, str) or not is_missing(value):
            return value
    return None


def node_name(node: Any, attributes: Mapping[str, Any], *, is_leaf: bool) -> str:
    """Return the name of a graph node, from its attributes or else from the node itself."""
    name = attribute_name(attributes, is_leaf=is_leaf)
    try:
        return class_name(node if name is None else name)
    except InputError as error:
        raise InputError(
            f"the node {brief(node)} of the graph: {error}; give it a text as its 'label'"
        ) from error


def ordered_edges(graph: Any) -> list[tuple[Any, Any]]:
    """Return the parent and the child of each edge in a networkx graph, children in order.

    The order is that of the attribute ``branch``, a whole number, or else that of the edges. Raises
    InputError when only some edges have such a number.
    """
    if not graph.is_directed() or graph.is_multigraph():
        raise InputError("the graph is not a networkx.DiGraph; give one with edges to children")
    edges = list(graph.edges(data="branch"))
    if any(branch is not None for *_, branch in edges):
        for above, below, branch in edges:
            if whole_number(branch) is None:
                raise InputError(
                    f"the edge from {brief(above)} to {brief(below)} has the branch "
                    f"{brief(branch)}; set a whole number for all edges, 0 for a first child, or "
                    "for none"
                )
        edges.sort(key=lambda edge: int(edge[2]))
    return [(above, below) for above, below, _ in edges]

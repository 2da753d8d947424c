"""Taxonomies from networkx graphs, whose edges lead from parents to children."""

from collections.abc import Mapping
from typing import Any

from hstree._text import brief
from hstree.errors import InputError
from hstree.tree.names import class_name, is_missing, whole_number
from hstree.tree.taxonomy.outline import Outline, item_name


def read_graph(graph: Any) -> Outline:
    """Read a networkx graph.

    An item is called by its ``label`` or ``name``, else by the node itself. Children are in the
    order of ``branch`` where all edges have one.
    """
    # Items are numbered in the order of the nodes, children in that of the edges
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
                f"{outline.names[item]!r} has several parents; for a label with several codes, "
                "hstree.formats.networkx.from_networkx"
            )
        outline.parents[item] = items[above]
    return outline


def attribute_name(attributes: Mapping[str, Any], *, is_leaf: bool) -> Any:
    """Return the name in the attributes of a node: a leaf's ``label``, another's ``name``.

    The other of the two where that is missing; None where both are.
    """
    for key in ("label", "name") if is_leaf else ("name", "label"):
        value = attributes.get(key)
        if isinstance(value, str) or not is_missing(value):
            return value
    return None


def node_name(node: Any, attributes: Mapping[str, Any], *, is_leaf: bool) -> str:
    """Return the name of a node of a graph, by its attributes or else the node itself."""
    name = attribute_name(attributes, is_leaf=is_leaf)
    try:
        return class_name(node if name is None else name)
    except InputError as error:
        raise InputError(
            f"the node {brief(node)} of the graph: {error}; give it a text as its 'label'"
        ) from error


def ordered_edges(graph: Any) -> list[tuple[Any, Any]]:
    """Return the parent and the child of each edge of a networkx graph, children in their order.

    That is the order of ``branch``, a whole number, else that of the edges. Raises InputError where
    some edges have such a number and others do not.
    """
    if not graph.is_directed() or graph.is_multigraph():
        raise InputError("the graph is not a networkx.DiGraph; edges lead from parent to child")
    edges = list(graph.edges(data="branch"))
    if any(branch is not None for *_, branch in edges):
        for above, below, branch in edges:
            if whole_number(branch) is None:
                raise InputError(
                    f"the edge from {brief(above)} to {brief(below)} has the branch "
                    f"{brief(branch)}; give all edges a whole number, 0 for a first child, or none "
                    "a branch"
                )
        edges.sort(key=lambda edge: int(edge[2]))
    return [(above, below) for above, below, _ in edges]

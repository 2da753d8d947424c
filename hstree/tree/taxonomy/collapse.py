"""Trees from outlines: one root, no cycle, each leaf once, and no nodes with one child.

Nodes with one child decide nothing and are left out of the tree. Their names are kept in
``meta["collapsed"]`` (``docs/tree-format.md``), so that `hstree.tree.hierarchy` has every level.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hstree._arrays import Bool, Int64
from hstree._version import __version__
from hstree.errors import InputError
from hstree.tree.content import COLLAPSED, Content
from hstree.tree.order import from_edges, sum_to_root
from hstree.tree.taxonomy.outline import Outline


def tree_content(outline: Outline, origin: Mapping[str, str] | None = None) -> Content:
    """Check an outline; return the content of its tree, without nodes that have one child.

    `origin` is recorded in the tree's meta (default: the kind of the outline).
    """
    names = outline.names
    parent = np.array(outline.parents, np.int64)
    n_items = len(names)
    _check_root(outline, parent)
    n_children = np.bincount(parent[parent >= 0], minlength=n_items)
    _check_leaves(outline, n_children == 0)

    # (n_items - 1,) items with a parent, siblings in order
    child = np.flatnonzero(parent >= 0)
    if outline.children is not None:
        child = np.array(outline.children, np.int64)
    # (n_items,) item in the tree for each item: itself, or the first below that has not one child
    is_single = n_children == 1
    is_only = is_single[parent[child]]
    kept_below = np.arange(n_items)
    kept_below[parent[child[is_only]]] = child[is_only]
    kept_below = _follow(kept_below)

    # Edges between the kept items, as indices in `kept`
    kept = np.flatnonzero(~is_single)
    edge_child = child[~is_only]
    tree = from_edges(
        np.searchsorted(kept, parent[edge_child]),
        np.searchsorted(kept, kept_below[edge_child]),
        len(kept),
        lambda i: repr(names[kept[i]]),
    )
    nodes = kept[tree.nodes]
    leaves = kept[tree.leaves]
    # (n_items,) number of each item as in `Tree.child`
    number = np.zeros(n_items, np.int64)
    number[nodes] = np.arange(len(nodes))
    number[leaves] = ~np.arange(len(leaves))

    origin = dict(origin or {"kind": outline.kind})
    if outline.read_as:
        origin["read_as"] = outline.read_as
    return Content(
        [names[item] or "" for item in leaves.tolist()],
        tree.child_start,
        tree.child,
        names=[names[item] for item in nodes.tolist()],
        meta={
            "method": "taxonomy",
            "options": {},
            "hstree": __version__,
            "input": origin,
            COLLAPSED: _collapsed_names(names, parent, is_single, number[kept_below]),
        },
    )


def _check_root(outline: Outline, parent: Int64) -> None:
    """Raise InputError if an outline is empty, has several roots, or has a cycle."""
    names = outline.names
    if names in ([], [None]):
        raise InputError("the taxonomy is empty; give at least one class")
    roots = np.flatnonzero(parent < 0).tolist()
    if len(roots) > 1:
        first = ", ".join(repr(names[item]) for item in roots[:3])
        more = f" and {len(roots) - 3} more" if len(roots) > 3 else ""
        raise outline.error(f"{first}{more} have no parent; a taxonomy has one root, put one above")
    # The path upwards from each item ends at the root or, in a cycle, at an item with a parent
    top = _follow(np.where(parent < 0, np.arange(len(parent)), parent))
    in_cycle = top[parent[top] >= 0]
    if in_cycle.size:
        raise InputError(
            f"the taxonomy has a cycle through {names[in_cycle[0]]!r}; remove an edge of the cycle"
        )


def _follow(step: Int64) -> Int64:
    """Follow the steps of each item to their end, by doubling; in a cycle, stop at any item."""
    for _ in range(len(step).bit_length()):
        step = step[step]
    return step


def _check_leaves(outline: Outline, is_leaf: Bool) -> None:
    """Raise InputError for leaves without a name, and for two leaves with the same name."""
    leaves: dict[str, int] = {}
    for item in np.flatnonzero(is_leaf).tolist():
        name = outline.names[item]
        if name is None:
            raise InputError("a leaf of the taxonomy has no name; name all leaves, the labels")
        if leaves.setdefault(name, item) != item:
            first, second = (
                outline.path(outline.parents[leaf]) or "the root" for leaf in (leaves[name], item)
            )
            raise InputError(
                f"duplicate leaf {name!r} under {first!r} and {second!r}; rename one, since labels "
                "are unique"
            )


def _collapsed_names(
    names: Sequence[str | None], parent: Int64, is_single: Bool, number: Int64
) -> list[list[Any]]:
    """List the names of nodes with one child, from the top down, after the child below them.

    `number` (items,) is the node or label that each item becomes, as in `Tree.child`.
    """
    items = np.flatnonzero(is_single)
    depth = sum_to_root(np.ones(len(parent), np.int64), parent)
    chains: dict[int, list[Any]] = {}
    for item in items[np.argsort(depth[items], kind="stable")].tolist():
        chains.setdefault(int(number[item]), []).append(names[item])
    # Nodes by number, then labels by number
    ordered = sorted(chains, key=lambda number: (number < 0, abs(number)))
    return [[number, *chains[number]] for number in ordered]

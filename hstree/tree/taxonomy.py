"""The content of a tree from a taxonomy, in any form: the body of `Tree.from_taxonomy`.

`outlines` reads the forms. What all share is here: one root, no cycle, each leaf once, and nodes
with one child, which decide nothing and are left out of the tree. Their names stay in
``meta["collapsed"]`` (``docs/tree-format.md``), so that `hierarchy` knows every level.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hstree import progress
from hstree._arrays import Bool, Int64
from hstree._files import read_text
from hstree._text import brief, quoted
from hstree._version import __version__
from hstree.errors import InputError, OptionError, naming
from hstree.tree import outlines
from hstree.tree.content import COLLAPSED, Content
from hstree.tree.order import from_edges, sum_to_root
from hstree.tree.outlines import Outline

#: Endings of files of taxonomies.
TABLES, NEWICK, DARKNET = (".csv", ".tsv"), (".nwk", ".newick"), (".tree",)
_READERS = {
    ".csv": outlines.of_csv,
    ".tsv": outlines.of_csv,
    ".nwk": outlines.of_newick,
    ".newick": outlines.of_newick,
    ".tree": outlines.read_darknet,
}
#: Missing parents as pandas, NumPy, Python, R, spreadsheets and databases write them.
_MISSING_PARENTS = (*outlines.MISSING_AS_TEXT, "None", "NULL", "null", "NA", "N/A", "#N/A", r"\N")
#: What else rows of two could be, for messages.
_PAIRS = (
    "; rows of two are pairs (parent, child): if they are two levels, put the name of the root "
    "before them"
)
_FORMS = (
    "a nested dict, {child: parent}, {node: its children}, edges, a DataFrame, a .csv, .nwk or "
    ".tree file, Newick text, a networkx.DiGraph, a node with name and children, or a list of "
    "sparse cluster assignments"
)


def read_taxonomy(source: Any, labels: Sequence[Any] | None = None) -> Content:
    """Return the content of a tree; see `Tree.from_taxonomy`."""
    is_newick = isinstance(source, str) and (
        source.lstrip()[:1] == "(" or source.rstrip().endswith(";")
    )
    if isinstance(source, str | os.PathLike) and not is_newick:
        _refuse_labels(labels)
        name = os.fspath(source)
        read = _READERS.get(Path(name).suffix)
        if read is None:
            raise InputError(
                f"{quoted(name)} is neither Newick text, which ends in a semicolon, nor the name "
                f"of a file in {', '.join(_READERS)}; other trees: hstree.formats.read"
            )
        content = read_file(source, read)
    else:
        content = content_of(*_outline(source, labels))
    if form := content.meta["input"].get("read_as"):
        progress.say(f"taxonomy read as {form}")
    return content


def read_file(path: str | os.PathLike[str], read: Callable[[str], Outline]) -> Content:
    """Return the content of the tree of a file, whose text `read` reads."""
    text = read_text(path)
    with naming(path):
        return content_of(read(text), {"kind": "taxonomy file", "name": Path(path).name})


def _outline(source: Any, labels: Sequence[Any] | None) -> tuple[Outline, dict[str, str]]:
    """Read a taxonomy of any form, and name the form."""
    chain = getattr(source, "chain", source)  # PECOS's ClusterChain holds its matrices so
    chain = [chain] if hasattr(chain, "tocsr") else chain
    if isinstance(chain, list | tuple) and chain and all(hasattr(one, "tocsr") for one in chain):
        return outlines.of_chain(chain, labels), {"kind": "cluster chain"}
    _refuse_labels(labels)
    if isinstance(source, str):
        return outlines.of_newick(source), {"kind": "newick"}
    if isinstance(source, Mapping):
        outline, kind = outlines.read_mapping(source)
        return outline, {"kind": kind}
    if hasattr(source, "is_directed"):
        return outlines.of_graph(source), {"kind": "networkx"}
    root = getattr(source, "node", source)  # of bigtree's Tree
    if hasattr(root, "children") and hasattr(root, "name"):
        return outlines.of_nodes(root), {"kind": "nodes"}
    if isinstance(source, set | frozenset):
        raise InputError("a set of edges has no order; give a list, such as sorted(edges)")
    if hasattr(source, "to_dict") and not hasattr(source, "columns"):  # a Series
        raise InputError("a Series; give its to_dict(), if its values are parents of its index")
    titles = [str(title) for title in getattr(source, "columns", ())]
    if hasattr(source, "itertuples"):
        _refuse_index(source.index)
        source = source.astype(object).itertuples(index=False, name=None)
    elif hasattr(source, "__array__"):
        titles = titles or list(getattr(getattr(source, "dtype", None), "names", None) or ())
        source = _array_rows(source)
    if isinstance(source, Iterable):
        return _of_rows(source, titles)
    raise InputError(f"{quoted(brief(source))} is no taxonomy; give {_FORMS}")


def _refuse_index(index: Any) -> None:
    """Refuse the index of a DataFrame that may hold a level, since it has a name or holds text."""
    names = [name for name in index.names if name is not None]
    if names or not all(isinstance(value, int) for value in index[:1].tolist()):
        what = f", {str(names[0])!r}," if names else ""
        raise InputError(
            f"the DataFrame has an index{what} beside its columns; make it a column by "
            "reset_index(), or drop it by reset_index(drop=True)"
        )


def _array_rows(array: Any) -> list[Any]:
    """Return the rows of an array, None for masked values."""
    array = np.ma.asarray(array) if np.ma.isMaskedArray(array) else np.asarray(array)
    if array.dtype.kind == "U" and np.any(array == "nan"):
        raise InputError(
            "the array of text holds 'nan', as NumPy writes a missing value beside text; give "
            "numpy.array(..., object), or a list of rows"
        )
    rows: list[Any] = array.tolist()
    return rows if array.ndim else [rows]


def _refuse_labels(labels: object) -> None:
    if labels is not None:
        raise OptionError.about("labels", "names the labels of a cluster chain, and this is none")


def _of_rows(source: Iterable[Any], titles: Sequence[str]) -> tuple[Outline, dict[str, str]]:
    """Read edges, or the rows of level columns where these are not pairs."""
    rows: list[tuple[int, Sequence[Any]]] = []
    for number, row in enumerate(source):
        if not isinstance(row, Sequence | np.ndarray) or isinstance(row, str | bytes):
            raise InputError(f"item {number} is {quoted(brief(row))}, no pair (parent, child)")
        rows.append((number, list(row)))
    if not rows:
        raise InputError("the taxonomy has no edge; give pairs (parent, child)")
    if titles:
        return outlines.of_table(rows, titles), {"kind": "table"}
    if all(len(row) == 2 for _, row in rows):
        outline = outlines.of_edges([(row[0], row[1]) for _, row in rows], _PAIRS)
        return outline._replace(form="pairs (parent, child)"), {"kind": "edges"}
    form = "levels from the top down; the last name of a row is its class"
    return outlines.of_levels(rows)._replace(form=form), {"kind": "levels"}


def content_of(outline: Outline, origin: Mapping[str, str]) -> Content:
    """Check an outline and return the content of its tree, without nodes of one child."""
    names, parent = outline.names, np.array(outline.parents, np.int64)
    n_items = len(names)
    if names in ([], [None]):
        raise InputError("the taxonomy is empty; it has at least one class")
    roots = np.flatnonzero(parent < 0)
    if len(roots) > 1:
        some = ", ".join(repr(names[item]) for item in roots[:3])
        more = f" and {len(roots) - 3} more" if len(roots) > 3 else ""
        raise InputError(
            f"{some}{more} have no parent; a taxonomy has one root, put one above{outline.hint}"
        )
    if roots.size and names[roots[0]] in _MISSING_PARENTS:
        raise InputError(
            f"the root is called {names[roots[0]]!r}, as a missing value is written; leave the "
            "cell of the parent empty"
        )
    _refuse_cycles(names, parent)
    n_children = np.bincount(parent[parent >= 0], minlength=n_items)
    _check_leaves(outline, n_children == 0)
    # (n_items,) what stands for each item: the first one below that has not one child
    is_single, below = n_children == 1, np.arange(n_items)
    child = np.flatnonzero(parent >= 0)
    if outline.children is not None:
        child = np.array(outline.children, np.int64)
    only = child[is_single[parent[child]]]
    below[parent[only]] = only
    below = _ends(below)
    kept = np.flatnonzero(~is_single)
    edge = child[~is_single[parent[child]]]
    first, last = (np.searchsorted(kept, item) for item in (parent[edge], below[edge]))
    tree = from_edges(first, last, len(kept), lambda i: repr(names[kept[i]]))
    nodes, leaves = kept[tree.nodes], kept[tree.leaves]
    # (n_items,) number of each item as in `Tree.child`
    code = np.zeros(n_items, np.int64)
    code[nodes], code[leaves] = np.arange(len(nodes)), ~np.arange(len(leaves))
    node_names = [names[item] for item in nodes.tolist()]
    return Content(
        [names[item] or "" for item in leaves.tolist()],
        tree.child_start,
        tree.child,
        names=node_names,
        meta={
            "method": "taxonomy",
            "options": {},
            "hstree": __version__,
            "input": {**origin, "read_as": outline.form} if outline.form else dict(origin),
            COLLAPSED: _collapsed(names, parent, is_single, code[below]),
        },
    )


def _refuse_cycles(names: Sequence[str | None], parent: Int64) -> None:
    """Refuse items from which the way up does not end at a root."""
    end = _ends(np.where(parent < 0, np.arange(len(parent)), parent))
    stuck = np.flatnonzero(parent[end] >= 0)
    if stuck.size:
        item, cycle = int(end[stuck[0]]), list[int]()
        while item not in cycle[:100]:
            cycle.append(item)
            item = int(parent[item])
        way = " under ".join(repr(names[i]) for i in [*cycle[:4], *cycle[:1]])
        raise InputError(f"the taxonomy has a cycle: {way}; a taxonomy has none")


def _ends(step: Int64) -> Int64:
    """Follow each item to where it leads in the end, by doubling; a cycle ends anywhere in it."""
    for _ in range(len(step).bit_length()):
        step = step[step]
    return step


def _check_leaves(outline: Outline, is_leaf: Bool) -> None:
    """Refuse leaves without a name, and two of the same."""
    first: dict[str, int] = {}
    for item in np.flatnonzero(is_leaf).tolist():
        name = outline.names[item]
        if name is None:
            raise InputError("a leaf of the taxonomy has no name; leaves are labels")
        if (other := first.setdefault(name, item)) != item:
            parents = [outline.parents[leaf] for leaf in (other, item)]
            above = [outline.path(parent) for parent in parents]
            if above[0] == above[1]:  # they may differ further up
                above = [outline.path(parent, outlines.MOST_COMPARED) for parent in parents]
            raise InputError(
                f"duplicate leaf {name!r} under {above[0] or 'the root'!r} and "
                f"{above[1] or 'the root'!r}; rename one, since labels are unique"
            )


def _collapsed(
    names: Sequence[str | None], parent: Int64, is_single: Bool, code: Int64
) -> list[list[Any]]:
    """List the names of nodes of one child, from the top down, after what stands for them."""
    items = np.flatnonzero(is_single)
    depth = sum_to_root(np.ones(len(parent), np.int64), parent)
    chains: dict[int, list[Any]] = {}
    for item in items[np.argsort(depth[items], kind="stable")].tolist():
        chains.setdefault(int(code[item]), []).append(names[item])
    return [[number, *chains[number]] for number in sorted(chains, key=lambda c: (c < 0, abs(c)))]

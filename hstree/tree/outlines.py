"""Taxonomies in the forms of other libraries and of files, read as an `Outline`.

Items of nested mappings, level columns, node objects, Newick and cluster chains are told apart by
where they stand; those of parents, edges and graphs by their names.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import pairwise, zip_longest
from typing import Any, NamedTuple

from hstree._ragged import canonical_csr
from hstree._text import quoted
from hstree.errors import InputError

#: Titles of a column of parents; the other column of two then has the children.
PARENT_TITLES = ("parent", "parent_id", "source", "from", "broader")
#: A token of Newick, or what is skipped: blanks, comments and lengths of branches.
_NEWICK = re.compile(
    r"""(?P<skipped>\s+|\[[^\]]*\]|:\s*[-+.\w]+)"""
    r"""|'(?:[^']|'')*'|"(?:[^"]|"")*"|[(),;]|[^\s(),:;\[\]'"][^(),:;\[\]]*"""
)

#: Columns of a table without its titles, and the number of the line of each row.
Rows = Sequence[tuple[int, Sequence[Any]]]


class Outline(NamedTuple):
    """Items of a taxonomy, in the order in which they were met."""

    names: list[str | None]  #: None for an item without a name
    parents: list[int]  #: item above each, -1 for none; it may come after the item

    def add(self, name: str | None, parent: int) -> int:
        """Add an item and return its number."""
        self.names.append(name)
        self.parents.append(parent)
        return len(self.names) - 1


def is_missing(value: Any) -> bool:
    """Whether a value is no name: None, nan, pandas' NA or the empty string."""
    is_none = value is None or type(value).__name__ == "NAType"
    return is_none or bool(value != value) or value == ""


def named(value: Any) -> str:
    """Return the name of an item as text; InputError where it has none."""
    if is_missing(value):
        raise InputError("an item of the taxonomy has no name; give each a text or a number")
    return str(value)


def is_scalar(value: Any) -> bool:
    """Whether a value may be a name, and holds no others."""
    return not isinstance(value, Mapping | list | tuple | set | frozenset)


def of_edges(edges: Iterable[tuple[Any, Any]]) -> Outline:
    """Read pairs of a parent and a child; a parent without a name is none."""
    outline = Outline([], [])
    index: dict[str, int] = {}
    has_parent: set[int] = set()

    def item(value: Any) -> int:
        name = named(value)
        if name not in index:
            index[name] = outline.add(name, -1)
        return index[name]

    for above, below in edges:
        parent = -1 if is_missing(above) else item(above)
        child = item(below)
        if child in has_parent:
            first = outline.parents[child]
            where = "nothing" if first < 0 else repr(outline.names[first])
            again = "again" if parent == first else f"under {str(above)!r} too"
            raise InputError(
                f"{str(below)!r} stands under {where} and {again}; an item has one parent, once"
            )
        has_parent.add(child)
        outline.parents[child] = parent
    return outline


def of_parents(parents: Mapping[Any, Any]) -> Outline:
    """Read a mapping of children to parents."""
    for child, parent in parents.items():
        if not is_scalar(parent):
            raise InputError(
                f"{str(child)!r} has {type(parent).__name__} and others a name; give nested "
                "mappings, or a name as the parent of each child"
            )
    return of_edges((parent, child) for child, parent in parents.items())


def of_nested(nested: Mapping[Any, Any]) -> Outline:
    """Read nested mappings of names to what is below: a mapping, a list of leaves or nothing."""
    outline = Outline([], [])
    root = -1 if len(nested) == 1 else outline.add(None, -1)
    stack = [(name, below, root) for name, below in reversed(list(nested.items()))]
    while stack:
        name, below, parent = stack.pop()
        item = outline.add(named(name), parent)
        if isinstance(below, set | frozenset):
            below = sorted(below, key=str)
        if is_scalar(below) and is_missing(below):
            continue
        if is_scalar(below):
            raise InputError(
                f"below {str(name)!r} is {quoted(repr(below))}; give a mapping, a list of names, "
                "or None for a leaf"
            )
        inner: list[tuple[Any, Any, int]] = []
        for each in [below] if isinstance(below, Mapping) else below:
            pairs = each.items() if isinstance(each, Mapping) else [(each, None)]
            inner += [(one, what, item) for one, what in pairs]
        stack += reversed(inner)
    return outline


def of_levels(rows: Rows) -> Outline:
    """Read rows of names from the top down under one root; empty cells at the end are left out.

    Rows may repeat, as those of samples do.
    """
    outline = Outline([None], [-1])
    index: dict[tuple[int, str], int] = {}
    for number, row in rows:
        cells = ["" if is_missing(cell) else str(cell).strip() for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        if not all(cells):
            raise InputError(
                f"row {number} has an empty cell before its last name; fill it, or leave out "
                "the levels below"
            )
        item = 0
        for cell in cells:
            key = (item, cell)
            item = index[key] if key in index else index.setdefault(key, outline.add(cell, item))
    return outline


def of_table(rows: Rows, titles: Sequence[str]) -> Outline:
    """Read two columns of parents and children, or columns of levels.

    They are parents and children where one is titled so, or where one name stands in both columns
    and none twice in a row.
    """
    width = max((len(row) for _, row in rows), default=0)
    if width == 0:
        raise InputError("the table has no row; give parents and children, or columns of levels")
    plain = [title.strip().lower() for title in titles]
    if width == 2:
        pairs = [[str(cell).strip() for cell in (*row, "")[:2]] for _, row in rows]
        if plain and plain[-1] in PARENT_TITLES:
            return of_edges((parent, child) for child, parent in pairs)
        above, below = (set(column) - {""} for column in zip(*pairs, strict=True))
        is_twice = any(parent == child for parent, child in pairs)  # which no edge has
        if (plain and plain[0] in PARENT_TITLES) or (above & below and not is_twice):
            return of_edges((parent, child) for parent, child in pairs)
    if named_so := [title for title in plain if title in PARENT_TITLES[:2]]:
        raise InputError(
            f"the table has a column {named_so[0]!r} and {width} columns; keep the columns of "
            "parents and children alone"
        )
    return of_levels(rows)


def of_csv(text: str) -> Outline:
    """Read the text of a table, separated by what is most frequent in its first line.

    The first line has titles, unless one of its cells stands again below, in the same column.
    """
    first = re.sub('"[^"]*"', "", text.partition("\n")[0])
    delimiter = max(",;\t|", key=first.count)
    lines = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = [(lines.line_num, row) for row in lines if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InputError(f"line {lines.line_num}: {error}; mend the quotes") from error
    if not rows:
        raise InputError("the file is empty; give parents and children, or columns of levels")
    first_row = [cell.strip() for cell in rows[0][1]]
    columns = zip_longest(*([cell.strip() for cell in row] for _, row in rows[1:]), fillvalue="")
    if any(cell in column for cell, column in zip(first_row, columns, strict=False)):
        return of_table(rows, ())
    for number, row in rows:
        if len(row) > len(first_row):
            raise InputError(
                f"line {number} has {len(row)} cells, and the titles are {len(first_row)}; quote "
                "names that hold the separator"
            )
    return of_table(rows[1:], first_row)


def of_nodes(root: Any) -> Outline:
    """Read objects with a `name` and `children`, such as nodes of anytree, bigtree and ete."""
    outline = Outline([], [])
    visited: set[int] = set()
    stack = [(root, -1)]
    while stack:
        node, parent = stack.pop()
        name = None if node.name is None else str(node.name) or None
        if id(node) in visited:
            raise InputError(f"the node {name!r} is below two others; a node has one parent")
        visited.add(id(node))
        item = outline.add(name, parent)
        stack += [(child, item) for child in reversed(list(node.children)) if child is not None]
    return outline


def of_graph(graph: Any) -> Outline:
    """Read a networkx graph of edges from parents to children.

    An item is called by its ``label`` or ``name``, else by the node itself. Children are in the
    order of ``branch`` where all edges have one.
    """
    edges = edges_of_graph(graph)
    names: dict[Any, str] = {}
    for node, data in graph.nodes(data=True):
        names[node] = named(called(data, is_leaf=graph.out_degree(node) == 0, default=node))
    order = list(names)
    outline = Outline([names[node] for node in order], [-1] * len(order))
    index = {node: item for item, node in enumerate(order)}
    for above, below in edges:
        item = index[below]
        if outline.parents[item] >= 0:
            first = outline.names[outline.parents[item]]
            raise InputError(
                f"{names[below]!r} stands under {first!r} and under {names[above]!r} too; for a "
                "label with several codes, hstree.formats.networkx.from_networkx"
            )
        outline.parents[item] = index[above]
    return outline


def called(data: Mapping[str, Any], *, is_leaf: bool, default: Any) -> Any:
    """Return what the attributes of a node of a graph call it: a leaf's label, others' name."""
    keys = ("label", "name") if is_leaf else ("name", "label")
    return next((data[key] for key in keys if data.get(key) is not None), default)


def edges_of_graph(graph: Any) -> list[tuple[Any, Any]]:
    """Return the parent and the child of each edge of a networkx graph, children in their order."""
    if not graph.is_directed() or graph.is_multigraph():
        raise InputError("the graph is not a networkx.DiGraph; edges lead from parent to child")
    edges = list(graph.edges(data="branch"))
    if all(isinstance(branch, int) for *_, branch in edges):
        edges.sort(key=lambda edge: edge[2])
    return [(above, below) for above, below, _ in edges]


def of_newick(text: str) -> Outline:
    """Read one tree in Newick; lengths of branches and comments are skipped.

    Names may be in single or double quotes, which are doubled inside; underscores stay. The
    semicolon at the end may be missing, as bigtree leaves it out.
    """
    outline = Outline([], [])
    above: list[int] = []  # the open nodes, from the root down
    item = -1  # what has just been read, until the comma or bracket after it
    before = ""  # the token before
    for at, token in _newick_tokens(text):
        wrong = None
        if before == ";":
            wrong = "another tree after the semicolon; give one"
        elif token in "),;" and item < 0:
            wrong = "a leaf has no name"
        elif token in "),;" and (token == ";") == bool(above):
            wrong = "more brackets are opened than closed, or closed than opened"
        elif token not in "),;" and item >= 0 and (before != ")" or token == "("):
            wrong = "a comma is missing"
        if wrong:
            raise InputError(f"Newick, character {at + 1}, {quoted(token)}: {wrong}")
        if token == "(":
            above.append(outline.add(None, above[-1] if above else -1))
        elif token in "),;":
            item = above.pop() if token == ")" else -1
        elif before == ")":
            outline.names[item] = _unquoted(token) or None
        else:
            item = outline.add(_unquoted(token) or None, above[-1] if above else -1)
        before = token
    if above or not outline.names:
        raise InputError("Newick: more brackets are opened than closed, or there is no tree")
    return outline


def _newick_tokens(text: str) -> Iterator[tuple[int, str]]:
    """Yield the tokens of Newick and where they begin."""
    at = 0
    while at < len(text):
        match = _NEWICK.match(text, at)
        if match is None:
            raise InputError(
                f"Newick, character {at + 1}, {quoted(text[at:])}: a quote or comment that does "
                "not end, or a colon without a length"
            )
        if match["skipped"] is None:
            yield at, match[0].strip()
        at = match.end()


def _unquoted(token: str) -> str:
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote) if quote in "'\"" else token


def of_chain(matrices: Sequence[Any], labels: Sequence[Any] | None) -> Outline:
    """Read a chain of cluster assignments, sparse matrices (children, parents) from the top down.

    The rows of the last one are labels, named by `labels` or by their numbers.
    """
    for number, (upper, lower) in enumerate(pairwise(matrices), start=1):
        if upper.shape[0] != lower.shape[1]:
            raise InputError(
                f"matrix {number} of the chain has {lower.shape[1]} columns for the "
                f"{upper.shape[0]} clusters of the one before; give (children, parents)"
            )
    n_labels, n_roots = matrices[-1].shape[0], matrices[0].shape[1]
    if labels is not None and len(labels) != n_labels:
        raise InputError(f"{len(labels)} labels for the {n_labels} rows of the last matrix")
    words = [str(v) for v in range(n_labels)] if labels is None else list(map(named, labels))
    outline = Outline([None], [-1])
    parents = [0] if n_roots == 1 else [outline.add(None, 0) for _ in range(n_roots)]
    for number, matrix in enumerate(matrices):
        matrix = canonical_csr(matrix)
        is_last = number == len(matrices) - 1
        items = []
        for row, size in enumerate((matrix.indptr[1:] - matrix.indptr[:-1]).tolist()):
            what = f"label {words[row]!r}" if is_last else f"cluster {row} of matrix {number}"
            if size != 1:
                raise InputError(f"the {what} is in {size} clusters; it has one parent")
            parent = parents[int(matrix.indices[matrix.indptr[row]])]
            items.append(outline.add(words[row] if is_last else None, parent))
        if empty := sorted(set(parents) - set(outline.parents)):
            raise InputError(
                f"column {parents.index(empty[0])} of matrix {number} is a cluster without members"
            )
        parents = items
    return outline

"""Taxonomies in the forms of other libraries and of files, read as an `Outline`.

Items of nested mappings, level columns, node objects, Newick and cluster chains are told apart by
where they stand; those of parents, edges and graphs by their names. Where several forms look alike,
an explicit rule decides, and `Outline.form` names it.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hstree._arrays import canonical_csr
from hstree._text import brief, quoted
from hstree.errors import InputError
from hstree.tree.names import class_name, is_missing, whole_number

#: Titles of a column of parents, beside those that hold "parent"; of two columns the other one then
#: has the children.
PARENT_TITLES = ("source", "from", "broader")
#: Titles of a column that numbers the rows, such as the index that pandas writes.
_ID_TITLE = re.compile(r"|index|(?i:(.*[_ -])?id)|.*[a-z]I[Dd]|Unnamed: 0")
#: Items of a path that messages show, and of two paths that differ above these.
MOST_SHOWN, MOST_COMPARED = 8, 64
#: Missing values of pandas and NumPy as text.
MISSING_AS_TEXT = ("nan", "NaN", "<NA>", "NaT")
#: Keys of a node of treelib's ``to_dict``, beside which children's names are no keys.
_TREELIB_KEYS = ({"children"}, {"children", "data"})
#: A token of Newick, or what is skipped: blanks, comments and lengths of branches.
_NEWICK = re.compile(
    r"""(?P<skipped>\s+|\[[^\]]*\]|:\s*[-+.\w]+)"""
    r"""|'(?:[^']|'')*'|"(?:[^"]|"")*"|[(),;]|[^\s(),:;\[\]'"][^(),:;\[\]]*"""
)

#: A line of darknet's trees.
_DARKNET = re.compile(r"(\S+)[ \t]+(-1|[0-9]{1,9})")

#: Columns of a table without its titles, and the number of the line of each row.
Rows = Sequence[tuple[int, Sequence[Any]]]


class Outline(NamedTuple):
    """Items of a taxonomy, in the order in which they were met."""

    names: list[str | None]  #: None for an item without a name
    parents: list[int]  #: item above each, -1 for none; it may come after the item
    hint: str = ""  #: what other form could be meant, for messages
    form: str = ""  #: how it was read, and by which rule, where there are other forms
    children: list[int] | None = None  #: items with a parent, siblings in order; None as items are

    def add(self, name: str | None, parent: int) -> int:
        """Add an item and return its number."""
        self.names.append(name)
        self.parents.append(parent)
        return len(self.names) - 1

    def path(self, item: int, most: int = MOST_SHOWN) -> str:
        """Return the names from the root down to an item, "shoes/Other"; the last `most` of more.

        An item without a name is called by its number among its siblings, "#1"; such a root is left
        out.
        """
        names = list[str]()
        while item >= 0 and len(names) <= most:
            name, parent = self.names[item], self.parents[item]
            if name is None and parent >= 0:
                siblings = [i for i, above in enumerate(self.parents) if above == parent]
                name = f"#{siblings.index(item) + 1}"
            if name is not None:
                names.append(name)
            item = parent
        if len(names) > most:
            names[most:] = ["..."]
        return "/".join(reversed(names))


def named(value: Any) -> str:
    """Return the name of an item as text; InputError where it has none."""
    if is_missing(value):
        raise InputError("an item of the taxonomy has no name; give each a text or a number")
    return class_name(value)


def is_collection(value: Any) -> bool:
    """Return whether a value holds others, as a mapping, a list or an array, and is no name."""
    return (
        hasattr(value, "__iter__")
        and not isinstance(value, str | bytes)
        and getattr(value, "ndim", 1) > 0
    )


def of_edges(edges: Iterable[tuple[Any, Any]], hint: str = "") -> Outline:
    """Read pairs of a parent and a child; a parent without a name is none."""
    outline = Outline([], [], hint)
    index: dict[str, int] = {}
    has_parent: set[int] = set()

    def item(value: Any) -> int:
        if is_collection(value):
            raise InputError(
                f"{brief(value)} stands where a name is expected; give a pair (parent, child) for "
                "each child, or a mapping of each parent to its list of children"
            )
        name = named(value)
        if name not in index:
            index[name] = outline.add(name, -1)
        return index[name]

    for above, below in edges:
        parent = -1 if is_missing(above) else item(above)
        child = item(below)
        if child in has_parent:
            first = outline.parents[child]
            shown = ["nothing" if at < 0 else repr(outline.names[at]) for at in (first, parent)]
            again = "again" if parent == first else f"under {shown[1]} too"
            raise InputError(
                f"{outline.names[child]!r} stands under {shown[0]} and {again}; an item has one "
                f"parent, once{hint}"
            )
        has_parent.add(child)
        outline.parents[child] = parent
    return outline


def read_mapping(mapping: Mapping[Any, Any]) -> tuple[Outline, str]:
    """Read a mapping, and name its form: parents, nested or children.

    The form follows from the values. If they are names, they are the parents of the keys. If they
    are mappings, lists or missing, they are what is below the keys: by node, where a key stands in
    the list of another key and no list holds another, else nested.
    """
    lists = [key for key, value in mapping.items() if is_collection(value)]
    if not all(is_collection(value) or is_missing(value) for value in mapping.values()):
        if lists:
            raise InputError(
                f"{brief(lists[0])} has {type(mapping[lists[0]]).__name__} and others a name; give "
                "nested mappings, or a name as the parent of each child"
            )
        outline = of_edges((parent, child) for child, parent in mapping.items())
        return outline._replace(form="{child: parent}, since each value is one name"), "parents"
    _refuse_columns(mapping)
    outline = of_nested(mapping)
    key_again = _key_below_another(outline) if len(mapping) > 1 else None
    if key_again is None:
        return outline._replace(form="nested mappings"), "nested"
    names, parents = outline.names, outline.parents
    # Item 0 is above the keys; children stand below one key each
    depth = [0] * len(names)
    for item in range(1, len(names)):
        depth[item] = depth[parents[item]] + 1
    name, path = names[key_again], outline.path(key_again)
    if max(depth) > 2:
        raise InputError(
            f"{name!r} is a key and the leaf {path!r}, too; put what is below the key there, put "
            "all keys below one, for nested mappings, or give a list of children for each node"
        )
    form = f"{{node: its children}}, since {name!r} is a key and the leaf {path!r}, too"
    below = [(names[parents[item]], names[item]) for item, level in enumerate(depth) if level == 2]
    children = {child for _, child in below}
    keys = [names[item] for item, level in enumerate(depth) if level == 1]
    edges = [(None, key) for key in dict.fromkeys(keys) if key not in children]
    hint = "; it is a mapping of nodes to their children: for parents, give {child: parent}"
    return of_edges(edges + below, hint)._replace(form=form), "children"


def _key_below_another(outline: Outline) -> int | None:
    """Return a leaf that has the name of a key of the outermost mapping, but of none above it."""
    names, parents = outline.names, outline.parents
    inner = set(parents)
    # (items,) the key above or at each item
    key = [0] * len(names)
    for item in range(1, len(names)):
        key[item] = item if parents[item] == 0 else key[parents[item]]
    key_names = {names[item] for item in key[1:]}
    for item in range(1, len(names)):
        is_leaf = item not in inner and key[item] != item
        if is_leaf and names[item] in key_names and names[item] != names[key[item]]:
            return item
    return None


def _refuse_columns(mapping: Mapping[Any, Any]) -> None:
    """Refuse the columns of a table, lists of the same length of which one is titled as parents."""
    titles = [title for title in mapping if isinstance(title, str) and is_parent_title(title)]
    lists = [value for value in mapping.values() if isinstance(value, Sequence)]
    if titles and len(lists) == len(mapping) > 1 and len(set(map(len, lists))) == 1:
        raise InputError(
            f"the mapping holds columns of a table, with parents in {titles[0]!r}; give "
            "pandas.DataFrame(...) of it, or pairs (parent, child)"
        )


def of_nested(nested: Mapping[Any, Any]) -> Outline:
    """Read nested mappings of names to what is below: a mapping, a list of leaves or nothing."""
    outline = Outline([], [])
    root = -1 if len(nested) == 1 else outline.add(None, -1)
    # Collections that have been read, by their ids, which they keep, and those around an item
    read: dict[int, Any] = {id(nested): nested}
    around = {id(nested)}
    left = object()  # on the stack below the items of a collection
    stack: list[tuple[Any, Any, int]] = [(name, below, root) for name, below in nested.items()]
    stack.reverse()
    while stack:
        name, below, parent = stack.pop()
        if name is left:
            around.remove(below)
            continue
        if is_collection(name):
            raise InputError(
                f"{brief(name)} stands where a name is expected{_below(outline, parent)}; give a "
                "mapping of names to what is below each"
            )
        item = outline.add(named(name), parent)
        if not is_collection(below):
            if not is_missing(below):
                raise InputError(
                    f"below {outline.path(item)!r} is {quoted(brief(below))}; give a mapping, a "
                    "list of names, or None for a leaf"
                )
            continue
        if id(below) in around:
            raise InputError(f"what is below {outline.path(item)!r} holds itself; a tree ends")
        inner = [(name, what, item) for name, what in _members(below, outline, item)]
        if id(below) in read:
            inner = inner[:1]  # its leaves are duplicates: one is enough for the error
        read[id(below)] = below
        around.add(id(below))
        stack.append((left, id(below), item))
        stack += reversed(inner)
    return outline


def _below(outline: Outline, item: int) -> str:
    """Say below which item something stands; nothing of the root."""
    path = outline.path(item)
    return f", below {path!r}" if path else ""


def _members(below: Any, outline: Outline, item: int) -> Iterator[tuple[Any, Any]]:
    """Yield the names in a mapping, a list, a set or an array, and what is below each."""
    if isinstance(below, Mapping):
        if set(below) in _TREELIB_KEYS and is_collection(below["children"]):
            raise InputError(
                f"below {outline.path(item)!r} is 'children' alone, as treelib's to_dict writes "
                "it; put what it holds there, or give {child: parent}"
            )
        yield from below.items()
        return
    if hasattr(below, "columns") or getattr(below, "ndim", 1) > 1:
        raise InputError(
            f"below {outline.path(item)!r} is a table ({type(below).__name__}); give a mapping, a "
            "list of names, or None for a leaf"
        )
    if isinstance(below, set | frozenset):
        below = sorted(map(named, below))  # in the same order in each process
    for member in below:
        if isinstance(member, Mapping):
            yield from member.items()
        else:
            yield member, None


def of_levels(rows: Rows, titles: Sequence[str] = ()) -> Outline:
    """Read rows of names from the top down under one root; empty cells at the end are left out.

    Rows may repeat, as those of samples do.
    """
    outline = Outline([None], [-1])
    index: dict[tuple[int, str], int] = {}
    paths = dict[tuple[str, ...], None]()
    for number, row in rows:
        try:
            cells = [None if is_missing(cell) else class_name(cell) for cell in row]
        except InputError as error:
            raise InputError(f"row {number}: {error}") from error
        while cells and cells[-1] is None:
            cells.pop()
        names = [cell for cell in cells if cell is not None]
        if len(names) < len(cells):
            raise InputError(
                f"row {number} has an empty cell before its last name; fill it, or leave out "
                "the levels below"
            )
        if missing := set(MISSING_AS_TEXT).intersection(names):
            raise InputError(
                f"row {number} has the cell {min(missing)!r}, as a missing value is written; leave "
                "the cell empty, or give a class of this name another one"
            )
        paths[tuple(names)] = None
        item = 0
        for name in names:
            key = (item, name)
            if key not in index:
                index[key] = outline.add(name, item)
            item = index[key]
    _refuse_ids([path for path in paths if len(path) > 1], titles)
    return outline


def _refuse_ids(paths: Sequence[tuple[str, ...]], titles: Sequence[str]) -> None:
    """Refuse a first column that is different in each row, and so is no level above classes.

    Two rows are taken as levels unless the column looks like an id. A column that is titled as an
    id may have a value in several rows, as a product in two categories; it is refused where it has
    more values than the next one.
    """
    first, second = {path[0] for path in paths}, {path[1] for path in paths}
    has_id_title = bool(titles) and _ID_TITLE.fullmatch(titles[0].strip()) is not None
    is_different = len(first) == len(paths) > 1
    looks_like_id = has_id_title or all(re.search("[0-9]", name) for name in first)
    if is_different and (looks_like_id or len(paths) > 2):
        what = f"another value in each row ({quoted(paths[0][0])}, {quoted(paths[1][0])}, ...)"
    elif has_id_title and len(first) > len(second):
        what = f"{len(first):,} values, and the next one {len(second):,}"
    else:
        return
    title = f", {titles[0]!r}," if titles else ""
    raise InputError(
        f"the first column{title} has {what}, as ids and classes have; give levels from the top "
        "down, leave ids out, and for a tree without levels use the builder flat"
    )


def is_parent_title(title: str) -> bool:
    """Return whether a column with this title holds parents."""
    plain = title.strip().lower()
    return "parent" in plain or plain in PARENT_TITLES


def of_table(rows: Rows, titles: Sequence[str]) -> Outline:
    """Read two columns of parents and children, or columns of levels.

    They are parents and children where one is titled so, or where one name stands in both columns
    and none twice in a row.
    """
    width = max((len(row) for _, row in rows), default=0)
    if width == 0:
        raise InputError("the table has no row; give parents and children, or columns of levels")
    parent_columns = [at for at, title in enumerate(titles) if is_parent_title(title)]
    if parent_columns and (width != 2 or len(parent_columns) > 1):
        raise InputError(
            f"the table has a column {titles[parent_columns[0]]!r} and {width} columns; keep the "
            "columns of parents and children alone"
        )
    if width == 2:
        pairs = [(row[0], row[1] if len(row) == 2 else None) for _, row in rows]
        if parent_columns:
            is_reversed = parent_columns == [1]
            outline = of_edges([pair[::-1] for pair in pairs] if is_reversed else pairs)
            title = titles[parent_columns[0]]
            return outline._replace(form=f"parents and children, by the title {title!r}")
        if shared := _shared_name(pairs):
            hint = (
                f"; {shared!r} in both columns makes them parents and children: if they are "
                "reversed, title them child and parent, if they are levels, put a column with the "
                "name of the root before them"
            )
            form = f"parents and children, since {shared!r} stands in both columns"
            return of_edges(pairs, hint)._replace(form=form)
    levels = " > ".join(titles) if titles else f"{width} columns"
    form = f"levels from the top down, {levels}; the last name of a row is its class"
    return of_levels(rows, titles)._replace(form=form)


def _shared_name(pairs: Sequence[tuple[Any, Any]]) -> str | None:
    """Return a name that stands in both columns; None if a row has one name twice."""
    names = [[None if is_missing(cell) else class_name(cell) for cell in pair] for pair in pairs]
    if any(above == below for above, below in names):
        return None
    children = {below for _, below in names}
    return next((above for above, _ in names if above is not None and above in children), None)


def of_csv(text: str) -> Outline:
    """Read the text of a table, separated by what is most frequent in its first line.

    The first line has titles, unless one of its cells stands again below.
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
    rows = [(number, [cell.strip() for cell in row]) for number, row in rows]
    first_row = rows[0][1]
    below = {cell for _, row in rows[1:] for cell in row} - {""}
    if not below.isdisjoint(first_row):
        again = next(cell for cell in first_row if cell in below)
        outline = of_table(rows, ())
        return outline._replace(
            form=f"{outline.form}; without titles, since {again!r} of line 1 stands again"
        )
    for number, row in rows:
        if len(row) > len(first_row):
            raise InputError(
                f"line {number} has {len(row)} cells, and the titles are {len(first_row)}; quote "
                "names that hold the separator"
            )
    outline = of_table(rows[1:], first_row)
    titles = ", ".join(map(repr, first_row))
    return outline._replace(form=f"{outline.form}; titles are {titles}, since none stands again")


def read_darknet(text: str) -> Outline:
    """Read a ``.tree`` file of darknet: lines of a name and the number of its parent's line.

    Lines are numbered from 0, and -1 is no parent; several items without one get a root.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise InputError("the file is empty; give lines of a name and its parent's line, from 0")
    outline = Outline([], [])
    for number, line in lines:
        match = _DARKNET.fullmatch(line.strip())
        parent = -1 if match is None else int(match[2])
        if match is None or parent >= len(lines):
            raise InputError(
                f"line {number}: expected a name and the number of its parent's line, from 0 to "
                f"{len(lines) - 1:,}, or -1, found {quoted(line)}; Newick is read as .nwk, a table "
                "as .csv"
            )
        outline.add(match[1], parent)
    roots = [item for item, parent in enumerate(outline.parents) if parent < 0]
    if len(roots) > 1:
        root = outline.add(None, -1)
        for item in roots:
            outline.parents[item] = root
    return outline


def of_nodes(root: Any) -> Outline:
    """Read objects with a `name` and `children`, such as nodes of anytree, bigtree and ete."""
    outline = Outline([], [])
    visited: set[int] = set()
    stack = [(root, -1)]
    while stack:
        node, parent = stack.pop()
        name = None if is_missing(node.name) else class_name(node.name)
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
        names[node] = named(node_name(node, data, is_leaf=graph.out_degree(node) == 0))
    order = list(names)
    outline = Outline([names[node] for node in order], [-1] * len(order))
    index = {node: item for item, node in enumerate(order)}
    other_parent: dict[int, int] = {}
    for above, below in edges:
        item = index[below]
        if outline.parents[item] >= 0:
            other_parent.setdefault(item, index[above])
        else:
            outline.parents[item] = index[above]
    for item, other in other_parent.items():
        first = outline.path(outline.parents[item])
        raise InputError(
            f"{outline.names[item]!r} stands under {first!r} and under {outline.path(other)!r} "
            "too; for a label with several codes, hstree.formats.networkx.from_networkx"
        )
    return outline._replace(children=[index[below] for _, below in edges])


def attribute_name(data: Mapping[str, Any], *, is_leaf: bool) -> Any:
    """Return what the attributes of a node of a graph call it: a leaf's label, others' name.

    None where they do not say.
    """
    for key in ("label", "name") if is_leaf else ("name", "label"):
        value = data.get(key)
        if isinstance(value, str) or not is_missing(value):
            return value
    return None


def node_name(node: Any, data: Mapping[str, Any], *, is_leaf: bool) -> str:
    """Return the name of a node of a graph, by its attributes or else the node itself."""
    name = attribute_name(data, is_leaf=is_leaf)
    try:
        return class_name(node if name is None else name)
    except InputError as error:
        raise InputError(
            f"the node {brief(node)} of the graph: {error}; give it a text as its 'label'"
        ) from error


def edges_of_graph(graph: Any) -> list[tuple[Any, Any]]:
    """Return the parent and the child of each edge of a networkx graph, children in their order.

    That is the order of ``branch``, a different whole number at each child of a node, else that of
    the edges. Raises InputError where a part of the edges has such a number.
    """
    if not graph.is_directed() or graph.is_multigraph():
        raise InputError("the graph is not a networkx.DiGraph; edges lead from parent to child")
    edges = list(graph.edges(data="branch"))
    if all(branch is None for *_, branch in edges):
        return [(above, below) for above, below, _ in edges]
    taken = set[tuple[Any, int]]()
    numbered = []
    for above, below, branch in edges:
        number = int(branch) if isinstance(branch, bool | np.bool_) else whole_number(branch)
        if number is None or (above, number) in taken:
            remedy = "give all edges a whole number, 0 for a first child, or none a branch"
            if number is not None:
                remedy = "another child has it, too; give each child its own number"
            raise InputError(
                f"the edge from {brief(above)} to {brief(below)} has the branch {brief(branch)}; "
                f"{remedy}"
            )
        taken.add((above, number))
        numbered.append((number, above, below))
    numbered.sort(key=lambda edge: edge[0])
    return [(above, below) for _, above, below in numbered]


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
    words = list(map(named, range(n_labels) if labels is None else labels))
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

"""Newick, for tree viewers: ``((a,b)animal,c);``.

It supports one code per label, wide nodes and names, but no counts. A label is in single quotes,
unless it consists of letters, digits, ``.`` and ``-``. A label with an apostrophe is in double
quotes, since ete3 cannot read doubled single quotes. In a label with both kinds of quotes, single
quotes are doubled, as in the standard.
"""

import re
from functools import partial
from pathlib import Path

from hstree.formats.base import Format, check_quotable, write_lines
from hstree.tree import Tree
from hstree.tree.bit_paths import check_single_codes
from hstree.tree.hierarchy import collapsed_names
from hstree.tree.taxonomy import read_file
from hstree.tree.taxonomy.newick import read_newick

_PLAIN = re.compile(r"[A-Za-z0-9.-]+")


def newick(tree: Tree) -> str:
    """Return a tree as one line of Newick, including nodes with one child in a taxonomy. O(E).

    Raises InputError when a label has several codes or cannot be quoted.

    Examples
    --------
    >>> print(newick(Tree.from_children(["a", "it's", "c d"], [[~0, 1], [~1, ~2]])))
    (a,("it's",'c d'));
    """
    check_single_codes(tree, "Newick", "write dot or graphml, which hold several")
    reason = "Newick quotes neither control characters nor an empty string"
    check_quotable(tree, r"[^\0-\x1f\x7f-\x9f\u2028\u2029]+", reason)
    # (N + V,) text after each node or label (its name), and brackets before it
    names = [*(tree.names or [None] * tree.n_nodes), *tree.labels]
    after = ["" if name is None else _quote(name) for name in names]
    before = [""] * len(names)
    for item, chain in collapsed_names(tree).items():  # nodes with one child above it
        before[item] = "(" * len(chain)
        after[item] += "".join(f"){_quote(name) if name else ''}" for name in reversed(chain))
    n_nodes = tree.n_nodes
    leaf = [a + b for a, b in zip(before[n_nodes:], after[n_nodes:], strict=True)]
    if n_nodes == 0:
        return f"{leaf[0]};"

    # The stack holds nodes that are not yet written, and text
    start = tree.child_start.tolist()
    child = tree.child.tolist()
    pieces: list[str] = []
    stack: list[int | str] = [0]
    while stack:
        item_or_text = stack.pop()
        if isinstance(item_or_text, str):
            pieces.append(item_or_text)
            continue
        # A node is an opening bracket, its children, a closing bracket and its name
        node = item_or_text
        pieces.append(f"{before[node]}(")
        stack.append(f"){after[node]}")
        for below in reversed(child[start[node] : start[node + 1]]):
            stack += [below if below >= 0 else leaf[~below], ","]
        stack.pop()  # no comma before the first child
    return "".join(pieces) + ";"


def _quote(text: str) -> str:
    """Return a name as a Newick token, quoted if necessary."""
    if _PLAIN.fullmatch(text):
        return text
    if "'" in text and '"' not in text:
        return f'"{text}"'
    return "'" + text.replace("'", "''") + "'"


def _read(path: Path, labels: Path | None) -> Tree:
    return Tree(**vars(read_file(path, read_newick)))


_write = partial(write_lines, lambda tree: [newick(tree), "\n"])
FORMAT = Format("newick", (".nwk", ".newick"), ("names",), _write, _read)

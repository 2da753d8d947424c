"""Newick, for viewers of trees: ``((a,b)animal,c);``.

It holds one code per label, wide nodes and names, but no counts. A label is in single quotes,
unless it consists of letters, digits, ``.`` and ``-``. One with an apostrophe is in double quotes,
since ete3 reads no others; one with both has its single quotes doubled, as the standard says.
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
    """Return a tree as one line of Newick, a taxonomy's with its nodes of one child. O(E).

    Raises InputError when a label has several codes, or cannot be quoted.

    Examples
    --------
    >>> print(newick(Tree.from_children(["a", "it's", "c d"], [[~0, 1], [~1, ~2]])))
    (a,("it's",'c d'));
    """
    check_single_codes(tree, "Newick", "write dot or graphml, which hold several")
    why = "Newick quotes neither control characters nor an empty string"
    check_quotable(tree, r"[^\0-\x1f\x7f-\x9f\u2028\u2029]+", why)
    # (N + V) name of each node, then of each label, and the brackets before it
    names = [*(tree.names or [None] * tree.n_nodes), *tree.labels]
    name, opened = ["" if name is None else _quoted(name) for name in names], [""] * len(names)
    for at, above in collapsed_names(tree).items():  # nodes of one child around it
        opened[at] = "(" * len(above)
        name[at] += "".join(f"){_quoted(one) if one else ''}" for one in reversed(above))
    leaf = [before + label for before, label in zip(opened, name, strict=True)][tree.n_nodes :]
    if tree.n_nodes == 0:
        return f"{leaf[0]};"
    start, child = tree.child_start.tolist(), tree.child.tolist()
    pieces: list[str] = []
    # A stack of what is still to be written: a node, or text as it is.
    stack: list[int | str] = [0]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        pieces.append(f"{opened[item]}(")
        stack.append(f"){name[item]}")
        for below in reversed(child[start[item] : start[item + 1]]):
            stack += [below if below >= 0 else leaf[~below], ","]
        stack.pop()  # no comma before the first child
    return "".join(pieces) + ";"


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    return f'"{text}"' if "'" in text and '"' not in text else "'" + text.replace("'", "''") + "'"


def _read(path: Path, labels: Path | None) -> Tree:
    return Tree(**vars(read_file(path, read_newick)))


_write = partial(write_lines, lambda tree: [newick(tree), "\n"])
FORMAT = Format("newick", (".nwk", ".newick"), ("names",), _write, _read)

"""DOT, for Graphviz; write-only.

It supports every tree, including several codes per label and wide nodes. Inner nodes show their
names or numbers, labels are boxes with a ``count`` attribute, and edges show their branch number.
"""

from collections.abc import Iterator
from functools import partial

from hstree.formats.base import Format, check_quotable, list_edges, write_lines
from hstree.tree import Tree

# Graphviz interprets backslash escapes such as \n in a label, and HTML entities such as &amp;.
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "&": "&amp;"})


def dot(tree: Tree) -> Iterator[str]:
    r"""Yield the lines of a tree in DOT. Raises InputError if a label or a name cannot be quoted.

    Examples
    --------
    >>> print("".join(dot(Tree.from_children(["a", 'b"'], [[~0, ~1]]))))
    digraph tree {
    n0 [label="0"];
    node [shape=box];
    l0 [label="a"];
    l1 [label="b\""];
    n0 -> l0 [label="0"];
    n0 -> l1 [label="1"];
    }
    <BLANKLINE>
    """
    reason = "DOT quotes no control characters but tabs and line feeds"
    check_quotable(tree, r"[^\0-\x08\x0b-\x1f\x7f]*", reason)
    yield "digraph tree {\n"
    for node, name in enumerate(tree.names or (None,) * tree.n_nodes):
        yield f"n{node} [label={_quoted(str(node) if name is None else name)}];\n"
    # Nodes are ellipses, and labels are boxes
    yield "node [shape=box];\n"
    counts = None if tree.counts is None else tree.counts.tolist()
    for i, label in enumerate(tree.labels):
        count = "" if counts is None else f", count={counts[i]}"
        yield f"l{i} [label={_quoted(label)}{count}];\n"
    for node, child, number in list_edges(tree):
        below = f"n{child}" if child >= 0 else f"l{~child}"
        yield f'n{node} -> {below} [label="{number}"];\n'
    yield "}\n"


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


_KEEPS = ("counts", "names", "order", "numbers")
FORMAT = Format("dot", (".dot", ".gv"), _KEEPS, partial(write_lines, dot))

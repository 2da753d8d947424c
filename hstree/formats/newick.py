"""Newick, for viewers of trees: ``((a,b)animal,c);``. Written, not read.

It holds one place for each label, wide nodes and names; counts are not in it. Labels stand in
single quotes, doubled inside, wherever they are more than letters, digits, ``.`` and ``-``.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from hstree._files import replacing
from hstree.errors import InputError
from hstree.formats.base import Format, check_labels, check_names
from hstree.formats.bracketed import bracketed
from hstree.tree import Tree

_PLAIN = re.compile(r"[A-Za-z0-9.-]+")
_QUOTABLE = re.compile(r"[^\0-\x1f\x7f-\x9f\u2028\u2029]+")
_WHY = "Newick quotes neither control characters nor an empty string; drop it or rename it"


def newick(tree: Tree) -> str:
    """Return a tree as one line of Newick.

    Raises
    ------
    InputError
        When a label has several codes, or cannot be quoted.

    Examples
    --------
    >>> newick(Tree.from_children(["a", "it's", "c"], [[~0, 1], [~1, ~2]]))
    "(a,('it''s',c));"
    """
    codes = np.bincount(~tree.child[tree.child < 0], minlength=tree.n_labels)
    if codes.max() > 1:
        label = int(np.argmax(codes))
        raise InputError(
            f"the label {tree.labels[label]!r} has {codes[label]} codes, and Newick holds one for "
            "each leaf; write dot or graphml, which hold them"
        )
    check_labels(tree, _QUOTABLE, _WHY)
    check_names(tree, _QUOTABLE, _WHY)
    names = tree.names

    def name(node: int) -> str:
        given = None if names is None else names[node]
        return "" if given is None else _quoted(given)

    return bracketed(tree, ("(", ")"), [_quoted(label) for label in tree.labels], name) + ";"


def _quoted(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else "'" + text.replace("'", "''") + "'"


def _write(tree: Tree, path: Path) -> None:
    text = newick(tree)
    with replacing(path) as file:
        file.write(f"{text}\n".encode())


FORMAT = Format("newick", (".nwk", ".newick"), frozenset({"names"}), write=_write)

"""Nested lists, ``[["a", "b"], "c"]``, in Python or as JSON.

A string is a label, a list an inner node over its items. A label that occurs several times has
several codes. Counts, names and numbers are not stored: labels and nodes are numbered in reading
order, from left to right.
"""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hstree._files import read_text
from hstree.errors import InputError
from hstree.formats.base import Format, write_lines
from hstree.tree import Tree

#: Levels of lists in a file. Python's JSON reader is recursive and stops at about a thousand.
MAX_DEPTH = 500
_FORM = "nested lists are strings in lists of two or more"


def from_nested(lists: str | Sequence[Any]) -> Tree:
    """Make a tree from nested lists.

    Parameters
    ----------
    lists : str, or list or tuple of the same
        A string is a label, a list an inner node with two children or more.

    Returns
    -------
    Tree
        Labels in the order of their first occurrence, nodes in preorder.

    Raises
    ------
    InputError
        When an item is neither a string nor a list, a list has fewer than two items, or the same
        list object occurs twice.

    Examples
    --------
    >>> tree = from_nested([["the", "of"], "cat"])
    >>> tree.labels, tree.child.tolist()
    (('the', 'of', 'cat'), [1, -3, -1, -2])
    """
    index: dict[str, int] = {}
    children: list[list[int]] = []
    visited: set[int] = set()
    stack: list[tuple[Any, int, int]] = [(lists, -1, 0)]
    while stack:
        item, parent, branch = stack.pop()
        if isinstance(item, str):
            child = ~index.setdefault(item, len(index))
        else:
            where = "the whole" if parent < 0 else f"child {branch} of node {parent}"
            if not isinstance(item, list | tuple):
                raise InputError(f"{where} is of type {type(item).__name__}; {_FORM}")
            if len(item) < 2:
                raise InputError(f"{where} is a list of {len(item)}; {_FORM}")
            if id(item) in visited:
                raise InputError(f"{where} is a list that occurs elsewhere too; make one for each")
            if isinstance(item, list):  # a tuple cannot contain itself, and Python may share it
                visited.add(id(item))
            child = len(children)
            children.append([0] * len(item))
            stack += [(inner, child, i) for i, inner in enumerate(item)][::-1]
        if parent >= 0:
            children[parent][branch] = child
    return Tree.from_children(list(index), children)


def to_nested(tree: Tree) -> str:
    """Return a tree as nested lists in JSON, on one line.

    Raises InputError when the tree has more than `MAX_DEPTH` levels of inner nodes.

    Examples
    --------
    >>> to_nested(Tree.from_children(["a", "b", "c"], [[~2, 1], [~1, ~0]]))
    '["c",["b","a"]]'
    """
    if len(tree.levels) > MAX_DEPTH:
        raise InputError(
            f"the tree has {len(tree.levels)} levels, and nested lists are read up to {MAX_DEPTH}; "
            "write .json, which has no such limit"
        )
    start, child = tree.child_start.tolist(), tree.child.tolist()
    lists: list[Any] = [None] * tree.n_nodes
    for node in reversed(range(tree.n_nodes)):  # children have larger numbers than their parents
        items = child[start[node] : start[node + 1]]
        lists[node] = [lists[c] if c >= 0 else tree.labels[~c] for c in items]
    whole = lists[0] if lists else tree.labels[0]
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":"))


def _read(path: Path, labels: Path | None) -> Tree:
    text = read_text(path)
    try:
        return from_nested(json.loads(text))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: {error.msg}; {_FORM}") from error
    except RecursionError as error:
        raise InputError(
            f"{path}: lists nested too deep for JSON's reader; up to {MAX_DEPTH} levels are read"
        ) from error
    except (InputError, ValueError) as error:
        raise InputError(f"{path}: {error}") from error


_write = partial(write_lines, lambda tree: [to_nested(tree), "\n"])
FORMAT = Format("nested", (".nested.json",), (), _write, _read)

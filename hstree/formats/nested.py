"""Nested lists: ``[["a", "b"], "c"]``, in Python or as JSON.

A string is a label and a list is a node over what is in it. The same label at several places has
several codes. Neither counts nor names are in it, and no numbers either: labels and nodes are
numbered as they are read, from left to right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hstree._files import replacing
from hstree.errors import InputError
from hstree.formats.base import Format, expected
from hstree.formats.bracketed import bracketed
from hstree.formats.textlines import read_text
from hstree.tree import Tree

_VALUE = re.compile(r'[ \t\r\n]*(\[|"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")')
_AFTER_VALUE = re.compile(r"[ \t\r\n]*([\],])")
_BLANK = re.compile(r"[ \t\r\n]*")
_FORM = "strings in lists of two or more"


def from_nested(lists: str | Sequence[Any]) -> Tree:
    """Make a tree of nested lists.

    Parameters
    ----------
    lists : str, or list or tuple of the same
        A string is a label, a list a node of two children or more.

    Returns
    -------
    Tree
        Labels are in the order in which they first stand there, nodes from left to right, each
        before those in it.

    Raises
    ------
    InputError
        When something else stands in it, a list has fewer than two children, or one stands in
        itself.

    Examples
    --------
    >>> tree = from_nested([["the", "of"], "cat"])
    >>> tree.labels, tree.child.tolist()
    (('the', 'of', 'cat'), [1, -3, -1, -2])
    """
    number: dict[str, int] = {}
    children: list[list[int]] = []
    seen: set[int] = set()
    waiting: list[tuple[Any, int, int]] = [(lists, -1, 0)]
    while waiting:
        item, parent, place = waiting.pop()
        if isinstance(item, str):
            found = ~number.setdefault(item, len(number))
        else:
            _check_list(item, seen, parent, place)
            found = len(children)
            children.append([0] * len(item))
            below = reversed(list(enumerate(item)))
            waiting += [(inner, found, branch) for branch, inner in below]
        if parent >= 0:
            children[parent][place] = found
    return Tree.from_children(list(number), children)


def to_nested(tree: Tree) -> str:
    """Return a tree as nested lists in JSON, on one line.

    Examples
    --------
    >>> to_nested(Tree.from_children(["a", "b", "c"], [[~2, 1], [~1, ~0]]))
    '["c",["b","a"]]'
    """
    leaf = [json.dumps(label, ensure_ascii=False) for label in tree.labels]
    return bracketed(tree, ("[", "]"), leaf, lambda node: "")


def _check_list(item: object, seen: set[int], parent: int, place: int) -> None:
    """Refuse what is no list of two or more, and a list that was seen before."""
    if isinstance(item, list | tuple) and len(item) > 1 and id(item) not in seen:
        if isinstance(item, list):  # a tuple cannot stand in itself, and Python may share it
            seen.add(id(item))
        return
    where = "the whole" if parent < 0 else f"child {place} of node {parent}"
    if not isinstance(item, list | tuple):
        raise InputError(f"{where} is of type {type(item).__name__}; nested lists are {_FORM}")
    if len(item) < 2:
        raise InputError(f"{where} is a list of {len(item)}; nested lists are {_FORM}")
    raise InputError(f"{where} is a list that stands elsewhere too; give each node its own")


def _read(path: Path, labels: Path | None) -> Tree:
    text = read_text(path)
    found = _parsed(text, path)
    try:
        return from_nested(found)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _parsed(text: str, path: Path) -> Any:
    """Parse nested lists of strings; Python's own reader of JSON stops at a thousand levels."""
    top: list[Any] = []
    open_lists = [top]
    at, wants_value = 0, True
    while wants_value or len(open_lists) > 1:
        token = (_VALUE if wants_value else _AFTER_VALUE).match(text, at)
        if token is None:
            what = "a string or a list" if wants_value else "a comma or the end of a list"
            raise _unexpected(text, at, path, what)
        at, mark = token.end(), token[1]
        if mark == "[":
            inner: list[Any] = []
            open_lists[-1].append(inner)
            open_lists.append(inner)
        elif mark == "]":
            open_lists.pop()
        elif mark != ",":
            open_lists[-1].append(json.loads(mark))
        wants_value = mark in ("[", ",")
    if _blank_end(text, at) < len(text):
        raise _unexpected(text, at, path, "nothing after the outer list")
    return top[0]


def _unexpected(text: str, at: int, path: Path, what: str) -> InputError:
    """Return the error for what stands at a place of the text."""
    at = _blank_end(text, at)
    found = text[at : at + 40].partition("\n")[0] or "the end of the file"
    return expected(path, text.count("\n", 0, at) + 1, what, found)


def _blank_end(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return at if blank is None else blank.end()


def _write(tree: Tree, path: Path) -> None:
    text = to_nested(tree)
    with replacing(path) as file:
        file.write(f"{text}\n".encode())


FORMAT = Format("nested", (".nested.json",), frozenset(), write=_write, read=_read)

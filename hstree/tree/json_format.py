"""Trees as JSON text of format 1, with one label, count, node and name per line.

Converts between bytes and `Content`; the rules of trees are not checked here. The header and meta
of ``.npz`` files are read and written with it too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from reprlib import repr as brief
from typing import Any

import numpy as np

from hstree._files import DEEPEST, nested_too_deep, parse_json
from hstree._ragged import offsets
from hstree._typing import Int64
from hstree.errors import FileFormatError
from hstree.tree.arrays import TreeArrays
from hstree.tree.content import Content

#: Versions of the format that are read; the last one is written.
VERSIONS = (1,)

_KEYS = ("format", "version", "labels", "counts", "children", "names", "meta")
_REQUIRED = ("format", "version", "labels", "children")
_NODES_AT_ONCE = 1 << 17
#: Maximum number of opening brackets per byte, and the number that is always allowed. A node of
#: two children takes six bytes, ``[1,2],``; empty lists take three, and 30 times that in memory.
MOST_BRACKETS, FEW_BRACKETS = 1 / 5, 1000


def to_json(tree: TreeArrays) -> Iterator[bytes]:
    """Yield a tree as UTF-8 JSON, in pieces; the same tree gives the same bytes.

    Raises FileFormatError when JSON cannot hold `tree.meta`.
    """
    meta = dump_meta(tree.meta)
    counts = None if tree.counts is None else tree.counts.tolist()
    yield f'{{"format": "hstree", "version": {VERSIONS[-1]},\n"labels": '.encode()
    yield _one_a_line(list(tree.labels))
    yield b',\n"counts": '
    yield _one_a_line(counts)
    yield b',\n"children": ['
    for first in range(0, tree.n_nodes, _NODES_AT_ONCE):
        yield b",\n" if first else b"\n"
        yield _children_lines(tree, first, min(first + _NODES_AT_ONCE, tree.n_nodes))
    yield b'\n],\n"names": '
    yield _one_a_line(None if tree.names is None else list(tree.names))
    yield f',\n"meta": {meta}}}\n'.encode()


def from_json(data: bytes) -> Content:
    """Read the content of a tree from UTF-8 JSON.

    Raises FileFormatError when the bytes are not a JSON object of this format and version. The
    message continues the name of the file, as those of the functions below.
    """
    document = parse_document(data)
    check_version(document)
    missing = [key for key in _REQUIRED if key not in document]
    unknown = [key for key in document if key not in _KEYS]
    if missing or unknown:
        fault = f'has no "{missing[0]}"' if missing else f"has the unknown key {brief(unknown[0])}"
        raise FileFormatError(f"{fault}; a tree has the keys {', '.join(_KEYS)}")

    children = _list(document, "children")
    if not set(map(type, children)) <= {list}:
        node = next(i for i, items in enumerate(children) if type(items) is not list)
        raise FileFormatError(f"node {node} is {brief(children[node])}, not a list of children")
    start = offsets(np.fromiter(map(len, children), np.int64, len(children)))
    child = _integers(
        list(chain.from_iterable(children)),
        lambda at: f"node {int(np.searchsorted(start, at, 'right')) - 1} holds",
    )
    counts = None
    if document.get("counts") is not None:
        counts = _integers(_list(document, "counts"), lambda at: f"label {at} has the count")
    names = None if document.get("names") is None else _list(document, "names")
    return Content(_list(document, "labels"), start, child, counts, names, meta_of(document))


def parse_document(data: bytes) -> dict[str, Any]:
    """Parse the JSON object of a tree; raises FileFormatError as `hstree._files.parse_json`."""
    if data.count(b"[") + data.count(b"{") > MOST_BRACKETS * len(data) + FEW_BRACKETS:
        raise FileFormatError("holds little but brackets, so not a tree; build it again")
    return parse_json(data, "build it again")


def check_version(document: Mapping[str, Any]) -> None:
    """Refuse other formats, and versions that are not read."""
    if document.get("format") != "hstree":
        name = brief(document.get("format"))
        raise FileFormatError(f'is not a tree file: its "format" is {name}, not "hstree"')
    version = document.get("version")
    if type(version) is not int or version not in VERSIONS:
        read = ", ".join(map(str, VERSIONS))
        raise FileFormatError(
            f"is of version {brief(version)}; this hstree reads version {read}: "
            "upgrade hstree or build the tree again"
        )


def meta_of(document: Mapping[str, Any]) -> dict[str, Any]:
    r"""Return the document's "meta"; {} if it has none.

    Raises FileFormatError when it is not a JSON object, is nested too deep, or could not be written
    again: ``1e999`` is infinite, and ``"\ud800"`` a lone surrogate.
    """
    meta = document.get("meta", {})
    if type(meta) is not dict:
        raise FileFormatError(f'has {brief(meta)} as "meta"; that wants a JSON object')
    if nested_too_deep(meta):
        raise FileFormatError(f'has "meta" nested more than {DEEPEST} deep; build it again')
    try:
        dump_meta(meta)
    except FileFormatError as error:
        raise FileFormatError(f'has a "meta" that no file can hold: {error.__cause__}') from error
    return meta


def dump_meta(meta: Mapping[str, Any]) -> str:
    """Return a tree's meta as one line of JSON; raises FileFormatError if it cannot be that."""
    if nested_too_deep(meta):
        raise FileFormatError(f"the tree's meta is nested more than {DEEPEST} deep")
    try:
        text = json.dumps(meta, ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
    except (TypeError, ValueError) as error:
        raise FileFormatError(f"the tree's meta cannot be written as JSON: {error}") from error
    return text


def _one_a_line(values: list[Any] | None) -> bytes:
    if not values:
        return json.dumps(values).encode()
    text = json.dumps(values, ensure_ascii=False, separators=(",\n", ": "))
    return b"[\n%b\n]" % text[1:-1].encode("utf-8")


def _children_lines(tree: TreeArrays, first: int, stop: int) -> bytes:
    """Return the children of the nodes from `first` up to `stop`, one node per line."""
    start = tree.child_start[first : stop + 1]
    child = tree.child[start[0] : start[-1]]
    is_last = np.zeros(len(child), np.intp)  # (e,) 1 for the last child of each node
    is_last[start[1:] - start[0] - 1] = 1
    pieces = [""] * (2 * len(child))  # numbers and separators in turn
    pieces[::2] = map(str, child.tolist())
    pieces[1::2] = np.array([", ", "],\n["], object)[is_last].tolist()
    return ("[" + "".join(pieces).removesuffix(",\n[")).encode()


def _list(document: Mapping[str, Any], key: str) -> list[Any]:
    values = document[key]
    if type(values) is not list:
        raise FileFormatError(f'has {brief(values)} as "{key}"; that wants a list')
    return values


def _integers(values: list[Any], describe: Callable[[int], str]) -> Int64:
    """Return JSON numbers as int64; `describe` says for messages what holds the one at an index."""
    if not set(map(type, values)) <= {int}:
        at = next(i for i, value in enumerate(values) if type(value) is not int)
        raise FileFormatError(f"{describe(at)} {brief(values[at])}, not an integer")
    try:
        return np.array(values, np.int64)
    except OverflowError as error:
        at = next(i for i, value in enumerate(values) if not -(1 << 63) <= value < 1 << 63)
        raise FileFormatError(
            f"{describe(at)} {brief(values[at])}, more than 64 bits hold"
        ) from error

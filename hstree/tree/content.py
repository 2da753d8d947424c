"""Content of a tree, as stored in files and covered by the hash, and the rules for trees.

``docs/tree-format.md`` states the rules. The arrays in an ``.npz`` file are the same as the arrays
that are hashed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from hstree._arrays import Bool, Int64, UInt8, offsets, segment_ids
from hstree._text import brief
from hstree.tree.row_numbers import RowNumbers

#: Key in a tree's meta for the names of left-out nodes with one child (``docs/tree-format.md``).
COLLAPSED = "collapsed"
_SURROGATE = re.compile("[\ud800-\udfff]")
#: Number of nodes that are checked at a time, and of strings that are created at a time.
_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Content:
    """Content of a tree file, with the fields of `Tree`.

    Only the type of the arrays is checked on construction (int64 vectors). `broken_rules` lists all
    broken rules, while `Tree` raises an error for the first.
    """

    labels: Sequence[str]
    child_start: Int64
    child: Int64
    counts: Int64 | None = None
    names: Sequence[str | None] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    def broken_rules(self) -> dict[str, str]:
        """Return every broken rule of the format, with its position; O(V + E log E).

        The result is empty for a valid tree. If the offsets are broken, names and children are not
        checked.
        """
        labels = self.labels
        counts = self.counts
        names = self.names
        child_start = self.child_start
        child = self.child
        broken: dict[str, str] = {}

        # Labels are distinct strings
        if len(labels) == 0:
            broken["labels"] = "there is none; a tree has at least one label"
        elif isinstance(labels, RowNumbers):
            pass  # unique strings by construction
        elif (at := _first_bad_text(labels)) is not None:
            broken["labels"] = f"label {at} is {brief(labels[at])}, not text that UTF-8 can hold"
        else:
            # Distinct hashes prove that labels are distinct, in a sixth of the time of a set
            hashes = np.sort(np.fromiter(map(hash, labels), np.int64, len(labels)))
            if np.any(hashes[1:] == hashes[:-1]) and len(set(labels)) < len(labels):
                first: dict[str, int] = {}
                at = next(
                    at for at, label in enumerate(labels) if first.setdefault(label, at) != at
                )
                where = f"{labels[at]!r} is label {first[labels[at]]} and label {at}"
                broken["unique labels"] = where

        # One count per label
        if counts is not None and len(counts) != len(labels):
            broken["counts"] = f"{len(counts)} counts for {len(labels)} labels"
        elif counts is not None and counts.min(initial=0) < 0:
            at = int(np.argmax(counts < 0))
            broken["counts"] = f"label {at} has the count {counts[at]}, below zero"

        # Offsets divide the children into nodes; if they are broken, nodes cannot be checked
        if len(child_start) == 0 or child_start[0] != 0 or child_start[-1] != len(child):
            where = f"child_start does not run from 0 to {len(child)} children"
            return broken | {"offsets": where}
        if np.any(child_start[1:] < child_start[:-1]):  # differences could overflow
            return broken | {"offsets": "child_start goes down"}

        # Each node has a name or None
        n_nodes = len(child_start) - 1
        if names is not None and len(names) != n_nodes:
            broken["names"] = f"{len(names)} names for {n_nodes} nodes"
        elif names is not None:
            texts = ["" if name is None else name for name in names]
            if (at := _first_bad_text(texts)) is not None:
                named = f"node {at} is named {brief(names[at])}"
                broken["names"] = f"{named}, not text that UTF-8 can hold, or null"

        # Nodes and labels form one tree; only a broken tree needs the slower search for the rules
        if not _is_plain(len(labels), child_start, child):
            broken |= _broken_structure(len(labels), child_start, child)
        return broken


def _first_bad_text(texts: Sequence[Any]) -> int | None:
    """Return the index of the first value that is not a string or that UTF-8 cannot encode."""
    try:
        "".join(texts).encode("utf-8")
    except (TypeError, UnicodeEncodeError):
        for at, text in enumerate(texts):
            if not isinstance(text, str) or _SURROGATE.search(text):
                return at
    return None


def _is_plain(n_labels: int, child_start: Int64, child: Int64) -> bool:
    """Return whether the nodes follow every rule and each label has one parent; works in blocks.

    In such a tree, the V + N - 1 children are every label and every node except the root, once
    each.
    """
    n_nodes = len(child_start) - 1
    if n_nodes == 0 or len(child) != n_labels + n_nodes - 1:
        return n_nodes == 0 and n_labels == 1
    is_reached = np.zeros(n_labels + n_nodes, np.bool_)  # label v at V - 1 - v, node n at V + n
    is_reached[n_labels] = True  # the root
    for first in range(0, n_nodes, _AT_ONCE):
        start = child_start[first : first + _AT_ONCE + 1]
        parent = first + segment_ids(start - start[0])
        items = child[start[0] : start[-1]]
        known = np.all((items >= -n_labels) & (items < n_nodes))
        if not known or np.diff(start).min() < 2 or np.any((items >= 0) & (items <= parent)):
            return False
        is_reached[items + n_labels] = True
    return bool(is_reached.all())


def _broken_structure(n_labels: int, child_start: Int64, child: Int64) -> dict[str, str]:
    n_nodes = len(child_start) - 1
    fan_out = np.diff(child_start)  # (N,)
    edge_node = segment_ids(child_start)  # (E,)
    is_node = child >= 0
    # Edges to labels (E',) and to nodes (E'',): the parent and the child of each
    label_parent = edge_node[~is_node]
    label = ~child[~is_node]
    node_parent = edge_node[is_node]
    node = child[is_node]

    nodes = np.arange(n_nodes)
    n_parents = np.bincount(node[node < n_nodes], minlength=n_nodes)
    is_orphan = n_parents == 0
    is_orphan[:1] = False
    is_missing = np.full(n_labels, n_labels > 1 or n_nodes > 0)
    is_missing[label[label < n_labels]] = False
    # Whether an edge leads to the same child as the next edge, in the order of parents
    is_twice = np.zeros(0, bool)
    parent = nodes
    sorted_child = nodes
    if np.any(np.diff(np.sort(child)) == 0):  # otherwise no node can have the same child twice
        order = np.lexsort((child, edge_node))
        parent = edge_node[order]
        sorted_child = child[order]
        is_twice = (np.diff(sorted_child) == 0) & (np.diff(parent) == 0)
    to_label = (label_parent, label)
    to_node = (node_parent, node)
    no_label = f"node {{}} holds the label {{}}, but there are {n_labels} labels"
    no_node = f"node {{}} has the child node {{}}, but there are {n_nodes} nodes"
    before = "node {} has the child node {}, which does not come after it"
    # Each rule, a mask of violations, and the message for the first violation
    rules: list[tuple[str, Bool, str, tuple[Int64, ...]]] = [
        ("fan-out", fan_out < 2, "node {} has {} children, fewer than 2", (nodes, fan_out)),
        ("known label", label >= n_labels, no_label, to_label),
        ("known node", node >= n_nodes, no_node, to_node),
        ("child after parent", node <= node_parent, before, to_node),
        ("no child twice", is_twice, "node {} has the child {} twice", (parent, sorted_child)),
        ("one parent", n_parents > 1, "node {} has {} parents", (nodes, n_parents)),
        ("reachable", is_orphan, "node {} is not under the root", (nodes,)),
        ("every label placed", is_missing, "label {} is under no node", (np.arange(n_labels),)),
    ]
    broken = {}
    for rule, is_broken, text, columns in rules:
        if is_broken.any():
            first = int(np.argmax(is_broken))
            more = int(is_broken.sum()) - 1
            where = text.format(*(int(column[first]) for column in columns))
            broken[rule] = where + (f" (and {more} more)" if more else "")
    return broken


def pack(strings: Sequence[str]) -> tuple[UInt8, Int64]:
    """Encode and concatenate S strings; return the UTF-8 bytes and the string offsets (S + 1,).

    Raises UnicodeEncodeError when a string has a lone surrogate, which UTF-8 cannot encode.
    """
    if isinstance(strings, RowNumbers):
        return strings.packed()
    text = "".join(strings)
    buffer = np.frombuffer(text.encode("utf-8"), np.uint8)
    start = offsets(np.fromiter(map(len, strings), np.int64, len(strings)))  # in characters
    # With one byte per character (ASCII), offsets in characters are offsets in bytes
    if len(buffer) == len(text):
        return buffer, start
    character = np.append(np.flatnonzero(_is_first_byte(buffer)), len(buffer))  # first bytes
    return buffer, character[start]


def unpack(buffer: UInt8, start: Int64) -> Sequence[str]:
    """Split a buffer into strings, or return `RowNumbers` if it has these; the inverse of `pack`.

    Raises ValueError when the buffer is not UTF-8, or when the offsets do not cover the buffer or
    split a character.
    """
    complete = len(start) > 0 and start[0] == 0 and start[-1] == len(buffer)
    if not complete or np.any(start[1:] < start[:-1]):
        raise ValueError(f"the offsets do not run from 0 up to {len(buffer)} bytes")
    # Do not create strings for row numbers, since there may be millions
    if (rows := RowNumbers.from_packed(buffer, start)) is not None:
        return rows
    text = str(buffer.data, "utf-8")
    if len(text) != len(buffer):
        is_first = np.append(_is_first_byte(buffer), True)
        if not is_first[start].all():
            raise ValueError("an offset cuts a character in two")
        start = (np.cumsum(is_first) - 1)[start]  # from bytes to characters
    strings: list[str] = []
    for first in range(0, len(start) - 1, _AT_ONCE):
        bounds = start[first : first + _AT_ONCE + 1].tolist()
        strings += [text[a:b] for a, b in pairwise(bounds)]
    return tuple(strings)


def _is_first_byte(buffer: UInt8) -> Bool:
    """Return a mask of the bytes of UTF-8 that begin a character."""
    first: Bool = (buffer & 0xC0) != 0x80
    return first

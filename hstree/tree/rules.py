"""The rules that every tree keeps, each with a name, and what breaks them.

`broken_rules` looks at raw arrays and reports every rule that they break, in plain words; it
never raises on bad content. `Tree` calls it at its door, `hstree check` prints all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hstree._typing import Bool, Int64


@dataclass(frozen=True)
class BrokenRule:
    """One rule of the format that some content breaks, and where."""

    rule: str
    where: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.where}"


def broken_rules(
    labels: Sequence[str],
    child_start: Int64,
    child: Int64,
    counts: Int64 | None = None,
    names: Sequence[str | None] | None = None,
) -> list[BrokenRule]:
    """Name every rule that the content breaks.

    Parameters
    ----------
    labels : sequence of str, length V
    child_start : int64 array (N + 1,)
    child : int64 array (E,)
        ``c >= 0`` is a node, ``c < 0`` the label ``~c``.
    counts : int64 array (V,), optional
    names : sequence of str or None, length N, optional

    Returns
    -------
    list of BrokenRule
        Empty for a valid tree. Where the offsets themselves are broken, nothing that reads
        through them is looked at. O(V + E) time.
    """
    found = _broken_labels(labels)
    if counts is not None:
        found += _broken_counts(counts, len(labels))
    offsets = _broken_offsets(child_start, len(child))
    if offsets:
        return found + offsets
    if names is not None:
        found += _broken_names(names, len(child_start) - 1)
    return found + _broken_structure(labels, child_start, child)


def _broken_labels(labels: Sequence[str]) -> list[BrokenRule]:
    if len(labels) == 0:
        return [BrokenRule("labels", "there is none; a tree has at least one label")]
    if not all(map(str.__instancecheck__, labels)):
        place, given = next((i, x) for i, x in enumerate(labels) if not isinstance(x, str))
        return [BrokenRule("labels", f"label {place} is {given!r}, not a string")]
    found = _not_utf8("labels", "label", labels)
    if len(set(labels)) == len(labels):
        return found
    seen: dict[str, int] = {}
    for place, label in enumerate(labels):
        first = seen.setdefault(label, place)
        if first != place:
            where = f"{label!r} is label {first} and label {place}"
            return [*found, BrokenRule("unique labels", where)]
    return found


def _not_utf8(rule: str, kind: str, strings: Sequence[str | None]) -> list[BrokenRule]:
    """Report the first string with a lone surrogate; no file could hold it."""
    if _is_utf8("".join(filter(None, strings))):
        return []
    place, given = next((i, s) for i, s in enumerate(strings) if not _is_utf8(s or ""))
    return [BrokenRule(rule, f"{kind} {place}, {given!r}, cannot be written as UTF-8")]


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _broken_counts(counts: Int64, n_labels: int) -> list[BrokenRule]:
    if len(counts) != n_labels:
        return [BrokenRule("counts", f"{len(counts)} counts for {n_labels} labels")]
    if n_labels and counts.min() < 0:
        place = int(np.argmax(counts < 0))
        return [BrokenRule("counts", f"label {place} has the count {counts[place]}, below zero")]
    return []


def _broken_offsets(child_start: Int64, n_edges: int) -> list[BrokenRule]:
    if len(child_start) == 0 or child_start[0] != 0 or child_start[-1] != n_edges:
        return [BrokenRule("offsets", f"child_start does not run from 0 to {n_edges} children")]
    if np.any(child_start[1:] < child_start[:-1]):  # a difference could overflow
        return [BrokenRule("offsets", "child_start goes down")]
    return []


def _broken_names(names: Sequence[str | None], n_nodes: int) -> list[BrokenRule]:
    if len(names) != n_nodes:
        return [BrokenRule("names", f"{len(names)} names for {n_nodes} nodes")]
    for node, name in enumerate(names):
        if name is not None and not isinstance(name, str):
            return [BrokenRule("names", f"node {node} is named {name!r}, not a string or null")]
    return _not_utf8("names", "the name of node", names)


def _broken_structure(labels: Sequence[str], child_start: Int64, child: Int64) -> list[BrokenRule]:
    n_labels, n_nodes = len(labels), len(child_start) - 1
    fan_out = np.diff(child_start)
    edge_node = np.repeat(np.arange(n_nodes), fan_out)
    is_node = child >= 0
    label = ~child[~is_node]
    inner = child[is_node]
    found = []

    def say(rule: str, broken: Bool, tell: str, *columns: Int64) -> None:
        """Report the first break of a rule and how many more there are."""
        if not broken.any():
            return
        first = int(np.argmax(broken))
        more = int(broken.sum()) - 1
        where = tell.format(*(int(column[first]) for column in columns))
        found.append(BrokenRule(rule, where + (f" (and {more} more)" if more else "")))

    nodes = np.arange(n_nodes)
    say("fan-out", fan_out < 2, "node {} has {} children, fewer than 2", nodes, fan_out)
    say(
        "known label",
        label >= n_labels,
        f"node {{}} holds the label {{}}, but there are {n_labels} labels",
        edge_node[~is_node],
        label,
    )
    say(
        "known node",
        inner >= n_nodes,
        f"node {{}} has the child node {{}}, but there are {n_nodes} nodes",
        edge_node[is_node],
        inner,
    )
    say(
        "child after parent",
        inner <= edge_node[is_node],
        "node {} has the child node {}, which does not come after it",
        edge_node[is_node],
        inner,
    )
    if np.any(np.diff(np.sort(child)) == 0):  # only then can a node hold the same child twice
        order = np.lexsort((child, edge_node))
        node, held = edge_node[order], child[order]
        twice = (np.diff(held) == 0) & (np.diff(node) == 0)
        say("no child twice", twice, "node {} has the child {} twice", node, held)
    parents = np.bincount(inner[inner < n_nodes], minlength=n_nodes)
    say("one parent", parents > 1, "node {} has {} parents", nodes, parents)
    orphan = parents == 0
    orphan[:1] = False
    say("reachable", orphan, "node {} is not under the root", nodes)
    placed = np.zeros(n_labels, bool)
    placed[label[label < n_labels]] = True
    if n_labels > 1 or n_nodes > 0:
        say("every label placed", ~placed, "label {} hangs under no node", np.arange(n_labels))
    return found

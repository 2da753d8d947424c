"""Content of a tree as files store it and as the hash covers it, before it is known to be a tree.

The members of an ``.npz`` file and the bytes of a tree's hash are the same arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from hstree._ragged import offsets
from hstree._typing import Bool, Int64, UInt8
from hstree.tree.rules import BrokenRule, broken_rules


@dataclass(frozen=True)
class Content:
    """Content of a tree file; the fields are those of `Tree`.

    The arrays are int64 vectors; everything else, even that labels are strings, is left to the
    rules, so that `broken_rules` can name every broken rule where `Tree` stops at the first.
    """

    labels: list[str]
    child_start: Int64
    child: Int64
    counts: Int64 | None
    names: list[str | None] | None
    meta: dict[str, Any]

    def broken_rules(self) -> list[BrokenRule]:
        """Return every rule of the format that the content breaks; empty for a valid tree."""
        return broken_rules(self.labels, self.child_start, self.child, self.counts, self.names)


def content_arrays(
    labels: Sequence[str],
    counts: Int64 | None,
    child_start: Int64,
    child: Int64,
    names: Sequence[str | None] | None,
) -> dict[str, UInt8 | Int64]:
    """Return a tree's content as named arrays, in the order of ``docs/tree-format.md``.

    Counts and names are left out where the tree has none. ``named`` lists the nodes with a name.
    """
    buffer, start = pack(labels)
    arrays: dict[str, UInt8 | Int64] = {"labels": buffer, "label_start": start}
    if counts is not None:
        arrays["counts"] = counts
    arrays |= {"child_start": child_start, "child": child}
    if names is not None:
        named = [node for node, name in enumerate(names) if name is not None]
        buffer, start = pack([name for name in names if name is not None])
        arrays |= {"named": np.array(named, np.int64), "names": buffer, "name_start": start}
    return arrays


def pack(strings: Sequence[str]) -> tuple[UInt8, Int64]:
    """Concatenate S strings in UTF-8 to bytes, and return them with the strings' offsets (S + 1,).

    Raises UnicodeEncodeError when a string holds a lone surrogate, which UTF-8 cannot encode.
    """
    text = "".join(strings)
    buffer = np.frombuffer(text.encode("utf-8"), np.uint8)
    start = offsets(np.fromiter(map(len, strings), np.int64, len(strings)))  # in characters
    if len(buffer) == len(text):
        return buffer, start
    character = np.append(np.flatnonzero(_is_first_byte(buffer)), len(buffer))  # first bytes
    return buffer, character[start]


def unpack(buffer: UInt8, start: Int64) -> list[str]:
    """Split a buffer of strings; the inverse of `pack`.

    Raises ValueError when the buffer is not UTF-8, or the offsets do not run through it or split a
    character.
    """
    complete = len(start) > 0 and start[0] == 0 and start[-1] == len(buffer)
    if not complete or np.any(start[1:] < start[:-1]):
        raise ValueError(f"the offsets do not run from 0 up to {len(buffer)} bytes")
    text = buffer.tobytes().decode("utf-8")
    if len(text) != len(buffer):
        is_first = np.append(_is_first_byte(buffer), True)
        if not is_first[start].all():
            raise ValueError("an offset cuts a character in two")
        start = (np.cumsum(is_first) - 1)[start]  # from bytes to characters
    return [text[a:b] for a, b in pairwise(start.tolist())]


def _is_first_byte(buffer: UInt8) -> Bool:
    """Return which bytes of UTF-8 begin a character."""
    first: Bool = (buffer & 0xC0) != 0x80
    return first

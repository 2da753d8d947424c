"""Strings as arrays: many strings in one UTF-8 buffer with offsets, and a tree's whole content so.

The same arrays are the members of an ``.npz`` file and what a tree's hash runs over, so that
the two can never drift apart. Nothing here looks at what the arrays mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from hstree._ragged import offsets
from hstree._typing import Bool, Int64, UInt8


def pack(strings: Sequence[str]) -> tuple[UInt8, Int64]:
    """Lay strings end to end.

    Parameters
    ----------
    strings : sequence of str, length S

    Returns
    -------
    buffer : uint8 array
        All strings in UTF-8, one after the other.
    start : int64 array (S + 1,)
        String i is ``buffer[start[i]:start[i + 1]]``.

    Raises
    ------
    UnicodeEncodeError
        When a string holds a lone surrogate, which UTF-8 cannot write.
    """
    text = "".join(strings)
    buffer = np.frombuffer(text.encode("utf-8"), np.uint8)
    start = offsets(np.fromiter(map(len, strings), np.int64, len(strings)))
    if len(buffer) == len(text):
        return buffer, start
    character = np.append(np.flatnonzero(_begins_character(buffer)), len(buffer))
    return buffer, character[start]


def unpack(buffer: UInt8, start: Int64) -> list[str]:
    """Take strings apart again; the inverse of `pack`.

    Raises
    ------
    ValueError
        When the buffer is not UTF-8, or the offsets do not run through it or cut a character.
    """
    whole = len(start) > 0 and start[0] == 0 and start[-1] == len(buffer)
    if not whole or np.any(start[1:] < start[:-1]):
        raise ValueError(f"the offsets do not run from 0 up to {len(buffer)} bytes")
    text = buffer.tobytes().decode("utf-8")
    if len(text) != len(buffer):
        begins = np.append(_begins_character(buffer), True)
        if not begins[start].all():
            raise ValueError("an offset cuts a character in two")
        start = (np.cumsum(begins) - 1)[start]
    return [text[a:b] for a, b in pairwise(start.tolist())]


def content_arrays(
    labels: Sequence[str],
    counts: Int64 | None,
    child_start: Int64,
    child: Int64,
    names: Sequence[str | None] | None,
) -> dict[str, UInt8 | Int64]:
    """Return a tree's content as named arrays, in the order of ``docs/tree-format.md``.

    What a tree does not have (counts, names) is left out. Of the names, those that are null
    are: ``named`` lists the nodes that have one.
    """
    buffer, start = pack(labels)
    arrays: dict[str, UInt8 | Int64] = {"labels": buffer, "label_start": start}
    if counts is not None:
        arrays["counts"] = counts
    arrays |= {"child_start": child_start, "child": child}
    if names is not None:
        given = [(node, name) for node, name in enumerate(names) if name is not None]
        buffer, start = pack([name for _, name in given])
        named = np.array([node for node, _ in given], np.int64)
        arrays |= {"named": named, "names": buffer, "name_start": start}
    return arrays


def _begins_character(buffer: UInt8) -> Bool:
    """Tell which bytes of UTF-8 begin a character; the others continue one."""
    begins: Bool = (buffer & 0xC0) != 0x80
    return begins

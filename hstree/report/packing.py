"""Trees as compact text for the page: what its explorer cannot compute by itself, compressed.

The words of a comparison's trees are numbered once for all of them, the most frequent first, so
that the smallest number under a node is its most frequent word. Of each tree there are its
children and names; the mass, the leaves and the words of every branch are computed in the browser
(``treedata.js``), which takes milliseconds and no room.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from hstree import progress
from hstree._typing import Int64
from hstree.errors import InputError
from hstree.tree import Tree


def pack(trees: Mapping[str, Tree]) -> dict[str, Any]:
    """Pack trees over the same words.

    Parameters
    ----------
    trees : mapping of str to Tree
        By name; one at least.

    Returns
    -------
    dict
        JSON values: ``words`` and ``counts`` in the page's order, and ``trees``. ``counts`` is
        None where no tree knows any. Every text is base64 of gzip.

    Raises
    ------
    InputError
        When two trees are not over the same words.
    """
    first = next(iter(trees))
    words, counts = _by_frequency(trees)
    number = {word: i for i, word in enumerate(words)}
    packed = []
    with progress.task("packing trees", total=len(trees), unit="") as task:
        for name, tree in trees.items():
            if len(number) != tree.n_labels or not all(label in number for label in tree.labels):
                raise InputError(
                    f"the trees of {first!r} and {name!r} are not over the same words; "
                    "compare them again, in one comparison"
                )
            packed.append({"name": name, **_packed(tree, number)})
            task.advance()
    return {
        "words": _json(words),
        "counts": None if counts is None else _compressed(counts.astype("<f8").tobytes()),
        "trees": packed,
    }


def _by_frequency(trees: Mapping[str, Tree]) -> tuple[list[str], Int64 | None]:
    """Return the words and their counts, most frequent first, ties as in the first tree."""
    known = [tree for tree in trees.values() if tree.counts is not None]
    if not known or known[0].counts is None:
        return list(next(iter(trees.values())).labels), None
    order = np.argsort(-known[0].counts, kind="stable")
    return [known[0].labels[i] for i in order], known[0].counts[order]


def _packed(tree: Tree, number: Mapping[str, int]) -> dict[str, Any]:
    word = np.array([number[label] for label in tree.labels], np.int64)
    child = tree.child.copy()
    is_label = child < 0
    child[is_label] = ~word[~child[is_label]]
    return {
        "fan_out": _integers(tree.fan_out),
        "child": _integers(child),
        "names": None if tree.names is None else _json(tree.names),
    }


def _integers(values: Int64) -> str:
    """Pack integers as four planes of bytes: high bytes are alike, and compress to nothing."""
    planes = values.astype("<i4").view(np.uint8).reshape(-1, 4).T
    return _compressed(planes.tobytes())


def _json(value: object) -> str:
    return _compressed(json.dumps(value).encode())


def _compressed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, mtime=0)).decode()

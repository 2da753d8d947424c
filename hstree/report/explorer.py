"""Data of the page's tree explorer: the trees, compressed, and how each was made.

All trees share one numbering of the words, the most frequent first. The browser (``trees.js``)
computes the mass, the leaves and the words of every branch.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from hstree.errors import InputError
from hstree.experiments.results import Comparison
from hstree.report.recipe import how_made
from hstree.tree import Tree

#: Words with several senses; the first that is in the vocabulary is proposed.
_EXAMPLES = ("bank", "returns", "plant", "spring", "light", "file", "table")


def explorer_of(comparison: Comparison, trees: Mapping[str, Tree]) -> dict[str, Any]:
    """Return the packed trees, a description of each, the tree to show first and a word to try."""
    packed = pack(trees)
    for entry in packed["trees"]:
        entry["made"] = how_made(comparison.row(entry["name"]))
    # Where the answer has nothing to explore, as the flat softmax, the best tree comes first.
    rows = [comparison.row(name) for name in trees]
    best = min(rows, key=lambda row: (row.is_flat, row is not comparison.best, row.valid))
    known = set(next(iter(trees.values())).labels)
    return {
        **packed,
        "first": rows.index(best),
        "example": next((word for word in _EXAMPLES if word in known), None),
    }


def pack(trees: Mapping[str, Tree]) -> dict[str, Any]:
    """Pack trees over the same words (else InputError) into JSON values and base64 of gzip.

    The dict has ``words``, most frequent first, their ``counts`` (None if no tree has any), and
    ``trees``: ``name``, ``fan_out``, ``child`` and ``names`` of each.
    """
    first, tree = next(iter(trees.items()))
    counted = next((tree for tree in trees.values() if tree.counts is not None), tree)
    words, counts = list(counted.labels), None
    if counted.counts is not None:
        # (V,) labels by count, ties as in the tree
        order = np.argsort(-counted.counts, kind="stable")
        words = [counted.labels[i] for i in order]
        counts = _compressed(counted.counts[order].astype("<f8").tobytes())
    number = {word: i for i, word in enumerate(words)}
    packed = []
    for name, tree in trees.items():
        if number.keys() != set(tree.labels):
            raise InputError(
                f"the trees of {first!r} and {name!r} are not over the same words; compare them "
                "again, in one comparison"
            )
        # (V,) number of each label; (E,) child of each edge, a word as the complement of its number
        word = np.array([number[label] for label in tree.labels], np.int64)
        child, is_label = tree.child.copy(), tree.child < 0
        child[is_label] = ~word[~child[is_label]]
        names = None if tree.names is None else _compressed(json.dumps(tree.names).encode())
        arrays = {}
        for key, values in (("fan_out", tree.fan_out), ("child", child)):
            # (4, n) planes of bytes; the high bytes are alike and compress to nothing
            planes = values.astype("<i4").view(np.uint8).reshape(-1, 4).T
            arrays[key] = _compressed(planes.tobytes())
        packed.append({"name": name, **arrays, "names": names})
    words_packed = _compressed(json.dumps(words).encode())
    return {"words": words_packed, "counts": counts, "trees": packed}


def _compressed(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, mtime=0)).decode()

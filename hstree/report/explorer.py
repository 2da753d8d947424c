"""Data of the page's tree explorer: the trees, compressed, and how each was made.

All trees share one numbering of the words, the most frequent first. The browser (``trees.js``)
computes the mass, the leaves and the words of every branch.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hstree.errors import FileFormatError, HstreeError, InputError
from hstree.experiments.results import Comparison
from hstree.report.recipe import how_made
from hstree.tree import Tree, load

#: Words with several senses; the first that is in the vocabulary is proposed.
_EXAMPLES = ("bank", "returns", "plant", "spring", "light", "file", "table")


def explorer_of(comparison: Comparison, folder: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the packed trees of the files in `folder`, and a sentence for each that is lacking.

    With the trees are what made each, which to show first and a word to try; None without any tree.
    """
    trees: dict[str, Tree] = {}
    lacking = []
    for row in comparison.rows:
        if row.tree is None or row.tree_file is None:
            continue
        try:
            tree = load(folder / row.tree_file)
            if tree.sha256 != row.tree.sha256:
                raise FileFormatError(f"{row.tree_file} is not the tree that the results name")
            trees[row.name] = tree
        except (HstreeError, ValueError) as error:
            lacking.append(f"{row.name}: {error}")
    if not trees:
        return None, lacking
    packed, rows = pack(trees), [comparison.row(name) for name in trees]
    for entry, row in zip(packed["trees"], rows, strict=True):
        entry["made"] = how_made(row)
    # Where the answer has nothing to explore, as the flat softmax, the best tree comes first.
    best = min(rows, key=lambda row: (row.is_flat, row is not comparison.best, row.valid))
    known = set(next(iter(trees.values())).labels)
    example = next((word for word in _EXAMPLES if word in known), None)
    return {**packed, "first": rows.index(best), "example": example}, lacking


def pack(trees: Mapping[str, Tree]) -> dict[str, Any]:
    """Pack trees over the same words (else InputError) into JSON values and bytes.

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
        counts = counted.counts[order].astype("<f8").tobytes()
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
        names = None if tree.names is None else json.dumps(tree.names).encode()
        arrays = {}
        for key, values in (("fan_out", tree.fan_out), ("child", child)):
            # (4, n) planes of bytes; the high bytes are alike and compress to nothing
            planes = values.astype("<i4").view(np.uint8).reshape(-1, 4).T
            arrays[key] = planes.tobytes()
        packed.append({"name": name, **arrays, "names": names})
    return {"words": json.dumps(words).encode(), "counts": counts, "trees": packed}

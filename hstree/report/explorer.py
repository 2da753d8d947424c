"""Data of the page's tree explorer: the trees, compressed, and how each was made.

All trees share one numbering of the words, the most frequent first. The browser (``trees.js``)
computes the mass, the leaves and the words of every branch.
"""

import gzip
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from hstree.errors import FileFormatError, HstreeError
from hstree.experiments.results import Comparison
from hstree.report.recipe import how_made
from hstree.tree import Tree, load

#: Words with several senses; the first that is in the vocabulary is proposed.
_EXAMPLES = ("bank", "returns", "plant", "spring", "light", "file", "table")
#: Bytes as gzip, the same for the same bytes.
_zipped = partial(gzip.compress, mtime=0)


class PackedTree(Struct, frozen=True):
    """A tree's name, how it was made, and its arrays and names of nodes as bytes of gzip."""

    name: str
    fan_out: bytes
    child: bytes
    names: bytes | None
    made: str = ""


class Trees(Struct, frozen=True):
    """Trees over the same words: these, the most frequent first, and their counts, as gzip."""

    words: bytes
    counts: bytes | None  #: None if no tree has any
    trees: list[PackedTree]
    first: int = 0  #: the one to show first
    example: str | None = None  #: a word to try


def explorer_of(comparison: Comparison, folder: Path) -> tuple[Trees | None, list[str]]:
    """Return the trees of the files in `folder`, and a sentence for each that is lacking.

    Rows with the same tree share it. The flat softmax is no tree; None without any other.
    """
    trees: dict[str, Tree] = {}
    lacking, hashes = [], set()
    for row in comparison.rows:
        if row.tree is None or row.tree.nodes <= 1 or row.tree_file is None:
            continue
        if row.tree.sha256 in hashes:
            continue
        hashes.add(row.tree.sha256)
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
    made = [replace(t, made=how_made(row)) for t, row in zip(packed.trees, rows, strict=True)]
    # Where the answer has nothing to explore, as the flat softmax, the best tree comes first.
    answer = comparison.best and comparison.best.tree
    best = min(rows, key=lambda row: (row.tree != answer, row.valid))
    known = set(next(iter(trees.values())).labels)
    example = next((word for word in _EXAMPLES if word in known), None)
    return replace(packed, trees=made, first=rows.index(best), example=example), lacking


def pack(trees: Mapping[str, Tree]) -> Trees:
    """Pack trees over the same words."""
    tree, *_ = trees.values()
    counted = next((tree for tree in trees.values() if tree.counts is not None), tree)
    words, counts = list(counted.labels), None
    if counted.counts is not None:
        # (V,) labels by count, ties as in the tree
        order = np.argsort(-counted.counts, kind="stable")
        words = [counted.labels[i] for i in order]
        counts = _zipped(counted.counts[order].astype("<f8").tobytes())
    number = {word: i for i, word in enumerate(words)}
    packed = []
    for name, tree in trees.items():
        # (V,) number of each label; (E,) child of each edge, a word as the complement of its number
        word = np.array([number[label] for label in tree.labels], np.int64)
        edges, is_label = tree.child.copy(), tree.child < 0
        edges[is_label] = ~word[~edges[is_label]]
        names = None if tree.names is None else _zipped(json.dumps(tree.names).encode())
        # (4, n) planes of bytes; the high bytes are alike and compress to nothing
        fan_out, child = (
            _zipped(values.astype("<i4").view(np.uint8).reshape(-1, 4).T.tobytes())
            for values in (tree.fan_out, edges)
        )
        packed.append(PackedTree(name, fan_out, child, names))
    return Trees(_zipped(json.dumps(words).encode()), counts, packed)

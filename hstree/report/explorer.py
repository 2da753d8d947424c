"""Data of the tree explorer on the page: compressed trees with descriptions.

All trees use the same numbers of words, the most frequent first. The browser computes the mass, the
leaves and the most frequent words of every branch (``trees.js``).
"""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from hstree.errors import FileFormatError, HstreeError
from hstree.experiments.results import Comparison
from hstree.report.recipe import describe
from hstree.tree import Tree, load

#: Words with more than one sense; the first one in the vocabulary is suggested.
_EXAMPLES = ("bank", "returns", "plant", "spring", "light", "file", "table")


class PackedTree(Struct, frozen=True):
    """A tree: its arrays and the names of its nodes, compressed with gzip."""

    name: str
    fan_out: bytes
    child: bytes
    names: bytes | None
    description: str = ""


class Trees(Struct, frozen=True):
    """Trees over the same words; words and counts are compressed with gzip."""

    words: bytes  #: most frequent first
    counts: bytes | None  #: None if no tree has counts
    trees: list[PackedTree]
    example: str | None = None  #: suggestion for the search


def pack_trees(comparison: Comparison, folder: Path) -> tuple[Trees | None, list[str]]:
    """Return the trees from files in `folder`, and one sentence per missing tree.

    A tree of more than one candidate is packed once, with the name of the first candidate. The flat
    softmax is skipped. If there are no other trees, the first value is None.
    """
    trees: dict[str, Tree] = {}
    missing: list[str] = []
    hashes: set[str] = set()
    for candidate in comparison.candidates:
        if candidate.tree is None or candidate.tree.nodes <= 1 or candidate.tree_file is None:
            continue
        if candidate.tree.sha256 in hashes:
            continue
        hashes.add(candidate.tree.sha256)
        try:
            tree = load(folder / candidate.tree_file)
            if tree.sha256 != candidate.tree.sha256:
                raise FileFormatError(f"{candidate.tree_file} is not the tree in the results")
            trees[candidate.name] = tree
        except (HstreeError, ValueError) as error:
            missing.append(f"{candidate.name}: {error}")
    if not trees:
        return None, missing

    candidates = [comparison.candidate(name) for name in trees]
    packed = pack(trees)
    described = [
        replace(tree, description=describe(candidate))
        for tree, candidate in zip(packed.trees, candidates, strict=True)
    ]
    labels = set(next(iter(trees.values())).labels)
    example = next((word for word in _EXAMPLES if word in labels), None)
    return replace(packed, trees=described, example=example), missing


def pack(trees: Mapping[str, Tree]) -> Trees:
    """Pack trees over the same words."""
    counted = next((tree for tree in trees.values() if tree.counts is not None), None)
    if counted is None or counted.counts is None:
        words = list(next(iter(trees.values())).labels)
        counts = None
    else:
        # (V,) labels sorted by count; labels with equal counts keep their order
        order = np.argsort(-counted.counts, kind="stable")
        words = [counted.labels[i] for i in order]
        counts = _compress(counted.counts[order].astype("<f8").tobytes())

    numbers = {word: i for i, word in enumerate(words)}
    packed = [_pack_tree(name, tree, numbers) for name, tree in trees.items()]
    return Trees(_compress(json.dumps(words).encode()), counts, packed)


def _pack_tree(name: str, tree: Tree, numbers: Mapping[str, int]) -> PackedTree:
    """Pack a tree, given the numbers of its labels."""
    # (V,) number of each label
    label_numbers = np.array([numbers[label] for label in tree.labels], np.int64)

    # (E,) child of each edge: a node, or the complement of the number of a word
    child = tree.child.copy()
    is_label = child < 0
    child[is_label] = ~label_numbers[~child[is_label]]

    names = None if tree.names is None else _compress(json.dumps(tree.names).encode())
    return PackedTree(name, _pack_integers(tree.fan_out), _pack_integers(child), names)


def _pack_integers(values: np.ndarray) -> bytes:
    """Compress integers as four planes of bytes; the planes of high bytes compress well."""
    planes = values.astype("<i4").view(np.uint8).reshape(-1, 4).T
    return _compress(planes.tobytes())


def _compress(content: bytes) -> bytes:
    """Compress with gzip; the same content gives the same bytes."""
    return gzip.compress(content, mtime=0)

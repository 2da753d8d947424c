"""Classes within classes: parting words level by level, and the shape that comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from hstree._typing import Int64
from hstree.builders.word_classes.shapes import Shape, graft

#: Gives each of some words (by number, the most frequent first) a class from 0 to n - 1.
Divide = Callable[[Int64, int], Int64]
#: Makes the node over some children of known weights: wide, or a Huffman tree.
Arrange = Callable[[Int64], Shape]


def divided(order: Int64, divide: Divide, levels: int, n_classes: int | None = None) -> list[Int64]:
    """Part all words into classes, and each class again, until `levels` decisions lead to a word.

    Parameters
    ----------
    order : int64 array (V,)
        The words, the most frequent first.
    divide : callable
    levels : int
        At least 2.
    n_classes : int, optional
        Of the first parting. Elsewhere m words are parted into the root of m of the degree of
        the levels that are left: sqrt(m) classes where two are.

    Returns
    -------
    list of int64 array (V,)
        The class of each word, from coarse to fine, each a refinement of the one before; see
        `numbered`.
    """
    nested = [np.zeros(len(order), np.int64)]
    for left in range(levels, 1, -1):
        fine = np.empty(len(order), np.int64)
        n_before = 0
        for words in members(nested[-1], order):
            n = n_classes or max(1, round(len(words) ** (1 / left)))
            fine[words] = divide(words, n) + n_before
            n_before += n
        nested.append(numbered(fine, order))
        n_classes = None
    return nested[1:]


def numbered(class_of: Int64, order: Int64) -> Int64:
    """Number classes from 0 in the order of their most frequent words, without empty ones.

    Examples
    --------
    >>> numbered(np.array([5, 2, 5, 7]), np.arange(4)).tolist()
    [0, 1, 0, 2]
    """
    _, first, which = np.unique(class_of[order], return_index=True, return_inverse=True)
    number = np.empty(len(order), np.int64)
    number[order] = np.argsort(np.argsort(first))[which]
    return number


def members(class_of: Int64, order: Int64) -> list[Int64]:
    """Return the words of each class from 0, the most frequent first."""
    by_class = order[np.argsort(class_of[order], kind="stable")]
    return np.split(by_class, np.cumsum(np.bincount(class_of))[:-1])


def class_node(words: Int64, counts: Int64, arrange: Arrange, name: str) -> Shape:
    """Return the node over the words of a class."""
    shape = replace(arrange(counts[words]), leaves=words)
    return replace(shape, names=(name, *shape.names[1:])) if shape.names else shape


def nested_shape(counts: Int64, order: Int64, nested: Sequence[Int64], arrange: Arrange) -> Shape:
    """Return the tree of classes within classes, as `divided` gives them.

    Its nodes are named "class 3", and "class 3.0" within that one.
    """
    words = members(nested[-1], order)
    first = np.array([of_class[0] for of_class in words])
    mass = np.array([counts[of_class].sum() for of_class in words])
    names = _names(nested)
    shapes = [
        class_node(of_class, counts, arrange, name)
        for of_class, name in zip(words, names[-1], strict=True)
    ]
    for coarse, of_level in zip(nested[-2::-1], names[-2::-1], strict=True):
        groups = members(coarse[first], np.arange(len(first)))
        shapes = [
            graft(arrange(mass[group]), [shapes[i] for i in group], name)
            for group, name in zip(groups, of_level, strict=True)
        ]
        first = np.array([first[group[0]] for group in groups])
        mass = np.array([mass[group].sum() for group in groups])
    return graft(arrange(mass), shapes)


def _names(nested: Sequence[Int64]) -> list[list[str]]:
    """Name the classes of each level."""
    names = [[f"class {number}" for number in range(int(nested[0].max()) + 1)]]
    for coarse, fine in pairwise(nested):
        above = np.empty(int(fine.max()) + 1, np.int64)
        above[fine] = coarse
        within: dict[int, int] = {}
        of_level = []
        for parent in above.tolist():
            within[parent] = within.get(parent, -1) + 1
            of_level.append(f"{names[-1][parent]}.{within[parent]}")
        names.append(of_level)
    return names

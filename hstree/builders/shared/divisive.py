"""Divisive clustering: from a rule that splits nodes to a tree, all nodes of a level at once."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hstree._arrays import Int64, batches, offsets, segment_ids
from hstree._parallel import in_threads
from hstree.kernels import compiled
from hstree.progress import Task

#: Rows of one block; with 100 float32 per row they stay in a core's cache.
BLOCK = 2048
#: Blocks that a thread gets at a time, if they have no larger nodes.
TOGETHER = 8

#: Rule of a split: (words (n,), offsets of their nodes (S + 1,), what was drawn for them) -> branch
#: (n,). A branch b below zero sends the word to both of two children, and to ``~b`` alone where it
#: may have no more codes.
Split = Callable[[Int64, Int64, Any], Int64]


class DividedTree(NamedTuple):
    """Arrays of a `Tree`."""

    child_start: Int64
    child: Int64


def divide(
    n_words: int,
    split: Split,
    *,
    draw: Callable[[int], Any] = lambda n: None,
    arity: int = 2,
    max_leaves: int = 0,
    max_codes: int | Int64 = 1,
    roots: Int64 | None = None,
    task: Task,
) -> DividedTree:
    """Split the words 0..V-1, then the words of each child, until every word is a leaf.

    `split` gets whole nodes of more than `arity` and `max_leaves` words, the words of each
    ascending, and what `draw` returns for n words; several threads may call it at once. No branch
    may take all words of a node. A node of fewer words has them as its children. A word has at most
    `max_codes` codes, one number or (V,); beyond it, it goes to one child only. With `roots`
    (R + 1,), R trees are built at once: the words of tree r are ``roots[r]`` to ``roots[r + 1]``,
    two or more, and its root is node r. Nodes are numbered level by level, children in the order of
    their branches.
    `task` advances by V in all; a word in a node of n words counts ``1 - log n / log V``.
    """
    word = np.arange(n_words)
    start = np.array([0, n_words] if n_words > 1 else [0]) if roots is None else roots
    n_codes = np.ones(n_words, np.int64)
    most = np.broadcast_to(max_codes, n_words)
    fan_outs, children = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    n_nodes, shown, widest = 0, 0.0, max(arity, max_leaves)
    while True:
        # words done: of V words in all, less each where words have several codes
        size, unit = np.diff(start), n_words / n_codes.sum() / np.log(max(n_words, 2))
        done = n_words - float(size @ np.log(size)) * unit
        task.advance(max(0.0, done - shown))
        shown = max(shown, done)
        if len(start) == 1:
            break
        # (words,) branch of each word; a doubled word is then there twice
        branch = np.empty(len(word), np.int64)
        for words, of_words in _split_level(word, start, split, draw, widest):
            branch[words] = of_words
        n_nodes += len(start) - 1
        if branch.min() < 0:
            item, branch = _double(word, branch, n_codes, most)
            word = word[item]
            start = np.searchsorted(item, start)
        # (children,) words and number of words of each child; a leaf has one, else it is a node
        group = segment_ids(start) * widest + branch
        size = np.bincount(group, minlength=(len(start) - 1) * widest)
        word = word[np.argsort(group, kind="stable")]
        is_child = size > 0
        fan_outs.append(is_child.reshape(-1, widest).sum(axis=1))
        size = size[is_child]
        inner = size > 1
        child = ~word[offsets(size)[:-1]]
        child[inner] = n_nodes + np.arange(np.count_nonzero(inner))
        children.append(child)

        # words of the nodes of the next level
        word = word[np.repeat(inner, size)]
        start = offsets(size[inner])
    return DividedTree(offsets(np.concatenate(fan_outs)), np.concatenate(children))


def _split_level(
    word: Int64, start: Int64, split: Split, draw: Callable[[int], Any], widest: int
) -> Iterator[tuple[Int64, Int64]]:
    """Yield indices of the words of a level and their branches; small nodes need no split."""
    size = np.diff(start)
    is_split = np.repeat(size > widest, size)
    alone = np.flatnonzero(~is_split)
    yield alone, alone - np.repeat(start[:-1], size)[alone]
    index, bounds = np.flatnonzero(is_split), offsets(size[size > widest])
    cuts = [0, *(stop for _, stop in batches(bounds, BLOCK))]  # nodes where blocks begin and end

    def blocks() -> Iterator[list[tuple[Int64, Int64, Any]]]:
        """Yield some blocks at a time: their words, the offsets of nodes, and what is drawn."""
        for first, stop in batches(bounds[cuts], TOGETHER * BLOCK):
            some = []
            for a, b in pairwise(cuts[first : stop + 1]):
                words, start = index[bounds[a] : bounds[b]], bounds[a : b + 1] - bounds[a]
                some.append((words, start, draw(len(words))))
            yield some

    def split_blocks(some: list[tuple[Int64, Int64, Any]]) -> list[Int64]:
        return [split(word[words], start, drawn) for words, start, drawn in some]

    for some, branches in in_threads(split_blocks, blocks(), when=compiled() is not None):
        for (words, *_), branch in zip(some, branches, strict=True):
            yield words, branch


def _double(word: Int64, branch: Int64, n_codes: Int64, max_codes: Int64) -> tuple[Int64, Int64]:
    """Duplicate each word that goes to both children, as far as `max_codes` allows.

    Returns the items (indices into `word`, ascending) and their branches; updates `n_codes`.
    No branch becomes empty, for a split leaves none with such words only.
    """
    both = np.flatnonzero(branch < 0)
    # Where a word would be duplicated in several nodes, the first ones go first.
    both = both[np.argsort(word[both], kind="stable")]
    head = np.flatnonzero(np.diff(word[both], prepend=-1))
    nth = np.arange(len(both)) - np.repeat(head, np.diff(head, append=len(both)))
    granted = nth < (max_codes - n_codes)[word[both]]
    refused = both[~granted]
    branch = branch.copy()
    branch[refused] = ~branch[refused]
    n_codes += np.bincount(word[both[granted]], minlength=len(n_codes))
    item = np.repeat(np.arange(len(word)), 1 + (branch < 0))
    is_copy = np.diff(item, prepend=-1) == 0
    return item, np.where(branch[item] < 0, is_copy, branch[item])

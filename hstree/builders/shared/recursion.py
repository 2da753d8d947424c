"""From a rule that cuts nodes to a tree: level by level, all nodes of a level at once.

A builder gives a `Cut`: for the words of many nodes, the branch that each takes. This module
turns it into the flat arrays of a `Tree` and cares for duplicated words and their bound. What the
rule is, is the builder's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from hstree._ragged import offsets, segment_ids
from hstree._typing import Bool, Int64
from hstree.progress import Task

#: Rows of one block: what stays in a core's cache with 100 float32 a row.
BLOCK = 2048

#: (words (n,), offsets of their nodes (S + 1,), a generator) -> branch (n,). A branch b below zero
#: stands for the first and the second, and for ``~b`` alone where the word may have no more codes.
Cut = Callable[[Int64, Int64, np.random.Generator], Int64]


@dataclass(frozen=True)
class Growth:
    """One grown tree: the arrays of a `Tree`, and the words that reached the bound on codes."""

    child_start: Int64
    child: Int64
    bounded: Bool


def grow(
    n_words: int,
    cut: Cut,
    rng: np.random.Generator,
    *,
    arity: int = 2,
    max_codes: int = 1,
    roots: Int64 | None = None,
    task: Task,
) -> Growth:
    """Cut the words 0..V-1, then the words of each child, until every word stands alone.

    Parameters
    ----------
    n_words : int
        V, at least one.
    cut : Cut
        Called with whole nodes of more than `arity` words. Within a node words are in ascending
        order, and no branch may take all words of a node.
    rng : Generator
        Handed on to `cut`.
    arity : int, default 2
        A node with no more words than this has them as its children.
    max_codes : int, default 1
        Places that a word may have; beyond that, what `cut` doubles stays single.
    roots : int64 array (R + 1,), optional
        Grow R trees at once: the words of tree r are ``roots[r]`` to ``roots[r + 1]``, two or
        more, and its root is node r. By default one tree of all words.
    task : Task
        Told how many words are settled, V in all; a word on its way counts by how far
        it has come, by the logarithm of its node's size.

    Returns
    -------
    Growth
        Nodes numbered level by level, children in the order of the branches.
    """
    word = np.arange(n_words)
    start = np.array([0, n_words] if n_words > 1 else [0]) if roots is None else roots
    places = np.ones(n_words, np.int64)
    bounded = np.zeros(n_words, bool)
    fan_outs, children = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    n_nodes, settled = 0, 0.0
    while len(start) > 1:
        branch = _cut_level(word, start, cut, rng, arity)
        n_nodes += len(start) - 1
        item, branch = _double(word, branch, places, max_codes, bounded)
        node = segment_ids(start)[item]
        group = node * arity + branch
        order = np.argsort(group, kind="stable")
        item, group = item[order], group[order]

        head = np.flatnonzero(np.diff(group, prepend=-1))
        size = np.diff(head, append=len(group))
        inner = size > 1
        child = ~word[item[head]]
        child[inner] = n_nodes + np.arange(np.count_nonzero(inner))
        children.append(child)
        fan_outs.append(np.bincount(group[head] // arity, minlength=len(start) - 1))

        word = word[item[np.repeat(inner, size)]]
        start = offsets(size[inner])
        ahead = float(size[inner] @ np.log(size[inner])) / places.sum() / np.log(n_words)
        task.advance(max(0.0, n_words * (1 - ahead) - settled))
        settled = max(settled, n_words * (1 - ahead))
    return Growth(offsets(np.concatenate(fan_outs)), np.concatenate(children), bounded)


def _cut_level(
    word: Int64,
    start: Int64,
    cut: Cut,
    rng: np.random.Generator,
    arity: int,
) -> Int64:
    """Return the branch of every word of a level; nodes of few words need no cut."""
    size = np.diff(start)
    branch = np.arange(start[-1]) - np.repeat(start[:-1], size)
    large = size > arity
    if not large.any():
        return branch
    cuttable = np.repeat(large, size)
    words, bounds = word[cuttable], offsets(size[large])
    branch[cuttable] = np.concatenate(
        [
            cut(words[bounds[a] : bounds[b]], bounds[a : b + 1] - bounds[a], rng)
            for a, b in _blocks(bounds)
        ]
    )
    return branch


def _blocks(start: Int64) -> Iterator[tuple[int, int]]:
    """Group whole nodes, in order, into blocks of at most BLOCK rows, or of one larger node."""
    first, n_nodes = 0, len(start) - 1
    while first < n_nodes:
        last = int(np.searchsorted(start, start[first] + BLOCK, "right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def _double(
    word: Int64,
    branch: Int64,
    places: Int64,
    max_codes: int,
    bounded: Bool,
) -> tuple[Int64, Int64]:
    """Make two items of each word that goes both ways, as far as its bound allows.

    Returns the items (numbers into `word`, ascending) and their branches; updates `places`
    and `bounded`. No branch is emptied: a cut leaves none whose words all go both ways.
    """
    every = np.arange(len(word))
    asked = np.flatnonzero(branch < 0)
    if not asked.size:
        return every, branch
    asked = asked[np.argsort(word[asked], kind="stable")]
    head = np.flatnonzero(np.diff(word[asked], prepend=-1))
    nth = np.arange(len(asked)) - np.repeat(head, np.diff(head, append=len(asked)))
    granted = nth < max_codes - places[word[asked]]
    refused = asked[~granted]
    bounded[word[refused]] = True
    branch = branch.copy()
    branch[refused] = ~branch[refused]
    places += np.bincount(word[asked[granted]], minlength=len(places))
    item = np.repeat(every, 1 + (branch < 0))
    is_copy = np.diff(item, prepend=-1) == 0
    return item, np.where(branch[item] < 0, is_copy, branch[item])

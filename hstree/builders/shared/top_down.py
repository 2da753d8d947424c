"""Top-down construction of trees by a rule that splits nodes, all nodes of a level at once.

`build_top_down` accepts any rule. `build_tree` and `run_job` accept the `Splitter` of a builder,
which creates a rule from vectors.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hstree import progress
from hstree._arrays import Float64, Floating, Int64, batches, offsets, segment_ids
from hstree._parallel import in_threads
from hstree.builders.shared.nodes import Nodes

#: Number of words that one call splits. With 100 float32 values each, they stay in a core's cache.
BLOCK_WORDS = 2048
#: Number of blocks that a thread processes at a time, unless nodes are larger than a block.
BLOCKS_PER_CALL = 8

#: Rule that splits nodes: (words (n,), offsets of their nodes (S + 1,), random numbers for the
#: words) -> branch (n,). A branch b below zero sends the word to both of two children, or only to
#: ``~b`` if the word already has its maximum number of codes.
SplitRule = Callable[[Int64, Int64, Any], Int64]


class TreeTopology(NamedTuple):
    """Arrays of a `Tree` that define its nodes."""

    child_start: Int64
    child: Int64


def build_top_down(
    n_words: int,
    split: SplitRule,
    *,
    draw: Callable[[int], Any] = lambda n: None,
    arity: int = 2,
    max_leaves: int = 0,
    max_codes: int | Int64 = 1,
    roots: Int64 | None = None,
    task: progress.Task,
) -> TreeTopology:
    """Split the words 0..V-1, then the words of each child, until every word is a leaf.

    Parameters
    ----------
    n_words : int
        Number of words V.
    split : SplitRule
        It receives whole nodes with more than `arity` and `max_leaves` words; the words of a node
        are in ascending order. Several threads may call it at once. No branch may get all words of
        a node.
    draw : callable, optional
        Returns the random numbers that `split` receives for n words.
    arity : int
        Number of children of a node that is split.
    max_leaves : int
        Maximum number of words of a node that is not split: they are its children. Nodes with at
        most `arity` words are never split.
    max_codes : int or int64 array (V,)
        Maximum number of codes of each word. A word with so many codes goes to one child only.
    roots : int64 array (R + 1,), optional
        Offsets of R trees to build at once. Tree r has the words ``roots[r]`` to ``roots[r + 1]``,
        at least two, and its root is node r.
    task : Task
        It advances by V in total. A word in a node of n words counts ``1 - log n / log V``.

    Returns
    -------
    TreeTopology
        Nodes are numbered level by level, children in the order of their branches.
    """
    widest = max(arity, max_leaves)
    n_codes = np.ones(n_words, np.int64)
    max_codes = np.broadcast_to(max_codes, n_words)
    # The words of a level, node by node, and the offsets of the nodes
    word = np.arange(n_words)
    start = np.array([0, n_words] if n_words > 1 else [0]) if roots is None else roots

    n_nodes = 0
    n_shown = 0.0
    fan_outs = [np.empty(0, np.int64)]
    children = [np.empty(0, np.int64)]
    while True:
        # Report progress. A code of a word with several codes counts as a fraction of a word
        size = np.diff(start)
        unit = n_words / n_codes.sum() / np.log(max(n_words, 2))
        n_done = n_words - float(size @ np.log(size)) * unit
        task.advance(max(0.0, n_done - n_shown))
        n_shown = max(n_shown, n_done)
        if len(start) == 1:
            break

        # Split the nodes: find the branch of each word. Duplicate words that go to both children
        n_nodes += len(start) - 1
        branch = np.empty(len(word), np.int64)
        for index, index_branch in _split_level(word, start, split, draw, widest):
            branch[index] = index_branch
        if branch.min() < 0:
            item, branch = _double(word, branch, n_codes, max_codes)
            word = word[item]
            start = np.searchsorted(item, start)

        # Group the words by child: (children,) sizes. A child with one word is a leaf
        group = segment_ids(start) * widest + branch
        size = np.bincount(group, minlength=(len(start) - 1) * widest)
        word = word[np.argsort(group, kind="stable")]
        is_child = size > 0
        size = size[is_child]
        is_node = size > 1
        child = ~word[offsets(size)[:-1]]
        child[is_node] = n_nodes + np.arange(np.count_nonzero(is_node))
        fan_outs.append(is_child.reshape(-1, widest).sum(axis=1))
        children.append(child)

        # The next level has the words of the children that are nodes
        word = word[np.repeat(is_node, size)]
        start = offsets(size[is_node])
    return TreeTopology(offsets(np.concatenate(fan_outs)), np.concatenate(children))


def _split_level(
    word: Int64, start: Int64, split: SplitRule, draw: Callable[[int], Any], widest: int
) -> Iterator[tuple[Int64, Int64]]:
    """Yield indices of words of a level, and their branches."""
    size = np.diff(start)
    is_split = np.repeat(size > widest, size)

    # The words of a small node are its children, one branch each
    alone = np.flatnonzero(~is_split)
    yield alone, alone - np.repeat(start[:-1], size)[alone]

    # Split the other nodes in blocks; `cuts` holds the nodes at which blocks begin and end
    index = np.flatnonzero(is_split)
    bounds = offsets(size[size > widest])
    cuts = [0, *(stop for _, stop in batches(bounds, BLOCK_WORDS))]

    def blocks() -> Iterator[list[tuple[Int64, Int64, Any]]]:
        """Yield the blocks of each call: indices of words, offsets of nodes, random numbers."""
        for first, stop in batches(bounds[cuts], BLOCKS_PER_CALL * BLOCK_WORDS):
            group = []
            for a, b in pairwise(cuts[first : stop + 1]):
                indices = index[bounds[a] : bounds[b]]
                group.append((indices, bounds[a : b + 1] - bounds[a], draw(len(indices))))
            yield group

    def split_blocks(group: list[tuple[Int64, Int64, Any]]) -> list[Int64]:
        return [split(word[indices], starts, drawn) for indices, starts, drawn in group]

    for group, branches in in_threads(split_blocks, blocks()):
        for (indices, *_), branch in zip(group, branches, strict=True):
            yield indices, branch


def _double(word: Int64, branch: Int64, n_codes: Int64, max_codes: Int64) -> tuple[Int64, Int64]:
    """Duplicate the words that go to both children, as far as `max_codes` allows.

    Returns the items (indices into `word`, ascending) and their branches; updates `n_codes`. No
    branch becomes empty, since each branch of a split has other words, too.
    """
    both = np.flatnonzero(branch < 0)
    # Number the duplicates of each word; the first nodes have precedence
    both = both[np.argsort(word[both], kind="stable")]
    head = np.flatnonzero(np.diff(word[both], prepend=-1))
    rank = np.arange(len(both)) - np.repeat(head, np.diff(head, append=len(both)))
    is_granted = rank < (max_codes - n_codes)[word[both]]
    refused = both[~is_granted]
    n_codes += np.bincount(word[both[is_granted]], minlength=len(n_codes))

    branch = branch.copy()
    branch[refused] = ~branch[refused]
    item = np.repeat(np.arange(len(word)), 1 + (branch < 0))
    is_copy = np.diff(item, prepend=-1) == 0
    return item, np.where(branch[item] < 0, is_copy, branch[item])


class RowScores(NamedTuple):
    """Quadratic functions of rows that decide to which child of a node a word goes.

    Score j is ``constant[j] + quadratic[j] * x @ x + linear[j] @ x``, where x is ``scale * row -
    centre``.
    """

    scale: float
    centre: Floating  #: (d,)
    constant: Float64  #: (k,)
    quadratic: Float64  #: (k,)
    linear: Floating  #: (k, d)

    def evaluate(self, rows: Floating) -> Float64:
        """Return the scores (k, n) of rows (n, d)."""
        x = rows * rows.dtype.type(self.scale)
        x -= self.centre
        dot = np.stack([np.vecdot(x, coefficients) for coefficients in self.linear])
        square = self.quadratic[:, None] * np.vecdot(x, x)
        return np.asarray(self.constant[:, None] + square + dot, np.float64)


class Splitter(ABC):
    """Rule of a builder for splitting nodes, given vectors and `word_values`. It can be pickled.

    Attributes
    ----------
    arity : int
        Number of children of a node that is split.
    max_leaves : int
        Maximum number of words of a node that is not split. It has no effect below `arity`.
    max_codes : int
        Maximum number of codes of a word.
    """

    arity: int = 2
    max_leaves: int = 0
    max_codes: int = 1

    @abstractmethod
    def split_rule(self, vectors: Floating, word_values: Any) -> SplitRule:
        """Return the rule that splits nodes of words with these vectors (V, d)."""

    def draw(self, rng: np.random.Generator, n: int) -> Any:
        """Draw the random numbers that the rule needs for n words (default: None)."""
        return None

    @abstractmethod
    def fit_scores(self, rows: Floating, word_values: Any, rng: np.random.Generator) -> RowScores:
        """Split one node with the rows (n, d), as the rule does; return scores for other rows."""

    @abstractmethod
    def branches(self, nodes: Nodes, scores: Float64, word_values: Any) -> Int64:
        """Return the branches (n,) of words by their scores (k, n), as the rule does."""


def build_tree(
    splitter: Splitter,
    rule: SplitRule,
    n_words: int,
    seed: np.random.SeedSequence,
    max_codes: int | Int64 | None = None,
    *,
    task: progress.Task,
) -> TreeTopology:
    """Build one tree from a seed."""
    return build_top_down(
        n_words,
        rule,
        draw=partial(splitter.draw, np.random.default_rng(seed)),
        arity=splitter.arity,
        max_leaves=splitter.max_leaves,
        max_codes=splitter.max_codes if max_codes is None else max_codes,
        task=task,
    )


def run_job(splitter: Splitter, job: tuple[Floating, Any, int | Int64, Any]) -> TreeTopology:
    """Build the tree of one job, which has rows, word values, maximum codes and a seed."""
    rows, word_values, max_codes, seed = job
    rows = np.array(rows)  # joblib may have mapped them from a file
    with progress.task("sub-tree", total=len(rows), unit="words") as task:
        rule = splitter.split_rule(rows, word_values)
        return build_tree(splitter, rule, len(rows), seed, max_codes, task=task)

"""Branches of a tree for display: frequent labels, leaves, fraction of the counts; and a plot.

The plot is an icicle plot drawn by matplotlib: a branch is a rectangle below its node, as wide as
its fraction of the counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hstree import progress
from hstree._arrays import Float64, Int64, segment_ids
from hstree._options import checked_count
from hstree._plugins import require
from hstree.tree.arrays import TreeArrays
from hstree.tree.weight_rows import edge_mass

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Branch:
    """Branch of a node and the labels below it."""

    edge: int  #: index of the edge, which leads to ``tree.child[edge]``
    node: int | None  #: the node below the edge; None for a label
    name: str | None  #: the label, or the name of the node, if any
    words: tuple[str, ...]  #: most frequent labels below it, in descending order
    leaves: int  #: number of leaves below it; each code of a label is a leaf
    fraction: float  #: fraction of `edge_mass`: the probability in an untrained model


class Branches:
    """Branches of one tree, with the `n_words` most frequent words below each.

    Examples
    --------
    >>> from hstree import Tree
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]], counts=[2, 1, 1])
    >>> branches = Branches(tree)
    >>> [(branch.words, branch.fraction) for branch in branches.of(0)]
    [(('a',), 0.5), (('b', 'c'), 0.5)]
    >>> branches.frequent.tolist()
    [[0, 1, 2, -1, -1], [1, 2, -1, -1, -1]]
    """

    def __init__(self, tree: TreeArrays, n_words: int = 5) -> None:
        self.tree = tree
        n_words = checked_count("n_words", n_words)
        # (E,) fraction of the counts and number of leaves below each edge
        mass = edge_mass(tree, tree.counts)
        self.fraction: Float64 = mass / mass[tree.edge_node == 0].sum()
        self.leaves = tree.sum_up(np.ones(tree.n_labels, np.int64))
        # (V,) rank of each label by count; the rank n_labels means no label
        n_labels = tree.n_labels
        counts = 0 if tree.counts is None else tree.counts
        by_rank = np.argsort(np.broadcast_to(-np.int64(counts), n_labels), kind="stable")
        rank = np.empty(n_labels, np.int64)
        rank[by_rank] = np.arange(n_labels)
        # (N, n_words) ranks of the most frequent labels below each node
        best = np.full((tree.n_nodes, n_words), n_labels)
        with progress.task("ranking words", total=tree.n_nodes, unit="nodes") as task:
            for nodes, edges, edge_start, _ in reversed(tree.levels):
                child = tree.child[edges]
                # (e,) index of the parent in `nodes`
                parent = segment_ids(edge_start)
                is_leaf = child < 0
                # Candidates for all nodes of the level: their leaves, and the best below children
                parents = np.concatenate([parent[is_leaf], np.repeat(parent[~is_leaf], n_words)])
                ranks = np.concatenate([rank[~child[is_leaf]], best[child[~is_leaf]].ravel()])
                # Remove repeats, and sort by node, then by rank
                pairs = np.unique(parents * (n_labels + 1) + ranks)
                parents, ranks = np.divmod(pairs, n_labels + 1)
                column = np.arange(len(pairs)) - np.searchsorted(parents, parents)
                kept = column < n_words
                best[nodes[parents[kept]], column[kept]] = ranks[kept]
                task.advance(len(nodes))
        #: (N, n_words) most frequent labels below each node, ties by id; -1 for missing labels
        self.frequent: Int64 = np.append(by_rank, -1)[best]

    def of(self, node: int) -> list[Branch]:
        """Return the branches of a node, in order."""
        tree = self.tree
        branches = []
        for edge in range(*tree.child_start[node : node + 2].tolist()):
            child = int(tree.child[edge])
            fraction = float(self.fraction[edge])
            if child < 0:
                label = tree.labels[~child]
                branches.append(Branch(edge, None, label, (label,), 1, fraction))
            else:
                name = None if tree.names is None else tree.names[child]
                words = self.words(child)
                leaves = int(self.leaves[edge])
                branches.append(Branch(edge, child, name, words, leaves, fraction))
        return branches

    def words(self, node: int) -> tuple[str, ...]:
        """Return the most frequent labels below a node, in descending order."""
        return tuple(self.tree.labels[label] for label in self.frequent[node] if label >= 0)


#: Colour of nodes.
NODE_COLOUR = "#9db8d2"
#: Colour of labels.
LABEL_COLOUR = "#f0c987"
#: Colour of branches that are too narrow to be drawn one by one.
NARROW_COLOUR = "#dddddd"
#: Minimum fraction of the width for a branch to be drawn; less is below a pixel.
NARROWEST = 1 / 4000
#: Width of a letter, as a fraction of the total width.
LETTER = 0.011


def draw(tree: TreeArrays, *, max_depth: int = 12, ax: Axes | None = None) -> Axes:
    """Draw the tree as an icicle: each branch as wide as its fraction of the counts.

    A branch that leads to a node shows the node's name or, without a name, the most frequent labels
    below it. In a tree without counts, every label counts 1. The count of a label is split evenly
    over its codes.

    Parameters
    ----------
    max_depth : int, default 12
        Maximum number of decisions from the root to draw.
    ax : matplotlib Axes, optional
        Axes to draw on (default: axes of a new figure).

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    MissingExtraError
        When matplotlib is not installed.
    OptionError
        When `max_depth` is not a whole number, 1 or more.

    Examples
    --------
    >>> tree.plot(max_depth=6).figure.savefig("tree.png")  # doctest: +SKIP
    """
    max_depth = checked_count("max_depth", max_depth)
    pyplot = require("matplotlib.pyplot")
    collections = require("matplotlib.collections")

    branches = Branches(tree, n_words=3)
    width = branches.fraction
    before = np.cumsum(width) - width  # (E,) total width of the edges before each edge

    # (E,) left end of each edge, first within its node, then with all edges above added
    left = before - before[tree.child_start[tree.edge_node]]
    tree.sum_down(left)
    depth = tree.depth[tree.edge_node] + 1  # (E,) the root is at depth 0

    # Select the branches that are drawn one by one
    drawn = np.flatnonzero((depth <= max_depth) & (width > NARROWEST))

    # (R,) child and rectangle of the root, then of these branches
    child = np.append(0 if tree.n_nodes else ~0, tree.child[drawn])
    x = np.append(0.0, left[drawn])
    dx = np.append(1.0, width[drawn])
    y = np.append(0, depth[drawn])

    # A strip under each node represents narrow branches; the other branches are drawn over it
    below = (child >= 0) & (y < max_depth)
    colours = np.where(child < 0, LABEL_COLOUR, NODE_COLOUR)
    rectangles = np.stack(
        [np.append(x[below], x), np.append(y[below] + 1, y), np.append(dx[below], dx)], axis=1
    )

    if ax is None:
        ax = pyplot.subplots(figsize=(10, 5), layout="constrained")[1]
    ax.add_collection(
        collections.PolyCollection(
            [[(x, y), (x + dx, y), (x + dx, y + 1), (x, y + 1)] for x, y, dx in rectangles],
            facecolors=[NARROW_COLOUR] * int(below.sum()) + colours.tolist(),
            edgecolors="white",
            linewidths=np.minimum(0.8, 200 * rectangles[:, 2]),  # keep narrow branches visible
        )
    )

    # Names, cut to fit into their rectangles; rectangles narrower than two letters have none
    n_letters = (dx / LETTER).astype(int)
    for i in np.flatnonzero(n_letters >= 2).tolist():
        if child[i] < 0:
            name = tree.labels[~child[i]]
        else:
            name = (tree.names and tree.names[child[i]]) or " ".join(branches.words(int(child[i])))
        if len(name) > n_letters[i]:
            name = f"{name[: n_letters[i] - 1]}…"
        # Disable `parse_math`, since a dollar sign would begin a formula
        middle = x[i] + dx[i] / 2, y[i] + 0.5
        ax.text(*middle, name, ha="center", va="center", size=8, parse_math=False)
    lowest = int(rectangles[:, 1].max())
    ax.set(
        xlim=(0, 1),
        ylim=(lowest + 1, 0),
        xlabel="fraction of the labels" if tree.counts is None else "fraction of the counts",
        ylabel="decisions from the root",
        yticks=np.arange(lowest + 1) + 0.5,
        yticklabels=range(lowest + 1),
    )
    ax.set_title(repr(tree), size=10, parse_math=False)
    return ax

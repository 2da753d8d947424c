"""Picture of a tree: an icicle plot by matplotlib.

A branch is a rectangle below that of its node, as wide as its share of the counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hstree._plugins import require
from hstree._typing import Float64, Int64
from hstree.errors import OptionError
from hstree.tree.arrays import TreeArrays
from hstree.tree.frequent import most_frequent
from hstree.tree.weight_rows import edge_mass

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Colours of nodes, of labels, and of branches that are too narrow to be drawn one by one.
NODE, LABEL, NARROW = "#9db8d2", "#f0c987", "#dddddd"
#: Share of the width below which a branch is too narrow: less than a pixel.
NARROWEST = 1 / 4000
#: Share of the width that one letter takes.
LETTER = 0.011


def draw(tree: TreeArrays, max_depth: int, axes: Axes | None) -> Axes:
    """Draw a tree on `axes`, by default new ones; see `hstree.Tree.plot`."""
    if max_depth < 1:
        raise OptionError.about("max_depth", f"is {max_depth}; it must be 1 or more")
    pyplot = require("matplotlib.pyplot", "notebook")
    collections = require("matplotlib.collections", "notebook")

    left, width = spans(tree)
    depth = tree.depth[tree.edge_node] + 1  # (E,) the root is at depth 0
    drawn = np.flatnonzero((depth <= max_depth) & (width > NARROWEST))
    # The root, then the branches: (R,)
    child = np.append(0 if tree.n_nodes else ~0, tree.child[drawn])
    x, dx = np.append(0.0, left[drawn]), np.append(1.0, width[drawn])
    y = np.append(0, depth[drawn])
    below = (child >= 0) & (y < max_depth)  # nodes whose branches are drawn, or too narrow
    colours = np.where(child < 0, LABEL, NODE)
    rectangles = np.stack(
        [np.append(x[below], x), np.append(y[below] + 1, y), np.append(dx[below], dx)], axis=1
    )

    if axes is None:
        axes = pyplot.subplots(figsize=(10, 5), layout="constrained")[1]
    axes.add_collection(
        collections.PolyCollection(
            [[(x, y), (x + dx, y), (x + dx, y + 1), (x, y + 1)] for x, y, dx in rectangles],
            facecolors=[NARROW] * int(below.sum()) + colours.tolist(),
            edgecolors="white",
            linewidths=np.minimum(0.8, 200 * rectangles[:, 2]),  # or narrow ones would be white
        )
    )
    words = most_frequent(tree, 3)  # (N, 3)
    n_letters = (dx / LETTER).astype(int)
    for i in np.flatnonzero(n_letters >= 2).tolist():
        name = _shortened(_name(tree, int(child[i]), words), int(n_letters[i]))
        middle = x[i] + dx[i] / 2, y[i] + 0.5
        axes.text(*middle, name, ha="center", va="center", size=8, parse_math=False)
    lowest = int(rectangles[:, 1].max())
    axes.set(
        xlim=(0, 1),
        ylim=(lowest + 1, 0),
        xlabel="share of the labels" if tree.counts is None else "share of the counts",
        ylabel="decisions from the root",
        yticks=np.arange(lowest + 1) + 0.5,
        yticklabels=range(lowest + 1),
    )
    axes.set_title(repr(tree), size=10, parse_math=False)
    return axes


def spans(tree: TreeArrays) -> tuple[Float64, Float64]:
    """Return the left end and the width of each branch (E,), as shares of the picture's width."""
    mass = edge_mass(tree, tree.counts)
    width: Float64 = mass / mass[tree.edge_node == 0].sum()
    before = np.cumsum(width) - width  # (E,) width of all edges with a smaller number
    left: Float64 = before - before[tree.child_start[tree.edge_node]]  # of those of the same node
    tree.sum_down(left)
    return left, width


def _name(tree: TreeArrays, child: int, words: Int64) -> str:
    """Return a label, the name of a node, or the most frequent words below it."""
    if child < 0:
        return tree.labels[~child]
    name = None if tree.names is None else tree.names[child]
    return name or " ".join(tree.labels[i] for i in words[child] if i >= 0)


def _shortened(text: str, n_letters: int) -> str:
    return text if len(text) <= n_letters else f"{text[: n_letters - 1]}…"

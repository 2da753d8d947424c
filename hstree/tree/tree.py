"""`Tree`, the immutable object of flat arrays that builders make and output layers read."""

from __future__ import annotations

import os
from html import escape
from typing import TYPE_CHECKING, Self

from hstree.errors import TreeError
from hstree.tree import files
from hstree.tree.arrays import TreeArrays
from hstree.tree.branches import draw
from hstree.tree.content import Content
from hstree.tree.statistics import TreeStatistics, tree_statistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Tree(TreeArrays):
    """A checked hierarchical-softmax tree.

    Parameters
    ----------
    labels : sequence of str, length V
        Unique; at least one.
    child_start : array_like of int, shape (N + 1,)
    child : array_like of int, shape (E,)
        The children of node n are ``child[child_start[n]:child_start[n + 1]]``;
        ``c >= 0`` is a node, ``c < 0`` the label ``~c``.
    counts : array_like of int, shape (V,), optional
        Training counts of the labels.
    names : sequence of str or None, length N, optional
        A name for each inner node ("canine.n.02"), for people to read.
    meta : mapping, optional
        JSON values on how the tree was made: method, options, random_state, hstree (its version),
        input.

    Raises
    ------
    TreeError
        When the content breaks a rule of the format; the message says which, and where.

    Notes
    -----
    Two children make one logistic decision, ``P(first child) = sigmoid(q.h + b)``; more make a
    softmax. With V = 1 there is no node and the label has probability one.

    Examples
    --------
    >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
    >>> tree.n_nodes, tree.depth.tolist()
    (2, [0, 1])
    """

    def stats(self) -> TreeStatistics:
        """Compute the tree's statistics; see `TreeStatistics`."""
        return tree_statistics(self)

    def plot(self, *, max_depth: int = 12, ax: Axes | None = None) -> Axes:
        """Draw the tree as an icicle: each branch as wide as its share of the counts.

        A branch to a node has the node's name, if it has one, or the most frequent labels below
        it. Of trees without counts all labels count 1; a label's count is split evenly over its
        codes.

        Parameters
        ----------
        max_depth : int, default 12
            Number of decisions from the root to draw.
        ax : matplotlib Axes, optional
            Axes to draw on (default: those of a new figure).

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        MissingExtraError
            When matplotlib is not installed.
        OptionError
            When `max_depth` is below 1.

        Examples
        --------
        >>> tree.plot(max_depth=6).figure.savefig("tree.png")  # doctest: +SKIP
        """
        return draw(self, max_depth, ax)

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.stats()._repr_html_()}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree as ``.json``, ``.json.gz`` or ``.npz``, by the extension of `path`.

        An existing file is replaced once the new one is complete. The same tree gives the same
        bytes.

        Raises
        ------
        FileFormatError
            When the extension is unknown, the file cannot be written, or JSON cannot hold the meta.
        """
        files.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a tree and check it.

        Raises
        ------
        FileFormatError
            When the file cannot be read or is not of this format.
        TreeError
            When its content breaks a rule.

        Examples
        --------
        >>> Tree.load("tree.json")  # doctest: +SKIP
        Tree(10000 labels, 9999 nodes, method='huffman')
        """
        try:
            return cls.from_content(files.read_content(path))
        except TreeError as error:
            more = "`hstree.tree.files.read_content(...).broken_rules()` names every broken rule"
            raise TreeError(f"{path}: {error}; {more}") from error

    @classmethod
    def from_content(cls, content: Content) -> Self:
        """Make a tree from the content of a file; raises TreeError if that breaks a rule."""
        return cls(**vars(content))


def load(path: str | os.PathLike[str]) -> Tree:
    """Read a tree from a file; see `Tree.load`."""
    return Tree.load(path)

"""`Tree`, the immutable object of flat arrays that builders make and output layers read."""

import os
from html import escape
from typing import Self

from hstree.errors import TreeError
from hstree.tree import files
from hstree.tree.arrays import TreeArrays
from hstree.tree.branches import draw
from hstree.tree.statistics import tree_statistics


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

    stats = tree_statistics
    plot = draw
    save = files.save

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.stats()._repr_html_()}"

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
            return cls(**vars(files.read_content(path)))
        except TreeError as error:
            more = "`hstree.tree.files.read_content(...).broken_rules()` names every broken rule"
            raise TreeError(f"{path}: {error}; {more}") from error


load = Tree.load

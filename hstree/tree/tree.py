"""`Tree`, the immutable object of flat arrays that builders make and output layers read."""

from __future__ import annotations

import os
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hstree._arrays import offsets, ranges
from hstree._options import checked_count
from hstree.errors import InputError, TreeError
from hstree.tree import files
from hstree.tree.arrays import TreeArrays
from hstree.tree.statistics import tree_statistics

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
    >>> len(tree), "c" in tree, tree.code("c"), tree.neighbours("c")
    (3, True, [(0, 1), (1, 1)], ['b', 'a'])
    """

    stats = tree_statistics
    save = files.save

    def plot(self, *, max_depth: int = 12, ax: Axes | None = None) -> Axes:
        """Draw the tree as an icicle, each branch as wide as its fraction of the counts.

        See `hstree.tree.branches.draw` for parameters and errors.
        """
        from hstree.tree.branches import draw

        return draw(self, max_depth=max_depth, ax=ax)

    def codes(self, label: str) -> list[list[tuple[int, int]]]:
        """Return all codes of a label as lists of (node, branch) pairs, from the root down.

        Raises InputError when the tree has no such label.

        Examples
        --------
        >>> tree = Tree.from_children(["a", "b"], [[~0, ~1]])
        >>> tree.codes("b")
        [[(0, 1)]]
        """
        node = self.edge_node
        branch = self.edge_branch
        return [
            [(int(node[edge]), int(branch[edge])) for edge in reversed(path)]
            for path in self._paths(label)
        ]

    def code(self, label: str) -> list[tuple[int, int]]:
        """Return the code of a label: the nodes that decide on it, and the branch taken at each.

        Raises InputError when the tree has no such label, or the label has several codes.

        Examples
        --------
        >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
        >>> tree.code("c")
        [(0, 1), (1, 1)]
        """
        codes = self.codes(label)
        if len(codes) > 1:
            raise InputError(f"{label!r} has {len(codes)} codes; tree.codes({label!r}) lists them")
        return codes[0] if codes else []

    def neighbours(self, label: str, k: int = 10) -> list[str]:
        """Return the k labels that share the deepest nodes with a label, nearest first.

        Labels that share a node of the same depth are ordered by the number of decisions below it,
        fewest first; ties are in the order of the children. Raises InputError when the tree has no
        such label, OptionError when `k` is not a whole number, 1 or more.

        Examples
        --------
        >>> tree = Tree.from_children(["a", "b", "c"], [[~0, 1], [~1, ~2]])
        >>> tree.neighbours("c")
        ['b', 'a']
        """
        k = checked_count("k", k)
        # The edges towards the label, those at the deepest nodes first
        towards = chain(*self._paths(label))
        edges = sorted(towards, key=lambda edge: -int(self.depth[self.edge_node[edge]]))
        # A dict keeps the labels in the order in which they are found, each once
        near: dict[int, None] = {self.label_id(label): None}
        for edge in dict.fromkeys(edges):
            # Level by level below the node, except where the label itself is
            nodes = self.edge_node[[edge]]
            while nodes.size and len(near) <= k:
                edges_below = ranges(self.child_start[nodes], offsets(self.fan_out[nodes]))
                below = self.child[edges_below]
                near |= dict.fromkeys((~below[below < 0]).tolist())
                nodes = below[(below >= 0) & (below != self.child[edge])]
            if len(near) > k:
                break
        return [self.labels[i] for i in list(near)[1 : k + 1]]

    def _paths(self, label: str) -> list[list[int]]:
        """Return the edges of each code of a label, from the leaf up."""
        paths = []
        for edge in np.flatnonzero(self.child == ~self.label_id(label)).tolist():
            paths.append(path := list[int]())
            while edge >= 0:
                path.append(edge)
                edge = int(self.parent_edge[edge])
        return paths

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

    @classmethod
    def from_taxonomy(cls, source: Any) -> Self:
        """Make the tree of a taxonomy; its leaves are the labels.

        Nodes with one child decide nothing and are left out; `hstree.tree.hierarchy.Hierarchy`
        knows their names. Other inner nodes keep theirs.

        Parameters
        ----------
        source : object
            One of

            - a nested mapping: names to mappings, lists of names, or None for a leaf;
            - a mapping of each child to its parent;
            - a mapping of each node to the list of its children, of which one is a key, too;
            - edges, pairs (parent, child); rows of other lengths are levels, from the top down;
            - a ``.csv`` or ``.tsv`` file or a DataFrame of parents and children or of columns of
              levels, or a ``.nwk`` file;
            - Newick text, which ends in a semicolon;
            - a ``networkx.DiGraph`` of edges from parents to children.

        Raises
        ------
        InputError
            When the source is in none of these forms or could be in two, or has several roots, a
            cycle, a leaf twice, or an item with several parents or whose name is neither text, nor
            a number or a date.

        Notes
        -----
        Where forms look alike, a rule decides (``docs/taxonomies.md``), and `hstree.progress`
        reports it. Whole numbers are named by their digits: 10, 10.0 and "10" are the same.

        Examples
        --------
        >>> tree = Tree.from_taxonomy({"cat": "animal", "dog": "animal", "animal": "thing",
        ...                            "car": "thing"})
        >>> tree.labels, tree.names
        (('cat', 'dog', 'car'), ('thing', 'animal'))
        """
        from hstree.tree.taxonomy import read_taxonomy  # which no builder needs

        return cls(**vars(read_taxonomy(source)))


load = Tree.load


def as_tree(tree: Tree | str | os.PathLike[str]) -> Tree:
    """Return a tree, read from its file where that is named.

    Raises InputError when it is neither a tree nor the name of a file, FileFormatError when the
    file holds no tree.
    """
    if isinstance(tree, Tree):
        return tree
    if isinstance(tree, str | os.PathLike):
        return load(tree)
    raise InputError(
        f"tree is of type {type(tree).__name__}; give a hstree.Tree or the name of its file"
    )
